//! Reads EDF and BDF recordings, continuous ones with one sampling rate, in physical units.

mod header;

use anyhow::{Result, ensure};

use super::format::Definition;
use super::slabs::{SlabReader, Slabs};
use super::source::Bytes;
use super::{Layout, Reader, SampleType};
use header::{Header, Kind, digital};

pub(super) const EDF: Definition = Definition {
    needs_shape: false,
    tells_sample_rate: true,
    is_text: false,
    open: |bytes, _| open(bytes, Kind::Edf),
    is_scattered: |_| Ok(true),
    writing: None,
};

pub(super) const BDF: Definition = Definition { open: |bytes, _| open(bytes, Kind::Bdf), ..EDF };

/// Opens a recording whose header says that it is of this kind.
fn open(mut bytes: Bytes, kind: Kind) -> Result<Box<dyn Reader>> {
    let header = Header::read(&mut bytes, kind)?;
    let start = bytes.at();
    let mut records = Records { bytes, kind, start, header, next: 0, chunk: Vec::new() };
    records.require_whole()?;
    let header = &records.header;
    let layout = Layout {
        channels: header.signals.len(),
        names: Some(header.signals.iter().map(|signal| signal.label.clone()).collect()),
        sample_type: SampleType::Float64,
        sample_rate: Some(header.samples as f64 / header.duration),
        rows: header.records.map(|records| records * header.samples as u64),
    };
    Ok(Box::new(SlabReader::new(records, layout)))
}

/// The data records of a recording: each holds some samples of the first channel, then as many of the second, and so on.
struct Records {
    bytes: Bytes,
    kind: Kind,
    start: u64,
    header: Header,
    /// The record that comes next.
    next: u64,
    chunk: Vec<u8>,
}

impl Records {
    /// Checks at once, for a file, that its bytes are whole records, and as many as its header says.
    fn require_whole(&mut self) -> Result<()> {
        let Some(length) = self.bytes.length() else { return Ok(()) };
        let size = self.header.record_bytes as u64;
        let (there, over) = ((length - self.start) / size, (length - self.start) % size);
        let promised = self.header.records.unwrap_or(there);
        ensure!(there >= promised, self.cut_short(there, over));
        let end = self.start + promised * size;
        ensure!(
            self.header.records.is_none() || end == length,
            "expected its end after the {promised} records its header states, at byte {end}, but {} more bytes follow",
            length - end
        );
        ensure!(over == 0, self.cut_short(there, over));
        self.header.records = Some(there);
        Ok(())
    }

    fn cut_short(&self, record: u64, over: u64) -> String {
        let size = self.header.record_bytes;
        let byte = self.start + record * size as u64 + over;
        let promised = match self.header.records {
            Some(records) => format!("{records} records of {size} bytes"),
            None => format!("whole records of {size} bytes"),
        };
        format!("cut short: expected {promised}, but it ends in record {record}, at byte {byte}")
    }

    /// Reads the next record; memory grows with the bytes read, not with the size that the header states.
    fn read_record(&mut self) -> Result<usize> {
        let mut got = 0;
        while got < self.header.record_bytes {
            let until = self.header.record_bytes.min(got + (1 << 18));
            self.chunk.resize(until, 0);
            let more = self.bytes.fill(&mut self.chunk[got..])?;
            got += more;
            if got < until {
                break;
            }
        }
        Ok(got)
    }

    fn require_end(&mut self) -> Result<()> {
        let followed = self.bytes.length().is_none() && self.bytes.some(&mut [0])? > 0;
        let (records, byte) = (self.next, self.bytes.at() - u64::from(followed));
        ensure!(
            !followed,
            "expected its end after the {records} records its header states, at byte {byte}, but more bytes follow"
        );
        Ok(())
    }

    fn decode(&self, values: &mut Vec<f64>) {
        let (channels, size) = (self.header.signals.len(), self.kind.sample_bytes());
        values.resize(channels * self.header.samples, 0.0);
        for (channel, signal) in self.header.signals.iter().enumerate() {
            let samples = self.chunk[signal.offset..].chunks_exact(size);
            let places = values[channel..].iter_mut().step_by(channels);
            places.zip(samples).for_each(|(place, sample)| *place = signal.physical(digital(sample)));
        }
    }
}

impl Slabs for Records {
    fn fetch(&mut self, _row: u64, values: &mut Vec<f64>) -> Result<u64> {
        values.clear();
        let first = self.next * self.header.samples as u64;
        if self.header.records == Some(self.next) {
            self.require_end()?;
            return Ok(first);
        }
        let got = self.read_record()?;
        if got == 0 && self.header.records.is_none() {
            return Ok(first);
        }
        ensure!(got == self.header.record_bytes, self.cut_short(self.next, got as u64));
        self.decode(values);
        self.next += 1;
        Ok(first)
    }

    fn go_to(&mut self, row: u64) -> Result<()> {
        self.bytes.go_to(self.byte(row))?;
        self.next = row / self.header.samples as u64;
        Ok(())
    }

    /// Where the record of the row begins.
    fn byte(&self, row: u64) -> u64 {
        (row / self.header.samples as u64)
            .saturating_mul(self.header.record_bytes as u64)
            .saturating_add(self.start)
    }

    fn is_pipe(&self) -> bool {
        self.bytes.is_pipe()
    }
}
