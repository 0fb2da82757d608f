//! Tests what the program says of itself elsewhere: manual pages and completions hold what `--help` does.

use crate::bench::{Bench, leukos, stderr};

fn said(arguments: &[&str]) -> String {
    let output = leukos().args(arguments).output().expect("the program starts");
    assert!(output.status.success(), "{arguments:?}: {}", stderr(&output));
    String::from_utf8(output.stdout).expect("a text")
}

/// The commands that `leukos --help` lists.
fn commands() -> Vec<String> {
    let help = said(&["--help"]);
    let listed = help.lines().skip_while(|line| !line.starts_with("Commands:")).skip(1);
    let names = listed.take_while(|line| !line.is_empty()).filter_map(|line| {
        // A text that goes on in the next line is indented further.
        let name = line.strip_prefix("  ").filter(|rest| !rest.starts_with(' '))?;
        name.split_whitespace().next().map(str::to_owned)
    });
    let names: Vec<String> = names.filter(|name| name != "help").collect();
    assert!(names.len() >= 7, "{names:?}");
    names
}

/// The long flags of a command.
fn flags(command: &str) -> Vec<String> {
    let help = said(&[command, "--help"]);
    let lines = help.lines().map(str::trim_start);
    let flags = lines.filter_map(|line| line.strip_prefix("-h, ").unwrap_or(line).strip_prefix("--"));
    let name = |flag: &str| flag.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '-').collect();
    flags.map(name).collect()
}

#[test]
fn each_command_has_a_manual_page_with_all_its_flags() {
    let bench = Bench::new();
    let pages = bench.path("pages/man1");
    said(&["man", "--out", pages.to_str().expect("a path")]);
    let page = |name: &str| {
        let page = std::fs::read_to_string(pages.join(format!("{name}.1"))).expect("a page");
        assert!(page.contains(&format!(".TH {name} 1")), "{page}");
        // A hyphen is written so that it can be searched for and copied.
        page.replace("\\-", "-")
    };
    let program = page("leukos");
    for command in commands() {
        assert!(program.contains(&format!("leukos-{command}(1)")), "{program}");
        let page = page(&format!("leukos-{command}"));
        for flag in flags(&command) {
            assert!(page.contains(&format!("--{flag}")), "{command} --{flag}: {page}");
        }
    }
    assert_eq!(std::fs::read_dir(&pages).expect("a folder").count(), commands().len() + 1);
}

#[test]
fn completions_know_each_command_and_flag() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = said(&["completions", shell]);
        for command in commands() {
            assert!(script.contains(&command), "{shell}: {command}");
            for flag in flags(&command) {
                // Fish names a long flag without its hyphens.
                let written = if shell == "fish" { format!("-l {flag}") } else { format!("--{flag}") };
                assert!(script.contains(&written), "{shell}: {command} --{flag}");
            }
        }
    }
}
