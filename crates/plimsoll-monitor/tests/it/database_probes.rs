//! Probes of databases and brokers against real ones.

use plimsoll_model::{FailureKind, Phase};
use plimsoll_monitor::Reading;
use plimsoll_monitor::probe::{MqttProbe, MysqlProbe, PostgresProbe, RedisProbe};
use plimsoll_testkit::services::{MariaDbServer, MqttServer, PostgresServer, RedisServer};
use plimsoll_testkit::{Origin, free_port};

use crate::probes::{failure, impatient, lines, reach, read};

#[test]
fn postgres_reads_rows_and_says_what_the_server_reports() {
    let server = PostgresServer::start(Some(free_port().unwrap()));
    let url = server.database();
    let (_, name) = url.rsplit_once('/').unwrap();
    let name = name.trim_end_matches("?sslmode=disable");
    server.sql(
        name,
        "CREATE TABLE jobs (id INT, state TEXT); INSERT INTO jobs VALUES (1, 'done'), (2, NULL);
         GRANT SELECT ON jobs TO plimsoll",
    );
    let probe = |url: &str, query: Option<&str>| {
        PostgresProbe::new(url, query.map(str::to_owned), reach()).unwrap()
    };
    let reading = read(&probe(&url, Some("SELECT id, state FROM jobs ORDER BY id")));
    assert_eq!((&reading.failure, &reading.unmet), (&None, &None));
    let body = String::from_utf8(reading.body).unwrap();
    assert_eq!(body, r#"[{"id":1,"state":"done"},{"id":2,"state":null}]"#);
    assert!(reading.connected && reading.phases.get(Phase::Wait).is_some());
    // Without TLS at the server, it is only used if it is there.
    let preferred = url.replace("disable", "prefer");
    assert_eq!(read(&probe(&preferred, None)).body, br#"[{"one":1}]"#);
    let required = read(&probe(&url.replace("disable", "require"), None));
    assert!(required.failure.is_some(), "{required:?}");
    // A result of any size is read in parts.
    let large = read(&probe(
        &url,
        Some("SELECT repeat('x', 1000) AS a FROM generate_series(1, 1000000)"),
    ));
    assert!(
        large.body.len() < 70_000 && large.failure.is_none(),
        "{:?}",
        large.failure
    );
    for (url, query, expected) in [
        (
            url.clone(),
            "SELECT * FROM missing",
            "\"missing\" does not exist (42P01)",
        ),
        (
            url.replace(name, "nothing"),
            "SELECT 1",
            "\"nothing\" does not exist (3D000)",
        ),
    ] {
        let unmet = read(&probe(&url, Some(query))).unmet.unwrap();
        assert!(unmet.contains(expected), "{unmet}");
    }
    // Another protocol.
    let origin = Origin::hello();
    let other = format!("postgres://a@{}/?sslmode=disable", origin.address());
    assert!(read(&probe(&other, None)).failure.is_some());
    for wrong in [
        "mysql://a/",
        "postgres://",
        "postgres://a/?ssl=1",
        "postgres://a/?sslmode=x",
    ] {
        PostgresProbe::new(wrong, None, reach()).unwrap_err();
    }
}

#[test]
fn mysql_reads_rows_and_says_what_the_server_reports() {
    let server = MariaDbServer::start(
        "CREATE DATABASE shop;
CREATE TABLE shop.jobs (id INT, state TEXT);
INSERT INTO shop.jobs VALUES (1, 'done'), (2, NULL);
CREATE USER monitor IDENTIFIED BY 'secret word';
GRANT SELECT ON shop.* TO monitor;
CREATE USER nobody;
",
    );
    let probe = |login: &str, query: Option<&str>| {
        let url = format!("mysql://{login}@127.0.0.1:{}/shop", server.port);
        MysqlProbe::new(&url, query.map(str::to_owned), reach()).unwrap()
    };
    let login = "monitor:secret%20word";
    // The statements come before connections, but the port is open before they are executed.
    plimsoll_testkit::eventually(|| read(&probe(login, None)).unmet.is_none());
    assert_eq!(read(&probe(login, None)).body, br#"[{"one":1}]"#);
    let reading = read(&probe(
        login,
        Some("SELECT id, state FROM jobs ORDER BY id"),
    ));
    assert_eq!((&reading.failure, &reading.unmet), (&None, &None));
    let body = String::from_utf8(reading.body).unwrap();
    assert_eq!(body, r#"[{"id":1,"state":"done"},{"id":2,"state":null}]"#);
    assert!(reading.connected && reading.phases.get(Phase::Wait).is_some());
    let none = read(&probe(login, Some("DO 1")));
    assert_eq!((&none.body[..], &none.failure), (&b"[]"[..], &None));
    let large = "SELECT repeat('x', 1000) AS a FROM seq_1_to_1000000";
    let large = read(&probe(login, Some(large)));
    assert!(
        large.body.len() < 70_000 && large.failure.is_none(),
        "{:?}",
        large.failure
    );
    for (login, query, expected) in [
        (login, "SELECT * FROM missing", "(1146)"),
        (login, "INSERT INTO jobs VALUES (3, '')", "(1142)"),
        ("monitor:wrong", "SELECT 1", "(1045)"),
        ("nobody", "SELECT 1", "(1044)"),
    ] {
        let unmet = read(&probe(login, Some(query))).unmet.unwrap();
        assert!(
            unmet.starts_with("the server reports: ") && unmet.ends_with(expected),
            "{unmet}"
        );
    }
    let url = format!("mysql://{login}@127.0.0.1:{}/?sslmode=require", server.port);
    let unmet = read(&MysqlProbe::new(&url, None, reach()).unwrap()).unmet;
    assert_eq!(unmet.as_deref(), Some("the server offers no TLS"));
    // Another protocol.
    let origin = lines("220 mail.example\r\n", &[]);
    let url = format!("mysql://a@{}/", origin.address());
    assert!(
        read(&MysqlProbe::new(&url, None, impatient()).unwrap())
            .failure
            .is_some()
    );
}

#[test]
fn mqtt_waits_for_a_message_and_says_what_the_broker_refuses() {
    let server = MqttServer::start("ann", "secret word");
    let probe = |login: &str, topic: Option<&str>, reach| {
        let url = format!("mqtt://{login}127.0.0.1:{}", server.port);
        read(&MqttProbe::new(&url, topic.map(str::to_owned), reach).unwrap())
    };
    let login = "ann:secret%20word@";
    let reading = probe(login, None, reach());
    assert_eq!((&reading.failure, &reading.unmet), (&None, &None));
    assert!(reading.connected && reading.phases.get(Phase::Wait).is_some());
    // The broker's messages about itself are retained.
    let reading = probe(login, Some("$SYS/broker/version"), reach());
    assert!(
        reading.body.starts_with(b"mosquitto version"),
        "{reading:?}"
    );
    // A topic without a message.
    let silent = probe(login, Some("nothing/here"), impatient());
    assert_eq!(silent.failure.unwrap().kind, FailureKind::Timeout);
    for login in ["", "ann:wrong@", "bob:secret%20word@"] {
        let unmet = probe(login, None, reach()).unmet.unwrap();
        assert!(unmet.starts_with("the broker refuses "), "{unmet}");
    }
    let origin = lines("220 mail.example\r\n", &[]);
    let url = format!("mqtt://{}", origin.address());
    assert!(
        read(&MqttProbe::new(&url, None, impatient()).unwrap())
            .failure
            .is_some()
    );
    MqttProbe::new("http://a/", None, reach()).unwrap_err();
}

#[test]
fn redis_sends_a_command_and_says_what_the_server_reports() {
    let server = RedisServer::start("secret word");
    let probe = |login: &str, command: &[&str]| {
        let url = format!("redis://{login}127.0.0.1:{}/3", server.port);
        let command = command.iter().map(|word| (*word).to_owned()).collect();
        read(&RedisProbe::new(&url, command, reach()).unwrap())
    };
    let text = |reading: &Reading| String::from_utf8(reading.body.clone()).unwrap();
    let login = ":secret%20word@";
    let reading = probe(login, &[]);
    assert_eq!((&*text(&reading), &reading.failure), ("PONG", &None));
    assert!(reading.phases.get(Phase::Wait).is_some());
    assert_eq!(text(&probe("default:secret%20word@", &[])), "PONG");
    for (command, expected) in [
        (&["RPUSH", "jobs", "one two", "", "three"][..], "3"),
        (&["LLEN", "jobs"], "3"),
        (&["LRANGE", "jobs", "0", "-1"], "one two\n\nthree"),
        (&["GET", "missing"], ""),
        (&["SET", "large", &"x".repeat(60_000)], "OK"),
    ] {
        assert_eq!(text(&probe(login, command)), expected, "{command:?}");
    }
    assert_eq!(probe(login, &["GET", "large"]).size, 60_000);
    let unmet = |login: &str, command: &[&str]| probe(login, command).unmet.unwrap();
    assert!(unmet("", &[]).contains("NOAUTH"));
    assert!(unmet(":wrong@", &[]).contains("WRONGPASS"));
    assert!(unmet(login, &["LLEN", "large"]).contains("WRONGTYPE"));
    assert!(unmet(login, &["NOTHING"]).contains("unknown command"));
    // Another protocol, a reply without an end, and lists within lists.
    let lists = "*1\r\n".repeat(10_001);
    for (answer, kind) in [
        ("HTTP/1.1 400\r\n", FailureKind::Protocol),
        ("$99999999\r\n", FailureKind::TooLarge),
        (&lists, FailureKind::TooLarge),
    ] {
        let origin = lines(answer, &[]);
        let url = format!("redis://{}/", origin.address());
        assert_eq!(
            failure(&RedisProbe::new(&url, Vec::new(), reach()).unwrap()).0,
            kind
        );
    }
    for wrong in ["http://a/", "redis://", "redis://a/x", "redis://a/?b"] {
        RedisProbe::new(wrong, Vec::new(), reach()).unwrap_err();
    }
}
