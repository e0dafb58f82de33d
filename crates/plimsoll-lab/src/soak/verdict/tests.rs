//! Shapes that are known, and what must be found of them.

use super::*;

fn series(kind: Kind, count: u32, value: impl Fn(f64, &mut fastrand::Rng) -> f64) -> Series {
    let mut random = fastrand::Rng::with_seed(7);
    let points = (0..count).map(|sample| {
        let at = f64::from(sample) * 15.0;
        (at, Some(value(at / (f64::from(count) * 15.0), &mut random)))
    });
    Series {
        name: "anonymous_bytes".to_owned(),
        kind,
        points: points.collect(),
    }
}

#[track_caller]
fn check(series: &Series, verdict: Verdict, shape: Shape) {
    let found = judge(series, &JudgeOptions::default());
    assert_eq!((found.verdict, found.shape), (verdict, shape), "{found:?}");
}

const MB: f64 = 1e6;

/// Up to `part` of 1 MB either way.
fn noise(random: &mut fastrand::Rng, part: f64) -> f64 {
    (random.f64() * 2.0 - 1.0) * part * MB
}

#[test]
fn memory_that_grows_to_the_end_drifts() {
    for count in [40, 240, 2_000] {
        let leak = series(Kind::Memory, count, |part, random| {
            (30.0 + 12.0 * part) * MB + noise(random, 0.5)
        });
        check(&leak, Verdict::Drift, Shape::Climb);
    }
    // In steps, as an allocator grows.
    let stairs = series(Kind::Memory, 240, |part, _| {
        (30.0 + 4.0 * (part * 6.0).floor()) * MB
    });
    check(&stairs, Verdict::Drift, Shape::Climb);
    // Below a sawtooth of collections.
    let hidden = series(Kind::Memory, 240, |part, _| {
        (30.0 + 30.0 * part + 20.0 * ((part * 20.0) % 1.0)) * MB
    });
    check(&hidden, Verdict::Drift, Shape::Climb);
}

#[test]
fn a_cache_that_is_still_filling_is_no_leak() {
    for count in [90, 240, 2_000] {
        // Ever fewer of the keys are new.
        let filling = series(Kind::Memory, count, |part, random| {
            (30.0 + 60.0 * (1.0 - (-2.0 * part).exp())) * MB + noise(random, 0.3)
        });
        check(&filling, Verdict::Inconclusive, Shape::Slowing);
        // At the same rate, until it is full shortly before the end.
        let full = series(Kind::Memory, count, |part, random| {
            (30.0 + 60.0 * (part / 0.82).min(1.0)) * MB + noise(random, 0.3)
        });
        check(&full, Verdict::Inconclusive, Shape::Slowing);
    }
}

#[test]
fn memory_that_varies_about_a_level_is_bounded() {
    let flat = series(Kind::Memory, 240, |_, random| {
        30.0 * MB + noise(random, 1.0)
    });
    check(&flat, Verdict::Bounded, Shape::Flat);
    let sawtooth = series(Kind::Memory, 240, |part, _| {
        (30.0 + 20.0 * ((part * 20.0) % 1.0)) * MB
    });
    check(&sawtooth, Verdict::Bounded, Shape::Sawtooth);
}

#[test]
fn a_ramp_to_a_cap_is_bounded() {
    for end in [0.2, 0.4, 0.6] {
        let cache = series(Kind::Memory, 240, |part, random| {
            (30.0 + 50.0 * (part / end).min(1.0)) * MB + noise(random, 0.3)
        });
        check(&cache, Verdict::Bounded, Shape::RampToCap);
    }
    // It comes near its level ever more slowly.
    let equilibrium = series(Kind::Memory, 480, |part, random| {
        289.0 * MB * (1.0 - (-part * 12.0).exp()) + noise(random, 1.0)
    });
    let found = judge(&equilibrium, &JudgeOptions::default());
    assert_eq!(found.verdict, Verdict::Bounded, "{found:?}");
    // Connections that are offered, and no more.
    let connections = series(Kind::Gauge, 240, |part, _| {
        (50.0 + 300.0 * part).min(146.0).floor()
    });
    check(&connections, Verdict::Bounded, Shape::RampToCap);
}

#[test]
fn one_step_is_bounded_once_it_has_been_watched() {
    let step = |at: f64| {
        series(Kind::Memory, 240, move |part, random| {
            (if part < at { 30.0 } else { 60.0 }) * MB + noise(random, 0.3)
        })
    };
    check(&step(0.5), Verdict::Bounded, Shape::Step);
    let late = judge(&step(0.9), &JudgeOptions::default());
    assert_ne!(late.verdict, Verdict::Drift, "{late:?}");
}

#[test]
fn what_cannot_be_decided_is_not_decided() {
    let late = series(Kind::Memory, 240, |part, random| {
        (30.0 + 60.0 * (part - 0.75).max(0.0)) * MB + noise(random, 0.3)
    });
    check(&late, Verdict::Inconclusive, Shape::LateClimb);
    let slowing = series(Kind::Memory, 240, |part, random| {
        (30.0 + 40.0 * part.sqrt().sqrt()) * MB + noise(random, 0.1)
    });
    let found = judge(&slowing, &JudgeOptions::default());
    assert_ne!(found.verdict, Verdict::Bounded, "{found:?}");
    let short = series(Kind::Memory, 8, |part, _| part * 100.0 * MB);
    check(&short, Verdict::Inconclusive, Shape::Unknown);
    let missing = Series {
        points: vec![(0.0, None); 100],
        ..short
    };
    check(&missing, Verdict::Inconclusive, Shape::Unknown);
}

#[test]
fn a_low_gauge_that_moves_by_two_is_bounded() {
    let gauge = series(Kind::Gauge, 240, |part, random| {
        (part * 2.0).round() + f64::from(random.u8(0..2))
    });
    check(&gauge, Verdict::Bounded, Shape::Flat);
}

#[test]
fn counters_may_grow_steadily_and_not_ever_faster() {
    let steady = series(Kind::Counter, 240, |part, _| part * 1e6);
    check(&steady, Verdict::Bounded, Shape::Flat);
    let faster = series(Kind::Counter, 240, |part, _| part * part * 1e6);
    check(&faster, Verdict::Drift, Shape::Climb);
    // The process began anew.
    let restarted = series(Kind::Counter, 240, |part, _| (part % 0.5) * 1e6);
    check(&restarted, Verdict::Bounded, Shape::Flat);
}

#[test]
fn a_count_of_panics_must_not_grow() {
    let none = series(Kind::Zero, 20, |_, _| 0.0);
    check(&none, Verdict::Bounded, Shape::Flat);
    // Growth before the soak does not count.
    let earlier = series(Kind::Zero, 20, |_, _| 3.0);
    check(&earlier, Verdict::Bounded, Shape::Flat);
    let one = series(Kind::Zero, 20, |part, _| f64::from(part > 0.5));
    check(&one, Verdict::Drift, Shape::Climb);
}
