//! Sets up a bench for tests: a directory, tiny specs, stacks on disk, and the program to run on them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use serde_json::Value;
use tempfile::TempDir;
use toml::{Table, Value as Toml};

/// All figures.
pub const FIGURES: [&str; 14] = [
    "geometry",
    "synthetic",
    "natural",
    "interneurons",
    "one-dimensional",
    "control",
    "biological",
    "leak",
    "ablation",
    "time-scales",
    "hardware",
    "adaptation",
    "dale",
    "loop",
];

/// A directory that goes away with the test.
pub struct Bench {
    directory: TempDir,
}

impl Bench {
    pub fn new() -> Self {
        Self { directory: TempDir::new().expect("a temporary directory") }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub fn write(&self, name: &str, contents: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, contents).expect("a file in a temporary directory");
        path
    }

    /// The names of all files in it, hidden ones too, in order.
    pub fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.directory.path()).expect("a temporary directory");
        let name = |entry: std::io::Result<fs::DirEntry>| entry.expect("an entry").file_name();
        let mut names: Vec<String> =
            entries.map(|entry| name(entry).to_string_lossy().into_owned()).collect();
        names.sort_unstable();
        names
    }

    /// The tiny spec of a figure, on disk.
    pub fn tiny(&self, figure: &str) -> PathBuf {
        self.write(&format!("{figure}.toml"), tiny(figure).to_string())
    }

    /// `leukos reproduce FIGURE` with its tiny spec and these further arguments.
    pub fn reproduce(&self, figure: &str, arguments: &[&str]) -> Output {
        self.reproduce_with(&self.tiny(figure), figure, arguments)
    }

    /// The same with a spec of one's own.
    pub fn reproduce_with(&self, spec: &Path, figure: &str, arguments: &[&str]) -> Output {
        leukos()
            .args(["reproduce", figure, "--spec"])
            .arg(spec)
            .arg("--out")
            .arg(self.path("out"))
            .args(arguments)
            .output()
            .expect("the program starts")
    }

    pub fn results(&self) -> Value {
        read_json(&self.path("out/results.json"))
    }

    pub fn panels(&self) -> Value {
        read_json(&self.path("out/panels.json"))
    }
}

/// The results of all figures with their tiny specs, made once for all tests that only look.
pub fn everything() -> &'static Path {
    static MADE: OnceLock<PathBuf> = OnceLock::new();
    MADE.get_or_init(|| {
        let bench = Bench::new();
        let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("everything");
        let mut call = leukos();
        call.args(["reproduce", "--quiet", "--out"]).arg(&out);
        FIGURES.iter().for_each(|figure| {
            call.arg("--spec").arg(bench.tiny(figure));
        });
        let output = call.output().expect("the program starts");
        assert!(output.status.success(), "{}", stderr(&output));
        out
    })
}

pub fn leukos() -> Command {
    Command::new(env!("CARGO_BIN_EXE_leukos"))
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

pub fn read_json(path: &Path) -> Value {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).expect("JSON")
}

/// The spec that is built in, as a table.
pub fn embedded(figure: &str) -> Table {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("experiments/{figure}.toml"));
    fs::read_to_string(path).expect("a spec").parse().expect("TOML")
}

/// The same with every count at quick scale cut down.
pub fn tiny(figure: &str) -> Table {
    let mut spec = embedded(figure);
    spec.iter_mut().for_each(|(key, value)| shrink(key, value));
    spec
}

fn shrink(key: &str, value: &mut Toml) {
    let small = match key {
        "starts" | "iterations" => Some(2),
        "presentations" => Some(12),
        "stimuli" => Some(600),
        "horizon" => Some(120),
        _ => None,
    };
    match (key, value) {
        ("starts" | "presentations" | "stimuli" | "horizon" | "iterations", Toml::Table(counts)) => {
            counts.insert("quick".into(), Toml::Integer(small.unwrap_or(1)));
        }
        ("samples", value) => *value = Toml::Integer(30),
        ("generate", value) => *value = Toml::Integer(8),
        ("patch", Toml::Array(patch)) => {
            let row = patch[0] == Toml::Integer(1);
            *patch = if row { vec![1.into(), 5.into()] } else { vec![2.into(), 3.into()] };
        }
        ("interneurons", Toml::Table(numbers)) => {
            numbers.insert("quick".into(), Toml::Array([0, 1, 5, 6, 8, 12].map(Toml::Integer).to_vec()));
        }
        ("asymmetry_at", value) => *value = Toml::Array([1, 100, 100_000].map(Toml::Integer).to_vec()),
        (_, Toml::Table(table)) => table.iter_mut().for_each(|(key, value)| shrink(key, value)),
        _ => {}
    }
}

/// An array of numbers as the bytes of a `.npy` file.
pub struct Npy {
    pub dtype: &'static str,
    pub fortran_order: bool,
    pub shape: Vec<usize>,
    pub numbers: Vec<f64>,
}

impl Npy {
    /// A stack of covariances in double precision.
    pub fn stack(covariances: &[Vec<Vec<f64>>]) -> Self {
        let n = covariances.first().map_or(0, Vec::len);
        let numbers = covariances.iter().flatten().flatten().copied().collect();
        Self { dtype: "<f8", fortran_order: false, shape: vec![covariances.len(), n, n], numbers }
    }

    pub fn bytes(&self) -> Vec<u8> {
        let order = if self.fortran_order { "True" } else { "False" };
        let shape = self.shape.iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
        let header = format!("{{'descr': '{}', 'fortran_order': {order}, 'shape': ({shape}), }}", self.dtype);
        let padded = header.len().next_multiple_of(64) + 64 - 10;
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend(u16::try_from(padded).expect("a short header").to_le_bytes());
        bytes.extend(format!("{header:<width$}\n", width = padded - 1).bytes());
        bytes.extend(self.numbers.iter().flat_map(|&x| encode(self.dtype, x)));
        bytes
    }
}

#[allow(clippy::cast_possible_truncation)]
fn encode(dtype: &str, x: f64) -> Vec<u8> {
    match dtype {
        "<f8" => x.to_le_bytes().to_vec(),
        ">f8" => x.to_be_bytes().to_vec(),
        "<f4" => (x as f32).to_le_bytes().to_vec(),
        ">f4" => (x as f32).to_be_bytes().to_vec(),
        "<i2" => (x as i16).to_le_bytes().to_vec(),
        ">i2" => (x as i16).to_be_bytes().to_vec(),
        "<i4" => (x as i32).to_le_bytes().to_vec(),
        ">i4" => (x as i32).to_be_bytes().to_vec(),
        "<i8" => (x as i64).to_le_bytes().to_vec(),
        other => panic!("no test needs {other}"),
    }
}

/// Covariances of N neurons, each a little different and none of them white.
pub fn covariances(count: usize, n: usize) -> Vec<Vec<Vec<f64>>> {
    let entry = |c: usize, i: usize, j: usize| {
        let decay = 0.3 + 0.4 * c as f64 / count as f64;
        2.0 * decay.powi(i32::try_from(i.abs_diff(j)).expect("small")) + f64::from(u8::from(i == j)) * 0.2
    };
    let covariance = |c| (0..n).map(|i| (0..n).map(|j| entry(c, i, j)).collect()).collect();
    (0..count).map(covariance).collect()
}
