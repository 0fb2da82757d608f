//! Changes a model file where it matters, so that the fuzzer gets past the first checks.

use serde_json::Value;

/// Numbers on the edge of something.
const NUMBERS: [f64; 20] = [
    0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 63.0, 64.0, 1e-300, 1e300, -1e300, 1e-10, 1e10, 1e-4, 7e12, 1e150, 5e-324, f64::MAX,
    f64::INFINITY, f64::NAN,
];

/// A stream of numbers from a seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit.max(1)
    }

    fn number(&mut self, old: f64) -> f64 {
        match self.below(4) {
            0 => old * (1.0 + self.below(1000) as f64 / 1000.0),
            1 => f64::from_bits(old.to_bits() ^ 1 << self.below(64)),
            _ => NUMBERS[self.below(NUMBERS.len())],
        }
    }
}

/// The file with one or a few of its numbers, words or shapes changed; `None` if it is not a file at all.
pub fn changed(bytes: &[u8], seed: u32) -> Option<Vec<u8>> {
    let length = usize::try_from(u64::from_le_bytes(*bytes.first_chunk()?)).ok()?;
    let end = length.checked_add(8)?;
    let mut header: Value = serde_json::from_slice(bytes.get(8..end)?).ok()?;
    let mut data = bytes[end..].to_vec();
    let mut dice = Dice(u64::from(seed));
    for _ in 0..=dice.below(3) {
        match dice.below(8) {
            0 => _ = change_leaf(&mut header, &mut dice),
            1..=3 => _ = change_metadata(&mut header, &mut dice),
            _ => _ = change_number(&mut data, &mut dice),
        }
    }
    let header = serde_json::to_vec(&header).ok()?;
    Some([&(header.len() as u64).to_le_bytes(), &header[..], &data[..]].concat())
}

fn change_number(data: &mut [u8], dice: &mut Dice) -> Option<()> {
    let place = dice.below(data.len() / 8) * 8;
    let number: &mut [u8; 8] = data.get_mut(place..)?.first_chunk_mut()?;
    *number = dice.number(f64::from_le_bytes(*number)).to_le_bytes();
    Some(())
}

fn change_metadata(header: &mut Value, dice: &mut Dice) -> Option<()> {
    let text = header.get_mut("__metadata__")?.get_mut("leukos")?;
    let mut inner: Value = serde_json::from_str(text.as_str()?).ok()?;
    change_leaf(&mut inner, dice)?;
    *text = Value::String(inner.to_string());
    Some(())
}

/// Goes down a random path and changes what is at its end.
fn change_leaf(value: &mut Value, dice: &mut Dice) -> Option<()> {
    match value {
        Value::Object(entries) if !entries.is_empty() => {
            let index = dice.below(entries.len());
            change_leaf(entries.values_mut().nth(index)?, dice)
        }
        Value::Array(values) if !values.is_empty() => {
            let index = dice.below(values.len());
            change_leaf(&mut values[index], dice)
        }
        leaf => {
            *leaf = other_leaf(leaf, dice);
            Some(())
        }
    }
}

fn other_leaf(leaf: &Value, dice: &mut Dice) -> Value {
    match (leaf, dice.below(6)) {
        (Value::Bool(old), 0..4) => (!old).into(),
        (Value::Number(old), 0..2) if old.is_u64() => old.as_u64().unwrap_or(0).wrapping_add(1).into(),
        (Value::Number(old), 2..4) if old.is_u64() => (1_u64 << dice.below(64)).into(),
        (Value::Number(old), 0..5) => dice.number(old.as_f64().unwrap_or(1.0)).into(),
        (_, 4) => Value::Null,
        _ => dice.below(3).into(),
    }
}
