//! Serves one page on this machine alone, to whoever has its address, and never lets a viewer hold up the stream.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use axum::Router;
use axum::body::Body;
use axum::extract::{DefaultBodyLimit, Query, Request, State};
use axum::http::header::{
    AUTHORIZATION, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HOST, ORIGIN, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use serde::Deserialize;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{sleep, timeout};

/// What the page can ask for.
pub(super) trait Answers: Send + Sync + 'static {
    /// The newest frame, for a page that has all points up to this number.
    fn frame(&self, since: u64) -> Value;

    /// Does what a body asks for at this path.
    fn post(&self, path: &str, body: &[u8]) -> Posted;
}

/// What became of it.
#[derive(Debug)]
pub(super) enum Posted {
    Done,
    /// There is nothing at this path.
    NotFound,
    /// It is not allowed here.
    Forbidden,
    /// It makes no sense; why.
    Refused(String),
}

/// At most so many are connected at a time; another one is told so.
const MOST_CONNECTIONS: usize = 16;
/// And so many are told so at a time.
const MOST_FAREWELLS: usize = 64;
/// A head that is longer, or has more lines, is refused; so is a longer body.
const LONGEST_HEAD: usize = 8192;
const MOST_HEADERS: usize = 64;
const LONGEST_BODY: usize = 4096;
/// How long a head may take to come; after so long a connection is closed between two answers, and after the grace
/// period in any case. The page opens another.
const HEAD_TIME: Duration = Duration::from_secs(5);
const CONNECTION_TIME: Duration = Duration::from_secs(30);
const GRACE: Duration = Duration::from_secs(5);

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
     connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
const SAME_ORIGIN: (HeaderName, &str) =
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin");

/// The files of the page, which hold no secret.
const ASSETS: [(&str, &str, &str); 4] = [
    ("/", "text/html; charset=utf-8", include_str!("page/index.html")),
    ("/style.css", "text/css; charset=utf-8", include_str!("page/style.css")),
    ("/page.js", "text/javascript; charset=utf-8", include_str!("page/page.js")),
    ("/drawing.js", "text/javascript; charset=utf-8", include_str!("page/drawing.js")),
];

/// A page that is being served.
pub(super) struct Server {
    listener: std::net::TcpListener,
    site: Site,
}

/// Who may ask for what.
#[derive(Clone)]
pub(super) struct Site {
    /// The hosts that a browser may believe to be talking to.
    hosts: Arc<[String; 2]>,
    token: Arc<str>,
    answers: Arc<dyn Answers>,
}

impl Server {
    /// Takes a port of this machine, any for 0.
    ///
    /// # Errors
    /// When the port is taken.
    pub fn bind(port: u16, answers: Arc<dyn Answers>) -> Result<Self> {
        let wanted = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let listener = std::net::TcpListener::bind(wanted)
            .with_context(|| format!("--port: expected a free port, got {port}, which cannot be used"))?;
        listener.set_nonblocking(true)?;
        let port = listener.local_addr()?.port();
        Ok(Self { listener, site: Site::new(port, super::random_hex::<32>()?, answers) })
    }

    /// The address of the page. What is behind the # stays in the browser, so no log holds the token.
    ///
    /// # Errors
    /// When the system does not tell the port.
    pub fn address(&self) -> Result<String> {
        Ok(format!("http://{}/#{}", self.listener.local_addr()?, self.site.token))
    }

    /// Serves on a thread of its own until the process ends.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn serve(self) -> Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let serve = move || {
            runtime.block_on(async move {
                match TcpListener::from_std(self.listener) {
                    Ok(listener) => accept(&listener, &self.site).await,
                    Err(error) => eprintln!("the page cannot be served: {error}"),
                }
            });
        };
        std::thread::Builder::new().name("page".into()).spawn(serve).context("the page cannot be served")?;
        Ok(())
    }
}

async fn accept(listener: &TcpListener, site: &Site) {
    let [room, farewells] = [MOST_CONNECTIONS, MOST_FAREWELLS].map(|most| Arc::new(Semaphore::new(most)));
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // Out of file handles, perhaps: others will be closed.
            sleep(Duration::from_millis(100)).await;
            continue;
        };
        match room.clone().try_acquire_owned() {
            Ok(permit) => {
                let site = site.clone();
                tokio::spawn(async move {
                    site.converse(stream).await;
                    drop(permit);
                });
            }
            // Whoever comes beyond even that is not answered.
            Err(_) => farewells.clone().try_acquire_owned().map_or((), |permit| refuse(stream, permit)),
        }
    }
}

/// Says that there is no room. What was sent is read for a second, or the answer could be lost: a connection that is closed
/// with unread bytes is reset.
fn refuse(mut stream: TcpStream, permit: OwnedSemaphorePermit) {
    const FULL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    tokio::spawn(async move {
        let farewell = async {
            stream.write_all(FULL).await?;
            stream.shutdown().await?;
            let mut unread = [0; 1024];
            while stream.read(&mut unread).await? > 0 {}
            std::io::Result::Ok(())
        };
        let _ = timeout(Duration::from_secs(1), farewell).await;
        drop(permit);
    });
}

impl Site {
    pub fn new(port: u16, token: String, answers: Arc<dyn Answers>) -> Self {
        let hosts = [format!("127.0.0.1:{port}"), format!("localhost:{port}")];
        Self { hosts: Arc::new(hosts), token: token.into(), answers }
    }

    /// Answers whatever comes over a connection, for a limited time.
    pub async fn converse(self, stream: impl AsyncRead + AsyncWrite + Unpin + 'static) {
        let service = TowerToHyperService::new(self.router());
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            // Whoever has said everything may still listen.
            .half_close(true)
            .header_read_timeout(HEAD_TIME)
            .max_buf_size(LONGEST_HEAD)
            .max_headers(MOST_HEADERS)
            .serve_connection(TokioIo::new(stream), service);
        let mut connection = std::pin::pin!(connection);
        // A viewer that breaks off is no failure of ours.
        if timeout(CONNECTION_TIME, connection.as_mut()).await.is_err() {
            connection.as_mut().graceful_shutdown();
            let _ = timeout(GRACE, connection).await;
        }
    }

    fn router(&self) -> Router {
        let mut router = Router::new()
            .route("/frame", get(frame))
            .route("/control", post(posted))
            .route("/toy", post(posted));
        for (path, kind, text) in ASSETS {
            router = router.route(path, get(move || async move { ([(CONTENT_TYPE, kind)], text) }));
        }
        router
            .fallback(|| async { StatusCode::NOT_FOUND })
            .layer(DefaultBodyLimit::max(LONGEST_BODY))
            .layer(from_fn_with_state(self.clone(), guard))
            .with_state(self.clone())
    }

    /// Refuses what no page of ours would send.
    fn admit(&self, method: &Method, path: &str, headers: &HeaderMap) -> Result<(), StatusCode> {
        // Another name that leads to this machine could be somebody's page.
        let host = only(headers, &HOST).and_then(|host| host.to_str().ok());
        let known = |name: &str| self.hosts.iter().any(|host| host == name);
        if !host.is_some_and(known) {
            return Err(StatusCode::FORBIDDEN);
        }
        let is_ours = |origin: &HeaderValue| {
            origin.to_str().ok().and_then(|origin| origin.strip_prefix("http://")).is_some_and(known)
        };
        if headers.contains_key(ORIGIN) && !only(headers, &ORIGIN).is_some_and(is_ours) {
            return Err(StatusCode::FORBIDDEN);
        }
        if headers.get("sec-fetch-site").is_some_and(|site| site != "same-origin" && site != "none") {
            return Err(StatusCode::FORBIDDEN);
        }
        let is_asset = method == Method::GET && ASSETS.iter().any(|(asset, ..)| *asset == path);
        if is_asset || self.is_authorised(headers) { Ok(()) } else { Err(StatusCode::UNAUTHORIZED) }
    }

    fn is_authorised(&self, headers: &HeaderMap) -> bool {
        let given = only(headers, &AUTHORIZATION).and_then(|given| given.as_bytes().strip_prefix(b"Bearer "));
        given.is_some_and(|given| same(given, self.token.as_bytes()))
    }
}

/// The value of a header that is there once.
fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a HeaderValue> {
    let mut all = headers.get_all(name).iter();
    all.next().filter(|_| all.next().is_none())
}

/// Compares without telling by the time it takes where the first difference is.
fn same(given: &[u8], expected: &[u8]) -> bool {
    let differences = given.iter().zip(expected).fold(0, |all, (x, y)| std::hint::black_box(all | (x ^ y)));
    given.len() == expected.len() && differences == 0
}

async fn guard(State(site): State<Site>, request: Request, next: Next) -> Response {
    let mut response = match site.admit(request.method(), request.uri().path(), request.headers()) {
        Ok(()) => next.run(request).await,
        Err(status) => status.into_response(),
    };
    let safe = [
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
        (CACHE_CONTROL, "no-store"),
        SAME_ORIGIN,
    ];
    for (name, value) in safe {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

#[derive(Deserialize)]
struct Since {
    #[serde(default)]
    since: u64,
}

async fn frame(State(site): State<Site>, Query(Since { since }): Query<Since>) -> Response {
    let text = site.answers.frame(since).to_string();
    ([(CONTENT_TYPE, "application/json")], Body::from(text)).into_response()
}

async fn posted(State(site): State<Site>, request: Request) -> Response {
    let path = request.uri().path().to_owned();
    let is_json = request.headers().get(CONTENT_TYPE).is_some_and(|kind| kind == "application/json");
    if !is_json {
        return StatusCode::UNSUPPORTED_MEDIA_TYPE.into_response();
    }
    let Ok(body) = axum::body::to_bytes(request.into_body(), LONGEST_BODY).await else {
        return StatusCode::PAYLOAD_TOO_LARGE.into_response();
    };
    match site.answers.post(&path, &body) {
        Posted::Done => StatusCode::NO_CONTENT.into_response(),
        Posted::NotFound => StatusCode::NOT_FOUND.into_response(),
        Posted::Forbidden => StatusCode::FORBIDDEN.into_response(),
        Posted::Refused(error) => {
            let words = serde_json::json!({ "error": error }).to_string();
            (StatusCode::UNPROCESSABLE_ENTITY, [(CONTENT_TYPE, "application/json")], words).into_response()
        }
    }
}

/// What a site answers to these bytes, without a socket.
///
/// # Errors
/// When there is no runtime.
pub(super) fn answer(site: Site, bytes: &[u8]) -> Result<Vec<u8>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let bytes = bytes.to_vec();
    runtime.block_on(async move {
        let (client, server) = tokio::io::duplex(1 << 16);
        let (mut from_server, mut to_server) = tokio::io::split(client);
        let ask = async move {
            // The server may have heard enough before the end.
            let _ = to_server.write_all(&bytes).await;
            let _ = to_server.shutdown().await;
        };
        let listen = async move {
            let mut answer = Vec::new();
            let _ = from_server.read_to_end(&mut answer).await;
            answer
        };
        let ((), (), answer) = tokio::join!(site.converse(server), ask, listen);
        Ok(answer)
    })
}

#[cfg(test)]
mod tests {
    use rand::RngExt;

    use super::super::answer_bytes;
    use leukos::contexts::stream;

    const TOKEN: &str = "0123456789abcdef";
    /// What means something in a head.
    const ODD: &[u8] = b"\r\n: /\0";

    fn asked(bytes: &[u8]) -> String {
        String::from_utf8_lossy(&answer_bytes(bytes, TOKEN).expect("an answer")).into_owned()
    }

    #[test]
    fn changed_heads_get_no_frame_without_the_token() {
        let good = format!(
            "GET /frame?since=0 HTTP/1.1\r\nHost: localhost:80\r\nAuthorization: Bearer {TOKEN}\r\n\r\n"
        );
        assert!(asked(good.as_bytes()).contains("\"mode\":\"toy\""), "{}", asked(good.as_bytes()));
        let mut rng = stream(11, 0);
        let mut answered = 0;
        for _ in 0..2000 {
            let mut bytes = good.clone().into_bytes();
            for _ in 0..rng.random_range(1..4) {
                let place = rng.random_range(0..bytes.len());
                match rng.random_range(0..4) {
                    0 => bytes[place] = rng.random_range(0..=u8::MAX),
                    1 => _ = bytes.remove(place),
                    2 => bytes.insert(place, ODD[rng.random_range(0..ODD.len())]),
                    _ => bytes.truncate(place.max(8)),
                }
            }
            let answer = asked(&bytes);
            assert!(answer.is_empty() || answer.starts_with("HTTP/1."), "{answer}");
            let knows = bytes.windows(TOKEN.len()).any(|word| word == TOKEN.as_bytes());
            let is_frame = answer.contains("\"mode\":\"toy\"");
            assert!(knows || !is_frame, "{}", String::from_utf8_lossy(&bytes));
            answered += u32::from(is_frame);
        }
        assert!(answered > 20, "some changes do not matter: {answered}");
    }
}
