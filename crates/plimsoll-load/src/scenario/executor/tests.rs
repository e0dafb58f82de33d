use proptest::prelude::*;

use super::*;

fn secs(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

fn stage(seconds: u64, target: u32) -> Stage {
    Stage {
        duration: Duration::from_secs(seconds),
        target,
    }
}

#[test]
fn constant_arrivals_are_evenly_spaced_and_do_not_drift() {
    let executor = ConstantArrivalRate {
        rate: 3,
        time_unit: Duration::from_secs(1),
        duration: Duration::from_secs(10),
        pre_allocated_vus: 1,
        most_vus: 1,
    };
    assert_eq!(executor.arrival(0), Some(Duration::ZERO));
    assert_eq!(executor.arrival(1), Some(Duration::from_nanos(333_333_333)));
    assert_eq!(executor.arrival(27), Some(Duration::from_secs(9)));
    assert_eq!(
        executor.arrival(29),
        Some(Duration::from_nanos(9_666_666_666))
    );
    assert_eq!(executor.arrival(30), None);
    let slow = ConstantArrivalRate {
        rate: 2,
        time_unit: Duration::from_mins(1),
        ..executor
    };
    assert_eq!(
        (slow.arrival(0), slow.arrival(1)),
        (Some(Duration::ZERO), None)
    );
}

#[test]
fn ramping_arrivals_follow_the_area_under_the_line() {
    // 0 to 10/s over 10 s: number n (from 1) at √(2n) s, and number 50 at the end, which is too late.
    let ramp = RampingArrivalRate::new(0, Duration::from_secs(1), &[stage(10, 10)], 1, 1);
    for n in [1_u64, 2, 8, 18, 32, 49] {
        let at = ramp.arrival(n - 1).unwrap();
        let expected = (2.0 * n as f64).sqrt();
        assert!((at.as_secs_f64() - expected).abs() < 1e-6, "{n}: {at:?}");
    }
    assert_eq!(ramp.arrival(49), None);
    // A part of an arrival is carried over: 2.5 of the first stage, so the third one comes 0.25 s into the second.
    let carried = RampingArrivalRate::new(
        1,
        Duration::from_secs(2),
        &[stage(5, 1), stage(0, 4), stage(5, 4)],
        1,
        1,
    );
    assert_eq!(carried.arrival(1), Some(secs(4.0)));
    assert_eq!(carried.arrival(2), Some(secs(5.25)));
    // Down to nothing and up again.
    let valley = RampingArrivalRate::new(
        10,
        Duration::from_secs(1),
        &[stage(2, 0), stage(5, 0), stage(2, 10)],
        1,
        1,
    );
    assert_eq!(valley.arrival(9), Some(secs(2.0)));
    let next = valley.arrival(10).unwrap();
    assert!(next > secs(7.0), "{next:?}");
    assert!(valley.arrival(18).is_some_and(|at| at < secs(9.0)));
    assert_eq!(valley.arrival(19), None);
}

#[test]
fn no_arrival_is_at_the_end_of_a_ramp_to_nothing() {
    // Six in the first second, three in the second one on paper, the last of which is at its end.
    let unit = Duration::from_secs(1);
    let down = RampingArrivalRate::new(6, unit, &[stage(1, 6), stage(1, 0)], 5, 5);
    assert_eq!(down.arrival(5), Some(secs(1.0)));
    let seventh = down.arrival(7).unwrap().as_secs_f64();
    assert!((seventh - (2.0 - (1.0_f64 / 3.0).sqrt())).abs() < 1e-6);
    assert_eq!(down.arrival(8), None);
    // A stage without arrivals after it does not bring it back: it is at the end of a stage that is not the last.
    let stays = RampingArrivalRate::new(6, unit, &[stage(1, 6), stage(1, 0), stage(1, 0)], 5, 5);
    let last = stays.arrival(8).unwrap();
    assert!(
        last.abs_diff(secs(2.0)) < Duration::from_micros(1),
        "{last:?}"
    );
    assert_eq!(stays.arrival(9), None);
}

#[test]
fn ramping_users_step_one_by_one_and_reach_the_target_at_the_end() {
    let grace = Duration::from_secs(3);
    let ramp = RampingVus::new(
        0,
        &[
            stage(10, 5),
            stage(10, 5),
            stage(4, 1),
            stage(0, 3),
            stage(6, 3),
        ],
        grace,
    );
    for (at, vus) in [
        (0.0, 0),
        (1.9, 0),
        (2.0, 1),
        (9.9, 4),
        (10.0, 5),
        (20.5, 5),
        (21.0, 4),
        (23.9, 2),
        (24.0, 3),
        (29.0, 3),
    ] {
        assert_eq!(ramp.vus_at(secs(at)), vus, "{at}");
    }
    assert_eq!((ramp.most_vus(), ramp.end()), (5, secs(30.0)));
    assert_eq!(ramp.active_from(0, secs(0.0)), Some(secs(2.0)));
    assert_eq!(ramp.active_from(2, secs(23.5)), Some(secs(24.0)));
    assert_eq!(ramp.active_from(4, secs(22.0)), None);
    assert_eq!(ramp.active_from(0, secs(30.0)), None);
    // The fifth one is too many from 21 s on; the third is missed from 23 to 24 s only, which its grace covers.
    assert_eq!(ramp.deadline(4, secs(15.0)), Some(secs(24.0)));
    assert_eq!(ramp.deadline(2, secs(15.0)), None);
    assert_eq!(ramp.deadline(0, secs(15.0)), None);
    let executor = Executor::RampingVus(ramp);
    let stop = Duration::from_secs(30);
    assert_eq!(executor.deadline(2, secs(15.0), stop), secs(60.0));
    assert_eq!(executor.deadline(4, secs(15.0), stop), secs(24.0));
    assert_eq!(executor.deadline(4, secs(15.0), Duration::ZERO), secs(24.0));
}

proptest! {
    #[test]
    fn ramping_arrivals_ascend_and_are_as_many_as_the_area(
        start in 0_u32..50,
        stages in proptest::collection::vec((0_u64..20, 0_u32..50), 1..5),
    ) {
        let stages: Vec<_> = stages.iter().map(|(seconds, target)| stage(*seconds, *target)).collect();
        let ramp = RampingArrivalRate::new(start, Duration::from_secs(1), &stages, 1, 1);
        let mut level = f64::from(start);
        let mut area = 0.0;
        for stage in &stages {
            let target = f64::from(stage.target);
            area += f64::midpoint(level, target) * stage.duration.as_secs_f64();
            level = target;
        }
        let mut last = Duration::ZERO;
        let mut count = 0_u64;
        while let Some(at) = ramp.arrival(count) {
            prop_assert!(at >= last && at < ramp.end());
            last = at;
            count += 1;
        }
        let missing = area - count as f64;
        let is_whole = (area - area.round()).abs() < 1e-6;
        // The last one on paper may be at the end, which is too late.
        let most = if is_whole { 1.0 + 1e-6 } else { 1.0 };
        prop_assert!((-1e-6..=most).contains(&missing), "{count} of {area}");
    }

    #[test]
    fn ramping_users_never_step_by_more_than_one_within_a_stage(
        start in 0_u32..20,
        stages in proptest::collection::vec((1_u64..20, 0_u32..20), 1..5),
    ) {
        let stages: Vec<_> = stages.iter().map(|(seconds, target)| stage(*seconds, *target)).collect();
        let ramp = RampingVus::new(start, &stages, Duration::ZERO);
        let mut at = Duration::ZERO;
        for stage in &stages {
            at += stage.duration;
            prop_assert_eq!(ramp.vus_at(at), stage.target);
        }
        for pair in ramp.steps.windows(2) {
            prop_assert!(pair[0].0 < pair[1].0);
            prop_assert_eq!(pair[0].1.abs_diff(pair[1].1), 1);
        }
    }

    #[test]
    fn a_ramp_keeps_users_for_their_grace(
        start in 0_u32..20,
        stages in proptest::collection::vec((0_u64..8, 0_u32..8), 1..5),
        grace in 0_u64..6,
        stop in 0_u64..6,
    ) {
        let stages: Vec<_> = stages.iter().map(|(seconds, target)| stage(*seconds, *target)).collect();
        let (grace, stop) = (Duration::from_secs(grace), Duration::from_secs(stop));
        let ramp = RampingVus::new(start, &stages, grace);
        let reserved = ramp.reserved(stop);
        let last = ramp.end() + stop;
        prop_assert_eq!(reserved.last().map(|step| step.1), Some(0));
        for tenth in 0..400_u64 {
            let now = Duration::from_millis(tenth * 100);
            // A level counts from its moment on until its users are released.
            let mut expected = 0;
            for (index, (at, level)) in ramp.steps.iter().enumerate() {
                let next = ramp.steps.get(index + 1);
                let end = next.map_or(last, |(next, _)| (*next + grace).min(last));
                if *at <= now && now < end {
                    expected = expected.max(*level);
                }
            }
            let behind = reserved.partition_point(|(at, _)| *at <= now);
            let kept = reserved[..behind].last().map_or(0, |(_, level)| *level);
            prop_assert_eq!(kept, expected, "at {:?}", now);
        }
    }
}
