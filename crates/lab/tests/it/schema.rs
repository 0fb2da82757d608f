//! Tests that `results.json` is what `docs/results.schema.json` says, for every figure.
//!
//! The validator knows the part of JSON Schema that the schema uses, and refuses a schema that uses more.

use serde_json::{Value, json};

use crate::bench::{Bench, FIGURES, read_json};

struct Schema {
    root: Value,
}

impl Schema {
    fn check(&self, schema: &Value, value: &Value, at: &str) -> Result<(), String> {
        for (keyword, rule) in schema.as_object().ok_or(format!("{at}: the schema is no object"))? {
            let good = match keyword.as_str() {
                "$schema" | "$id" | "$defs" | "title" | "description" => true,
                "$ref" => {
                    let pointer = rule.as_str().and_then(|rule| rule.strip_prefix('#')).unwrap_or("");
                    let target = self.root.pointer(pointer).ok_or(format!("{at}: no {rule}"))?;
                    self.check(target, value, at)?;
                    true
                }
                "type" => has_type(rule, value),
                "const" => rule == value,
                "enum" => rule.as_array().is_some_and(|allowed| allowed.contains(value)),
                "minimum" => value.as_f64().is_none_or(|x| rule.as_f64().is_some_and(|least| x >= least)),
                "anyOf" => rule
                    .as_array()
                    .is_some_and(|any| any.iter().any(|rule| self.check(rule, value, at).is_ok())),
                "required" => rule.as_array().is_some_and(|required| {
                    required.iter().all(|key| key.as_str().is_some_and(|key| value.get(key).is_some()))
                }),
                "properties" => {
                    self.check_entries(value, at, |key| rule.get(key).cloned())?;
                    true
                }
                "additionalProperties" => {
                    let known = schema.get("properties").cloned().unwrap_or(json!({}));
                    self.check_entries(value, at, |key| known.get(key).is_none().then(|| rule.clone()))?;
                    true
                }
                "items" => {
                    for (i, item) in value.as_array().into_iter().flatten().enumerate() {
                        self.check(rule, item, &format!("{at}[{i}]"))?;
                    }
                    true
                }
                other => return Err(format!("{at}: the validator does not know {other}")),
            };
            if !good {
                return Err(format!("{at}: {value} breaks {keyword}: {rule}"));
            }
        }
        Ok(())
    }

    fn check_entries(
        &self,
        value: &Value,
        at: &str,
        rule: impl Fn(&str) -> Option<Value>,
    ) -> Result<(), String> {
        for (key, entry) in value.as_object().into_iter().flatten() {
            match rule(key) {
                Some(Value::Bool(false)) => return Err(format!("{at}: {key} is not allowed")),
                Some(rule) => self.check(&rule, entry, &format!("{at}.{key}"))?,
                None => {}
            }
        }
        Ok(())
    }
}

fn has_type(rule: &Value, value: &Value) -> bool {
    match rule.as_str() {
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("integer") => value.is_u64() || value.is_i64(),
        Some("number") => value.is_number(),
        Some("null") => value.is_null(),
        _ => rule.as_array().is_some_and(|any| any.iter().any(|rule| has_type(rule, value))),
    }
}

fn schema() -> Schema {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/results.schema.json");
    Schema { root: read_json(&path) }
}

#[test]
fn results_of_every_figure_follow_the_schema() {
    let schema = schema();
    for figure in FIGURES {
        let bench = Bench::new();
        bench.reproduce(figure, &["--quiet"]);
        if let Err(error) = schema.check(&schema.root, &bench.results(), "results") {
            panic!("{figure}: {error}");
        }
    }
}

#[test]
fn the_schema_refuses_what_it_should() {
    let schema = schema();
    let bench = Bench::new();
    bench.reproduce("synthetic", &["--quiet"]);
    let good = bench.results();
    let authors = "/figures/synthetic/variants/authors";
    let spoiled = [
        ("", "seed", json!(-1)),
        ("", "scale", json!("huge")),
        ("", "surprise", json!(1)),
        (authors, "error_last10", json!(0.3)),
        (authors, "surprise", json!(0.3)),
        ("/figures/synthetic/variants/authors/error_last10", "n", json!("two")),
    ];
    for (at, key, value) in spoiled {
        let mut bad = good.clone();
        bad.pointer_mut(at).expect("an object")[key] = value;
        assert!(schema.check(&schema.root, &bad, "results").is_err(), "{at}/{key}");
    }
}
