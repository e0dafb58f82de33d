//! The import of ExpressGateway's files.

use crate::import::{import_expressgateway, is_expressgateway};

/// Every key that there is.
const EVERY_KEY: &str = include_str!("expressgateway.toml");

fn shown(text: &str) -> String {
    match import_expressgateway("gateway.toml", text) {
        Ok(imported) => imported
            .notes
            .iter()
            .fold(imported.toml, |all, note| all + &format!("{note}\n")),
        Err(problems) => problems.iter().fold(String::new(), |all, problem| {
            all + &format!("{}: {problem} ({:?})\n", problem.line, problem.hint)
        }),
    }
}

#[test]
fn every_key_is_translated_or_reported() {
    let imported = import_expressgateway("gateway.toml", EVERY_KEY).unwrap();
    let lines: Vec<_> = EVERY_KEY.lines().collect();
    for (number, line) in (1..).zip(&lines) {
        let Some((key, value)) = line.split_once(" = ") else {
            continue;
        };
        // The file marks the keys that are translated with what becomes of them.
        let is_reported = imported.notes.iter().any(|it| it.line == number);
        match value.split_once("# ") {
            Some((_, "reported")) => assert!(is_reported, "{number}: {key}"),
            Some((_, text)) => {
                assert!(
                    imported.toml.contains(text),
                    "{key}: {text} in\n{}",
                    imported.toml
                );
            }
            None => panic!("{number}: {key} is not marked"),
        }
    }
}

#[test]
fn the_format_is_recognized_by_its_tables() {
    assert!(is_expressgateway(EVERY_KEY));
    assert!(is_expressgateway("[passthrough]\nbind_addr = \"\""));
    assert!(!is_expressgateway(
        "[[listen]]\naddress = \"\"\n[[route]]\n"
    ));
    assert!(!is_expressgateway("server { listen 80; }"));
}

#[test]
fn errors_have_their_line_and_a_suggestion() {
    let text = "[[listeners]]\naddress = \"x\"\nprotocol = \"http\"\nbackend = []\n[runtime]\nconnect_timeout = 1\n";
    let shown = shown(text);
    for wanted in [
        "2: listeners[1].address: `x` is not an address",
        "3: listeners[1].protocol: must be \"tcp\", \"tls\", \"h1\", \"h1s\" or \"quic\"",
        "4: listeners[1].backend: unknown key (Some(\"did you mean `backends`?\"))",
        "6: runtime.connect_timeout: unknown key (Some(\"did you mean `connect_timeout_ms`?\"))",
    ] {
        assert!(shown.contains(wanted), "{wanted}\n{shown}");
    }
    assert_eq!(shown.lines().count(), 4, "{shown}");
}

#[test]
fn encryption_that_ends_there_ends_here() {
    let text = "[[listeners]]\naddress = \"0.0.0.0:636\"\nprotocol = \"tls\"\n\
        backends = [{ address = \"10.0.0.1:389\" }]\n\
        tls = { cert_path = \"c.pem\", key_path = \"k.pem\" }\n\
        [[listeners]]\naddress = \"0.0.0.0:443\"\nprotocol = \"quic\"\n\
        [listeners.quic]\ncert_path = \"c.pem\"\nkey_path = \"k.pem\"\n\
        [listeners.quic.raw_proxy]\nbackend_addr = \"10.0.0.2:443\"\nsni = \"b.example\"\n\
        backend_ca_path = \"ca.pem\"\ndgram_queue_cap = 10\nmax_relay_streams = 20\n";
    let shown = shown(text);
    for wanted in [
        "tls = { cert = \"c.pem\", key = \"k.pem\" }\ntcp = \"tls\"\n",
        "[upstream.tls]\nservers = [\"tcp://10.0.0.1:389\"]\n",
        "tls = { cert = \"c.pem\", key = \"k.pem\" }\n\
        quic = { to = \"udp://10.0.0.2:443\", server_name = \"b.example\", ca = \"ca.pem\", streams = 20 }\n",
        "dgram_queue_cap: left out",
        "only `h3` is offered by ALPN",
    ] {
        assert!(shown.contains(wanted), "{wanted}\n{shown}");
    }
    assert_eq!(shown.matches("[[listen]]").count(), 2, "{shown}");
    assert_eq!(shown.matches("[[route]]").count(), 0, "{shown}");
}

#[test]
fn listeners_of_one_port_are_joined_and_backends_of_two_protocols_split() {
    let text = "[[listeners]]\naddress = \"0.0.0.0:443\"\nprotocol = \"h1s\"\n\
        backends = [{ address = \"a:1\", weight = 3 }, { address = \"b:1\", protocol = \"h2\" }]\n\
        tls = { cert_path = \"c.pem\", key_path = \"k.pem\" }\n\
        [[listeners]]\naddress = \"0.0.0.0:443\"\nprotocol = \"quic\"\n\
        backends = [{ address = \"a:1\" }]\n\
        quic = { cert_path = \"c.pem\", key_path = \"k.pem\" }\n";
    let shown = shown(text);
    for wanted in [
        "address = \"0.0.0.0:443\"\nname = \"https\"\n",
        "tls = { cert = \"c.pem\", key = \"k.pem\" }\nhttp3 = true\n",
        "listen = \"https\"\nproxy = { to = \"https\", split = { https-2 = 25 } }\n",
        "[upstream.https]\nservers = [{ url = \"http://a:1\", weight = 3 }]\nprotocol = \"http1\"\n",
        "[upstream.https-2]\nservers = [\"http://b:1\"]\nprotocol = \"http2\"\n",
        "joined with the listener `https` at the same port",
    ] {
        assert!(shown.contains(wanted), "{wanted}\n{shown}");
    }
    assert_eq!(shown.matches("[[listen]]").count(), 1, "{shown}");
    assert_eq!(shown.matches("[[route]]").count(), 1, "{shown}");
}
