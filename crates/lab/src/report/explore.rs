//! Adds sliders to figures: over starts, over the number of interneurons, and along the path of the gains.
//!
//! The page is complete without it. The sliders are hidden until the script (`explore.js`) runs; the script draws from
//! data in the page.

use std::fmt::Write;

use anyhow::Result;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::page::prose;
use crate::experiment::Figure;
use crate::figures::interneurons::Sweep;
use crate::figures::{Starts, by_frequency};
use crate::findings::{Findings, short};

/// The one script of the page.
pub const SCRIPT: &str = include_str!("explore.js");

/// Something with a slider.
struct Explorer {
    /// How it is called in the page and in addresses: `report.html#k=5`.
    name: &'static str,
    heading: &'static str,
    /// What there is to see.
    words: String,
    /// What the slider counts.
    counts: &'static str,
    /// A picture that is there without the script too.
    picture: Option<String>,
    /// What the script draws.
    data: Value,
    /// How many positions the slider has, and where it stands at first.
    positions: [usize; 2],
}

/// All explorers of a page: what to put under each figure, and the data of all.
#[derive(Default)]
pub struct Explorers {
    html: Vec<(Figure, String)>,
    data: Map<String, Value>,
}

impl Explorers {
    /// Those that a run has the series for.
    ///
    /// # Errors
    /// When a figure's series are not as expected.
    pub fn of(findings: &Findings) -> Result<Self> {
        let mut all = Self::default();
        for figure in findings.figures() {
            let explorers = match figure {
                Figure::Geometry => path(findings)?.into_iter().collect(),
                Figure::Natural => starts(findings)?.into_iter().collect(),
                Figure::Interneurons => sweeps(findings)?,
                _ => Vec::new(),
            };
            for explorer in explorers {
                all.html.push((figure, explorer.html()));
                all.data.insert(explorer.name.to_owned(), explorer.data);
            }
        }
        Ok(all)
    }

    /// What stands under a figure.
    pub fn under(&self, figure: Figure) -> String {
        self.html.iter().filter(|(of, _)| *of == figure).map(|(_, html)| html.as_str()).collect()
    }

    /// The data and the script that draws from them; nothing where there is nothing to move.
    pub fn script(&self) -> String {
        if self.data.is_empty() {
            return String::new();
        }
        // A character that could end the HTML element is escaped as JSON allows.
        let data = Value::Object(self.data.clone()).to_string().replace('<', "\\u003c");
        format!(
            "<script type=\"application/json\" id=\"explore-data\">{data}</script>\n<script>{SCRIPT}</script>\n"
        )
    }
}

impl Explorer {
    fn html(&self) -> String {
        let Self { name, heading, counts, positions: [count, first], .. } = self;
        let [whole, control] = if self.picture.is_some() { ["", " hidden"] } else { [" hidden", ""] };
        let mut html = format!(
            "<div class=\"explore\" id=\"explore-{name}\" data-explore=\"{name}\"{whole}>\n<h3>{heading}</h3>\n<p>{}</p>\n",
            prose(&self.words)
        );
        if let Some(picture) = &self.picture {
            let _ = writeln!(
                html,
                "<div class=\"wide strip\" role=\"region\" tabindex=\"0\" aria-label=\"{heading}\">\n{picture}</div>"
            );
        }
        let _ = write!(
            html,
            "<div class=\"control\"{control}>\n<label for=\"{name}-slider\">{counts}</label>\n\
             <input id=\"{name}-slider\" type=\"range\" min=\"0\" max=\"{}\" step=\"1\" value=\"{first}\">\n\
             <output id=\"{name}-words\" for=\"{name}-slider\"></output>\n\
             <svg class=\"shown\" role=\"img\" aria-labelledby=\"{name}-words\"></svg>\n</div>\n</div>\n",
            count.saturating_sub(1)
        );
        html
    }
}

/// The largest size of any entry, and a sentence about what colours mean.
fn colours<'a>(columns: impl Iterator<Item = &'a Vec<f64>>) -> (f64, String) {
    let limit = columns.flatten().fold(f64::MIN_POSITIVE, |largest: f64, x| largest.max(x.abs()));
    let most = short(limit, 1.0);
    (limit, format!("Colours run from −{most} (blue) over 0 (white) to {most} (red)."))
}

/// Columns with three decimals, which is finer than colours show.
fn rounded(columns: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let round = |column: &Vec<f64>| column.iter().map(|x| (1000.0 * x).round() / 1000.0).collect();
    columns.iter().map(round).collect()
}

/// Fig. 4: the synapses and the numbers of each start.
fn starts(findings: &Findings) -> Result<Option<Explorer>> {
    let Some(starts) = Starts::read(findings)? else { return Ok(None) };
    let each: Vec<_> = starts.each().collect();
    let (limit, colours) = colours(each.iter().flat_map(|start| &start.columns));
    let frames: Vec<Value> = each
        .iter()
        .map(|start| {
            let numbers = start.errors.iter().map(|(name, error)| format!("{name} {}", short(*error, *error)));
            let words = format!("start {}: {}", start.number + 1, numbers.collect::<Vec<_>>().join(", "));
            json!({ "at": start.number + 1, "mark": start.number, "words": words, "columns": rounded(&start.columns) })
        })
        .collect();
    Ok(Some(Explorer {
        name: "start",
        heading: "Start by start",
        words: format!(
            "Each dot is one start from random W_0, in the colours of C and F. Point at one, or move the slider, to see its \
             W_T, and to compare starts. {colours}"
        ),
        counts: "start",
        picture: Some(starts.draw()),
        positions: [frames.len(), 0],
        data: json!({ "kind": "filters", "patch": starts.patch(), "limit": limit, "frames": frames }),
    }))
}

/// The columns of W_T at each number of interneurons, for both sizes of patches.
fn sweeps(findings: &Findings) -> Result<Vec<Explorer>> {
    let both = [
        ("k", "authors", "A", "K by K: 5 × 5 pixels"),
        ("k-row", "authors-1d", "B", "K by K: rows of pixels"),
    ];
    let mut explorers = Vec::new();
    for (name, variant, panel, heading) in both {
        if let Some(sweep) = Sweep::read(findings, variant)? {
            explorers.extend(sweep_explorer(findings, (name, variant, panel, heading), &sweep));
        }
    }
    Ok(explorers)
}

fn sweep_explorer(
    findings: &Findings,
    (name, variant, panel, heading): (&'static str, &str, &str, &'static str),
    sweep: &Sweep,
) -> Option<Explorer> {
    let error = |which: &str, k: usize| {
        let error = findings.measured(Figure::Interneurons, &format!("{variant}.{which}@{k}"));
        error.map_or("not measured".to_owned(), |error| error.text())
    };
    let frame = |(k, synapses): (usize, &Vec<Vec<f64>>)| {
        let words = format!("K = {k}: training error {}, test error {}", error("train", k), error("test", k));
        let columns = rounded(&by_frequency(synapses, sweep.patch()));
        json!({ "at": k, "words": words, "columns": columns })
    };
    let learned = || sweep.learned().filter(|(k, _)| *k > 0);
    let frames: Vec<Value> = learned().map(frame).collect();
    let (limit, colours) = colours(learned().flat_map(|(_, synapses)| synapses));
    let is_row = sweep.patch()[0] == 1;
    let n = sweep.patch().iter().product();
    let first = learned().position(|(k, _)| k >= n).unwrap_or(0);
    let shapes = if is_row { "curves with one scale.".to_owned() } else { format!("filters. {colours}") };
    (!frames.is_empty()).then(|| Explorer {
        name,
        heading,
        words: format!(
            "The columns of W_T that K interneurons learn, from low to high frequency, as {shapes} Move the slider to see \
             which are added up to K = N = {n}, and how they change beyond; a ring in {panel} marks K."
        ),
        counts: "K",
        picture: None,
        positions: [frames.len(), first],
        data: json!({
            "kind": if is_row { "curves" } else { "filters" }, "patch": sweep.patch(), "limit": limit, "frames": frames,
            "dots": format!("#interneurons [data-panel=\"{panel}\"] [data-series] circle"),
        }),
    })
}

#[derive(Deserialize)]
struct Geometry {
    shown: Option<Shown>,
}

#[derive(Deserialize)]
struct Shown {
    contexts: Vec<[[f64; 2]; 2]>,
    initial: Situation,
    learned: Situation,
}

#[derive(Deserialize)]
struct Situation {
    switches: Vec<Switch>,
}

#[derive(Deserialize)]
struct Switch {
    to: usize,
    path: Vec<[f64; 3]>,
}

/// Fig. 2: the responses while the gains adapt, with initial and with learned synapses.
fn path(findings: &Findings) -> Result<Option<Explorer>> {
    let Some(variant) = findings.variant_or_first(Figure::Geometry, "synthetic") else { return Ok(None) };
    let Some(shown) = findings.series::<Geometry>(Figure::Geometry, variant)?.shown else { return Ok(None) };
    // The switch whose path the picture has.
    let [Some(initial), Some(learned)] = [&shown.initial, &shown.learned].map(|side| side.switches.get(1))
    else {
        return Ok(None);
    };
    let Some([[a, b], [_, c]]) = shown.contexts.get(learned.to) else { return Ok(None) };
    let side = |name: &str, panel: &str, switch: &Switch| {
        let picture = format!("#geometry [data-panel=\"{panel}\"] [data-series=\"path of the gains\"]");
        json!({ "name": name, "path": switch.path, "picture": picture })
    };
    Ok(Some(Explorer {
        name: "step",
        heading: "Along the path of the gains",
        words: "The covariance of the responses while the gains adapt to the yellow context of B and C, right after the \
                switch at the left end of the slider and adapted at its right. Where gains alone can whiten the context, \
                the ellipse becomes the unit circle (green)."
            .to_owned(),
        counts: "along the path",
        picture: None,
        positions: [learned.path.len().min(initial.path.len()), 0],
        data: json!({
            "kind": "path", "context": [a, b, c], "sides": [side("W_0", "B", initial), side("W_T", "C", learned)],
        }),
    }))
}
