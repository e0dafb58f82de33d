//! `stream`.

use super::check;

#[test]
fn tcp_udp_and_tls_by_name() {
    check(
        r"
        stream {
            upstream db { least_conn; server 10.0.0.1:5432 max_fails=2; server 10.0.0.2:5432; }
            map $ssl_preread_server_name $to { shop.test db; .api.test 10.0.0.7:443; default 10.0.0.9:443; ~^x db; }
            server { listen 127.0.0.1:5432; proxy_pass db; proxy_timeout 5m; proxy_protocol on; }
            server { listen 127.0.0.1:5353 udp; proxy_pass 10.0.0.3:53; }
            server { listen 127.0.0.1:8443; ssl_preread on; proxy_pass $to; }
            server { listen 127.0.0.1:636 ssl; ssl_certificate /c.pem; ssl_certificate_key /k.pem; proxy_pass 10.0.0.4:389; }
            server { listen 127.0.0.1:22; allow 10.0.0.0/8; deny all; proxy_pass 10.0.0.5:22; }
            server { listen 127.0.0.1:21; deny all; proxy_pass 10.0.0.5:21; }
            server { listen 127.0.0.1:54 udp; deny 10.0.0.9; proxy_pass 10.0.0.3:53; }
            server { listen 127.0.0.1:20; }
            server { listen 127.0.0.1:19 ssl; ssl_certificate /c.pem; ssl_certificate_key /k.pem; ssl_reject_handshake on; return x; }
            server { listen 127.0.0.1:24; proxy_pass $remote_addr:25; }
        }
        ",
        &[
            "address = \"127.0.0.1:5432\"\ntcp = { to = \"stream-db\", idle_timeout = \"5m\", proxy_protocol = \"v1\" }\n",
            "address = \"127.0.0.1:5353\"\nudp = { to = \"udp://10.0.0.3:53\" }\n",
            "address = \"127.0.0.1:8443\"\ntcp = { to = \"tcp://10.0.0.9:443\", routes = [{ sni = [\"shop.test\"], to = \"stream-db\" }, { sni = [\"api.test\", \"*.api.test\"], to = \"tcp://10.0.0.7:443\" }] }\n",
            "address = \"127.0.0.1:636\"\ntls = { cert = \"/c.pem\", key = \"/k.pem\" }\ntcp = { to = \"tcp://10.0.0.4:389\" }\n",
            "address = \"127.0.0.1:22\"\ntcp = { to = \"tcp://10.0.0.5:22\", addresses = { allow = [\"10.0.0.0/8\"] } }\n",
            "[upstream.stream-db]\nservers = [\"tcp://10.0.0.1:5432\", \"tcp://10.0.0.2:5432\"]\nbalance = \"least_requests\"\n",
        ],
        &[
            "upstream: failures are counted for all servers alike",
            "~^x: left out",
            "server: the server does not listen: no client is let in",
            "listen: left out: rules for addresses have no counterpart for datagrams",
            "listen: left out: `$remote_addr:25` is not a server",
            "server: left out: it neither forwards nor returns a text",
            "ssl_reject_handshake: the server does not listen: this keeps clients out",
        ],
    );
}

#[test]
fn servers_are_reached_over_tls() {
    check(
        r"
        stream {
            upstream db { server 10.0.0.1:5432; server 10.0.0.2:5432; }
            server { listen 127.0.0.1:5432; proxy_pass db; proxy_ssl on; }
            server {
                listen 127.0.0.1:636; proxy_pass 10.0.0.3:636;
                proxy_ssl on; proxy_ssl_verify on; proxy_ssl_trusted_certificate /ca.pem; proxy_ssl_name ldap.test;
            }
            server { listen 127.0.0.1:25; proxy_pass 10.0.0.4:25; proxy_ssl on; proxy_protocol on; }
            server { listen 127.0.0.1:54 udp; proxy_pass 10.0.0.5:53; proxy_ssl on; }
        }
        ",
        &[
            "address = \"127.0.0.1:5432\"\ntcp = { to = \"stream-db\" }\n",
            "udp = { to = \"udp://10.0.0.5:53\" }\n",
            "servers = [\"tls://10.0.0.1:5432\", \"tls://10.0.0.2:5432\"]\n",
            "tls = { insecure = true }\n",
            "servers = [\"tls://10.0.0.3:636\"]\ntls = { ca = \"/ca.pem\", server_name = \"ldap.test\" }\n",
        ],
        &["listen: left out: no PROXY header is sent before a handshake of TLS"],
    );
}

#[test]
fn a_server_returns_a_text_with_what_is_known_of_the_connection() {
    check(
        r#"
        stream {
            map $remote_addr $who { default nobody; }
            server { listen 127.0.0.1:7; return "$remote_addr $remote_port:${server_port} $protocol\n"; }
            server { listen 127.0.0.1:8; allow 10.0.0.0/8; deny all; return $time_iso8601; }
            server { listen 127.0.0.1:9 ssl; ssl_certificate /c.pem; ssl_certificate_key /k.pem; return $ssl_server_name; }
            server { listen 127.0.0.1:10 udp; return x; }
            server { listen 127.0.0.1:11; return $who; }
            server { listen 127.0.0.1:12; return $binary_remote_addr; }
            server { listen 127.0.0.1:13; proxy_timeout 1s; return ""; }
        }
        "#,
        &[
            "address = \"127.0.0.1:7\"\ntcp = { respond = \"{client} {client.port}:{port} TCP\\n\" }\n",
            "address = \"127.0.0.1:8\"\ntcp = { respond = \"{time}\", addresses = { allow = [\"10.0.0.0/8\"] } }\n",
            "address = \"127.0.0.1:9\"\ntls = { cert = \"/c.pem\", key = \"/k.pem\" }\ntcp = { respond = \"{tls.sni}\" }\n",
            "address = \"127.0.0.1:13\"\ntcp = { respond = \"\" }\n",
        ],
        &[
            "listen: left out: a text is sent over TCP only, not over UDP",
            "listen: left out: `$who` has a variable without a counterpart",
            "listen: left out: `$binary_remote_addr` has a variable without a counterpart",
            "map: left out: only maps of `$ssl_preread_server_name`",
        ],
    );
}

#[test]
fn the_header_of_a_proxy_is_taken_of_those_that_are_named() {
    check(
        r"
        stream {
            set_real_ip_from 10.0.0.0/8;
            server { listen 127.0.0.1:1 proxy_protocol; allow 192.0.2.0/24; deny all; proxy_pass 10.0.0.1:1; }
            server { listen 127.0.0.1:2 udp proxy_protocol; proxy_pass 10.0.0.1:2; }
            server { listen unix:/run/x.sock proxy_protocol; proxy_pass 10.0.0.1:3; }
        }
        ",
        &[
            "address = \"127.0.0.1:1\"\nproxied_by = [\"10.0.0.0/8\"]\ntcp = { to = \"tcp://10.0.0.1:1\", addresses = { allow = [\"192.0.2.0/24\"] } }\n",
        ],
        &[
            "nginx.conf:5: listen: left out: datagrams and sockets in the file system have no PROXY headers",
            "nginx.conf:6: listen: left out: datagrams and sockets in the file system have no PROXY headers",
        ],
    );
    check(
        r"
        stream {
            server { listen 127.0.0.1:1 proxy_protocol; proxy_pass 10.0.0.1:1; }
            server { listen 127.0.0.1:2 proxy_protocol; deny 10.0.0.9; proxy_pass 10.0.0.1:2; }
        }
        ",
        &[
            "address = \"127.0.0.1:1\"\nproxied_by = [\"0.0.0.0/0\", \"::/0\"]\ntcp = { to = \"tcp://10.0.0.1:1\" }\n",
        ],
        &[
            "nginx.conf:3: listen: the address in the PROXY header of every client counts",
            "nginx.conf:4: listen: left out: rules for addresses would count for what any client says",
        ],
    );
}

#[test]
fn connections_are_tried_and_distributed_as_nginx_does() {
    check(
        r"
        stream {
            proxy_connect_timeout 3s;
            upstream a { hash $remote_addr consistent; server 10.0.0.1:1; server 10.0.0.2:1; server 10.0.0.3:1 max_conns=5; }
            upstream b { hash $ssl_preread_server_name; server 10.0.0.1:2; server 10.0.0.2:2; server 10.0.0.3:2; }
            upstream c { server 10.0.0.1:3; server 10.0.0.2:3; keepalive 4; }
            server { listen 127.0.0.1:1; proxy_pass a; access_log off; }
            server { listen 127.0.0.1:2; proxy_pass b; proxy_next_upstream_tries 2; }
            server { listen 127.0.0.1:3; proxy_pass c; proxy_next_upstream off; }
            server { listen 127.0.0.1:4; proxy_pass 10.0.0.1:4; }
            server { listen 127.0.0.1:5; proxy_pass c; proxy_connect_timeout 9s; access_log /var/log/stream.log basic; }
            log_format basic '$remote_addr $bytes_sent';
        }
        ",
        &[
            "address = \"127.0.0.1:4\"\ntcp = { to = \"stream-tcp-10.0.0.1:4\" }\n",
            "[upstream.stream-a]\nservers = [\"tcp://10.0.0.1:1\", \"tcp://10.0.0.2:1\", \"tcp://10.0.0.3:1\"]\nbalance = \"ring_hash\"\n",
            "connect_timeout = \"3s\"\nretry = { retries = 2 }\n",
            "[upstream.stream-b]\nservers = [\"tcp://10.0.0.1:2\", \"tcp://10.0.0.2:2\", \"tcp://10.0.0.3:2\"]\neject = { failures = 1, time = \"10s\" }\nconnect_timeout = \"3s\"\n\n",
            "[upstream.stream-c]\n",
            "connect_timeout = \"3s\"\nretry = false\n",
            "[upstream.\"stream-tcp-10.0.0.1:4\"]\nservers = [\"tcp://10.0.0.1:4\"]\nconnect_timeout = \"3s\"\n",
        ],
        &[
            "server: `max_conns` is left out: any number of connections",
            "hash: left out: connections are distributed by the client's address",
            "keepalive: left out",
            "proxy_pass: `connect_timeout`, `retry`, `protocol` and `tls` of `c` are those of the first that uses it",
            "access_log: left out: each connection is a JSON line",
            "log_format: left out: lines for connections are JSON",
        ],
    );
}

/// Directives of `stream` with what has to be around them.
const EXAMPLES: &[&str] = &[
    "access_log /var/log/x.log;",
    "allow 10.0.0.1; deny all;",
    "deny 10.0.0.1;",
    "error_log /var/log/e.log;",
    "geo $a { default 1; }",
    "js_access a;",
    "limit_conn a 1;",
    "limit_conn_dry_run on;",
    "limit_conn_zone $remote_addr zone=a:1m;",
    "listen 127.0.0.1:2;",
    "log_format a $remote_addr;",
    "map $remote_addr $a { default 1; }",
    "preread_buffer_size 1k;",
    "preread_timeout 7s;",
    "proxy_bind 127.0.0.1;",
    "proxy_buffer_size 1k;",
    "proxy_connect_timeout 7s;",
    "proxy_download_rate 1k;",
    "proxy_half_close off;",
    "proxy_next_upstream off;",
    "proxy_next_upstream_timeout 7s;",
    "proxy_next_upstream_tries 1;",
    "proxy_protocol on;",
    "proxy_requests 7;",
    "proxy_responses 7;",
    "proxy_session_drop on;",
    "proxy_socket_keepalive on;",
    "proxy_ssl on;",
    "proxy_ssl_name a;",
    "proxy_ssl_verify on;",
    "proxy_timeout 7s;",
    "proxy_upload_rate 1k;",
    "resolver 127.0.0.1;",
    "resolver_timeout 7s;",
    "server_name a.test;",
    "set $a 1;",
    "set_real_ip_from 10.0.0.1;",
    "split_clients $remote_addr $a { * 1; }",
    "ssl_alpn h2;",
    "ssl_certificate /c.pem;",
    "ssl_certificate_key /k.pem;",
    "ssl_ciphers HIGH;",
    "ssl_client_certificate /ca.pem;",
    "ssl_handshake_timeout 7s;",
    "ssl_preread on;",
    "ssl_protocols TLSv1.3;",
    "ssl_reject_handshake on;",
    "ssl_session_cache shared:a:1m;",
    "ssl_verify_client on;",
    "tcp_nodelay off;",
    "variables_hash_max_size 7;",
];

#[test]
fn every_directive_changes_the_translation_or_has_a_note_or_is_known_to_make_no_difference() {
    let configuration = |outer: &str, inner: &str| {
        format!(
            "stream {{ {outer}\nupstream a {{ server 10.0.0.1:1; server 10.0.0.2:1; server 10.0.0.3:1; }}
             server {{ listen 127.0.0.1:1; proxy_pass a;\n{inner} }} }}"
        )
    };
    let without = super::imported(&configuration("", ""));
    for example in EXAMPLES {
        let parse = |text: &str| {
            let mut include = |_: &str| Err("there are no files here".into());
            crate::import::nginx::parse("nginx.conf", text, &mut include).unwrap()
        };
        let is_harmless = crate::import::stream::is_harmless(&parse(example)[0]);
        for text in [configuration(example, ""), configuration("", example)] {
            let changes = super::imported(&text) != without;
            // A `listen` outside of servers has no effect.
            if example.starts_with("listen") && !text.contains("proxy_pass a;\nlisten") {
                continue;
            }
            assert!(changes || is_harmless, "{example} is lost in\n{text}");
        }
    }
}
