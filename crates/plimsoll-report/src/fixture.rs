//! Runs as they come out of the engine, with plausible figures, for the tests of every encoder.

pub(crate) mod chaos;

pub(crate) mod checks;

pub(crate) mod loadtests;

use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::time::{Duration, UNIX_EPOCH};

use plimsoll_model::{
    AgentFigures, Bounded, ClockDifference, Conditions, Cost, Counts, CpuTime, EventFigures,
    ExchangeKind, Failure, FailureCount, FailureKind, Generator, GrpcFigures, GrpcStatus,
    GrpcStatusCount, Histogram, JudgedThreshold, Latency, LoadAverage, LoadModel, LoadShape,
    Memory, Messages, Moment, NetworkBytes, ObservationGap, ObservedServer, Phase, Pinning,
    Protocol, Rate, RequestFigures, ResourceSample, RunSummary, Saturation, ServerCost, Stalls,
    Threshold, Throttling, Tick, Times, WindowBytes,
};

/// Each kind of run by name.
pub(crate) fn all() -> Vec<(&'static str, RunSummary)> {
    vec![
        ("closed", closed()),
        ("tiers", tiers()),
        ("fleet", fleet()),
        ("open", open()),
        ("failing", failing()),
        ("mixed", mixed()),
        ("saturated", saturated()),
        ("empty", empty()),
        ("interrupted", interrupted()),
        ("called", called()),
        ("round_trips", round_trips()),
        ("streams", streams()),
        ("censored", censored()),
    ]
}

/// An open loop of which exchanges were aborted and arrivals missed.
pub(crate) fn censored() -> RunSummary {
    let mut run = open();
    let from_intended = run.latency.from_intended.get_or_insert_default();
    let all = from_intended.view().len();
    for waited in 0..all / 20 {
        let waited = Duration::from_millis(5_000 + waited % 100);
        run.latency.from_started.record_at_least(waited);
        from_intended.record_at_least(waited);
        run.counts.aborted += 1;
        run.counts.started += 1;
    }
    run.counts.missed += 40;
    (0..40).for_each(|_| from_intended.record_at_least(Duration::from_millis(300)));
    run.thresholds = thresholds(&[("latency:p(99)<1h", None, None)]);
    run.thresholds[0].value = run.thresholds[0].threshold.value(&run);
    run
}

/// 64 connections against a spawned server.
pub(crate) fn closed() -> RunSummary {
    static CLOSED: LazyLock<RunSummary> = LazyLock::new(make_closed);
    CLOSED.clone()
}

/// Half a million values take their time; the other runs are made from this one.
fn make_closed() -> RunSummary {
    let latency = distribution(482_130, 1_180, 0.35);
    let mut phases: [Histogram; 7] = Default::default();
    phases[Phase::Connect.index()] = distribution(64, 210, 0.3);
    phases[Phase::Send.index()] = distribution(482_130, 6, 0.3);
    phases[Phase::Wait.index()] = distribution(482_130, 1_160, 0.35);
    phases[Phase::Receive.index()] = distribution(482_130, 2, 0.4);
    RunSummary {
        load: LoadShape {
            url: "http://127.0.0.1:8080/".into(),
            urls: 1,
            method: "GET".into(),
            expectations: vec!["status == 200".into()],
            fail_status: None,
            model: LoadModel::Closed,
            protocol: Protocol::Http1,
            exchanges: ExchangeKind::Request,
            connections: 64,
            streams: 1,
            udp_payload: None,
            workers: 1,
            duration: Some(Duration::from_secs(10)),
            requests: None,
            warm_up: Duration::from_secs(1),
        },
        window: Duration::from_millis(10_001),
        counts: Counts {
            started: 482_130,
            ok: 482_130,
            warm_up: 47_902,
            completed_in_window: 482_101,
            ..Counts::default()
        },
        statuses: BTreeMap::from([(200, 482_130)]),
        grpc: None,
        failures: Vec::new(),
        unmet: BTreeMap::new(),
        requests: Vec::new(),
        thresholds: thresholds(&[
            ("http_req_duration:p(99)<5ms", Some(2_470.0), None),
            ("server_cpu_per_request:value<12us", Some(9.83), None),
        ]),
        bytes_sent: 482_130 * 41,
        bytes_received: 482_130 * 162,
        bytes_in_window: WindowBytes {
            sent: 482_101 * 41,
            received: 482_101 * 162,
        },
        connections_opened: 64,
        messages: None,
        decoded: None,
        events: None,
        latency: Latency {
            from_started: latency.into(),
            from_intended: None,
            of_errors: None,
            of_timeouts: None,
        },
        phases,
        ticks: (1..=3).map(|second| tick(second, second == 1)).collect(),
        moments: (0..=30).map(moment).collect(),
        target: Some(ServerCost {
            name: "spawned nginx".into(),
            cost: Cost {
                cpu: CpuTime {
                    user: Duration::from_millis(1_520),
                    system: Duration::from_millis(3_220),
                },
                window: Duration::from_millis(10_001),
                exchanges: 482_101,
            },
            memory: Memory {
                anonymous_bytes: 4_210_688,
                file_bytes: 9_834_496,
            },
            peak_memory_bytes: 14_450_688,
            fds: 83,
            peak_fds: 83,
            threads: 2,
            processes: 2,
            samples: (0..=30).map(sample).collect(),
        }),
        observed: Vec::new(),
        agents: Vec::new(),
        generator: Generator {
            cost: Cost {
                cpu: CpuTime {
                    user: Duration::from_millis(610),
                    system: Duration::from_millis(1_590),
                },
                window: Duration::from_millis(10_001),
                exchanges: 482_101,
            },
            peak_memory_bytes: Some(9_842_688),
            busiest_worker_percent: 22.0,
            lag_p99: Duration::from_micros(61),
            lag_max: Duration::from_micros(1_204),
            stalls: Stalls::default(),
            run_delay: Some(Duration::from_millis(3)),
            throttled: None,
            saturated: None,
        },
        conditions: Conditions {
            plimsoll: "0.1.0".into(),
            command: vec![
                "plimsoll".into(),
                "load".into(),
                "-c".into(),
                "64".into(),
                "--spawn".into(),
                "nginx -g 'daemon off;'".into(),
                "http://127.0.0.1:8080/".into(),
            ],
            started: UNIX_EPOCH + Duration::from_hours(500_000),
            kernel: Some("Linux 6.12.9".into()),
            cpu_model: Some("AMD EPYC 9R14".into()),
            cores: 8,
            governor: Some("performance".into()),
            memory_bytes: Some(16_723_464_192),
            limits: plimsoll_model::Limits {
                cpus: Some(4.0),
                memory_bytes: Some(2 << 30),
            },
            local_ports: Some(28_232),
            congestion_control: Some("cubic".into()),
            load_before: Some(LoadAverage {
                one: 0.32,
                five: 0.41,
                fifteen: 0.38,
            }),
            steal_percent: Some(0.04),
            pinning: Pinning {
                generator: vec![0],
                target: vec![1],
            },
            co_located: Some(true),
            warnings: Vec::new(),
        },
        interrupted: false,
    }
}

/// Two tiers that were observed by name, the second of them not to the end.
pub(crate) fn tiers() -> RunSummary {
    let mut run = closed();
    let web = run
        .target
        .take()
        .expect("the target of this run is observed");
    let mut db = ServerCost {
        name: "unit postgresql at https://db1:7070".into(),
        peak_memory_bytes: 301_000_000,
        ..web.clone()
    };
    db.cost.cpu = CpuTime {
        user: Duration::from_millis(7_100),
        system: Duration::from_millis(900),
    };
    db.cost.window = Duration::from_secs(6);
    db.cost.exchanges = 289_000;
    // It spends by turns more and less, so its cost is known to a few percent only.
    for (number, sample) in (0..).zip(&mut db.samples) {
        sample.cpu.user = Duration::from_millis(133 * number + 14 * (number % 2));
        sample.cpu.system = Duration::ZERO;
    }
    let web = ServerCost {
        name: "container web at https://web1:7070".into(),
        ..web
    };
    run.observed = vec![
        ObservedServer {
            name: "web".into(),
            target: web.name.clone(),
            agent: Some("https://web1:7070".into()),
            cost: Some(web.clone()),
            is_whole: true,
            throttled: Some(Throttling {
                periods: 12,
                time: Duration::from_millis(340),
            }),
            network: Some(NetworkBytes {
                received: 19_000_000,
                sent: 78_000_000,
            }),
            gaps: Vec::new(),
            clock: Some(ClockDifference {
                offset_ns: -3_000_120_000,
                error: Duration::from_micros(240),
            }),
        },
        ObservedServer {
            name: "db".into(),
            target: db.name.clone(),
            agent: Some("https://db1:7070".into()),
            cost: Some(db),
            is_whole: false,
            throttled: None,
            network: None,
            gaps: vec![ObservationGap {
                from: Duration::from_secs(7),
                to: Duration::from_secs(11),
                reason: "the agent at https://db1:7070 does not answer: connection refused".into(),
            }],
            clock: Some(ClockDifference {
                offset_ns: 1_700_000,
                error: Duration::from_micros(90),
            }),
        },
    ];
    run.target = Some(web);
    run.thresholds = thresholds(&[
        (
            "server_cpu_per_request{name:web}:value<12us",
            Some(9.83),
            None,
        ),
        ("server_cpu_per_request{name:db}:value<2ms", None, None),
    ]);
    run
}

/// Three agents: one did its part, one was the limit, one was lost.
pub(crate) fn fleet() -> RunSummary {
    let mut run = open();
    let latency = Times::from(distribution(16_000, 310, 0.4));
    let web1 = AgentFigures {
        name: "web1".into(),
        workers: 8,
        counts: Counts {
            started: 25_000,
            ok: 24_980,
            failed: 20,
            completed_in_window: 24_980,
            ..Counts::default()
        },
        latency,
        late: Some(Duration::from_micros(40)),
        busiest_worker_percent: Some(61.0),
        ..AgentFigures::default()
    };
    let web2 = AgentFigures {
        name: "web2-with-a-long-name-of-its-own".into(),
        workers: 4,
        busiest_worker_percent: Some(99.0),
        was_limit: true,
        cautions: vec!["was the limit: a worker used 99 % of its core".into()],
        ..web1.clone()
    };
    let web3 = AgentFigures {
        name: "web3".into(),
        late: None,
        busiest_worker_percent: None,
        latency: Times::new(),
        counts: Counts::default(),
        problem: Some("nothing was heard of it for 10s".into()),
        ..web1.clone()
    };
    run.agents = vec![web1, web2, web3];
    let warnings = &mut run.conditions.warnings;
    warnings.push("incomplete: agent web3: nothing was heard of it for 10s".into());
    warnings.push(
        "agent web2-with-a-long-name-of-its-own was the limit: a worker used 99 % of its core"
            .into(),
    );
    run
}

/// 5000 arrivals a second at a server that stalled for a second.
pub(crate) fn open() -> RunSummary {
    let mut run = closed();
    run.load.model = LoadModel::Open {
        rate: Rate::new(5_000.0).unwrap(),
    };
    run.thresholds.clear();
    run.load.url = "https://shop.example.com/products?page=2".into();
    let started = distribution(49_960, 310, 0.4);
    let mut intended = distribution(44_960, 330, 0.4);
    for late in 0..5_000 {
        intended.record(Duration::from_micros(late * 200));
    }
    run.counts = Counts {
        started: 49_966,
        ok: 49_960,
        aborted: 6,
        dropped: 12,
        missed: 28,
        warm_up: 5_000,
        completed_in_window: 49_957,
        ..Counts::default()
    };
    run.statuses = BTreeMap::from([(200, 49_960)]);
    run.bytes_received = 49_960 * 2_048;
    run.bytes_sent = 49_960 * 97;
    run.bytes_in_window = WindowBytes {
        sent: 49_957 * 97,
        received: 49_957 * 2_048,
    };
    run.latency = Latency {
        from_started: started.into(),
        from_intended: Some(intended.into()),
        of_errors: None,
        of_timeouts: None,
    };
    run.phases = Default::default();
    run.phases[Phase::Blocked.index()] = distribution(49_960, 40, 0.9);
    run.phases[Phase::Wait.index()] = distribution(49_960, 280, 0.4);
    run.target = None;
    for moment in &mut run.moments {
        moment.target = None;
    }
    run.generator.cost.exchanges = 49_957;
    run.conditions.co_located = Some(false);
    run.conditions.pinning = Pinning::default();
    run
}

/// A server that refuses, breaks off, and answers wrongly.
pub(crate) fn failing() -> RunSummary {
    let mut run = closed();
    run.target = None;
    run.counts = Counts {
        started: 10_000,
        ok: 8_604,
        failed: 1_396,
        failed_status: 320,
        unmet: 17,
        completed_in_window: 8_604,
        ..Counts::default()
    };
    run.load.duration = None;
    run.load.requests = Some(10_000);
    run.load.warm_up = Duration::ZERO;
    run.statuses = BTreeMap::from([(200, 8_201), (404, 83), (503, 320)]);
    run.unmet = BTreeMap::from([("body contains \"ok\"".into(), 17)]);
    run.latency.from_started = distribution(8_604, 2_100, 0.8).into();
    run.phases[Phase::Send.index()] = distribution(8_796, 6, 0.3);
    run.phases[Phase::Wait.index()] = distribution(8_616, 2_050, 0.8);
    run.phases[Phase::Receive.index()] = distribution(8_604, 2, 0.4);
    run.bytes_received = 8_604 * 162;
    run.bytes_sent = 8_796 * 41;
    run.bytes_in_window = WindowBytes {
        sent: run.bytes_sent,
        received: run.bytes_received,
    };
    run.window = Duration::from_millis(1_204);
    run.load.expectations = vec!["body contains \"ok\"".into(), "size > 2".into()];
    run.thresholds = thresholds(&[
        ("errors:rate<1% over 1s abort", Some(0.173_3), Some(1_001)),
        ("http_reqs:rate>=1000", Some(8_305.6), None),
        ("http_req_tls_handshaking:p(95)<100ms", None, None),
    ]);
    run.thresholds[0].ended_run = true;
    run.failures = vec![
        failure(
            Phase::Connect,
            FailureKind::Refused,
            1_204,
            Some("connection refused (os error 111)"),
        ),
        failure(Phase::Wait, FailureKind::Timeout, 180, None),
        failure(
            Phase::Receive,
            FailureKind::Protocol,
            12,
            Some(
                "the chunk size `zz` is not a hexadecimal number, after 17 chunks of 4096 bytes \
                 each had been received without fault",
            ),
        ),
    ];
    run.conditions.warnings = vec![
        "generator and target share cores: throughput and latency depend on both, the cpu time \
         per request much less"
            .into(),
        "the machine was busy before the run: load average 5.20 on 8 cores".into(),
    ];
    run
}

/// A server that serves most requests, rejects some at once and leaves a few without a response.
pub(crate) fn mixed() -> RunSummary {
    const REJECTED: u64 = 24_000;
    const TIMED_OUT: u64 = 300;
    let mut run = closed();
    run.counts.started += REJECTED + TIMED_OUT;
    run.counts.failed += TIMED_OUT;
    run.counts.ok += REJECTED;
    run.counts.completed_in_window += REJECTED;
    run.statuses.insert(429, REJECTED);
    let errors = distribution(REJECTED, 150, 0.3);
    run.latency.from_started.merge(&errors.clone().into());
    run.latency.of_errors = Some(errors);
    let timeout = failure(Phase::Wait, FailureKind::Timeout, TIMED_OUT, None);
    run.failures.push(timeout);
    let timeouts = distribution(TIMED_OUT, 5_000_000, 0.001);
    run.latency.from_started.merge(&timeouts.clone().into());
    run.latency.of_timeouts = Some(timeouts);
    let caution = run.latency.by_status().and_then(|kinds| kinds.caution());
    run.conditions.warnings.extend(caution);
    run
}

/// The generator had no time left.
pub(crate) fn saturated() -> RunSummary {
    let mut run = closed();
    run.generator.busiest_worker_percent = 99.42;
    run.generator.saturated = Some(Saturation::Cpu { percent: 99.42 });
    run
}

/// Calls of gRPC.
pub(crate) fn called() -> RunSummary {
    let mut run = closed();
    run.load.url = "http://127.0.0.1:50051/shop.Cart/Add".into();
    run.load.method = "POST".into();
    run.load.protocol = Protocol::Http2;
    run.load.streams = 8;
    run.counts.failed_status = 1_204;
    let counted = |code, count, example: Option<&str>| GrpcStatusCount {
        status: GrpcStatus::from_code(code),
        count,
        example: example.map(str::to_owned),
    };
    run.grpc = Some(GrpcFigures {
        statuses: vec![
            counted(0, 480_926, None),
            counted(9, 4, None),
            counted(
                14,
                1_200,
                Some("the cart is being moved to another shelf; come back in a minute"),
            ),
        ],
        messages_received: 480_926,
        messages_in_window: 480_912,
    });
    run
}

/// Round trips over WebSockets.
pub(crate) fn round_trips() -> RunSummary {
    let mut run = closed();
    run.load.url = "ws://127.0.0.1:8080/socket".into();
    run.load.protocol = Protocol::WebSocket;
    run.load.exchanges = ExchangeKind::RoundTrip;
    run.statuses = [(101, run.counts.ok)].into();
    run.messages = Some(Messages {
        sent: run.counts.started,
        received: run.counts.ok + 17,
    });
    run
}

/// Streams of events.
pub(crate) fn streams() -> RunSummary {
    let mut run = closed();
    run.load.url = "https://127.0.0.1:8443/events".into();
    run.load.exchanges = ExchangeKind::Stream;
    run.counts.broken = 3;
    let mut gaps = Histogram::new();
    for millis in 1..1000 {
        gaps.record(Duration::from_millis(millis));
    }
    run.events = Some(EventFigures {
        opened: 1_060,
        ended: 57,
        broken: 3,
        left: 1_000,
        failures: vec![failure(
            Phase::Receive,
            FailureKind::Reset,
            3,
            Some("connection reset by peer (os error 104)"),
        )],
        received: 104_233,
        gaps,
    });
    for tick in &mut run.ticks {
        tick.events = 10_423;
    }
    run
}

/// Nothing was answered, and little could be observed.
pub(crate) fn empty() -> RunSummary {
    let mut run = closed();
    run.window = Duration::ZERO;
    run.counts = Counts::default();
    run.statuses.clear();
    run.bytes_sent = 0;
    run.bytes_received = 0;
    run.bytes_in_window = WindowBytes::default();
    run.connections_opened = 0;
    run.latency.from_started = Times::new();
    run.phases = Default::default();
    run.ticks.clear();
    run.moments.clear();
    run.thresholds = thresholds(&[("latency:p(99)<1s", None, None)]);
    let nothing = Cost {
        cpu: CpuTime::default(),
        window: Duration::ZERO,
        exchanges: 0,
    };
    if let Some(target) = &mut run.target {
        target.cost = nothing;
        target.fds = 0;
        target.peak_fds = 0;
        target.samples.clear();
    }
    run.generator.cost = nothing;
    run.generator.peak_memory_bytes = None;
    run.generator.saturated = Some(Saturation::Lag {
        p99: Duration::from_millis(12),
    });
    run.conditions = Conditions {
        kernel: None,
        cpu_model: None,
        governor: None,
        memory_bytes: None,
        limits: plimsoll_model::Limits::default(),
        local_ports: None,
        congestion_control: None,
        load_before: None,
        steal_percent: None,
        pinning: Pinning::default(),
        co_located: None,
        ..run.conditions
    };
    run
}

/// Ended by Ctrl-C after some seconds.
pub(crate) fn interrupted() -> RunSummary {
    let mut run = closed();
    run.interrupted = true;
    run.window = Duration::from_millis(3_412);
    run.load.urls = 12;
    run.counts.ok = 164_480;
    run.counts.aborted = 64;
    run.counts.completed_in_window = run.counts.ok;
    run.counts.started = run.counts.ok + run.counts.aborted;
    run.statuses = BTreeMap::from([(200, run.counts.ok)]);
    run
}

/// Thresholds with their value and, in milliseconds, the end of the stretch that it is of.
fn thresholds(judged: &[(&str, Option<f64>, Option<u64>)]) -> Vec<JudgedThreshold> {
    judged
        .iter()
        .map(|&(text, value, at)| JudgedThreshold {
            threshold: Threshold::parse(text).unwrap(),
            value: value.map(Bounded::exact),
            at: at.map(Duration::from_millis),
            ended_run: false,
        })
        .collect()
}

fn failure(phase: Phase, kind: FailureKind, count: u64, cause: Option<&str>) -> FailureCount {
    let mut example = Failure::new(phase, kind);
    example.cause = cause.map(str::to_owned);
    FailureCount {
        phase,
        kind,
        count,
        example,
    }
}

/// A logarithmic normal distribution: most values near the median, a tail to the right.
///
/// - `spread`: the standard deviation of the logarithm.
fn distribution(count: u64, median_us: u64, spread: f64) -> Histogram {
    let mut histogram = Histogram::new();
    for number in 0..count {
        let fraction = (number as f64 + 0.5) / count as f64;
        // The logistic quantile stands in for the normal one; its tail is somewhat longer.
        let deviation = (fraction / (1.0 - fraction)).ln() / 1.7;
        let nanos = median_us as f64 * 1e3 * (spread * deviation).exp();
        histogram.record(Duration::from_secs_f64(nanos / 1e9));
    }
    histogram
}

pub(crate) fn tick(second: u64, warm_up: bool) -> Tick {
    Tick {
        at: Duration::from_secs(second),
        length: Duration::from_secs(1),
        warm_up,
        grace: false,
        ok: 48_000 + second * 100,
        failed: 0,
        other_errors: 0,
        events: 0,
        bytes_received: 7_790_000,
        in_flight: 64,
        p50: Some(Bounded::exact(Duration::from_micros(1_180))),
        p90: Some(Bounded::exact(Duration::from_micros(1_720))),
        p99: Some(Bounded::exact(Duration::from_micros(2_470))),
        p99_9: Some(Bounded::exact(Duration::from_micros(4_310))),
        max: Some(Bounded::exact(Duration::from_micros(9_120))),
        spread: distribution(48_000, 1_180, 0.35).coarse(),
        phases: [0, 0, 3, 0, 11, 1_190, 24].map(Duration::from_micros),
    }
}

fn sample(number: u64) -> ResourceSample {
    ResourceSample {
        at: Duration::from_millis(number * 100 + 1),
        cpu: CpuTime {
            user: Duration::from_millis(15 * number),
            system: Duration::from_millis(32 * number),
        },
        memory: Memory {
            anonymous_bytes: 4_000_000 + number * 4_096,
            file_bytes: 9_834_496,
        },
        fds: 19 + 64,
        threads: 2,
        processes: 2,
        completed: number * 4_821,
        ..ResourceSample::default()
    }
}

fn moment(number: u64) -> Moment {
    Moment {
        at: Duration::from_millis(number * 100 + 1),
        in_flight: number.min(64),
        ok: number * 4_821,
        errors: number / 10,
        latencies: number * 4_821,
        latency_sum: Duration::from_micros(1_200) * u32::try_from(number * 4_821).unwrap(),
        target: Some(sample(number)),
    }
}

/// Three requests: one that fails now and then, a slow one, a quick one.
pub(crate) fn requests() -> Vec<RequestFigures> {
    let figures = |name: &str, count: u64, p50, error_statuses| RequestFigures {
        name: name.into(),
        ok: count,
        error_statuses,
        latency: distribution(count, p50, 0.3).into(),
        ..RequestFigures::default()
    };
    let mut requests = vec![
        figures("GET http://127.0.0.1:8080/products/{{id}}", 8_120, 1_100, 0),
        figures("search", 2_030, 48_000, 0),
        figures("POST http://127.0.0.1:8080/login", 406, 9_500, 41),
    ];
    requests.sort_by(RequestFigures::worst_first);
    requests
}
