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
        // Whoever makes up a file would seal it, too; version 1 has no seal.
        about["version"] = 1.into();
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

    fn bytes(&self) -> Vec<u8> {
        let (mut header, mut data) = (serde_json::Map::new(), Vec::new());
        header.insert("__metadata__".into(), json!({"leukos": self.about.to_string()}));
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

fn assemble(header: &str, data: &[u8]) -> Vec<u8> {
    [&(header.len() as u64).to_le_bytes(), header.as_bytes(), data].concat()
}

fn settings() -> WhitenerSettings {
    WhitenerSettings {
        time_constant: Span::Samples(20.0),
        synapse_time_constant: Some(Span::Samples(500.0)),
        update_every: 4,
        calibration: 8,
        patience: Some(Span::Samples(100.0)),
        ..WhitenerSettings::default()
    }
}

/// A file with a former calibration and a block that has begun.
fn sound() -> Vec<u8> {
    let synapses = Matrix::from_rows(&[[1.0, 0.6, 0.1], [0.0, 0.8, -1.0]]);
    let mut whitener = Whitener::<f64>::new(synapses, settings()).unwrap();
    let scale = |row: usize| if row > 300 { 1e5 } else { 1.0 };
    let noise = |i: usize| ((i * 7919 % 101) as f64 - 50.0) * scale(i / 2);
    let stimuli: Vec<f64> = (0..1206).map(noise).collect();
    whitener.whiten(&stimuli, &mut vec![0.0; stimuli.len()]).unwrap();
    assert!(whitener.status().samples.recalibrations > 0);
    Model::from(whitener).to_bytes().unwrap()
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
    assert!(again.to_bytes().unwrap() == sound(), "and is the same as before");
}

#[test]
fn a_file_of_another_kind_or_version_is_refused_by_name() {
    assert_refused("its version is 7; this program reads versions 1 to 2", |parts| {
        parts.about = json!({"format": "whitener", "version": 7, "something": "new"});
    });
    assert_refused("the format \"whitener\", got \"cake\"", |parts| parts.about["format"] = "cake".into());
    assert_refused("missing field `format`", |parts| parts.about = json!({}));
    assert_refused("checksum: of a file of version 2 expected 32 digits, got none", |parts| {
        parts.about["version"] = 2.into();
    });
    assert_refused("checksum: of a file of version 1 expected none, got one", |parts| {
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
        (r#"\"age\":"#, r#"\"age\":0,\"age\":"#),
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
        assert_refused(name, |parts| parts.about["state"][name] = json!(-1));
    }
    for name in parts.about.as_object().unwrap().keys() {
        let missing = |parts: &mut Parts| _ = parts.about.as_object_mut().unwrap().remove(name);
        if !["channel_names", "groups"].contains(&name.as_str()) {
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
    assert_refused("synapses: expected the shape [2, 3]", |parts| parts.reshape("synapses", &[claim, 0]));
    assert_refused("mean: expected a vector", |parts| parts.reshape("mean", &[claim, 0]));
    assert_refused("latest.rows: expected rows of 2", |parts| parts.reshape("latest.rows", &[claim, 0]));
    assert_refused("at least one row", |parts| {
        for (name, shape) in [("mean", vec![0]), ("synapses", vec![0, 3])] {
            parts.reshape(name, &shape);
        }
        parts.reshape("responses.moments", &[0, 0]);
        parts.reshape("inputs.moments", &[0, 0]);
    });
    // Long blocks and calibrations are sound, and take room only once there are rows.
    let mut parts = Parts::new();
    parts.about["settings"][0]["update_every"] = json!(1_u64 << 52);
    parts.about["settings"][0]["calibration"] = json!(1_u64 << 52);
    let mut model: Model = Model::from_bytes(&parts.bytes()).unwrap();
    model.whitener.whiten(&[1.0; 200], &mut [0.0; 200]).unwrap();
}

#[test]
fn groups_that_do_not_fit_are_refused() {
    assert_refused("expected one for each of 2 groups, got 1", |parts| {
        parts.about["groups"] = json!([[0], [1]]);
    });
    assert_refused("0.mean: no such tensor", |parts| parts.about["groups"] = json!([[0, 1]]));
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
        ("calibration", json!(0)),
        ("floor", json!(0.0)),
        ("strength", json!(1.5)),
        ("leak", json!(-1.0)),
        ("outlier_limit", json!(1e9)),
        ("patience", json!({"samples": 0.0})),
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
    let excluded =
        json!({"reference": 0.0, "run": 0, "bad_run": 0, "exclusion": "constant", "variance": 1.0});
    for (name, value) in [
        ("block.rows", json!(4)),
        ("block.rows", json!(1_u64 << 40)),
        ("block.count", json!(4)),
        ("block.weight", json!(1e9)),
        ("surprise.yielding", json!(1_u64 << 50)),
        ("latest.next", json!(64)),
        ("circuit.age", json!(50)),
        ("samples", json!(null)),
        ("scale", json!(0.0)),
        ("scale", json!(-1.0)),
        ("scale", json!(1e300)),
        ("former.scale", json!(1e-320)),
        ("stillness.power", json!(-1.0)),
        ("stillness.squares", json!(-1.0)),
        ("anchor", json!(0.0)),
        ("change.usual", json!(-0.5)),
        ("responses.weight", json!(0.5)),
        ("channels", json!([])),
        ("channels", json!([excluded, excluded])),
        ("gathering", json!(true)),
        ("age", json!((1_u64 << 53) + 1)),
    ] {
        assert_refused(name, |parts| parts.about["state"][name] = value.clone());
    }
    for (name, value) in [
        ("gains", 1e200),
        ("absent", -1e-9),
        ("block.sums", 1e200),
        ("block.squares", -1.0),
        ("change.averages", 26.0),
        ("latest.rows", 1e151),
        ("stillness.origin", 1e121),
        ("column 0 of synapses", 1.5),
    ] {
        let tensor = name.rsplit(' ').next().unwrap();
        assert_refused(name, |parts| parts.numbers(tensor)[0] = value);
    }
    assert_refused("variance of channel 1", |parts| {
        parts.about["state"]["channels"][1]["variance"] = json!(-1.0);
    });
    assert_refused("pivot", |parts| parts.numbers("gains").fill(-0.9));
}

#[test]
fn a_flag_cannot_make_synapses_orthonormal() {
    let mut parts = Parts::new();
    parts.about["state"]["circuit.orthonormal"] = json!(true);
    let mut model: Model = Model::from_bytes(&parts.bytes()).unwrap();
    let mut plain: Model = Model::from_bytes(&sound()).unwrap();
    let (mut first, mut second) = ([0.0; 20], [0.0; 20]);
    let stimuli: Vec<f64> = (0..20).map(f64::from).collect();
    model.whitener.whiten(&stimuli, &mut first).unwrap();
    plain.whitener.whiten(&stimuli, &mut second).unwrap();
    assert_eq!(first, second);
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
    for place in 0..bytes.len() {
        for change in [0x01, 0x80, 0xff] {
            let mut bytes = bytes.clone();
            bytes[place] ^= change;
            let Ok(mut model) = Model::<f64>::from_bytes(&bytes) else { continue };
            let mut responses = [0.0; 16];
            let stimuli: Vec<f64> =
                (0..16).map(|i| f64::from(i * 7 % 16) * model.whitener.single().unwrap().scale()).collect();
            model.whitener.whiten(&stimuli, &mut responses).unwrap();
            if model.whitener.single_mut().unwrap().status().samples.bad
                == Model::<f64>::from_bytes(&bytes)
                    .unwrap()
                    .whitener
                    .single_mut()
                    .unwrap()
                    .status()
                    .samples
                    .bad
            {
                assert!(responses.iter().all(|r| r.is_finite()), "byte {place} ^ {change:#x}: {responses:?}");
            }
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
