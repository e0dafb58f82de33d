use super::*;

fn quiet() -> Conditions {
    Conditions {
        plimsoll: "0.1.0".into(),
        command: Vec::new(),
        started: SystemTime::UNIX_EPOCH,
        kernel: None,
        cpu_model: None,
        cores: 8,
        governor: None,
        memory_bytes: None,
        limits: plimsoll_model::Limits::default(),
        local_ports: None,
        congestion_control: None,
        load_before: Some(LoadAverage {
            one: 4.0,
            five: 9.0,
            fifteen: 9.0,
        }),
        steal_percent: Some(1.0),
        pinning: Pinning {
            generator: vec![0, 1],
            target: vec![2],
        },
        co_located: Some(true),
        warnings: Vec::new(),
    }
}

#[test]
fn a_quiet_machine_gives_no_warning() {
    assert_eq!(warnings(&quiet()), [""; 0]);
}

#[test]
fn each_doubt_is_reported() {
    let warning_of = |change: fn(&mut Conditions)| {
        let mut conditions = quiet();
        change(&mut conditions);
        warnings(&conditions).join("\n")
    };
    assert!(
        warning_of(|c| c.pinning.target = vec![1]).starts_with("generator and target share cores")
    );
    assert!(
        warning_of(|c| c.pinning.target.clear()).starts_with("generator and target share cores")
    );
    assert_eq!(
        warning_of(|c| {
            c.pinning.target.clear();
            c.co_located = Some(false);
        }),
        ""
    );
    assert!(
        warning_of(|c| c.cores = 2).starts_with("only 2 cores for generator and target together")
    );
    assert!(warning_of(|c| c.steal_percent = Some(3.25)).starts_with("the hypervisor took 3.2 %"));
    assert_eq!(
        warning_of(|c| c.load_before.as_mut().unwrap().one = 4.01),
        "the machine was busy before the run: load average 4.01 on 8 cores"
    );
}

#[test]
fn steal_is_a_share_of_the_time_between() {
    let time = |all, stolen| MachineTime { all, stolen };
    assert_eq!(
        time(1_200, 15).steal_percent_since(time(1_000, 10)),
        Some(2.5)
    );
    assert_eq!(time(1_000, 10).steal_percent_since(time(1_000, 10)), None);
    assert_eq!(time(900, 10).steal_percent_since(time(1_000, 10)), None);
}

#[test]
#[cfg(target_os = "linux")]
fn this_machine_can_be_described() {
    let conditions = Before::observe(SystemTime::UNIX_EPOCH).after(RunFacts::default());
    assert!(conditions.kernel.unwrap().starts_with("Linux "));
    assert!(conditions.memory_bytes.unwrap() > 1 << 20);
    assert!(conditions.cores >= 1);
    assert!(conditions.load_before.unwrap().one >= 0.0);
}
