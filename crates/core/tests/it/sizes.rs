//! Asks for sizes that no memory holds: errors say so before anything is allocated.

use std::ops::ControlFlow;

use leukos::contexts::{Fields, Synthetic, stream};
use leukos::{
    Circuit, ContextMoments, Error, Matrix, Moments, Online, Solver, Synapses, WhitenerSettings,
    WhitenerTraining, align, least_squares_gains, models, size,
};

/// The error's message, word for word.
fn assert_says<T>(result: leukos::Result<T>, message: &str) {
    assert_eq!(result.err().unwrap().to_string(), message);
}

fn assert_no_memory<T>(result: leukos::Result<T>, name: &str) {
    let error = result.err().unwrap();
    assert!(matches!(&error, Error::OutOfMemory { argument, .. } if argument == name), "{error}");
}

#[test]
fn bounds_are_said() {
    let most = "channels: expected at most 16384, got 16385";
    assert!(size::require_square("channels", 16384).is_ok());
    assert_says(size::require_moments(16385, 1), most);
    assert_says(ContextMoments::new(16385).update("a", &vec![0.5; 16385]), most);
    let matrix = "synapses: expected a matrix of at most 268435456 numbers, got 16384 x 16385";
    assert_says(size::require_circuit(16384, 16385), matrix);
    assert!(size::require_matrix("synapses", usize::MAX, 2).is_err());
    let narrow = Matrix::<f64>::zeros(1, 20_000);
    assert_says(
        least_squares_gains(&narrow, &Matrix::identity(1), 1.0),
        "interneurons: expected at most 16384, got 20000",
    );
    assert_says(
        align(&narrow, &narrow),
        "columns: expected a matrix of at most 268435456 numbers, got 20000 x 20000",
    );
}

#[test]
fn a_fit_of_too_many_interneurons_is_refused() {
    let moments = vec![Moments::of_covariance(&Matrix::identity(3), 10).unwrap()];
    for interneurons in [100_000, usize::MAX] {
        let training = WhitenerTraining {
            moments: moments.clone(),
            interneurons: Some(interneurons),
            ..WhitenerTraining::default()
        };
        let fitted = training
            .fit::<f64>(WhitenerSettings::default(), &mut stream(0, 0), |_| ControlFlow::Continue(()));
        assert_says(fitted, &format!("interneurons: expected at most 16384, got {interneurons}"));
    }
}

#[test]
fn memory_that_is_not_there_is_an_error() {
    assert!(size::require_memory("numbers", 1 << 20).is_ok());
    assert_no_memory(size::require_memory("numbers", usize::MAX), "numbers");
    let error = size::require_memory("numbers", usize::MAX / 8).err().unwrap().to_string();
    assert_eq!(error, "numbers: expected 18446744073710 MB of memory that are free, got less");
    let many = Synthetic { contexts: 1 << 50, ..Synthetic::published() };
    assert_no_memory(many.draw(&mut stream(0, 0)), "neurons");
    let many = Fields { contexts: usize::MAX, ..Fields::two_dimensional() };
    assert_no_memory(many.draw(&mut stream(0, 0)), "neurons");
    let circuit = Circuit::new(Synapses::tied(Matrix::identity(2)).unwrap(), vec![0.0, 0.0], 1.0).unwrap();
    let mut rules = models::multi_timescale(0.1, 0.01).rules;
    rules.batch = usize::MAX;
    assert_no_memory(Online::new(circuit, rules, &Solver::Direct), "batch");
}

#[test]
fn drawing_stops_when_told_to() {
    let mut asked = 0;
    let mut thrice = || {
        asked += 1;
        if asked < 3 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    };
    let fields = Fields { contexts: 1 << 20, ..Fields::two_dimensional() };
    assert_eq!(fields.draw_watched(&mut stream(0, 0), &mut thrice), Ok(None));
    assert_eq!(asked, 3);
    let stop = || ControlFlow::Break(());
    assert_eq!(Synthetic::released().draw_watched(&mut stream(0, 0), stop), Ok(None));
    let watched = Synthetic::released().draw_watched(&mut stream(0, 0), || ControlFlow::Continue(()));
    assert_eq!(watched.unwrap(), Some(Synthetic::released().draw(&mut stream(0, 0)).unwrap()));
}
