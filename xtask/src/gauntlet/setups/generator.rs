//! Generators that are disturbed: they have to say so.

use crate::gauntlet::server::Served;
use crate::gauntlet::server::behaviour::{Behaviour, PLAIN};
use crate::gauntlet::setup::{Disturbance, KNOWN, Known, Load, SETUP, Setup, Timed, millis};

const SLOW: Behaviour = Behaviour {
    delay: |_| millis(20),
    ..PLAIN
};

const STOPPED: Disturbance = Disturbance::Stopped(millis(1200), millis(700));

const CLOSED: Setup = Setup {
    served: Served::Http1(SLOW),
    load: Load::Flags("-c 4 -z 3s"),
    known: Known {
        rate: Some(200.0),
        ..KNOWN
    },
    ..SETUP
};

const OPEN: Setup = Setup {
    load: Load::Flags("-c 128 -q 100 -z 3s"),
    known: Known {
        intended: Some(300),
        timed: Timed::FromArrival(100.0),
        ..KNOWN
    },
    ..CLOSED
};

/// As fast as it can, so that less of a core is always felt.
const HUNGRY: Setup = Setup {
    served: Served::Http1(PLAIN),
    load: Load::Flags("-c 4 -z 3s"),
    ..SETUP
};

pub(super) const SETUPS: &[Setup] = &[
    Setup {
        name: "stopped",
        about: "the generator is stopped for 0.7 s; closed loop",
        disturbance: STOPPED,
        known: Known {
            cautions: &["stood still"],
            ..CLOSED.known
        },
        ..CLOSED
    },
    Setup {
        name: "stopped-open",
        about: "the same on a schedule",
        disturbance: STOPPED,
        known: Known {
            cautions: &["stood still"],
            ..OPEN.known
        },
        ..OPEN
    },
    Setup {
        name: "neighbour",
        about: "a busy process on the generator's core",
        disturbance: Disturbance::Neighbour,
        ..CLOSED
    },
    Setup {
        name: "neighbour-open",
        about: "the same on a schedule",
        disturbance: Disturbance::Neighbour,
        ..OPEN
    },
    Setup {
        name: "throttled",
        about: "a control group that may use 5 % of a core",
        disturbance: Disturbance::Throttled(5),
        ..CLOSED
    },
    Setup {
        name: "throttled-open",
        about: "the same on a schedule",
        disturbance: Disturbance::Throttled(5),
        ..OPEN
    },
    Setup {
        name: "neighbour-hungry",
        about: "a busy process on the core of a generator that would need all of it",
        disturbance: Disturbance::Neighbour,
        known: Known {
            cautions: &["ready and not run"],
            ..KNOWN
        },
        ..HUNGRY
    },
    Setup {
        name: "throttled-hungry",
        about: "a control group that may use 5 % of a core, which would need all of it",
        disturbance: Disturbance::Throttled(5),
        known: Known {
            cautions: &["was throttled"],
            ..KNOWN
        },
        ..HUNGRY
    },
    Setup {
        name: "clock-step",
        about: "the wall clock leaps an hour ahead",
        disturbance: Disturbance::ClockStep(millis(1000)),
        ..OPEN
    },
    Setup {
        name: "interrupted",
        about: "the user ends the run early",
        disturbance: Disturbance::Interrupted(millis(1500)),
        known: Known { exit: 130, ..KNOWN },
        ..CLOSED
    },
];
