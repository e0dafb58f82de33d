//! Objectives as people write them: `p99<50ms`, `errors<0.1%`, or any threshold of `load`.

use plimsoll_model::{Threshold, ThresholdError};

/// Why an objective cannot be used.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ObjectiveError {
    /// It is not a threshold either.
    #[error("`{text}` is not an objective: {cause}")]
    Threshold {
        /// The text as written.
        text: String,
        /// The error.
        cause: ThresholdError,
    },
    /// Windows are short and judged as a whole.
    #[error("`{0}`: `over` and `abort` have no meaning here, every window is judged as a whole")]
    Stretch(String),
}

/// Parses an objective.
///
/// - `p99<50ms`, `p(99.9)<1s`, `med<5ms`, `avg<5ms`, `max<1s`: of the latency from the intended
///   start;
/// - `errors<0.1%`: failures, failed statuses, unmet expectations and drops, of all that was started;
/// - anything with a colon: a threshold as `load --threshold` takes it.
pub fn parse_objective(text: &str) -> Result<Threshold, ObjectiveError> {
    let text = text.trim();
    let threshold = Threshold::parse(text).map_err(|cause| ObjectiveError::Threshold {
        text: text.to_owned(),
        cause,
    })?;
    if threshold.over.is_some() || threshold.abort_after.is_some() {
        return Err(ObjectiveError::Stretch(text.to_owned()));
    }
    Ok(threshold)
}

#[cfg(test)]
mod tests {
    use plimsoll_model::Bounded;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn no_text_makes_the_parser_panic(text in "\\PC*") {
            drop(parse_objective(&text));
        }

        #[test]
        fn an_objective_is_its_threshold(quantile in 0_u8..=100, millis in 1_u32..100_000) {
            let objective = parse_objective(&format!("p{quantile}<{millis}ms")).unwrap();
            prop_assert!((objective.limit() - f64::from(millis) * 1e3).abs() < 1e-6);
            prop_assert!(objective.is_met(Bounded::exact(f64::from(millis) * 1e3 - 1.0)));
            prop_assert!(!objective.is_met(Bounded::exact(f64::from(millis) * 1e3 + 1.0)));
        }
    }

    #[test]
    fn short_forms_are_thresholds() {
        for (text, whole) in [
            ("p99<50ms", "latency:p99<50ms"),
            (" p(99.9) < 1s", "latency:p(99.9) < 1s"),
            ("med<5", "latency:med<5"),
            ("errors<0.1%", "errors:rate<0.1%"),
            ("http_req_waiting:avg<5ms", "http_req_waiting:avg<5ms"),
        ] {
            assert_eq!(parse_objective(text).unwrap().text(), whole, "{text}");
        }
    }

    #[test]
    fn mistakes_are_reported() {
        let error = |text| parse_objective(text).unwrap_err().to_string();
        assert!(error("p99").starts_with("`p99` is not an objective: "));
        assert!(error("p99<50ms over 5s").contains("judged as a whole"));
        assert!(
            error("p990<50ms").contains("percentile"),
            "{}",
            error("p990<50ms")
        );
        assert!(parse_objective("").is_err());
    }
}
