//! The line of progress of a run.

use std::time::Duration;

use plimsoll_model::{Bounded, ExchangeKind, Histogram, Tick, rate_figures};

use super::WIDTH;
use super::numbers::{bounded, count, duration};
use super::page::shortened;
use super::style::{Emphasis, Style};

/// Progress of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    /// Length of the run, warm-up included, if it is bounded by time.
    pub duration: Option<Duration>,
    /// Requests in total, if it is bounded by number.
    pub requests: Option<u64>,
    /// Requests completed or failed so far.
    pub done: u64,
    /// The kind of exchange.
    pub exchanges: ExchangeKind,
    /// Failures so far, failed statuses, unmet expectations and drops included.
    pub errors: u64,
}

/// Seconds that one line is for.
#[derive(Debug, Default)]
pub struct SecondsTogether {
    ok: u64,
    events: u64,
    length: Duration,
    /// The latency of the run at the last line.
    before: Histogram,
}

impl SecondsTogether {
    /// Adds a second.
    pub fn add(&mut self, tick: &Tick) {
        self.ok += tick.ok;
        self.events += tick.events;
        self.length += tick.length;
    }

    /// The seconds that were added since the last line, as one; `last` is the last of them.
    ///
    /// - `latency`: of the run until now.
    pub fn end_line(&mut self, last: &Tick, latency: &Histogram) -> Tick {
        let since = latency.without(&self.before);
        self.before = latency.clone();
        Tick {
            ok: std::mem::take(&mut self.ok),
            events: std::mem::take(&mut self.events),
            length: std::mem::take(&mut self.length),
            p50: since.quantile(0.5).map(Bounded::exact),
            p99: since.quantile(0.99).map(Bounded::exact),
            ..last.clone()
        }
    }
}

/// One line of at most 80 columns for the second that has just gone by, without a line feed.
pub fn live(tick: &Tick, progress: &Progress, style: Style) -> String {
    let elapsed = clock(tick.at);
    let position = match (progress.duration, progress.requests) {
        (Some(duration), _) => format!("{elapsed}/{}", clock(duration)),
        (None, Some(requests)) => {
            format!("{elapsed}  {}/{}", count(progress.done), count(requests))
        }
        (None, None) => elapsed,
    };
    let seconds = tick.length.as_secs_f64();
    let per_second = if seconds > 0.0 {
        tick.ok as f64 / seconds
    } else {
        0.0
    };
    let events = match progress.exchanges {
        ExchangeKind::Stream if seconds > 0.0 => {
            format!(
                "  {:>9} events/s",
                rate_figures(tick.events as f64 / seconds)
            )
        }
        _ => String::new(),
    };
    let warm_up = match (tick.warm_up, tick.grace) {
        (true, _) => "  warm-up",
        (false, true) => "  grace",
        (false, false) => "",
    };
    let figures = format!(
        "{position:>9}  {:>9} {}{events}  p50 {:>7}  p99 {:>7}{warm_up}",
        rate_figures(per_second),
        progress.exchanges.short_rate(),
        bounded(tick.p50),
        bounded(tick.p99),
    );
    let errors = match progress.errors {
        0 => String::new(),
        errors => format!("  {} failed", count(errors)),
    };
    let figures = shortened(&figures, WIDTH - errors.chars().count().min(WIDTH));
    format!("{figures}{}", style.apply(Emphasis::Error, &errors))
}

/// Whole seconds up to two minutes, then what suits.
fn clock(time: Duration) -> String {
    let rounded = Duration::from_secs((time + Duration::from_millis(500)).as_secs());
    if rounded < Duration::from_mins(2) {
        format!("{}s", rounded.as_secs())
    } else if rounded < Duration::from_hours(2) {
        format!("{}m{:02}s", rounded.as_secs() / 60, rounded.as_secs() % 60)
    } else {
        duration(rounded).replace(' ', "")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn lines() {
        let tick = fixture::tick(3, false);
        let bounded = Progress {
            duration: Some(Duration::from_secs(10)),
            ..Progress::default()
        };
        let failing = Progress {
            errors: 1_204,
            ..bounded
        };
        let numbered = Progress {
            requests: Some(1_000_000),
            done: 144_312,
            ..Progress::default()
        };
        let mut silent = fixture::tick(4_000, false);
        (silent.ok, silent.p50, silent.p99) = (0, None, None);
        let lines = [
            live(&fixture::tick(1, true), &bounded, Style::Plain),
            live(&tick, &bounded, Style::Plain),
            live(&tick, &failing, Style::Plain),
            live(&tick, &failing, Style::Ansi).replace('\x1b', "ESC"),
            live(&tick, &numbered, Style::Plain),
            live(&silent, &Progress::default(), Style::Plain),
        ];
        insta::assert_snapshot!(lines.join("\n"));
    }

    #[test]
    fn a_line_fits_whatever_the_figures() {
        let mut tick = fixture::tick(7_000_000, true);
        tick.ok = u64::MAX;
        let progress = Progress {
            requests: Some(u64::MAX),
            done: u64::MAX,
            errors: u64::MAX,
            ..Progress::default()
        };
        let line = live(&tick, &progress, Style::Plain);
        assert!(line.chars().count() <= WIDTH, "{line}");
        assert!(line.ends_with("failed"));
    }

    #[test]
    fn a_line_for_several_seconds_covers_all_of_them() {
        let mut seconds = SecondsTogether::default();
        let mut latency = Histogram::new();
        let mut tick = fixture::tick(1, false);
        for (second, millis) in [(1, 10), (2, 10), (3, 90), (4, 1)] {
            tick.at = Duration::from_secs(second);
            tick.length = Duration::from_secs(1);
            tick.ok = 100;
            (0..100).for_each(|_| latency.record(Duration::from_millis(millis)));
            seconds.add(&tick);
            if second == 1 {
                seconds.end_line(&tick, &latency);
            }
        }
        let line = seconds.end_line(&tick, &latency);
        assert_eq!((line.ok, line.length), (300, Duration::from_secs(3)));
        let millis = |time: Option<Bounded<Duration>>| time.unwrap().low().as_millis();
        assert_eq!((millis(line.p50), millis(line.p99)), (10, 90));
    }
}
