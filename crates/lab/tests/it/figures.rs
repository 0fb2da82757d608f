//! Tests the pictures: both formats for every figure, numbers that are numbers, text where it can be read, every panel.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use resvg::tiny_skia::Pixmap;
use resvg::usvg::{self, Group, Node, Options, Tree, roxmltree};

use crate::bench::{Bench, FIGURES, everything, leukos, stderr, tiny};

const STYLES: [&str; 2] = ["", "-print"];

/// The names of all pictures, without their endings.
fn pictures() -> Vec<String> {
    FIGURES.iter().flat_map(|figure| STYLES.map(|style| format!("{figure}{style}"))).collect()
}

fn svg(directory: &Path, name: &str) -> String {
    let path = directory.join("figures").join(format!("{name}.svg"));
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn png(directory: &Path, name: &str) -> Pixmap {
    let path = directory.join("figures").join(format!("{name}.png"));
    let bytes = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    Pixmap::decode_png(&bytes).expect("a PNG")
}

/// Reads a picture with the one font that it names first.
fn tree(svg: &str) -> Tree {
    let mut fonts = usvg::fontdb::Database::new();
    for face in [dejavu::sans::regular(), dejavu::sans::bold(), dejavu::sans::oblique()] {
        fonts.load_font_data(face.to_vec());
    }
    Tree::from_str(svg, &Options { fontdb: Arc::new(fonts), ..Options::default() }).expect("an SVG")
}

/// All texts with their boxes.
fn texts(group: &Group, found: &mut Vec<(String, usvg::Rect)>) {
    for node in group.children() {
        match node {
            Node::Group(group) => texts(group, found),
            Node::Text(text) => {
                let words = text.chunks().iter().map(usvg::TextChunk::text).collect();
                found.push((words, text.abs_bounding_box()));
            }
            _ => {}
        }
    }
}

/// The names of the parts of this kind.
fn parts(svg: &str, kind: &str) -> Vec<String> {
    let document = roxmltree::Document::parse(svg).expect("XML");
    let attribute = format!("data-{kind}");
    let names = document.descendants().filter_map(|node| node.attribute(attribute.as_str()));
    names.map(str::to_owned).collect()
}

#[test]
fn every_figure_is_drawn_in_both_formats_and_styles() {
    let directory = everything();
    for name in pictures() {
        let (svg, png) = (tree(&svg(directory, &name)), png(directory, &name));
        assert!((f64::from(svg.size().width()) * 2.5 - f64::from(png.width())).abs() <= 1.0, "{name}");
        assert!((f64::from(svg.size().height()) * 2.5 - f64::from(png.height())).abs() <= 1.0, "{name}");
        let inked = png.pixels().iter().filter(|pixel| pixel.red() < 200).count();
        assert!(inked > png.pixels().len() / 200, "{name} is empty");
        assert!(png.pixels().iter().all(|pixel| pixel.alpha() == 255), "{name} has holes");
    }
}

#[test]
fn every_number_in_a_picture_is_one() {
    let lengths =
        ["x", "y", "width", "height", "cx", "cy", "r", "font-size", "dy", "opacity", "stroke-width"];
    for name in pictures() {
        let text = svg(everything(), &name);
        let document = roxmltree::Document::parse(&text).expect("XML");
        for attribute in document.descendants().flat_map(|node| node.attributes()) {
            let numbers: Vec<&str> = match attribute.name() {
                "d" => attribute.value().split(|c: char| c == ' ' || c.is_ascii_uppercase()).collect(),
                "viewBox" | "stroke-dasharray" => attribute.value().split(' ').collect(),
                length if lengths.contains(&length) => vec![attribute.value()],
                _ => continue,
            };
            for number in numbers.into_iter().filter(|number| !number.is_empty()) {
                let value: f64 = number.parse().unwrap_or(f64::NAN);
                assert!(value.is_finite(), "{name}: {} = {number}", attribute.name());
            }
        }
    }
}

/// Texts that are cut off or lie on each other.
fn unreadable(svg: &str) -> Vec<String> {
    let tree = tree(svg);
    let mut found = Vec::new();
    texts(tree.root(), &mut found);
    let mut faults = Vec::new();
    for (i, (words, at)) in found.iter().enumerate() {
        let inside = at.left() >= 0.0
            && at.top() >= 0.0
            && at.right() <= tree.size().width()
            && at.bottom() <= tree.size().height();
        if !inside {
            faults.push(format!("{words} is cut off: {at:?}"));
        }
        for (others, other) in &found[..i] {
            let across = at.right().min(other.right()) - at.left().max(other.left());
            let down = at.bottom().min(other.bottom()) - at.top().max(other.top());
            // Boxes have the height of the tallest letters, so a little overlap is none.
            if across > 1.0 && down > 2.5 {
                faults.push(format!("{words} lies on {others}"));
            }
        }
    }
    faults
}

#[test]
fn text_is_inside_the_picture_and_does_not_overlap() {
    for name in pictures() {
        let svg = svg(everything(), &name);
        assert!(svg.matches("<text").count() > 5, "{name} has no text");
        assert!(unreadable(&svg).is_empty(), "{name}: {:?}", unreadable(&svg));
    }
    let text = |x: u32, words: &str| format!("<text x=\"{x}\" y=\"30\" font-size=\"10\">{words}</text>");
    let picture = |texts: String| {
        let head = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"100\" height=\"50\" font-family=\"DejaVu Sans\">";
        unreadable(&format!("{head}{texts}</svg>"))
    };
    assert!(picture(text(5, "one") + &text(60, "two")).is_empty());
    assert_eq!(picture(text(5, "longer") + &text(30, "two")).len(), 1, "overlap is seen");
    assert_eq!(picture(text(90, "longer")).len(), 1, "a cut-off text is seen");
}

#[test]
fn every_panel_and_series_is_there() {
    let expected: [(&str, &str, &[&str]); 11] = [
        ("geometry", "ABC", &["stimuli *s*", "cone", "reachable", "contexts", "path of the gains"]),
        ("synthetic", "ABCDE", &["context 3", "authors", "*W*_0", "*W*_T", "*V*", "*W*_T, text"]),
        (
            "natural",
            "ABCDEF",
            &["context 1", "training", "*W*_T, *g* fixed, test", "test", "K = 0", "*Q*(c)"],
        ),
        ("interneurons", "ABCDE", &["training", "test", "K = 0", "K = 1", "K = 5"]),
        ("one-dimensional", "AB", &["learned", "cosines", "principal components", "*W*_T"]),
        ("control", "ABCDEF", &["natural", "control"]),
        ("biological", "ABCD", &["authors", "printed", "text", "*W*_0", "*W*_T", "*V*"]),
        ("leak", "A", &["*V* orthogonal", "*V* oblique"]),
        ("ablation", "AB", &["both", "gains", "synapses", "synapses-fast"]),
        (
            "adaptation",
            "ABCD",
            &["learned", "cosines", "mean eigenbasis", "local frame", "random", "no circuit: Ledoit–Wolf"],
        ),
        ("dale", "ABCD", &["free and tied", "untied", "non-negative and tied", "Algorithm 3", "columns"]),
    ];
    for (figure, panels, series) in expected {
        for style in STYLES {
            let svg = svg(everything(), &format!("{figure}{style}"));
            assert_eq!(parts(&svg, "panel").concat(), panels, "{figure}{style}");
            let drawn = parts(&svg, "series");
            for name in series {
                assert!(
                    drawn.iter().any(|drawn| drawn == name),
                    "{figure}{style}: {name} is not in {drawn:?}"
                );
            }
        }
    }
}

#[test]
fn dashes_are_dashed_in_the_png() {
    let directory = everything();
    let text = svg(directory, "interneurons");
    let document = roxmltree::Document::parse(&text).expect("XML");
    let group = document.descendants().find(|node| node.attribute("data-series") == Some("K = 0"));
    let path = group.and_then(|group| group.first_element_child()).expect("a line at K = 0");
    assert!(path.attribute("stroke-dasharray").is_some());
    let ends: Vec<f32> = path
        .attribute("d")
        .expect("a path")
        .split(|c: char| c == ' ' || c.is_ascii_uppercase())
        .filter_map(|number| number.parse().ok())
        .collect();
    let png = png(directory, "interneurons");
    #[allow(clippy::cast_sign_loss)]
    let [left, y, right] = [ends[0], ends[1], ends[2]].map(|x| (x * 2.5) as u32);
    let dark = |x: u32| png.pixel(x, y).is_some_and(|pixel| pixel.red() < 128);
    let share = (left..right).filter(|&x| dark(x)).count() as f64 / f64::from(right - left);
    assert!((0.3..0.8).contains(&share), "{share} of the line is dark; a solid line has 1, none has 0");
}

#[test]
fn drawing_again_runs_nothing_and_gives_the_same_bytes() {
    let bench = Bench::new();
    bench.reproduce("leak", &["--quiet"]);
    let files =
        ["out/figures/leak.svg", "out/figures/leak-print.png", "out/report.html"].map(|f| bench.path(f));
    let first = files.clone().map(|file| fs::read(file).expect("a file"));
    fs::remove_dir_all(bench.path("out/figures")).expect("figures to remove");
    fs::remove_dir_all(bench.path("out/runs")).expect("runs to remove");
    let output = leukos().args(["reproduce", "--redraw", "--out"]).arg(bench.path("out")).output();
    let output = output.expect("the program starts");
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(first == files.map(|file| fs::read(file).expect("a file")));
    assert!(!bench.path("out/runs").exists());
}

#[test]
fn drawing_without_results_is_a_failure_that_names_the_file() {
    let bench = Bench::new();
    let output = leukos().args(["reproduce", "--redraw", "--out"]).arg(bench.path("nowhere")).output();
    let output = output.expect("the program starts");
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("results.json"), "{}", stderr(&output));
    let output = leukos().args(["reproduce", "leak", "--redraw"]).output().expect("the program starts");
    assert_eq!(output.status.code(), Some(2), "a figure and --redraw make no sense together");
}

#[test]
fn a_figure_whose_runs_all_diverged_is_drawn_and_says_so() {
    let bench = Bench::new();
    let mut spec = tiny("natural");
    let variants = spec["variants"].as_table_mut().expect("variants");
    variants.retain(|name, _| name == "printed");
    let spec = bench.write("natural.toml", spec.to_string().replace("quick = 12", "quick = 400"));
    let output = bench.reproduce_with(&spec, "natural", &["--quiet"]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(bench.results()["figures"]["natural"]["variants"]["printed"]["diverged"]["count"], 2);
    assert!(svg(&bench.path("out"), "natural").contains("no start that is shown came to an end"));
}
