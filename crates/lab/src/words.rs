//! Puts numbers into words.

/// Three digits, whatever the size.
pub fn short(x: f64) -> String {
    match x.abs() {
        size if size.is_infinite() => "infinite".into(),
        0.0 => "0".into(),
        size if (0.001..10_000.0).contains(&size) => {
            let decimals = [0.01, 0.1, 1.0, 10.0, 100.0].iter().filter(|&&power| size < power).count();
            format!("{x:.decimals$}")
        }
        _ => format!("{x:.2e}"),
    }
}

/// So many of a thing.
pub fn count(number: usize, thing: &str) -> String {
    if number == 1 { format!("1 {thing}") } else { format!("{number} {thing}s") }
}
