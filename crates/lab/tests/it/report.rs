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

#[test]
fn the_report_needs_nothing_from_outside() {
    let text = report(everything());
    let page = Html::parse_document(&text);
    for element in ["script", "link", "img", "iframe", "object", "embed", "base"] {
        assert!(all(&page, element).is_empty(), "{element}");
    }
    let outside = text.replace("http://www.w3.org/2000/svg", "");
    assert!(!outside.contains("://"), "something points out of the file");
    assert!(!outside.contains("url("), "a style loads something");
    assert!(!outside.contains("@import"), "a style loads something");
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
    let path = bench.path("out/results.json");
    let mut results: Value = read_json(&path);
    let mut said = |both: f64| {
        let variants = &mut results["figures"]["ablation"]["variants"];
        for (variant, error) in [("both", both), ("gains", 0.5), ("synapses-fast", 0.4)] {
            variants[variant]["error_late"]["mean"] = error.into();
        }
        fs::write(&path, results.to_string()).expect("results to change");
        let output = leukos().args(["reproduce", "--redraw", "--out"]).arg(bench.path("out")).output();
        assert!(output.expect("the program starts").status.success());
        let page = Html::parse_document(&report(&bench.path("out")));
        (sentences(&page, "better or new"), sentences(&page, "does not"))
    };
    let (better, not) = said(0.1);
    assert!(better.contains("together reach 0.100") && better.contains("gains alone 0.500"), "{better}");
    assert!(not.contains("Nothing in this run"), "{not}");
    let (better, not) = said(0.45);
    assert!(better.contains("Nothing in this run"), "{better}");
    assert!(not.contains("(0.450") && not.contains("not clearly better than gains alone (0.500"), "{not}");
}

/// What Chromium writes to its console when it opens a file; `None` where there is no Chromium.
fn console(page: &Path) -> Option<Vec<String>> {
    let profile = tempfile::tempdir().expect("a temporary directory");
    let browsers = ["chromium", "chromium-browser", "google-chrome"];
    let output = browsers.iter().find_map(|browser| {
        let mut call = Command::new(browser);
        call.args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"]);
        call.args(["--disable-background-networking", "--disable-component-update", "--disable-sync"]);
        call.args(["--host-resolver-rules=MAP * ~NOTFOUND", "--enable-logging=stderr", "--dump-dom"]);
        call.arg(format!("--user-data-dir={}", profile.path().display()));
        call.arg(format!("file://{}", page.display())).output().ok()
    })?;
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(String::from_utf8_lossy(&output.stdout).contains("</html>"), "nothing was shown");
    Some(stderr(&output).lines().filter(|line| line.contains("CONSOLE")).map(str::to_owned).collect())
}

#[test]
fn the_report_opens_in_chromium_without_a_word_on_the_console() {
    let page = everything().join("report.html").canonicalize().expect("a path");
    let Some(said) = console(&page) else {
        eprintln!("not checked: there is no Chromium");
        return;
    };
    assert!(said.is_empty(), "{said:?}");
    let bench = Bench::new();
    let bad = bench.write("bad.html", "<!DOCTYPE html><title>x</title><script>nothing()</script>");
    assert!(console(&bad).is_some_and(|said| !said.is_empty()), "an error would have been seen");
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
