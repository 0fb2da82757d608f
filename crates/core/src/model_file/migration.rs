//! Reads files of versions 1 and 2, whose whitener was a circuit with gains that adapted: what it had come to is what
//! was learned.

use serde::Deserialize;
use serde_json::Value;

use super::reader::Reader;
use crate::archive::{Archive, damaged, require};
use crate::error::Result;
use crate::linalg::{product, weighted_gram};
use crate::matrix::Matrix;
use crate::real::Real;
use crate::size::require_whitener;
use crate::whitener::{BadSamples, GainPrior, Learned, Span, Whitener, WhitenerSettings};

/// The settings that have a meaning still, and those that had one.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(dead_code, reason = "what no longer has a meaning may be there")]
struct Settings {
    sample_rate: Option<f64>,
    time_constant: Span,
    synapse_time_constant: Option<Span>,
    mean_time_constant: Option<Span>,
    strength: f64,
    bad_samples: BadSamples,
    saturation: Option<f64>,
    update_every: usize,
    calibration: usize,
    floor: f64,
    outlier_limit: f64,
    patience: Option<Span>,
    leak: f64,
}

/// A channel as it was kept.
#[derive(Deserialize)]
struct Channel {
    exclusion: Option<Value>,
}

/// The usual time constant, in whose place the stream itself now decides.
const USUAL: Span = Span::Samples(1000.0);
/// The number of samples that the state of such a whitener is taken to rest on, which is what it remembered.
const COUNT: f64 = 1000.0;

/// Reads a whitener of an earlier version.
pub(super) fn read<T: Real>(reader: &mut Reader<'_>, settings: Value) -> Result<Whitener<T>> {
    let old: Settings =
        serde_json::from_value(settings).map_err(|error| damaged(format!("settings: {error}")))?;
    let (n, k) = reader.size_before_kinds()?;
    require_whitener(n, k)?;
    let (mut mean, mut gains, mut weights) = (Vec::<f64>::new(), Vec::<f64>::new(), Vec::<f64>::new());
    reader.vector("mean", n, &mut mean)?;
    reader.vector("gains", k, &mut gains)?;
    reader.matrix("synapses", (n, k), &mut weights)?;
    let synapses = Matrix::from_columns(n, k, weights)?;
    let mut scale = Value::Null;
    reader.value("scale", &mut scale)?;
    let scale = scale.as_f64().filter(|scale| (0.0..1e150).contains(scale));
    let scale = scale.ok_or_else(|| damaged("scale: expected a number that is not negative"))?;
    let mut channels = Value::Null;
    reader.value("channels", &mut channels)?;
    let channels: Vec<Channel> =
        serde_json::from_value(channels).map_err(|error| damaged(format!("channels: {error}")))?;
    require("channels", channels.len() == n, &format!("{n} of them"), channels.len())?;
    let prior = read_prior(reader, k)?;
    let settings = WhitenerSettings {
        sample_rate: old.sample_rate,
        time_constant: Some(old.time_constant).filter(|time| *time != USUAL),
        synapse_time_constant: old.synapse_time_constant,
        strength: old.strength,
        bad_samples: old.bad_samples,
        saturation: old.saturation,
        floor: old.floor,
        ..WhitenerSettings::default()
    };
    let whitener = Whitener::new(synapses.clone(), settings)?;
    if scale == 0.0 {
        return Ok(whitener);
    }
    let dead: Vec<bool> = channels.iter().map(|channel| channel.exclusion.is_some()).collect();
    // C = (σ M)².
    let m = weighted_gram(&synapses, &gains, old.leak);
    let square = product(m.view(), m.view());
    let covariance =
        Matrix::from_fn(n, n, |i, j| scale * scale * f64::midpoint(square[(i, j)], square[(j, i)]));
    let learned = Learned { count: COUNT, mean, covariance, dead };
    learned.require_sound()?;
    Ok(whitener.fitted(learned, prior))
}

fn read_prior(reader: &mut Reader<'_>, k: usize) -> Result<Option<GainPrior>> {
    let mut there = false;
    reader.value("prior", &mut there)?;
    if !there {
        return Ok(None);
    }
    let (mut mean, mut entries) = (Vec::new(), Vec::new());
    reader.vector("prior.mean", k, &mut mean)?;
    reader.matrix("prior.covariance", (k, k), &mut entries)?;
    Ok(Some(GainPrior { mean, covariance: Matrix::from_columns(k, k, entries)? }))
}
