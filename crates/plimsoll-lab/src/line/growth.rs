//! Whether a queue grows through a window: then the target takes less than it is offered, however
//! short the window is for an objective on latency to notice.
//!
//! Requests under way are sampled all the time. At a rate that the target carries they fluctuate about
//! a level; above it they rise from one part of the window to the next.

/// Parts of a window that are compared.
const PARTS: usize = 6;

/// Samples that each part needs.
const LEAST_SAMPLES: usize = 3;

/// A rise counts from this share of all arrivals of the window on.
const LEAST_SHARE: f64 = 0.01;

/// And from this number of requests on.
const LEAST_RISE: f64 = 3.0;

/// Of the 15 pairs of parts, the rising ones minus the falling ones must be this many: 1 of 120 orders
/// of parts without a trend has so many (Mann 1945, "Nonparametric tests against trend").
const LEAST_ORDER: i32 = 13;

/// Whether the requests under way grow through a window.
///
/// - `in_flight`: how many were under way, at even intervals.
/// - `arrivals`: how many requests were started in the window.
pub(super) fn grows(in_flight: &[u64], arrivals: u64) -> bool {
    if in_flight.len() < PARTS * LEAST_SAMPLES {
        return false;
    }
    let part = |number: usize| {
        let from = number * in_flight.len() / PARTS;
        let to = (number + 1) * in_flight.len() / PARTS;
        let samples = &in_flight[from..to];
        samples.iter().sum::<u64>() as f64 / samples.len() as f64
    };
    let means: Vec<f64> = (0..PARTS).map(part).collect();
    let mut order = 0;
    for (position, earlier) in means.iter().enumerate() {
        for later in &means[position + 1..] {
            order += match later.total_cmp(earlier) {
                std::cmp::Ordering::Greater => 1,
                std::cmp::Ordering::Equal => 0,
                std::cmp::Ordering::Less => -1,
            };
        }
    }
    // The middles of the first and of the last part are less than a window apart.
    let rise = (means[PARTS - 1] - means[0]) * PARTS as f64 / (PARTS - 1) as f64;
    order >= LEAST_ORDER && rise >= LEAST_RISE && rise >= LEAST_SHARE * arrivals as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Samples of a window of 3 s, ten a second, of a server that takes `capacity` of `rate` a second.
    fn queue(rate: f64, capacity: f64) -> Vec<u64> {
        (0..30)
            .map(|sample| {
                let seconds = 1.0 + f64::from(sample) / 10.0;
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "a queue is short and not negative"
                )]
                let queued = ((rate - capacity).max(0.0) * seconds) as u64;
                1 + queued
            })
            .collect()
    }

    #[test]
    fn a_rate_two_percent_above_a_hard_cap_is_noticed() {
        for (rate, expected) in [
            (290_u32, false),
            (300, false),
            (301, false),
            (306, true),
            (312, true),
            (600, true),
        ] {
            let queue = queue(f64::from(rate), 300.0);
            assert_eq!(grows(&queue, u64::from(3 * rate)), expected, "{rate}");
        }
    }

    #[test]
    fn fluctuation_is_no_growth() {
        let mut random = fastrand::Rng::with_seed(3);
        let mut found = 0;
        for _ in 0..1_000 {
            // Some forty requests under way, as with a mean latency of 40 ms at 1,000/s.
            let samples: Vec<u64> = (0..30).map(|_| random.u64(20..60)).collect();
            found += u32::from(grows(&samples, 3_000));
        }
        assert!(found <= 2, "{found} of 1000");
    }

    #[test]
    fn few_samples_show_nothing() {
        assert!(!grows(&[], 100));
        assert!(!grows(&[1, 10, 100, 1_000, 10_000], 10));
        let falling: Vec<u64> = (0..30).rev().map(|queued| queued * 10).collect();
        assert!(!grows(&falling, 100));
    }
}
