//! Explains the flags of settings in the words of the table: what they take, what they do, and their defaults.

use clap::Arg;
use leukos::settings::{SETTINGS, Setting, Value, Values, brief};

/// A flag as the table explains it; a flag that is no setting stays as it is.
pub fn explained(flag: Arg) -> Arg {
    match setting(&flag) {
        Some(setting) => flag.value_name(taken(setting)).help(help(setting, &setting.default)),
        None => flag,
    }
}

/// The same where a model has its own settings.
pub fn explained_for_a_model(flag: Arg) -> Arg {
    match setting(&flag) {
        Some(setting) => flag.value_name(taken(setting)).help(help(setting, &Value::None("the model's"))),
        None => flag,
    }
}

fn setting(flag: &Arg) -> Option<&'static Setting> {
    SETTINGS.iter().find(|setting| flag.get_id() == setting.name)
}

/// What a flag takes: its words, and what other values look like.
fn taken(setting: &Setting) -> String {
    let others = match &setting.values {
        Values::Words => None,
        Values::Number(range) => Some(format!("{}..{}", brief(*range.start()), brief(*range.end()))),
        Values::Positive => Some("VALUE".into()),
        Values::Time => Some("TIME".into()),
        Values::Samples(_) => Some("SAMPLES".into()),
        Values::Interneurons => Some("K".into()),
        Values::Seed => Some("S".into()),
        Values::Synapses => Some("FILE.npy|MODEL".into()),
        Values::Groups => Some("GROUPS".into()),
    };
    let words = setting.words.iter().map(|(word, _)| (*word).to_owned());
    words.chain(others).collect::<Vec<_>>().join("|")
}

/// How values are written on the command line, where that is not plain.
fn notation(values: &Values) -> Option<&'static str> {
    match values {
        Values::Time => {
            Some("TIME is a number of samples, or a time such as 2s or 500ms, which needs a sample rate")
        }
        Values::Synapses => {
            Some("FILE.npy holds an array of shape (channels, K), and MODEL is another model")
        }
        Values::Groups => Some(
            "`0-3,4-7` makes two groups of four channels; `0-2+6,3-5` puts channels 0, 1, 2 and 6 into the first",
        ),
        _ => None,
    }
}

fn help(setting: &Setting, default: &Value) -> String {
    let words: Vec<_> = setting.words.iter().map(|(word, does)| format!("`{word}` {does}")).collect();
    let mut sentences = vec![setting.about.to_owned()];
    sentences.extend((!words.is_empty()).then(|| words.join("; ")));
    sentences.extend(notation(&setting.values).map(String::from));
    format!("{} [default: {default}]", sentences.join(". "))
}

#[cfg(test)]
mod tests {
    use clap::{Args, Command};
    use leukos::settings::SETTINGS;

    use super::super::Settings;

    #[test]
    fn flags_are_the_settings_of_the_table_in_its_order_and_each_is_explained() {
        let command = Settings::augment_args(Command::new("settings"));
        let flags: Vec<_> = command.get_arguments().collect();
        let names: Vec<_> = flags.iter().map(|flag| flag.get_id().as_str()).collect();
        assert_eq!(names, SETTINGS.iter().map(|setting| setting.name).collect::<Vec<_>>());
        for (flag, setting) in flags.iter().zip(SETTINGS) {
            let help = flag.get_help().expect("a text").to_string();
            assert!(help.starts_with(setting.about), "{help}");
            assert!(help.ends_with(&format!(" [default: {}]", setting.default)), "{help}");
        }
    }
}
