//! The health of a monitor over time, from what stores keep: spans of health, and gaps in which no process ran.
//!
//! Where the clock was set back, the same dates come twice and spans overlap; the worse health is shown there. A gap shows
//! as [`Health::NoData`] where a monitor was probed before it, so that it is neither downtime nor time probed.

use std::collections::BTreeSet;

use crate::detect::status::Health;
use crate::detect::uptime::{HealthAt, Span, united};
use crate::ids::IncidentId;
use crate::time::Timestamp;

/// Health from a date until another, or until now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HealthSpan {
    /// Since when.
    pub at: Timestamp,
    /// Until when; absent for the present health.
    pub until: Option<Timestamp>,
    /// Which.
    pub health: Health,
    /// Why it is not up.
    pub reason: Option<String>,
    /// The incident that it belongs to.
    pub incident: Option<IncidentId>,
}

impl HealthSpan {
    /// The change to this health at a date.
    fn change(&self, at: Timestamp) -> HealthChange {
        let change = HealthAt {
            at,
            health: self.health,
            incident: self.incident,
        };
        (change, self.reason.clone())
    }
}

/// A change of health, and why it is not up.
pub type HealthChange = (HealthAt, Option<String>);

/// The changes that spans amount to, ascending.
///
/// - `spans`: by their dates, and in the order in which they were written where those are the same.
/// - `gaps`: in any order.
pub fn timeline(spans: &[HealthSpan], gaps: Vec<Span>) -> Vec<HealthChange> {
    let follow_each_other = spans
        .windows(2)
        .all(|pair| pair[0].until == Some(pair[1].at));
    let changes = if follow_each_other {
        let is_over = spans.last().and_then(|last| last.until);
        let mut changes: Vec<_> = spans.iter().map(|span| span.change(span.at)).collect();
        changes.extend(is_over.map(unknown));
        changes
    } else {
        layered(spans)
    };
    with_gaps(changes, &united(gaps))
}

/// The changes of a window, with the last one before it.
pub(crate) fn window(
    mut changes: Vec<HealthChange>,
    from: Timestamp,
    to: Timestamp,
) -> Vec<HealthChange> {
    changes.retain(|(change, _)| change.at < to);
    let inside = changes.partition_point(|(change, _)| change.at < from);
    changes.split_off(inside.saturating_sub(1))
}

/// Nothing is known from a date on.
fn unknown(at: Timestamp) -> HealthChange {
    (HealthAt::new(at, Health::NoData), None)
}

/// Of spans that overlap, the worst is seen; of the same, the last.
fn layered(spans: &[HealthSpan]) -> Vec<HealthChange> {
    let rank = |health| match health {
        Health::Down => 3,
        Health::Degraded => 2,
        Health::Up => 1,
        Health::Pending | Health::NoData | Health::Paused => 0,
    };
    let mut edges: Vec<(Timestamp, bool, usize)> = Vec::with_capacity(spans.len() * 2);
    for (index, span) in spans.iter().enumerate() {
        if span.until.is_some_and(|until| until <= span.at) {
            continue;
        }
        edges.push((span.at, true, index));
        edges.extend(span.until.map(|until| (until, false, index)));
    }
    edges.sort_unstable();
    let mut open = BTreeSet::new();
    let mut changes: Vec<HealthChange> = Vec::new();
    let mut shown = None;
    for (position, (at, begins, index)) in edges.iter().enumerate() {
        let key = (rank(spans[*index].health), *index);
        if *begins {
            open.insert(key);
        } else {
            open.remove(&key);
        }
        if edges.get(position + 1).is_some_and(|next| next.0 == *at) {
            continue;
        }
        let top = open.last().map(|(_, index)| *index);
        let content = |index: Option<usize>| {
            let span = index.map(|index| &spans[index]);
            span.map(|span| (span.health, &span.reason, span.incident))
        };
        if changes.is_empty() || content(top) != content(shown) {
            changes.push(match top {
                None => unknown(*at),
                Some(index) => spans[index].change(*at),
            });
        }
        shown = top;
    }
    changes
}

/// - `gaps`: in order and apart.
fn with_gaps(changes: Vec<HealthChange>, gaps: &[Span]) -> Vec<HealthChange> {
    if gaps.is_empty() {
        return changes;
    }
    let mut all: Vec<HealthChange> = Vec::with_capacity(changes.len() + 2 * gaps.len());
    let mut gaps = gaps.iter().copied().peekable();
    let mut changes = changes.into_iter().peekable();
    let mut health: Option<HealthChange> = None;
    loop {
        let change = changes.peek().map(|(change, _)| change.at);
        match (change, gaps.peek().copied()) {
            (None, None) => return all,
            // The health at its end is that of the last change until then.
            (at, Some((from, to))) if at.is_none_or(|at| at > from) => {
                gaps.next();
                let was_probed = |it: &Option<HealthChange>| {
                    it.as_ref().is_some_and(|(it, _)| it.health.is_probed())
                };
                let is_shown = was_probed(&health);
                if is_shown {
                    all.push(unknown(from));
                }
                let mut has_changed = false;
                while let Some(change) = changes.next_if(|(change, _)| change.at <= to) {
                    has_changed = true;
                    health = Some(change);
                }
                if (is_shown || has_changed)
                    && let Some((change, reason)) = &health
                {
                    all.push((HealthAt { at: to, ..*change }, reason.clone()));
                }
            }
            _ => {
                if let Some(change) = changes.next() {
                    health = Some(change.clone());
                    all.push(change);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spans(list: &[(i64, Option<i64>, Health)]) -> Vec<HealthSpan> {
        let span = |(at, until, health): &(i64, Option<i64>, Health)| HealthSpan {
            at: Timestamp(*at),
            until: until.map(Timestamp),
            health: *health,
            reason: None,
            incident: None,
        };
        list.iter().map(span).collect()
    }

    fn check(list: &[(i64, Option<i64>, Health)], gaps: &[(i64, i64)], expected: &[(i64, Health)]) {
        let gaps = gaps
            .iter()
            .map(|(from, to)| (Timestamp(*from), Timestamp(*to)));
        let found = timeline(&spans(list), gaps.collect());
        let found: Vec<_> = found.iter().map(|(it, _)| (it.at.0, it.health)).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn spans_that_follow_each_other_are_changes() {
        use Health::{Degraded, Down, Up};

        check(
            &[
                (0, Some(10), Up),
                (10, Some(10), Degraded),
                (10, None, Down),
            ],
            &[],
            &[(0, Up), (10, Degraded), (10, Down)],
        );
        check(&[], &[(0, 5)], &[]);
    }

    #[test]
    fn a_gap_is_unknown_and_health_goes_on_behind_it() {
        use Health::{Down, NoData, Paused, Up};

        let list = [(0, Some(10), Up), (10, Some(40), Down), (40, None, Up)];
        check(
            &list,
            &[(20, 30), (50, 60)],
            &[
                (0, Up),
                (10, Down),
                (20, NoData),
                (30, Down),
                (40, Up),
                (50, NoData),
                (60, Up),
            ],
        );
        // A change that is dated back into it shows at its end.
        check(
            &list,
            &[(5, 20)],
            &[(0, Up), (5, NoData), (20, Down), (40, Up)],
        );
        check(&[(0, None, Paused)], &[(5, 20)], &[(0, Paused)]);
        check(&[(10, None, Up)], &[(0, 10)], &[(10, Up)]);
    }

    #[test]
    fn dates_that_come_twice_show_the_worse() {
        use Health::{Down, Up};

        // Down from 100; at 105 the clock is set back by 3,600; up after 16 seconds.
        check(
            &[
                (-3495, Some(-3484), Down),
                (-3484, None, Up),
                (0, Some(100), Up),
                (100, Some(105), Down),
            ],
            &[],
            &[(-3495, Down), (-3484, Up), (100, Down), (105, Up)],
        );
    }
}
