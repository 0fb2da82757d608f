//! Reads and writes stacks of covariances in `.npy` files. Errors name the file, the context and the reason.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use leukos::Matrix;
use leukos::contexts::Contexts;
use npyz::{DType, NpyFile, NpyHeader, Order, TypeChar, WriteOptions, WriterBuilder};

/// Contexts from a file.
#[derive(Clone, Debug)]
pub struct Stack {
    /// The contexts.
    pub contexts: Contexts,
    /// Where they come from.
    pub path: PathBuf,
}

/// How far from symmetric a covariance may be, relative to its largest entry, before it is refused; what is left is
/// rounding of the program that wrote it, and is averaged away.
const ASYMMETRY: [f64; 2] = [1e-9, 1e-5];

/// Reads an array of shape (contexts, N, N) of float32 or float64 numbers, in either byte order and memory order.
///
/// # Errors
/// When the file cannot be read or is not such an array, or a covariance is not a finite, symmetric, positive
/// definite matrix. The error names the file, the context and the reason.
pub fn read_stack(path: &Path) -> Result<Stack> {
    let read = || -> Result<Contexts> {
        let bytes = std::fs::read(path).context("the file cannot be read")?;
        contexts_of(&bytes)
    };
    let contexts = read().with_context(|| format!("contexts {}", path.display()))?;
    Ok(Stack { contexts, path: path.to_owned() })
}

fn contexts_of(bytes: &[u8]) -> Result<Contexts> {
    let file = NpyFile::new(bytes).context("expected a .npy file, but its header cannot be read")?;
    let [count, n] = shape(file.header())?;
    let (order, single) = (file.header().order(), require_floats(file.header())?);
    let expected = count.checked_mul(n).and_then(|rows| rows.checked_mul(n));
    let numbers = numbers(file, expected.unwrap_or(usize::MAX), single)?;
    let entry = |c: usize, i: usize, j: usize| match order {
        Order::C => numbers[(c * n + i) * n + j],
        Order::Fortran => numbers[c + count * (i + n * j)],
    };
    let covariance = |c| symmetric(c, &Matrix::from_fn(n, n, |i, j| entry(c, i, j)), single);
    Ok(Contexts::new((0..count).map(covariance).collect::<Result<_>>()?)?)
}

/// Whether a file is a `.npy` array of three dimensions, and so a stack rather than a recording.
pub fn is_stack(path: &Path) -> bool {
    // Bytes that are read from a pipe cannot be read again.
    let file = if path.is_file() { std::fs::File::open(path).ok() } else { None };
    let header = file.and_then(|file| NpyHeader::from_reader(file).ok());
    header.is_some_and(|header| header.shape().len() == 3)
}

/// The number of contexts and N.
fn shape(header: &NpyHeader) -> Result<[usize; 2]> {
    let shape = header.shape();
    let &[count, rows, columns] = shape else {
        bail!("expected three dimensions (contexts, N, N), got shape {shape:?}");
    };
    ensure!(rows == columns, "expected square covariances (contexts, N, N), got shape {shape:?}");
    ensure!(count > 0 && rows > 0, "expected at least one context and one neuron, got shape {shape:?}");
    Ok([usize::try_from(count)?, usize::try_from(rows)?])
}

/// Whether the numbers are float32 (or else float64).
pub(super) fn require_floats(header: &NpyHeader) -> Result<bool> {
    if let DType::Plain(kind) = header.dtype()
        && kind.type_char() == TypeChar::Float
        && matches!(kind.size_field(), 4 | 8)
    {
        return Ok(kind.size_field() == 4);
    }
    bail!("expected float32 or float64 numbers, got dtype {}", header.dtype().descr())
}

pub(super) fn numbers(file: NpyFile<&[u8]>, expected: usize, single: bool) -> Result<Vec<f64>> {
    let size = if single { 4 } else { 8 };
    let (header, bytes) = (file.header().clone(), file.into_inner());
    // Before anything is allocated for what the header promises.
    ensure!(
        bytes.len() / size >= expected,
        "the file is cut short: its header says {expected} numbers, but it holds {}",
        bytes.len() / size
    );
    let file = NpyFile::with_header(header, bytes);
    let numbers = if single {
        file.into_vec::<f32>()?.into_iter().map(f64::from).collect()
    } else {
        file.into_vec::<f64>()?
    };
    Ok(numbers)
}

/// The covariance without the rounding that makes it asymmetric.
fn symmetric(c: usize, matrix: &Matrix, single: bool) -> Result<Matrix> {
    let n = matrix.rows();
    let scale = matrix.as_slice().iter().fold(0.0_f64, |most, x| most.max(x.abs()));
    for i in 0..n {
        for j in 0..n {
            let (here, there) = (matrix[(i, j)], matrix[(j, i)]);
            ensure!(here.is_finite(), "covariances[{c}]: expected finite numbers, got {here} at ({i}, {j})");
            ensure!(
                (here - there).abs() <= ASYMMETRY[usize::from(single)] * scale,
                "covariances[{c}]: expected a symmetric matrix, but entries ({i}, {j}) and ({j}, {i}) are {here} and {there}"
            );
        }
    }
    Ok(Matrix::from_fn(n, n, |i, j| 0.5 * (matrix[(i, j)] + matrix[(j, i)])))
}

/// The bytes of a `.npy` file of shape (contexts, N, N), float64, as [`read_stack`] reads it.
///
/// # Errors
/// When the header cannot be made.
pub fn stack_bytes(contexts: &Contexts) -> Result<Vec<u8>> {
    let (count, n) = (contexts.len() as u64, contexts.neurons() as u64);
    let mut bytes = Vec::new();
    let mut writer =
        WriteOptions::new().default_dtype().shape(&[count, n, n]).writer(&mut bytes).begin_nd()?;
    // Columns for rows: the covariances are symmetric.
    writer.extend(contexts.covariances().iter().flat_map(Matrix::as_slice))?;
    writer.finish()?;
    Ok(bytes)
}

/// The bytes of a `.npy` file of a matrix, float64.
///
/// # Errors
/// When the header cannot be made.
pub fn matrix_bytes(matrix: &Matrix) -> Result<Vec<u8>> {
    let (rows, columns) = (matrix.rows(), matrix.columns());
    let mut bytes = Vec::new();
    let mut writer = WriteOptions::new()
        .default_dtype()
        .shape(&[rows as u64, columns as u64])
        .writer(&mut bytes)
        .begin_nd()?;
    writer.extend((0..rows).flat_map(|i| (0..columns).map(move |j| matrix[(i, j)])))?;
    writer.finish()?;
    Ok(bytes)
}
