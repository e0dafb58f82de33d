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

/// The delays of all responses of a mock. Each takes the place of that of its kind where a reply has none, and both are added.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct CommonDelays {
    /// Always the same.
    pub(crate) fixed: Option<Duration>,
    /// Another one for each response.
    pub(crate) random: Option<Delay>,
}

impl CommonDelays {
    /// Whether there never is any.
    pub(crate) fn is_zero(&self) -> bool {
        self.fixed.is_none() && self.random.is_none()
    }

    /// What is added to one time of a reply's own delay.
    pub(crate) fn beside(&self, own: &Delay, rng: &mut Rng) -> Duration {
        let has_fixed = matches!(own, Delay::Fixed(time) if !time.is_zero());
        let has_random = !matches!(own, Delay::Fixed(_));
        let fixed = self.fixed.filter(|_| !has_fixed).unwrap_or_default();
        let random = self.random.filter(|_| !has_random);
        fixed + random.map_or(Duration::ZERO, |random| random.sample(rng))
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
