//! Converts numpy arrays to the types of the core, and back.

use std::fmt::Display;
use std::ops::Range;

use leukos::{Matrix, Real};
use numpy::ndarray::Dimension;
use numpy::{
    Element, Ix1, Ix2, Ix3, IxDyn, PyArray, PyArrayDescrMethods, PyArrayDyn, PyArrayMethods, PyReadonlyArray,
    PyUntypedArray, PyUntypedArrayMethods,
};
use pyo3::exceptions::{PyMemoryError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PySlice, PyTuple};

use crate::circuit::{Circuit, Precise};
use crate::errors::{exception_in, require_memory};

/// The numbers that arrays and circuits are made of.
pub trait Number: Real + Element {
    /// A circuit of such numbers, as Python sees it.
    fn circuit(circuit: leukos::Circuit<Self>) -> Circuit;
}

impl Number for f32 {
    fn circuit(circuit: leukos::Circuit<Self>) -> Circuit {
        Circuit(Precise::Single(circuit))
    }
}

impl Number for f64 {
    fn circuit(circuit: leukos::Circuit<Self>) -> Circuit {
        Circuit(Precise::Double(circuit))
    }
}

/// An argument that is not what was expected.
pub fn refuse(argument: &str, expected: impl Display, found: impl Display) -> PyErr {
    PyValueError::new_err(format!("{argument}: expected {expected}, got {found}"))
}

/// Whether the numbers of an array are `float32`; all others are taken as `float64`.
pub fn is_single(array: &Bound<'_, PyUntypedArray>) -> bool {
    array.dtype().is_equiv_to(&numpy::dtype::<f32>(array.py()))
}

/// Anything that numpy can convert to an array of real numbers.
pub fn array<'py>(argument: &str, object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyUntypedArray>> {
    let array = match object.cast::<PyUntypedArray>() {
        Ok(array) => {
            refuse_masked(argument, object)?;
            array.clone()
        }
        Err(_) => read(argument, object)?,
    };
    if matches!(array.dtype().kind(), b'f' | b'i' | b'u' | b'b') {
        return Ok(array);
    }
    Err(refuse(argument, "an array of real numbers", format!("one of {}", array.dtype())))
}

/// Masked numbers are hidden on purpose, but are still in the array; so masked arrays are refused.
fn refuse_masked(argument: &str, object: &Bound<'_, PyAny>) -> PyResult<()> {
    static MASKED: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    if object.get_type().is(object.py().get_type::<PyUntypedArray>()) {
        return Ok(());
    }
    if object.is_instance(MASKED.import(object.py(), "numpy.ma", "MaskedArray")?)? {
        let expected = "an array without a mask (such as its .filled(numpy.nan))";
        return Err(refuse(argument, expected, "a masked array"));
    }
    Ok(())
}

fn read<'py>(argument: &str, object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyUntypedArray>> {
    static ASARRAY: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let unreadable = |_| {
        let found =
            object.get_type().name().map_or_else(|_| "something else".into(), |name| name.to_string());
        refuse(argument, "an array of real numbers", format!("{found} that numpy cannot convert to one"))
    };
    let array = ASARRAY.import(object.py(), "numpy", "asarray")?.call1((object,)).map_err(unreadable)?;
    Ok(array.cast_into::<PyUntypedArray>()?)
}

/// The same numbers in C order and in this precision; the array itself where it is like that.
fn contiguous<'py, T: Number>(array: &Bound<'py, PyAny>) -> PyResult<PyReadonlyArray<'py, T, IxDyn>> {
    static ASCONTIGUOUS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let py = array.py();
    let own = ASCONTIGUOUS.import(py, "numpy", "require")?.call1((array, numpy::dtype::<T>(py), "CA"))?;
    Ok(own.cast_into::<PyArrayDyn<T>>()?.try_readonly()?)
}

/// Its shape as numpy writes it.
pub fn shape(array: &Bound<'_, PyUntypedArray>) -> String {
    PyTuple::new(array.py(), array.shape()).map_or_else(|_| String::new(), |shape| shape.to_string())
}

/// Numbers in a row.
pub fn vector<T: Number>(argument: &str, object: &Bound<'_, PyAny>) -> PyResult<Vec<T>> {
    let array = array(argument, object)?;
    if array.ndim() != 1 {
        return Err(refuse(argument, "an array of shape (K,)", format!("shape {}", shape(&array))));
    }
    let values = contiguous::<T>(&array)?;
    // Checked only now, because numpy's converted copy takes memory too.
    require_memory(argument, array.len())?;
    let values = values.as_slice()?.to_vec();
    match values.iter().position(|x| !x.is_finite()) {
        None => Ok(values),
        Some(i) => Err(refuse(argument, "finite numbers", format!("{} at position {i}", values[i]))),
    }
}

/// A matrix of finite numbers.
pub fn matrix<T: Number>(argument: &str, object: &Bound<'_, PyAny>) -> PyResult<Matrix<T>> {
    let array = array(argument, object)?;
    let &[rows, columns] = array.shape() else {
        return Err(refuse(argument, "a matrix", format!("shape {}", shape(&array))));
    };
    let values = contiguous::<T>(&array)?;
    require_memory(argument, array.len())?;
    matrix_from(argument, values.as_slice()?, (rows, columns))
}

fn matrix_from<T: Number>(
    argument: &str,
    values: &[T],
    (rows, columns): (usize, usize),
) -> PyResult<Matrix<T>> {
    match values.iter().position(|x| !x.is_finite()) {
        None => Ok(Matrix::from_fn(rows, columns, |i, j| values[i * columns + j])),
        Some(place) => {
            let (i, j) = (place / columns, place % columns);
            Err(refuse(argument, "finite numbers", format!("{} at ({i}, {j})", values[place])))
        }
    }
}

/// Matrices of finite numbers, one after another.
pub fn stack<T: Number>(argument: &str, object: &Bound<'_, PyAny>) -> PyResult<Vec<Matrix<T>>> {
    let array = array(argument, object)?;
    let &[count, rows, columns] = array.shape() else {
        let found = format!("shape {}", shape(&array));
        return Err(refuse(argument, "an array of shape (contexts, N, N)", found));
    };
    // An empty array can claim any size in its other dimensions.
    if array.is_empty() {
        let found = format!("shape {}", shape(&array));
        return Err(refuse(argument, "at least one context of one channel", found));
    }
    let values = contiguous::<T>(&array)?;
    require_memory(argument, array.len().saturating_add(count.saturating_mul(8)))?;
    let values = values.as_slice()?;
    let one = |c: usize| {
        let own = &values[c * rows * columns..(c + 1) * rows * columns];
        matrix_from(&format!("{argument}[{c}]"), own, (rows, columns))
    };
    (0..count).map(one).collect()
}

/// Whole numbers from 0 below a limit, such as the contexts of presentations.
pub fn indices(argument: &str, object: &Bound<'_, PyAny>, limit: usize) -> PyResult<Vec<usize>> {
    let array = array(argument, object)?;
    if array.ndim() != 1 || !(matches!(array.dtype().kind(), b'i' | b'u') || array.is_empty()) {
        let found = format!("{} of shape {}", array.dtype(), shape(&array));
        return Err(refuse(argument, "a row of whole numbers", found));
    }
    let values = contiguous::<f64>(&array)?;
    require_memory(argument, array.len())?;
    let fits = |&x: &f64| (0.0..limit as f64).contains(&x);
    match values.as_slice()?.iter().find(|x| !fits(x)) {
        #[allow(clippy::cast_sign_loss)] // Checked.
        None => Ok(values.as_slice()?.iter().map(|&x| x as usize).collect()),
        Some(other) => Err(refuse(argument, format!("numbers from 0 to {}", limit as f64 - 1.0), other)),
    }
}

/// Rows of numbers that are looked at block by block: an array in C order and of the right precision is not copied,
/// and any other is converted block by block.
pub struct NumpyRows<'py, T: Number> {
    argument: &'static str,
    array: Bound<'py, PyUntypedArray>,
    whole: Option<PyReadonlyArray<'py, T, IxDyn>>,
    /// How many there are.
    pub count: usize,
    /// How many numbers each has.
    pub width: usize,
}

impl<'py, T: Number> NumpyRows<'py, T> {
    /// The rows of an array of shape (T, `width`).
    pub fn new(argument: &'static str, object: &Bound<'py, PyAny>, width: usize) -> PyResult<Self> {
        let array = array(argument, object)?;
        match *array.shape() {
            [count, columns] if columns == width => Self::of(argument, array, (count, width)),
            _ => {
                let found = format!("shape {}", shape(&array));
                Err(refuse(argument, format!("an array of shape (T, {width})"), found))
            }
        }
    }

    /// The same, where one stimulus may come as a vector.
    pub fn or_one(argument: &'static str, object: &Bound<'py, PyAny>, width: usize) -> PyResult<Self> {
        let array = array(argument, object)?;
        match *array.shape() {
            [columns] if columns == width => Self::of(argument, array, (1, width)),
            _ => Self::new(argument, &array, width),
        }
    }

    fn of(
        argument: &'static str,
        array: Bound<'py, PyUntypedArray>,
        (count, width): (usize, usize),
    ) -> PyResult<Self> {
        let ready = array.is_c_contiguous() && array.is_aligned();
        let whole = match array.cast::<PyArrayDyn<T>>() {
            Ok(own) if ready => Some(own.try_readonly()?),
            _ => None,
        };
        Ok(Self { argument, array, whole, count, width })
    }

    /// Looks at some of them.
    pub fn with<R>(&self, rows: Range<usize>, look: impl FnOnce(&[T]) -> R) -> PyResult<R> {
        if let Some(whole) = &self.whole {
            return Ok(look(&whole.as_slice()?[rows.start * self.width..rows.end * self.width]));
        }
        let all = rows == (0..self.count);
        let own = if all { self.array.clone().into_any() } else { self.slice(&rows)? };
        Ok(look(contiguous::<T>(&own)?.as_slice()?))
    }

    fn slice(&self, rows: &Range<usize>) -> PyResult<Bound<'py, PyAny>> {
        let [from, to] = [rows.start, rows.end].map(usize::cast_signed);
        self.array.get_item(PySlice::new(self.array.py(), from, to, 1))
    }

    /// Room for as many rows, of the same shape as the array.
    pub fn room(&self) -> PyResult<Bound<'py, PyArrayDyn<T>>> {
        zeros(self.array.py(), self.argument, self.array.shape())
    }

    /// An error of the core about some of them, with the row and the column.
    pub fn in_place(&self, error: leukos::Error, first: usize) -> PyErr {
        use leukos::Error::{BadSample, NotFinite};
        let (index, value, expected) = match error {
            NotFinite { index, value, .. } => (index, value, "finite numbers"),
            BadSample { index, value } => (index, value, "usable numbers (or another choice of bad_samples)"),
            other => return exception_in::<T>(self.array.py(), other),
        };
        let (row, column) = (first + index / self.width, index % self.width);
        refuse(self.argument, expected, format!("{value} in row {row}, column {column}"))
    }
}

/// An array of zeros. numpy raises an exception if there is no memory for it; its Rust bindings would panic.
pub fn zeros<'py, T: Number, D: Dimension>(
    py: Python<'py>,
    argument: &str,
    shape: &[usize],
) -> PyResult<Bound<'py, PyArray<T, D>>> {
    static ZEROS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let bytes = shape.iter().try_fold(size_of::<T>(), |bytes, &length| bytes.checked_mul(length));
    if bytes.is_none_or(|bytes| bytes > isize::MAX.cast_unsigned()) {
        let shape = PyTuple::new(py, shape)?;
        let problem =
            format!("{argument}: expected an array that fits into memory, got one of shape {shape}");
        return Err(PyMemoryError::new_err(problem));
    }
    let arguments = (PyTuple::new(py, shape)?, numpy::dtype::<T>(py));
    Ok(ZEROS.import(py, "numpy", "zeros")?.call1(arguments)?.cast_into::<PyArray<T, D>>()?)
}

/// An empty vector with room for so many times so many numbers.
pub fn room<T>(argument: &str, times: usize, each: usize) -> PyResult<Vec<T>> {
    let numbers = times.saturating_mul(each);
    require_memory(argument, numbers)?;
    let mut room = Vec::new();
    let none =
        |_| PyMemoryError::new_err(format!("{argument}: expected memory for {numbers} numbers, got less"));
    room.try_reserve_exact(numbers).map_err(none)?;
    Ok(room)
}

/// A matrix as a numpy array in C order.
pub fn from_matrix<'py, T: Number>(py: Python<'py>, matrix: &Matrix<T>) -> PyResult<Bound<'py, PyAny>> {
    let array = zeros::<T, Ix2>(py, "matrix", &[matrix.rows(), matrix.columns()])?;
    let mut slots = array.try_readwrite()?;
    slots.as_slice_mut()?.iter_mut().zip(by_rows(matrix)).for_each(|(slot, x)| *slot = x);
    Ok(array.into_any())
}

/// Matrices of one size as a numpy array, one after another.
pub fn from_stack<'py>(py: Python<'py>, matrices: &[Matrix]) -> PyResult<Bound<'py, PyAny>> {
    let n = matrices.first().map_or(0, Matrix::rows);
    let array = zeros::<f64, Ix3>(py, "contexts", &[matrices.len(), n, n])?;
    let mut slots = array.try_readwrite()?;
    let numbers = matrices.iter().flat_map(by_rows);
    slots.as_slice_mut()?.iter_mut().zip(numbers).for_each(|(slot, x)| *slot = x);
    Ok(array.into_any())
}

/// The entries of a matrix, row after row.
pub fn by_rows<T: Number>(matrix: &Matrix<T>) -> impl Iterator<Item = T> {
    let columns = matrix.columns();
    (0..matrix.rows()).flat_map(move |i| (0..columns).map(move |j| matrix[(i, j)]))
}

/// Numbers as a numpy array of this shape, which is known to fit.
pub fn shaped<T: Number, const D: usize>(
    py: Python<'_>,
    values: Vec<T>,
    shape: [usize; D],
) -> Bound<'_, PyArray<T, numpy::ndarray::Dim<[usize; D]>>>
where
    numpy::ndarray::Dim<[usize; D]>: Dimension,
    [usize; D]: numpy::ndarray::IntoDimension<Dim = numpy::ndarray::Dim<[usize; D]>>,
{
    let array = numpy::ndarray::Array::from_shape_vec(shape, values);
    let array = array.unwrap_or_else(|_| numpy::ndarray::Array::zeros(shape));
    PyArray::from_owned_array(py, array)
}

/// Numbers as a numpy array.
pub fn from_slice<'py, T: Number>(py: Python<'py>, values: &[T]) -> PyResult<Bound<'py, PyAny>> {
    let array = zeros::<T, Ix1>(py, "vector", &[values.len()])?;
    array.try_readwrite()?.as_slice_mut()?.copy_from_slice(values);
    Ok(array.into_any())
}
