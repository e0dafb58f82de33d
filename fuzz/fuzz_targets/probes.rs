//! Probes of the monitor: whatever a server sends before it closes, each ends in a reading, and not by its timeout.
#![no_main]

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use plimsoll_model::FailureKind;
use plimsoll_monitor::probe::{
    AmqpProbe, LdapFilter, LdapProbe, LdapScope, LdapSearch, MqttProbe, MysqlProbe, NatsProbe,
    PostgresProbe, Probe, ProbeContext, Reach, ReachOptions, RedisProbe, TcpTarget, parsers,
};

/// What the server sends next.
static ANSWER: Mutex<Vec<u8>> = Mutex::new(Vec::new());

static SERVER: LazyLock<SocketAddr> = LazyLock::new(|| {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = listener.local_addr().expect("it is bound");
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let answer = ANSWER
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .clone();
            stream.write_all(&answer).ok();
            stream.shutdown(std::net::Shutdown::Write).ok();
            // Otherwise the connection would be reset before the answer was read.
            stream.read_to_end(&mut Vec::new()).ok();
        }
    });
    address
});

static PROBES: LazyLock<Vec<Box<dyn Probe>>> = LazyLock::new(|| {
    let reach = Reach::new(ReachOptions {
        timeout: Duration::from_secs(10),
        ..ReachOptions::default()
    })
    .expect("there is nothing to be wrong");
    let url = |scheme: &str| format!("{scheme}://a:b@{}/c", *SERVER);
    let query = || Some("q".to_owned());
    let known = "the URL is one";
    let ldap = LdapProbe {
        target: TcpTarget::parse(&SERVER.to_string(), false, 0).expect(known),
        starttls: false,
        login: None,
        search: Some(LdapSearch {
            base: "dc=a".to_owned(),
            scope: LdapScope::Sub,
            filter: LdapFilter::every(),
            attributes: Vec::new(),
        }),
        reach: reach.clone(),
    };
    vec![
        Box::new(MysqlProbe::new(&url("mysql"), query(), reach.clone()).expect(known)),
        Box::new(PostgresProbe::new(&url("postgres"), query(), reach.clone()).expect(known)),
        Box::new(
            RedisProbe::new(&format!("redis://{}", *SERVER), Vec::new(), reach.clone())
                .expect(known),
        ),
        Box::new(MqttProbe::new(&url("mqtt"), query(), reach.clone()).expect(known)),
        Box::new(AmqpProbe::new(&url("amqp"), query(), reach.clone()).expect(known)),
        Box::new(NatsProbe::new(&url("nats"), None, reach).expect(known)),
        Box::new(ldap),
    ]
});

fuzz_target!(|data: &[u8]| {
    let Some((kind, answer)) = data.split_first() else {
        return;
    };
    let kind = usize::from(*kind) % (PROBES.len() + 4);
    let Some(probe) = PROBES.get(kind) else {
        match kind - PROBES.len() {
            0 => parsers::ntp(answer),
            1 => parsers::snmp(answer),
            2 => parsers::bus(answer),
            _ => {
                let text = String::from_utf8_lossy(answer);
                text.parse::<LdapFilter>().ok();
            }
        }
        return;
    };
    *ANSWER.lock().unwrap_or_else(PoisonError::into_inner) = answer.to_vec();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime can be made");
    let reading = runtime.block_on(async { probe.check(&ProbeContext::new()).await });
    let failure = reading.failure.map(|failure| failure.kind);
    assert_ne!(failure, Some(FailureKind::Timeout), "{}", probe.kind());
});
