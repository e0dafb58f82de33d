use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use plimsoll_testkit::{Authority, MaterialFiles, NatsServer, eventually};

use super::*;
use crate::transport_contract;

fn connect(server: &NatsServer) -> NatsTransport {
    let plan = NatsPlan {
        url: server.url(),
        name: "test".to_owned(),
        ..NatsPlan::default()
    };
    NatsTransport::connect(&plan).unwrap()
}

#[test]
fn it_keeps_the_contract() {
    let server = NatsServer::start();
    transport_contract::all(&|| Box::new(connect(&server)));
}

/// A network between a client and `server`, which carries nothing while it is cut and ends no connection.
fn network(server: &NatsServer, is_cut: &Arc<AtomicBool>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (to, is_cut) = (server.url().replace("nats://", ""), Arc::clone(is_cut));
    thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let Ok(broker) = TcpStream::connect(&to) else {
                return;
            };
            let ways = [
                (client.try_clone().unwrap(), broker.try_clone().unwrap()),
                (broker, client),
            ];
            for (mut from, mut onward) in ways {
                let is_cut = Arc::clone(&is_cut);
                thread::spawn(move || {
                    let mut buffer = [0; 4096];
                    while let Ok(read @ 1..) = from.read(&mut buffer) {
                        if !is_cut.load(Ordering::Relaxed)
                            && onward.write_all(&buffer[..read]).is_err()
                        {
                            break;
                        }
                    }
                    onward.shutdown(std::net::Shutdown::Both).ok();
                });
            }
        }
    });
    address
}

#[test]
fn a_network_that_is_cut_and_ends_no_connection_is_noticed() {
    let server = NatsServer::start();
    let is_cut = Arc::new(AtomicBool::new(false));
    let transport = NatsTransport::connect(&NatsPlan {
        url: format!("nats://{}", network(&server, &is_cut)),
        name: "test".to_owned(),
        ..NatsPlan::default()
    });
    let transport = transport.unwrap();
    let subjects = ["plimsoll.cut.log".to_owned()];
    transport
        .create_log("plimsoll-cut", &subjects, 1 << 20)
        .unwrap();
    is_cut.store(true, Ordering::Relaxed);
    // Whether it is found by this message or before it, it says so.
    let appended = transport.append(&subjects[0], "1", b"1".to_vec());
    eventually(|| !transport.is_connected());
    let again = transport.append(&subjects[0], "1", b"1".to_vec());
    assert!(again.unwrap_err().is_away && appended.is_err());
    is_cut.store(false, Ordering::Relaxed);
    eventually(|| transport.is_connected());
    transport.append(&subjects[0], "1", b"1".to_vec()).unwrap();
}

#[test]
fn streams_that_were_left_are_deleted_and_no_others() {
    let server = NatsServer::start();
    let transport = connect(&server);
    let subject = |name: &str| [format!("plimsoll.{name}.a")];
    for name in ["plimsoll-left", "plimsoll-kept", "others"] {
        transport.create_log(name, &subject(name), 1 << 20).unwrap();
    }
    let kept = &subject("plimsoll-kept")[0];
    transport.append(kept, "1", b"1".to_vec()).unwrap();
    // At any age; by itself it deletes those of a day ago.
    let deleted = transport.wait("clean", transport.api.delete_left_streams(Duration::ZERO));
    deleted.unwrap();
    let is_there = |name: &str| {
        transport
            .wait("look", transport.api.has_stream(name))
            .unwrap()
    };
    assert!(!is_there("plimsoll-left"));
    assert!(is_there("plimsoll-kept") && is_there("others"));
}

#[test]
fn a_broker_without_streams_is_refused_with_the_reason() {
    let server = NatsServer::start_without_streams();
    let plan = NatsPlan {
        url: server.url(),
        name: "test".to_owned(),
        ..NatsPlan::default()
    };
    let error = NatsTransport::connect(&plan).unwrap_err();
    assert!(error.to_string().contains("nats-server -js"), "{error}");
}

/// From the page on nkeys of docs.nats.io.
const SEED: &str = "SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY";
const PUBLIC: &str = "UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4";

fn plan(url: String) -> NatsPlan {
    NatsPlan {
        url,
        name: "test".to_owned(),
        ..NatsPlan::default()
    }
}

fn carries(plan: &NatsPlan) {
    let transport = NatsTransport::connect(plan).unwrap();
    let subject = "plimsoll.auth.a".to_owned();
    transport
        .create_log("auth", std::slice::from_ref(&subject), 1 << 20)
        .unwrap();
    transport.append(&subject, "1", b"1".to_vec()).unwrap();
    transport.delete("auth", "auth").unwrap();
}

fn is_refused(plan: &NatsPlan) {
    let error = NatsTransport::connect(plan).unwrap_err().to_string();
    assert!(error.contains("authorization violation"), "{error}");
}

#[test]
fn a_user_has_a_password_of_its_own() {
    let config = "authorization { users: [ { user: ann, password: right }, { user: \"b@b\", password: \"p:w\" } ] }";
    let server = NatsServer::start_with(config, false);
    carries(&plan(server.url_of("ann:right@")));
    carries(&plan(server.url_of("b%40b:p%3Aw@")));
    is_refused(&plan(server.url_of("ann:wrong@")));
    is_refused(&plan(server.url()));
}

#[test]
fn a_token_opens_a_broker() {
    let server = NatsServer::start_with("authorization { token: t0ken }", false);
    carries(&plan(server.url_of("t0ken@")));
    is_refused(&plan(server.url_of("other@")));
}

#[test]
fn a_user_signs_with_an_nkey() {
    let config = format!("authorization {{ users: [ {{ nkey: {PUBLIC} }} ] }}");
    let server = NatsServer::start_with(&config, false);
    let files = MaterialFiles::new();
    let with = |text: &str| NatsPlan {
        credentials: Some(files.write("seed", text)),
        ..plan(server.url())
    };
    carries(&with(SEED));
    is_refused(&plan(server.url()));
    let error = NatsTransport::connect(&with("SUAC")).unwrap_err();
    assert!(error.reason.contains("neither the seed"), "{error}");
}

#[test]
fn a_broker_over_tls_wants_its_authority_and_a_certificate_of_the_client() {
    let (authority, files) = (Authority::new(), MaterialFiles::new());
    let own = authority.issue(&["127.0.0.1"]);
    let client = authority.issue_for_client("agent");
    let write = |name: &str, text: &str| files.write(name, text);
    let ca = write("ca.pem", &authority.pem());
    let certificate = write("own.pem", own.pem());
    let key = write("own.key", own.key_pem());
    let of_client = (
        write("client.pem", client.pem()),
        write("client.key", client.key_pem()),
    );
    let config = format!(
        "tls {{ cert_file: {certificate:?}, key_file: {key:?}, ca_file: {ca:?}, verify: true }}"
    );
    let server = NatsServer::start_with(&config, true);
    let trusting = NatsPlan {
        authority: Some(ca),
        ..plan(server.url())
    };
    carries(&NatsPlan {
        certificate: Some(of_client.clone()),
        ..trusting.clone()
    });
    // Neither without a certificate nor without trust in the broker's.
    NatsTransport::connect(&trusting).unwrap_err();
    NatsTransport::connect(&NatsPlan {
        certificate: Some(of_client),
        ..plan(server.url())
    })
    .unwrap_err();
}

#[test]
fn a_log_survives_a_restart_of_the_broker() {
    let mut server = NatsServer::start();
    let transport = connect(&server);
    let subject = "plimsoll.restart.a".to_owned();
    transport
        .create_log("restart", std::slice::from_ref(&subject), 1 << 20)
        .unwrap();
    transport.append(&subject, "1", b"1".to_vec()).unwrap();
    server.restart();
    transport.append(&subject, "2", b"2".to_vec()).unwrap();
    let (send, received) = std::sync::mpsc::channel();
    let _reading = transport
        .follow_log(
            "restart",
            &subject,
            Box::new(move |message| send.send(message.payload).is_ok()),
        )
        .unwrap();
    for expected in [b"1", b"2"] {
        let message = received.recv_timeout(Duration::from_secs(20));
        assert_eq!(message.unwrap(), expected);
    }
    transport.delete("restart", "restart").unwrap();
}
