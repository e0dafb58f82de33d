use plimsoll_testkit::NatsServer;

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
