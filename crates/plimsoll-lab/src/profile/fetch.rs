//! Profiles that a server takes of itself: `/debug/pprof/profile`, as Go's `net/http/pprof` has it.

use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;

use plimsoll_load::Interrupt;
use plimsoll_model::masked_text;
use plimsoll_wire::tls::ClientConfig;
use url::Url;

use super::Profile;
use super::pprof::{DecodeError, decode};
use crate::server::probe::{self, ProbeError, ProbeRequest};

/// Bytes of a response: profiles of very large Go programs have a few MiB, compressed.
const LARGEST: u64 = 64 << 20;

/// Timeout of an answer beyond the duration of the profile.
const PATIENCE: Duration = Duration::from_secs(30);

/// Why a server has given no profile.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// It did not answer as it should.
    #[error("no profile from {url}")]
    Answer {
        /// The request.
        url: String,
        /// The error.
        #[source]
        cause: ProbeError,
    },
    /// It answered without a profile.
    #[error("no profile from {url}")]
    Content {
        /// The request.
        url: String,
        /// The error of the decoder.
        #[source]
        cause: DecodeError,
    },
    /// The user stopped it.
    #[error("interrupted before the server had answered")]
    Interrupted,
}

/// A server that takes profiles of itself, and how one is requested.
#[derive(Debug, Clone)]
pub struct Server {
    /// Its URL.
    pub url: Url,
    /// Fields of the request, such as `authorization`.
    pub fields: Vec<(String, String)>,
    /// The trusted certificates, which `https` needs.
    pub tls: Option<Arc<ClientConfig>>,
}

/// Asks for a profile of so many whole seconds, and waits for it.
///
/// A URL without a path stands for `/debug/pprof/profile` of its host; one with `seconds` in its query is
/// requested as it is.
pub fn fetch(
    server: &Server,
    duration: Duration,
    interrupt: &Interrupt,
) -> Result<Profile, FetchError> {
    /// Interval at which interrupts are checked.
    const STEP: Duration = Duration::from_millis(50);

    let server = Server {
        url: profile_url(&server.url, duration),
        ..server.clone()
    };
    let shown = masked_text(server.url.as_str()).into_owned();
    let (sender, answer) = sync_channel(1);
    // It ends with its own timeout if no caller waits for it any more.
    thread::spawn(move || {
        let content = probe::content(&ProbeRequest {
            url: &server.url,
            fields: &server.fields,
            tls: server.tls,
            timeout: duration + PATIENCE,
            limit: LARGEST,
        });
        sender.send(content).ok();
    });
    loop {
        match answer.recv_timeout(STEP) {
            Ok(Ok(content)) => {
                return decode(&content).map_err(|cause| FetchError::Content { url: shown, cause });
            }
            Ok(Err(cause)) => return Err(FetchError::Answer { url: shown, cause }),
            Err(RecvTimeoutError::Timeout) if interrupt.is_set() => {
                return Err(FetchError::Interrupted);
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Err(FetchError::Interrupted),
        }
    }
}

fn profile_url(url: &Url, duration: Duration) -> Url {
    let mut profile_url = url.clone();
    if matches!(profile_url.path(), "" | "/") {
        profile_url.set_path("/debug/pprof/profile");
    }
    if !url.query_pairs().any(|(name, _)| name == "seconds") {
        let seconds = (duration + Duration::from_millis(500)).as_secs().max(1);
        let seconds = seconds.to_string();
        profile_url
            .query_pairs_mut()
            .append_pair("seconds", &seconds);
    }
    profile_url
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_of_a_url_is_added() {
        let profile_url =
            |url: &str| profile_url(&url.parse().unwrap(), Duration::from_secs(5)).to_string();
        for (url, expected) in [
            (
                "http://h:6060",
                "http://h:6060/debug/pprof/profile?seconds=5",
            ),
            ("http://h/x?a=b", "http://h/x?a=b&seconds=5"),
            ("http://h/x?seconds=9", "http://h/x?seconds=9"),
        ] {
            assert_eq!(profile_url(url), expected);
        }
    }
}
