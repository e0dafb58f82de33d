//! How much of a distribution lies beyond a value: the normal one and Student's. Accurate to six digits, which is more than a
//! rank among some thousand resamples takes.

use std::f64::consts::{FRAC_PI_2, TAU};

/// Upper tail probability of the standard normal distribution at `value`, which is not negative.
pub(super) fn normal_tail(value: f64) -> f64 {
    // Ten deviations further on nothing is left that counts.
    integral(value, value + 10.0, |x| (-x * x / 2.0).exp()) / TAU.sqrt()
}

/// The value that `tail` of Student's distribution lies beyond.
///
/// - `tail`: between 0 and a half.
/// - `freedom`: degrees of freedom, 1 or more.
pub(super) fn student_quantile(tail: f64, freedom: f64) -> f64 {
    // With t = √ν·tan θ the density is that of θ: a power of its cosine, between the right angles.
    let density = |angle: f64| angle.cos().powf(freedom - 1.0);
    let half = integral(0.0, FRAC_PI_2, density);
    let (mut low, mut high) = (0.0, FRAC_PI_2);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if integral(middle, FRAC_PI_2, density) / half > 2.0 * tail {
            low = middle;
        } else {
            high = middle;
        }
    }
    freedom.sqrt() * low.tan()
}

/// By Simpson's rule.
fn integral(from: f64, to: f64, function: impl Fn(f64) -> f64) -> f64 {
    const STEPS: u32 = 1000;
    let step = (to - from) / f64::from(STEPS);
    let inner: f64 = (1..STEPS)
        .map(|at| f64::from(2 + at % 2 * 2) * function(from + f64::from(at) * step))
        .sum();
    (function(from) + inner + function(to)) * step / 3.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tails_are_those_of_the_tables() {
        for (value, tail) in [
            (0.0, 0.5),
            (1.0, 0.158_655_25),
            (2.575_829, 0.005),
            (4.0, 3.167_124e-5),
        ] {
            let seen = normal_tail(value);
            assert!((seen / tail - 1.0).abs() < 1e-5, "{value}: {seen}");
        }
        for (tail, freedom, value) in [
            (0.005, 1.0, 63.656_741),
            (0.005, 4.0, 4.604_095),
            (0.005, 7.0, 3.499_483),
            (0.025, 59.0, 2.000_995),
            (0.005, 1000.0, 2.580_755),
        ] {
            let seen = student_quantile(tail, freedom);
            assert!(
                (seen / value - 1.0).abs() < 1e-5,
                "{tail} {freedom}: {seen}"
            );
        }
    }
}
