use proptest::prelude::*;

use super::*;
use crate::import::tests::translation::{check_translation, loaded};

fn imported(text: &str) -> Imported {
    let imported = import_kubernetes("ingress.yaml", text).unwrap();
    loaded(imported)
}

/// The translation has these lines in this order, and its notes are these.
#[track_caller]
fn check(text: &str, lines: &[&str], notes: &[&str]) {
    assert!(is_kubernetes(text));
    check_translation(&imported(text), lines, notes);
}

const SHOP: &str = r"apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: shop
  namespace: eu
  annotations:
    cert-manager.io/cluster-issuer: letsencrypt
spec:
  ingressClassName: nginx
  tls:
    - hosts: [shop.example.org]
      secretName: shop-tls
  rules:
    - host: shop.example.org
      http:
        paths:
          - path: /
            pathType: Prefix
            backend: { service: { name: web, port: { number: 80 } } }
          - path: /api
            pathType: Prefix
            backend: { service: { name: api, port: { name: http } } }
          - path: /api
            pathType: Exact
            backend: { service: { name: docs, port: { number: 9000 } } }
    - host: plain.example.org
      http:
        paths:
          - path: /files
            pathType: ImplementationSpecific
            backend: { service: { name: web, port: { number: 80 } } }
---
apiVersion: v1
kind: Service
metadata: { name: web, namespace: eu }
spec:
  ports:
    - { port: 80, targetPort: 8080 }
---
apiVersion: v1
kind: ConfigMap
metadata: { name: c }
";

#[test]
fn paths_come_in_the_order_of_kubernetes() {
    check(
        SHOP,
        &[
            "address = \":80\"\nname = \"web\"\n",
            "address = \":443\"\nname = \"websecure\"\ntls = { self_signed = [\"shop.example.org\"] }\n",
            "listen = \"web\"\nhost = \"plain.example.org\"\nregex = \"(?-i:/files.*)\"\nproxy = \"eu-web\"\n",
            "listen = \"web\"\nhost = \"shop.example.org\"\nprefix = \"/\"\nredirect = { to = \"https://{host}{target}\", status = 308 }\n",
            "listen = \"websecure\"\nhost = \"shop.example.org\"\nregex = \"(?-i:/api)\"\nproxy = \"eu-docs\"\n",
            "host = \"shop.example.org\"\nregex = \"(?-i:/api/.*)\"\nproxy = \"eu-api\"\n",
            "host = \"shop.example.org\"\nregex = \"/.*\"\nproxy = \"eu-web\"\n",
            "[upstream.eu-web]\nkubernetes = \"eu/web:8080\"\n",
            "[upstream.eu-api]\nkubernetes = \"eu/api:http\"\n",
            "[upstream.eu-docs]\nkubernetes = \"eu/docs:9000\"\n",
        ],
        &[
            "write `tls.crt` and `tls.key` of the secret `shop-tls`",
            "9000 is taken for the port that pods of `docs` listen at",
            "ConfigMap c: left out",
        ],
    );
}

/// An Ingress of one path with these annotations.
fn annotated(annotations: &str, path: &str) -> String {
    format!(
        "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata:\n  name: a\n  annotations:\n{annotations}spec:\n  rules:\n  - host: a.test\n    http:\n      paths:\n      - path: {path}\n        pathType: ImplementationSpecific\n        backend: {{ service: {{ name: a, port: {{ name: http }} }} }}\n"
    )
}

fn own(name: &str, value: &str) -> String {
    format!("    nginx.ingress.kubernetes.io/{name}: {value}\n")
}

#[test]
fn annotations_are_keys_of_routes_proxies_and_upstreams() {
    for (annotations, path, expected) in [
        (
            own("rewrite-target", "/$2"),
            "/api(/|$)(.*)",
            "regex = \"(?:/api(/|$)(.*)).*\"\nproxy = { to = \"default-a\", rewrite = { from = \"(?i)^(?:/api(/|$)(.*)).*$\", to = \"/$2\" } }\n",
        ),
        (
            own("proxy-body-size", "8m"),
            "/",
            "proxy = { to = \"default-a\", max_request = \"8MiB\" }\n",
        ),
        (
            own("proxy-body-size", "\"0\""),
            "/",
            "proxy = \"default-a\"\n",
        ),
        (
            own("proxy-read-timeout", "\"120\""),
            "/",
            "kubernetes = \"default/a:http\"\nresponse_timeout = \"120s\"\n",
        ),
        (
            own("backend-protocol", "\"HTTPS\""),
            "/",
            "kubernetes = { service = \"default/a:http\", scheme = \"https\" }\ntls = { insecure = true }\n",
        ),
        (
            own("backend-protocol", "GRPC"),
            "/",
            "protocol = \"http2\"\n",
        ),
        (
            own("affinity", "cookie") + &own("session-cookie-name", "route"),
            "/",
            "sticky = \"route\"\n",
        ),
        (
            own("whitelist-source-range", "10.0.0.0/8,192.168.1.1"),
            "/",
            "addresses = { allow = [\"10.0.0.0/8\", \"192.168.1.1\"] }\n",
        ),
        (
            own("permanent-redirect", "https://b.test/"),
            "/",
            "redirect = { to = \"https://b.test/\", status = 301 }\n",
        ),
        (
            own("auth-url", "http://auth.test/verify")
                + &own("auth-response-headers", "X-User, X-Group"),
            "/",
            "proxy = { to = \"default-a\", auth = { to = \"http://auth.test/verify\", copy = [\"X-User\", \"X-Group\"] } }\n",
        ),
        (
            own("force-ssl-redirect", "\"true\""),
            "/",
            "redirect = { to = \"https://{host}{target}\", status = 308 }\n",
        ),
    ] {
        check(&annotated(&annotations, path), &[expected], &[]);
    }
}

#[test]
fn what_may_keep_clients_out_closes_its_ingress() {
    for (annotation, note) in [
        (own("auth-type", "basic"), "users are in a secret"),
        (
            own("auth-url", "https://$host/oauth2/auth"),
            "no URL without variables",
        ),
        (own("auth-tls-secret", "a/b"), "client_certificates"),
        (
            own("configuration-snippet", "\"deny all;\""),
            "may keep clients out",
        ),
        (
            own("whitelist-source-range", "10.0.0.0/8,office"),
            "no network",
        ),
        (own("limit-rps", "\"5\""), "may keep clients out"),
        (
            own("enable-modsecurity", "\"true\""),
            "may keep clients out",
        ),
        (
            own("backend-protocol", "FCGI"),
            "no server speaks that protocol",
        ),
        (
            "    traefik.ingress.kubernetes.io/router.middlewares: a-auth@kubernetescrd\n"
                .to_owned(),
            "may keep clients out",
        ),
        (
            "    haproxy.org/allow-list: 10.0.0.0/8\n".to_owned(),
            "may keep clients out",
        ),
    ] {
        let text = annotated(&annotation, "/");
        check(&text, &["respond = { status = 501"], &[note]);
        assert!(!imported(&text).toml.contains("proxy ="), "{annotation}");
    }
    let old = annotated("", "/").replace("networking.k8s.io/v1", "extensions/v1beta1");
    let old = old.replace("  annotations:\n", "");
    check(
        &old,
        &["respond = { status = 501"],
        &["is not `networking.k8s.io/v1`"],
    );
    let text = annotated(&own("use-regex", "\"true\""), "/a(?=b)");
    check(&text, &["respond = { status = 501"], &["is no expression"]);
}

#[test]
fn other_annotations_are_left_out_with_a_note() {
    for (annotation, notes) in [
        (own("cors-allow-origin", "\"*\""), &["no counterpart"][..]),
        (own("custom-http-errors", "\"404\""), &["no counterpart"]),
        (
            own("proxy-body-size", "much"),
            &["its value has no counterpart"],
        ),
        (
            own("auth-url", "http://a.test/") + &own("auth-signin", "http://b.test/"),
            &["left out"],
        ),
        (own("ssl-redirect", "\"false\""), &[]),
        ("    example.org/owner: shop\n".to_owned(), &[]),
    ] {
        check(&annotated(&annotation, "/"), &["proxy = "], notes);
    }
}

#[test]
fn hosts_are_names_patterns_or_all_others() {
    let all = annotated("", "/").replace("  annotations:\n", "");
    let pattern = all.replace("host: a.test", "host: \"*.a.test\"");
    check(
        &pattern,
        &["host = \"*.a.test\"\nprefix = \"/\"\nproxy = \"default-a\"\n"],
        &["several labels"],
    );
    let others = all.replace("host: a.test\n    http", "http");
    check(
        &others,
        &["listen = \"web\"\nprefix = \"/\"\nproxy = \"default-a\"\n"],
        &[],
    );
    let (before, _) = all.split_once("  rules:").unwrap();
    let backend = "  defaultBackend: { service: { name: b, port: { name: http } } }\n";
    check(
        &format!("{before}{backend}"),
        &["listen = \"web\"\nprefix = \"/\"\nproxy = \"default-b\"\n"],
        &[],
    );
}

#[test]
fn a_file_without_an_ingress_is_an_error() {
    let error = import_kubernetes("a.yaml", "kind: Service\n").unwrap_err();
    assert_eq!(
        error.to_string(),
        "a.yaml:1: has no Ingress, HTTPRoute or GRPCRoute"
    );
    assert!(import_kubernetes("a.yaml", "kind: [").is_err());
    let gateway = "apiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\n";
    assert!(is_kubernetes(gateway));
    assert!(import_kubernetes("a.yaml", gateway).is_err());
    for other in [
        "kind: IngressRoute\n",
        "services:\n  a:\n    labels: [ \"traefik.enable=true\" ]\n",
        "# kind: Ingress\n",
        "kind: IngressClass\n",
    ] {
        assert!(!is_kubernetes(other), "{other}");
    }
}

proptest! {
    #[test]
    fn any_manifest_is_a_file_that_loads(
        host in "[a-z*.]{0,8}", path in "[/a-c(.*$)\\[]{0,8}", kind in "(Exact|Prefix|ImplementationSpecific|x)",
        name in "(use-regex|rewrite-target|proxy-body-size|whitelist-source-range|auth-url|permanent-redirect|affinity|x-auth|y)",
        value in "[a-z0-9/$:.]{0,10}",
    ) {
        let quoted = |text: &str| serde_json::to_string(text).unwrap();
        let text = format!(
            "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {{ name: a, annotations: {{ {}: {} }} }}\nspec:\n  rules:\n  - host: {}\n    http: {{ paths: [ {{ path: {}, pathType: {kind}, backend: {{ service: {{ name: a, port: {{ number: 80 }} }} }} }} ] }}\n",
            quoted(&format!("{OWN}{name}")), quoted(&value), quoted(&host), quoted(&path),
        );
        let made = imported(&text);
        for note in &made.notes {
            prop_assert!((1..=7).contains(&note.line), "{}", note);
        }
    }
}

const OWN: &str = "nginx.ingress.kubernetes.io/";
