//! Servers respond on their own listeners only, and there to their names and as defaults.

use super::{check, imported};

#[test]
fn a_server_responds_on_its_own_listeners_only() {
    check(
        r#"
        server { listen 8080; server_name a.test; location / { return 200 "public"; } }
        server { listen 127.0.0.1:8081; server_name localhost; location / { return 200 "internal"; } }
        "#,
        &[
            "address = \"127.0.0.1:8081\"\nname = \"127.0.0.1:8081\"\n",
            "address = \":8080\"\nname = \":8080\"\n",
            "listen = [\":8080\"]\nhost = \"a.test\"\nprefix = \"/\"\nrespond = { status = 200, body = \"public\" }",
            "listen = [\":8080\"]\nprefix = \"/\"\nrespond = { status = 200, body = \"public\" }",
            "listen = [\"127.0.0.1:8081\"]\nhost = \"localhost\"\nprefix = \"/\"\nrespond = { status = 200, body = \"internal\" }",
            "listen = [\"127.0.0.1:8081\"]\nprefix = \"/\"\nrespond = { status = 200, body = \"internal\" }",
        ],
        &[],
    );
}

#[test]
fn one_address_may_be_listened_on_twice() {
    check(
        "server { listen 8443 quic; listen 8443 ssl; listen [::]:8443 ssl default_server; return 200; }",
        &["address = \":8443\"\ntls = { self_signed = true }\nhttp3 = true\nunderscores"],
        &[],
    );
}

#[test]
fn a_listener_is_without_http2_if_all_of_its_servers_turn_it_off() {
    check(
        r"
        http2 off;
        server { listen 8080; return 200; }
        server { listen 8080; listen 8081; server_name a.test; http2 on; return 200; }
        server { listen 8081 http2; server_name b.test; return 200; }
        server { listen 8082; return 200; }
        ",
        &[
            "address = \":8080\"\nname = \":8080\"\nunderscores",
            "address = \":8081\"\nname = \":8081\"\nunderscores",
            "address = \":8082\"\nname = \":8082\"\nhttp2 = false\nunderscores",
        ],
        &[
            "nginx.conf:2: http2: left out: another server of the listener speaks HTTP/2, so all of them do",
        ],
    );
}

#[test]
fn connections_have_the_time_of_nginx_to_end() {
    check(
        "worker_shutdown_timeout 30s; http { server { listen 8080; return 200; } }",
        &["left out.\ndrain = \"30s\"\n\n[[listen]]"],
        &["worker_shutdown_timeout: it is the time for connections at the end of the process"],
    );
    check(
        "worker_shutdown_timeout soon; http { server { listen 8080; return 200; } }",
        &["left out.\n\n[[listen]]"],
        &["worker_shutdown_timeout: left out: it is not a time"],
    );
}

#[test]
fn fields_with_underscores_are_dropped_unless_the_default_server_allows_them() {
    check(
        r"
        server { listen 8080; return 200; }
        server { listen 8081; underscores_in_headers on; return 200; }
        server { listen 8081; server_name a.test; return 200; }
        ",
        &[
            "address = \":8080\"\nname = \":8080\"\nunderscores = \"drop\"\n",
            "address = \":8081\"\nname = \":8081\"\nunderscores = \"allow\"\n",
        ],
        &[],
    );
}

#[test]
fn only_the_default_of_a_listener_responds_to_other_names() {
    let text = r#"
        server { listen 8080; server_name a.test; return 200 "a"; }
        server { listen 8080 default_server; server_name b.test; return 200 "b"; }
        server { listen 8080; server_name a.test; return 200 "again"; }
        server { listen 8080; location /admin { return 200 "nameless"; } }
    "#;
    check(
        text,
        &[
            "host = \"a.test\"\nprefix = \"/\"\nrespond = { status = 200, body = \"a\" }",
            "host = \"b.test\"\nprefix = \"/\"\nrespond = { status = 200, body = \"b\" }",
            "[[route]]\nprefix = \"/\"\nrespond = { status = 200, body = \"b\" }",
        ],
        &[
            "nginx.conf:4: server: `a.test` is left out: an earlier server has the name",
            "nginx.conf:4: server: left out: no request is for it",
            "nginx.conf:5: server: left out: no request is for it",
        ],
    );
    let toml = imported(text).toml;
    assert!(
        !toml.contains("again") && !toml.contains("nameless"),
        "{toml}"
    );
}

#[test]
fn a_server_that_leads_to_https_by_a_condition_does_so_on_a_shared_listener_too() {
    check(
        r#"
        server { listen 8080; listen 8443 ssl; server_name a.test;
                 if ($scheme = http) { return 301 https://$host$request_uri; }
                 return 200 "secret"; }
        server { listen 8080; server_name b.test; return 200 "plain"; }
        "#,
        &[
            "listen = [\":8443\"]\nhost = \"a.test\"\nprefix = \"/\"\nrespond = { status = 200, body = \"secret\" }",
            "listen = [\":8080\"]\nhost = \"a.test\"\nprefix = \"/\"\nredirect = { to = \"https://{host}{path}{query}\", status = 301 }",
            "listen = [\":8080\"]\nhost = \"b.test\"\nprefix = \"/\"\nrespond = { status = 200, body = \"plain\" }",
        ],
        &[],
    );
}

#[test]
fn certificates_of_clients_are_asked_for_or_the_server_is_closed() {
    let one = "server { listen 8443 ssl; server_name a.test; ssl_verify_client on; ssl_client_certificate /ca.pem; return 200; }";
    check(
        one,
        &["client_certificates = { ca = \"/ca.pem\", required = true }"],
        &[],
    );
    let two = format!("{one} server {{ listen 8443 ssl; server_name b.test; return 204; }}");
    check(
        &two,
        &[
            "client_certificates = { ca = \"/ca.pem\", required = false }",
            "host = \"a.test\"\nprefix = \"/\"\nrespond = { status = 200, body = \"\" }\nclient_certificate = { status = 400 }",
            "host = \"b.test\"\nprefix = \"/\"\nrespond = { status = 204",
        ],
        &[],
    );
    // What one server serves in the clear too, and another authority, are closed.
    let plain = "server { listen 8443 ssl; listen 8080; server_name c.test; ssl_verify_client on; ssl_client_certificate /ca.pem; return 200; }";
    let other = "server { listen 8443 ssl; server_name d.test; ssl_verify_client on; ssl_client_certificate /other.pem; return 200; }";
    let note =
        "ssl_verify_client: the server responds with 403: servers of one listener want different";
    let left_out = "ssl_verify_client: left out: servers of one listener want different";
    for (closed, expected) in [(plain, vec![note]), (other, vec![left_out, note])] {
        let two = format!(
            "{closed} server {{ listen 8443 ssl; server_name b.test; ssl_verify_client optional; ssl_client_certificate /ca.pem; return 204; }}"
        );
        check(
            &two,
            &[
                ".test\"\nprefix = \"/\"\nrespond = { status = 403",
                "host = \"b.test\"\nprefix = \"/\"\nrespond = { status = 204",
            ],
            &expected,
        );
    }
}
