//! What the metrics of a run leave out, as those of k6 do: requests and iterations without an end, iterations without a
//! start.
//!
//! Pure: counts in, sentences for readers of the metrics out.

use plimsoll_model::counted;

/// Counts that no percentile of a metric has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LeftOut {
    /// Requests that had no response when their iteration was interrupted.
    pub requests: u64,
    /// Iterations that were interrupted.
    pub iterations: u64,
    /// Iterations that were not started, for lack of virtual users or of time.
    pub dropped: u64,
}

impl LeftOut {
    /// A caution for each kind.
    ///
    /// - `is_stopped`: the run was stopped before its end. Iterations are then interrupted on purpose, but what a server
    ///   owed them is left out all the same.
    pub fn cautions(&self, is_stopped: bool) -> Vec<String> {
        let under_way = |number: u64, noun: &str| {
            let (verb, object, subject) = plural(number);
            let what = counted(number, noun);
            format!(
                "{what} {verb} under way when the run ended: the metrics of k6 and their thresholds leave \
                 {object} out, however long {subject} would have taken"
            )
        };
        let mut cautions = Vec::new();
        if self.requests > 0 {
            cautions.push(under_way(self.requests, "request"));
        }
        if self.iterations > 0 && !is_stopped {
            cautions.push(under_way(self.iterations, "iteration"));
        }
        if self.dropped > 0 {
            let (verb, object, subject) = plural(self.dropped);
            let what = counted(self.dropped, "iteration");
            cautions.push(format!(
                "{what} {verb} dropped, for lack of virtual users or of time: but for dropped_iterations, the \
                 metrics of k6 and their thresholds leave {object} out, however long {subject} would have waited"
            ));
        }
        cautions
    }
}

/// The words that follow a number of things.
fn plural(number: u64) -> (&'static str, &'static str, &'static str) {
    if number == 1 {
        ("was", "it", "it")
    } else {
        ("were", "them", "they")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_a_caution_of_its_own() {
        let left_out = LeftOut {
            requests: 2,
            iterations: 1,
            dropped: 40,
        };
        assert_eq!(
            left_out.cautions(false),
            [
                "2 requests were under way when the run ended: the metrics of k6 and their thresholds leave them \
                 out, however long they would have taken",
                "1 iteration was under way when the run ended: the metrics of k6 and their thresholds leave it out, \
                 however long it would have taken",
                "40 iterations were dropped, for lack of virtual users or of time: but for dropped_iterations, the \
                 metrics of k6 and their thresholds leave them out, however long they would have waited",
            ]
        );
        assert_eq!(LeftOut::default().cautions(false), [""; 0]);
    }

    #[test]
    fn a_run_that_was_stopped_interrupts_iterations_on_purpose() {
        let left_out = LeftOut {
            iterations: 3,
            ..LeftOut::default()
        };
        assert_eq!(left_out.cautions(true), [""; 0]);
        let left_out = LeftOut {
            requests: 1,
            ..left_out
        };
        let cautions = left_out.cautions(true);
        assert_eq!(cautions.len(), 1, "{cautions:?}");
        assert!(cautions[0].starts_with("1 request was"), "{cautions:?}");
    }
}
