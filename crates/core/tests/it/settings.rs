//! Compares the table of settings with what a whitener does: its fields, its defaults, and the ends of every range.

use leukos::settings::{SETTINGS, Setting, TIMES, Value, Values};
use leukos::{BadSamples, Follow, WhitenerSettings};
use serde_json::{Map, Value as Json, json};

fn default_fields() -> Map<String, Json> {
    let Ok(Json::Object(fields)) = serde_json::to_value(WhitenerSettings::default()) else {
        panic!("an object")
    };
    fields
}

/// The settings of a whitener with another number in the place of one.
fn with_number(setting: &Setting, number: f64) -> WhitenerSettings {
    let mut fields = default_fields();
    let value = match setting.values {
        Values::Time => json!({ "samples": number }),
        Values::Samples(_) => number.to_string().parse().unwrap(),
        _ => json!(number),
    };
    assert!(fields.insert(setting.name.into(), value).is_some(), "{} is a field", setting.name);
    serde_json::from_value(fields.into()).unwrap()
}

#[test]
fn every_field_is_in_the_table_with_its_default() {
    let mut fields = default_fields();
    // A property of the recording, which each face has in another place.
    fields.remove("sample_rate");
    for setting in SETTINGS {
        let Some(default) = fields.remove(setting.name) else { continue };
        let told = match setting.default {
            // A word that is no meaning of its own, as "auto", is none of the values in the core.
            Value::Word(_) if matches!(setting.values, Values::Time) => Json::Null,
            Value::None(_) => Json::Null,
            Value::Word(word) => word.into(),
            Value::Number(number) => number.into(),
            Value::Whole(number) => number.into(),
        };
        assert_eq!(told, default, "{}", setting.name);
    }
    assert!(fields.is_empty(), "not in the table: {fields:?}");
}

#[test]
fn the_ends_of_a_range_are_taken_and_what_is_beyond_them_is_refused_in_the_words_of_the_table() {
    let mut seen = 0;
    for setting in SETTINGS {
        let [least, most, below, above] = match &setting.values {
            Values::Number(range) => ends(*range.start(), *range.end()),
            Values::Time => ends(*TIMES.start(), *TIMES.end()),
            Values::Positive => [f64::MIN_POSITIVE, f64::MAX, 0.0, -1.0],
            Values::Samples(range) => {
                let [least, most] = [*range.start(), *range.end()].map(|end| end as f64);
                [least, most, least - 1.0, most + 1.0]
            }
            _ => continue,
        };
        seen += 1;
        for number in [least, most] {
            assert_eq!(with_number(setting, number).validate(), Ok(()), "{} {number:e}", setting.name);
        }
        for number in [below, above] {
            let refused = with_number(setting, number).validate().unwrap_err().to_string();
            assert_eq!(refused, format!("{}: expected {}, got {number}", setting.name, setting.expected()));
        }
    }
    assert_eq!(seen, 7);
}

fn ends(least: f64, most: f64) -> [f64; 4] {
    [least, most, least.next_down(), most.next_up()]
}

#[test]
fn every_word_has_a_meaning() {
    let all = |words: &[(&str, &str)]| words.iter().map(|(word, _)| (*word).to_owned()).collect::<Vec<_>>();
    for setting in SETTINGS {
        let words = all(setting.words);
        match setting.name {
            "bad_samples" => {
                let meanings: Vec<BadSamples> =
                    words.iter().map(|word| setting.meaning(word).expect(word)).collect();
                assert_eq!(
                    meanings,
                    [BadSamples::Mark, BadSamples::Hold, BadSamples::Zero, BadSamples::Error]
                );
            }
            "follow" => {
                let meanings: Vec<Follow> =
                    words.iter().map(|word| setting.meaning(word).expect(word)).collect();
                assert_eq!(meanings, [Follow::Contexts, Follow::Nothing]);
            }
            _ => {}
        }
        for default in [setting.default, setting.python_default()] {
            if let Value::Word(word) = default {
                assert!(words.iter().any(|own| own == word), "{}: {word}", setting.name);
            }
        }
    }
}

#[test]
fn errors_say_ranges_briefly() {
    let expected = |name| SETTINGS.iter().find(|setting| setting.name == name).unwrap().expected();
    assert_eq!(expected("floor"), "a number from 1e-6 to 0.5");
    assert_eq!(expected("exclude_above"), "a number from 2 to 1e6");
    assert_eq!(expected("time_constant"), "a time of 1 to 1e15 samples");
    assert_eq!(expected("update_every"), "1 to 65536 samples");
    assert_eq!(expected("bad_samples"), "mark, hold, zero or error");
    assert_eq!(expected("follow"), "contexts or nothing");
}
