//! Shows a stream on a page in the browser while it is whitened, or a toy to play with: `leukos live`.

mod earlier;
mod frame;
mod pace;
mod server;
mod toy;
mod watcher;

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Result, anyhow};
use serde::Deserialize;
use serde_json::Value;

use self::frame::{Board, Condition, ConditionKind};
use self::server::{Answers, Posted, Server, Site};
use self::toy::{Toy, Wish};
use self::watcher::{Desk, Watcher};
use crate::outlook::Outlook;
use crate::recording::Source;
use crate::whitening::{Instruction, ModelSource, Request, Tally, whiten_watched};

/// What is shown and who may do what.
pub struct Show {
    /// The port on this machine; 0 for any that is free.
    pub port: u16,
    /// Whether the page may give instructions.
    pub control: bool,
    /// Where the page may save the model.
    pub save: Option<PathBuf>,
    /// How many times faster than it was recorded a file passes; none for as fast as it goes.
    pub speed: Option<f64>,
    /// Whether to end with the recording instead of keeping the page.
    pub end_with_recording: bool,
}

/// Whitens a stream and shows it; `opened` is given the address of the page.
///
/// # Errors
/// As for [`crate::whitening::whiten`], and when the page cannot be served.
pub fn show_stream(
    request: &Request,
    show: &Show,
    stop: &AtomicBool,
    outlook: &dyn Outlook,
    opened: impl FnOnce(&str),
) -> Result<Tally> {
    let title = match &request.input {
        Source::File(path) => file_name(path),
        Source::Stdin => "standard input".into(),
    };
    let model = match &request.model {
        ModelSource::File(path) => Some(file_name(path)),
        ModelSource::Empty(_) => None,
    };
    if request.input.is_plain_file() {
        // Before somebody opens a page that shows nothing.
        let layout = request.require_start()?;
        if show.speed.is_some() && layout.sample_rate.is_none() {
            outlook.say("no sample rate is known, so the recording passes as fast as it can be whitened; see --sample-rate");
        }
    }
    let desk = Desk::new(Board::new(random_hex::<4>()?, title, model, show.control));
    let answers = StreamPage { desk: desk.clone(), control: show.control, save: show.save.clone() };
    let server = Server::bind(show.port, Arc::new(answers))?;
    let address = server.address()?;
    server.serve()?;
    opened(&address);
    let speed = show.speed.filter(|_| request.input.is_plain_file());
    let tally = whiten_watched(request, stop, outlook, &mut Watcher::new(desk.clone(), speed));
    desk.board().state = last_state(&tally);
    let stays = !show.end_with_recording && request.input.is_plain_file();
    if stays && tally.as_ref().is_ok_and(|tally| !tally.interrupted) {
        outlook.say("the recording has ended; the page stays until Ctrl-C");
        wait_for(stop);
    } else {
        // Long enough for a page to see how it ended.
        std::thread::sleep(LAST_LOOK);
    }
    tally
}

/// A page asks ten times a second.
const LAST_LOOK: Duration = Duration::from_millis(300);

fn wait_for(stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn last_state(tally: &Result<Tally>) -> Condition {
    let (kind, words) = match tally {
        Ok(tally) if tally.interrupted => {
            (ConditionKind::Ended, format!("interrupted after {} rows", tally.rows))
        }
        Ok(tally) => (ConditionKind::Ended, format!("the recording has ended after {} rows", tally.rows)),
        Err(error) => (ConditionKind::Failed, format!("failed: {error:#}")),
    };
    Condition { kind, words }
}

fn file_name(path: &std::path::Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

/// Shows the paper's circuit of two neurons, to play with, until `stop` is set.
///
/// # Errors
/// When the page cannot be served.
pub fn show_toy(port: u16, seed: u64, stop: &AtomicBool, opened: impl FnOnce(&str)) -> Result<()> {
    let toy = Arc::new(Toy::new(random_hex::<4>()?, seed)?);
    let server = Server::bind(port, toy.clone())?;
    let address = server.address()?;
    server.serve()?;
    opened(&address);
    Ok(toy.play(stop)?)
}

/// What the server of a toy on port 80 with this token answers to these bytes; for the fuzzer.
///
/// # Errors
/// When it cannot be set up.
pub fn answer_bytes(bytes: &[u8], token: &str) -> Result<Vec<u8>> {
    let toy = Arc::new(Toy::new(String::new(), 0)?);
    server::answer(Site::new(80, token.into(), toy), bytes)
}

/// What the page of a stream can ask for.
struct StreamPage {
    desk: Desk,
    control: bool,
    save: Option<PathBuf>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    action: Action,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Action {
    NewContext,
    AdaptOn,
    AdaptOff,
    Save,
}

impl Answers for StreamPage {
    fn frame(&self, since: u64) -> Value {
        self.desk.board().frame(since)
    }

    fn post(&self, path: &str, body: &[u8]) -> Posted {
        if path != "/control" {
            return Posted::NotFound;
        }
        if !self.control {
            return Posted::Forbidden;
        }
        let instruction = match serde_json::from_slice(body) {
            Err(error) => return Posted::Refused(format!("expected an action, got {error}")),
            Ok(Asked { action: Action::NewContext }) => Instruction::NewContext,
            Ok(Asked { action: Action::AdaptOn }) => Instruction::Adapt(true),
            Ok(Asked { action: Action::AdaptOff }) => Instruction::Adapt(false),
            Ok(Asked { action: Action::Save }) => match &self.save {
                Some(path) => Instruction::Save(path.clone()),
                None => {
                    return Posted::Refused(
                        "save: expected `leukos live` to have been given --save FILE".into(),
                    );
                }
            },
        };
        if self.desk.instruct(instruction) {
            Posted::Done
        } else {
            Posted::Refused("expected fewer instructions before the next row comes".into())
        }
    }
}

impl Answers for Toy {
    fn frame(&self, since: u64) -> Value {
        Self::frame(self, since)
    }

    fn post(&self, path: &str, body: &[u8]) -> Posted {
        if path != "/toy" {
            return Posted::NotFound;
        }
        let done = serde_json::from_slice::<Wish>(body).map_err(|error| error.to_string());
        match done.and_then(|wish| self.wish(&wish)) {
            Ok(()) => Posted::Done,
            Err(words) => Posted::Refused(words),
        }
    }
}

/// A number of rows or samples; none where it is negative.
#[allow(clippy::cast_sign_loss)]
fn whole(x: f64) -> u64 {
    x.max(0.0) as u64
}

/// Random bytes in hexadecimal digits.
fn random_hex<const N: usize>() -> Result<String> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| anyhow!("the system gives no random numbers: {error}"))?;
    Ok(bytes.iter().fold(String::new(), |mut text, byte| {
        // A string takes whatever is written to it.
        let _ = write!(text, "{byte:02x}");
        text
    }))
}
