//! Listens to Ctrl-C and its like. The first lets a command end by itself and leave things as it should; if it has not
//! done so after a moment, because a pipe stalls or a long computation goes on, it is ended, and so by the second.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};

use super::progress::say_line;
use crate::files::abandon;

static STOP: AtomicBool = AtomicBool::new(false);
static PARTING_WORDS: Mutex<String> = Mutex::new(String::new());

/// How long a command may take to end by itself: whoever has asked it to should not wait for a second.
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
    .context("Ctrl-C cannot be listened to")
}

/// Set when the command should end; `words` are said if it has to be ended.
pub fn stop_or_say(words: impl Into<String>) -> &'static AtomicBool {
    *PARTING_WORDS.lock().unwrap_or_else(PoisonError::into_inner) = words.into();
    &STOP
}

/// Ends the process as if it had never written anything that is not whole.
fn leave() -> ! {
    abandon();
    let words = PARTING_WORDS.lock().unwrap_or_else(PoisonError::into_inner);
    if !words.is_empty() {
        say_line(&*words);
    }
    std::process::exit(130)
}
