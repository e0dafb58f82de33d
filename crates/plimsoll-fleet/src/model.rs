//! Coordinator and agents in virtual time, with faults: messages that are late, lost or repeated, agents that die.
//!
//! Agents count one request for each tick here; what they count otherwise is a matter of `plimsoll-load`.

mod world;

use std::time::Duration;

use plimsoll_load::Interval;
use proptest::prelude::*;

use self::world::{Fault, World};
use crate::coordinator::{Ending, FleetPlan, NotStarted, Note};
use crate::message::{Counted, Figures};

const SECOND: Duration = Duration::from_secs(1);

fn plan(agents: usize) -> FleetPlan {
    FleetPlan {
        agents,
        agent_wait: 30 * SECOND,
        ready_wait: 60 * SECOND,
        agent_timeout: 10 * SECOND,
        broker_timeout: 30 * SECOND,
        goes_on_without: false,
        most_spread: Duration::from_millis(50),
        connections: 50,
        is_dry: false,
    }
}

/// Merged ticks by agent, and whether the run is complete.
fn outcome(world: &World) -> (Vec<u64>, Vec<Option<String>>) {
    assert_eq!(world.ending, Some(Ending::Ended));
    let members = world.member_ends();
    let ticks = members.iter().map(|member| member.merged.started);
    let problems = members.iter().map(|member| member.problem.clone());
    (ticks.collect(), problems.collect())
}

#[test]
fn a_run_without_faults_is_complete_and_starts_at_one_moment() {
    let mut world = World::new(plan(3), 3, 5);
    world.run();
    let (ticks, problems) = outcome(&world);
    assert_eq!(ticks, [5, 5, 5]);
    assert_eq!(problems, [None, None, None]);
    let starts: Vec<_> = world.agents.iter().map(|it| it.started.unwrap()).collect();
    let (first, last) = (starts.iter().min().unwrap(), starts.iter().max().unwrap());
    let apart = last.abs_diff(*first);
    let Some(Note::Starting { spread, .. }) = world
        .notes
        .iter()
        .find(|note| matches!(note, Note::Starting { .. }))
    else {
        panic!("{:?}", world.notes);
    };
    assert!(apart <= *spread, "{apart:?} of {spread:?}");
    assert!(world.agents.iter().all(|it| it.machine.is_idle()));
}

#[test]
fn agents_wait_for_work_before_the_start_that_takes_long() {
    let mut world = World::new(plan(2), 2, 5);
    world.set_up = 50 * SECOND;
    world.run();
    assert_eq!(outcome(&world), (vec![5, 5], vec![None, None]));
}

#[test]
fn too_few_agents_end_the_wait_with_their_number() {
    let mut world = World::new(plan(3), 2, 5);
    world.run();
    let expected = NotStarted::TooFew {
        have: 2,
        wanted: 3,
        waited: 30 * SECOND,
    };
    assert_eq!(world.ending, Some(Ending::NotStarted(expected)));
    assert!(world.agents.iter().all(|it| it.started.is_none()));
    world.settle();
    assert!(world.agents.iter().all(|it| it.machine.is_idle()));
}

#[test]
fn an_agent_that_arrives_late_takes_part_and_one_too_many_does_not() {
    let mut world = World::new(plan(2), 3, 4);
    world.agents[0].arrives = 12 * SECOND;
    world.agents[2].arrives = 25 * SECOND;
    world.run();
    let (ticks, problems) = outcome(&world);
    assert_eq!(ticks, [4, 4]);
    assert_eq!(problems, [None, None]);
    assert_eq!(world.agents[2].started, None);
}

#[test]
fn two_agents_of_one_name_are_refused_with_both() {
    for (arrives, wanted) in [(0, 2), (3, 2), (0, 1)] {
        let mut world = World::new(plan(wanted), 2, 4);
        world.rename(1, "agent-0");
        world.agents[1].arrives = arrives * SECOND;
        world.run();
        let Some(Ending::NotStarted(NotStarted::SameName { agent, instances })) = &world.ending
        else {
            panic!("{:?}", world.ending);
        };
        assert_eq!(agent, "agent-0");
        let mut both = instances.clone();
        both.sort();
        assert_eq!(both, ["process-0", "process-1"]);
        assert!(world.agents.iter().all(|it| it.machine.is_idle()));
    }
}

#[test]
fn an_agent_that_is_started_again_before_the_run_is_the_same_agent() {
    let mut world = World::new(plan(2), 3, 4);
    world.rename(1, "agent-0");
    world.fault(Fault::Kill {
        agent: 0,
        at: 2 * SECOND,
    });
    world.agents[1].arrives = 3 * SECOND;
    world.agents[2].arrives = 4 * SECOND;
    world.run();
    assert_eq!(outcome(&world), (vec![4, 4], vec![None, None]));
    assert!(world.agents[1].started.is_some() && world.agents[2].started.is_some());
}

#[test]
fn a_log_that_is_full_ends_the_run_with_what_it_has() {
    let mut world = World::new(plan(2), 2, 60);
    world.fault(Fault::FillLog { at: 8 * SECOND });
    world.run();
    let (ticks, problems) = outcome(&world);
    for problem in problems {
        assert_eq!(problem.as_deref(), Some("the log is full"));
    }
    assert!(ticks.iter().all(|it| (3..9).contains(it)), "{ticks:?}");
    assert!(world.agents.iter().all(|it| it.machine.is_idle()));
}

#[test]
fn a_dry_run_says_who_would_make_what_and_starts_nothing() {
    let plan = FleetPlan {
        is_dry: true,
        ..plan(2)
    };
    let mut world = World::new(plan, 2, 4);
    world.run();
    assert_eq!(world.ending, Some(Ending::NotStarted(NotStarted::Dry)));
    let parts = world.notes.iter().find_map(|note| match note {
        Note::Parts(parts) => Some(parts.clone()),
        _ => None,
    });
    let parts = parts.unwrap();
    let workers: Vec<_> = parts
        .values()
        .map(|it| (it.first, it.workers, it.of))
        .collect();
    assert_eq!(workers, [(0, 2, 4), (2, 2, 4)]);
    assert!(
        world
            .agents
            .iter()
            .all(|it| it.started.is_none() && it.machine.is_idle())
    );
}

#[test]
fn an_agent_that_cannot_make_its_part_ends_the_run_before_the_start() {
    let mut world = World::new(plan(2), 2, 4);
    world.agents[1].refuses = Some("no such host".to_owned());
    world.run();
    let expected = NotStarted::Refused {
        agent: "agent-1".to_owned(),
        problem: "no such host".to_owned(),
    };
    assert_eq!(world.ending, Some(Ending::NotStarted(expected)));
    world.settle();
    assert!(world.agents.iter().all(|it| it.machine.is_idle()));
}

#[test]
fn an_agent_that_dies_ends_the_others_and_the_run_is_incomplete() {
    let mut world = World::new(plan(3), 3, 60);
    world.fault(Fault::Kill {
        agent: 1,
        at: 8 * SECOND,
    });
    world.run();
    let (ticks, problems) = outcome(&world);
    assert!(
        problems[1]
            .as_ref()
            .unwrap()
            .contains("nothing was heard of it for 10s"),
        "{problems:?}"
    );
    assert_eq!((&problems[0], &problems[2]), (&None, &None));
    assert!(ticks[0] < 60 && ticks[2] < 60, "{ticks:?}");
    assert!(
        ticks[0] >= 10,
        "the silence was noticed after ten seconds: {ticks:?}"
    );
    let lost = world
        .notes
        .iter()
        .find(|note| matches!(note, Note::Lost { goes_on: false, .. }));
    assert!(lost.is_some(), "{:?}", world.notes);
}

#[test]
fn the_others_go_on_if_they_are_to() {
    let mut plan = plan(3);
    plan.goes_on_without = true;
    let mut world = World::new(plan, 3, 40);
    world.fault(Fault::Kill {
        agent: 1,
        at: 8 * SECOND,
    });
    world.run();
    let (ticks, problems) = outcome(&world);
    assert_eq!((ticks[0], ticks[2]), (40, 40));
    assert!(ticks[1] < 10 && problems[1].is_some());
}

#[test]
fn an_agent_that_dies_before_the_start_is_named() {
    let mut world = World::new(plan(2), 2, 40);
    world.agents[1].prepares = 30 * SECOND;
    world.fault(Fault::Kill {
        agent: 1,
        at: 5 * SECOND,
    });
    world.run();
    let Some(Ending::NotStarted(NotStarted::Lost { agent, .. })) = &world.ending else {
        panic!("{:?}", world.ending);
    };
    assert_eq!(agent, "agent-1");
}

#[test]
fn a_busy_agent_that_still_gives_signs_of_life_is_not_lost() {
    let mut world = World::new(plan(2), 2, 4);
    // Its ticks come far apart.
    world.agents[1].tick_every = 25 * SECOND;
    world.run();
    let (ticks, problems) = outcome(&world);
    assert_eq!(ticks, [4, 4]);
    assert_eq!(problems, [None, None]);
}

#[test]
fn an_agent_without_coordinator_ends_its_part() {
    let mut world = World::new(plan(2), 2, 1000);
    world.fault(Fault::KillCoordinator { at: 8 * SECOND });
    world.run_until(40 * SECOND);
    assert!(world.ending.is_none());
    for agent in &world.agents {
        assert!(agent.machine.is_idle(), "{agent:?}");
        assert!(
            (15..25).contains(&agent.ticks),
            "it went on for ten seconds: {}",
            agent.ticks
        );
    }
}

#[test]
fn another_coordinator_goes_on_with_the_run() {
    let mut world = World::new(plan(2), 2, 30);
    world.fault(Fault::KillCoordinator { at: 8 * SECOND });
    world.fault(Fault::Attach { at: 14 * SECOND });
    world.run();
    assert_eq!(outcome(&world), (vec![30, 30], vec![None, None]));
}

#[test]
fn one_that_comes_too_late_reports_what_there_is() {
    let mut world = World::new(plan(2), 2, 300);
    world.fault(Fault::KillCoordinator { at: 8 * SECOND });
    world.fault(Fault::Attach { at: 60 * SECOND });
    world.run();
    let (ticks, problems) = outcome(&world);
    assert!(
        ticks.iter().all(|ticks| (15..25).contains(ticks)),
        "{ticks:?}"
    );
    for problem in problems {
        let problem = problem.unwrap();
        assert!(
            problem.contains("nothing was heard of the coordinator for 10s"),
            "{problem}"
        );
    }
}

#[test]
fn an_agent_that_a_signal_ends_leaves_and_ends_the_others() {
    let mut world = World::new(plan(2), 2, 60);
    world.fault(Fault::Interrupt {
        agent: 1,
        at: 8 * SECOND,
    });
    world.run();
    let (ticks, problems) = outcome(&world);
    assert_eq!(
        problems,
        [None, Some("it was ended by a signal".to_owned())]
    );
    assert!(ticks.iter().all(|it| (3..12).contains(it)), "{ticks:?}");
    let is_named = |note: &Note| matches!(note, Note::Lost { agent, goes_on: false, .. } if agent == "agent-1");
    assert_eq!(world.notes.iter().filter(|it| is_named(it)).count(), 1);
}

#[test]
fn the_others_go_on_without_one_that_a_signal_ends_and_it_leaves_at_once() {
    let plan = FleetPlan {
        goes_on_without: true,
        ..plan(2)
    };
    let mut world = World::new(plan, 2, 30);
    world.fault(Fault::Interrupt {
        agent: 1,
        at: 8 * SECOND,
    });
    world.run_until(12 * SECOND);
    assert!(world.agents[1].machine.is_idle() && !world.agents[0].machine.is_idle());
    world.run();
    let (ticks, problems) = outcome(&world);
    assert_eq!((ticks[0], &problems[0]), (30, &None));
    assert!(ticks[1] < 12 && problems[1].is_some());
}

#[test]
fn a_broker_that_is_away_for_a_time_changes_nothing() {
    let mut world = World::new(plan(2), 2, 20);
    world.fault(Fault::CutBroker { at: 8 * SECOND });
    world.fault(Fault::ConnectBroker { at: 15 * SECOND });
    world.run();
    assert_eq!(outcome(&world), (vec![20, 20], vec![None, None]));
    let waits = 30 * SECOND;
    assert!(world.notes.contains(&Note::BrokerAway { waits }));
    let is_back = |note: &Note| matches!(note, Note::BrokerBack { after } if *after >= 6 * SECOND);
    assert!(world.notes.iter().any(is_back), "{:?}", world.notes);
}

#[test]
fn a_broker_that_stays_away_ends_the_run_with_what_was_counted() {
    let mut world = World::new(plan(2), 2, 60);
    world.fault(Fault::CutBroker { at: 8 * SECOND });
    world.run();
    let (ticks, problems) = outcome(&world);
    assert!(ticks.iter().all(|it| (4..9).contains(it)), "{ticks:?}");
    for problem in problems {
        assert_eq!(problem.as_deref(), Some("the broker was away for 30s"));
    }
    let reason = "the broker was away for 30s".to_owned();
    assert!(world.notes.contains(&Note::Abandoned(reason)));
    // They have stopped by themselves.
    assert!(world.agents.iter().all(|it| it.machine.is_idle()));
    assert!(world.agents.iter().all(|it| (15..25).contains(&it.ticks)));
}

#[test]
fn what_agents_counted_before_they_stopped_comes_with_the_broker() {
    let mut world = World::new(plan(2), 2, 60);
    world.fault(Fault::CutBroker { at: 8 * SECOND });
    world.fault(Fault::ConnectBroker { at: 30 * SECOND });
    world.run();
    let (ticks, problems) = outcome(&world);
    let made: Vec<_> = world.agents.iter().map(|it| it.ticks).collect();
    assert_eq!(ticks, made);
    assert!(made.iter().all(|it| (15..25).contains(it)), "{made:?}");
    for problem in problems {
        let problem = problem.unwrap();
        let reason = "nothing was heard of the coordinator for 10s";
        assert!(problem.contains(reason), "{problem}");
    }
}

#[test]
fn a_stop_waits_shortly_for_a_broker_that_is_away_and_an_urgent_one_does_not() {
    for (is_urgent, until, reason) in [
        (false, 20, "the broker was away for 12s"),
        (true, 10, "the broker was away when the run was ended"),
    ] {
        let mut world = World::new(plan(2), 2, 60);
        world.fault(Fault::CutBroker { at: 8 * SECOND });
        world.fault(Fault::Stop {
            at: 10 * SECOND,
            is_urgent,
        });
        world.run_until(until * SECOND + SECOND / 10);
        let (ticks, problems) = outcome(&world);
        assert!(ticks.iter().all(|it| (4..9).contains(it)), "{ticks:?}");
        for problem in problems {
            assert_eq!(problem.as_deref(), Some(reason));
        }
    }
}

#[test]
fn a_broker_that_stays_away_before_the_start_is_named() {
    let mut world = World::new(plan(3), 2, 60);
    world.fault(Fault::CutBroker { at: 2 * SECOND });
    world.run();
    let waited = 30 * SECOND;
    let expected = NotStarted::BrokerAway { waited };
    assert_eq!(world.ending, Some(Ending::NotStarted(expected)));
}

#[test]
fn the_time_to_wait_for_agents_is_longer_by_that_without_the_broker() {
    let mut world = World::new(plan(2), 2, 4);
    world.agents[1].arrives = 38 * SECOND;
    world.fault(Fault::CutBroker { at: 5 * SECOND });
    world.fault(Fault::ConnectBroker { at: 25 * SECOND });
    world.run();
    assert_eq!(outcome(&world), (vec![4, 4], vec![None, None]));
}

#[test]
fn a_stop_ends_all_parts_and_the_figures_are_whole() {
    let mut world = World::new(plan(2), 2, 1000);
    world.fault(Fault::Stop {
        at: 9 * SECOND,
        is_urgent: false,
    });
    world.run();
    let (ticks, problems) = outcome(&world);
    assert_eq!(problems, [None, None]);
    assert!(
        ticks.iter().all(|ticks| (1..20).contains(ticks)),
        "{ticks:?}"
    );
}

#[test]
fn a_stop_before_the_start_is_no_start() {
    let mut world = World::new(plan(3), 2, 1000);
    world.fault(Fault::Stop {
        at: 2 * SECOND,
        is_urgent: false,
    });
    world.run();
    assert_eq!(
        world.ending,
        Some(Ending::NotStarted(NotStarted::Interrupted))
    );
}

#[test]
fn clocks_that_differ_by_hours_do_not_matter() {
    let mut world = World::new(plan(2), 2, 3);
    world.agents[0].clock_ahead = Duration::from_hours(3);
    world.run();
    assert_eq!(outcome(&world).1, [None, None]);
    let starts: Vec<_> = world.agents.iter().map(|it| it.started.unwrap()).collect();
    assert!(
        starts[0].abs_diff(starts[1]) < Duration::from_millis(50),
        "{starts:?}"
    );
}

#[test]
fn a_network_too_slow_for_one_start_is_refused() {
    let mut world = World::new(plan(2), 2, 3);
    world.latency = (Duration::from_millis(100), Duration::from_millis(200));
    world.run();
    let ending = world.ending.clone();
    let Some(Ending::NotStarted(NotStarted::Spread { spread, .. })) = ending else {
        panic!("{ending:?}");
    };
    assert!(spread >= Duration::from_millis(200), "{spread:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Live messages may be lost and every message may come twice and out of order: the figures are still those of all agents.
    #[test]
    fn repeated_late_and_lost_messages_change_nothing(seed in any::<u64>(), agents in 1_usize..4) {
        let mut plan = plan(agents);
        plan.most_spread = Duration::from_secs(5);
        let mut world = World::new(plan, agents, 6);
        world.latency = (Duration::from_millis(1), Duration::from_millis(400));
        world.seed(seed);
        world.repeats = 30;
        world.loses_live = 10;
        world.run();
        let (ticks, problems) = outcome(&world);
        prop_assert!(ticks.iter().all(|ticks| *ticks == 6), "{:?} {:?}", ticks, problems);
        prop_assert!(problems.iter().all(Option::is_none), "{:?}", problems);
    }

    /// A tick that is lost makes the run incomplete, whichever it is.
    #[test]
    fn a_lost_tick_is_noticed(lost in 0_u64..6, agent in 0_usize..2) {
        let mut world = World::new(plan(2), 2, 6);
        world.fault(Fault::LoseTick { agent, number: lost });
        world.run();
        let (ticks, problems) = outcome(&world);
        prop_assert_eq!(ticks[agent], 5);
        prop_assert!(problems[agent].as_ref().is_some_and(|it| it.contains("1 of its 6 ticks")), "{:?}", problems);
        prop_assert!(problems[1 - agent].is_none());
    }

    /// Whatever dies at whatever time, the run ends, and it is complete only if every agent made all of its part.
    #[test]
    fn a_run_ends_and_never_looks_complete_when_it_is_not(
        seed in any::<u64>(), kills in prop::collection::vec((0_usize..3, 0_u64..30_000), 0..3), goes_on in any::<bool>(),
    ) {
        let mut plan = plan(3);
        plan.goes_on_without = goes_on;
        let mut world = World::new(plan, 3, 12);
        world.seed(seed);
        for (agent, millis) in kills {
            world.fault(Fault::Kill { agent, at: Duration::from_millis(millis) });
        }
        world.run();
        if world.ending == Some(Ending::Ended) {
            let members = world.member_ends();
            for member in &members {
                let is_whole = member.merged.started == 12;
                prop_assert!(is_whole || member.problem.is_some() || !goes_on && members.iter().any(|it| it.problem.is_some()), "{:?}", member);
            }
        }
    }
}

/// The counts of one tick.
fn one_request() -> Interval {
    let mut interval = Interval::new(0, false);
    interval.counts.started = 1;
    interval.counts.ok = 1;
    interval
}

fn figures() -> Counted {
    Counted::Load(Box::new(Figures::from_interval(&one_request())))
}
