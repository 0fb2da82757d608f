//! Tests the reader of covariance stacks: every layout it takes, and every file it refuses with its reason.

use leukos_lab::data::read_stack;

use crate::bench::{Bench, Npy, covariances};

fn refusal(bytes: &[u8]) -> String {
    let bench = Bench::new();
    let path = bench.write("bad.npy", bytes);
    let error = read_stack(&path).expect_err("a bad stack");
    let said = format!("{error:#}");
    assert!(said.contains("bad.npy"), "{said}");
    said
}

fn good() -> Npy {
    Npy::stack(&covariances(3, 4))
}

#[test]
fn all_layouts_give_the_same_contexts() {
    let bench = Bench::new();
    let expected = read_stack(&bench.write("a.npy", good().bytes())).expect("a stack").contexts;
    assert_eq!((expected.len(), expected.neurons()), (3, 4));
    let big = Npy { dtype: ">f8", ..good() };
    assert_eq!(read_stack(&bench.write("b.npy", big.bytes())).expect("a stack").contexts, expected);
    let given = covariances(3, 4);
    let numbers = (0..64).map(|at| given[at % 3][at / 3 % 4][(at / 12) % 4]).take(48).collect();
    let fortran = Npy { fortran_order: true, numbers, ..good() };
    assert_eq!(read_stack(&bench.write("c.npy", fortran.bytes())).expect("a stack").contexts, expected);
    for dtype in ["<f4", ">f4"] {
        let single = Npy { dtype, ..good() };
        let read = read_stack(&bench.write("d.npy", single.bytes())).expect("a stack").contexts;
        for (read, expected) in read.covariances().iter().zip(expected.covariances()) {
            let apart = read.as_slice().iter().zip(expected.as_slice()).map(|(a, b)| (a - b).abs());
            assert!(apart.fold(0.0, f64::max) < 1e-6);
        }
    }
}

#[test]
fn a_file_that_is_not_there_or_no_array_is_refused() {
    let missing = read_stack("nowhere.npy".as_ref()).expect_err("no file");
    assert!(format!("{missing:#}").contains("nowhere.npy"), "{missing:#}");
    assert!(refusal(b"").contains("header"));
    assert!(refusal(b"PK\x03\x04 not an array at all").contains("header"));
}

#[test]
fn a_wrong_shape_is_refused() {
    let flat = Npy { shape: vec![12, 4], ..good() };
    assert!(refusal(&flat.bytes()).contains("three dimensions (contexts, N, N), got shape [12, 4]"));
    let oblong = Npy { shape: vec![2, 4, 6], ..good() };
    assert!(refusal(&oblong.bytes()).contains("square"));
    for shape in [vec![0, 4, 4], vec![3, 0, 0]] {
        let empty = Npy { shape, numbers: Vec::new(), ..good() };
        assert!(refusal(&empty.bytes()).contains("at least one context"));
    }
}

#[test]
fn a_wrong_dtype_is_refused() {
    let integers = Npy { dtype: "<i8", ..good() };
    assert!(refusal(&integers.bytes()).contains("expected float32 or float64 numbers, got dtype '<i8'"));
}

#[test]
fn a_truncated_file_is_refused_before_anything_is_allocated() {
    let bytes = good().bytes();
    assert!(
        refusal(&bytes[..bytes.len() - 8]).contains("cut short: its header says 48 numbers, but it holds 47")
    );
    let boast = Npy { shape: vec![1_000_000, 1_000_000, 1_000_000], ..good() };
    assert!(refusal(&boast.bytes()).contains("cut short"));
}

#[test]
fn a_bad_covariance_is_named_with_its_reason() {
    let mut stack = covariances(3, 4);
    stack[1][2][3] = f64::NAN;
    assert!(
        refusal(&Npy::stack(&stack).bytes())
            .contains("covariances[1]: expected finite numbers, got NaN at (2, 3)")
    );

    let mut stack = covariances(3, 4);
    stack[2][0][1] += 0.1;
    let said = refusal(&Npy::stack(&stack).bytes());
    assert!(
        said.contains("covariances[2]") && said.contains("symmetric") && said.contains("(0, 1)"),
        "{said}"
    );

    let mut stack = covariances(3, 4);
    (stack[0][0][1], stack[0][1][0]) = (9.0, 9.0);
    let said = refusal(&Npy::stack(&stack).bytes());
    assert!(said.contains("covariances[0]") && said.contains("positive definite"), "{said}");

    let mut stack = covariances(3, 4);
    stack[0] = vec![vec![1.0; 4]; 4];
    let said = refusal(&Npy::stack(&stack).bytes());
    assert!(said.contains("covariances[0]") && said.contains("singular"), "{said}");
}
