use std::convert::Infallible;

use super::*;

fn plan() -> SearchPlan {
    SearchPlan {
        first: 100.0,
        most: 1e6,
        precision: 0.02,
        rounds: 6,
        seed: 5,
        connections: 64,
        most_connections: 64,
        confirms: true,
    }
}

#[test]
fn the_answer_is_lowered_until_a_long_window_holds() {
    // A queue that no short window notices below 1,040/s.
    let (found, windows) = find(&plan(), |planned| {
        let limit = match planned.purpose {
            Purpose::Confirm => 1000.0,
            _ => 1040.0,
        };
        seen(planned.rate < limit)
    });
    let confirmed = found.confirmed.unwrap();
    near(confirmed, 1000.0, 0.02);
    assert_eq!(found.held_up_to, Some(confirmed));
    let line = line(&found);
    near(line.rate, 1000.0, 0.03);
    assert!(
        line.high
            .is_none_or(|high| high <= 1040.0 && high >= line.rate)
    );
    let long = windows
        .iter()
        .filter(|planned| planned.purpose == Purpose::Confirm);
    let rates: Vec<f64> = long.map(|planned| planned.rate).collect();
    assert!(
        rates.len() >= 3 && rates.is_sorted_by(|a, b| a >= b),
        "{rates:?}"
    );
}

#[test]
fn one_bad_long_window_is_not_enough_to_lower_the_answer() {
    let mut is_first = true;
    let (found, _) = find(&plan(), |planned| {
        let is_bad = planned.purpose == Purpose::Confirm && std::mem::replace(&mut is_first, false);
        seen(planned.rate < 1000.0 && !is_bad)
    });
    assert_eq!(found.confirmed, found.held_up_to);
    near(found.confirmed.unwrap(), 1000.0, 0.03);
}

#[test]
fn a_long_window_that_the_generator_broke_confirms_nothing() {
    let (found, windows) = find(&plan(), |planned| {
        let is_long = planned.purpose == Purpose::Confirm;
        WindowOutcome {
            generator_limited: is_long,
            ..seen(planned.rate < 1000.0 && !is_long)
        }
    });
    assert_eq!(found.confirmed, None);
    near(found.held_up_to.unwrap(), 1000.0, 0.03);
    let long = windows
        .iter()
        .filter(|planned| planned.purpose == Purpose::Confirm);
    assert_eq!(long.count(), 2, "the line is left as it is");
}

fn seen(held: bool) -> WindowOutcome {
    WindowOutcome {
        held,
        generator_limited: false,
        connections_full: false,
    }
}

/// The result, and the windows that it took.
fn find(
    plan: &SearchPlan,
    mut server: impl FnMut(WindowPlan) -> WindowOutcome,
) -> (SearchOutcome, Vec<WindowPlan>) {
    let mut windows = Vec::new();
    let found = search::<Infallible>(plan, &mut |planned| {
        windows.push(planned);
        Ok(server(planned))
    });
    let Ok(found) = found;
    (found, windows)
}

fn line(found: &SearchOutcome) -> Boundary {
    match found.ended {
        SearchEnd::Line(boundary) => boundary,
        other => panic!("no line: {other:?}"),
    }
}

fn near(value: f64, expected: f64, share: f64) {
    assert!(
        (value / expected - 1.0).abs() <= share,
        "{value} for {expected}"
    );
}

/// A bucket of 3,000 tokens a second that holds 30, in windows of 3 s: errors below 0.1 %.
fn token_bucket(rate: f64) -> bool {
    let over = ((rate - 3000.0) * 3.0 - 30.0).max(0.0);
    over / (rate * 3.0) < 0.001
}

/// 99th percentile of the time in the system of a queue with one server, over `seconds`.
fn p99_of_single_server(
    arrivals: f64,
    services: f64,
    seconds: f64,
    random: &mut fastrand::Rng,
) -> f64 {
    let mut exponential = |rate: f64| -(1.0 - random.f64()).ln() / rate;
    let (mut now, mut free_at) = (0.0_f64, 0.0_f64);
    let mut times = Vec::new();
    while now < seconds + 1.0 {
        now += exponential(arrivals);
        free_at = free_at.max(now) + exponential(services);
        // The first second is the warm-up.
        if now >= 1.0 {
            times.push(free_at - now);
        }
    }
    times.sort_unstable_by(f64::total_cmp);
    times[times.len() * 99 / 100]
}

#[test]
fn a_token_bucket_is_found_within_one_percent() {
    for seed in 0..20 {
        let plan = SearchPlan { seed, ..plan() };
        let (found, _) = find(&plan, |planned| seen(token_bucket(planned.rate)));
        let line = line(&found);
        near(line.rate, 3010.0, 0.01);
        let (low, high) = (line.low.unwrap(), line.high.unwrap());
        assert!(
            low <= 3013.0 && high >= 3013.0 && high / low < 1.05,
            "{line:?}"
        );
        assert!(token_bucket(found.held_up_to.unwrap()));
    }
}

#[test]
fn a_single_server_is_found_where_theory_has_it() {
    // Sojourn times are exponential with rate μ − λ, so p99 < 50 ms up to λ = μ − ln(100) / 50 ms.
    let theory = 1000.0 - 100.0_f64.ln() / 0.05;
    let mut covered = 0;
    for seed in 0..5 {
        let mut random = fastrand::Rng::with_seed(seed + 100);
        let plan = SearchPlan { seed, ..plan() };
        let (found, _) = find(&plan, |planned| {
            seen(p99_of_single_server(planned.rate, 1000.0, 20.0, &mut random) < 0.05)
        });
        let line = line(&found);
        near(line.rate, theory, 0.03);
        covered += u32::from(
            line.low.is_none_or(|low| low <= theory * 1.005)
                && line.high.is_none_or(|high| high >= theory * 0.995),
        );
    }
    assert!(covered >= 4, "{covered} of 5");
}

#[test]
fn single_bad_windows_do_not_move_the_line() {
    for seed in 0..20 {
        let mut random = fastrand::Rng::with_seed(seed + 7);
        let plan = SearchPlan { seed, ..plan() };
        let (found, _) = find(&plan, |planned| {
            seen(planned.rate < 5000.0 && random.f64() > 0.05)
        });
        near(line(&found).rate, 5000.0, 0.05);
    }
}

#[test]
fn the_rounds_are_in_random_order_and_of_equal_number() {
    let (_, windows) = find(&plan(), |planned| seen(planned.rate < 777.0));
    let rounds: Vec<f64> = windows
        .iter()
        .filter(|planned| planned.purpose == Purpose::Round)
        .map(|planned| planned.rate)
        .collect();
    assert_eq!(rounds.len(), 30);
    assert!(!rounds.is_sorted());
    let mut rates = rounds.clone();
    rates.sort_unstable_by(f64::total_cmp);
    for same in rates.chunks(6) {
        assert!((same[0] - same[5]).abs() < 1e-9, "{same:?}");
    }
    let below = windows
        .iter()
        .filter(|planned| planned.purpose == Purpose::Below);
    assert_eq!(below.count(), BELOW.len());
}

#[test]
fn the_same_seed_makes_the_same_windows() {
    let server = |planned: WindowPlan| seen(planned.rate < 777.0);
    assert_eq!(find(&plan(), server), find(&plan(), server));
    let other = SearchPlan { seed: 6, ..plan() };
    assert_ne!(find(&plan(), server).1, find(&other, server).1);
}

#[test]
fn what_breaks_at_less_load_is_found_below_that() {
    // Holds up to 10,000/s, but not between 900 and 1,100/s, which the rise steps over.
    let (found, _) = find(&plan(), |planned| {
        seen(planned.rate < 10_000.0 && !(900.0..1_100.0).contains(&planned.rate))
    });
    assert_eq!(found.gaps.len(), 1, "{found:?}");
    assert!((900.0..1_100.0).contains(&found.gaps[0]), "{found:?}");
    near(line(&found).rate, 900.0, 0.02);
}

#[test]
fn a_generator_that_can_no_more_ends_it() {
    let (found, windows) = find(&plan(), |planned| WindowOutcome {
        held: planned.rate < 20_000.0,
        generator_limited: planned.rate > 18_000.0,
        connections_full: false,
    });
    let SearchEnd::Generator { rate } = found.ended else {
        panic!("{found:?}")
    };
    near(rate, 20_000.0, 0.05);
    near(found.held_up_to.unwrap(), 20_000.0, 0.05);
    assert!(
        windows
            .iter()
            .all(|planned| planned.purpose != Purpose::Round)
    );
}

#[test]
fn a_busy_generator_that_keeps_up_is_no_limit() {
    let (found, _) = find(&plan(), |planned| WindowOutcome {
        held: planned.rate < 3_000.0,
        generator_limited: planned.rate < 2_000.0,
        connections_full: false,
    });
    near(line(&found).rate, 3_000.0, 0.02);
}

#[test]
fn connections_are_doubled_while_they_are_the_limit() {
    // 64 connections carry 640/s at 100 ms each; the server itself carries 3,000/s.
    let plan = SearchPlan {
        most_connections: 4096,
        ..plan()
    };
    let server = |planned: WindowPlan| {
        let carried = planned.connections as f64 * 10.0;
        WindowOutcome {
            held: planned.rate < carried.min(3_000.0),
            generator_limited: false,
            connections_full: planned.rate >= carried,
        }
    };
    let (found, _) = find(&plan, server);
    near(line(&found).rate, 3_000.0, 0.02);
    assert_eq!(found.connections, 512);
    assert!(!found.connections_full);
    let fixed = SearchPlan {
        most_connections: 64,
        ..plan
    };
    let (found, _) = find(&fixed, server);
    near(line(&found).rate, 640.0, 0.02);
    assert!(found.connections_full, "it has to be reported");
}

#[test]
fn what_was_found_before_an_interruption_is_kept() {
    let window = |rate: f64, held| {
        let planned = WindowPlan {
            rate,
            connections: 8,
            purpose: Purpose::Bracket,
        };
        (planned, held)
    };
    let found = SearchOutcome::so_far(&[window(1.0, true), window(2.0, true), window(4.0, false)]);
    assert_eq!(found.ended, SearchEnd::Interrupted);
    assert_eq!((found.held_up_to, found.connections), (Some(2.0), 8));
    let found = SearchOutcome::so_far(&[window(1.0, false), window(2.0, true)]);
    assert_eq!(found.held_up_to, None);
}

#[test]
fn the_ends_of_the_range() {
    let most = SearchPlan {
        most: 1_000.0,
        ..plan()
    };
    let (found, windows) = find(&most, |_| seen(true));
    assert_eq!(found.ended, SearchEnd::Most);
    assert_eq!(found.held_up_to, Some(1_000.0));
    assert!(windows.iter().all(|planned| planned.rate <= 1_000.0));

    let (found, _) = find(&plan(), |_| seen(false));
    assert!(
        matches!(found.ended, SearchEnd::Nothing { lowest } if lowest < 1.0),
        "{found:?}"
    );
    assert_eq!(found.held_up_to, None);

    let (found, _) = find(&plan(), |planned| seen(planned.rate < 7.0));
    near(line(&found).rate, 7.0, 0.02);
}

#[test]
fn few_rounds_give_an_estimate_without_bounds() {
    let few = SearchPlan {
        rounds: 2,
        ..plan()
    };
    let (found, _) = find(&few, |planned| seen(token_bucket(planned.rate)));
    let line = line(&found);
    near(line.rate, 3010.0, 0.02);
    assert_eq!((line.low, line.high), (None, None));
}

#[test]
fn an_error_ends_the_search() {
    let result = search(&plan(), &mut |planned| {
        if planned.rate > 300.0 {
            Err("gone")
        } else {
            Ok(seen(true))
        }
    });
    assert_eq!(result, Err("gone"));
}
