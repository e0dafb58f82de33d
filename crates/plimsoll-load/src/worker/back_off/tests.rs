use plimsoll_model::Clock;
use plimsoll_testkit::VirtualClock;

use super::*;

fn whole(doublings: u32) -> Duration {
    (FIRST * 2_u32.pow(doublings)).min(LONGEST)
}

#[test]
fn rests_double_up_to_a_bound_and_are_jittered() {
    let now = VirtualClock::new().now();
    for seed in 0..50 {
        let mut back_off = BackOff::new(seed);
        for attempt in 0..12 {
            back_off.refused(now);
            let rest = back_off.remaining(now);
            let whole = whole(attempt);
            assert!((whole / 2..=whole).contains(&rest), "{attempt}: {rest:?}");
        }
    }
    let rests = (0..50).map(|seed| {
        let mut back_off = BackOff::new(seed);
        back_off.refused(now);
        back_off.remaining(now)
    });
    let different: std::collections::HashSet<_> = rests.collect();
    assert!(different.len() > 40);
}

#[test]
fn the_first_connection_that_is_lost_is_replaced_at_once() {
    let now = VirtualClock::new().now();
    let mut back_off = BackOff::new(1);
    back_off.lost(now);
    assert_eq!(back_off.remaining(now), Duration::ZERO);
    for attempt in 0..9 {
        back_off.lost(now);
        let rest = back_off.remaining(now);
        assert!((whole(attempt) / 2..=whole(attempt)).contains(&rest));
    }
}

#[test]
fn any_carries_something_now_and_then_never_rests() {
    let now = VirtualClock::new().now();
    let mut back_off = BackOff::new(1);
    for _ in 0..5 {
        back_off.lost(now);
        assert_eq!(back_off.remaining(now), Duration::ZERO);
        back_off.carried();
    }
    back_off.refused(now);
    back_off.refused(now);
    back_off.carried();
    assert_eq!(back_off.until(), None);
}

#[test]
fn what_took_its_time_is_not_rested_from() {
    let begun = VirtualClock::new().now();
    let mut back_off = BackOff::new(1);
    for _ in 0..100 {
        back_off.refused(begun);
    }
    assert!(back_off.remaining(begun) >= LONGEST / 2);
    assert_eq!(back_off.remaining(begun + LONGEST), Duration::ZERO);
}
