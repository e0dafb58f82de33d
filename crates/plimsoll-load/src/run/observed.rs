//! Servers that were observed by name: what their samples come to.
//!
//! Pure: samples in, figures out.

use std::time::Duration;

use plimsoll_model::{Moment, ObservedServer, ResourceSample};
use plimsoll_observe::{NamedTarget, Samples};

/// The figures of one server.
///
/// - `within`: the measured window, since the start of the run.
/// - `exchanges`: completed in it.
pub(super) fn observed_server(
    named: &NamedTarget,
    samples: Samples,
    within: (Duration, Duration),
    exchanges: u64,
) -> ObservedServer {
    let marks = match samples.marks.as_slice() {
        [first, .., last] => (*first, *last),
        _ => (None, None),
    };
    let is_whole = marks.0.is_some() && marks.1.is_some();
    let ends = observed_part(
        from_start(marks, &samples.target, within),
        &samples.target,
        within,
    );
    let gaps = samples.gaps.clone();
    let clock = samples.clock;
    let since = |(first, last): (ResourceSample, ResourceSample)| {
        let throttled = last.throttled.zip(first.throttled);
        let network = last.network.zip(first.network);
        (
            throttled.map(|(last, first)| last.since(first)),
            network.map(|(last, first)| last.since(first)),
        )
    };
    let (throttled, network) = ends.map(since).unwrap_or_default();
    let cost = ends.map(|(first, last)| {
        let mut cost = samples.cost(named.target.name(), &first, &last);
        if is_whole {
            cost.cost.exchanges = exchanges;
        }
        cost
    });
    ObservedServer {
        name: named.name.clone(),
        target: named.target.name().to_owned(),
        agent: named.target.agent().map(str::to_owned),
        cost,
        is_whole,
        throttled,
        network,
        gaps,
        clock,
    }
}

/// The marks of a window. Of one that begins with the run the first is a sample from before it, if there is one: that of
/// an agent at the start comes half a round trip late.
fn from_start(
    (first, last): (Option<ResourceSample>, Option<ResourceSample>),
    samples: &[ResourceSample],
    (from, _): (Duration, Duration),
) -> (Option<ResourceSample>, Option<ResourceSample>) {
    let before = samples.first().filter(|sample| sample.at.is_zero());
    let before = before.filter(|_| from.is_zero() && first.is_some());
    (before.copied().or(first), last)
}

/// The samples that bound what was seen of the window: its marks, or those within it that are nearest to a missing one.
fn observed_part(
    (first, last): (Option<ResourceSample>, Option<ResourceSample>),
    samples: &[ResourceSample],
    (from, to): (Duration, Duration),
) -> Option<(ResourceSample, ResourceSample)> {
    let within = || {
        let samples = samples.iter();
        samples.filter(move |sample| sample.at >= from && sample.at <= to)
    };
    let first = first.or_else(|| within().next().copied())?;
    let last = last.or_else(|| within().next_back().copied())?;
    (last.at > first.at).then_some((first, last))
}

/// Gives each moment the sample that is nearest to it, if that is nearer than the moments beside it.
pub(super) fn fill_moments(moments: &mut [Moment], samples: &[ResourceSample]) {
    let mut next = 0;
    for number in 0..moments.len() {
        let at = moments[number].at;
        let beside = moments
            .get(number + 1)
            .or_else(|| moments.get(number.checked_sub(1)?));
        let Some(spacing) = beside.map(|it| it.at.abs_diff(at)) else {
            continue;
        };
        while let Some(following) = samples.get(next + 1)
            && following.at.abs_diff(at) <= samples[next].at.abs_diff(at)
        {
            next += 1;
        }
        let nearest = samples.get(next);
        moments[number].target = nearest
            .filter(|sample| sample.at.abs_diff(at) < spacing)
            .copied();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn millis(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn sample(at: u64) -> ResourceSample {
        ResourceSample {
            at: millis(at),
            completed: at,
            ..ResourceSample::default()
        }
    }

    #[test]
    fn marks_bound_the_window_and_samples_take_their_place() {
        let samples = [0, 100, 200, 300, 400, 900].map(sample);
        let part = |first: Option<u64>, last: Option<u64>| {
            let marks = (first.map(sample), last.map(sample));
            let part = observed_part(marks, &samples, (millis(150), millis(800)));
            part.map(|(first, last)| (first.at.as_millis(), last.at.as_millis()))
        };
        assert_eq!(part(Some(151), Some(801)), Some((151, 801)));
        assert_eq!(part(Some(151), None), Some((151, 400)));
        assert_eq!(part(None, Some(801)), Some((200, 801)));
        assert_eq!(part(None, None), Some((200, 400)));
        assert_eq!(part(Some(400), None), None, "one sample costs nothing");
    }

    #[test]
    fn a_window_that_begins_with_the_run_begins_before_it() {
        let marks = (Some(sample(7)), Some(sample(900)));
        let first = |samples: &[u64], from: u64| {
            let samples: Vec<_> = samples.iter().copied().map(sample).collect();
            let within = (millis(from), millis(900));
            from_start(marks, &samples, within).0.map(|it| it.at)
        };
        assert_eq!(first(&[0, 7, 900], 0), Some(millis(0)));
        // After a warm-up both ends come equally late.
        assert_eq!(first(&[0, 7, 900], 5), Some(millis(7)));
        assert_eq!(first(&[1, 7, 900], 0), Some(millis(7)));
        let unmarked = from_start((None, None), &[sample(0)], (millis(0), millis(900)));
        assert_eq!(unmarked, (None, None));
    }

    #[test]
    fn moments_have_samples_beside_them_only() {
        let moment = |at| Moment {
            at: millis(at),
            ..Moment::default()
        };
        let mut moments = [0, 100, 200, 300, 400].map(moment);
        fill_moments(&mut moments, &[2, 103, 401].map(sample));
        let found = moments.map(|it| it.target.map(|it| it.at.as_millis()));
        assert_eq!(found, [Some(2), Some(103), Some(103), None, Some(401)]);
        fill_moments(&mut moments, &[]);
        assert!(moments.iter().all(|it| it.target.is_none()));
    }
}
