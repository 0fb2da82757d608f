//! Fits numbers into the sample type they are written as: never wraps, and counts what did not fit.

use super::{Format, Misfits, SampleType};

/// Turns doubles into numbers of other types.
pub(super) struct Fitting {
    /// What a response of one becomes, as a whole number.
    pub scale: f64,
    pub misfits: Misfits,
}

impl Fitting {
    pub fn int16(&mut self, value: f64) -> i16 {
        self.whole(value, [i16::MIN.into(), i16::MAX.into()]) as i16
    }

    pub fn int32(&mut self, value: f64) -> i32 {
        self.whole(value, [i32::MIN.into(), i32::MAX.into()]) as i32
    }

    /// The nearest number of 32 bits; the largest one rather than infinity for what is finite.
    pub fn float32(&mut self, value: f64) -> f32 {
        let near = value as f32;
        if near.is_finite() || !value.is_finite() {
            return near;
        }
        self.misfits.clipped += 1;
        f32::MAX.copysign(near)
    }

    /// The scaled number rounded to the nearest whole one, to the even one of two, and clipped.
    fn whole(&mut self, value: f64, [least, most]: [f64; 2]) -> f64 {
        let rounded = (value * self.scale).round_ties_even();
        if rounded.is_nan() {
            self.misfits.not_numbers += 1;
            return 0.0;
        }
        self.misfits.clipped += u64::from(!(least..=most).contains(&rounded));
        rounded.clamp(least, most)
    }
}

/// What becomes of responses that are written and read again.
pub struct Rounding {
    fitting: Fitting,
    sample_type: SampleType,
    format: Format,
}

impl Rounding {
    pub(super) fn new(fitting: Fitting, sample_type: SampleType, format: Format) -> Self {
        Self { fitting, sample_type, format }
    }

    /// The response that a reader of the output will have, who divides whole numbers by their scale.
    pub fn read_again(&mut self, response: f64) -> f64 {
        let fitting = &mut self.fitting;
        let unit = 1.0 / fitting.scale;
        match self.sample_type {
            SampleType::Int16 => f64::from(fitting.int16(response)) * unit,
            SampleType::Int32 => f64::from(fitting.int32(response)) * unit,
            SampleType::Float32 if self.format.is_text() => {
                // The shortest digits of a single-precision number, read as a double, give a slightly different number.
                format!("{:?}", fitting.float32(response)).parse().unwrap_or(f64::NAN)
            }
            SampleType::Float32 => fitting.float32(response).into(),
            SampleType::Float64 => response,
        }
    }

    /// How many responses did not fit.
    pub fn misfits(&self) -> Misfits {
        self.fitting.misfits
    }
}
