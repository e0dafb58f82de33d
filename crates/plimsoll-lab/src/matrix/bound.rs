//! Is it the harness that was measured?
//!
//! A target that is idle while the latency grows with the connections, one for one, answers a queue in
//! front of something else: a backend that serves one at a time, a generator that does. Its figures
//! are not the target's.

/// Tolerated difference between the growth of latency and that of connections, as exponents.
const ABOUT_ONE: std::ops::RangeInclusive<f64> = 0.85..=1.15;

/// Least ratio of the most connections to the fewest.
const LEAST_RANGE: f64 = 4.0;

/// One closed load on one target.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Point {
    pub(super) connections: u32,
    pub(super) p50_us: f64,
    pub(super) target_is_idle: bool,
}

/// Whether the median grew as the connections did while the target was idle.
///
/// Points in any order; it takes at least two, of which the most connections are four times the least.
pub(super) fn is_harness_bound(points: &[Point]) -> bool {
    let mut sorted = points.to_vec();
    sorted.sort_by_key(|point| point.connections);
    sorted.dedup_by_key(|point| point.connections);
    let (Some(first), Some(last)) = (sorted.first(), sorted.last()) else {
        return false;
    };
    if f64::from(last.connections) < LEAST_RANGE * f64::from(first.connections) {
        return false;
    }
    let grows_alike = |pair: &[Point]| {
        let connections = f64::from(pair[1].connections) / f64::from(pair[0].connections);
        let latency = pair[1].p50_us / pair[0].p50_us;
        ABOUT_ONE.contains(&(latency.ln() / connections.ln()))
    };
    sorted.iter().all(|point| point.target_is_idle) && sorted.windows(2).all(grows_alike)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(rows: &[(u32, f64)], target_is_idle: bool) -> Vec<Point> {
        let point = |&(connections, p50_us)| Point {
            connections,
            p50_us,
            target_is_idle,
        };
        rows.iter().map(point).collect()
    }

    /// Figures of a gateway whose echo backend was a single task.
    const ONE_AT_A_TIME: [(u32, f64); 5] = [
        (1, 624.0),
        (8, 4747.0),
        (32, 19459.0),
        (64, 39455.0),
        (128, 77800.0),
    ];

    #[test]
    fn a_queue_behind_an_idle_target_is_the_harness() {
        assert!(is_harness_bound(&points(&ONE_AT_A_TIME, true)));
        assert!(!is_harness_bound(&points(&ONE_AT_A_TIME, false)));
    }

    #[test]
    fn a_service_that_takes_its_time_is_not() {
        let constant = [(1, 3474.0), (8, 3407.0), (32, 3852.0)];
        assert!(!is_harness_bound(&points(&constant, true)));
        // Too few connections to decide.
        assert!(!is_harness_bound(&points(
            &[(8, 800.0), (16, 1600.0)],
            true
        )));
        assert!(!is_harness_bound(&points(&[(8, 800.0)], true)));
        assert!(!is_harness_bound(&[]));
    }
}
