//! Opens model files that no whitener has written: each gets an error that names what is wrong, and none a panic.

use std::collections::BTreeMap;

use leukos::{Matrix, Model, Real, Span, Whitener, WhitenerSettings};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use serde_json::{Value, json};

/// A model file taken apart.
struct Parts {
    /// What the metadata says.
    about: Value,
    /// Shape and numbers of each tensor.
    tensors: BTreeMap<String, (Vec<usize>, Vec<f64>)>,
}

impl Parts {
    /// A whitener of two channels and three interneurons in the middle of everything.
    fn new() -> Self {
        Self::of(&sound())
    }

    fn of(bytes: &[u8]) -> Self {
        let end = 8 + usize::try_from(u64::from_le_bytes(*bytes.first_chunk().unwrap())).unwrap();
        let header: Value = serde_json::from_slice(&bytes[8..end]).unwrap();
        let mut about: Value =
            serde_json::from_str(header["__metadata__"]["leukos"].as_str().unwrap()).unwrap();
        about.as_object_mut().unwrap().remove("checksum");
        let tensors = header.as_object().unwrap().iter().filter(|(name, _)| *name != "__metadata__");
        let tensors = tensors.map(|(name, info)| {
            let offset = |i: usize| end + usize::try_from(info["data_offsets"][i].as_u64().unwrap()).unwrap();
            let shape = serde_json::from_value(info["shape"].clone()).unwrap();
            let numbers = bytes[offset(0)..offset(1)].as_chunks().0.iter().map(|x| f64::from_le_bytes(*x));
            (name.clone(), (shape, numbers.collect()))
        });
        Self { tensors: tensors.collect(), about }
    }

    /// The file, sealed: whoever makes one up would do that, too.
    fn bytes(&self) -> Vec<u8> {
        let mut about = self.about.clone();
        let sealed = about["version"].as_u64().is_some_and(|version| version >= 2) && about.is_object();
        if sealed && about.get("checksum").is_none() {
            about["checksum"] = "0".repeat(32).into();
        }
        let mut bytes = self.assembled(&about);
        if sealed {
            seal(&mut bytes);
        }
        bytes
    }

    fn assembled(&self, about: &Value) -> Vec<u8> {
        let (mut header, mut data) = (serde_json::Map::new(), Vec::new());
        header.insert("__metadata__".into(), json!({"leukos": about.to_string()}));
        for (name, (shape, numbers)) in &self.tensors {
            let offsets = [data.len(), data.len() + 8 * numbers.len()];
            header.insert(name.clone(), json!({"dtype": "F64", "shape": shape, "data_offsets": offsets}));
            data.extend(numbers.iter().flat_map(|x| x.to_le_bytes()));
        }
        assemble(&Value::Object(header).to_string(), &data)
    }

    fn numbers(&mut self, name: &str) -> &mut Vec<f64> {
        &mut self.tensors.get_mut(name).unwrap().1
    }

    fn reshape(&mut self, name: &str, shape: &[usize]) {
        let numbers = vec![0.0; shape.iter().product()];
        self.tensors.insert(name.into(), (shape.to_vec(), numbers));
    }
}

/// Puts the checksum of a file into it, where it has room for one.
fn seal(bytes: &mut [u8]) {
    let key: &[u8] = br#"\"checksum\":\""#;
    let Some(place) = bytes.windows(key.len()).position(|window| window == key) else { return };
    let digits = place + key.len()..place + key.len() + 32;
    if digits.end <= bytes.len() {
        bytes[digits.clone()].fill(b'0');
        let checksum = format!("{:032x}", xxhash_rust::xxh3::xxh3_128(bytes));
        bytes[digits].copy_from_slice(checksum.as_bytes());
    }
}

fn assemble(header: &str, data: &[u8]) -> Vec<u8> {
    [&(header.len() as u64).to_le_bytes(), header.as_bytes(), data].concat()
}

fn settings() -> WhitenerSettings {
    WhitenerSettings {
        time_constant: Some(Span::Samples(20.0)),
        synapse_time_constant: Some(Span::Samples(500.0)),
        update_every: Some(4),
        ..WhitenerSettings::default()
    }
}

/// A checkpoint after a change of context, with a block that has begun and a channel that is left out.
fn sound() -> Vec<u8> {
    let synapses = Matrix::from_rows(&[[1.0, 0.6, 0.1], [0.0, 0.8, -1.0]]);
    let mut whitener = Whitener::<f64>::new(synapses, settings()).unwrap();
    let scale = |row: usize| if row > 300 { 1e5 } else { 1.0 };
    let noise = |i: usize| {
        if i / 2 > 600 && i % 2 == 1 { 7.0 } else { ((i * 7919 % 101) as f64 - 50.0) * scale(i / 2) }
    };
    let stimuli: Vec<f64> = (0..1606).map(noise).collect();
    whitener.whiten(&stimuli, &mut vec![0.0; stimuli.len()]).unwrap();
    let status = whitener.status();
    assert!(status.samples.switches > 0 && status.excluded.len() == 1, "{status}");
    Model::from(whitener).to_checkpoint().unwrap()
}

fn problem<T: Real>(bytes: &[u8]) -> String {
    Model::<T>::from_bytes(bytes).err().map_or_else(|| "it opens".into(), |error| error.to_string())
}

/// Opens what becomes of a sound file, in both precisions, and looks for what the error should name.
fn assert_refused(named: &str, change: impl Fn(&mut Parts)) {
    let mut parts = Parts::new();
    change(&mut parts);
    let bytes = parts.bytes();
    for problem in [problem::<f64>(&bytes), problem::<f32>(&bytes)] {
        assert!(problem.starts_with("model file: ") && problem.contains(named), "{named:?}: {problem}");
    }
}

#[test]
fn a_file_that_is_taken_apart_and_put_together_opens() {
    let bytes = Parts::new().bytes();
    let again: Model = Model::from_bytes(&bytes).unwrap();
    assert!(again.to_checkpoint().unwrap() == sound(), "and is the same as before");
}

#[test]
fn a_file_of_another_kind_or_version_is_refused_by_name() {
    assert_refused("its version is 7; this program reads versions 1 to 3", |parts| {
        parts.about = json!({"format": "whitener", "version": 7, "something": "new"});
    });
    assert_refused("the format \"whitener\", got \"cake\"", |parts| parts.about["format"] = "cake".into());
    assert_refused("missing field `format`", |parts| parts.about = json!({}));
    assert_refused("kind: a file of version 1 has none", |parts| parts.about["version"] = 1.into());
    assert_refused("checksum: of a file of version 1 expected none, got one", |parts| {
        parts.about["version"] = 1.into();
        parts.about["kind"] = "model".into();
        parts.about["checksum"] = "0".repeat(32).into();
    });
    let other = assemble(
        r#"{"__metadata__":{"format":"pt"},"x":{"dtype":"F64","shape":[0],"data_offsets":[0,0]}}"#,
        &[],
    );
    assert!(problem::<f64>(&other).contains("no metadata \"leukos\""), "{}", problem::<f64>(&other));
}

#[test]
fn broken_containers_are_refused() {
    let whole = sound();
    for length in 0..whole.len() {
        assert!(problem::<f64>(&whole[..length]).contains("not a whole safetensors file"), "{length} bytes");
    }
    let longer = [&whole[..], &[0]].concat();
    let huge = [&u64::MAX.to_le_bytes(), &whole[8..]].concat();
    let large = [&(1_u64 << 26).to_le_bytes(), &whole[8..]].concat();
    let binary = assemble("{\"a\": \u{1}}", &[]);
    let mut not_text = whole.clone();
    not_text[40] = 0xff;
    for (what, bytes) in [
        ("longer", longer),
        ("huge header", huge),
        ("large header", large),
        ("binary", binary),
        ("text", not_text),
    ] {
        assert!(
            problem::<f64>(&bytes).contains("not a whole safetensors file"),
            "{what}: {}",
            problem::<f64>(&bytes)
        );
    }
}

#[test]
fn keys_that_stand_twice_are_refused() {
    let empty = r#"{"dtype":"F64","shape":[0],"data_offsets":[0,0]}"#;
    let tensors = assemble(&format!(r#"{{"x":{empty},"x":{empty}}}"#), &[]);
    assert!(problem::<f64>(&tensors).contains(r#"the key "x" stands twice"#), "{}", problem::<f64>(&tensors));
    let bytes = sound();
    for (once, twice) in [
        (r#"\"unit\":"#, r#"\"unit\":1.0,\"unit\":"#),
        (r#"\"bad_run\":"#, r#"\"bad_run\":1,\"bad_run\":"#),
        (r#"\"version\":"#, r#"\"version\":1,\"version\":"#),
        (r#"\"notes\":{"#, r#"\"notes\":{\"a\":\"\",\"a\":\"\""#),
    ] {
        let end = 8 + usize::try_from(u64::from_le_bytes(*bytes.first_chunk().unwrap())).unwrap();
        let header = str::from_utf8(&bytes[8..end]).unwrap();
        assert!(header.contains(once), "{once}");
        let repeated = assemble(&header.replacen(once, twice, 1), &bytes[end..]);
        assert!(problem::<f64>(&repeated).contains("stands twice"), "{once}: {}", problem::<f64>(&repeated));
    }
}

#[test]
fn a_number_that_is_not_finite_is_found_in_any_tensor() {
    for name in Parts::new().tensors.keys() {
        for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert_refused(&format!("{name}: expected finite numbers, got {bad} at position 0"), |parts| {
                parts.numbers(name)[0] = bad;
            });
        }
    }
}

#[test]
fn every_part_must_be_there_in_its_shape_and_nothing_else() {
    let parts = Parts::new();
    for (name, (shape, _)) in &parts.tensors {
        assert_refused(name, |parts| _ = parts.tensors.remove(name));
        let longer: Vec<usize> = shape.iter().map(|length| length + 100).collect();
        assert_refused("expected", |parts| parts.reshape(name, &longer));
        assert_refused(name, |parts| parts.reshape(name, &[1, 1, 1]));
    }
    for name in parts.about["state"].as_object().unwrap().keys() {
        assert_refused(name, |parts| _ = parts.about["state"].as_object_mut().unwrap().remove(name));
        assert_refused(name, |parts| parts.about["state"][name] = json!("text"));
        // A time may lie before the first row, and a logarithm anywhere.
        let signed = [".time", ".log_determinant", "last_change", "excess.nats"];
        if !signed.iter().any(|end| name.ends_with(end)) {
            assert_refused(name, |parts| parts.about["state"][name] = json!(-1));
        }
    }
    for name in parts.about.as_object().unwrap().keys() {
        let missing = |parts: &mut Parts| _ = parts.about.as_object_mut().unwrap().remove(name);
        if !["channel_names", "groups", "kind"].contains(&name.as_str()) {
            assert_refused(name, missing);
        }
        assert_refused("metadata \"leukos\"", |parts| parts.about[name] = json!(1.5));
    }
    assert_refused("extra: it does not belong", |parts| parts.reshape("extra", &[1]));
    assert_refused("extra: it does not belong", |parts| parts.about["state"]["extra"] = json!(1));
    assert_refused("unknown field `extra`", |parts| parts.about["extra"] = json!(1));
    assert_refused("unknown field `extra`", |parts| parts.about["settings"][0]["extra"] = json!(1));
    assert_refused("unknown field `extra`", |parts| parts.about["state"]["channels"][0]["extra"] = json!(1));
    assert_refused("channel_names: expected 2 names", |parts| parts.about["channel_names"] = json!(["one"]));
}

#[test]
fn sizes_that_are_only_claimed_take_no_room() {
    let claim = 1 << 40;
    // Tensors without entries may claim any other length.
    assert_refused("learned.covariance: expected the shape", |parts| parts.reshape("synapses", &[claim, 0]));
    assert_refused("synapses: expected a matrix", |parts| parts.reshape("synapses", &[claim, 0, 1]));
    assert_refused("block.values: expected rows of 2", |parts| parts.reshape("block.values", &[claim, 0]));
    assert_refused("at least one channel", |parts| {
        parts.reshape("synapses", &[0, 3]);
        parts.reshape("learned.covariance", &[0, 0]);
    });
}

#[test]
fn groups_that_do_not_fit_are_refused() {
    assert_refused("expected one for each of 2 groups, got 1", |parts| {
        parts.about["groups"] = json!([[0], [1]]);
    });
    assert_refused("0.synapses: no such tensor", |parts| parts.about["groups"] = json!([[0, 1]]));
    for (groups, problem) in [
        (json!([[0, 2]]), "channel 2 too large or once more"),
        (json!([[1, 1]]), "channel 1 too large or once more"),
        (json!([[0]]), "groups[0]"),
    ] {
        let mut parts = Parts::new();
        parts.about["groups"] = groups;
        let state = parts.about["state"].as_object().unwrap();
        let state: serde_json::Map<_, _> =
            state.iter().map(|(name, value)| (format!("0.{name}"), value.clone())).collect();
        parts.about["state"] = Value::Object(state);
        parts.tensors = parts.tensors.into_iter().map(|(name, rest)| (format!("0.{name}"), rest)).collect();
        let error = Model::<f64>::from_bytes(&parts.bytes()).err().unwrap().to_string();
        assert!(error.contains(problem), "{error}");
    }
    assert_refused("groups", |parts| {
        parts.about["groups"] = json!([]);
        parts.about["settings"] = json!([]);
        parts.about["state"] = json!({});
        parts.tensors.clear();
    });
}

#[test]
fn settings_out_of_range_are_refused() {
    for (name, value) in [
        ("update_every", json!(0)),
        ("floor", json!(0.0)),
        ("strength", json!(1.5)),
        ("exclude_above", json!(1.0)),
        ("update_every", json!(1_u64 << 52)),
        ("saturation", json!(-1.0)),
        ("sample_rate", json!(0.0)),
        ("time_constant", json!({"samples": 0.5})),
        ("time_constant", json!({"samples": 1e300})),
        ("time_constant", json!({"seconds": 1.0})),
        ("synapse_time_constant", json!({"samples": -1.0})),
    ] {
        assert_refused(name, |parts| parts.about["settings"][0][name] = value.clone());
    }
    assert_refused("unknown variant", |parts| parts.about["settings"][0]["bad_samples"] = json!("eat"));
}

#[test]
fn states_that_no_run_could_reach_are_refused() {
    let channel = |exclusion: Option<&str>, tolerance: f64| {
        json!({
            "reference": 0.0, "run": 0, "departed": 0.0, "tolerance": tolerance, "latest": 0.0, "bad_run": 0,
            "exclusion": exclusion,
        })
    };
    let [excluded, careless] = [channel(Some("constant"), 1.0), channel(None, -1.0)];
    for (name, value) in [
        ("block.rows", json!(4)),
        ("block.rows", json!(1_u64 << 40)),
        ("block.wild", json!([true, true, true, true, true])),
        ("block.powers", json!([-1.0])),
        ("samples", json!(null)),
        ("map.scale", json!(-1.0)),
        ("map.scale", json!(1e300)),
        ("unit", json!(3.0)),
        ("unit", json!(0.0)),
        ("memory0.count", json!(1e9)),
        ("memory10.count", json!(1e300)),
        ("memory3.level", json!(-1.0)),
        ("memory3.prediction.power", json!(0.0)),
        ("memory3.time_variance", json!(-1.0)),
        ("memory3.prediction.gain", json!(-1.0)),
        ("memory3.prediction.time_spread", json!(0.0)),
        ("memory3.prediction.trend_power", json!(1.0)),
        ("memory3.portion", json!(9)),
        ("gathered0.power", json!(-1.0)),
        ("blocks", json!(1_u64 << 60)),
        ("spoilt2", json!(-1.0)),
        ("challenger0.than_mixture", json!(-1.0)),
        ("challenger1.born", json!(-1.0)),
        ("predicted", json!(-1.0)),
        ("time", json!(-1.0)),
        ("moved", json!(-1.0)),
        ("live", json!([true])),
        ("live", json!([true, true])),
        ("imagination", json!(false)),
        ("responses.weight", json!(0.5)),
        ("channels", json!([])),
        ("channels", json!([excluded, excluded])),
        ("channels", json!([careless, careless])),
        ("learned.count", json!(-1.0)),
        ("changes", json!((1_u64 << 53) + 1)),
    ] {
        assert_refused(if name == "channels" { "expected" } else { name }, |parts| {
            let own = parts.about["state"].get_mut(name).unwrap_or_else(|| panic!("there is no {name}"));
            *own = value.clone();
        });
    }
    for (name, value) in [
        ("mixture", 1.5),
        ("mixture", -0.5),
        ("memory2.covariance", -1.0),
        ("memory2.covariance", 1e300),
        ("challenger1.mean", 1e300),
        ("gathered0.drift", 1e300),
        ("memory2.prediction.reciprocals", 0.0),
        ("block.values", 1e110),
        ("map.vectors", 1.5),
        ("synapses", 1.5),
    ] {
        assert_refused(name, |parts| parts.numbers(name)[0] = value);
    }
}

/// Files that broke the fuzz target once: what opens must whiten to finite numbers, and open again.
#[test]
fn what_the_fuzzer_found_stays_mended() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/found_by_fuzzing");
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        let bytes = std::fs::read(&path).unwrap();
        let mut model = Model::<f32>::from_bytes(&bytes).unwrap();
        let (mean, scale) = (model.whitener.mean(), model.whitener.single().unwrap().scale());
        for row in 0..6 {
            let stimulus = |j: usize| (mean[j] + scale * ((row * 7 + j * 3) % 5) as f64 - 2.0 * scale) as f32;
            let stimuli: Vec<f32> = (0..mean.len()).map(stimulus).collect();
            let mut responses = vec![0.0; stimuli.len()];
            let bad = model.whitener.single().unwrap().samples().bad;
            model.whitener.whiten(&stimuli, &mut responses).unwrap();
            let usable = model.whitener.single().unwrap().samples().bad == bad;
            assert!(!usable || responses.iter().all(|r| r.is_finite()), "{path:?}, row {row}: {responses:?}");
        }
        Model::<f32>::from_bytes(&model.to_bytes().unwrap()).unwrap();
    }
}

/// A small brother of the fuzzer: every byte of a file, changed in three ways.
#[test]
fn no_changed_byte_makes_it_panic_or_put_out_nonsense() {
    let bytes = Parts::new().bytes();
    let stimuli: Vec<f64> = (0..16).map(|i| f64::from(i * 7 % 16)).collect();
    for place in 0..bytes.len() {
        let change = [0x01, 0x80, 0xff][place % 3];
        let mut bytes = bytes.clone();
        bytes[place] ^= change;
        seal(&mut bytes);
        let Ok(mut model) = Model::<f64>::from_bytes(&bytes) else { continue };
        let whitener = model.whitener.single_mut().unwrap();
        let (scale, bad) = (whitener.scale(), whitener.samples().bad);
        let stimuli: Vec<f64> = stimuli.iter().map(|s| s * scale).collect();
        let mut responses = [0.0; 16];
        whitener.whiten(&stimuli, &mut responses).unwrap();
        if whitener.samples().bad == bad {
            assert!(responses.iter().all(|r| r.is_finite()), "byte {place} ^ {change:#x}: {responses:?}");
        }
    }
}

#[test]
fn no_changed_byte_goes_unnoticed() {
    let (mut bytes, mut rng) = (sound(), Pcg64::seed_from_u64(17));
    for _ in 0..100_000 {
        let (place, change) = (rng.random_range(0..bytes.len()), rng.random_range(1..=255_u8));
        bytes[place] ^= change;
        assert!(Model::<f64>::from_bytes(&bytes).is_err(), "byte {place} ^ {change:#x} was not noticed");
        bytes[place] ^= change;
    }
    assert!(Model::<f64>::from_bytes(&bytes).is_ok());
    let numbers = bytes.len() - 8;
    bytes[numbers] ^= 1;
    assert!(problem::<f64>(&bytes).contains("its bytes have changed: expected the checksum"));
}
