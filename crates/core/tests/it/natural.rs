//! Reads the covariances of natural images, where there are any to read.

use std::fs;

use leukos::Matrix;
use npyz::NpyFile;

/// The stack of natural covariances that `LEUKOS_CONTEXTS` names.
pub fn covariances() -> Option<Vec<Matrix>> {
    let Ok(path) = std::env::var("LEUKOS_CONTEXTS") else {
        println!("not checked: LEUKOS_CONTEXTS is not set");
        return None;
    };
    let bytes = fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let file = NpyFile::new(&bytes[..]).unwrap();
    let n = usize::try_from(file.shape()[1]).unwrap();
    let numbers: Vec<f64> = file.into_vec().unwrap();
    let stack = numbers.chunks_exact(n * n);
    Some(stack.map(|block| Matrix::from_columns(n, n, block.to_vec()).unwrap()).collect())
}
