//! Conditions that can make a measurement misleading, found in the measurement itself.
//!
//! Pure: figures of a run in, sentences for its readers out.

use std::time::Duration;

use plimsoll_model::{
    Conditions, DurationText, Histogram, ObservedServer, Phase, RunSummary, three_figures,
};

/// Of the local ports, connections closed within the last minute hold theirs (RFC 9293, TIME-WAIT).
const TIME_WAIT: Duration = Duration::from_mins(1);

/// From this share of the local ports on, new connections may find none.
const PORTS_SHARE: f64 = 0.5;

/// From this share of all cores on, the two sides wait for each other.
const BUSY_SHARE: f64 = 0.95;

/// Linux delays acknowledgements by 40 ms at least (`TCP_DELACK_MIN`); timers fire late, not early.
const DELAYED: (Duration, Duration) = (Duration::from_millis(39), Duration::from_millis(48));

/// Where there are few answers if those between are so late because of that.
const DELAYED_BESIDE: (Duration, Duration) = (Duration::from_millis(22), Duration::from_millis(65));

/// Answers that came as late as that, of all, before one speaks of it.
const DELAYED_SHARE: f64 = 0.000_2;

/// Responses whose content was that late behind the head, of all, before one speaks of it.
const DELAYED_RECEIVE_SHARE: f64 = 0.2;

/// Responses of that many bytes are sent in parts, with pauses between them where they are paced.
const PACED_BYTES: u64 = 32 * 1024;

/// Every hazard that `run` shows.
///
/// - `stream_limit`: the fewest streams that a server allows at a time, where that is fewer than configured.
/// - `surplus`: responses behind which more bytes came than they announce.
pub(crate) fn warnings(
    run: &RunSummary,
    endpoints: usize,
    stream_limit: Option<usize>,
    surplus: u64,
) -> Vec<String> {
    [
        ports(
            run.conditions.local_ports,
            run.connections_opened,
            run.window,
            endpoints,
        ),
        oversubscribed(
            run.conditions.co_located == Some(true),
            run.target.as_ref().and_then(|t| t.cost.cpu_percent()),
            run.generator.cost.cpu_percent(),
            run.conditions.cores,
        ),
        delayed_acknowledgements(
            run.latency.from_started.observed(),
            &run.phases[Phase::Receive.index()],
        ),
        streams(run.load.streams, stream_limit),
        longer_than_announced(surplus),
        paced(&run.conditions, run.bytes_received, run.counts.ok),
        limits(&run.conditions),
        reconnects(run.dropped_by_server(), run.counts.started),
        run.latency.by_status().and_then(|kinds| kinds.caution()),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Processes made for so many of the requests before one speaks of those that were not seen.
const FORKS_SHARE: f64 = 0.05;

/// Children of the target whose processor time is not in its cost.
///
/// - `made`: processes that the machine made meanwhile, if children of the target vanish.
/// - `exchanges`: responses completed within the window.
pub(crate) fn unseen_children(made: Option<u64>, exchanges: u64) -> Option<String> {
    let made = made.filter(|made| *made as f64 > FORKS_SHARE * exchanges as f64)?;
    Some(format!(
        "the target ignores SIGCHLD, so its children vanish as they end, and their processor time with \
         them ({made} processes were made on this machine meanwhile): the cost per request is that of the \
         target without them. Run it in a control group of its own, such as `systemd-run --scope`"
    ))
}

/// What readers of the figures of observed servers should know.
pub(crate) fn observed(servers: &[ObservedServer]) -> Vec<String> {
    servers.iter().flat_map(of_observed).collect()
}

fn of_observed(server: &ObservedServer) -> Vec<String> {
    let name = &server.name;
    let mut found = Vec::new();
    if let Some(first) = server.gaps.first() {
        let times = match server.gaps.len() {
            1 => String::new(),
            number => format!(" in {number} gaps"),
        };
        found.push(format!(
            "{name} gave no samples for {}{times}, first from {} on: {}",
            DurationText(server.unseen()),
            DurationText(first.from),
            first.reason
        ));
    }
    if !server.is_whole {
        let seen = server.cost.as_ref().map(|cost| cost.cost.window);
        found.push(match seen {
            Some(seen) => format!(
                "the cost of {name} is that of the {} that were observed, and thresholds on it have no data",
                DurationText(seen)
            ),
            None => format!("{name} was not observed in the measured window: its cost is not known"),
        });
    }
    found
}

fn reconnects(dropped: Option<u64>, started: u64) -> Option<String> {
    let dropped = dropped?;
    let share = dropped as f64 / started as f64 * 100.0;
    Some(format!(
        "{dropped} of {started} requests ({} %) were sent again, because the server closed the connection they \
         were sent on: more than idle connections that happen to be closed. Clients that do not repeat requests see \
         them fail",
        three_figures(share)
    ))
}

fn ports(local: Option<u32>, opened: u64, window: Duration, endpoints: usize) -> Option<String> {
    let ports = f64::from(local?) * endpoints as f64;
    // Those opened longer ago than a minute have given theirs back.
    let held = opened as f64 * (TIME_WAIT.as_secs_f64() / window.as_secs_f64().max(1e-3)).min(1.0);
    (held > PORTS_SHARE * ports).then(|| {
        format!(
            "{opened} connections were opened, and a closed one keeps its local port for a minute: of \
             {ports:.0} most may be taken. Keep connections alive, use more ports or addresses of the \
             target, or widen net.ipv4.ip_local_port_range"
        )
    })
}

/// - `target`, `generator`: processor time over time, in percent of one core.
fn oversubscribed(
    co_located: bool,
    target: Option<f64>,
    generator: Option<f64>,
    cores: usize,
) -> Option<String> {
    let both = (target? + generator.unwrap_or(0.0)) / 100.0;
    let cores = cores as f64;
    (co_located && both > BUSY_SHARE * cores).then(|| {
        format!(
            "generator and target together used {both:.1} of {cores:.0} cores: each waited for the \
             other, and tails of latency are those of the scheduler"
        )
    })
}

/// RFC 9112, section 6.3: what follows the announced length is no part of the response.
fn longer_than_announced(surplus: u64) -> Option<String> {
    (surplus > 0).then(|| {
        format!(
            "behind {surplus} responses came more bytes than they announce (`content-length`): those bytes \
             are not counted, and each costs a connection"
        )
    })
}

/// RFC 9113, section 5.1.2: `SETTINGS_MAX_CONCURRENT_STREAMS`.
fn streams(wanted: usize, limit: Option<usize>) -> Option<String> {
    let limit = limit?;
    Some(format!(
        "the server allows {limit} streams at a time on a connection, fewer than the {wanted} of -p: no more \
         were under way. Open more connections (-c), or lower -p to {limit}"
    ))
}

/// Nagle's algorithm (RFC 896) holds a small packet back until the last one is acknowledged, which
/// the other side delays (RFC 9293, section 3.8.6.3).
///
/// - `receive`: from the first byte of a response to its last. Servers that write head and content apart
///   show the plainest case: in every response the content comes 40 ms after the head.
fn delayed_acknowledgements(latency: &Histogram, receive: &Histogram) -> Option<String> {
    let between = |times: &Histogram, from: Duration, to: Duration| {
        let up_to = times.count_up_to(to);
        up_to.saturating_sub(times.count_up_to(from))
    };
    let late = between(receive, DELAYED.0, DELAYED.1);
    if late >= 5 && late as f64 >= DELAYED_RECEIVE_SHARE * receive.len() as f64 {
        return Some(format!(
            "in {late} of {} responses the content came about 40 ms after the head: so late are delayed \
             acknowledgements. Set TCP_NODELAY on the target, or have it write head and content at once",
            receive.len()
        ));
    }
    let there = between(latency, DELAYED.0, DELAYED.1);
    let before = between(latency, DELAYED_BESIDE.0, DELAYED.0);
    let after = between(latency, DELAYED.1, DELAYED_BESIDE.1);
    let is_peak = there > 2 * before && there > 2 * after;
    let usual = latency.quantile(0.5)?;
    let share = there as f64 / latency.len() as f64;
    (is_peak && usual < DELAYED.0 / 4 && share >= DELAYED_SHARE && there >= 5).then(|| {
        format!(
            "{there} answers took about 40 ms and hardly any a little more or less: so late are delayed \
             acknowledgements. Set TCP_NODELAY on the target"
        )
    })
}

fn paced(conditions: &Conditions, received: u64, responses: u64) -> Option<String> {
    let name = conditions.congestion_control.as_deref()?;
    let are_large = responses > 0 && received / responses >= PACED_BYTES;
    (conditions.co_located == Some(true) && name.starts_with("bbr") && are_large).then(|| {
        format!(
            "the system's {name} paces large answers even to this machine itself: they cost a target that \
             keeps it up to three times as much as with cubic (net.ipv4.tcp_congestion_control)"
        )
    })
}

fn limits(conditions: &Conditions) -> Option<String> {
    let cpus = conditions.limits.cpus?;
    (cpus < conditions.cores as f64).then(|| {
        format!(
            "a control group allows the generator {cpus:.2} of {} cores: it is stopped for the rest of \
             each period",
            conditions.cores
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn latency(values: &[(u64, u64)]) -> Histogram {
        let mut histogram = Histogram::new();
        for &(micros, count) in values {
            for _ in 0..count {
                histogram.record(Duration::from_micros(micros));
            }
        }
        histogram
    }

    #[test]
    fn local_ports_run_out() {
        let minute = Duration::from_mins(1);
        let warning = |opened, window, endpoints| ports(Some(28_232), opened, window, endpoints);
        assert!(warning(20_000, minute, 1).is_some());
        assert_eq!(warning(20_000, minute, 2), None);
        assert_eq!(warning(64, minute, 1), None);
        // In ten minutes a tenth of them are held.
        assert_eq!(warning(100_000, minute * 10, 1), None);
        assert_eq!(ports(None, 1_000_000, minute, 1), None);
    }

    #[test]
    fn two_sides_that_leave_no_core_idle_wait_for_each_other() {
        let warning = |co_located, target, generator, cores| {
            oversubscribed(co_located, target, generator, cores).is_some()
        };
        assert!(warning(true, Some(100.0), Some(95.0), 2));
        assert!(!warning(true, Some(100.0), Some(80.0), 2));
        assert!(!warning(true, Some(100.0), Some(95.0), 4));
        // On two machines they do not.
        assert!(!warning(false, Some(100.0), Some(95.0), 2));
        assert!(!warning(true, None, Some(199.0), 2));
    }

    fn conditions() -> Conditions {
        let before = crate::conditions::Before::observe(std::time::SystemTime::UNIX_EPOCH);
        before.after(crate::conditions::RunFacts::default())
    }

    #[test]
    fn large_answers_that_are_paced_on_the_loopback_are_reported() {
        let mut conditions = conditions();
        conditions.congestion_control = Some("bbr".into());
        conditions.co_located = Some(true);
        assert_eq!(paced(&conditions, 0, 0), None);
        assert_eq!(paced(&conditions, 140 * 1_000, 1_000), None);
        let warning = paced(&conditions, 1_000 * 102_400, 1_000);
        assert!(warning.is_some_and(|warning| warning.starts_with("the system's bbr paces")));
        conditions.congestion_control = Some("cubic".into());
        assert_eq!(paced(&conditions, 1_000 * 102_400, 1_000), None);
        conditions.congestion_control = Some("bbr".into());
        conditions.co_located = Some(false);
        assert_eq!(paced(&conditions, 1_000 * 102_400, 1_000), None);
    }

    #[test]
    fn a_generator_in_a_smaller_group_than_the_machine_is_reported() {
        let mut conditions = conditions();
        conditions.cores = 4;
        conditions.limits.cpus = Some(1.5);
        let warning = limits(&conditions);
        assert!(warning.is_some_and(|warning| warning.contains("1.50 of 4 cores")));
        conditions.limits.cpus = Some(4.0);
        assert_eq!(limits(&conditions), None);
    }

    #[test]
    fn a_peak_at_forty_milliseconds_is_that_of_delayed_acknowledgements() {
        let warning = |values: &[(u64, u64)]| {
            delayed_acknowledgements(&latency(values), &Histogram::new()).is_some()
        };
        assert!(warning(&[(300, 9_900), (41_000, 60), (43_500, 40)]));
        // A tail that passes by there is none.
        assert!(!warning(&[
            (300, 9_900),
            (25_000, 60),
            (41_000, 60),
            (60_000, 60)
        ]));
        // Nor is a target that takes 40 ms for all.
        assert!(!warning(&[(41_000, 10_000)]));
        assert!(!warning(&[(300, 100_000), (41_000, 4)]));
        assert!(!warning(&[]));
    }

    #[test]
    fn content_that_always_comes_forty_milliseconds_after_its_head_is_reported() {
        // Python's http.server: two writes for each response, and p50 is 44 ms.
        let receive = latency(&[(42_500, 986), (200, 14)]);
        let warning = delayed_acknowledgements(&latency(&[(44_000, 986), (1_500, 14)]), &receive);
        assert!(warning.is_some_and(|warning| warning.starts_with("in 986 of 1000 responses")));
        // A target that takes 40 ms to its first byte.
        let slow = latency(&[(44_000, 1_000)]);
        assert_eq!(
            delayed_acknowledgements(&slow, &latency(&[(30, 1_000)])),
            None
        );
        // One that streams for about as long.
        let streamed = latency(&[(20_000, 400), (41_000, 100), (70_000, 500)]);
        assert_eq!(delayed_acknowledgements(&slow, &streamed), None);
    }

    #[test]
    fn fewer_streams_than_requested_are_reported() {
        assert_eq!(streams(500, None), None);
        let warning = streams(500, Some(128)).unwrap();
        assert!(
            warning.contains("128 streams") && warning.contains("500"),
            "{warning}"
        );
    }

    #[test]
    fn children_that_vanish_are_reported_where_the_target_makes_some() {
        assert_eq!(unseen_children(None, 100), None);
        assert_eq!(unseen_children(Some(3), 100), None);
        let warning = unseen_children(Some(100), 100).unwrap();
        assert!(warning.contains("SIGCHLD"), "{warning}");
    }

    #[test]
    fn many_requests_sent_again_are_reported() {
        assert_eq!(reconnects(None, 1_000), None);
        let warning = reconnects(Some(97), 485).unwrap();
        assert!(
            warning.starts_with("97 of 485 requests (20.0 %)"),
            "{warning}"
        );
    }
}
