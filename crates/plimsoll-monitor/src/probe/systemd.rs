//! A unit of systemd on this machine, by the bus of the system.
//!
//! Source: org.freedesktop.systemd1(5), sections "The Manager Object" and "Unit Objects".

mod bus;

use std::path::PathBuf;
use std::sync::Arc;

use plimsoll_client::Endpoint;
use plimsoll_model::{Clock, Failure, Phase};
use serde_json::{Value, json};

use crate::probe::context::{ProbeContext, Reach, timed};
use crate::probe::reading::Reading;
use crate::probe::systemd::bus::{Bus, BusError, Call};
use crate::probe::{Probe, ProbeFuture};

#[cfg(feature = "contract")]
pub(super) use crate::probe::systemd::bus::read_anything;

const NAME: &str = "org.freedesktop.systemd1";
const UNIT: &str = "org.freedesktop.systemd1.Unit";
const SERVICE: &str = "org.freedesktop.systemd1.Service";

/// Looks at a unit.
#[derive(Debug)]
pub struct SystemdProbe {
    unit: String,
    states: Vec<UnitState>,
    bus: Endpoint,
    reach: Reach,
}

/// The `ActiveState` of a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnitState {
    /// Started.
    Active,
    /// Started, and about to read its configuration again.
    Reloading,
    /// About to start.
    Activating,
    /// Not started, or ended without an error.
    Inactive,
    /// About to end.
    Deactivating,
    /// Ended with an error.
    Failed,
}

impl UnitState {
    /// All of them by their names.
    pub const ALL: [(&str, Self); 6] = [
        ("active", Self::Active),
        ("reloading", Self::Reloading),
        ("activating", Self::Activating),
        ("inactive", Self::Inactive),
        ("deactivating", Self::Deactivating),
        ("failed", Self::Failed),
    ];

    /// The state of that name.
    pub fn named(name: &str) -> Option<Self> {
        let found = Self::ALL.iter().find(|(known, _)| *known == name);
        found.map(|(_, state)| *state)
    }
}

impl SystemdProbe {
    /// - `unit`: a name that [`is_unit`] accepts.
    /// - `states`: in which it is up.
    /// - `bus`: the socket of the bus.
    pub fn new(unit: &str, states: Vec<UnitState>, bus: PathBuf, reach: Reach) -> Self {
        Self {
            unit: unit.to_owned(),
            states,
            bus: Endpoint::unix_socket(bus),
            reach,
        }
    }

    async fn look(&self, context: &ProbeContext, reading: &mut Reading) -> Result<(), Failure> {
        let Some(connection) = self.reach.connect(&self.bus, context, reading).await else {
            return Ok(());
        };
        let begun = context.clock.now();
        let mut bus = Bus::begin(connection.stream).await?;
        match self.properties(&mut bus).await {
            Ok(found) => {
                let waited = context.clock.now().saturating_duration_since(begun);
                reading.phases.set(Phase::Wait, waited);
                reading.unmet = self.unmet(&found);
                let state = found["active_state"].as_str().and_then(UnitState::named);
                let is_between =
                    matches!(state, Some(UnitState::Activating | UnitState::Reloading));
                if is_between && reading.unmet.is_none() {
                    reading.warning = Some(format!("the unit is {}", shown(&found)));
                }
                reading.body = found.to_string().into_bytes();
                reading.size = reading.body.len() as u64;
                Ok(())
            }
            Err(BusError::Failed(failure)) => Err(failure),
            Err(BusError::Refused(why)) => {
                reading.unmet = Some(format!("systemd reports: {why}"));
                Ok(())
            }
        }
    }

    async fn properties(&self, bus: &mut Bus) -> Result<Value, BusError> {
        let load = Call {
            destination: NAME,
            path: "/org/freedesktop/systemd1",
            interface: "org.freedesktop.systemd1.Manager",
            member: "LoadUnit",
            arguments: &[&self.unit],
        };
        let path = bus.call(load).await?;
        let path = path.as_str().unwrap_or_default().to_owned();
        let mut found = json!({});
        let of_unit = [
            ("load_state", "LoadState"),
            ("active_state", "ActiveState"),
            ("sub_state", "SubState"),
        ];
        let of_service = [
            ("result", "Result"),
            ("restarts", "NRestarts"),
            ("exit_status", "ExecMainStatus"),
        ];
        let is_service = self.unit.ends_with(".service");
        let of_service = of_service.iter().filter(|_| is_service);
        let all = of_unit.iter().map(|names| (UNIT, names));
        for (interface, (key, property)) in all.chain(of_service.map(|names| (SERVICE, names))) {
            let get = Call {
                destination: NAME,
                path: &path,
                interface: "org.freedesktop.DBus.Properties",
                member: "Get",
                arguments: &[interface, property],
            };
            found[*key] = bus.call(get).await?;
        }
        Ok(found)
    }

    /// Why the unit is not up.
    fn unmet(&self, found: &Value) -> Option<String> {
        if found["load_state"] == "not-found" {
            return Some(format!("there is no unit {}", self.unit));
        }
        let state = found["active_state"].as_str().and_then(UnitState::named);
        if state.is_some_and(|state| self.states.contains(&state)) {
            return None;
        }
        let why = match found["result"].as_str() {
            None | Some("success") => String::new(),
            Some("exit-code") => format!(": it has exited with {}", found["exit_status"]),
            Some(result) => format!(": {result}"),
        };
        Some(format!("the unit is {}{why}", shown(found)))
    }
}

/// Both states, such as `inactive (dead)`.
fn shown(found: &Value) -> String {
    let text = |key: &str| found[key].as_str().unwrap_or("unknown").to_owned();
    format!("{} ({})", text("active_state"), text("sub_state"))
}

/// Whether a text can be the name of a unit, with its type.
pub fn is_unit(name: &str) -> bool {
    const TYPES: [&str; 11] = [
        "service",
        "socket",
        "timer",
        "mount",
        "target",
        "path",
        "slice",
        "scope",
        "swap",
        "device",
        "automount",
    ];

    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b":-_.\\@".contains(&byte);
    name.len() <= 255
        && name.bytes().all(is_plain)
        && name
            .rsplit_once('.')
            .is_some_and(|(name, kind)| !name.is_empty() && TYPES.contains(&kind))
}

impl Probe for SystemdProbe {
    fn kind(&self) -> &'static str {
        "systemd"
    }

    fn target(&self) -> String {
        self.unit.clone()
    }

    fn host(&self) -> Option<Arc<str>> {
        None
    }

    fn check<'a>(&'a self, context: &'a ProbeContext) -> ProbeFuture<'a> {
        Box::pin(timed(self.reach.timeout, context, async |reading, _| {
            if let Err(failure) = self.look(context, reading).await {
                reading.failure = Some(failure);
            }
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::ReachOptions;

    #[test]
    fn names_have_a_type() {
        for name in [
            "nginx.service",
            "dev-sda1.swap",
            "getty@tty1.service",
            "a\\x2db.mount",
        ] {
            assert!(is_unit(name), "{name}");
        }
        for name in [
            "nginx",
            ".service",
            "a b.service",
            "a/b.service",
            "a.conf",
            "ä.service",
        ] {
            assert!(!is_unit(name), "{name}");
        }
    }

    #[test]
    fn a_unit_is_up_in_its_states() {
        let probe = |states: Vec<UnitState>| {
            let reach = Reach::new(ReachOptions::default()).unwrap();
            SystemdProbe::new("a.service", states, PathBuf::from("/nowhere"), reach)
        };
        let found = |active: &str, sub: &str, result: &str| json!({ "load_state": "loaded", "active_state": active, "sub_state": sub, "result": result, "exit_status": 3 });
        let usual = probe(vec![UnitState::Active]);
        assert_eq!(usual.unmet(&found("active", "running", "success")), None);
        let unmet = |found: &Value| usual.unmet(found).unwrap();
        assert_eq!(
            unmet(&found("inactive", "dead", "success")),
            "the unit is inactive (dead)"
        );
        assert_eq!(
            unmet(&found("failed", "failed", "exit-code")),
            "the unit is failed (failed): it has exited with 3"
        );
        assert_eq!(
            unmet(&found("failed", "failed", "signal")),
            "the unit is failed (failed): signal"
        );
        assert_eq!(
            unmet(&json!({ "load_state": "not-found" })),
            "there is no unit a.service"
        );
        let job = probe(vec![UnitState::Active, UnitState::Inactive]);
        assert_eq!(job.unmet(&found("inactive", "dead", "success")), None);
        assert!(job.unmet(&found("failed", "failed", "timeout")).is_some());
    }

    /// A bus of its own, and what stands for systemd on it: `a.service` runs, `b.service` has failed, `c.service` is not there.
    struct StandIn {
        folder: tempfile::TempDir,
        daemon: std::process::Child,
    }

    impl StandIn {
        fn start() -> Self {
            let folder = tempfile::TempDir::new().unwrap();
            let socket = folder.path().join("bus");
            let daemon = std::process::Command::new("dbus-daemon")
                .args(["--session", "--nofork", "--nopidfile", "--address"])
                .arg(format!("unix:path={}", socket.display()))
                .stdout(std::process::Stdio::null())
                .spawn()
                .unwrap();
            let bus = Self { folder, daemon };
            // The file is there before the daemon listens.
            let is_served = || std::os::unix::net::UnixStream::connect(bus.socket()).is_ok();
            plimsoll_testkit::eventually(is_served);
            let (ready, started) = std::sync::mpsc::channel();
            let socket = bus.socket();
            std::thread::spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread()
                    .enable_all()
                    .build()
                    .unwrap();
                // Ends with the daemon.
                runtime.block_on(bus::serve(&socket, ready, answer)).ok();
            });
            started.recv().unwrap();
            bus
        }

        fn socket(&self) -> PathBuf {
            self.folder.path().join("bus")
        }

        fn read(&self, unit: &str) -> Reading {
            let reach = Reach::new(ReachOptions {
                timeout: std::time::Duration::from_secs(5),
                ..ReachOptions::default()
            });
            let states = vec![UnitState::Active, UnitState::Activating];
            let probe = SystemdProbe::new(unit, states, self.socket(), reach.unwrap());
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(probe.check(&ProbeContext::new()))
        }
    }

    impl Drop for StandIn {
        fn drop(&mut self) {
            self.daemon.kill().unwrap();
            self.daemon.wait().unwrap();
        }
    }

    /// The answer to a call with arguments of texts.
    fn answer(path: &str, member: &str, arguments: &[String]) -> bus::Answer {
        if member == "LoadUnit" {
            let name = arguments[0].replace(['.', '-'], "_");
            return bus::Answer::Path(format!("/org/freedesktop/systemd1/unit/{name}"));
        }
        let (unit, property) = (
            path.rsplit('/').next().unwrap_or_default(),
            arguments[1].as_str(),
        );
        let text = |text: &str| bus::Answer::Text(text.to_owned());
        match (unit, property) {
            ("c_service", "LoadState") => text("not-found"),
            (_, "LoadState") => text("loaded"),
            ("a_service", "ActiveState") => text("active"),
            ("a_service", "SubState") => text("running"),
            ("b_service", "ActiveState" | "SubState") => text("failed"),
            ("s_service", "ActiveState") => text("activating"),
            ("s_service", "SubState") => text("start"),
            ("b_service", "Result") => text("exit-code"),
            (_, "Result") => text("success"),
            (_, "NRestarts") => bus::Answer::Number(2),
            (_, "ExecMainStatus") => bus::Answer::Number(if unit == "b_service" { 3 } else { 0 }),
            (_, "ActiveState" | "SubState") => text("inactive"),
            _ => bus::Answer::Refusal(format!("no property {property}")),
        }
    }

    #[test]
    fn units_are_read_over_a_bus() {
        let bus = StandIn::start();
        let reading = bus.read("a.service");
        assert_eq!(
            (&reading.failure, &reading.unmet, &reading.warning),
            (&None, &None, &None)
        );
        let body: Value = serde_json::from_slice(&reading.body).unwrap();
        let expected = json!({ "load_state": "loaded", "active_state": "active", "sub_state": "running",
            "result": "success", "restarts": 2, "exit_status": 0 });
        assert_eq!(body, expected);
        assert!(reading.phases.get(Phase::Wait).is_some());
        let failed = bus.read("b.service").unmet.unwrap();
        assert_eq!(failed, "the unit is failed (failed): it has exited with 3");
        let missing = bus.read("c.service").unmet.unwrap();
        assert_eq!(missing, "there is no unit c.service");
        let starting = bus.read("s.service").warning.unwrap();
        assert_eq!(starting, "the unit is activating (start)");
        let socket = bus.socket();
        drop(bus);
        let reach = Reach::new(ReachOptions::default()).unwrap();
        assert!(!socket.exists());
        assert!(
            SystemdProbe::new("a.service", Vec::new(), socket, reach)
                .host()
                .is_none()
        );
    }
}
