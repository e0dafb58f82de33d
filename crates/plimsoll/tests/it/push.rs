//! Figures sent to receivers that decode them.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use opentelemetry_proto::tonic::collector::metrics::v1::{
    ExportMetricsPartialSuccess, ExportMetricsServiceRequest, ExportMetricsServiceResponse,
};
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value as Number;
use plimsoll_testkit::{Origin, refused_address};
use prost::Message;

use crate::plimsoll::{CommandOutput, command, plimsoll};

/// The messages of `prompb`, as far as they are looked at.
mod prompb {
    #[derive(Clone, PartialEq, prost::Message)]
    pub(crate) struct WriteRequest {
        #[prost(message, repeated, tag = "1")]
        pub(crate) timeseries: Vec<TimeSeries>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(crate) struct TimeSeries {
        #[prost(message, repeated, tag = "1")]
        pub(crate) labels: Vec<Label>,
        #[prost(message, repeated, tag = "2")]
        pub(crate) samples: Vec<Sample>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(crate) struct Label {
        #[prost(string, tag = "1")]
        pub(crate) name: String,
        #[prost(string, tag = "2")]
        pub(crate) value: String,
    }

    #[derive(Clone, Copy, PartialEq, prost::Message)]
    pub(crate) struct Sample {
        #[prost(double, tag = "1")]
        pub(crate) value: f64,
        #[prost(int64, tag = "2")]
        pub(crate) timestamp: i64,
    }
}

/// What a receiver was sent: the head in lower case, and the body.
type Sent = (String, Vec<u8>);

/// Takes requests, one a connection, and gives each the same answer.
struct Receiver {
    port: u16,
    sent: Arc<Mutex<Vec<Sent>>>,
}

impl Receiver {
    fn answering(status: u16, body: &[u8]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let sent = Arc::new(Mutex::new(Vec::new()));
        let taken = Arc::clone(&sent);
        let length = body.len();
        let head = format!("HTTP/1.1 {status} Whatever\r\ncontent-length: {length}\r\n\r\n");
        let answer = [head.as_bytes(), body].concat();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let request = read_request(&stream);
                taken.lock().unwrap().push(request);
                stream.write_all(&answer).unwrap();
            }
        });
        Self { port, sent }
    }

    fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    fn sent(&self) -> Vec<Sent> {
        self.sent.lock().unwrap().clone()
    }
}

fn read_request(stream: &TcpStream) -> Sent {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert_ne!(reader.read_line(&mut head).unwrap(), 0);
    }
    let head = head.to_lowercase();
    let (_, length) = head.split_once("content-length: ").unwrap();
    let (length, _) = length.split_once("\r\n").unwrap();
    let mut body = vec![0; length.parse().unwrap()];
    reader.read_exact(&mut body).unwrap();
    (head, body)
}

fn load(flags: &[&str]) -> CommandOutput {
    let origin = Origin::hello();
    let url = origin.url("/");
    let mut arguments = vec!["load", "--json", "-c", "2", "-q", "100", "-n", "110"];
    arguments.extend(flags);
    arguments.push(&url);
    plimsoll(&arguments)
}

#[test]
fn a_remote_write_receiver_gets_the_seconds_and_the_whole() {
    let receiver = Receiver::answering(204, b"");
    let url = receiver.url("/api/v1/write");
    let flags = [
        "--prometheus-remote-write",
        &url,
        "--push-header",
        "X-Scope-OrgID: somebody",
        "--run-name",
        "nightly",
    ];
    let output = load(&flags).exits(0);
    assert_eq!(output.stderr, "", "{output}");
    let mut values = Vec::new();
    for (head, body) in receiver.sent() {
        assert!(
            head.starts_with("post /api/v1/write http/1.1\r\n"),
            "{head}"
        );
        for field in [
            "content-encoding: snappy",
            "content-type: application/x-protobuf",
            "x-prometheus-remote-write-version: 0.1.0",
            "x-scope-orgid: somebody",
            "user-agent: plimsoll/",
        ] {
            assert!(head.contains(field), "{field} in {head}");
        }
        let bytes = snap::raw::Decoder::new().decompress_vec(&body).unwrap();
        let request = prompb::WriteRequest::decode(&*bytes).unwrap();
        for series in request.timeseries {
            let label = |name: &str| {
                let mut labels = series.labels.iter();
                labels
                    .find(|label| label.name == name)
                    .map(|label| &*label.value)
            };
            assert_eq!(label("run"), Some("nightly"));
            let name = label("__name__").unwrap().to_owned();
            let outcome = label("outcome").unwrap_or_default().to_owned();
            let samples = series.samples.iter();
            values.extend(samples.map(|sample| (name.clone(), outcome.clone(), sample.value)));
            assert!(
                series
                    .samples
                    .iter()
                    .all(|sample| sample.timestamp > 1_000_000_000_000)
            );
        }
    }
    let ok = |(name, outcome, value): &(String, String, f64)| {
        name == "plimsoll_requests" && outcome == "ok" && (value - 110.0).abs() < 1e-9
    };
    assert!(values.iter().any(ok), "{values:?}");
    let live = values
        .iter()
        .filter(|(name, ..)| name == "plimsoll_live_in_flight");
    assert!(live.count() >= 2, "{values:?}");
}

#[test]
fn a_collector_gets_metrics_that_its_own_messages_decode() {
    let receiver = Receiver::answering(200, b"");
    let output = load(&["--otlp", &receiver.url("")]).exits(0);
    assert_eq!(output.stderr, "", "{output}");
    let mut counts = Vec::new();
    for (head, body) in receiver.sent() {
        assert!(head.starts_with("post /v1/metrics http/1.1\r\n"), "{head}");
        assert!(
            head.contains("content-type: application/x-protobuf"),
            "{head}"
        );
        let request = ExportMetricsServiceRequest::decode(&*body).unwrap();
        let scopes = request
            .resource_metrics
            .iter()
            .flat_map(|one| &one.scope_metrics);
        for metric in scopes.flat_map(|scope| &scope.metrics) {
            let Some(Data::Gauge(gauge)) = &metric.data else {
                panic!("{metric:?}");
            };
            for point in &gauge.data_points {
                let Some(Number::AsDouble(value)) = point.value else {
                    panic!("{point:?}");
                };
                counts.push((metric.name.clone(), value));
            }
        }
    }
    let is_ok =
        |(name, value): &(String, f64)| name == "plimsoll.requests" && (value - 110.0).abs() < 1e-9;
    assert!(counts.iter().any(is_ok), "{counts:?}");
}

#[test]
fn what_is_not_taken_is_reported_and_changes_nothing() {
    let refusing = Receiver::answering(400, b"out of bounds\nand more");
    let partial = ExportMetricsServiceResponse {
        partial_success: Some(ExportMetricsPartialSuccess {
            rejected_data_points: 7,
            error_message: "too old".to_owned(),
        }),
    };
    let picky = Receiver::answering(200, &partial.encode_to_vec());
    let output = load(&[
        "--prometheus-remote-write",
        &refusing.url("/"),
        "--otlp",
        &picky.url(""),
    ])
    .exits(0);
    assert_eq!(output.json()["counts"]["ok"], 110);
    let warnings: Vec<_> = output.stderr.lines().collect();
    assert_eq!(warnings.len(), 2, "{output}");
    assert_eq!(
        warnings[0],
        "warning: --otlp: 7 points were not taken: too old"
    );
    assert!(
        warnings[1].ends_with("points were not taken: answered 400: out of bounds"),
        "{output}"
    );
}

#[test]
fn a_receiver_that_is_not_there_is_reported() {
    let gone = refused_address();
    let output = load(&["--otlp", &format!("http://{gone}")]).exits(0);
    assert_eq!(output.json()["counts"]["ok"], 110);
    assert!(output.stderr.contains("--otlp"), "{output}");
    assert!(output.stderr.contains("refused"), "{output}");
}

#[test]
fn mistakes_are_reported_before_the_run() {
    let output = load(&["--otlp", "ftp://x", "--push-header", "nonsense"]).exits(2);
    assert!(output.stderr.contains("--otlp"), "{output}");
    assert!(output.stderr.contains("`nonsense`"), "{output}");
    let output = load(&["--push-header", "a: b"]).exits(2);
    assert!(output.stderr.contains("needs --otlp"), "{output}");
}

#[cfg(feature = "k6")]
#[test]
fn metrics_of_scripts_are_series_of_their_tags() {
    let (prometheus, collector) = (Receiver::answering(204, b""), Receiver::answering(200, b""));
    let directory = tempfile::tempdir().unwrap();
    let script = directory.path().join("script.js");
    let text = "import { Counter, Trend } from 'k6/metrics';
        const mine = new Counter('mine'), time = new Trend('time', true);
        export const options = { iterations: 3 };
        export default () => { mine.add(2, { kind: 'a' }); time.add(250); }";
    std::fs::write(&script, text).unwrap();
    let remote_write = format!(
        "experimental-prometheus-rw={}",
        prometheus.url("/api/v1/write")
    );
    let otlp = format!("otlp={}", collector.url(""));
    let mut command = command(&[
        "load",
        "--out",
        &remote_write,
        "--out",
        &otlp,
        script.to_str().unwrap(),
    ]);
    command.env("K6_PROMETHEUS_RW_HTTP_HEADERS", "X-Scope-OrgID:me");
    command.env("K6_PROMETHEUS_RW_TREND_STATS", "p(95),max");
    let output = CommandOutput::from_output(command.output().unwrap()).exits(0);
    assert!(!output.stderr.contains("error"), "{output}");
    // A run of more than five seconds, on a machine with much else to do, sends several times.
    let mut names = String::new();
    for (head, body) in prometheus.sent() {
        assert!(head.contains("x-scope-orgid: me\r\n"), "{head}");
        let bytes = snap::raw::Decoder::new().decompress_vec(&body).unwrap();
        names.push_str(&String::from_utf8_lossy(&bytes));
    }
    for name in [
        "k6_mine_total",
        "kind",
        "k6_time_p95",
        "k6_time_max",
        "k6_iterations_total",
    ] {
        assert!(names.contains(name), "{name}");
    }
    let mut values = Vec::new();
    for (head, body) in collector.sent() {
        assert!(head.starts_with("post /v1/metrics "), "{head}");
        let request = ExportMetricsServiceRequest::decode(&*body).unwrap();
        let metrics = &request.resource_metrics[0].scope_metrics[0].metrics;
        for metric in metrics.iter().filter(|it| it.name == "k6.mine_total") {
            let Some(Data::Gauge(gauge)) = &metric.data else {
                panic!("{metric:?}");
            };
            values.extend(gauge.data_points.iter().map(|point| point.value));
        }
    }
    assert!(values.contains(&Some(Number::AsDouble(6.0))), "{values:?}");
    // There are no receivers.
    let output = plimsoll(&[
        "load",
        "--out",
        "otlp=http://127.0.0.1:1",
        script.to_str().unwrap(),
    ])
    .exits(0);
    assert!(output.stderr.contains("points were not taken"), "{output}");
}
