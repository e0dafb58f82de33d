//! Content that is decoded as it arrives.

use std::sync::Arc;

use plimsoll_client::check::{Condition, Expectations};
use plimsoll_client::{Compressor, ContentCoding, DecodeLimits};
use plimsoll_load::{ResponsePlan, RunPlan, WorkloadPlan};
use plimsoll_model::{FailureKind, Phase, RunSummary};
use plimsoll_testkit::{Origin, Script, Step};

use crate::fixture::{failures, go, plan, requests};

const CONTENT: &str = "the same again and again, the same again and again";

fn compressed() -> Vec<u8> {
    let mut content = Vec::new();
    Compressor::new(ContentCoding::Gzip).write(CONTENT.as_bytes(), &mut content);
    content
}

/// Makes ten exchanges, each of which gets `content` as one of coding gzip.
fn decoded(content: &[u8], limits: DecodeLimits) -> RunSummary {
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: {}\r\n\r\n",
        content.len()
    );
    let answer = [head.as_bytes(), content].concat();
    let script = (0..10).fold(Script::new(), |script, _| {
        script
            .then(Step::ReadHead)
            .then(Step::Write(answer.clone()))
    });
    let origin = Origin::scripted(script);
    let condition = Condition::parse(&format!("body == '{CONTENT}'")).unwrap();
    let plan = plan(&origin.url("/"));
    go(&RunPlan {
        workload: WorkloadPlan::Requests(
            plan.workload.http(),
            ResponsePlan {
                redirects: None,
                decode: Some(limits),
            },
        ),
        expectations: Arc::new(Expectations::new(vec![condition])),
        stop: requests(10),
        ..plan
    })
}

#[test]
fn conditions_see_decoded_content_and_both_lengths_are_counted() {
    let content = compressed();
    let summary = decoded(&content, DecodeLimits::default());
    assert_eq!(summary.counts.ok, 10, "{:?}", summary.failures);
    assert!(summary.unmet.is_empty(), "{:?}", summary.unmet);
    let lengths = summary.decoded.unwrap();
    assert_eq!(lengths.encoded, 10 * content.len() as u64);
    assert_eq!(lengths.decoded, 10 * CONTENT.len() as u64);
    // Bytes received are those on the wire.
    assert!(summary.bytes_received > lengths.encoded);
    assert!(summary.bytes_received < lengths.encoded + 10 * 200);
}

#[test]
fn content_that_cannot_be_decoded_fails_its_exchange() {
    let tight = DecodeLimits {
        bytes: 20,
        ..DecodeLimits::default()
    };
    for (content, limits) in [
        (compressed(), tight),
        (b"no gzip".to_vec(), DecodeLimits::default()),
        (compressed()[..20].to_vec(), DecodeLimits::default()),
    ] {
        let summary = decoded(&content, limits);
        assert_eq!(failures(&summary, Phase::Receive, FailureKind::Decode), 10);
        assert_eq!(summary.counts.failed, 10);
        // The response was complete, so its connection carries the next one.
        assert_eq!(summary.connections_opened, 2);
    }
}
