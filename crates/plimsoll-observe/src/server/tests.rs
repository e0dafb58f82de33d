use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use plimsoll_client::fetch::{FetchLimits, Fetched, Fetcher};
use plimsoll_model::{Clock, Secret};
use plimsoll_wire::SystemClock;
use plimsoll_wire::process::{Output, Process, ProcessSpec};
use plimsoll_wire::tls::Trust;
use serde_json::Value;
use url::Url;

use super::*;
use crate::contract::contract_of_running;
use crate::{RemotePlan, RemoteTarget, SampleError, Target};

const TOKEN: &str = "0123456789abcdef";

fn plan(allowed: &[&str]) -> ObservePlan {
    ObservePlan {
        address: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
        token: None,
        tls: None,
        allowed: allowed.iter().map(|it| it.parse().unwrap()).collect(),
        requests_per_second: 1_000,
        machine: Machine::default(),
        version: "0.0.0".to_owned(),
    }
}

fn served(allowed: &[&str]) -> SampleServer {
    SampleServer::listen(plan(allowed)).unwrap()
}

/// The answer to a request, with the token if there is one.
fn get(server: &SampleServer, path: &str, token: Option<&str>) -> (u16, Fetched, Value) {
    let limits = FetchLimits {
        timeout: Duration::from_secs(20),
        bytes: 1 << 20,
        redirects: 0,
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let url = Url::parse(&server.url()).unwrap().join(path).unwrap();
    let fields = token.map(|token| ("authorization".to_owned(), format!("Bearer {token}")));
    let fetched = runtime.block_on(async {
        let fetcher = Fetcher::believing(Trust::Anyone, limits).unwrap();
        let fields = fields.into_iter().collect();
        fetcher.send("GET", &url, fields, None).await.unwrap()
    });
    let content = serde_json::from_slice(&fetched.content).unwrap_or_default();
    (fetched.status, fetched, content)
}

/// A process that does nothing.
fn sleeping() -> Process {
    Process::spawn(&ProcessSpec {
        argv: vec!["sleep".into(), "100".into()],
        stdout: Output::Null,
        ..ProcessSpec::default()
    })
    .unwrap()
}

fn validator() -> jsonschema::Validator {
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    jsonschema::validator_for(&schema).unwrap()
}

#[test]
fn allowed_targets_are_sampled_and_others_are_not() {
    let process = sleeping();
    let own = format!("pid:{}", process.id());
    let server = served(&[&own, "unit:no-such-unit"]);
    let (status, _, sample) = get(&server, &format!("v1/sample?pid={}", process.id()), None);
    assert_eq!(status, 200, "{sample}");
    assert_eq!(sample["targets"][0]["target"], own);
    assert_eq!(
        sample["targets"][0]["figures"]["processes"].as_u64(),
        Some(1)
    );
    let valid = validator();
    assert!(valid.is_valid(&sample), "{sample}");
    for (path, expected) in [
        ("v1/sample?pid=1", 403),
        ("v1/sample?unit=no-such-unit", 404),
        ("v1/sample?unit=", 400),
        ("v1/sample", 400),
        ("v1/sample?host=x", 400),
        ("v1/samples?unit=no-such-unit&every=1ms", 400),
        ("v2/sample", 404),
    ] {
        let (status, fetched, problem) = get(&server, path, None);
        assert_eq!(status, expected, "{path}");
        assert_eq!(fetched.content_type(), "application/problem+json", "{path}");
        assert_eq!(problem["status"].as_u64(), Some(expected.into()), "{path}");
        assert!(valid.is_valid(&problem), "{problem}");
    }
    let several = format!("v1/sample?pid={}&unit=no-such-unit", process.id());
    let (status, _, sample) = get(&server, &several, None);
    assert_eq!(status, 200);
    let missing = &sample["targets"][1];
    assert!(
        missing["figures"].is_null() && missing["problem"].is_string(),
        "{sample}"
    );
    assert!(valid.is_valid(&sample), "{sample}");
    let (_, _, targets) = get(&server, "v1/targets", None);
    assert!(valid.is_valid(&targets), "{targets}");
    assert_eq!(targets["allowed"][0]["processes"].as_u64(), Some(1));
    assert!(targets["allowed"][1]["problem"].is_string(), "{targets}");
}

#[test]
fn a_token_is_wanted_for_all_but_the_description() {
    let server = SampleServer::listen(ObservePlan {
        token: Some(Secret::new(TOKEN)),
        ..plan(&["pid"])
    })
    .unwrap();
    let (status, fetched, _) = get(&server, "v1/targets", None);
    assert_eq!(status, 401);
    assert!(
        fetched
            .field("www-authenticate")
            .unwrap()
            .starts_with("Bearer")
    );
    assert_eq!(get(&server, "v1/targets", Some("0123456789abcdee")).0, 401);
    assert_eq!(get(&server, "v1/targets", Some(TOKEN)).0, 200);
    let (status, _, description) = get(&server, "openapi.json", None);
    assert_eq!(status, 200);
    assert_eq!(description["openapi"], "3.1.0");
}

#[test]
fn the_description_has_every_route_with_valid_schemas() {
    let document = description::document();
    let paths: Vec<_> = document["paths"].as_object().unwrap().keys().collect();
    assert_eq!(paths, ["/v1/targets", "/v1/sample", "/v1/samples"]);
    let text = document.to_string();
    for part in text.split("\"#/components/schemas/").skip(1) {
        let name = part.split('"').next().unwrap();
        assert!(
            document["components"]["schemas"][name].is_object(),
            "{name}"
        );
    }
    assert!(!text.contains("$defs"));
    let parameters = document["paths"]["/v1/samples"]["get"]["parameters"].as_array();
    assert_eq!(parameters.unwrap().len(), 6);
}

#[test]
fn requests_beyond_the_rate_are_refused_as_problems() {
    let server = SampleServer::listen(ObservePlan {
        requests_per_second: 1,
        ..plan(&["pid"])
    })
    .unwrap();
    let refused = (0..20).map(|_| get(&server, "v1/targets", None));
    let (_, fetched, problem) = refused
        .into_iter()
        .find(|(status, ..)| *status == 429)
        .expect("twenty requests do not take twenty seconds");
    assert_eq!(fetched.content_type(), "application/problem+json");
    assert!(fetched.field("retry-after").is_some());
    assert_eq!(problem["status"].as_u64(), Some(429));
}

#[test]
fn nothing_is_served_to_others_without_a_token_and_tls() {
    for (token, missing) in [
        (None, "it has neither a token nor TLS"),
        (Some(Secret::new(TOKEN)), "it has no TLS"),
    ] {
        let exposed = ObservePlan {
            address: SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
            token,
            ..plan(&["pid"])
        };
        let error = SampleServer::listen(exposed).unwrap_err().to_string();
        assert!(error.ends_with(missing), "{error}");
    }
}

#[test]
fn pages_of_other_sites_read_nothing_without_a_token() {
    use std::io::{Read as _, Write as _};

    let server = served(&["pid"]);
    let mut stream = std::net::TcpStream::connect(server.address).unwrap();
    let request = "GET /v1/targets HTTP/1.1\r\nhost: evil.example\r\nconnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    std::io::Read::take(&mut stream, 1 << 20)
        .read_to_string(&mut answer)
        .unwrap();
    assert!(answer.starts_with("HTTP/1.1 421 "), "{answer}");
}

#[test]
fn a_stream_has_a_sample_at_each_interval_and_gaps_instead_of_zeros() {
    use std::io::{BufRead as _, BufReader, Write as _};

    let process = sleeping();
    let server = served(&["pid"]);
    let mut stream = std::net::TcpStream::connect(server.address).unwrap();
    let request = format!(
        "GET /v1/samples?pid={}&every=10ms HTTP/1.1\r\nhost: localhost\r\n\r\n",
        process.id()
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut samples = BufReader::new(stream).lines().filter_map(|line| {
        let line = line.unwrap();
        let data = line.strip_prefix("data: ")?;
        Some(serde_json::from_str::<Value>(data).unwrap())
    });
    let valid = validator();
    let mut last = 0;
    for _ in 0..3 {
        let sample = samples.next().unwrap();
        assert!(valid.is_valid(&sample), "{sample}");
        let shown = sample["agent"]["clock_ns"].as_u64().unwrap();
        assert!(shown > last, "{sample}");
        last = shown;
        assert!(sample["targets"][0]["figures"].is_object(), "{sample}");
    }
    process.stop(Duration::from_secs(20));
    let gap = samples
        .find(|sample| sample["targets"][0]["figures"].is_null())
        .unwrap();
    assert!(valid.is_valid(&gap), "{gap}");
    assert!(gap["targets"][0]["problem"].is_string(), "{gap}");
}

fn remote(server: &SampleServer, pid: u32) -> Result<RemoteTarget, crate::AttachError> {
    let url = format!("{}?pid={pid}", server.url());
    RemoteTarget::new(RemotePlan::new(&url, None, Trust::PublicRoots).unwrap())
}

#[test]
fn a_target_of_an_agent_keeps_the_contract() {
    let process = sleeping();
    let server = served(&["pid"]);
    let target = remote(&server, process.id()).unwrap();
    let agent = server.url();
    let name = format!("pid {} at {}", process.id(), agent.trim_end_matches('/'));
    contract_of_running(&target, &name);
}

#[test]
fn the_samples_of_an_agent_are_those_taken_here() {
    let script = "while :; do :; done";
    let process = Process::spawn(&ProcessSpec {
        argv: vec!["sh".into(), "-c".into(), script.into()],
        ..ProcessSpec::default()
    })
    .unwrap();
    let server = SampleServer::listen(ObservePlan {
        requests_per_second: 1_000_000,
        ..plan(&["pid"])
    })
    .unwrap();
    let target = remote(&server, process.id()).unwrap();
    let (mut there, mut here) = (
        target.source().unwrap(),
        crate::Pid::new(process.id()).unwrap().source().unwrap(),
    );
    // Two readers of the same counters may be two clock ticks apart.
    let ticks = Duration::from_millis(20);
    let start = SystemClock.now();
    let mut local = || {
        let at = SystemClock.now().saturating_duration_since(start);
        here.sample(at, 0).unwrap()
    };
    let mut before = local();
    let begun = before.cpu.total();
    while before.cpu.total() < begun + Duration::from_millis(300) {
        let at = SystemClock.now().saturating_duration_since(start);
        let sample = there.sample(at, 0).unwrap();
        let after = local();
        let spent = sample.cpu.total();
        assert!(
            spent + ticks >= before.cpu.total(),
            "{sample:?} after {before:?}"
        );
        assert!(
            spent <= after.cpu.total() + ticks,
            "{sample:?} before {after:?}"
        );
        // The agent's clock, as it is aligned, is that of this machine.
        assert!(
            sample.at >= before.at && sample.at <= after.at,
            "{sample:?}"
        );
        before = after;
    }
    process.stop(Duration::from_secs(20));
}

#[test]
fn an_agent_that_goes_away_leaves_a_gap_and_one_that_comes_back_goes_on() {
    let process = sleeping();
    let server = served(&["pid"]);
    let address = server.address;
    let target = remote(&server, process.id()).unwrap();
    let mut source = target.source().unwrap();
    let first = source.sample(Duration::ZERO, 0).unwrap();
    let id = source.clock().unwrap();
    assert!(id.offset_ns.unsigned_abs() < 1_000_000_000, "{id:?}");
    server.stop(Duration::from_secs(1));
    let error = source.sample(Duration::ZERO, 0).unwrap_err();
    let SampleError::Gap { reason } = error else {
        panic!("it may come back");
    };
    assert!(reason.contains("does not answer"), "{reason}");
    let again = SampleServer::listen(ObservePlan {
        address,
        ..plan(&["pid"])
    })
    .unwrap();
    let second = source.sample(Duration::from_secs(1), 0).unwrap();
    assert!(second.cpu.total() >= first.cpu.total());
    drop(again);
}

#[test]
fn every_refusal_of_an_agent_is_told_apart() {
    let process = sleeping();
    let server = SampleServer::listen(ObservePlan {
        token: Some(Secret::new(TOKEN)),
        ..plan(&[&format!("pid:{}", process.id()), "pid:999999999"])
    })
    .unwrap();
    let open = |pid: u32, token: &str| {
        let url = format!("{}?pid={pid}", server.url());
        let plan = RemotePlan::new(&url, Some(Secret::new(token)), Trust::PublicRoots).unwrap();
        RemoteTarget::new(plan).map(drop)
    };
    open(process.id(), TOKEN).unwrap();
    let error = |pid, token| open(pid, token).unwrap_err().to_string();
    assert!(error(process.id(), "another-token").contains("rejects the token"));
    assert!(error(1, TOKEN).contains("start it with --allow pid:1"));
    assert!(error(999_999_999, TOKEN).contains("there is no process"));
    let url = format!("http://{}/?pid=1", plimsoll_testkit::refused_address());
    let plan = RemotePlan::new(&url, None, Trust::PublicRoots).unwrap();
    let error = RemoteTarget::new(plan).unwrap_err().to_string();
    assert!(error.contains("does not answer"), "{error}");
}
