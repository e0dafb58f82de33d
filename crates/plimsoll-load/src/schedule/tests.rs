use std::num::NonZeroU32;

use plimsoll_model::Rate;
use proptest::prelude::*;

use super::*;

fn rate(per_second: f64) -> Rate {
    Rate::new(per_second).unwrap()
}

fn stage(seconds: u64, level: f64) -> Stage {
    Stage {
        duration: Duration::from_secs(seconds),
        level,
    }
}

fn first_arrivals(mut schedule: impl Schedule, count: usize) -> Vec<Duration> {
    std::iter::from_fn(|| schedule.next_arrival())
        .take(count)
        .collect()
}

/// The contract of every schedule.
fn contract(make: impl Fn(RateProfile, Share) -> Box<dyn Schedule>, late: Duration) {
    let profile = || RateProfile::stages(rate(0.0), &[stage(10, 100.0), stage(10, 0.0)]);
    let all = |share| {
        let mut schedule = make(profile(), share);
        std::iter::from_fn(move || schedule.next_arrival()).collect::<Vec<_>>()
    };
    let one = all(Share::ALL);
    assert!(one.is_sorted(), "ascending");
    assert_eq!(one, all(Share::ALL), "the same again");
    assert!(
        one.iter()
            .all(|arrival| *arrival <= Duration::from_secs(20) + late)
    );
    let parts: usize = (0..3).map(|index| all(Share { index, of: 3 }).len()).sum();
    // 1,000 are due; six standard deviations of a Poisson count are 190.
    assert!((810..=1190).contains(&one.len()), "{}", one.len());
    assert!((810..=1190).contains(&parts), "{parts}");
    let mut ended = make(RateProfile::stages(rate(0.0), &[]), Share::ALL);
    assert_eq!(ended.next_arrival(), None);
    let mut silent = make(RateProfile::constant(rate(0.0)), Share::ALL);
    assert_eq!(silent.next_arrival(), None);
}

#[test]
fn even_arrivals_keep_the_contract() {
    contract(
        |profile, share| Box::new(EvenArrivals::new(profile, share)),
        Duration::ZERO,
    );
}

#[test]
fn poisson_arrivals_keep_the_contract() {
    contract(
        |profile, share| Box::new(PoissonArrivals::new(profile, share, 7)),
        Duration::ZERO,
    );
}

/// Bursts of `size`, evenly spaced or, from a seed, at random.
fn bursts(profile: RateProfile, size: u32, share: Share, seed: Option<u64>) -> BurstArrivals {
    let size = NonZeroU32::new(size).unwrap();
    let of_bursts = BurstArrivals::of_bursts(size);
    let starts: Box<dyn Schedule> = match seed {
        None => Box::new(EvenArrivals::new(profile, of_bursts)),
        Some(seed) => Box::new(PoissonArrivals::new(profile, of_bursts, seed)),
    };
    BurstArrivals::new(starts, size, share)
}

#[test]
fn bursts_and_jitter_keep_the_contract() {
    let late = Duration::from_secs(3);
    contract(
        |profile, share| Box::new(bursts(profile, 7, share, None)),
        Duration::ZERO,
    );
    contract(
        |profile, share| Box::new(bursts(profile, 3, share, Some(5))),
        Duration::ZERO,
    );
    contract(
        |profile, share| {
            let even = Box::new(EvenArrivals::new(profile, share));
            Box::new(JitteredArrivals::new(even, late, Vec::new(), share, 7))
        },
        late,
    );
}

#[test]
fn a_burst_comes_at_once_and_is_shared_among_the_workers() {
    let profile = || RateProfile::constant(rate(100.0));
    let whole = first_arrivals(bursts(profile(), 5, Share::ALL, None), 1_000);
    for (position, arrival) in (0_u64..).zip(&whole) {
        assert_eq!(arrival.as_millis(), u128::from(position / 5 * 50));
    }
    let mut parts: Vec<_> = (0..3)
        .flat_map(|index| first_arrivals(bursts(profile(), 5, Share { index, of: 3 }, None), 500))
        .collect();
    parts.sort();
    assert_eq!(parts[..1_000], whole);
    let random = first_arrivals(bursts(profile(), 4, Share::ALL, Some(1)), 4_000);
    assert!(random.chunks(4).all(|burst| burst[0] == burst[3]));
    let end = random.last().unwrap().as_secs_f64();
    assert!((34.0..46.0).contains(&end), "{end}");
}

#[test]
fn jitter_delays_by_no_more_than_its_bound_and_evenly() {
    let most = Duration::from_millis(100);
    let even = || {
        Box::new(EvenArrivals::new(
            RateProfile::constant(rate(1000.0)),
            Share::ALL,
        ))
    };
    let arrivals = first_arrivals(
        JitteredArrivals::new(even(), most, Vec::new(), Share::ALL, 3),
        50_000,
    );
    assert!(arrivals.is_sorted());
    // In order again, each is between its place and the bound behind it.
    for (position, arrival) in (0_u64..).zip(&arrivals) {
        let intended = Duration::from_millis(position);
        assert!(
            *arrival >= intended && *arrival < intended + most,
            "{position}"
        );
    }
    let late: f64 = (0_u64..)
        .zip(&arrivals)
        .map(|(position, arrival)| arrival.as_secs_f64() * 1e3 - position as f64)
        .sum();
    let mean = late / arrivals.len() as f64;
    assert!((mean - 50.0).abs() < 1.0, "{mean}");
    let other = first_arrivals(
        JitteredArrivals::new(even(), most, Vec::new(), Share::ALL, 4),
        50_000,
    );
    assert_ne!(arrivals, other);
}

#[test]
fn even_arrivals_do_not_drift() {
    let mut schedule = EvenArrivals::new(RateProfile::constant(rate(3000.0)), Share::ALL);
    let last = std::iter::from_fn(|| schedule.next_arrival())
        .nth(3_000 * 3_600)
        .unwrap();
    assert!(last.abs_diff(Duration::from_hours(1)) < Duration::from_nanos(10));
}

#[test]
fn the_shares_of_even_arrivals_make_up_the_whole() {
    let profile = || RateProfile::stages(rate(10.0), &[stage(5, 50.0), stage(5, 20.0)]);
    let whole = first_arrivals(EvenArrivals::new(profile(), Share::ALL), usize::MAX);
    let mut parts: Vec<_> = (0..4)
        .flat_map(|index| {
            first_arrivals(
                EvenArrivals::new(profile(), Share { index, of: 4 }),
                usize::MAX,
            )
        })
        .collect();
    parts.sort();
    assert_eq!(parts, whole);
    assert_eq!(whole.len(), 325);
}

#[test]
fn a_ramp_integrates_to_its_area() {
    let profile = RateProfile::stages(rate(0.0), &[stage(10, 100.0), stage(60, 100.0)]);
    assert_eq!(profile.time_of(0.0), Some(Duration::ZERO));
    assert_eq!(profile.time_of(125.0), Some(Duration::from_secs(5)));
    assert_eq!(profile.time_of(500.0), Some(Duration::from_secs(10)));
    assert_eq!(profile.time_of(600.0), Some(Duration::from_secs(11)));
    assert_eq!(profile.time_of(6500.0), None);
    assert_eq!(profile.average(Duration::from_secs(10)), rate(50.0));
}

#[test]
fn poisson_gaps_have_the_mean_and_the_spread_of_an_exponential() {
    let arrivals = first_arrivals(
        PoissonArrivals::new(RateProfile::constant(rate(1000.0)), Share::ALL, 42),
        100_000,
    );
    let gaps: Vec<f64> = arrivals
        .windows(2)
        .map(|pair| pair[1].abs_diff(pair[0]).as_secs_f64() * 1000.0)
        .collect();
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
    assert!((mean - 1.0).abs() < 0.02, "{mean}");
    assert!((variance - 1.0).abs() < 0.05, "{variance}");
}

proptest! {
    #[test]
    fn jitter_moves_no_arrival_out_of_its_stretch(
        per_second in 1_u32..500,
        jitter in 1_u64..2_000,
        warm_up in 0_u64..1_500,
        window in 1_u64..4_000,
        workers in 1_u32..4,
        burst in 1_u32..6,
        seed in any::<u64>(),
    ) {
        let (warm_up, window) = (Duration::from_millis(warm_up), Duration::from_millis(window));
        let end = warm_up + window;
        let in_window = |mut schedule: Box<dyn Schedule>| {
            std::iter::from_fn(|| schedule.next_arrival())
                .take_while(|arrival| *arrival < end)
                .filter(|arrival| *arrival >= warm_up)
                .count()
        };
        for index in 0..workers {
            let share = Share { index, of: workers };
            let profile = RateProfile::constant(rate(f64::from(per_second)));
            let plain = || Box::new(bursts(profile.clone(), burst, share, None));
            let most = Duration::from_millis(jitter);
            let ends = vec![warm_up, end];
            let jittered = JitteredArrivals::new(plain(), most, ends, share, seed);
            prop_assert_eq!(in_window(Box::new(jittered)), in_window(plain()));
        }
    }

    #[test]
    fn any_profile_gives_ascending_finite_times(
        initial in 0.0_f64..1e4,
        stages in prop::collection::vec((0_u64..100, 0.0_f64..1e4), 0..5),
    ) {
        let stages: Vec<_> = stages.into_iter().map(|(seconds, level)| stage(seconds, level)).collect();
        let profile = RateProfile::stages(rate(initial), &stages);
        let arrivals = first_arrivals(EvenArrivals::new(profile, Share::ALL), 2_000);
        prop_assert!(arrivals.is_sorted());
    }
}

#[test]
fn recorded_arrivals_are_shared_without_a_gap() {
    let times: std::sync::Arc<[Duration]> = [0, 0, 5, 7, 7, 9].map(Duration::from_millis).into();
    for of in 1..=4 {
        let mut all: Vec<_> = (0..of)
            .flat_map(|index| {
                let schedule =
                    RecordedArrivals::new(std::sync::Arc::clone(&times), Share { index, of });
                first_arrivals(schedule, 10)
            })
            .collect();
        all.sort();
        assert_eq!(all, *times);
    }
}
