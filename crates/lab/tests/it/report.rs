//! Tests the report: valid HTML that needs nothing from outside, tied to the run's numbers, and opened in a browser.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use leukos_lab::findings::Findings;
use leukos_lab::references::References;
use scraper::{ElementRef, Html, Selector};
use serde_json::Value;

use crate::bench::{Bench, FIGURES, everything, leukos, read_json, stderr};

fn report(directory: &Path) -> String {
    fs::read_to_string(directory.join("report.html")).expect("a report")
}

fn all<'a>(page: &'a Html, selector: &str) -> Vec<ElementRef<'a>> {
    page.select(&Selector::parse(selector).expect("a selector")).collect()
}

fn words(element: &ElementRef<'_>) -> String {
    element.text().collect::<String>()
}

#[test]
fn the_report_is_valid_html() {
    let page = Html::parse_document(&report(everything()));
    assert!(page.errors.is_empty(), "{:?}", page.errors);
    assert!(!Html::parse_document("<!DOCTYPE html><p></b>").errors.is_empty(), "the parser sees errors");

    let ids: Vec<&str> = all(&page, "[id]").iter().filter_map(|element| element.attr("id")).collect();
    let known: BTreeSet<&str> = ids.iter().copied().collect();
    assert_eq!(known.len(), ids.len(), "an id is there twice");
    for link in all(&page, "a[href]") {
        let to = link.attr("href").expect("a link");
        assert!(to.strip_prefix('#').is_some_and(|id| known.contains(id)), "{to} leads nowhere");
    }
    for labelled in all(&page, "[aria-labelledby]") {
        assert!(labelled.attr("aria-labelledby").is_some_and(|id| known.contains(id)));
    }
}

#[test]
fn the_report_can_be_read_aloud() {
    let page = Html::parse_document(&report(everything()));
    assert_eq!(all(&page, "html[lang=en]").len(), 1);
    assert_eq!(all(&page, "h1").len(), 1);
    for landmark in ["header", "nav[aria-label]", "main", "footer"] {
        assert_eq!(all(&page, landmark).len(), 1, "{landmark}");
    }
    assert!(all(&page, "th").iter().all(|cell| matches!(cell.attr("scope"), Some("row" | "col"))));
    assert!(all(&page, "table").iter().all(|table| words(table).len() > 100));
    assert_eq!(all(&page, "table").len(), all(&page, "table > caption").len());
    let mut last = 1;
    for heading in all(&page, "h1, h2, h3, h4") {
        let level: u8 = heading.value().name()[1..].parse().expect("a level");
        assert!(level <= last + 1, "{} skips a level", words(&heading));
        last = level;
    }
    for figure in FIGURES {
        let picture = all(&page, &format!("section#{figure} figure svg[role=img]"));
        let [picture] = picture[..] else { panic!("{figure} has not one picture") };
        let shows = picture.attr("aria-label").unwrap_or("");
        assert!(shows.len() > 80, "{figure}: {shows}");
        assert!(!shows.contains('{') && !shows.contains("not measured"), "{figure}: {shows}");
        assert_eq!(all(&page, &format!("section#{figure} table")).len(), 1, "{figure}");
    }
}

/// The one script that the page may have.
const SCRIPT: &str = include_str!("../../src/report/explore.js");

#[test]
fn the_report_needs_nothing_from_outside() {
    let text = report(everything());
    let page = Html::parse_document(&text);
    for element in ["link", "img", "iframe", "object", "embed", "base"] {
        assert!(all(&page, element).is_empty(), "{element}");
    }
    let scripts: Vec<_> =
        all(&page, "script").iter().map(|script| (script.attr("type"), words(script))).collect();
    let [(Some("application/json"), data), (None, script)] = &scripts[..] else { panic!("{scripts:?}") };
    assert!(serde_json::from_str::<Value>(data).is_ok_and(|data| data.is_object()));
    assert_eq!(script, SCRIPT);
    assert!(all(&page, "script[src]").is_empty());
    let handlers =
        all(&page, "*").iter().any(|element| element.value().attrs().any(|(name, _)| name.starts_with("on")));
    assert!(!handlers, "an attribute is a script");
    let outside = text.replace("http://www.w3.org/2000/svg", "");
    assert!(!outside.contains("://"), "something points out of the file");
    assert!(!outside.contains("url("), "a style loads something");
    assert!(!outside.contains("@import"), "a style loads something");
    assert!(text.len() < 3_000_000, "{} bytes", text.len());
}

#[test]
fn the_report_allows_itself_its_own_style_and_script_alone() {
    let page = Html::parse_document(&report(everything()));
    let policies = all(&page, "meta[http-equiv=Content-Security-Policy]");
    let [policy] = policies[..] else { panic!("one policy is expected") };
    let policy: Vec<&str> = policy.attr("content").unwrap_or("").split("; ").collect();
    let expected = ["default-src", "img-src", "style-src", "script-src", "base-uri", "form-action"];
    assert_eq!(policy.iter().filter_map(|rule| rule.split(' ').next()).collect::<Vec<_>>(), expected);
    assert_eq!(policy[0], "default-src 'none'");
    for rule in &policy[2..4] {
        assert!(
            rule.contains(" 'sha256-") && rule.split(' ').count() == 2 && !rule.contains("unsafe"),
            "{rule}"
        );
    }
}

#[test]
fn without_a_script_the_page_shows_no_slider_that_does_nothing() {
    let page = Html::parse_document(&report(everything()));
    let explorers = all(&page, "[data-explore]");
    let names: Vec<&str> = explorers.iter().filter_map(|explorer| explorer.attr("data-explore")).collect();
    assert_eq!(names, ["step", "start", "k", "k-row"]);
    assert_eq!(all(&page, "[hidden] input[type=range]").len(), 4, "every slider is hidden at first");
    assert_eq!(all(&page, "label[for]").len(), 4, "every slider has a name");
    let dots = all(&page, "[data-explore=start] .strip [data-start]");
    assert!(dots.len() >= 10, "the strip of dots is there without a script: {}", dots.len());
}

#[test]
fn the_table_shows_the_numbers_of_the_run() {
    let (directory, page) = (everything(), Html::parse_document(&report(everything())));
    let results = read_json(&directory.join("results.json"));
    let statistic = &results["figures"]["ablation"]["variants"]["both"]["error_late"];
    let [mean, std] = ["mean", "std"].map(|key| statistic[key].as_f64().expect("a number"));
    let cells: Vec<String> =
        all(&page, "section#ablation tbody tr:first-child > *").iter().map(words).collect();
    assert_eq!(cells[0], "both, second half of a context");
    let shown: Vec<f64> = cells[4].split(" ± ").map(|number| number.parse().expect("a number")).collect();
    assert!((shown[0] - mean).abs() < 0.01 * mean, "{cells:?} {mean}");
    assert!((shown[1] - std).abs() < 0.01 * mean, "{cells:?} {std}");
    assert_eq!(cells[5], "2");
    let generated =
        all(&page, "section#natural tbody tr:first-child > *").iter().map(words).collect::<Vec<_>>();
    assert_eq!(generated[7], "other contexts", "generated contexts are not compared");
    let version = format!("{} (commit", env!("CARGO_PKG_VERSION"));
    assert!(words(&all(&page, "header")[0]).contains(&version));
}

/// The report with these results in place of those of the run.
fn redrawn(bench: &Bench, results: &Value) -> Html {
    let out = bench.path("out");
    fs::write(out.join("results.json"), results.to_string()).expect("results to change");
    let output = leukos().args(["reproduce", "--redraw", "--out"]).arg(&out).output();
    assert!(output.expect("the program starts").status.success());
    Html::parse_document(&report(&out))
}

#[test]
fn the_table_tells_failure_from_what_was_not_rerun() {
    let bench = Bench::new();
    bench.reproduce("natural", &["--quiet"]);
    let mut results: Value = read_json(&bench.path("out/results.json"));
    let variants = results["figures"]["natural"]["variants"].as_object_mut().expect("variants");
    variants.insert(
        "concurrent".into(),
        serde_json::json!({"seeds": 2, "diverged": {"count": 2, "first_step": 7}}),
    );
    variants.remove("text");
    let page = redrawn(&bench, &results);
    let rows = all(&page, "section#natural tbody tr");
    let here = |what: &str| {
        let row = rows.iter().map(words).find(|row| row.starts_with(what));
        row.unwrap_or_else(|| panic!("no row {what}"))
    };
    let [failed, not_rerun] = ["Algorithm 2 as it works", "Algorithm 2 in the text's order"].map(here);
    assert!(failed.contains("every start failed"), "{failed}");
    assert!(not_rerun.contains("not rerun"), "{not_rerun}");
}

/// The sentences under a heading of the summary.
fn sentences(page: &Html, heading: &str) -> String {
    let heading = all(page, "#summary h3").into_iter().find(|found| words(found).contains(heading));
    let list = heading.expect("a heading").next_siblings().find_map(ElementRef::wrap);
    words(&list.expect("a list"))
}

#[test]
fn the_summary_turns_with_the_numbers() {
    let bench = Bench::new();
    bench.reproduce("ablation", &["--quiet"]);
    let mut results: Value = read_json(&bench.path("out/results.json"));
    let mut said = |both: f64| {
        let variants = &mut results["figures"]["ablation"]["variants"];
        for (variant, error) in [("both", both), ("gains", 0.5), ("synapses-fast", 0.4)] {
            variants[variant]["error_late"]["mean"] = error.into();
            // So small that chance could turn no sentence around.
            variants[variant]["error_late"]["standard_error"] = 1e-3.into();
        }
        let page = redrawn(&bench, &results);
        (sentences(&page, "better or new"), sentences(&page, "does not"))
    };
    let (better, not) = said(0.1);
    assert!(better.contains("together reach 0.100") && better.contains("gains alone 0.500"), "{better}");
    assert!(not.contains("Nothing in this run"), "{not}");
    let (better, not) = said(0.45);
    assert!(better.contains("Nothing in this run"), "{better}");
    assert!(not.contains("(0.450") && not.contains("not clearly better than gains alone (0.500"), "{not}");
}

/// What Chromium makes of a page: the document in the end, and what was written to the console; `None` where there is no
/// Chromium.
fn browse(address: &str) -> Option<(String, Vec<String>)> {
    let profile = tempfile::tempdir().expect("a temporary directory");
    let browsers = ["chromium", "chromium-browser", "google-chrome"];
    let output = browsers.iter().find_map(|browser| {
        let mut call = Command::new(browser);
        call.args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"]);
        call.args(["--disable-background-networking", "--disable-component-update", "--disable-sync"]);
        call.args(["--host-resolver-rules=MAP * ~NOTFOUND", "--enable-logging=stderr", "--dump-dom"]);
        call.args(["--allow-file-access-from-files", "--window-size=1400,900"]);
        call.arg(format!("--user-data-dir={}", profile.path().display()));
        call.arg(address).output().ok()
    })?;
    assert!(output.status.success(), "{}", stderr(&output));
    let document = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(document.contains("</html>"), "nothing was shown");
    Some((
        document,
        stderr(&output).lines().filter(|line| line.contains("CONSOLE")).map(str::to_owned).collect(),
    ))
}

/// The address of a file, with what comes after it.
fn address(page: &Path, part: &str) -> String {
    format!("file://{}{part}", page.canonicalize().expect("a path").display())
}

/// Says that a test has not been made.
fn not_checked() {
    eprintln!("not checked: there is no Chromium");
}

#[test]
fn the_report_opens_in_chromium_without_a_word_on_the_console() {
    let page = everything().join("report.html");
    let Some((_, said)) = browse(&address(&page, "")) else { return not_checked() };
    assert!(said.is_empty(), "{said:?}");
    let bench = Bench::new();
    let bad = bench.write("bad.html", "<!DOCTYPE html><title>x</title><script>nothing()</script>");
    assert!(
        browse(&address(&bad, "")).is_some_and(|(_, said)| !said.is_empty()),
        "an error would have been seen"
    );
}

#[test]
fn an_address_sets_a_slider() {
    let page = everything().join("report.html");
    let shown = |part: &str, name: &str| {
        let (document, said) = browse(&address(&page, part))?;
        assert!(said.is_empty(), "{said:?}");
        let page = Html::parse_document(&document);
        assert!(all(&page, "[hidden] input[type=range]").is_empty(), "sliders are shown");
        let explorer = format!("[data-explore={name}]");
        let output = words(&all(&page, &format!("{explorer} output"))[0]);
        Some((output, all(&page, &format!("{explorer} svg .column")).len()))
    };
    let Some((output, columns)) = shown("#k=5", "k") else { return not_checked() };
    assert!(output.starts_with("K = 5: training error") && columns == 5, "{output}, {columns} columns");
    let (output, columns) = shown("#k=8", "k").expect("Chromium is there");
    assert!(output.starts_with("K = 8:") && columns == 8, "{output}, {columns} columns");
    let (output, _) = shown("#start=2", "start").expect("Chromium is there");
    assert!(output.starts_with("start 2: test ") && output.contains("W0"), "{output}");
    let (output, _) = shown("#step=7", "step").expect("Chromium is there");
    assert!(output.starts_with("7 of ") && output.contains("whitening error"), "{output}");
}

#[test]
fn a_changed_script_does_not_run() {
    let bench = Bench::new();
    let changed = report(everything()).replace("\"use strict\";\n//", "\"use strict\";\n //");
    let page = bench.write("changed.html", changed);
    let Some((document, said)) = browse(&address(&page, "#k=5")) else { return not_checked() };
    assert!(said.iter().any(|line| line.contains("Content Security Policy")), "{said:?}");
    assert!(!document.contains(">K = 5: training"), "the policy has stopped it");
}

/// What a script finds in the report when it is shown in a frame of this width.
fn found_in_frame(width: u32, script: &str) -> Option<Value> {
    let bench = Bench::new();
    bench.write("report.html", report(everything()));
    let page = bench.write(
        "frame.html",
        format!(
            "<!DOCTYPE html><title>x</title><iframe src=\"report.html\" width=\"{width}\" height=\"800\"></iframe>\
             <script>onload = () => {{ const page = document.querySelector(\"iframe\").contentDocument;\n\
             const found = (() => {{ {script} }})();\n\
             document.body.dataset.found = JSON.stringify(found); }};</script>"
        ),
    );
    let (document, said) = browse(&address(&page, ""))?;
    assert!(said.is_empty(), "{said:?}");
    let document = Html::parse_document(&document);
    let found = all(&document, "body")[0].attr("data-found").expect("the script came to an end").to_owned();
    Some(serde_json::from_str(&found).expect("JSON"))
}

#[test]
fn moving_a_slider_and_pointing_at_a_dot_change_the_picture() {
    let script = r#"
        const explorer = (name) => page.querySelector(`[data-explore="${name}"]`);
        const look = (name) => explorer(name).querySelector("svg.shown").innerHTML;
        const seen = {};
        for (const name of ["k", "k-row", "start", "step"]) {
            const [before, slider] = [look(name), explorer(name).querySelector("input")];
            slider.value = slider.value === "0" ? 1 : 0;
            slider.dispatchEvent(new Event("input"));
            const words = explorer(name).querySelector("output").textContent;
            seen[name] = look(name) !== before && slider.getAttribute("aria-valuetext").startsWith(words.slice(0, 3));
        }
        const dot = explorer("start").querySelector("[data-start='0']");
        dot.dispatchEvent(new PointerEvent("pointerenter"));
        seen.dot = explorer("start").querySelector("output").textContent.startsWith("start 1:")
            && dot.classList.contains("on");
        seen.ring = page.querySelectorAll(".here-on-path").length === 2;
        return seen;"#;
    let Some(found) = found_in_frame(1280, script) else { return not_checked() };
    for name in ["k", "k-row", "start", "step", "dot", "ring"] {
        assert_eq!(found[name], true, "{name}: {found}");
    }
}

#[test]
fn a_narrow_screen_shows_what_counts_without_scrolling() {
    let script = r#"
        const right = (element) => element.getBoundingClientRect().right;
        const cells = [...page.querySelectorAll("tbody th, .here, .authors, .verdict")];
        const first = page.querySelector("tbody tr");
        const top = (name) => first.querySelector(name).getBoundingClientRect().top;
        return {
            page: page.documentElement.scrollWidth, cells: Math.max(...cells.map(right)), count: cells.length,
            ordered: top("th") < top(".here") && top(".here") < top(".reading"),
        };"#;
    let Some(found) = found_in_frame(390, script) else { return not_checked() };
    assert!(found["count"].as_u64().is_some_and(|count| count > 100), "{found}");
    assert!(found["page"].as_f64().is_some_and(|width| width <= 390.0), "the page scrolls sideways: {found}");
    assert!(
        found["cells"].as_f64().is_some_and(|right| right <= 390.0),
        "a number is off the screen: {found}"
    );
    assert_eq!(found["ordered"], true, "numbers come first: {found}");
    let found = found_in_frame(1280, script).expect("Chromium is there");
    assert_eq!(found["ordered"], false, "a wide screen has a table: {found}");
}

#[test]
fn every_number_that_the_references_name_is_in_the_results() {
    let (findings, references) = (Findings::read(everything()), References::embedded().expect("references"));
    let findings = findings.expect("results");
    for figure in findings.figures() {
        let reference = references.of(figure).expect("every figure has its words");
        let rows = reference.rows.iter().map(|row| row.number.as_str());
        let claims =
            reference.claims.iter().flat_map(|claim| [claim.smaller.as_str(), claim.larger.as_str()]);
        let sentences = reference.claims.iter().flat_map(|claim| [&claim.holds, &claim.fails]);
        let filled =
            sentences.flat_map(|text| text.split('{').skip(1).filter_map(|part| part.split('}').next()));
        for name in rows.chain(claims).chain(filled) {
            // A tiny run has other K, fewer presentations and no divergence.
            let tiny = ["@", "curve.", "asymmetry.", "first_step"].iter().any(|part| name.contains(part));
            assert!(tiny || findings.measured(figure, name).is_some(), "{}: no {name}", figure.name());
        }
    }
}
