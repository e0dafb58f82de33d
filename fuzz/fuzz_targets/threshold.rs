//! A threshold that can be parsed says what was written, and judges any figure without fault.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_model::{JudgedThreshold, Threshold, ThresholdVerdict};

fuzz_target!(|text: &str| {
    let threshold = match Threshold::parse(text) {
        Ok(threshold) => threshold,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    assert_eq!(threshold.text(), text.trim());
    assert_eq!(Threshold::parse(threshold.text()), Ok(threshold.clone()));
    assert!(threshold.limit().is_finite() && threshold.limit() >= 0.0);
    for value in [0.0, threshold.limit(), 1e300] {
        let judged = JudgedThreshold {
            threshold: threshold.clone(),
            value: Some(value),
            at: None,
            ended_run: false,
        };
        let is_met = judged.verdict() == ThresholdVerdict::Met;
        assert_eq!(is_met, threshold.is_met(value));
        if let Some(margin) = judged.margin_percent() {
            assert!(if is_met { margin >= 0.0 } else { margin <= 0.0 }, "{margin}");
        }
        assert!(!threshold.is_worse(value, value));
        assert!(!threshold.unit().show(value).is_empty());
    }
});
