//! Translations of whole files.

use std::fmt::Write as _;
use std::path::Path;

use proptest::prelude::*;

use super::super::tests::translation::{check_translation, loaded};
use super::{import_haproxy, is_haproxy};

const DEFAULTS: &str =
    "defaults\n    mode http\n    timeout connect 5s\n    timeout client 1m\n    timeout server 1m";

/// The translation behind these defaults has these lines in this order, and these notes.
#[track_caller]
fn check(text: &str, lines: &[&str], notes: &[&str]) {
    let text = format!("{DEFAULTS}{text}");
    assert!(is_haproxy(&text));
    let imported = loaded(import_haproxy("haproxy.cfg", &text).unwrap());
    check_translation(&imported, lines, notes);
}

#[test]
fn frontends_forward_to_backends() {
    check(
        "
frontend web
    bind :80
    bind 127.0.0.1:443,[::1]:443 ssl crt /etc/ssl/a.pem alpn http/1.1 accept-proxy
    option forwardfor
    http-request set-header X-Forwarded-Proto %[ssl_fc,iif(https,http)]
    http-request del-header Cookie
    http-response set-header X-Frame-Options DENY
    default_backend shop

backend shop
    balance leastconn
    option httpchk GET /healthz
    cookie server insert indirect nocache
    default-server check inter 2s fall 5
    server a 10.0.0.1:8080 weight 2 cookie a
    server b 10.0.0.2:8080 backup
    server c 10.0.0.3:8443 ssl verify none maxconn 20
",
        &[
            "[[listen]]\naddress = \":80\"\nname = \"web-1\"\n",
            "[[listen]]\naddress = \"127.0.0.1:443\"\ntls = { cert = \"/etc/ssl/a.pem\", key = \"/etc/ssl/a.pem\" }\nproxied_by = [\"0.0.0.0/0\", \"::/0\"]\nname = \"web-2\"\nhttp2 = false\n",
            "address = \"[::1]:443\"",
            "[[route]]\nlisten = \"web-1\"\nprefix = \"/\"\nproxy = \"shop\"\nrequest_headers = { set = { X-Forwarded-Proto = \"{scheme}\" }, remove = [\"cookie\"] }\nresponse_headers = { set = { X-Frame-Options = \"DENY\" } }\n",
            "listen = \"web-2\"",
            "listen = \"web-3\"",
            "[upstream.shop]\nservers = [{ url = \"http://10.0.0.1:8080\", weight = 2 }, { url = \"http://10.0.0.2:8080\", backup = true }, \"https://10.0.0.3:8443\"]\nbalance = \"least_connections\"\ntls = { insecure = true }\nconnect_timeout = \"5s\"\nhealth = { path = \"/healthz\", interval = \"2s\", unhealthy = 5 }\nresponse_timeout = \"1m\"\nidle_timeout = \"1m\"\nsticky = \"server\"\n",
        ],
        &[
            "haproxy.cfg:8: bind: `accept-proxy`: any client may name another address",
            "haproxy.cfg:22: server: `maxconn` is left out: HAProxy would have queued",
            "haproxy.cfg:22: server: `verify none`: no certificate of this upstream's servers is verified",
        ],
    );
}

#[test]
fn conditions_lead_to_backends_in_their_order() {
    check(
        "
frontend web
    bind :80
    acl shop hdr(host) -i shop.example.org
    acl blog hdr(host) -i blog.example.org
    acl blog hdr_end(host) -i .blog.example.org
    http-request return status 404 unless shop or blog
    http-request deny if { path_beg -i /admin/ } !{ src 10.8.0.0/16 }
    use_backend api if { path /api } || { path_beg /api/ }
    use_backend canary if { req.hdr(X-Canary) yes }
    use_backend %[path] if { nbsrv(shop) lt 2 }
    default_backend shop

backend api
    http-request replace-path /api/?(.*) /\\1
    server a 10.0.0.2:8080

backend canary
    server a 10.0.0.3:8080

backend shop
    server a 10.0.0.1:8080
",
        &[
            "places = { \"map:value-1\" = \"0\" }\nrespond = { status = 404 }",
            "regex = \"/admin/.*\"\nplaces = { \"map:clients-1\" = \"0\" }\nrespond = { status = 403, body = \"forbidden\\n\" }",
            "regex = \"(?-i:/api)\"\nproxy = { to = \"api\", forwarded = \"none\", rewrite = { from = \"^.*?(?:/api/?(.*)).*$\", to = \"/${1}\" } }",
            "regex = \"(?-i:/api/.*)\"",
            "proxy = { to = \"canary\", forwarded = \"none\" }",
            "proxy = { to = \"shop\", forwarded = \"none\" }",
            "[upstream.api]",
        ],
        &[
            "haproxy.cfg:15: use_backend: left out; HAProxy would have sent these requests to a backend",
        ],
    );
}

#[test]
fn what_keeps_clients_out_is_closed_where_it_is_not_clear() {
    check(
        "
userlist staff
    user ann password $5$plimsoll12$cZIldmVSQcwTTjZQbkJgHXD7NFmb0IF92oNbJ6IbvV1
    user bo insecure-password secret

frontend web
    bind :80
    http-request auth realm Staff unless { http_auth(staff) }
    default_backend shop

frontend other
    bind :81
    stick-table type ip size 100k expire 1m store conn_cur
    http-request track-sc0 src
    http-request deny deny_status 429 if { sc_conn_cur(0) gt 3 }
    default_backend shop

frontend third
    bind :82
    http-request auth if { path /a }
    default_backend shop

backend shop
    server a 10.0.0.1:8080
",
        &[
            "listen = \"web-1\"\nprefix = \"/\"\nproxy = { to = \"shop\", forwarded = \"none\" }\nbasic_auth = { realm = \"Staff\", users = { ann = \"$5$plimsoll12$cZIldmVSQcwTTjZQbkJgHXD7NFmb0IF92oNbJ6IbvV1\" } }",
            "listen = \"other-1\"\nprefix = \"/\"\nrespond = { status = 429, body = \"forbidden\\n\" }",
            "listen = \"third-1\"\nprefix = \"/\"\nrespond = { status = 501",
        ],
        &[
            "haproxy.cfg:8: user: left out: a plain-text password",
            "haproxy.cfg:17: stick-table: left out; HAProxy would have kept clients in a table",
            "haproxy.cfg:18: http-request: left out; HAProxy would have counted in a stick-table",
            "haproxy.cfg:19: http-request: is for all requests",
            "haproxy.cfg:24: http-request: responds with 501",
            "haproxy.cfg:27: backend: left out: what stands before it takes all of its requests",
        ],
    );
}

#[test]
fn what_responds_to_some_requests_is_left_out_where_it_is_not_clear_which() {
    check(
        "
frontend web
    bind :80
    http-request return status 200 string ok if { var(txn.probe) -m bool }
    http-request return status 403 if { var(txn.stranger) -m bool }
    redirect location /login if { var(txn.new) -m bool }
    default_backend shop

backend shop
    server a 10.0.0.1:8080
",
        &["prefix = \"/\"\nrespond = { status = 403"],
        &[
            "haproxy.cfg:8: http-request: left out: `var(txn.probe) -m bool` has no counterpart",
            "haproxy.cfg:9: http-request: is for all requests",
            "haproxy.cfg:10: redirect: left out: `var(txn.new) -m bool` has no counterpart",
            "haproxy.cfg:13: backend: left out: what stands before it takes all of its requests",
        ],
    );
}

#[test]
fn a_condition_with_very_many_alternatives_is_refused_at_once() {
    // Three to the sixtieth alternatives.
    let pairs = vec!["{ path /a } { src 10.0.0.1 } { ssl_fc }"; 60].join(" or ");
    check(
        &format!(
            "
frontend web
    bind :80
    use_backend shop unless {pairs}
    default_backend shop

backend shop
    server a 10.0.0.1:8080
"
        ),
        &["prefix = \"/\"\nproxy = { to = \"shop\", forwarded = \"none\" }"],
        &[
            "haproxy.cfg:8: use_backend: left out: written out, the condition has more than 256 alternatives",
        ],
    );
}

#[test]
fn certificates_of_servers_are_verified_unless_a_file_says_otherwise() {
    check(
        "
frontend web
    bind :80
    use_backend inner if { path_beg /inner/ }
    default_backend outer

frontend all
    bind :443 ssl crt /etc/haproxy/certificates/

backend outer
    server a 10.0.0.1:443 ssl

backend inner
    server a 10.0.0.2:443 ssl verify required ca-file /etc/ca.pem
",
        &[
            "[upstream.outer]\nservers = [\"https://10.0.0.1:443\"]\nconnect_timeout",
            "[upstream.inner]\nservers = [\"https://10.0.0.2:443\"]\ntls = { ca = \"/etc/ca.pem\" }\n",
        ],
        &[
            "haproxy.cfg:12: bind: left out; HAProxy would have listened with all certificates of a folder",
        ],
    );
}

#[test]
fn rates_of_stick_tables_are_limits() {
    check(
        "
frontend web
    bind :80
    stick-table type ip size 100k expire 1m store http_req_rate(10s)
    http-request track-sc0 src
    http-request track-sc1 hdr(x-token) table tokens
    acl abuse src_http_req_rate gt 100
    http-request deny if abuse
    http-request deny deny_status 429 if { sc_http_req_rate(1) ge 21 }
    default_backend shop

backend tokens
    stick-table type string size 1m expire 1m store http_req_rate(1m)

backend shop
    server a 10.0.0.1:8080
",
        &[
            "rate_limit = [{ requests = 100, per = \"10s\", status = 403 }, { requests = 20, per = \"1m\", status = 429, key = \"{header:x-token}\" }]",
        ],
        &[],
    );
}

#[test]
fn files_are_below_their_base_and_ranges_are_ports() {
    let text = "
global
    crt-base /etc/ssl/private
    ca-base /etc/ssl/certs

frontend web
    bind :8000-8002
    bind :443 ssl crt a.pem crt /b.pem
    stats enable
    default_backend shop

backend shop
    server a 10.0.0.1:443 ssl ca-file inner.pem

listen database
    bind :5432
    mode tcp
    option httpchk OPTIONS /primary
    http-check send hdr Host db.test hdr X-Key a hdr X-Now %[date]
    http-check expect status 200
    server a 10.0.0.3:5432 ssl verify none check port 8008
    server b 10.0.0.4:5432 ssl verify none check port 8009
";
    check(
        text,
        &[
            "address = \":8000\"",
            "address = \":8001\"",
            "address = \":8002\"",
            "cert = \"/etc/ssl/private/a.pem\"",
            "cert = \"/b.pem\"",
            "ca = \"/etc/ssl/certs/inner.pem\"",
            "servers = [\"tls://10.0.0.3:5432\", \"tls://10.0.0.4:5432\"]",
            "tls = { insecure = true }",
            "health = { kind = \"http\", host = \"db.test\", status = 200, method = \"OPTIONS\", path = \"/primary\", headers = { X-Key = \"a\" }, port = 8009, tls = false }",
        ],
        &[
            "haproxy.cfg:13: stats: left out; HAProxy would have served a page of statistics",
            "haproxy.cfg:23: http-check: left out; HAProxy would have sent a field with checks whose value it computed",
            "haproxy.cfg:25: server: `verify none`: no certificate of this upstream's servers is verified",
            "haproxy.cfg:26: server: `verify none`: no certificate of this upstream's servers is verified",
            "haproxy.cfg:26: server: left out; HAProxy would have checked servers at ports of their own",
        ],
    );
}

#[test]
fn a_file_without_listeners_says_why() {
    let text = format!("{DEFAULTS}\nfrontend a\n    bind 0.0.0.0:$PORT\n");
    let error = import_haproxy("haproxy.cfg", &text)
        .unwrap_err()
        .to_string();
    assert_eq!(
        error,
        "haproxy.cfg:7: no `frontend` or `listen` has a `bind` that can be listened on: bind: left out; HAProxy would have listened at \
         `0.0.0.0:$PORT`, whose variable of the environment has to be replaced by its value"
    );
}

#[test]
fn fields_whose_names_no_field_may_have_are_left_out_alone() {
    check(
        "
frontend web
    bind :80
    http-request set-header X-Forwarded-Proto: http
    http-request del-header a:
    http-response set-header b: c
    default_backend shop

backend shop
    server a 10.0.0.1:8080
",
        &["prefix = \"/\"\nproxy = { to = \"shop\", forwarded = \"none\" }"],
        &[
            "haproxy.cfg:8: http-request: left out: `X-Forwarded-Proto:` is no name of a field",
            "haproxy.cfg:9: http-request: left out: `a:` is no name of a field",
            "haproxy.cfg:10: http-response: left out: `b:` is no name of a field",
        ],
    );
}

#[test]
fn redirects_and_texts() {
    check(
        "
frontend web
    bind :80
    http-request return status 200 content-type text/plain lf-string \"%[path] %[src]\" if { path_beg /.well-known/ }
    http-request redirect scheme https code 301 unless { ssl_fc }
    redirect prefix https://www.example.org code 308 if { hdr(host) example.org }
    redirect location /new drop-query if { path /old }
",
        &[
            "regex = \"(?-i:/\\\\.well\\\\-known/.*)\"\nrespond = { status = 200, type = \"text/plain\", template = \"{path} {client}\" }",
            "redirect = { to = \"https://{host}{path}{query}\", status = 301 }",
            "redirect = { to = \"https://www.example.org{path}{query}\", status = 308 }",
            "redirect = { to = \"/new\", status = 302 }",
            "respond = { status = 503, body = \"no server is available\\n\" }",
        ],
        &[],
    );
}

#[test]
fn limits_of_content_and_of_tunnels() {
    check(
        "
listen chat
    bind :80
    log 127.0.0.1 local0
    timeout tunnel 2h
    http-request deny deny_status 413 if { req.body_size gt 1048576 }
    server a 10.0.0.1:8080
",
        &[
            "proxy = { to = \"chat\", forwarded = \"none\", websocket = { idle_timeout = \"2h\" }, max_request = \"1048576B\" }",
        ],
        &["haproxy.cfg:8: log: left out; HAProxy would have sent its log there"],
    );
}

#[test]
fn tcp_is_of_layer_four() {
    check(
        "
listen db
    mode tcp
    bind :5432
    server a 10.0.0.1:5432 send-proxy check check-ssl verify none
    server b 10.0.0.2:5432 backup

frontend names
    mode tcp
    bind :443
    tcp-request inspect-delay 5s
    tcp-request content accept if { req_ssl_hello_type 1 }
    use_backend one if { req.ssl_sni -i a.example.org b.example.org }
    use_backend two if { req.ssl_sni -m end .example.net }
    use_backend two if { src 10.0.0.0/8 }
    default_backend two

backend one
    mode tcp
    server a 10.0.0.3:443
backend two
    mode tcp
    server a 10.0.0.4:443
",
        &[
            "[[listen]]\naddress = \":5432\"\ntcp = { to = \"db\", proxy_protocol = \"v1\", idle_timeout = \"1m\" }",
            "[[listen]]\naddress = \":443\"\ntcp = { to = \"two\", routes = [{ sni = [\"a.example.org\", \"b.example.org\"], to = \"one\" }, { sni = [\"*.example.net\"], to = \"two\" }], idle_timeout = \"1m\" }",
            "[upstream.db]\nservers = [\"tcp://10.0.0.1:5432\", { url = \"tcp://10.0.0.2:5432\", backup = true }]\ntls = { insecure = true }\nconnect_timeout = \"5s\"\nhealth = { kind = \"tcp\", tls = true }\n",
            "[upstream.one]",
        ],
        &[
            "haproxy.cfg:9: server: `verify none`: no certificate of this upstream's servers is verified",
            "haproxy.cfg:19: use_backend: left out; HAProxy would have sent these connections",
        ],
    );
}

#[test]
fn what_is_not_read_is_reported() {
    check(
        "
global
    daemon
    lua-load /etc/haproxy/a.lua
peers all
    peer a 10.0.0.1:1024
frontend web
    bind :80 tfo
    option http-ignore-probes
    filter trace
    monitor-uri /up
    http-request lua.auth
    http-request set-header X %[var(txn.a)]
    http-response set-header X y if { src 10.0.0.1 }
    errorfile 503 /srv/503.http
    default_backend shop
backend shop
    balance rdp-cookie
    cookie JSESSIONID prefix
    http-request set-path /x if { path /y }
    server a 10.0.0.1:8080 track b
    server b shop:port
",
        &["proxy = { to = \"shop\", forwarded = \"none\" }"],
        &[
            "haproxy.cfg:8: lua-load: left out: there is no counterpart for `lua-load` of HAProxy",
            "haproxy.cfg:9: peers: left out: there is no counterpart for this section of HAProxy",
            "haproxy.cfg:12: bind: left out; HAProxy would have listened with `tfo`",
            "haproxy.cfg:13: option: left out; HAProxy would have had the option `http-ignore-probes`",
            "haproxy.cfg:14: filter: left out",
            "haproxy.cfg:15: monitor-uri: left out",
            "haproxy.cfg:16: http-request: left out; HAProxy would have done this with requests",
            "haproxy.cfg:17: http-request: left out; HAProxy would have sent servers `%[var(txn.a)]`",
            "haproxy.cfg:18: http-response: left out; HAProxy would have changed some responses",
            "haproxy.cfg:19: errorfile: left out; HAProxy would have sent this file",
            "haproxy.cfg:22: balance: left out; HAProxy would have chosen servers in this way",
            "haproxy.cfg:23: cookie: left out; HAProxy would have sent clients to the server",
            "haproxy.cfg:24: http-request: left out; HAProxy would have changed the path of some requests",
            "haproxy.cfg:25: server: `track` is left out",
            "haproxy.cfg:26: server: left out: `shop:port` is no address with a port",
        ],
    );
}

#[test]
fn files_that_are_none_are_refused() {
    for (text, reason) in [
        (
            "frontend a\n    bind x\n",
            "no `frontend` or `listen` has a `bind`",
        ),
        ("frontend a\n    bind \":80\n", "a quote is not closed"),
        ("bind :80\nfrontend a\n", "`bind` is in no section"),
    ] {
        let error = import_haproxy("h", text).unwrap_err();
        assert!(error.to_string().contains(reason), "{error}");
    }
}

#[test]
fn hundreds_of_hosts_lead_to_backends() {
    let mut text = "frontend web\n    bind :80\n    mode http\n".to_owned();
    for host in 0..300 {
        writeln!(
            text,
            "    use_backend b{host} if {{ hdr(host) s{host}.example.org }}"
        )
        .ok();
    }
    for host in 0..300 {
        writeln!(
            text,
            "backend b{host}\n    mode http\n    server a 10.0.0.1:8080"
        )
        .ok();
    }
    let imported = import_haproxy("haproxy.cfg", &text).unwrap();
    assert_eq!(imported.toml.matches("proxy = { to = ").count(), 300);
    assert!(!imported.toml.contains("501"), "{}", imported.toml);
}

#[test]
fn conditions_that_take_too_long_are_closed() {
    let mut text = "frontend web\n    bind :80\n    mode http\n".to_owned();
    for at in 0..1000 {
        writeln!(
            text,
            "    http-request set-header X-{at} a if {{ method Q{at} }}"
        )
        .ok();
    }
    text.push_str("    default_backend b\nbackend b\n    mode http\n    server a 10.0.0.1:8080\n");
    let imported = import_haproxy("haproxy.cfg", &text).unwrap();
    let note = "haproxy.cfg:1: frontend: responds with 501: it ";
    assert!(
        imported
            .notes
            .iter()
            .any(|it| it.to_string().starts_with(note)),
        "{:?}",
        imported.notes
    );
    assert!(
        imported.toml.contains("respond = { status = 501"),
        "{}",
        imported.toml
    );
}

proptest! {
    /// The translation of any lines loads.
    #[test]
    fn any_lines_load_or_are_errors(
        front in proptest::collection::vec(lines(), 0..8),
        back in proptest::collection::vec(lines(), 0..8),
        mode in "http|tcp",
    ) {
        let mut text = format!("defaults\n    mode {mode}\nfrontend web\n    bind :80\n");
        for line in &front {
            writeln!(text, "    {line}").ok();
        }
        text.push_str("    default_backend shop\nbackend shop\n    server a 10.0.0.1:8080\n");
        for line in &back {
            writeln!(text, "    {line}").ok();
        }
        if let Ok(imported) = import_haproxy("haproxy.cfg", &text) {
            let problems = crate::import::loads::problems(&imported.toml, Path::new(""));
            prop_assert!(problems.is_empty(), "{:?}\n{}\n{}", problems, text, imported.toml);
        }
    }
}

fn lines() -> impl Strategy<Value = String> {
    let word = "[A-Za-z0-9_.:/*%$@-]{1,10}|\"[a-z {}<>%$\\\\\\\\]{0,8}\"|0|1|70000|/|Host|Content-Length|5s|-1";
    let sample = "path|path_beg|path_reg|path_end|hdr\\((host|x-a)\\)|src|ssl_fc|method|cook\\(a\\)|url_param\\(q\\)|query|var\\(a\\)|dst_port|req.ssl_sni";
    let flag = "|-i|-m (beg|end|reg|sub|dom|found)|-f";
    let values = "/a|a\\.b|10.0.0.0/8|[a-z(|)*+\\[{}.]{1,6}|GET POST|443|";
    let condition = (sample, flag, values, "|!")
        .prop_map(|(sample, flag, values, not)| format!("{not}{{ {sample} {flag} {values} }}"));
    let action = "deny|deny deny_status 429|return status 200 string ok|redirect location /b|redirect scheme https code 301|set-header X-A %\\[src\\]|del-header X-A|auth realm A|set-path /x|replace-path /a\\(.\\*\\) /b|track-sc0 src";
    let options = "weight|cookie|check|inter|fall|rise|backup|disabled|ssl|verify none|verify required|ca-file|sni|maxconn|send-proxy|alpn h2";
    prop_oneof![
        (action, condition.clone()).prop_map(|(action, condition)| {
            let action = action.replace('\\', "");
            format!("http-request {action} if {condition}")
        }),
        ("set-header|add-header|del-header|return|deny|redirect|set-path|replace-path|auth", word, word)
            .prop_map(|(action, name, value)| format!("http-request {action} {name} {value}")),
        ("set-header|add-header|del-header", word, word)
            .prop_map(|(action, name, value)| format!("http-response {action} {name} {value}")),
        (condition.clone(), condition)
            .prop_map(|(one, other)| format!("use_backend shop unless {one} || {other} {one}")),
        (word, options, word)
            .prop_map(|(name, option, value)| format!("server {name} 10.0.0.2:80 {option} {value}")),
        (word, "ssl crt /a.pem|accept-proxy|alpn h2|")
            .prop_map(|(address, options)| format!("bind {address} {options}")),
        ("balance|cookie|retries|compression type|option httpchk|http-check expect status|timeout server|timeout tunnel|timeout connect|timeout client|redirect prefix|default_backend|mode", word)
            .prop_map(|(name, word)| format!("{name} {word}")),
    ]
}
