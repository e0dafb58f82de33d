//! The requests of an access log, in their order and at their times.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_formats::{Arrival, RequestFile};
use plimsoll_model::DurationText;

use super::selector::Selector;
use crate::problem::Problem;

/// Methods that are sent as they stand in a log, which has no bodies: those that are safe (RFC 9110, section 9.2.1).
const SENT: [&str; 3] = ["GET", "HEAD", "OPTIONS"];

/// A shorter silence is named nowhere.
const LEAST_SILENCE: Duration = Duration::from_secs(10);

/// Hosts that are named in a message.
const MOST_HOSTS: usize = 5;

/// The entries of a log that are sent.
#[derive(Debug)]
pub(crate) struct Log {
    /// Positions of their requests.
    pub(crate) entries: Arc<[u32]>,
    /// When each was made, from the first one on.
    times: Vec<Duration>,
}

impl Log {
    /// - `positions`: for each request of the file its position among those that were chosen.
    pub(super) fn new(arrivals: &[Arrival], positions: &[Option<u32>]) -> Self {
        let chosen = arrivals.iter().filter_map(|arrival| {
            let position = positions.get(arrival.request).copied().flatten()?;
            Some((position, arrival.at))
        });
        let (entries, mut times): (Vec<_>, Vec<_>) = chosen.unzip();
        let first = times.first().copied().unwrap_or_default();
        for time in &mut times {
            *time -= first;
        }
        Self {
            entries: entries.into(),
            times,
        }
    }

    /// The time between its first entry and its last one.
    pub(crate) fn length(&self) -> Duration {
        self.times.last().copied().unwrap_or_default()
    }

    /// When each entry is sent if the log is replayed `pace` times as fast as it was written.
    pub(crate) fn times(&self, pace: f64) -> Arc<[Duration]> {
        let times = self.times.iter();
        times.map(|time| time.div_f64(pace)).collect()
    }

    /// A line on what was read.
    pub(super) fn note(&self, path: &Path) -> Problem {
        let entries = self.entries.len();
        let length = self.length();
        let requests = if entries == 1 { "request" } else { "requests" };
        let message = format!(
            "{}: {entries} {requests} in {}",
            path.display(),
            DurationText(length)
        );
        let problem = Problem::with("--from", message);
        match self.silence() {
            Some(silence) => problem.hint(silence.to_string()),
            None => problem,
        }
    }

    /// The silence that is most of the log, as one old line before all others makes it.
    fn silence(&self) -> Option<Silence> {
        let following = self.times.iter().skip(1);
        let gaps = self
            .times
            .iter()
            .zip(following)
            .map(|(one, next)| next.saturating_sub(*one));
        let (position, length) = gaps.enumerate().max_by_key(|(_, gap)| *gap)?;
        let is_most = length >= LEAST_SILENCE && length > self.length() / 2;
        is_most.then(|| Silence {
            length,
            before: position + 1,
            after: self.times.len() - position - 1,
        })
    }
}

/// A time without requests within a log.
#[derive(Debug, PartialEq, Eq)]
struct Silence {
    length: Duration,
    /// Requests before it and after it.
    before: usize,
    after: usize,
}

impl fmt::Display for Silence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            length,
            before,
            after,
        } = self;
        write!(
            f,
            "{} of it is one silence, with {before} before it and {after} after it; \
             delete the lines on one side of it for a replay without it",
            DurationText(*length)
        )
    }
}

/// Sets the requests aside that a log does not hold whole, unless the selection names their methods; returns a note
/// on them.
pub(super) fn leave_out_bodies(
    file: &mut RequestFile,
    only: &[Selector],
    path: &Path,
) -> Option<Problem> {
    if only.iter().any(Selector::is_by_method) {
        return None;
    }
    let mut left_out: BTreeMap<String, u64> = BTreeMap::new();
    for request in &mut file.requests {
        let method = request.method.as_deref().unwrap_or("GET");
        if !SENT.contains(&method) {
            *left_out.entry(method.to_owned()).or_default() += u64::from(request.weight);
            request.weight = 0;
        }
    }
    let (first, _) = left_out.first_key_value()?;
    let hint = format!("`--only method={first}` sends them, without a body");
    let counted: Vec<_> = left_out
        .iter()
        .map(|(method, count)| format!("{count} {method}"))
        .collect();
    let message = format!(
        "{}: left out {}: the log has no bodies",
        path.display(),
        counted.join(", ")
    );
    Some(Problem::with("--from", message).hint(hint))
}

/// The problem with a log and no URL.
pub(super) fn needs_url(file: &RequestFile, path: &Path) -> Problem {
    let mut hosts: Vec<_> = file
        .requests
        .iter()
        .filter_map(|request| request.host.as_deref())
        .collect();
    hosts.sort_unstable();
    hosts.dedup();
    let message = format!(
        "{} is an access log; its requests need a server",
        path.display()
    );
    let problem = Problem::with("--from", message);
    let give = "give its URL on the command line, such as http://127.0.0.1:8080";
    match hosts.as_slice() {
        [] => problem.hint(give),
        hosts => {
            let more = if hosts.len() > MOST_HOSTS {
                " and others"
            } else {
                ""
            };
            let shown = hosts[..hosts.len().min(MOST_HOSTS)].join(", ");
            problem.hint(format!("{give}; the log is of {shown}{more}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn silence(seconds: &[u64]) -> Option<Silence> {
        let arrivals: Vec<_> = seconds
            .iter()
            .map(|seconds| Arrival {
                at: Duration::from_secs(*seconds),
                request: 0,
            })
            .collect();
        Log::new(&arrivals, &[Some(0)]).silence()
    }

    #[test]
    fn a_silence_that_is_most_of_the_log_is_named() {
        let stray = Silence {
            length: Duration::from_hours(24),
            before: 1,
            after: 3,
        };
        assert_eq!(silence(&[0, 86_400, 86_401, 86_402]), Some(stray));
        assert_eq!(silence(&[0, 1, 2, 3]), None, "short");
        assert_eq!(silence(&[0, 60, 120, 180]), None, "even");
        assert_eq!(silence(&[0]), None);
        assert_eq!(silence(&[]), None);
    }
}
