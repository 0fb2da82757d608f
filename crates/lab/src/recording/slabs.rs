//! Reads rows that lie channel by channel in their file, a slab of rows at a time.

use anyhow::{Result, ensure};

use super::{Layout, Place, Reader, Rows};

/// Rows of a recording that can only be read together.
pub(super) trait Slabs {
    /// Replaces `values` by a whole slab that holds this row, row after row, and says which row is its first; nothing at the
    /// end. Rows are asked for in order, but for [`Slabs::go_to`].
    fn fetch(&mut self, row: u64, values: &mut Vec<f64>) -> Result<u64>;

    /// Goes on at a slab that holds this row.
    fn go_to(&mut self, row: u64) -> Result<()>;

    /// A byte that stands for the place before this row.
    fn byte(&self, row: u64) -> u64;

    /// Whether the next slab may come at any time.
    fn is_pipe(&self) -> bool;
}

/// Hands out the rows of slabs in blocks of any size.
pub(super) struct SlabReader<S> {
    slabs: S,
    layout: Layout,
    slab: Vec<f64>,
    /// The first row of the slab.
    first: u64,
    row: u64,
}

impl<S: Slabs> SlabReader<S> {
    pub fn new(slabs: S, layout: Layout) -> Self {
        Self { slabs, layout, slab: Vec::new(), first: 0, row: 0 }
    }

    /// The rest of the slab from the next row on; a new slab if there is no rest, nothing at the end.
    fn rest(&mut self) -> Result<&[f64]> {
        let done = |first: u64, row: u64| (row - first) as usize * self.layout.channels;
        if done(self.first, self.row) >= self.slab.len() {
            self.first = self.slabs.fetch(self.row, &mut self.slab)?;
        }
        Ok(self.slab.get(done(self.first, self.row)..).unwrap_or_default())
    }
}

impl<S: Slabs> Reader for SlabReader<S> {
    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn read(&mut self, most: usize, rows: &mut Rows) -> Result<()> {
        rows.clear();
        let channels = self.layout.channels;
        let mut left = most;
        while left > 0 {
            let rest = self.rest()?;
            let taken = left.min(rest.len() / channels);
            if taken == 0 {
                break;
            }
            rows.values.extend(&rest[..taken * channels]);
            self.row += taken as u64;
            left -= taken;
            if self.slabs.is_pipe() {
                break;
            }
        }
        Ok(())
    }

    fn place(&self) -> Place {
        Place { row: self.row, byte: self.slabs.byte(self.row) }
    }

    fn go_to(&mut self, place: Place) -> Result<()> {
        place.require_within(self.layout.rows)?;
        let byte = self.slabs.byte(place.row);
        ensure!(byte == place.byte, "expected row {} at byte {byte}, got byte {}", place.row, place.byte);
        self.slabs.go_to(place.row)?;
        self.slab.clear();
        (self.first, self.row) = (place.row, place.row);
        Ok(())
    }
}
