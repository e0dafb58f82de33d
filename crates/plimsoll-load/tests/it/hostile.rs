//! The same faults over every protocol that can have them: each is counted by its name, and the run goes
//! on. What is true of every run, `started = ok + failed + aborted` among it, is checked by `go`.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use plimsoll_client::{ConnectOptions, ConnectPlan, QuicOptions};
use plimsoll_load::{HttpPlan, RunPlan, WorkloadPlan};
use plimsoll_model::{FailureKind, Phase, RunSummary};
use plimsoll_testkit::{
    Authority, Http2Origin, Http3Answer, Http3Origin, MaterialFiles, Origin, Script, Step,
    WebSocketOrigin, frames,
};
use plimsoll_wire::tls::{TlsSettings, Trust};

use crate::fixture::{connect, failures, go, millis, plan, requests, set_streams};
use crate::http2::http2;
use crate::http3::{answering, http3, options};
use crate::websocket::at;

/// Six exchanges on three connections: two in vain on each are not rested from for long.
fn six(plan: RunPlan) -> RunPlan {
    RunPlan {
        connections: 3,
        stop: requests(6),
        ..plan
    }
}

#[track_caller]
fn assert_all(summary: &RunSummary, phase: Phase, kind: FailureKind) {
    let counts = &summary.counts;
    assert_eq!((counts.started, counts.ok), (6, 0), "{counts:?}");
    assert_eq!(failures(summary, phase, kind), 6, "{:?}", summary.failures);
}

fn over_tls(roots: &Trust, alpn: &[u8]) -> Arc<ConnectPlan> {
    let tls = TlsSettings {
        trust: roots.clone(),
        alpn: vec![alpn.to_vec()],
        ..TlsSettings::default()
    };
    connect(ConnectOptions {
        tls: Some(tls.compile().unwrap()),
        ..ConnectOptions::default()
    })
}

#[test]
fn certificates_fail_by_cause() {
    let (authority, files) = (Authority::new(), MaterialFiles::new());
    let roots = Trust::Only(files.write("roots.pem", &authority.pem()));
    for (leaf, kind) in [
        (
            authority.issue_expired(&["127.0.0.1"]),
            FailureKind::CertificateExpired,
        ),
        (
            authority.issue(&["example.org"]),
            FailureKind::CertificateHostname,
        ),
        (
            Authority::new().issue(&["127.0.0.1"]),
            FailureKind::CertificateUntrusted,
        ),
    ] {
        let origin = Origin::builder().tls(leaf.server_config()).start();
        let summary = go(&RunPlan {
            connect: over_tls(&roots, b"http/1.1"),
            ..six(plan(&origin.url("/")))
        });
        assert_all(&summary, Phase::Tls, kind);
        let summary = go(&RunPlan {
            connect: over_tls(&roots, b"http/1.1"),
            ..six(at(&origin.url("/"), b"hello"))
        });
        assert_all(&summary, Phase::Tls, kind);
        let origin = Http2Origin::builder().tls(leaf.server_config()).start();
        let summary = go(&RunPlan {
            connect: over_tls(&roots, b"h2"),
            ..six(http2(&origin.url("/")))
        });
        assert_all(&summary, Phase::Tls, kind);
        let origin = Http3Origin::hello(leaf.server_config());
        let summary = go(&RunPlan {
            connect: connect(options(roots.clone(), &QuicOptions::default())),
            ..six(http3(&origin.url("/")))
        });
        assert_all(&summary, Phase::Connect, kind);
    }
}

/// Answers the first request of each HTTP/2 connection with these frames, and then does this.
fn http2_answer(frames: &[Vec<u8>], last: Step) -> Http2Origin {
    let bytes = frames.concat();
    Http2Origin::builder()
        .raw(move |_| {
            Some(
                Script::new()
                    .then(Step::Write(frames::settings()))
                    .then(Step::ReadBody(frames::OPENING_BYTES + 9))
                    .then(Step::Write(bytes.clone()))
                    .then(last.clone()),
            )
        })
        .start()
}

/// The head of a response of 200 that announces ten bytes: `:status` and `content-length` are those
/// of the static table (RFC 7541, appendix A).
fn ten_announced() -> Vec<u8> {
    frames::frame(1, 4, 1, b"\x88\x0f\x0d\x0210")
}

fn data(content: &[u8], ends: bool) -> Vec<u8> {
    frames::frame(0, u8::from(ends), 1, content)
}

fn one_stream(mut plan: RunPlan) -> RunPlan {
    if let WorkloadPlan::Requests(HttpPlan::Http2(http2), _) = &mut plan.workload {
        http2.streams = 1;
    }
    plan
}

#[test]
fn bodies_shorter_than_announced() {
    let cut = &b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhello"[..];
    let origin = Origin::scripted(Script::answer_once(cut));
    let summary = go(&six(plan(&origin.url("/"))));
    assert_all(&summary, Phase::Receive, FailureKind::Closed);
    let origin = http2_answer(&[ten_announced(), data(b"hello", true)], Step::Swallow);
    let summary = go(&one_stream(RunPlan {
        connections: 1,
        stop: requests(1),
        ..six(http2(&origin.url("/")))
    }));
    assert_eq!(
        failures(&summary, Phase::Receive, FailureKind::Protocol),
        1,
        "{:?}",
        summary.failures
    );
    let origin = answering(|_, _| Http3Answer::Miscounted {
        announced: 10,
        sent: 5,
    });
    let summary = go(&six(http3(&origin.url("/"))));
    assert_all(&summary, Phase::Receive, FailureKind::Protocol);
}

#[test]
fn bodies_longer_than_announced() {
    // Over HTTP/1 what follows a response belongs to nothing: the connection is used no more.
    let longer = &b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nhello"[..];
    let origin = Origin::scripted(Script::serve(longer));
    let summary = go(&six(plan(&origin.url("/"))));
    assert_eq!((summary.counts.ok, origin.connections()), (6, 6));
    let origin = http2_answer(
        &[ten_announced(), data(b"hello world", true)],
        Step::Swallow,
    );
    let summary = go(&one_stream(RunPlan {
        connections: 1,
        stop: requests(1),
        ..six(http2(&origin.url("/")))
    }));
    assert_eq!(
        failures(&summary, Phase::Receive, FailureKind::Protocol),
        1,
        "{:?}",
        summary.failures
    );
    let origin = answering(|_, _| Http3Answer::Miscounted {
        announced: 5,
        sent: 10,
    });
    let summary = go(&six(http3(&origin.url("/"))));
    assert_all(&summary, Phase::Receive, FailureKind::Protocol);
}

#[test]
fn resets_inside_a_body() {
    let begun = &b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhello"[..];
    let pause = || Step::Pause(millis(20));
    let script = Script::answer_once(begun).then(pause()).then(Step::Reset);
    let origin = Origin::scripted(script);
    let summary = go(&six(plan(&origin.url("/"))));
    assert_all(&summary, Phase::Receive, FailureKind::Reset);
    let reset = frames::frame(3, 0, 1, &[0, 0, 0, 2]);
    let origin = http2_answer(
        &[ten_announced(), data(b"hello", false), reset],
        Step::Swallow,
    );
    let summary = go(&one_stream(RunPlan {
        connections: 1,
        stop: requests(1),
        ..six(http2(&origin.url("/")))
    }));
    assert_eq!(
        failures(&summary, Phase::Receive, FailureKind::Reset),
        1,
        "{:?}",
        summary.failures
    );
    // Half a message, and then nothing more.
    let origin = WebSocketOrigin::answering(|_| {
        plimsoll_testkit::WebSocketAnswer::Raw(b"\x81\x05he".to_vec())
    });
    let url = format!("http://{}/", origin.address());
    let summary = go(&RunPlan {
        timeout: millis(60),
        ..six(at(&url, b"hello"))
    });
    assert_all(&summary, Phase::Receive, FailureKind::Timeout);
}

#[test]
fn a_trickle_is_given_up_when_the_time_is_over() {
    // A byte every 20 ms: each read brings something, and the end never comes.
    let trickle = |head: &[u8], piece: &[u8]| {
        let mut script = Script::new().then(Step::Write(head.to_vec()));
        for _ in 0..100 {
            script = script
                .then(Step::Pause(millis(20)))
                .then(Step::Write(piece.to_vec()));
        }
        script
    };
    let head = b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n";
    let brief = |plan| RunPlan {
        timeout: millis(100),
        ..six(plan)
    };
    let origin = Origin::scripted(trickle(head, b"x"));
    let summary = go(&brief(plan(&origin.url("/"))));
    assert_all(&summary, Phase::Receive, FailureKind::Timeout);
    // Of the head itself.
    let origin = Origin::scripted(trickle(b"HTTP/1.1 200 OK\r\nx: ", b"x"));
    let summary = go(&brief(plan(&origin.url("/"))));
    assert_all(&summary, Phase::Receive, FailureKind::Timeout);
    let origin = Http2Origin::builder()
        .raw(move |_| {
            let opening = [frames::settings(), frames::frame(1, 4, 1, b"\x88")].concat();
            Some(trickle(&opening, &data(b"x", false)))
        })
        .start();
    let summary = go(&one_stream(RunPlan {
        connections: 1,
        stop: requests(1),
        ..brief(http2(&origin.url("/")))
    }));
    assert_eq!(
        failures(&summary, Phase::Receive, FailureKind::Timeout),
        1,
        "{:?}",
        summary.failures
    );
}

#[test]
fn addresses_that_this_machine_does_not_have_are_its_own_limit() {
    // TEST-NET-1 (RFC 5737): binding to it is EADDRNOTAVAIL, as is a machine without a free port.
    let source = Some(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)));
    let connect_from = |options| connect(ConnectOptions { source, ..options });
    let origin = Origin::hello();
    let from_there = |plan: RunPlan| RunPlan {
        connect: connect_from(ConnectOptions::default()),
        ..six(plan)
    };
    let url = origin.url("/");
    for plan in [plan(&url), one_stream(http2(&url)), at(&url, b"hello")] {
        let summary = go(&from_there(plan));
        assert_all(&summary, Phase::Connect, FailureKind::ResourceLimit);
    }
    let origin = answering(|_, _| Http3Answer::Hold);
    let mut plan = six(http3(&origin.url("/")));
    set_streams(&mut plan, 1);
    let summary = go(&RunPlan {
        connect: connect_from(options(Trust::Anyone, &QuicOptions::default())),
        ..plan
    });
    assert_all(&summary, Phase::Connect, FailureKind::ResourceLimit);
}
