//! Delays of responses.

use std::time::Duration;

use fastrand::Rng;

/// A time, perhaps another one for each answer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Delay {
    /// Always the same.
    Fixed(Duration),
    /// Anything between the two, both included, each as likely.
    Uniform(Duration, Duration),
    /// As the times of servers lie: half of them below `median`, few far above.
    LogNormal {
        /// Half of them are below it.
        median: Duration,
        /// The standard deviation of their logarithms.
        sigma: f64,
        /// None is above it.
        most: Option<Duration>,
    },
}

impl Default for Delay {
    fn default() -> Self {
        Self::Fixed(Duration::ZERO)
    }
}

/// The longest delay of a response. Longer ones are typing errors in a unit.
const LONGEST: Duration = Duration::from_hours(24);

impl Delay {
    /// Whether there never is any.
    pub fn is_zero(&self) -> bool {
        *self == Self::default()
    }

    /// One time.
    pub fn sample(&self, rng: &mut Rng) -> Duration {
        match self {
            Self::Fixed(time) => *time,
            Self::Uniform(least, most) => {
                *least + most.saturating_sub(*least).mul_f64(rng.f64_inclusive())
            }
            Self::LogNormal {
                median,
                sigma,
                most,
            } => {
                let seconds = median.as_secs_f64() * (sigma * normal(rng)).exp();
                let longest = most.unwrap_or(LONGEST).min(LONGEST);
                Duration::try_from_secs_f64(seconds)
                    .unwrap_or(longest)
                    .min(longest)
            }
        }
    }
}

/// Normally distributed, mean 0 and deviation 1.
///
/// Source: Box and Muller, "A Note on the Generation of Random Normal Deviates" (1958).
fn normal(rng: &mut Rng) -> f64 {
    // Its logarithm must be finite.
    let radius = (-2.0 * (1.0 - rng.f64()).ln()).sqrt();
    radius * (std::f64::consts::TAU * rng.f64()).cos()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_lie_as_they_should() {
        let mut rng = Rng::with_seed(7);
        let (least, most) = (Duration::from_millis(10), Duration::from_millis(30));
        let uniform = Delay::Uniform(least, most);
        let mut times: Vec<_> = (0..2000).map(|_| uniform.sample(&mut rng)).collect();
        times.sort();
        assert!(times[0] >= least && times[1999] <= most);
        assert!(
            (19..21).contains(&times[1000].as_millis()),
            "{:?}",
            times[1000]
        );
        let log_normal = Delay::LogNormal {
            median: Duration::from_millis(80),
            sigma: 0.4,
            most: Some(Duration::from_millis(200)),
        };
        let mut times: Vec<_> = (0..2000).map(|_| log_normal.sample(&mut rng)).collect();
        times.sort();
        // Of the logarithms, 15.87 % lie more than one deviation above the median: beyond 119 ms.
        assert!(
            (76..84).contains(&times[1000].as_millis()),
            "{:?}",
            times[1000]
        );
        assert!(
            (110..130).contains(&times[1683].as_millis()),
            "{:?}",
            times[1683]
        );
        assert_eq!(times[1999], Duration::from_millis(200));
    }
}
