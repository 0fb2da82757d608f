//! Reads the golden cases: inputs and outputs of each algorithm, computed by the numpy program
//! `golden/generate.py`, which shares nothing with the library.

use std::collections::HashMap;
use std::fs;
use std::io::Read;

use npyz::NpyFile;
use zip::ZipArchive;

use crate::twin::Matrix;

/// Where the golden cases lie: where `LEUKOS_GOLDEN` says, so that a set drawn anew can be tried, or
/// in the repository.
fn folder() -> String {
    std::env::var("LEUKOS_GOLDEN")
        .unwrap_or_else(|_| concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden").to_owned())
}

/// The arrays of one `.npz` file, by name.
pub struct Npz {
    /// The file's name without its ending, for messages.
    case: String,
    arrays: HashMap<String, Array>,
}

/// One array in row-major order, whatever the order in its file.
struct Array {
    shape: Vec<usize>,
    values: Values,
}

/// The three element types that the golden cases use.
enum Values {
    Float(Vec<f64>),
    Integer(Vec<i64>),
    Boolean(Vec<bool>),
}

impl Npz {
    /// Opens a golden case by its name, without the ending.
    pub fn golden(case: &str) -> Npz {
        let path = format!("{}/{case}.npz", folder());
        let file = fs::File::open(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
        let mut archive = ZipArchive::new(file).unwrap_or_else(|error| panic!("{path}: {error}"));
        let count = archive.len();
        let read = |index| {
            let entry = archive.by_index(index).unwrap();
            let name = entry.name().unwrap().trim_end_matches(".npy").to_owned();
            (name, Array::read(NpyFile::new(entry).unwrap()))
        };
        let arrays = (0..count).map(read).collect();
        let case = case.to_owned();
        Npz { case, arrays }
    }

    /// The names of all golden cases, sorted.
    pub fn golden_cases() -> Vec<String> {
        let folder = folder();
        let mut cases: Vec<String> = fs::read_dir(&folder)
            .unwrap_or_else(|error| panic!("{folder}: {error}"))
            .filter_map(|entry| {
                let name = entry.unwrap().file_name().into_string().unwrap();
                name.strip_suffix(".npz").map(str::to_owned)
            })
            .collect();
        cases.sort();
        cases
    }

    /// Whether an array of this name is there.
    pub fn has(&self, name: &str) -> bool {
        self.arrays.contains_key(name)
    }

    /// A matrix of floats.
    pub fn matrix(&self, name: &str) -> Matrix {
        let (shape, values) = self.floats(name);
        let &[rows, columns] = shape else {
            panic!("{}: {name} is no matrix but {shape:?}", self.case);
        };
        nest(values, rows, columns)
    }

    /// A list of matrices of one size, from an array with three dimensions.
    pub fn stack(&self, name: &str) -> Vec<Matrix> {
        let (shape, values) = self.floats(name);
        let &[count, rows, columns] = shape else {
            panic!("{}: {name} is no stack but {shape:?}", self.case);
        };
        (0..count).map(|i| nest(&values[i * rows * columns..], rows, columns)).collect()
    }

    /// A vector of floats.
    pub fn vector(&self, name: &str) -> Vec<f64> {
        let (shape, values) = self.floats(name);
        assert_eq!(shape.len(), 1, "{}: {name} is no vector", self.case);
        values.to_vec()
    }

    /// One float.
    pub fn scalar(&self, name: &str) -> f64 {
        let (shape, values) = self.floats(name);
        assert!(shape.is_empty(), "{}: {name} is no scalar", self.case);
        values[0]
    }

    /// One boolean.
    pub fn flag(&self, name: &str) -> bool {
        match &self.array(name).values {
            Values::Boolean(values) if values.len() == 1 => values[0],
            _ => panic!("{}: {name} is no single boolean", self.case),
        }
    }

    /// Non-negative integers; a single number gives a list of one.
    pub fn index(&self, name: &str) -> Vec<usize> {
        match &self.array(name).values {
            Values::Integer(values) => values
                .iter()
                .map(|&value| usize::try_from(value).expect("an index is not negative"))
                .collect(),
            _ => panic!("{}: {name} does not hold integers", self.case),
        }
    }

    fn array(&self, name: &str) -> &Array {
        self.arrays.get(name).unwrap_or_else(|| panic!("{} has no array {name}", self.case))
    }

    fn floats(&self, name: &str) -> (&[usize], &[f64]) {
        let array = self.array(name);
        match &array.values {
            Values::Float(values) => (&array.shape, values),
            _ => panic!("{}: {name} does not hold floats", self.case),
        }
    }
}

impl Array {
    fn read<R: Read>(file: NpyFile<R>) -> Array {
        let shape = to_usize(file.shape());
        let places = row_major(&shape, &to_usize(file.strides()));
        let file = match file.try_data::<f64>() {
            Ok(data) => {
                let values = Values::Float(pick(data, &places));
                return Array { shape, values };
            }
            Err(file) => file,
        };
        let values = match file.try_data::<i64>() {
            Ok(data) => Values::Integer(pick(data, &places)),
            Err(file) => {
                let data = file.data::<bool>().expect("f64, i64 or bool");
                Values::Boolean(pick(data, &places))
            }
        };
        Array { shape, values }
    }
}

/// Reads all elements and returns those at the given places.
fn pick<T: Copy>(data: impl Iterator<Item = std::io::Result<T>>, places: &[usize]) -> Vec<T> {
    let stored: Vec<T> = data.collect::<Result<_, _>>().unwrap();
    places.iter().map(|&place| stored[place]).collect()
}

/// Where each element, taken row by row, is stored; the strides tell C order from Fortran order.
fn row_major(shape: &[usize], strides: &[usize]) -> Vec<usize> {
    let mut places = vec![0];
    for (&length, &stride) in shape.iter().zip(strides) {
        places = places.iter().flat_map(|place| (0..length).map(move |i| place + i * stride)).collect();
    }
    places
}

fn to_usize(numbers: &[u64]) -> Vec<usize> {
    numbers.iter().map(|&number| usize::try_from(number).unwrap()).collect()
}

/// Cuts the first rows × columns values into rows.
fn nest(values: &[f64], rows: usize, columns: usize) -> Matrix {
    (0..rows).map(|i| values[i * columns..(i + 1) * columns].to_vec()).collect()
}

#[test]
fn both_orders_read_alike() {
    use npyz::WriterBuilder;

    // [[1, 2, 3], [4, 5, 6]] as each order stores it.
    let orders = [
        (npyz::Order::C, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]),
        (npyz::Order::Fortran, [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]),
    ];
    for (order, stored) in orders {
        let mut bytes = Vec::new();
        let mut writer = npyz::WriteOptions::new()
            .default_dtype()
            .order(order)
            .shape(&[2, 3])
            .writer(&mut bytes)
            .begin_nd()
            .unwrap();
        writer.extend(stored).unwrap();
        writer.finish().unwrap();

        let array = Array::read(NpyFile::new(&bytes[..]).unwrap());
        assert_eq!(array.shape, [2, 3]);
        let Values::Float(values) = array.values else {
            panic!("floats were written");
        };
        assert_eq!(values, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    }
}
