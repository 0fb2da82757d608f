//! Handles Ctrl-C and similar signals. The first one lets a command end by itself and clean up. If it has not ended after
//! half a second, because a pipe stalls or a long computation goes on, the process exits; so it does on a second signal.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};

use super::progress::say_line;
use crate::files::abandon;

static STOP: AtomicBool = AtomicBool::new(false);
static PARTING_WORDS: Mutex<String> = Mutex::new(String::new());

/// How long a command may take to end by itself; the user should not have to wait longer.
const PATIENCE: Duration = Duration::from_millis(500);

/// Begins to listen.
pub fn listen() -> Result<()> {
    ctrlc::set_handler(|| {
        if STOP.swap(true, Ordering::Relaxed) {
            leave();
        }
        std::thread::spawn(|| {
            std::thread::sleep(PATIENCE);
            leave();
        });
    })
    .context("the handler of Ctrl-C cannot be installed")
}

/// The flag that is set when the command should end; `words` are printed if the process has to exit by force.
pub fn stop_or_say(words: impl Into<String>) -> &'static AtomicBool {
    *PARTING_WORDS.lock().unwrap_or_else(PoisonError::into_inner) = words.into();
    &STOP
}

/// Ends the process, and removes files that are not complete.
fn leave() -> ! {
    abandon();
    let words = PARTING_WORDS.lock().unwrap_or_else(PoisonError::into_inner);
    if !words.is_empty() {
        say_line(&*words);
    }
    std::process::exit(130)
}
