//! Sets text: a small markup for symbols, real minus signs and exponents, and the width of a text.
//!
//! `*W*` is bold, `~x~` italic, `_0` or `_{rn}` low, `^2` or `^{−3}` high; a backslash takes the meaning from the next
//! letter.

use std::sync::OnceLock;

use skrifa::instance::{LocationRef, Size};
use skrifa::{FontRef, MetadataProvider};

/// The size of small letters beside the text they belong to.
const SMALL: f64 = 0.72;

/// Where letters stand on the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// On it.
    Base,
    /// Below it.
    Low,
    /// Above it.
    High,
}

/// A stretch of letters that look alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    pub text: String,
    pub bold: bool,
    pub italic: bool,
    pub level: Level,
}

impl Run {
    /// The size of its letters in a text of this size.
    pub fn size(&self, size: f64) -> f64 {
        if self.level == Level::Base { size } else { SMALL * size }
    }

    /// How far its letters stand below the line.
    pub fn drop(&self, size: f64) -> f64 {
        match self.level {
            Level::Base => 0.0,
            Level::Low => 0.22 * size,
            Level::High => -0.38 * size,
        }
    }
}

/// Takes markup apart.
pub fn runs(markup: &str) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    let (mut bold, mut italic) = (false, false);
    let mut letters = markup.chars();
    while let Some(letter) = letters.next() {
        let (level, text) = match letter {
            '*' => {
                bold = !bold;
                continue;
            }
            '~' => {
                italic = !italic;
                continue;
            }
            '_' => (Level::Low, script(&mut letters)),
            '^' => (Level::High, script(&mut letters)),
            '\\' => (Level::Base, letters.next().map(String::from).unwrap_or_default()),
            plain => (Level::Base, plain.to_string()),
        };
        match runs.last_mut() {
            Some(run) if (run.bold, run.italic, run.level) == (bold, italic, level) => run.text += &text,
            _ => runs.push(Run { text, bold, italic, level }),
        }
    }
    runs
}

/// Escapes text that is not markup, such as the name of a file.
pub fn literal(text: &str) -> String {
    let mut markup = String::with_capacity(text.len());
    for letter in text.chars() {
        if matches!(letter, '*' | '~' | '_' | '^' | '\\') {
            markup.push('\\');
        }
        markup.push(letter);
    }
    markup
}

/// One letter, or all up to the closing brace.
fn script(letters: &mut std::str::Chars<'_>) -> String {
    match letters.next() {
        Some('{') => letters.take_while(|&letter| letter != '}').collect(),
        letter => letter.into_iter().collect(),
    }
}

/// How wide marked-up text is in the font that comes with the program.
pub fn width(markup: &str, size: f64) -> f64 {
    runs(markup).iter().map(|run| run_width(run) * run.size(size)).sum()
}

/// As much of a plain text as fits, with an ellipsis in place of its middle.
pub fn shortened(text: &str, size: f64, room: f64) -> String {
    let letters: Vec<char> = text.chars().collect();
    let with = |kept: usize| -> String {
        let (head, tail) = (kept.div_ceil(2), kept / 2);
        letters[..head].iter().chain(&['…']).chain(&letters[letters.len() - tail..]).collect()
    };
    if width(&literal(text), size) <= room {
        return text.to_owned();
    }
    (0..letters.len()).rev().map(with).find(|text| width(&literal(text), size) <= room).unwrap_or_default()
}

fn run_width(run: &Run) -> f64 {
    static FONTS: OnceLock<[Option<FontRef<'static>>; 4]> = OnceLock::new();
    let fonts = FONTS.get_or_init(|| FACES.map(|face| FontRef::new(face()).ok()));
    let Some(font) = &fonts[usize::from(run.bold) + 2 * usize::from(run.italic)] else { return 0.0 };
    let (letters, metrics) = (font.charmap(), font.glyph_metrics(Size::new(1.0), LocationRef::default()));
    let advance = |letter| letters.map(letter).and_then(|glyph| metrics.advance_width(glyph));
    run.text.chars().filter_map(advance).map(f64::from).sum()
}

/// The fonts that come with the program: regular, bold, oblique, bold oblique.
pub const FACES: [fn() -> &'static [u8]; 4] =
    [dejavu::sans::regular, dejavu::sans::bold, dejavu::sans::oblique, dejavu::sans::bold_oblique];

/// A number with a real minus sign and no more digits than it needs.
pub fn number(x: f64) -> String {
    let rounded = format!("{x:.6}");
    let short = rounded.trim_end_matches('0').trim_end_matches('.');
    if short == "-0" { "0".to_owned() } else { short.replace('-', "−") }
}

/// A number with two digits, and a power of ten where it is very large or small.
pub fn compact(x: f64) -> String {
    let size = x.abs();
    if x == 0.0 || (0.01..10_000.0).contains(&size) {
        let decimals = [1.0, 10.0].iter().filter(|&&power| size < power).count();
        return number(format!("{x:.decimals$}").parse().unwrap_or(x));
    }
    let exponent = size.log10().floor();
    let mantissa = x / 10_f64.powf(exponent);
    format!("{}·{}", number((10.0 * mantissa).round() / 10.0), power_of_ten(exponent as i32))
}

/// A power of ten.
pub fn power_of_ten(exponent: i32) -> String {
    match exponent {
        0 => "1".to_owned(),
        1 => "10".to_owned(),
        _ => format!("10^{{{}}}", exponent.to_string().replace('-', "−")),
    }
}
