//! Metrics of sites: under the names of servy and gosherve, and more.
//!
//! Each worker counts for itself; the sums are made when somebody asks.

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use plimsoll_model::{Clock, MetricsText};
use plimsoll_server::{Action, Answer, Figures, Outcome, Request};
use plimsoll_wire::SystemClock;

use crate::rules::links::Links;

/// The default prefix of names.
const PREFIX: &str = "plimsoll_site";

/// Statuses are counted from this one on.
const FIRST_STATUS: usize = 100;

const STATUSES: usize = 500;

/// Upper bounds of latency, in microseconds.
const BOUNDS: [u64; 10] = [
    5, 10, 25, 100, 250, 1_000, 10_000, 100_000, 1_000_000, 10_000_000,
];

/// Aliases with a counter of their own; more are counted together as [`OTHER`]. Each is a Prometheus series, and
/// 10,000 is what a scrape should carry at most.
const MOST_ALIASES: usize = 10_000;

/// No alias, since those have no blanks.
const OTHER: &str = "and others";

/// Counters of all sites of a server.
#[derive(Debug, Default)]
pub(crate) struct SiteFigures {
    workers: Mutex<Workers>,
    links: Mutex<Vec<Weak<Links>>>,
}

#[derive(Debug, Default)]
struct Workers {
    live: Vec<Arc<WorkerFigures>>,
    /// Of workers' sites that a reload replaced.
    retired: Sums,
}

/// Counters of one site on one worker, which alone writes them.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct WorkerFigures {
    statuses: [AtomicU64; STATUSES],
    bytes: AtomicU64,
    hits: AtomicU64,
    misses: AtomicU64,
    /// Answers by their latency: the bounds of [`BOUNDS`], and those beyond.
    latencies: [AtomicU64; BOUNDS.len() + 1],
    latency_ns: AtomicU64,
    aliases: Mutex<HashMap<Box<str>, u64>>,
}

impl Default for WorkerFigures {
    fn default() -> Self {
        Self {
            statuses: [const { AtomicU64::new(0) }; STATUSES],
            bytes: AtomicU64::default(),
            hits: AtomicU64::default(),
            misses: AtomicU64::default(),
            latencies: Default::default(),
            latency_ns: AtomicU64::default(),
            aliases: Mutex::default(),
        }
    }
}

#[derive(Debug, Clone, Default)]
struct Sums {
    statuses: BTreeMap<usize, u64>,
    bytes: u64,
    hits: u64,
    misses: u64,
    latencies: [u64; BOUNDS.len() + 1],
    latency_ns: u64,
    aliases: BTreeMap<Box<str>, u64>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One writer each, so reading and writing back is enough, and cheaper than adding.
#[inline]
fn add(counter: &AtomicU64, number: u64) {
    counter.store(counter.load(Ordering::Relaxed) + number, Ordering::Relaxed);
}

impl SiteFigures {
    /// The figures of one more site of a worker.
    pub(crate) fn worker(&self) -> Arc<WorkerFigures> {
        let figures = Arc::<WorkerFigures>::default();
        let mut workers = lock(&self.workers);
        workers.retire();
        workers.live.push(Arc::clone(&figures));
        figures
    }

    /// Counts the entries of these lists from now on.
    pub(crate) fn count_links(&self, lists: &[Arc<Links>]) {
        let mut known = lock(&self.links);
        known.retain(|list| list.strong_count() > 0);
        for list in lists {
            let list = Arc::downgrade(list);
            if !known.iter().any(|known| known.ptr_eq(&list)) {
                known.push(list);
            }
        }
    }

    fn defined(&self) -> usize {
        let lists = lock(&self.links);
        let lists = lists.iter().filter_map(Weak::upgrade);
        lists.map(|list| list.count()).sum()
    }

    fn sums(&self) -> Sums {
        let mut workers = lock(&self.workers);
        workers.retire();
        let mut sums = workers.retired.clone();
        for figures in &workers.live {
            sums.add(figures);
        }
        sums
    }
}

impl Workers {
    /// Keeps the sums of workers that have ended.
    fn retire(&mut self) {
        let retired = &mut self.retired;
        self.live.retain(|figures| {
            let is_live = Arc::strong_count(figures) > 1;
            if !is_live {
                retired.add(figures);
            }
            is_live
        });
    }
}

impl WorkerFigures {
    #[inline]
    pub(crate) fn hit(&self) {
        add(&self.hits, 1);
    }

    #[inline]
    pub(crate) fn missed(&self) {
        add(&self.misses, 1);
    }

    /// A client was sent where `alias` leads.
    pub(crate) fn redirected(&self, alias: &str) {
        let mut aliases = lock(&self.aliases);
        let is_full = aliases.len() >= MOST_ALIASES;
        match aliases.get_mut(alias) {
            Some(count) => *count += 1,
            None if is_full => *aliases.entry(OTHER.into()).or_default() += 1,
            None => {
                aliases.insert(alias.into(), 1);
            }
        }
    }

    fn answered(&self, outcome: &Outcome, is_head: bool, latency: Duration) {
        let Outcome::Respond(response) = outcome else {
            return;
        };
        let status = usize::from(response.status().as_u16());
        let at = status.saturating_sub(FIRST_STATUS).min(STATUSES - 1);
        add(&self.statuses[at], 1);
        if !is_head {
            add(&self.bytes, response.length().unwrap_or_default());
        }
        let micros = u64::try_from(latency.as_micros()).unwrap_or(u64::MAX);
        let at = BOUNDS.iter().position(|bound| micros < *bound);
        add(&self.latencies[at.unwrap_or(BOUNDS.len())], 1);
        let nanos = u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX);
        add(&self.latency_ns, nanos);
    }
}

impl Sums {
    fn add(&mut self, figures: &WorkerFigures) {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        for (at, counter) in figures.statuses.iter().enumerate() {
            let count = read(counter);
            if count > 0 {
                *self.statuses.entry(at + FIRST_STATUS).or_default() += count;
            }
        }
        for (sum, counter) in self.latencies.iter_mut().zip(&figures.latencies) {
            *sum += read(counter);
        }
        self.bytes += read(&figures.bytes);
        self.hits += read(&figures.hits);
        self.misses += read(&figures.misses);
        self.latency_ns += read(&figures.latency_ns);
        for (alias, count) in &*lock(&figures.aliases) {
            let is_known = self.aliases.len() < MOST_ALIASES || self.aliases.contains_key(alias);
            let name = if is_known { alias } else { OTHER };
            *self.aliases.entry(name.into()).or_default() += count;
        }
    }
}

impl Figures for SiteFigures {
    fn show(&self, prefix: Option<&str>, text: &mut MetricsText) {
        let prefix = prefix.unwrap_or(PREFIX);
        let sums = self.sums();
        let named = |name: &str| format!("{prefix}_{name}");

        let name = named("requests_total");
        let requests: u64 = sums.statuses.values().sum();
        text.family(&name, "counter", "Requests that sites answered.");
        text.sample(&name, &[], requests);

        let name = named("redirects_served");
        text.family(&name, "counter", "Clients sent on, by short link.");
        for (alias, count) in &sums.aliases {
            text.sample(&name, &[("alias", alias)], count);
        }

        let name = named("redirects_defined");
        text.family(&name, "gauge", "Short links that are defined.");
        text.sample(&name, &[], self.defined());

        let name = named("response_status");
        text.family(&name, "counter", "Answers of sites, by status.");
        for (status, count) in &sums.statuses {
            text.sample(&name, &[("status", &status.to_string())], count);
        }

        let name = named("response_bytes_total");
        text.family(&name, "counter", "Content of answers, in bytes.");
        text.sample(&name, &[], sums.bytes);

        let name = named("cache_requests_total");
        let help = "Requests by whether their file was at hand in memory.";
        text.family(&name, "counter", help);
        text.sample(&name, &[("result", "hit")], sums.hits);
        text.sample(&name, &[("result", "miss")], sums.misses);

        let name = named("response_seconds");
        let help = "Time until an answer is ready to be sent.";
        text.family(&name, "histogram", help);
        let bounds = BOUNDS
            .iter()
            .map(|micros| Duration::from_micros(*micros).as_secs_f64());
        let within: u64 = sums.latencies.iter().take(BOUNDS.len()).sum();
        let seconds = Duration::from_nanos(sums.latency_ns).as_secs_f64();
        text.histogram(
            &name,
            &[],
            bounds.zip(sums.latencies.iter().copied()),
            requests.saturating_sub(within),
            seconds,
        );
    }
}

/// Lets a site answer, and counts it.
pub(crate) struct Measured {
    inner: Rc<dyn Action>,
    figures: Arc<WorkerFigures>,
}

impl Measured {
    pub(crate) fn new(inner: Rc<dyn Action>, figures: Arc<WorkerFigures>) -> Self {
        Self { inner, figures }
    }
}

impl Action for Measured {
    fn methods(&self) -> Option<&'static str> {
        self.inner.methods()
    }

    fn handle(&self, request: &Request<'_>) -> Answer {
        let begun = SystemClock.now();
        let is_head = request.method == "HEAD";
        match self.inner.handle(request) {
            Answer::Now(outcome) => {
                let latency = SystemClock.now().saturating_duration_since(begun);
                self.figures.answered(&outcome, is_head, latency);
                Answer::Now(outcome)
            }
            Answer::Later(later) => {
                let figures = Arc::clone(&self.figures);
                Answer::Later(Box::pin(async move {
                    let outcome = later.await;
                    let latency = SystemClock.now().saturating_duration_since(begun);
                    figures.answered(&outcome, is_head, latency);
                    outcome
                }))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use http::StatusCode;
    use plimsoll_server::Response;

    use super::*;

    fn shown(figures: &SiteFigures, prefix: Option<&str>) -> String {
        let mut text = MetricsText::default();
        figures.show(prefix, &mut text);
        text.as_str().to_owned()
    }

    #[test]
    fn workers_are_added_up_and_survive_a_reload() {
        let figures = SiteFigures::default();
        let (one, other) = (figures.worker(), figures.worker());
        let ok = Outcome::Respond(Response::text(StatusCode::OK, "four"));
        one.answered(&ok, false, Duration::from_micros(7));
        other.answered(&ok, true, Duration::from_mins(1));
        other.redirected("a\"b");
        drop(other);
        one.redirected("a\"b");
        one.hit();
        let text = shown(&figures, Some("servy"));
        for expected in [
            "\nservy_requests_total 2\n",
            "\nservy_redirects_served{alias=\"a\\\"b\"} 2\n",
            "\nservy_redirects_defined 0\n",
            "\nservy_response_status{status=\"200\"} 2\n",
            "\nservy_response_bytes_total 4\n",
            "\nservy_cache_requests_total{result=\"hit\"} 1\n",
            "\nservy_cache_requests_total{result=\"miss\"} 0\n",
            "\nservy_response_seconds_bucket{le=\"0.000005\"} 0\n",
            "\nservy_response_seconds_bucket{le=\"0.00001\"} 1\n",
            "\nservy_response_seconds_bucket{le=\"10\"} 1\n",
            "\nservy_response_seconds_bucket{le=\"+Inf\"} 2\n",
            "\nservy_response_seconds_sum 60.000007\n",
            "\nservy_response_seconds_count 2\n",
        ] {
            assert!(text.contains(expected), "no {expected} in {text}");
        }
        assert!(shown(&figures, None).contains("\nplimsoll_site_requests_total 2\n"));
    }

    #[test]
    fn labels_are_bounded() {
        let figures = SiteFigures::default();
        for round in 0..2 {
            let worker = figures.worker();
            for number in 0..MOST_ALIASES + 5 {
                worker.redirected(&format!("{round}-{number}"));
            }
        }
        let sums = figures.sums();
        assert!(sums.aliases.len() <= MOST_ALIASES + 1);
        let counted: u64 = sums.aliases.values().sum();
        assert_eq!(counted, 2 * (MOST_ALIASES as u64 + 5));
    }
}
