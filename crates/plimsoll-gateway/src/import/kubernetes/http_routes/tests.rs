use proptest::prelude::*;

use super::super::{import_kubernetes, is_kubernetes};
use crate::import::tests::translation::{check_translation, loaded};

/// The translation has these lines in this order, and its notes are these.
#[track_caller]
fn check(text: &str, lines: &[&str], notes: &[&str]) {
    assert!(is_kubernetes(text));
    let imported = import_kubernetes("route.yaml", text).unwrap();
    check_translation(&loaded(imported), lines, notes);
}

/// A Gateway with these listeners.
fn gateway(listeners: &str) -> String {
    format!(
        "apiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\nmetadata: {{ name: edge }}\nspec:\n  gatewayClassName: any\n  listeners:\n{listeners}---\n"
    )
}

const PLAIN: &str = "  - { name: http, port: 80, protocol: HTTP }\n";

/// A route of that Gateway.
fn route(names: &str, rules: &str) -> String {
    format!(
        "apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {{ name: shop }}\nspec:\n  parentRefs: [ {{ name: edge }} ]\n  hostnames: [{names}]\n  rules:\n{rules}"
    )
}

fn plain(rules: &str) -> String {
    gateway(PLAIN) + &route("a.test", rules)
}

const TO_A: &str = "    backendRefs: [ { name: a, port: 80 } ]\n";
const TAKEN: &str = "80 is taken for the port that pods of `a` listen at";

#[test]
fn matches_are_in_the_order_of_the_specification() {
    let text = plain(
        r"  - backendRefs: [ { name: rest, port: 80 } ]
  - matches: [ { path: { value: /api } }, { path: { value: /api }, method: POST } ]
    backendRefs: [ { name: api, port: 80 } ]
  - matches:
    - path: { value: /api }
      headers: [ { name: X-Version, value: '2' } ]
      queryParams: [ { name: debug, value: 'on' } ]
    backendRefs: [ { name: next, port: 80 } ]
  - matches: [ { path: { type: Exact, value: /api } } ]
    backendRefs: [ { name: docs, port: 80 } ]
  - matches: [ { path: { type: RegularExpression, value: '/v[0-9]+/.*' } } ]
    backendRefs: [ { name: old, port: 80 } ]
",
    );
    check(
        &text,
        &[
            "address = \":80\"\nname = \"web\"\n",
            "host = \"a.test\"\nregex = \"(?-i:/api)\"\nproxy = \"default-docs\"\n",
            "regex = \"(?-i:/v[0-9]+/.*)\"\nproxy = \"default-old\"\n",
            "regex = \"(?-i:/api)\"\nmethod = [\"POST\"]\nproxy = \"default-api\"\n",
            "regex = \"(?-i:/api/.*)\"\nmethod = [\"POST\"]\nproxy = \"default-api\"\n",
            "regex = \"(?-i:/api/.*)\"\nheader = { x-version = \"2\" }\nquery = { debug = \"on\" }\nproxy = \"default-next\"\n",
            "regex = \"(?-i:/api/.*)\"\nproxy = \"default-api\"\n",
            "regex = \"/.*\"\nproxy = \"default-rest\"\n",
        ],
        &["`rest`", "`api`", "`next`", "`docs`", "`old`"],
    );
}

#[test]
fn filters_are_keys_of_routes_and_proxies() {
    let rewritten = "rewrite = [{ from = \"^/old/(.*)$\", to = \"/new/${1}\" }, { from = \"^/old$\", to = \"/new\" }]";
    let rewrite = format!("proxy = {{ to = \"default-a\", {rewritten} }}\n");
    for (filter, expected) in [
        (
            "{ type: URLRewrite, urlRewrite: { path: { type: ReplacePrefixMatch, replacePrefixMatch: /new/ } } }",
            rewrite.replace("to = \"/new\" }]", "to = \"/new/\" }]"),
        ),
        (
            "{ type: URLRewrite, urlRewrite: { hostname: b.test, path: { type: ReplaceFullPath, replaceFullPath: /x$1 } } }",
            "proxy = { to = \"default-a\", host = \"b.test\", rewrite = { from = \"^.*$\", to = \"/x$$1\" } }\n".to_owned(),
        ),
        (
            "{ type: RequestHeaderModifier, requestHeaderModifier: { set: [ { name: X-A, value: '1' }, { name: host, value: c.test } ], add: [ { name: x-b, value: '2' } ], remove: [x-c] } }",
            "proxy = { to = \"default-a\", host = \"c.test\" }\nrequest_headers = { set = { X-A = \"1\" }, add = { x-b = \"2\" }, remove = [\"x-c\"] }\n".to_owned(),
        ),
        (
            "{ type: ResponseHeaderModifier, responseHeaderModifier: { set: [ { name: x-frame-options, value: DENY } ] } }",
            "proxy = \"default-a\"\nresponse_headers = { set = { x-frame-options = \"DENY\" } }\n".to_owned(),
        ),
        (
            "{ type: RequestMirror, requestMirror: { backendRef: { name: a, port: 80 }, fraction: { numerator: 1, denominator: 4 } } }",
            "proxy = { to = \"default-a\", mirror = { to = \"default-a\", share = 25 } }\n".to_owned(),
        ),
        (
            "{ type: CORS, cors: { allowOrigins: ['https://a.test'], allowMethods: [GET, PUT], allowHeaders: ['*'], maxAge: 60 } }",
            "cors = { origins = [\"https://a.test\"], methods = [\"GET\", \"PUT\"], max_age = \"60s\" }\n".to_owned(),
        ),
    ] {
        let rule = format!("  - matches: [ {{ path: {{ value: /old }} }} ]\n    filters: [ {filter} ]\n{TO_A}");
        check(&plain(&rule), &[&expected], &[TAKEN, TAKEN]);
    }
}

#[test]
fn redirects_have_the_host_port_and_path_that_are_not_replaced() {
    let listeners = "  - { name: http, port: 8080, protocol: HTTP }\n";
    for (options, expected) in [
        (
            "scheme: https",
            &["{ to = \"https://{host}{target}\", status = 302 }"][..],
        ),
        (
            "hostname: b.test, statusCode: 301",
            &["{ to = \"http://b.test:8080{target}\", status = 301 }"],
        ),
        (
            "port: 80",
            &["{ to = \"http://{host}{target}\", status = 302 }"],
        ),
        (
            "path: { type: ReplaceFullPath, replaceFullPath: /new }",
            &["{ to = \"http://{host}:8080/new{query}\", status = 302 }"],
        ),
        (
            "path: { type: ReplacePrefixMatch, replacePrefixMatch: /new }",
            &[
                "regex = \"(?-i:/old/(.*))\"\nredirect = { to = \"http://{host}:8080/new/{1}{query}\", status = 302 }",
                "regex = \"(?-i:/old)\"\nredirect = { to = \"http://{host}:8080/new{query}\", status = 302 }",
            ],
        ),
    ] {
        let rule = format!(
            "  - matches: [ {{ path: {{ value: /old }} }} ]\n    filters: [ {{ type: RequestRedirect, requestRedirect: {{ {options} }} }} ]\n"
        );
        check(
            &(gateway(listeners) + &route("a.test", &rule)),
            expected,
            &[],
        );
    }
}

#[test]
fn backends_share_requests_by_their_weights() {
    let rule = "  - backendRefs: [ { name: a, port: 80, weight: 9 }, { name: b, port: 81, weight: 1 }, { name: c, port: 82, weight: 0 } ]\n    timeouts: { request: 10s, backendRequest: 2s }\n    sessionPersistence: { sessionName: who }\n";
    let services = "---\nkind: Service\nmetadata: { name: b }\nspec: { ports: [ { port: 81, targetPort: 8081, appProtocol: kubernetes.io/h2c } ] }\n";
    check(
        &(plain(rule) + services),
        &[
            "proxy = { to = \"default-a\", split = { default-b = 10 }, timeout = \"10s\", response_timeout = \"2s\" }\n",
            "kubernetes = \"default/a:80\"\nsticky = \"who\"\n",
            "kubernetes = \"default/b:8081\"\nsticky = \"who\"\nprotocol = \"http2\"\n",
        ],
        &[TAKEN],
    );
    check(
        &plain("  - matches: [ { path: { value: /a } } ]\n"),
        &["respond = { status = 500, body = \"\" }\n"],
        &[],
    );
}

#[test]
fn listeners_take_the_hosts_and_namespaces_that_they_are_for() {
    let listeners = r"  - { name: any, port: 80, protocol: HTTP }
  - { name: own, port: 80, protocol: HTTP, hostname: '*.a.test' }
  - { name: tls, port: 443, protocol: HTTPS, hostname: b.a.test, tls: { certificateRefs: [ { name: cert } ] } }
  - { name: other, port: 81, protocol: HTTP, allowedRoutes: { namespaces: { from: Selector, selector: { matchLabels: { team: x } } } } }
  - { name: raw, port: 9000, protocol: TCP }
";
    let rule = format!("  - matches: [ {{ path: {{ value: /p }} }} ]\n{TO_A}");
    let text = gateway(listeners) + &route("b.a.test, c.test", &rule);
    check(
        &text,
        &[
            "address = \":80\"\nname = \"web\"\n",
            "address = \":443\"\nname = \"websecure\"\ntls = { self_signed = [\"b.a.test\"] }\n",
            // Of what is below `a.test` the listener without a name gets nothing.
            "listen = \"web\"\nhost = \"*.a.test\"\nprefix = \"/\"\nrespond = { status = 404, body = \"\" }\n",
            "listen = \"web\"\nhost = \"b.a.test\"\nregex = \"(?-i:/p)\"\n",
            "listen = \"web\"\nhost = \"c.test\"\nregex = \"(?-i:/p)\"\n",
            "listen = \"websecure\"\nhost = \"b.a.test\"\nregex = \"(?-i:/p)\"\n",
        ],
        &[
            "secret `cert`",
            "listener `raw` is left out: its protocol is `TCP`",
            TAKEN,
        ],
    );
    let space = "---\nkind: Namespace\nmetadata: { name: default, labels: { team: x } }\n";
    check(
        &(text + space),
        &[
            "address = \":81\"\nname = \"port-81\"\n",
            "listen = \"port-81\"\nhost = \"b.a.test\"\n",
        ],
        &["secret `cert`", "listener `raw`", TAKEN],
    );
}

#[test]
fn routes_without_their_gateway_are_at_the_usual_ports() {
    let rule = format!("  - {}", TO_A.trim_start());
    let first = route("a.test", &rule);
    check(
        &first,
        &[
            "address = \":80\"\n",
            "address = \":443\"\nname = \"websecure\"\ntls = { self_signed = [\"a.test\"] }\n",
        ],
        &["stand for those of the Gateway `default/edge`", TAKEN],
    );
    // What is for one Gateway is not at the port of another.
    let other = route("b.test", &rule)
        .replace("name: edge", "name: inside, namespace: x")
        .replace("name: shop", "name: z");
    check(
        &format!("{first}---\n{other}"),
        &[
            "address = \":10080\"\nname = \"port-10080\"\n",
            "address = \":10443\"\n",
            "listen = \"web\"\nhost = \"a.test\"\n",
            "listen = \"port-10080\"\nhost = \"b.test\"\n",
        ],
        &[
            "`default/edge`",
            "`x/inside`",
            "port 10080 stands for its port 80",
            "port 10443 stands for its port 443",
            TAKEN,
            TAKEN,
        ],
    );
}

#[test]
fn what_may_keep_clients_out_closes_what_it_is_for() {
    let rule = |more: &str| format!("  - matches: [ {{ path: {{ value: /p }} }} ]\n{more}{TO_A}");
    for (text, note) in [
        (
            plain(&rule(
                "    filters: [ { type: ExtensionRef, extensionRef: { kind: X, name: y } } ]\n",
            )),
            "the filter `ExtensionRef` may keep clients out",
        ),
        (
            plain(&rule(""))
                + "---\nkind: SecurityPolicy\nmetadata: { name: p }\nspec: { targetRefs: [ { kind: HTTPRoute, name: shop } ] }\n",
            "HTTPRoute shop responds with 501",
        ),
        (
            plain(&rule(""))
                + "---\nkind: X\nmetadata: { name: p }\nspec: { targetRef: { kind: Gateway, name: edge } }\n",
            "Gateway edge responds with 501",
        ),
        (
            plain(&rule("")).replace(
                "{ name: shop }",
                "{ name: shop, annotations: { konghq.com/plugins: key } }",
            ),
            "it may keep clients out",
        ),
        (
            plain(&rule("")).replace("port: 80 }", "namespace: b, port: 80 }"),
            "responds with 500 as without it: no ReferenceGrant",
        ),
        (
            plain(&rule("")).replace("name: a, port", "kind: Bucket, name: a, port"),
            "the backend is no Service",
        ),
        (
            plain(&rule("")).replace("value: /p", "type: RegularExpression, value: '/['"),
            "has no counterpart, and it is for fewer requests",
        ),
        (
            gateway(
                "  - { name: a, port: 80, protocol: HTTPS, tls: { frontendValidation: { caCertificateRefs: [ { name: ca } ] } } }\n",
            ) + &route("a.test", &rule("")),
            "write `client_certificates`",
        ),
    ] {
        let imported = loaded(import_kubernetes("route.yaml", &text).unwrap());
        assert!(!imported.toml.contains("proxy ="), "{}", imported.toml);
        let closed = if note.contains("500 as") || note.contains("no Service") {
            "respond = { status = 500,"
        } else {
            "respond = { status = 501,"
        };
        assert!(imported.toml.contains(closed), "{}", imported.toml);
        let shown: Vec<_> = imported.notes.iter().map(ToString::to_string).collect();
        assert!(
            shown.iter().any(|it| it.contains(note)),
            "{note}\n{shown:#?}"
        );
    }
    let granted = plain(&rule(""))
        .replace("name: a, port: 80 }", "name: a, namespace: b, port: 80 }")
        + "---\nkind: ReferenceGrant\nmetadata: { name: g, namespace: b }\nspec: { from: [ { group: gateway.networking.k8s.io, kind: HTTPRoute, namespace: default } ], to: [ { group: '', kind: Service } ] }\n";
    check(&granted, &["proxy = \"b-a\"\n"], &[TAKEN]);
}

#[test]
fn calls_are_paths_of_http2() {
    let rules = "  - matches: [ { method: { service: a.B, method: C } }, { method: { service: a.D } }, { method: { method: E } } ]\n    backendRefs: [ { name: a, port: 80 } ]\n";
    let text = plain(rules).replace("HTTPRoute", "GRPCRoute");
    check(
        &text,
        &[
            "regex = \"(?-i:/a\\\\.B/C)\"\n",
            "regex = \"(?-i:/[^/]+/E)\"\n",
            "regex = \"(?-i:/a\\\\.D/.*)\"\n",
            "kubernetes = \"default/a:80\"\nprotocol = \"http2\"\n",
        ],
        &[TAKEN],
    );
}

proptest! {
    #[test]
    fn any_route_is_a_file_that_loads(
        host in "[a-z*.]{0,8}", path in "[/a-c(.*$)\\[{]{0,8}", kind in "(Exact|PathPrefix|RegularExpression|x)",
        filter in "(RequestRedirect|URLRewrite|RequestMirror|CORS|X)", value in "[a-z0-9/$:.{}]{0,10}",
        replace in "(ReplaceFullPath|ReplacePrefixMatch|x)", weight in -1_i64..5,
    ) {
        let quoted = |text: &str| serde_json::to_string(text).unwrap();
        let (host, path, value) = (quoted(&host), quoted(&path), quoted(&value));
        let options = format!(
            "{{ hostname: {value}, path: {{ type: {replace}, replaceFullPath: {value}, replacePrefixMatch: {value} }}, backendRef: {{ name: {value}, port: 1 }}, allowOrigins: [{value}] }}"
        );
        let rule = format!(
            "  - matches: [ {{ path: {{ type: {kind}, value: {path} }}, headers: [ {{ name: {value}, value: {value}, type: RegularExpression }} ], queryParams: [ {{ name: {value}, value: {value} }} ] }}, {{ path: {{ type: {kind}, value: {path} }} }} ]\n    filters: [ {{ type: {filter}, requestRedirect: {options}, urlRewrite: {options}, requestMirror: {options}, cors: {options} }} ]\n    backendRefs: [ {{ name: a, port: 80, weight: {weight} }}, {{ name: {value}, port: 80 }} ]\n"
        );
        let text = plain(&rule).replace("[a.test]", &format!("[{host}]"));
        loaded(import_kubernetes("route.yaml", &text).unwrap());
    }
}
