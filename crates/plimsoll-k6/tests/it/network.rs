//! Options about connections, and parts of a run.

use std::io::Write as _;
use std::process::{Command, Stdio};

use plimsoll_k6::Overrides;
use plimsoll_testkit::{Authority, Leaf, Origin};
use serde_json::{Map, Value, json};

use crate::fixture::{run_script, run_with};
use crate::server::Server;

fn with(options: Value) -> Overrides {
    let Value::Object(options) = options else {
        return Overrides::default();
    };
    Overrides {
        options,
        ..Overrides::default()
    }
}

/// A server that accepts clients of an authority only.
fn strict(clients: &Authority) -> Origin {
    let leaf = Leaf::self_signed(&["localhost", "127.0.0.1"]);
    let builder = Origin::builder().tls(leaf.server_config_for_clients_of(clients));
    builder.start()
}

#[test]
fn a_server_gets_the_certificate_that_it_accepts() {
    let accepted = Authority::new();
    let server = strict(&accepted);
    let mine = accepted.issue_for_client("me");
    let wrong = Leaf::self_signed(&["other"]);
    let script = |identities: Value| {
        format!(
            "import http from 'k6/http';
             export const options = {{ insecureSkipTLSVerify: true, tlsAuth: {identities} }};
             export default () => {{ const it = http.get('URL'); console.log(it.status, it.tls_version); }}"
        )
    };
    let pair = |leaf: &Leaf| json!({ "cert": leaf.pem(), "key": leaf.key_pem(), "domains": ["x"] });
    let ran = run_script(
        &script(json!([pair(&wrong), pair(&mine)])),
        &server.url("/"),
    );
    assert_eq!(ran.console, ["Info: 200 tls1.3"], "{ran:#?}");
    let ran = run_script(&script(json!([pair(&wrong)])), &server.url("/"));
    assert_eq!(ran.metric("http_req_failed", "value"), 1.0, "{ran:#?}");
    let ran = run_script(
        &script(json!([{ "cert": "none", "key": mine.key_pem() }])),
        "https://127.0.0.1/",
    );
    assert_eq!(ran.code, 104, "{ran:#?}");
    assert!(
        ran.message
            .contains("`options.tlsAuth[0]` has no certificate"),
        "{ran:#?}"
    );
}

/// The key in PEM, encrypted by OpenSSL with the password `secret`.
fn encrypted(key: &str, command: &[&str]) -> String {
    let mut openssl = Command::new("openssl")
        .args(command)
        .args(["-passout", "pass:secret"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("openssl is installed");
    let mut stdin = openssl.stdin.take().unwrap();
    stdin.write_all(key.as_bytes()).unwrap();
    drop(stdin);
    let output = openssl.wait_with_output().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn keys_may_have_passwords() {
    let accepted = Authority::new();
    let server = strict(&accepted);
    let mine = accepted.issue_for_client("me");
    let forms = [
        &["pkcs8", "-topk8"][..],
        &["pkey", "-traditional", "-aes256"],
    ];
    for form in forms {
        let key = encrypted(mine.key_pem(), form);
        assert!(key.contains("ENCRYPTED"), "{key}");
        let script = |password: Value| {
            let identity = json!({ "cert": mine.pem(), "key": key, "password": password });
            format!(
                "import http from 'k6/http';
                 export const options = {{ insecureSkipTLSVerify: true, tlsAuth: [{identity}] }};
                 export default () => console.log(http.get('URL').status)"
            )
        };
        let ran = run_script(&script(json!("secret")), &server.url("/"));
        assert_eq!(ran.console, ["Info: 200"], "{ran:#?}");
        for (password, expected) in [
            (json!("other"), "key cannot be decrypted by the `password`"),
            (Value::Null, "key is encrypted: it needs a `password`"),
        ] {
            let ran = run_script(&script(password), &server.url("/"));
            assert_eq!(ran.code, 104, "{ran:#?}");
            let expected = format!("options.tlsAuth[0].{expected}");
            assert!(ran.message.contains(&expected), "{ran:#?}");
        }
    }
}

#[test]
fn cipher_suites_of_go_are_offered() {
    let leaf = Leaf::self_signed(&["127.0.0.1"]);
    let server = Origin::builder().tls(leaf.server_config()).start();
    let text = "import http from 'k6/http';
        export const options = { insecureSkipTLSVerify: true, tlsVersion: 'tls1.2',
          tlsCipherSuites: ['TLS_RSA_WITH_RC4_128_SHA', 'TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256'] };
        export default () => console.log(http.get('URL').tls_cipher_suite);";
    let ran = run_script(text, &server.url("/"));
    let suite = "Info: TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256";
    assert_eq!(ran.console, [suite], "{ran:#?}");
    assert!(
        ran.log[0].contains("TLS_RSA_WITH_RC4_128_SHA are not offered"),
        "{ran:#?}"
    );
}

#[test]
fn users_connect_from_their_addresses_and_requests_are_logged() {
    let server = Server::start();
    let text = "import http from 'k6/http';
        export const options = { scenarios: { s: { executor: 'per-vu-iterations', vus: 1 } } };
        export default () => { http.post('URL/echo', 'sent', { headers: { 'X-Own': '1' } }); }";
    let overrides = with(json!({ "httpDebug": "full", "localIPs": "127.0.0.5" }));
    let ran = run_with(text, &server.url(), overrides, &|| false);
    let [request, response] = ran.log.as_slice() else {
        panic!("{ran:#?}");
    };
    assert!(
        request.starts_with("Info: Request:\nPOST /echo HTTP/1.1\nHost: 127.0.0.1:"),
        "{request}"
    );
    assert!(
        request.contains("\nX-Own: 1\n") && request.ends_with("\n\nsent\n"),
        "{request}"
    );
    assert!(
        response.starts_with("Info: Response:\nHTTP/1.1 200 OK\n"),
        "{response}"
    );
    assert!(response.ends_with("\n\nsent\n"), "{response}");
    // The kernel routes all of 127.0.0.0/8 over the loopback.
    let peers = server.peers();
    assert!(
        peers.iter().all(|peer| peer.to_string() == "127.0.0.5"),
        "{peers:?}"
    );
    let ran = run_with(
        text,
        &server.url(),
        with(json!({ "localIPs": "127.0.0.9-127.0.0.3" })),
        &|| false,
    );
    assert_eq!(ran.code, 104, "{ran:#?}");
}

#[test]
fn segments_share_users_and_iterations() {
    let text = "import exec from 'k6/execution';
        export const options = { scenarios: {
          shared: { executor: 'shared-iterations', vus: 2, iterations: 5 },
          small: { executor: 'shared-iterations', vus: 1, iterations: 1 },
        } };
        export default () => console.log(exec.scenario.name, exec.scenario.iterationInTest, exec.vu.idInTest);";
    let run = |segment: &str| {
        let options = json!({ "executionSegment": segment, "executionSegmentSequence": "0,1/2,1" });
        let mut lines = run_with(text, "", with(options), &|| false).console;
        lines.sort();
        lines
    };
    let first = [
        "Info: shared 0 1",
        "Info: shared 2 1",
        "Info: shared 4 1",
        "Info: small 0 3",
    ];
    assert_eq!(run("0:1/2"), first);
    assert_eq!(run("1/2:1"), ["Info: shared 1 2", "Info: shared 3 2"]);
    let none = "export const options = { executionSegment: '1/2:1' }; export default () => console.log('no');";
    let ran = run_script(none, "");
    assert_eq!((ran.code, ran.console.len()), (0, 0), "{ran:#?}");
    let wrong = run_with(
        text,
        "",
        with(json!({ "executionSegment": "2:3" })),
        &|| false,
    );
    assert_eq!(wrong.code, 104);
    assert!(
        wrong.message.contains("`2` is not a number from 0 to 1"),
        "{}",
        wrong.message
    );
}

#[test]
fn a_paused_run_is_refused_with_the_reason() {
    let mut options = Map::new();
    options.insert("paused".to_owned(), json!(true));
    let ran = run_with(
        "export default () => {}",
        "",
        with(Value::Object(options)),
        &|| false,
    );
    assert_eq!(ran.code, 104);
    assert!(
        ran.message.contains("options.paused needs `--address`"),
        "{}",
        ran.message
    );
}
