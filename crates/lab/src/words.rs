//! Puts numbers into words.

/// Three digits, whatever the size.
pub fn short(x: f64) -> String {
    match x.abs() {
        size if size.is_infinite() => "infinite".into(),
        0.0 => "0".into(),
        size if (0.001..10_000.0).contains(&size) => {
            let digits = (2.0 - size.log10().floor()).max(0.0);
            format!("{x:.*}", [0, 1, 2, 3, 4, 5][(digits as usize).min(5)])
        }
        _ => format!("{x:.2e}"),
    }
}

/// So many of a thing.
pub fn count(number: usize, thing: &str) -> String {
    if number == 1 { format!("1 {thing}") } else { format!("{number} {thing}s") }
}
