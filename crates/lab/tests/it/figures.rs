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
fn every_picture_has_one_width_and_says_how_large_it_is_on_paper() {
    for name in pictures() {
        assert_eq!(tree(&svg(everything(), &name)).size().width(), 720.0, "{name}");
        let file = fs::File::open(everything().join("figures").join(format!("{name}.png"))).expect("a PNG");
        let reader = png::Decoder::new(std::io::BufReader::new(file)).read_info().expect("a PNG");
        let size = reader.info().pixel_dims.expect("a size on paper");
        let inches = f64::from(reader.info().width) / f64::from(size.xppu) / 0.0254;
        assert!((inches - 7.5).abs() < 0.001, "{name} is {inches} inches wide");
        assert!(size.unit == png::Unit::Meter && size.xppu == size.yppu, "{name}");
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
    let expected: [(&str, &str, &[&str]); 14] = [
        ("geometry", "ABC", &["stimuli *s*", "cone", "reachable", "contexts", "path of the gains"]),
        ("synthetic", "ABCDE", &["context 3", "authors", "*W*_0", "*W*_T", "*V*", "*W*_T, text"]),
        (
            "natural",
            "ABCDEF",
            &["context 1", "training", "*W*_T, *g* fixed, test", "test", "K = 0", "*Q*(c)"],
        ),
        ("interneurons", "ABCDE", &["training", "test", "K = 0", "K = 1", "K = 5"]),
        ("one-dimensional", "AB", &["learned", "cosines", "principal components", "*W*_T"]),
        ("control", "ABCDEFGHI", &["natural", "control"]),
        ("biological", "ABCD", &["text", "printed", "authors", "*W*_0", "*W*_T", "*V*"]),
        ("leak", "A", &["*V* orthogonal", "*V* oblique"]),
        ("ablation", "AB", &["both", "gains", "synapses", "synapses-fast"]),
        (
            "time-scales",
            "ABCDEF",
            &["both, unit columns", "both, as printed", "gains alone", "best fixed filter"],
        ),
        ("hardware", "ABCD", &["nearest", "stochastic", "unlimited", "Algorithm 3", "Algorithm 1, 8 bits"]),
        ("loop", "ABCD", &["fixed rate", "chosen rate", "exact", "smallest", "20"]),
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
    let dark = |x: u32| png.pixel(x, y).is_some_and(|pixel| pixel.blue() < 128);
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
    assert!(svg(&bench.path("out"), "natural").contains("no start that is shown here finished"));
}

/// A rectangle: left, top, right, bottom.
type Bounds = [f64; 4];

fn number(node: roxmltree::Node<'_, '_>, name: &str) -> f64 {
    node.attribute(name).and_then(|value| value.parse().ok()).unwrap_or(0.0)
}

fn bounds(rectangle: roxmltree::Node<'_, '_>) -> Bounds {
    let [x, y, width, height] = ["x", "y", "width", "height"].map(|name| number(rectangle, name));
    [x, y, x + width, y + height]
}

/// Points along the lines and edges of a shape, closer to each other than any legend is large.
fn outline(shape: roxmltree::Node<'_, '_>) -> Vec<[f64; 2]> {
    let corners: Vec<[f64; 2]> = match shape.tag_name().name() {
        "path" => {
            let path = shape.attribute("d").unwrap_or("");
            let numbers =
                path.split(|c: char| c == ' ' || c.is_ascii_uppercase()).filter(|part| !part.is_empty());
            let numbers: Vec<f64> = numbers.map(|number| number.parse().expect("a number")).collect();
            numbers.chunks_exact(2).map(|pair| [pair[0], pair[1]]).collect()
        }
        "circle" => vec![[number(shape, "cx"), number(shape, "cy")]],
        "rect" => {
            let [left, top, right, bottom] = bounds(shape);
            vec![[left, top], [right, top], [right, bottom], [left, bottom], [left, top]]
        }
        _ => Vec::new(),
    };
    let mut points = corners.clone();
    for ends in corners.windows(2) {
        let steps = ((ends[1][0] - ends[0][0]).hypot(ends[1][1] - ends[0][1]) / 2.0).ceil();
        let at = |step: f64, i: usize| ends[0][i] + step / steps * (ends[1][i] - ends[0][i]);
        let between = (1..).map(f64::from).take_while(|&step| step < steps);
        points.extend(between.map(|step| [at(step, 0), at(step, 1)]));
    }
    points
}

/// The series of each panel that its legend lies on.
fn hidden(svg: &str) -> Vec<String> {
    let document = roxmltree::Document::parse(svg).expect("XML");
    let mut hidden = Vec::new();
    for panel in document.descendants().filter(|node| node.has_attribute("data-panel")) {
        let legends = panel.descendants().filter(|node| node.has_attribute("data-legend"));
        let boxes = legends.filter_map(|legend| legend.first_element_child());
        let boxes: Vec<Bounds> = boxes.filter(|first| first.has_tag_name("rect")).map(bounds).collect();
        for series in panel.descendants().filter(|node| node.has_attribute("data-series")) {
            let points: Vec<[f64; 2]> = series.descendants().flat_map(outline).collect();
            let within = |[left, top, right, bottom]: Bounds| {
                points.iter().any(|&[x, y]| (left..=right).contains(&x) && (top..=bottom).contains(&y))
            };
            if boxes.iter().copied().any(within) {
                hidden.push(series.attribute("data-series").unwrap_or("").to_owned());
            }
        }
    }
    hidden
}

#[test]
fn no_legend_lies_on_a_curve() {
    for name in pictures() {
        let hidden = hidden(&svg(everything(), &name));
        assert!(hidden.is_empty(), "{name}: a legend lies on {hidden:?}");
    }
    let picture = |line: &str| {
        let legend = "<g data-legend=\"\"><rect x=\"10\" y=\"10\" width=\"30\" height=\"20\"/></g>";
        hidden(&format!(
            "<svg><g data-panel=\"A\"><g data-series=\"s\"><path d=\"{line}\"/></g>{legend}</g></svg>"
        ))
    };
    assert_eq!(picture("M0 20L60 22"), ["s"], "a line with both its ends outside is seen");
    assert!(picture("M0 40L60 42").is_empty());
}

#[test]
fn colours_are_those_of_the_paper_s_words() {
    let (red, blue, green) = ("#d55e00", "#0072b2", "#009e73");
    let (purple, orange, black) = ("#b0568a", "#e69f00", "#222222");
    let expected = [
        ("synthetic", "A", "context 0", vec![orange, green, black]),
        ("synthetic", "C", "*W*_T", vec![red]),
        ("synthetic", "C", "*W*_0", vec![blue]),
        ("natural", "C", "*W*_T, *g* adapts, test", vec![red]),
        ("natural", "C", "*W*_T, *g* adapts, training", vec![blue]),
        ("natural", "C", "*W*_T, *g* fixed, test", vec![green]),
        ("natural", "C", "*W*_0, *g* adapts, test", vec![purple]),
        ("natural", "E", "K = 0", vec![red]),
        ("natural", "F", "*Q*(c)", vec![green]),
        ("natural", "F", "*W*_T", vec![blue]),
        ("geometry", "B", "cone", vec![orange]),
        ("geometry", "B", "reachable", vec![blue]),
        ("geometry", "C", "reachable", vec![blue]),
        ("geometry", "C", "contexts", vec![purple]),
        ("geometry", "C", "path of the gains", vec!["#ffffff", "#f0e442"]),
        ("biological", "C", "*W*_T", vec![red]),
        ("biological", "C", "*W*_0", vec![blue]),
        ("biological", "C", "*V*", vec![black]),
    ];
    for (figure, panel, series, colours) in expected {
        let text = svg(everything(), figure);
        let document = roxmltree::Document::parse(&text).expect("XML");
        let is = |node: &roxmltree::Node, kind: &str, name: &str| node.attribute(kind) == Some(name);
        let panel = document.descendants().find(|node| is(node, "data-panel", panel)).expect("a panel");
        let series = panel.descendants().find(|node| is(node, "data-series", series)).expect("a series");
        let used: Vec<&str> = series
            .descendants()
            .flat_map(|node| ["fill", "stroke"].map(|name| node.attribute(name)))
            .flatten()
            .collect();
        for colour in colours {
            assert!(used.contains(&colour), "{figure} {series:?}: {colour} is not in {used:?}");
        }
    }
}

/// Where each object of a PDF begins, as its table says; the table itself is checked on the way.
fn objects(pdf: &[u8]) -> Vec<usize> {
    assert!(pdf.starts_with(b"%PDF-1.7"));
    let text = String::from_utf8_lossy(pdf);
    let tail = text.rsplit_once("startxref").expect("a place of the table").1;
    let table: usize = tail.lines().nth(1).expect("a place").trim().parse().expect("a number");
    let bytes = &pdf[table..];
    assert!(bytes.starts_with(b"xref"), "the table is where it is said to be");
    let lines = String::from_utf8_lossy(bytes);
    let entries = lines.lines().skip(2).map(str::trim_end).take_while(|line| line.len() == 18);
    let used = entries.filter(|line| line.ends_with('n'));
    used.map(|line| line[..10].parse().expect("a place")).collect()
}

#[test]
fn every_figure_has_a_pdf_as_large_as_its_picture() {
    for figure in FIGURES {
        let path = everything().join(format!("figures/{figure}.pdf"));
        let pdf = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let places = objects(&pdf);
        assert!(places.len() >= 5, "{figure}");
        for (i, &place) in places.iter().enumerate() {
            assert!(
                pdf[place..].starts_with(format!("{} 0 obj", i + 1).as_bytes()),
                "{figure}: object {}",
                i + 1
            );
        }
        let size = tree(&svg(everything(), &format!("{figure}-print"))).size();
        let expected = format!("/MediaBox [0 0 540 {}]", size.height() * 0.75);
        assert!(String::from_utf8_lossy(&pdf).contains(&expected), "{figure}: no {expected}");
    }
}

/// What poppler makes of a PDF, at the scale of our PNGs; `None` where there is no poppler.
fn rendered(pdf: &Path) -> Option<Vec<u8>> {
    let output = std::process::Command::new("pdftoppm").args(["-r", "240"]).arg(pdf).output().ok()?;
    assert!(output.status.success(), "{}", stderr(&output));
    Some(output.stdout)
}

#[test]
fn a_pdf_looks_like_its_picture() {
    for figure in FIGURES {
        let Some(ppm) = rendered(&everything().join(format!("figures/{figure}.pdf"))) else {
            eprintln!("not checked: there is no pdftoppm");
            return;
        };
        let png = png(everything(), &format!("{figure}-print"));
        let header = format!("P6\n{} {}\n255\n", png.width(), png.height());
        let pixels = ppm.strip_prefix(header.as_bytes()).expect("a picture of the same size");
        let expected = png.pixels().iter().flat_map(|pixel| [pixel.red(), pixel.green(), pixel.blue()]);
        let apart = pixels.iter().zip(expected).map(|(&a, b)| u64::from(a.abs_diff(b))).sum::<u64>();
        let apart = apart as f64 / pixels.len() as f64;
        let ink = pixels.iter().map(|&x| f64::from(255 - x)).sum::<f64>() / pixels.len() as f64;
        // Edges are smoothed differently; a picture that is missing or upside down differs by about twice its ink.
        assert!(apart < 0.25 * ink, "{figure}: {apart} from its PNG, with {ink} of ink");
    }
}

#[test]
fn fig_4_without_the_sweep_has_no_hole_and_says_what_is_missing() {
    let bench = Bench::new();
    let output = bench.reproduce("natural", &["--quiet"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let alone = svg(&bench.path("out"), "natural");
    assert_eq!(parts(&alone, "panel").concat(), "ABCDF");
    assert!(alone.contains("E, the error against the number of interneurons"));
    let left_of_f = |svg: &str| {
        let mut found = Vec::new();
        texts(tree(svg).root(), &mut found);
        let letter = found.iter().find(|(words, _)| words == "F").expect("the letter of a panel");
        letter.1.left()
    };
    let whole = left_of_f(&svg(everything(), "natural"));
    assert!(left_of_f(&alone) < whole - 50.0, "F has taken the room of E");
}
