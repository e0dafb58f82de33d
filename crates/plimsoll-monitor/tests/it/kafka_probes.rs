//! The probe of Kafka against the bytes of a broker.

use plimsoll_model::FailureKind;
use plimsoll_monitor::probe::{KafkaMechanism, KafkaProbe};
use plimsoll_testkit::{Origin, Script, Step};
use serde_json::{Value, json};

use crate::probes::{failure, lines, reach, read};

/// A response in its frame.
///
/// - `number`: of the request, from 1.
fn response(number: u32, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 4).unwrap();
    [&length.to_be_bytes()[..], &number.to_be_bytes(), body].concat()
}

/// Versions of `Metadata` that a broker has, beside those of `Produce`.
fn versions(low: u8, high: u8) -> Vec<u8> {
    [
        &[0, 0, 0, 0, 0, 2][..],
        &[0, 0, 0, 0, 0, 9],
        &[0, 3, 0, low, 0, high],
    ]
    .concat()
}

/// One broker, and a topic with one partition that broker `leader` leads.
fn metadata(error: u8, leader: u32) -> Vec<u8> {
    let partition = [
        &[0, 0, 0, 0, 0, 0][..],
        &leader.to_be_bytes(),
        b"\0\0\0\x01\0\0\0\x07\0\0\0\x01\0\0\0\x07",
    ]
    .concat();
    [
        &b"\0\0\0\0\0\0\0\x01\0\0\0\x07\0\x01k\0\0\x23\x84\xff\xff\0\x02c1\0\0\0\x07"[..],
        &[0, 0, 0, 1, 0, error],
        b"\0\x04jobs\0\0\0\0\x01",
        &partition,
    ]
    .concat()
}

/// A broker that answers with these bodies, one for each request.
fn broker(bodies: &[Vec<u8>]) -> Origin {
    let mut script = Script::new();
    for (number, body) in (1..).zip(bodies) {
        script = script
            .then(Step::ReadBody(1))
            .then(Step::Write(response(number, body)));
    }
    Origin::scripted(script.then(Step::Swallow))
}

fn probe(origin: &Origin, login: &str, topic: Option<&str>) -> KafkaProbe {
    let url = format!("kafka://{login}{}", origin.address());
    let topic = topic.map(str::to_owned);
    KafkaProbe::new(&url, topic, KafkaMechanism::Plain, reach()).unwrap()
}

#[test]
fn a_topic_is_held_to_have_leaders() {
    let healthy = broker(&[versions(0, 12), metadata(0, 7)]);
    let reading = read(&probe(&healthy, "", Some("jobs")));
    assert_eq!((&reading.failure, &reading.unmet), (&None, &None));
    let body: Value = serde_json::from_slice(&reading.body).unwrap();
    assert_eq!(
        body,
        json!({"brokers": 1, "controller": 7, "cluster": "c1", "topic": "jobs", "partitions": 1, "without_leader": 0,
               "under_replicated": 0})
    );
    for (response, expected) in [
        (metadata(0, u32::MAX), "partition 0 of `jobs` has no leader"),
        (metadata(3, 7), "the topic `jobs`: it is not there"),
    ] {
        let unmet = read(&probe(
            &broker(&[versions(0, 12), response]),
            "",
            Some("jobs"),
        ))
        .unmet;
        assert_eq!(unmet.as_deref(), Some(expected));
    }
}

#[test]
fn a_login_is_made_and_its_refusal_is_the_reason() {
    let taken = [
        versions(0, 12),
        vec![0, 0, 0, 0, 0, 1, 0, 5, b'P', b'L', b'A', b'I', b'N'],
    ];
    let login = [
        &taken[..],
        &[vec![0, 0, 0xff, 0xff, 0, 0, 0, 0], metadata(0, 7)],
    ]
    .concat();
    let reading = read(&probe(&broker(&login), "ann:secret@", None));
    assert_eq!((&reading.failure, &reading.unmet), (&None, &None));
    let refused = [&taken[..], &[b"\0\x3a\0\x05wrong\0\0\0\0".to_vec()]].concat();
    let unmet = read(&probe(&broker(&refused), "ann:secret@", None)).unmet;
    assert_eq!(unmet.as_deref(), Some("the broker reports: wrong"));
    let other = [
        versions(0, 12),
        b"\0\x21\0\0\0\x01\0\x0dSCRAM-SHA-256".to_vec(),
    ];
    let unmet = read(&probe(&broker(&other), "ann:secret@", None)).unmet;
    assert_eq!(
        unmet.as_deref(),
        Some("the broker does not take PLAIN, but SCRAM-SHA-256")
    );
}

#[test]
fn what_is_no_broker_or_a_too_old_one_is_named() {
    let old = broker(&[versions(0, 2)]);
    let unmet = read(&probe(&old, "", None)).unmet.unwrap();
    assert!(unmet.contains("versions 0 to 2 of its metadata"), "{unmet}");
    let mail = lines("220 mail.example ESMTP\r\n", &[]);
    assert_eq!(failure(&probe(&mail, "", None)).0, FailureKind::Protocol);
}
