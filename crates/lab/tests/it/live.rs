//! Tests `leukos live` over real sockets: who is answered, who is refused, and that nobody who looks on changes anything.

#![allow(clippy::unwrap_used)] // A test that fails is meant to stop.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::bench::{Bench, leukos, stderr};

/// The recording of the README, and a model of it.
fn day() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/recordings/awkward.csv")
}

fn fitted(bench: &Bench) -> PathBuf {
    let model = bench.path("model.safetensors");
    let flags = ["--label", "state", "--saturation", "1000", "--time-constant", "250", "--quiet", "--out"];
    let output = leukos().arg("fit").arg(day()).args(flags).arg(&model).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    model
}

/// A page that is being served; it ends with the test.
struct Served {
    child: Child,
    port: u16,
    token: String,
}

impl Served {
    fn start(call: &mut Command) -> Self {
        call.arg("--no-browser").stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = call.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let (address, token) = line.trim().split_once("/#").expect("an address");
        let port = address.strip_prefix("http://127.0.0.1:").expect("this machine").parse().unwrap();
        Self { child, port, token: token.into() }
    }

    fn toy() -> Self {
        Self::start(leukos().args(["live", "--toy"]))
    }

    /// Sends these bytes and reads the answer: its status and its body.
    fn send(&self, bytes: &[u8]) -> (u16, String) {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        // The other side may have heard enough before the end.
        let _ = stream.write_all(bytes);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let status = answer.split(' ').nth(1).and_then(|word| word.parse().ok()).unwrap_or(0);
        let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        (status, body.into())
    }

    /// A request as the page sends it, with these lines in place of its own or none.
    fn ask(&self, first: &str, lines: &[(&str, Option<&str>)], body: &str) -> (u16, String) {
        let host = format!("127.0.0.1:{}", self.port);
        let bearer = format!("Bearer {}", self.token);
        let length = body.len().to_string();
        let own = [
            ("Host", host.as_str()),
            ("Authorization", &bearer),
            ("Connection", "close"),
            ("Content-Type", "application/json"),
            ("Content-Length", &length),
        ];
        let given = |name: &str| lines.iter().find(|(other, _)| *other == name).map(|(_, value)| *value);
        let own_lines = own.iter().map(|&(name, value)| (name, given(name).unwrap_or(Some(value))));
        let others = lines.iter().copied().filter(|(name, _)| own.iter().all(|(own, _)| own != name));
        let all = own_lines.chain(others).filter_map(|(name, value)| Some(format!("{name}: {}\r\n", value?)));
        self.send(format!("{first} HTTP/1.1\r\n{}\r\n{body}", all.collect::<String>()).as_bytes())
    }

    fn frame(&self, since: u64) -> Value {
        let (status, body) = self.ask(&format!("GET /frame?since={since}"), &[], "");
        assert_eq!(status, 200, "{body}");
        serde_json::from_str(&body).expect("JSON")
    }

    /// The first frame that is as wanted.
    fn frame_when(&self, wanted: impl Fn(&Value) -> bool) -> Value {
        let begun = Instant::now();
        loop {
            let frame = self.frame(0);
            if wanted(&frame) {
                return frame;
            }
            assert!(begun.elapsed() < Duration::from_secs(60), "never came; the last one was {frame}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The first line of a request, lines of its head in place of the page's, its body, and the status of the answer.
type Case<'a> = (&'a str, Vec<(&'a str, Option<&'a str>)>, &'a str, u16);

#[test]
fn who_is_answered_and_who_is_not() {
    let served = Served::toy();
    let port = served.port;
    let own = |name: &str| format!("http://{name}:{port}");
    let (here, local) = (own("127.0.0.1"), own("localhost"));
    let wrong = "0".repeat(64);
    let longer = format!("Bearer {}0", served.token);
    let cases: Vec<Case> = vec![
        ("GET /", vec![("Authorization", None)], "", 200),
        ("GET /drawing.js", vec![("Authorization", None)], "", 200),
        ("GET /frame", vec![], "", 200),
        ("GET /frame?since=7", vec![("Origin", Some(&here))], "", 200),
        ("GET /frame", vec![("Origin", Some(&local)), ("Sec-Fetch-Site", Some("same-origin"))], "", 200),
        ("GET /frame", vec![("Host", Some(&local[7..]))], "", 200),
        ("POST /toy", vec![], "{}", 204),
        // Without the token, or with another.
        ("GET /frame", vec![("Authorization", None)], "", 401),
        ("GET /frame", vec![("Authorization", Some(&wrong))], "", 401),
        ("GET /frame", vec![("Authorization", Some(&longer))], "", 401),
        ("GET /frame", vec![("Authorization", Some("Bearer "))], "", 401),
        ("POST /toy", vec![("Authorization", None)], "{}", 401),
        ("POST /", vec![("Authorization", None)], "{}", 401),
        // Under another name, or from another page.
        ("GET /", vec![("Host", Some("example.org"))], "", 403),
        ("GET /", vec![("Host", Some("127.0.0.1"))], "", 403),
        ("GET /frame", vec![("Host", Some("example.org"))], "", 403),
        ("GET /frame", vec![("Origin", Some("http://example.org"))], "", 403),
        ("GET /frame", vec![("Origin", Some("null"))], "", 403),
        ("GET /frame", vec![("Origin", Some(&here[7..]))], "", 403),
        ("GET /frame", vec![("Sec-Fetch-Site", Some("cross-site"))], "", 403),
        ("POST /toy", vec![("Origin", Some("https://127.0.0.1"))], "{}", 403),
        // What there is not, or not so.
        ("GET /nothing", vec![], "", 404),
        ("GET /../Cargo.toml", vec![], "", 404),
        ("POST /control", vec![], "{}", 404),
        ("DELETE /frame", vec![], "", 405),
        ("GET /frame?since=-1", vec![], "", 400),
        ("POST /toy", vec![("Content-Type", Some("text/plain"))], "{}", 415),
        ("POST /toy", vec![], "not JSON", 422),
        ("POST /toy", vec![], "{\"gain_rate\": 7}", 422),
        ("POST /toy", vec![], "{\"unknown\": 1}", 422),
    ];
    for (first, lines, body, expected) in cases {
        let (status, answer) = served.ask(first, &lines, body);
        assert_eq!(status, expected, "{first} {lines:?}: {answer}");
    }
    let (_, words) = served.ask("POST /toy", &[], "{\"gain_rate\": 7}");
    assert!(words.contains("gain_rate: expected a number from"), "{words}");
    let (status, _) = served.ask("POST /toy", &[], &" ".repeat(5000));
    assert_eq!(status, 413);
    let (status, _) = served.ask("GET /", &[("X-Long", Some(&"x".repeat(20_000)))], "");
    assert_eq!(status, 431);
    let (status, _) =
        served.send(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    assert_eq!(status, 403);
    let (status, _) = served.send(b"\x16\x03\x01 no HTTP\r\n\r\n");
    assert_eq!(status, 400);
    assert_eq!(served.frame(0)["mode"], "toy", "after all that the page is still there");
}

#[test]
fn every_answer_forbids_what_the_page_does_not_need() {
    let served = Served::toy();
    for path in ["/", "/page.js", "/nothing", "/frame"] {
        let mut stream = TcpStream::connect(("127.0.0.1", served.port)).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nConnection: close\r\n\r\n", served.port)
            .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let head = answer.split("\r\n\r\n").next().unwrap().to_lowercase();
        for line in [
            "content-security-policy: default-src 'none'",
            "x-content-type-options: nosniff",
            "cache-control: no-store",
            "referrer-policy: no-referrer",
        ] {
            assert!(head.contains(line), "{path}: {head}");
        }
        assert!(!head.contains("access-control"), "{head}");
    }
}

#[test]
fn thirty_viewers_that_never_read_hold_nothing_up() {
    let bench = Bench::new();
    let model = fitted(&bench);
    let out = bench.path("watched.csv");
    let mut call = leukos();
    call.arg("live").arg(&model).arg(day()).args([
        "--label",
        "state",
        "--sample-rate",
        "250",
        "--speed",
        "40",
        "--quiet",
    ]);
    let served = Served::start(call.arg("--out").arg(&out));
    let ask = format!(
        "GET /frame HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nAuthorization: Bearer {}\r\n\r\n",
        served.port, served.token
    );
    let viewers: Vec<TcpStream> = (0..30)
        .map(|_| {
            let mut stream = TcpStream::connect(("127.0.0.1", served.port)).unwrap();
            // As many as the system takes: it is never read.
            stream.set_write_timeout(Some(Duration::from_millis(50))).unwrap();
            let _ = (0..50).try_for_each(|_| stream.write_all(ask.as_bytes()));
            stream
        })
        .collect();
    let begun = Instant::now();
    while !out.exists() {
        assert!(begun.elapsed() < Duration::from_secs(60), "the output is never complete");
        std::thread::sleep(Duration::from_millis(20));
    }
    let memory = fs::read_to_string(format!("/proc/{}/status", served.child.id())).unwrap_or_default();
    let peak = memory
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    assert!(peak.is_none_or(|peak| peak < 300_000), "{peak:?} kB");
    // None of them goes before the last has been answered, or it would make room.
    let refused = viewers.iter().filter(|viewer| {
        let mut stream: &TcpStream = viewer;
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let mut start = [0; 12];
        stream.read_exact(&mut start).is_ok() && start.ends_with(b"503")
    });
    assert_eq!(refused.count(), 14);
    assert_eq!(fs::read(&out).unwrap(), whitened(&bench, &model), "those who look on change nothing");
}

/// What `leukos whiten` makes of the same.
fn whitened(bench: &Bench, model: &Path) -> Vec<u8> {
    let out = bench.path("white.csv");
    let mut call = leukos();
    call.arg("whiten").arg(model).arg(day()).args([
        "--label",
        "state",
        "--sample-rate",
        "250",
        "--quiet",
        "--out",
    ]);
    let output = call.arg(&out).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    fs::read(out).unwrap()
}

#[test]
fn a_frame_tells_what_happened() {
    let bench = Bench::new();
    let model = fitted(&bench);
    let mut call = leukos();
    call.arg("live").arg(&model).arg(day());
    let served =
        Served::start(call.args(["--label", "state", "--sample-rate", "250", "--speed", "8", "--quiet"]));
    let dead = served.frame_when(|frame| frame["channels"][3]["state"] == "dead");
    let words = dead["channels"][3]["words"].as_str().unwrap().to_owned();
    assert!(dead["channels"][3]["name"] == "C4" && words.starts_with("dead"), "{words}");
    let last = served.frame_when(|frame| frame["state"]["kind"] == "ended");
    assert_eq!(
        (&last["rows"], &last["total_rows"], &last["version"]),
        (&json!(6500), &Value::Null, &json!(1))
    );
    assert_eq!(last["channels"][3]["state"], "live", "it has come back");
    let changes = last["changes"].as_array().unwrap();
    let contexts: Vec<_> = changes.iter().filter(|change| change["kind"] != "note").collect();
    let rows: Vec<_> = contexts.iter().map(|change| change["row"].as_u64().unwrap()).collect();
    assert_eq!(rows, [2500, 5000], "{changes:?}");
    assert!(contexts[0]["words"].as_str().unwrap().contains("walk"), "{changes:?}");
    assert_eq!(contexts[1]["kind"], "recalled", "resting comes back: {changes:?}");
    let n = last["shown"].as_array().unwrap().len();
    assert_eq!(
        (n, last["before"].as_array().unwrap().len(), last["after"].as_array().unwrap().len()),
        (6, 36, 36)
    );
    let points = &last["points"];
    let lengths = ["id", "row", "error", "floor", "unadapted", "gains"]
        .map(|key| points[key].as_array().unwrap().len());
    assert!(lengths.iter().all(|&length| length == lengths[0] && length > 40), "{lengths:?}");
    let latest = |key: &str| points[key].as_array().unwrap().last().unwrap().as_f64().unwrap();
    assert!(latest("error") < latest("unadapted"), "{} {}", latest("error"), latest("unadapted"));
    let after = points["id"][lengths[0] - 3].as_u64().unwrap();
    assert_eq!(served.frame(after)["points"]["id"].as_array().unwrap().len(), 2, "only what is new");
    assert_eq!(last["traces"]["before"].as_array().unwrap().len(), 6);
}

#[test]
fn orders_are_taken_with_leave_alone_and_noted() {
    let bench = Bench::new();
    let (model, saved) = (fitted(&bench), bench.path("saved.safetensors"));
    let start = |flags: &[&str]| {
        let mut call = leukos();
        call.arg("live").arg(&model).arg(day());
        call.args(["--label", "state", "--sample-rate", "250", "--speed", "4", "--quiet"]).args(flags);
        Served::start(&mut call)
    };
    let order = |served: &Served, action: &str| {
        served.ask("POST /control", &[], &json!({ "action": action }).to_string()).0
    };
    let watched = start(&[]);
    assert_eq!(order(&watched, "new-context"), 403);
    assert_eq!(watched.frame(0)["control"], false);
    let unsaved = start(&["--control"]);
    assert_eq!(order(&unsaved, "save"), 422);
    assert_eq!(order(&unsaved, "explode"), 422);
    let served = start(&["--control", "--save", saved.to_str().unwrap()]);
    served.frame_when(|frame| frame["rows"].as_u64().unwrap() > 100);
    for action in ["new-context", "adapt-off", "save"] {
        assert_eq!(order(&served, action), 204);
    }
    let words = |frame: &Value| -> Vec<String> {
        let changes = frame["changes"].as_array().unwrap().iter();
        changes.map(|change| change["words"].as_str().unwrap().to_owned()).collect()
    };
    let frame = served.frame_when(|frame| words(frame).iter().any(|words| words.starts_with("model saved")));
    let words = words(&frame);
    assert!(words[0].contains("new context") && words[1] == "not adapting", "{words:?}");
    served.frame_when(|frame| frame["state"]["kind"] == "paused");
    let output = leukos().arg("inspect").arg(&saved).arg("--json").output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let status = serde_json::from_slice::<Value>(&output.stdout).unwrap()["groups"][0]["status"].take();
    assert_eq!(status["adapting"], false, "it is saved as it is");
    assert!(status["samples"]["seen"].as_u64().unwrap() > 100, "{status}");
    assert_eq!(order(&served, "adapt-on"), 204);
    served.frame_when(|frame| frame["state"]["kind"] == "adapting");
}

#[test]
fn without_a_model_it_begins_with_nothing() {
    let bench = Bench::new();
    let mut call = leukos();
    call.arg("live").arg(day()).args([
        "--label",
        "state",
        "--sample-rate",
        "250",
        "--speed",
        "30",
        "--quiet",
    ]);
    let served = Served::start(call.args(["--time-constant", "250", "--saturation", "1000"]));
    let frame = served.frame_when(|frame| frame["rows"].as_u64().unwrap() > 2500);
    assert_eq!((&frame["model"], &frame["gains_total"]), (&Value::Null, &json!(21)));
    let column = |key: &str| frame["points"][key].as_array().unwrap();
    let before_the_change = |row: &Value| (1500..2500).contains(&row.as_u64().unwrap());
    let mean = |key: &str| {
        let kept = column("row").iter().zip(column(key)).filter(|(row, _)| before_the_change(row));
        let errors: Vec<f64> = kept.map(|(_, error)| error.as_f64().unwrap()).collect();
        errors.iter().sum::<f64>() / errors.len() as f64
    };
    let [error, floor, unadapted] = ["error", "floor", "unadapted"].map(mean);
    assert!(error < 1.2 * floor && error < unadapted, "{error} {floor} {unadapted}");
    for (flags, words) in [
        (vec!["--out", "white.csv"], "--out: expected a MODEL, got none"),
        (vec!["--save", "model.safetensors"], "--control"),
        (vec!["--speed", "0"], "expected a positive number or max, got 0"),
        (vec!["--toy"], "cannot be used with"),
    ] {
        let output =
            leukos().arg("live").arg(day()).args(["--label", "state"]).args(&flags).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{flags:?}");
        assert!(stderr(&output).contains(words), "{flags:?}: {}", stderr(&output));
    }
    let many = bench.write("many.csv", format!("{}\n", vec!["1.5"; 33].join(",")).repeat(3));
    let output = leukos().arg("live").arg(many).arg("--no-browser").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).contains("expected a MODEL for more than 32 channels, got 33"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn a_pipe_is_watched_and_passed_on_bit_for_bit() {
    let bench = Bench::new();
    let model = fitted(&bench);
    let mut call = leukos();
    call.arg("live").arg(&model).args(["-", "--format", "csv", "--label", "state", "--sample-rate", "250"]);
    call.args(["--out", "-", "--no-browser"]).stdin(fs::File::open(day()).unwrap());
    let output = call.output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stderr(&output).contains("http://127.0.0.1:"), "the address is where the output is not");
    assert_eq!(output.stdout, whitened(&bench, &model));
}
