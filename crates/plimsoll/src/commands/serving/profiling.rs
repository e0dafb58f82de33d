//! `/debug/pprof/profile` of the admin port: where the server's own processor time goes, for pprof.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use plimsoll_lab::profile::{ProfileKind, ProfilePlan, pprof, take_profile};
use plimsoll_load::Interrupt;
use plimsoll_model::{Clock as _, with_causes};
use plimsoll_server::{AdminMethod, AdminPath, Answer, Request, Response, ResponseBody};
use plimsoll_wire::SystemClock;
use tokio::sync::oneshot;

/// The default is Go's.
const USUAL: u64 = 30;

/// Longer than anybody watches.
const LONGEST: u64 = 300;

/// Samples per second of processor time and thread: few enough that serving does not notice.
const FREQUENCY: u64 = 99;

/// The path, of which one profile can be had at a time.
pub(super) fn path() -> AdminPath {
    let is_busy = Arc::<AtomicBool>::default();
    AdminPath {
        path: "/debug/pprof/profile",
        method: AdminMethod::Get,
        answer: Arc::new(move |request| answer(request, &is_busy)),
    }
}

fn answer(request: &Request<'_>, is_busy: &Arc<AtomicBool>) -> Answer {
    let Some(seconds) = seconds(request.query.unwrap_or_default()) else {
        return Answer::now(Response::text(
            StatusCode::BAD_REQUEST,
            format!("seconds must be a whole number from 1 to {LONGEST}\n"),
        ));
    };
    if is_busy.swap(true, Ordering::AcqRel) {
        return Answer::now(Response::text(
            StatusCode::SERVICE_UNAVAILABLE,
            "a profile is being taken already\n",
        ));
    }
    let (done, taken) = oneshot::channel();
    let interrupt = Arc::<Interrupt>::default();
    let profiling = {
        let (is_busy, interrupt) = (Arc::clone(is_busy), Arc::clone(&interrupt));
        move || {
            let profile = profile(Duration::from_secs(seconds), &interrupt);
            is_busy.store(false, Ordering::Release);
            done.send(profile).ok();
        }
    };
    let name = "profile".to_owned();
    if thread::Builder::new().name(name).spawn(profiling).is_err() {
        is_busy.store(false, Ordering::Release);
        return Answer::now(failed("there is no thread to be had"));
    }
    let until_client_leaves = AskedAtEnd(interrupt);
    Answer::later(async move {
        let taken = taken.await;
        drop(until_client_leaves);
        match taken {
            Ok(Ok(profile)) => {
                let kind = HeaderValue::from_static("application/octet-stream");
                Response::new(StatusCode::OK)
                    .with_field(CONTENT_TYPE, kind)
                    .with_field(CACHE_CONTROL, HeaderValue::from_static("no-store"))
                    .with_body(ResponseBody::Bytes(Bytes::from(profile)))
            }
            Ok(Err(reason)) => failed(&reason),
            Err(_) => failed("it could not be taken"),
        }
    })
}

/// Ends a profile whose reader is gone.
struct AskedAtEnd(Arc<Interrupt>);

impl Drop for AskedAtEnd {
    fn drop(&mut self) {
        self.0.ask();
    }
}

fn failed(reason: &str) -> Response {
    Response::text(
        StatusCode::INTERNAL_SERVER_ERROR,
        format!("no profile: {reason}\n"),
    )
}

fn profile(duration: Duration, interrupt: &Interrupt) -> Result<Vec<u8>, String> {
    let plan = ProfilePlan {
        pids: vec![std::process::id()],
        duration,
        frequency: FREQUENCY,
        call_graph: None,
        kind: ProfileKind::Cpu,
    };
    let begun = SystemClock.wall();
    let profile = take_profile(&plan, interrupt).map_err(|error| with_causes(&error))?;
    pprof::encode(&profile, begun).map_err(|error: io::Error| error.to_string())
}

/// The value of `seconds=` in a query.
fn seconds(query: &str) -> Option<u64> {
    let given = query
        .split('&')
        .find_map(|pair| pair.strip_prefix("seconds="));
    let Some(given) = given else {
        return Some(USUAL);
    };
    let seconds = given.parse().ok()?;
    (1..=LONGEST).contains(&seconds).then_some(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_those_of_the_query() {
        for (query, expected) in [
            ("", Some(30)),
            ("seconds=5", Some(5)),
            ("debug=1&seconds=300", Some(300)),
            ("seconds=0", None),
            ("seconds=301", None),
            ("seconds=x", None),
        ] {
            assert_eq!(seconds(query), expected, "{query}");
        }
    }
}
