//! Reads any bytes as a recording: in blocks of any size, from a file or a pipe and from any place, the rows must be the same.

use std::alloc::{GlobalAlloc, Layout, System};
use std::io::Cursor;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use leukos_lab::recording::{Bytes, Format, ReadOptions, Reader, Rows, open_bytes};

/// Counts the memory that is in use, and the most that was.
struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let live = LIVE.fetch_add(layout.size(), Relaxed) + layout.size();
        MOST.fetch_max(live, Relaxed);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Relaxed);
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// What a reader may hold whatever it reads: chunks of 256 KiB and the like.
const BUFFERS: usize = 4 << 20;
/// How many bytes a byte of the recording may become: a cell such as `,` becomes a double, in several copies here.
const EACH: usize = 200;

/// The first bytes of an input choose block sizes and options, the others are the recording.
pub type Knobs = [u8; 4];

/// Reads a recording in every way there is.
pub fn exercise(input: &[u8], format: Format, options: fn(Knobs) -> ReadOptions) {
    let Some((&knobs, bytes)) = input.split_first_chunk() else { return };
    let options = options(knobs);
    let blocks = [1 + usize::from(knobs[0]), 1 + usize::from(knobs[1] % 8)];
    let before = LIVE.load(Relaxed);
    MOST.store(before, Relaxed);
    compare(&|source| open_bytes(source, format, &options).ok(), bytes, blocks);
    let used = MOST.load(Relaxed) - before;
    assert!(used <= BUFFERS + EACH * bytes.len(), "{used} bytes of memory for {} bytes", bytes.len());
}

type Open<'a> = &'a dyn Fn(Bytes) -> Option<Box<dyn Reader>>;

fn compare(open: Open, bytes: &[u8], [block, other]: [usize; 2]) {
    let file = || Bytes::of_file(Cursor::new(bytes.to_vec())).expect("bytes in memory have a length");
    let piped = open(Bytes::of_pipe(Cursor::new(bytes.to_vec()))).map(|mut reader| all(&mut *reader, other));
    let Some(mut reader) = open(file()) else {
        assert!(
            piped.is_none_or(|piped| piped.broken),
            "a file is refused, but a pipe with the same bytes is not"
        );
        return;
    };
    let whole = all(&mut *reader, block);
    let promised = reader.layout().rows;
    assert!(whole.broken || promised.is_none_or(|rows| rows == whole.count), "as many rows as promised");
    let mut again = open(file()).expect("it opened before");
    whole.require_same(&all(&mut *again, other));
    if let Some(piped) = piped {
        whole.require_same(&piped);
    }
    return_to_a_place(&mut *open(file()).expect("it opened before"), block, other);
}

fn return_to_a_place(reader: &mut dyn Reader, block: usize, other: usize) {
    if reader.read(other, &mut Rows::default()).is_ok() {
        let place = reader.place();
        let rest = all(reader, block);
        reader.go_to(place).expect("a place of this recording");
        assert_eq!(reader.place(), place);
        rest.require_same(&all(reader, other));
    }
}

/// Everything a reader gave.
struct Whole {
    count: u64,
    rows: Rows,
    /// Whether it ended with an error.
    broken: bool,
}

fn all(reader: &mut dyn Reader, most: usize) -> Whole {
    let channels = reader.layout().channels;
    let (mut rows, mut block) = (Rows::default(), Rows::default());
    loop {
        let broken = reader.read(most, &mut block).is_err();
        if broken || block.values.is_empty() {
            return Whole { count: (rows.values.len() / channels) as u64, rows, broken };
        }
        let came = block.values.len() / channels;
        assert_eq!(block.values.len() % channels, 0, "whole rows");
        assert!(came <= most && (block.labels.is_empty() || block.labels.len() == came));
        rows.values.append(&mut block.values);
        rows.labels.append(&mut block.labels);
    }
}

impl Whole {
    /// The same rows; where reading broke, those before the block in which it did.
    fn require_same(&self, other: &Self) {
        assert_eq!(self.broken, other.broken, "an error in one way of reading and not in the other");
        assert!(self.broken || self.count == other.count, "as many rows");
        let pairs = self.rows.values.iter().zip(&other.rows.values);
        assert!(pairs.into_iter().all(|(a, b)| a.to_bits() == b.to_bits()), "the same numbers");
        assert!(self.rows.labels.iter().zip(&other.rows.labels).all(|(a, b)| a == b), "the same labels");
    }
}
