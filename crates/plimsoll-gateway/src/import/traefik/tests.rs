use std::fmt::Write as _;

use proptest::prelude::*;

use super::*;
use crate::import::tests::translation::{check_translation, loaded};

mod pages_and_streams;

fn imported(text: &str) -> Imported {
    let imported = import_traefik("traefik.yml", text).unwrap();
    loaded(imported)
}

/// The translation has these lines in this order, and its notes are these.
#[track_caller]
fn check(text: &str, lines: &[&str], notes: &[&str]) {
    assert!(is_traefik(text));
    check_translation(&imported(text), lines, notes);
}

const COMPOSE: &str = r#"services:
  traefik:
    image: traefik:v3.1
    command:
      - --entrypoints.web.address=:80
      - --entrypoints.web.http.redirections.entrypoint.to=websecure
      - --entrypoints.websecure.address=:443
      - --certificatesresolvers.le.acme.email=${MAIL:-ops@example.org}
      - --certificatesresolvers.le.acme.tlschallenge=true
  whoami:
    image: traefik/whoami
    labels:
      - "traefik.enable=true"
      - "traefik.http.routers.whoami.rule=Host(`whoami.example.org`) && PathPrefix(`/api`)"
      - "traefik.http.routers.whoami.entrypoints=websecure"
      - "traefik.http.routers.whoami.tls.certresolver=le"
      - "traefik.http.routers.whoami.tls=true"
      - "traefik.http.routers.whoami.middlewares=auth,strip"
      - "traefik.http.middlewares.auth.basicauth.users=bob:$$2y$$10$$Vr8PO5cFzaJGNbVQSsFpE.jZ4s5aFQv4K2DhaQ4RRmLL8CmIBf0Ge"
      - "traefik.http.middlewares.strip.stripprefix.prefixes=/api"
      - "traefik.http.services.whoami.loadbalancer.server.port=8000"
  other:
    labels:
      traefik.http.routers.other.rule: "Host(`other.example.org`)"
      traefik.http.routers.other.entrypoints: websecure
      traefik.http.routers.other.middlewares: nowhere@file
    expose: [ 3000, "9000/tcp" ]
"#;

#[test]
fn labels_of_a_compose_file() {
    check(
        COMPOSE,
        &[
            "[[listen]]\naddress = \":80\"\nname = \"web\"\nredirect_https = true\n",
            "[[listen]]\naddress = \":443\"\nname = \"websecure\"\ntls = { acme = { names = [\"whoami.example.org\"], contact = \"ops@example.org\", accept_terms = true } }\n",
            "host = \"other.example.org\"\nprefix = \"/\"\nrespond = { status = 501",
            "host = \"whoami.example.org\"\nregex = \"(?-i:/api.*)\"\nproxy = { to = \"http://whoami:8000\", rewrite = { from = \"^/api/*\", to = \"/\" } }\nbasic_auth = { users = { bob = \"$2y$10$",
            "host = \"whoami.example.org\"\nregex = \"/.*\"\nrespond = { status = 404",
        ],
        &[
            "accept_terms",
            "it is taken to have TLS",
            "traefik.yml:24: routers.other: responds with 501: the middleware `nowhere@file` is not in this file",
        ],
    );
}

#[test]
fn an_access_log_has_the_names_of_traefik() {
    let routers = "http:\n  routers:\n    shop: { entryPoints: [web], rule: Host(`a.test`), service: shop }\n  services:\n    shop: { loadBalancer: { servers: [ { url: 'http://10.0.0.1:80' } ] } }\n";
    let points = "entryPoints: { web: { address: ':80' } }\n";
    for (log, lines, notes) in [
        (
            "accessLog: { filePath: /var/log/access.log, format: json, filters: { statusCodes: ['500'] } }\n",
            "[log]\nfile = \"/var/log/access.log\"\nformat = { StartUTC = \"{time}\", ClientAddr = \"{peer}\",",
            &[
                "accessLog: lines have the members",
                "accessLog: `filters` is left out",
            ][..],
        ),
        (
            "accessLog: {}\n",
            "[log]\nfile = \"-\"\nformat = \"combined\"\n",
            &[],
        ),
        ("accessLog: false\n", "name = \"web\"\n\n[[route]]\n", &[]),
    ] {
        check(&format!("{points}{log}{routers}"), &[lines], notes);
    }
    let arguments = "      - --accesslog=true\n      - --accesslog.filepath=/log\n      - --certificatesresolvers.le.acme.tlschallenge=true\n";
    let last = "      - --certificatesresolvers.le.acme.tlschallenge=true\n";
    let toml = imported(&COMPOSE.replace(last, arguments)).toml;
    assert!(toml.contains("[log]\nfile = \"/log\"\n"), "{toml}");
}

/// A file with one router for `a.test` at `web`, and these middlewares.
fn with_middlewares(names: &str, middlewares: &str) -> String {
    format!(
        "http:\n  routers:\n    app:\n      rule: Host(`a.test`)\n      entryPoints: [web]\n      service: app\n      middlewares: [{names}]\n  middlewares:\n{middlewares}  services:\n    app:\n      loadBalancer:\n        servers:\n          - url: http://10.0.0.1:80\n"
    )
}

const WEB: &str = "entry point `web`: port 80";

#[test]
fn middlewares_are_keys_of_routes() {
    for (middlewares, expected) in [
        (
            "    m: { stripPrefix: { prefixes: [ /a/, /b ] } }\n",
            "proxy = { to = \"http://10.0.0.1:80\", rewrite = [{ from = \"^/a/*\", to = \"/\" }, { from = \"^/b/*\", to = \"/\" }] }",
        ),
        (
            "    m: { chain: { middlewares: [ n, o ] } }\n    n: { stripPrefix: { prefixes: [ /a ] } }\n    o: { addPrefix: { prefix: /b } }\n",
            "rewrite = [{ from = \"^/a/*\", to = \"/b/\" }, { from = \"^/\", to = \"/b/\" }] }",
        ),
        (
            "    m: { replacePathRegex: { regex: \"^/x/(.*)\", replacement: \"/y/$1\" } }\n",
            "rewrite = { from = \"^/x/(.*)\", to = \"/y/$1\" } }",
        ),
        (
            "    m: { redirectScheme: { scheme: https, permanent: true, port: 8443 } }\n",
            "redirect = { to = \"https://{host}:8443{target}\", status = 308 }",
        ),
        (
            "    m: { redirectRegex: { regex: \"^https?://a.test/(.*)\", replacement: \"https://b.test/${1}\" } }\n",
            "places = { \"map:value-1\" = true }\nredirect = { to = \"{map:value-1}\", status = 307 }",
        ),
        (
            "    m: { headers: { customRequestHeaders: { X-A: a, X-B: \"\" }, frameDeny: true, stsSeconds: 5, accessControlAllowOriginList: [ \"https://b.test\" ], accessControlMaxAge: 60 } }\n",
            "cors = { origins = [\"https://b.test\"], max_age = \"60s\" }\nrequest_headers = { set = { X-A = \"a\" }, remove = [\"X-B\"] }\nresponse_headers = { set = { X-Frame-Options = \"DENY\" } }",
        ),
        (
            "    m: { ipWhiteList: { sourceRange: [ 10.0.0.0/8, 127.0.0.1 ] } }\n",
            "addresses = { allow = [\"10.0.0.0/8\", \"127.0.0.1\"] }",
        ),
        (
            "    m: { forwardAuth: { address: \"http://auth:9091/verify?a=b\", authResponseHeaders: [ Remote-User ] } }\n",
            "auth = { to = \"http://auth:9091/verify?a=b\", copy = [\"Remote-User\"] } }",
        ),
        (
            "    m: { rateLimit: { average: 10, period: 1m, burst: 5 } }\n",
            "rate_limit = { requests = 10, per = \"1m\", burst = 5 }",
        ),
        (
            "    m: { inFlightReq: { amount: 3 } }\n",
            "in_flight_limit = { requests = 3, status = 429, key = \"{host}\" }",
        ),
        ("    m: { compress: {} }\n", "compress = true"),
        (
            "    m: { buffering: { maxRequestBodyBytes: 2000 } }\n",
            "max_request = \"2000B\"",
        ),
        (
            "    m: { retry: { attempts: 4 } }\n",
            "[upstream.app]\nservers = [\"http://10.0.0.1:80\"]\nretry = { retries = 3 }",
        ),
    ] {
        check(&with_middlewares("m", middlewares), &[expected], &[WEB]);
    }
}

#[test]
fn what_keeps_clients_out_closes_its_routes_if_it_cannot_be_said() {
    let closed = "host = \"a.test\"\nprefix = \"/\"\nrespond = { status = 501, body = \"not translated\\n\" }";
    for (names, middlewares, note) in [
        (
            "m",
            "    m: { plugin: { bouncer: { a: b } } }\n",
            "`plugin` is no middleware",
        ),
        (
            "nowhere",
            "    m: { compress: {} }\n",
            "`nowhere` is not in this file",
        ),
        (
            "m@docker",
            "    m: { compress: {} }\n",
            "`m@docker` is not in this file",
        ),
        (
            "m",
            "    m: { digestAuth: { users: [ \"a:b:c\" ] } }\n",
            "`digestauth` is no middleware",
        ),
        (
            "m",
            "    m: { chain: { middlewares: [ m ] } }\n",
            "`m` is not in this file",
        ),
        (
            "m",
            "    m: { ipAllowList: { sourceRange: [ 10.0.0.0/8 ], ipStrategy: { depth: 2 } } }\n",
            "`ipStrategy.depth`",
        ),
        (
            "m, n",
            "    m: { ipAllowList: { sourceRange: [ 10.0.0.0/8 ] } }\n    n: { ipAllowList: { sourceRange: [ 127.0.0.1 ] } }\n",
            "a route has one `addresses`",
        ),
        (
            "m",
            "    m: { ipAllowList: {} }\n",
            "`sourceRange` has no value",
        ),
        (
            "m",
            "    m: { forwardAuth: { address: \"http://a/\", authResponseHeadersRegex: \"^X-\" } }\n",
            "`authResponseHeadersRegex`",
        ),
        (
            "m",
            "    m: { forwardAuth: { address: \"http://a/\", tls: { ca: a.crt } } }\n",
            "`tls` has no counterpart",
        ),
        (
            "m",
            "    m: { headers: { allowedHosts: [ b.test ] } }\n",
            "`allowedHosts`",
        ),
        ("m", "    m: { replacePath: { path: /a } }\n    n: {}\n", ""),
        (
            "m, n",
            "    m: { replacePath: { path: /a } }\n    n: { stripPrefix: { prefixes: [ /a ] } }\n",
            "paths cannot be changed",
        ),
    ] {
        let text = with_middlewares(names, middlewares);
        if note.is_empty() {
            check(
                &text,
                &["rewrite = { from = \"^.*$\", to = \"/a\" }"],
                &[WEB],
            );
        } else {
            check(&text, &[closed], &[WEB, note]);
        }
    }
    // A hash that is none.
    let text = with_middlewares("m", "    m: { basicAuth: { users: [ \"bob:secret\" ] } }\n");
    check(
        &text,
        &[closed],
        &[WEB, "`bob` cannot sign in", "`users` has no value"],
    );
}

/// A file with routers, each with a service of its name.
fn with_routers(routers: &[(&str, &str, &str)]) -> String {
    let mut text = "http:\n  routers:\n".to_owned();
    for (name, rule, more) in routers {
        let rule = rule.replace('"', "\\\"");
        writeln!(
            text,
            "    {name}: {{ rule: \"{rule}\", entryPoints: web, service: {name}{more} }}"
        )
        .ok();
    }
    text += "  services:\n";
    for (name, ..) in routers {
        writeln!(
            text,
            "    {name}: {{ loadBalancer: {{ servers: [ {{ url: \"http://{name}:80\" }} ] }} }}"
        )
        .ok();
    }
    text
}

#[test]
fn routers_are_tried_by_their_priorities_at_each_host() {
    check(
        &with_routers(&[
            ("short", "PathPrefix(`/`)", ""),
            ("api", "PathPrefix(`/api`) && Method(`GET`)", ""),
            ("host", "Host(`a.test`)", ", priority: 100"),
            ("deep", "Host(`b.test`) && Path(`/api/x`)", ""),
            (
                "sub",
                "HostRegexp(`^.+\\\\\\\\.a\\\\\\\\.test$`) && !ClientIP(`10.0.0.0/8`)",
                "",
            ),
        ]),
        &[
            "host = \"a.test\"\nprefix = \"/\"\nproxy = \"http://host:80\"",
            "host = \"b.test\"\nregex = \"(?-i:/api.*)\"\nplaces = { method = [\"GET\"] }\nproxy = \"http://api:80\"",
            "host = \"b.test\"\nregex = \"(?-i:/api/x)\"\nproxy = \"http://deep:80\"",
            "host = \"b.test\"\nregex = \"/.*\"\nproxy = \"http://short:80\"",
            "places = { \"map:value-1\" = \"1\", \"map:clients-1\" = \"0\" }\nproxy = \"http://sub:80\"",
            "proxy = \"http://api:80\"",
            "proxy = \"http://short:80\"",
        ],
        &[WEB],
    );
}

#[test]
fn conditions_that_routes_do_not_have_close_what_is_wider() {
    let text = with_routers(&[
        ("odd", "Host(`a.test`) && Nonsense(`x`)", ""),
        ("open", "Host(`a.test`)", ""),
    ]);
    check(
        &text,
        &["host = \"a.test\"\nprefix = \"/\"\nrespond = { status = 501"],
        &[
            WEB,
            "`nonsense(x)` is no condition",
            "routers.open: left out: no request gets to it",
        ],
    );
    check(
        &with_routers(&[
            ("not", "Host(`a.test`) && !PathPrefix(`/admin`)", ""),
            ("all", "Host(`a.test`)", ""),
            ("wrong", "Host(`a.test`", ""),
            (
                "v2",
                "Host(`b.test`, `c.test`) && Headers(`X-A`, `1`) && Query(`q=1`) && Path(`/{id:[0-9]+}`)",
                "",
            ),
        ]),
        &[
            "host = \"a.test\"\nregex = \"(?-i:/admin.*)\"\nproxy = \"http://all:80\"",
            "host = \"a.test\"\nregex = \"/.*\"\nproxy = \"http://not:80\"",
            "host = \"b.test\"\nregex = \"(?-i:/(?:[0-9]+))\"\nheader = { x-a = \"1\" }\nquery = { q = \"1\" }\nproxy = \"http://v2:80\"",
            "host = \"c.test\"",
        ],
        &[
            WEB,
            "routers.wrong: left out, as its rule is none: the rule ends where `)` is expected",
        ],
    );
}

#[test]
fn what_another_spelling_would_get_past_is_closed() {
    let closed = "host = \"a.test\"\nprefix = \"/\"\nrespond = { status = 501";
    for rule in ["QueryRegexp(`a`, `^b$`)", "!Query(`a`, `b`)"] {
        let text = with_routers(&[("odd", &format!("Host(`a.test`) && {rule}"), "")]);
        check(&text, &[closed], &[WEB, "is no condition of routes"]);
    }
    for (rule, line) in [
        ("PathRegexp(`(?i)^/a`)", "regex = \"/a.*\""),
        ("PathRegexp(`^/a/[0-9]+$`)", "regex = \"(?-i:/a/[0-9]+)\""),
        ("PathRegexp(`/b|^/c`)", "regex = \"(?-i:.*/b.*)\""),
        ("PathPrefix(`/`)", "prefix = \"/\""),
        ("Path(`/`)", "regex = \"(?-i:/)\""),
    ] {
        check(&with_routers(&[("any", rule, "")]), &[line], &[WEB]);
    }
    // Hosts are read in small letters.
    let text = with_routers(&[("any", "HostRegexp(`{x:[a-z]+}.test`)", "")]);
    let line =
        "key = \"{host}\"\nregex = [{ match = \"^(?i:(?:[a-z]+)\\\\.test)$\", value = \"1\" }]";
    check(&text, &[line], &[WEB]);
}

#[test]
fn what_two_containers_define_in_two_ways_is_closed() {
    let container = |name: &str, more: &str| {
        format!(
            "  {name}:\n    expose: [80]\n    labels:\n      - traefik.http.routers.{name}.rule=Host(`{name}.test`)\n      - traefik.http.routers.{name}.entrypoints=web\n      - traefik.http.routers.{name}.middlewares=m\n{more}"
        )
    };
    let range = |network: &str| {
        format!("      - traefik.http.middlewares.m.ipallowlist.sourcerange={network}\n")
    };
    let same = [
        container("a", &range("10.0.0.0/8")),
        container("b", &range("10.0.0.0/8")),
    ];
    let text = format!("services:\n{}", same.concat());
    let allow = "addresses = { allow = [\"10.0.0.0/8\"] }";
    check(&text, &[allow, allow], &[WEB]);
    let other = [
        container("a", &range("10.0.0.0/8")),
        container("b", &range("0.0.0.0/0")),
    ];
    let text = format!("services:\n{}", other.concat());
    let closed = "prefix = \"/\"\nrespond = { status = 501";
    check(
        &text,
        &[closed, closed],
        &[
            WEB,
            "Traefik would use neither",
            "`defined-twice` is no middleware",
        ],
    );
}

#[test]
fn tls_options_of_entry_points_may_keep_clients_out() {
    let text = "entryPoints:\n  secure: { address: \":443\", http: { tls: { options: clients } } }\nhttp:\n  routers:\n    app: { rule: \"Host(`a.test`)\", entryPoints: secure, service: app }\n  services:\n    app: { loadBalancer: { servers: [ { url: \"http://app:80\" } ] } }\ntls:\n  options:\n    clients: { clientAuth: { clientAuthType: RequireAndVerifyClientCert } }\n";
    check(
        text,
        &["respond = { status = 501"],
        &[
            "TLS options `clients` may keep clients out",
            "it is taken to have TLS",
            "tls.options.clients",
        ],
    );
}

#[test]
fn services_are_upstreams() {
    let text = "http:\n  routers:\n    app: { rule: \"PathPrefix(`/`)\", entryPoints: web, service: SERVICE }\n  serversTransports:\n    own: { insecureSkipVerify: true, serverName: x.test, forwardingTimeouts: { dialTimeout: 3s } }\n  services:\n    several:\n      loadBalancer:\n        servers: [ { url: \"https://10.0.0.1:443\", weight: 2 }, { url: \"https://10.0.0.2:443/\" } ]\n        sticky: { cookie: { name: s } }\n        healthCheck: { path: /up, interval: 5s }\n        passHostHeader: false\n        serversTransport: own\n    one: { loadBalancer: { servers: [ { url: \"http://one:80\" } ] } }\n    clear: { loadBalancer: { servers: [ { url: \"h2c://clear:80\" } ] } }\n    parts: { weighted: { services: [ { name: one, weight: 1 }, { name: clear, weight: 3 } ], sticky: { cookie: {} } } }\n    copies: { mirroring: { service: one, mirrors: [ { name: clear, percent: 10 } ] } }\n    over: { failover: { service: one, fallback: clear } }\n    itself: { weighted: { services: [ { name: itself } ] } }\n";
    for (service, lines, note) in [
        (
            "several",
            vec![
                "proxy = { to = \"several\", host = \"server\" }",
                "[upstream.several]\nservers = [{ url = \"https://10.0.0.1:443\", weight = 2 }, \"https://10.0.0.2:443\"]\nsticky = \"s\"\nhealth = { path = \"/up\", interval = \"5s\" }\nconnect_timeout = \"3s\"\ntls = { insecure = true, server_name = \"x.test\" }",
            ],
            None,
        ),
        ("one", vec!["proxy = \"http://one:80\""], None),
        (
            "clear",
            vec!["[upstream.clear]\nservers = [\"http://clear:80\"]\nprotocol = \"http2\""],
            None,
        ),
        (
            "parts",
            vec![
                "proxy = { to = \"clear\", split = { \"http://one:80\" = 25 }, split_cookie = \"lb-parts\" }",
            ],
            None,
        ),
        (
            "copies",
            vec!["proxy = { to = \"http://one:80\", mirror = { to = \"clear\", share = 10 } }"],
            None,
        ),
        (
            "over",
            vec![
                "[upstream.over]\nservers = [\"http://one:80\", { url = \"http://clear:80\", backup = true }]",
            ],
            None,
        ),
        (
            "itself",
            vec!["status = 501"],
            Some("`itself` is not in this file"),
        ),
        (
            "api@internal",
            vec!["status = 501"],
            Some("one of Traefik itself"),
        ),
        (
            "nowhere",
            vec!["status = 501"],
            Some("`nowhere` is not in this file"),
        ),
    ] {
        let notes: Vec<&str> = [WEB].into_iter().chain(note).collect();
        check(&text.replace("SERVICE", service), &lines, &notes);
    }
}

#[test]
fn entry_points_and_certificates() {
    check(
        "entryPoints:\n  web: { address: \":8080\", http: { redirections: { entryPoint: { to: secure } } } }\n  secure: { address: \"127.0.0.1:8443\", http: { tls: {}, middlewares: [ \"late@file\" ] }, http3: {}, forwardedHeaders: { trustedIPs: [ 10.0.0.0/8 ] } }\nhttp:\n  routers:\n    app: { rule: \"Host(`a.test`)\", service: app, tls: { options: strict } }\n  middlewares:\n    late: { compress: {} }\n  services:\n    app: { loadBalancer: { servers: [ { url: \"http://app:80\" } ] } }\ntls:\n  certificates: [ { certFile: a.crt, keyFile: a.key } ]\n  options:\n    strict: { minVersion: VersionTLS13 }\n    clients: { clientAuth: { clientAuthType: RequireAndVerifyClientCert } }\ntcp:\n  routers:\n    db: { rule: \"HostSNI(`*`)\", service: db }\n",
        &[
            "address = \":8080\"\nname = \"web\"\nredirect_https = { port = 8443 }",
            "address = \"127.0.0.1:8443\"\nname = \"secure\"\ntls = { cert = \"a.crt\", key = \"a.key\" }\ntrusted_proxies = [\"10.0.0.0/8\"]\nhttp3 = true",
            "proxy = \"http://app:80\"\ncompress = true",
        ],
        &[
            "tcp.routers.db: left out",
            "tls.options.strict",
            "tls.options.clients",
        ],
    );
    let text = "http:\n  routers:\n    app: { rule: \"Host(`a.test`)\", entryPoints: websecure, service: app, tls: { options: clients } }\n  services:\n    app: { loadBalancer: { servers: [ { url: \"http://app:80\" } ] } }\ntls:\n  options:\n    clients: { clientAuth: { clientAuthType: RequireAndVerifyClientCert } }\n";
    check(
        text,
        &["tls = { self_signed = true }", "respond = { status = 501"],
        &[
            "port 443 with TLS is assumed",
            "TLS options `clients` may keep clients out",
            "tls.options.clients",
        ],
    );
}

#[test]
fn files_without_routers_are_errors() {
    for (text, reason) in [
        (
            "http:\n  services:\n",
            "traefik.yml:1: no router of HTTP or TCP can be translated",
        ),
        ("http:\n  routers: [\n", "is not YAML"),
    ] {
        let error = import_traefik("traefik.yml", text).unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
    }
    for text in [
        "server {\n  listen 80;\n}\n",
        "http://a.test {\n}\n",
        "services:\n  a:\n    image: b\n",
        "[[listeners]]\n",
    ] {
        assert!(!is_traefik(text), "{text}");
    }
}

proptest! {
    /// Whatever lines a file has, the translation loads, and each note has a line.
    #[test]
    fn any_lines_load_or_are_errors(lines in proptest::collection::vec(lines(), 0..14)) {
        let mut text = COMPOSE.to_owned();
        for line in &lines {
            writeln!(text, "      {line}").ok();
        }
        if let Ok(imported) = import_traefik("compose.yml", &text) {
            let problems = crate::import::loads::problems(&imported.toml, Path::new(""));
            prop_assert!(problems.is_empty(), "{:?}\n{}", problems, imported.toml);
        }
    }
}

fn lines() -> impl Strategy<Value = String> {
    let key = "(rule|service|middlewares|entrypoints|priority|tls|tls\\.options|tls\\.domains\\[0\\]\\.main)";
    let value = "[A-Za-z0-9`(),.*$/@^-]{0,12}|Host\\(`[a-z.*{}:]{0,8}`\\)|!?Path(Prefix|Regexp)?\\(`/[a-z(|)*{}:\\[]{0,6}`\\) (&&|\\|\\|) Host\\(`a`\\)";
    let middleware = "(stripprefix\\.prefixes|addprefix\\.prefix|replacepathregex\\.(regex|replacement)|redirectregex\\.(regex|replacement)|basicauth\\.users|headers\\.customrequestheaders\\.X|ratelimit\\.(average|burst|period)|retry\\.attempts|compress|ipallowlist\\.sourcerange)";
    prop_oneof![
        (key, value)
            .prop_map(|(key, value)| format!("traefik.http.routers.other.{key}: '{value}'")),
        (middleware, value)
            .prop_map(|(kind, value)| format!("traefik.http.middlewares.m.{kind}: '{value}'")),
        Just("traefik.http.routers.more.rule: PathPrefix(`/`)".to_owned()),
        Just("traefik.http.routers.more.middlewares: m".to_owned()),
    ]
}
