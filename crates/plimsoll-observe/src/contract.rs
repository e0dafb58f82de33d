//! The contract of [`Target`], and how the variants differ.

use std::net::{Ipv4Addr, TcpListener};
use std::time::Duration;

use plimsoll_model::Clock;
use plimsoll_testkit::refused_address;
use plimsoll_wire::SystemClock;
use plimsoll_wire::process::{Process, ProcessSpec};
use plimsoll_wire::tls::Trust;

use super::*;
use crate::group::real::{RealGroup, skipped};

const LONG: Duration = Duration::from_secs(20);

fn start(plan: &SpawnedPlan) -> Result<Spawned, NotReady> {
    Spawned::start(plan, &|| false)
}

/// - `name`: the name it must give; `outlives`: whether its process must still run once stopped.
fn contract(target: Box<dyn Target>, name: &str, outlives: bool) {
    let pid = target.pid().unwrap();
    contract_of_running(&*target, name);
    target.stop();
    assert_eq!(ProcessTree::attach(pid).is_ok(), outlives);
}

/// What holds for every target that runs and is not idle: its processes hold memory and descriptors, its processor time
/// only grows, its samples are those of the times that they have.
pub(crate) fn contract_of_running(target: &dyn Target, name: &str) {
    assert_eq!(target.name(), name);
    let mut source = target.source().unwrap();
    let first = source.sample(Duration::ZERO, 0).unwrap();
    assert!(first.processes >= 1, "{first:?}");
    assert!(first.threads >= first.processes, "{first:?}");
    assert!(first.memory.total_bytes() > 0, "{first:?}");
    assert!(first.fds > 0, "{first:?}");
    let at = Duration::from_secs(1);
    let second = source.sample(at, 5).unwrap();
    assert!(second.cpu.user >= first.cpu.user && second.cpu.system >= first.cpu.system);
    assert_eq!(second.completed, 5);
    assert_eq!(source.clock().is_none(), target.agent().is_none());
    if target.agent().is_none() {
        assert_eq!(second.at, at);
    } else {
        // The clock of another machine is known within an error.
        let error = source.clock().unwrap().error;
        assert!(second.at.abs_diff(at) <= LONG && error <= LONG);
    }
    // Other readers of the same target see the same processor time.
    let mut other = target.source().unwrap();
    let beside = other.sample(at, 0).unwrap().cpu.total();
    assert!(beside + Duration::from_millis(20) >= second.cpu.total());
}

fn plan(script: &str, ready: Readiness) -> SpawnedPlan {
    SpawnedPlan {
        name: None,
        argv: vec!["/bin/sh".into(), "-c".into(), script.into()],
        cores: Vec::new(),
        ready,
        timeout: LONG,
        grace: LONG,
    }
}

#[test]
fn a_process_that_was_there_keeps_the_contract() {
    let process = Process::spawn(&ProcessSpec {
        argv: vec!["sleep".into(), "100".into()],
        ..ProcessSpec::default()
    })
    .unwrap();
    let name = format!("pid {}", process.id());
    contract(Box::new(Pid::new(process.id()).unwrap()), &name, true);
}

#[test]
fn the_cores_of_a_target_are_known() {
    let core = *plimsoll_wire::cores::available().last().unwrap();
    let mut plan = plan(
        "echo listening on http://[::1]:1; exec sleep 100",
        Readiness::Announces,
    );
    plan.cores = vec![core];
    let spawned = start(&plan).unwrap();
    assert_eq!(spawned.cores(), [core]);
    let seen = Pid::new(spawned.pid().unwrap()).unwrap();
    let alone = plimsoll_wire::cores::available().len() == 1;
    assert_eq!(seen.cores(), if alone { vec![] } else { vec![core] });
}

#[test]
fn a_spawned_program_keeps_the_contract() {
    let script = "echo 'origin listening on http://127.0.0.1:4711 (pid 1)'; exec sleep 100";
    let target = start(&plan(script, Readiness::Announces)).unwrap();
    assert_eq!(target.announced(), Some("http://127.0.0.1:4711"));
    contract(Box::new(target), "spawned sh", false);
}

#[test]
fn a_spawned_program_is_waited_for_until_it_accepts() {
    let address = refused_address();
    let mut plan = plan("exec sleep 100.25", Readiness::Accepts(vec![address]));
    plan.name = Some("embedded origin".into());
    // The program itself cannot listen, so this test does, once the start has looked for others.
    let mut listener = None;
    std::thread::scope(|scope| {
        let start = scope.spawn(|| start(&plan));
        let begun = SystemClock.now();
        while !start.is_finished() {
            assert!(begun.elapsed() < LONG);
            if listener.is_none() && has_child_with("100.25") {
                listener = TcpListener::bind(address).ok();
            }
            std::thread::yield_now();
        }
        let target = start.join().unwrap().unwrap();
        assert_eq!(target.name(), "embedded origin");
    });
    assert!(listener.is_some());
}

/// Whether a process with that argument was started by this one.
fn has_child_with(argument: &str) -> bool {
    procfs::process::all_processes()
        .expect("processes can be listed")
        .flatten()
        .filter(|process| {
            process
                .stat()
                .is_ok_and(|stat| stat.ppid.unsigned_abs() == std::process::id())
        })
        .filter_map(|process| process.cmdline().ok())
        .any(|words| words.iter().any(|word| word == argument))
}

#[test]
fn a_program_that_ends_early_says_why() {
    let script = "echo 'bind() to 0.0.0.0:80 failed' >&2; exit 3";
    for ready in [
        Readiness::Announces,
        Readiness::Accepts(vec![refused_address()]),
    ] {
        let error = start(&plan(script, ready)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "`/bin/sh` ended before it served (exit status: 3)\n  bind() to 0.0.0.0:80 failed"
        );
    }
}

#[test]
fn a_program_that_goes_into_the_background_is_told_how_not_to() {
    let error = start(&plan("exit 0", Readiness::Announces)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "`/bin/sh` ended before it served (exit status: 0); if it went into the background, it \
         still runs there: keep it in the foreground (nginx: `-g 'daemon off;'`)"
    );
}

#[test]
fn a_program_that_never_serves_is_given_up() {
    let address = refused_address();
    let mut plan = plan("exec sleep 100", Readiness::Accepts(vec![address]));
    plan.timeout = Duration::from_millis(50);
    assert_eq!(
        start(&plan).unwrap_err().to_string(),
        format!("`/bin/sh` does not accept connections on {address} after 0.05 s")
    );
    plan.ready = Readiness::Announces;
    assert!(matches!(
        start(&plan).unwrap_err(),
        NotReady::TimedOut { .. }
    ));
}

#[test]
fn somebody_else_is_not_taken_for_the_program() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let error = start(&plan("exit 0", Readiness::Accepts(vec![address]))).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("something already listens on {address}, so `/bin/sh` was not started")
    );
}

#[test]
fn an_interrupted_wait_stops_the_program() {
    for ready in [
        Readiness::Announces,
        Readiness::Accepts(vec![refused_address()]),
    ] {
        let error = Spawned::start(&plan("sleep 60", ready), &|| true).unwrap_err();
        assert!(matches!(error, NotReady::Interrupted { .. }), "{error}");
    }
}

/// The kinds of targets that are control groups, with the names that their groups have.
fn kinds() -> [(String, String); 4] {
    let number = std::process::id();
    let id = format!("{number:064x}");
    let uid = format!("{number:08x}-1111-2222-3333-444444444444");
    let unit = format!("plimsoll-contract-{number}");
    let path = format!("plimsoll-contract-{number}");
    [
        (format!("cgroup:/{path}"), path),
        (format!("unit:{unit}"), format!("{unit}.service")),
        (format!("container:{id}"), format!("docker-{id}.scope")),
        (
            format!("pod:{uid}"),
            format!("kubepods-burstable-pod{}.slice", uid.replace('-', "_")),
        ),
    ]
}

#[test]
fn every_kind_of_group_keeps_the_contract_here_and_behind_an_agent() {
    let server = SampleServer::listen(ObservePlan {
        address: (Ipv4Addr::LOCALHOST, 0).into(),
        token: None,
        tls: None,
        allowed: TargetKind::ALL
            .map(|kind| kind.name().parse().unwrap())
            .into(),
        requests_per_second: 1_000,
        machine: Machine::default(),
        version: "0.0.0".to_owned(),
    })
    .unwrap();
    for (target, folder) in kinds() {
        let Some(group) = RealGroup::make_counting(&folder) else {
            skipped(&format!("no control group can be made for {target}"));
            continue;
        };
        let process = group.run("sleep 100 & wait");
        let name: TargetName = target.parse().unwrap();
        let here = LocalTarget::new(&name).unwrap();
        contract_of_running(&here, &name.shown());
        let url = format!("{}?{}={}", server.url(), name.kind.name(), name.value);
        let plan = RemotePlan::new(&url, None, Trust::PublicRoots).unwrap();
        let there = RemoteTarget::new(plan).unwrap();
        let agent = server.url();
        let shown = format!("{} at {}", name.shown(), agent.trim_end_matches('/'));
        contract_of_running(&there, &shown);
        process.stop(LONG);
    }
}
