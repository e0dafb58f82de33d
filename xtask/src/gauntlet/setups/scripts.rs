//! k6 scripts: their summary is that of k6, their result files are those of other runs.

use crate::gauntlet::server::Served;
use crate::gauntlet::server::behaviour::{Behaviour, PLAIN, Reply};
use crate::gauntlet::setup::{Bytes, KNOWN, Known, Load, SETUP, Setup, Timed, millis};

const SLOW: Behaviour = Behaviour {
    delay: |_| millis(50),
    ..PLAIN
};

const SCRIPT: Setup = Setup {
    served: Served::Http1(SLOW),
    known: Known {
        bytes: Bytes::Unknown,
        timed: Timed::FromRequest,
        ..KNOWN
    },
    ..SETUP
};

pub(super) const SETUPS: &[Setup] = &[
    Setup {
        name: "k6-users",
        about: "a script with four users",
        load: Load::Script(
            "import http from 'k6/http';\n\
             export const options = { vus: 4, duration: '2s' };\n\
             export default () => { http.get('{url}'); };\n",
        ),
        ..SCRIPT
    },
    Setup {
        name: "k6-iterations",
        about: "a script with 40 iterations of two requests",
        load: Load::Script(
            "import http from 'k6/http';\n\
             export const options = { vus: 4, iterations: 40 };\n\
             export default () => { http.get('{url}'); http.post('{url}', 'x'); };\n",
        ),
        ..SCRIPT
    },
    Setup {
        name: "k6-arrivals",
        about: "a script with 40 arrivals/s and too few users: iterations are dropped",
        load: Load::Script(
            "import http from 'k6/http';\n\
             export const options = { scenarios: { a: { executor: 'constant-arrival-rate', rate: 40, \
             timeUnit: '1s', duration: '2s', preAllocatedVUs: 1, maxVUs: 1 } } };\n\
             export default () => { http.get('{url}'); };\n",
        ),
        known: Known {
            intended: Some(80),
            ..SCRIPT.known
        },
        ..SCRIPT
    },
    Setup {
        name: "k6-unanswered",
        about: "a script whose last requests are never answered",
        served: Served::Http1(Behaviour {
            delay: |_| millis(50),
            reply: |turn| {
                if turn.number >= 40 {
                    Reply::never()
                } else {
                    Reply::ok()
                }
            },
            ..PLAIN
        }),
        load: Load::Script(
            "import http from 'k6/http';\n\
             export const options = { scenarios: { a: { executor: 'constant-vus', vus: 4, \
             duration: '1s', gracefulStop: '500ms' } } };\n\
             export default () => { http.get('{url}'); };\n",
        ),
        known: Known {
            grace: millis(500),
            ..SCRIPT.known
        },
        ..SCRIPT
    },
];
