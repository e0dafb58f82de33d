//! The exchanges of a script as JSON, for the files that a run against a URL has too.

use std::time::Duration;

use plimsoll_load::scenario::{ExchangeSecond, FirstRequest, PartExchanges};
use plimsoll_model::{Protocol, RequestFigures};
use serde::{Deserialize, Serialize};

use super::figures::{Figures, FiguresError, RequestRecord, read_histogram, write};

const PROTOCOLS: [Protocol; 4] = [
    Protocol::Http1,
    Protocol::Http2,
    Protocol::Http3,
    Protocol::WebSocket,
];

/// What virtual users of an agent have exchanged since its last tick.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ExchangesRecord {
    seconds: Vec<SecondRecord>,
    /// By name.
    requests: Vec<(String, RequestRecord)>,
    /// Method, URL and protocol of one of them.
    first: Option<(String, String, String)>,
    /// Durations of iterations from their intended starts.
    iterations: String,
    /// Since the start of the run.
    dropped: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SecondRecord {
    at_us: u64,
    is_last: bool,
    figures: Figures,
}

impl ExchangesRecord {
    pub(super) fn from_part(part: &PartExchanges) -> Self {
        let seconds = part.seconds.iter().map(|second| SecondRecord {
            at_us: u64::try_from(second.at.as_micros()).unwrap_or(u64::MAX),
            is_last: second.is_last,
            figures: Figures::from_interval(&second.interval),
        });
        let requests = part.requests.iter();
        let requests = requests.map(|it| (it.name.clone(), RequestRecord::from_figures(it)));
        let first = part.first.as_ref().map(|first| {
            let protocol = first.protocol.name().to_owned();
            (first.method.clone(), first.url.clone(), protocol)
        });
        Self {
            seconds: seconds.collect(),
            requests: requests.collect(),
            first,
            iterations: write(&part.iterations),
            dropped: part.dropped,
        }
    }

    pub(super) fn read(&self) -> Result<PartExchanges, FiguresError> {
        let seconds = self.seconds.iter().map(|second| {
            Ok(ExchangeSecond {
                at: Duration::from_micros(second.at_us),
                is_last: second.is_last,
                interval: Box::new(second.figures.read()?),
            })
        });
        let requests = self.requests.iter().map(|(name, record)| {
            Ok(RequestFigures {
                name: name.clone(),
                ..record.read()?
            })
        });
        let first = self.first.as_ref().map(|(method, url, protocol)| {
            let mut known = PROTOCOLS.into_iter();
            let protocol = known.find(|known| known.name() == protocol);
            Ok(FirstRequest {
                method: method.clone(),
                url: url.clone(),
                protocol: protocol.ok_or(FiguresError("protocol"))?,
            })
        });
        Ok(PartExchanges {
            seconds: seconds.collect::<Result<_, FiguresError>>()?,
            requests: requests.collect::<Result<_, FiguresError>>()?,
            first: first.transpose()?,
            iterations: read_histogram(&self.iterations)?,
            dropped: self.dropped,
        })
    }

    /// What a checksum counts of each second: its end, and the exchanges begun and complete.
    pub(super) fn counted(&self, mut count: impl FnMut(u64, u64)) {
        for second in &self.seconds {
            let (begun, ok) = second.figures.begun();
            count(second.at_us << 2, 1);
            count((second.at_us << 2) | 1, begun);
            count((second.at_us << 2) | 2, ok);
        }
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_load::Interval;
    use plimsoll_model::Histogram;

    use super::*;
    use crate::message::{Checksum, ScriptFigures};

    fn exchanges(is_open: bool) -> PartExchanges {
        let second = |number: u64| {
            let mut interval = Interval::new(0, is_open);
            interval.counts.started = number;
            interval.counts.ok = number;
            interval.bytes_received = 100;
            interval.from_started.record(Duration::from_millis(number));
            ExchangeSecond {
                at: Duration::from_micros(1_000_000 * number + 1),
                is_last: number == 2,
                interval: Box::new(interval),
            }
        };
        let mut request = RequestFigures {
            name: "GET shop".to_owned(),
            ok: 2,
            error_statuses: 1,
            ..RequestFigures::default()
        };
        request.latency.record(Duration::from_millis(7));
        let mut iterations = Histogram::new();
        iterations.record(Duration::from_millis(70));
        PartExchanges {
            seconds: vec![second(1), second(2)],
            requests: vec![request],
            first: Some(FirstRequest {
                method: "GET".to_owned(),
                url: "http://shop/".to_owned(),
                protocol: Protocol::Http3,
            }),
            iterations,
            dropped: 5,
        }
    }

    fn figures(exchanges: &PartExchanges) -> ScriptFigures {
        ScriptFigures::new(&[], Vec::new(), Vec::new(), &[], Some(exchanges))
    }

    #[test]
    fn exchanges_are_carried_whole() {
        for is_open in [false, true] {
            let sent = exchanges(is_open);
            let text = serde_json::to_string(&figures(&sent)).unwrap();
            let read: ScriptFigures = serde_json::from_str(&text).unwrap();
            let read = read.exchanges().unwrap().unwrap();
            let shown = |exchanges: &PartExchanges| {
                let seconds = exchanges.seconds.iter().map(|second| {
                    let interval = &second.interval;
                    let times = interval.honest_latency().max();
                    (
                        second.at,
                        second.is_last,
                        interval.counts,
                        interval.bytes_received,
                        times,
                    )
                });
                seconds.collect::<Vec<_>>()
            };
            assert_eq!(shown(&read), shown(&sent));
            assert!(
                read.seconds
                    .iter()
                    .all(|it| it.interval.from_intended.is_some() == is_open)
            );
            assert_eq!((read.first, read.dropped), (sent.first, 5));
            let (request, expected) = (&read.requests[0], &sent.requests[0]);
            assert_eq!(request.name, "GET shop");
            assert_eq!((request.ok, request.error_statuses), (2, 1));
            assert_eq!(
                request.latency.quantile(0.5),
                expected.latency.quantile(0.5)
            );
            assert_eq!(read.iterations.max(), sent.iterations.max());
        }
    }

    #[test]
    fn a_protocol_that_is_none_is_refused() {
        let text = serde_json::to_string(&figures(&exchanges(false))).unwrap();
        let name = Protocol::Http3.name();
        assert!(text.contains(name), "{text}");
        let read: ScriptFigures = serde_json::from_str(&text.replace(name, "telnet")).unwrap();
        assert_eq!(read.exchanges().unwrap_err(), FiguresError("protocol"));
    }

    #[test]
    fn a_second_that_is_lost_or_counted_twice_changes_the_checksum() {
        let whole = exchanges(false);
        let (mut one, mut other) = (whole.clone(), whole.clone());
        one.seconds.truncate(1);
        other.seconds.remove(0);
        let of = |exchanges: &PartExchanges| Checksum::of_script(&figures(exchanges));
        let mut sum = of(&one);
        assert_ne!(sum, of(&whole));
        sum.add(&of(&other));
        assert_eq!(sum, of(&whole));
        sum.add(&of(&other));
        assert_ne!(sum, of(&whole));
    }
}
