//! Manifests of Kubernetes, imported: each request gets the response that its documentation says. Endpoints of services are
//! written as servers, since no cluster is here; `discovery` has a test with an API server.

use std::fs;

use plimsoll_testkit::free_ports;

use crate::nginx_import::{exchange, mirror};
use crate::plimsoll::plimsoll;
use crate::served::Served;

const FILE: &str = r"
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: site
  annotations: { nginx.ingress.kubernetes.io/whitelist-source-range: 10.0.0.0/8 }
spec:
  rules:
  - host: inside.test
    http:
      paths:
      - { path: /, pathType: Prefix, backend: { service: { name: app, port: { name: http } } } }
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: { name: blog }
spec:
  rules:
  - host: blog.test
    http:
      paths:
      - { path: /feed, pathType: Exact, backend: { service: { name: api, port: { name: http } } } }
      - { path: /posts, pathType: Prefix, backend: { service: { name: app, port: { name: http } } } }
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: { name: edge }
spec:
  gatewayClassName: any
  listeners: [ { name: http, port: 8080, protocol: HTTP } ]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: { name: shop }
spec:
  parentRefs: [ { name: edge } ]
  hostnames: [shop.test]
  rules:
  - backendRefs: [ { name: app, port: 80 } ]
  - matches: [ { path: { value: /api } } ]
    filters:
    - { type: URLRewrite, urlRewrite: { path: { type: ReplacePrefixMatch, replacePrefixMatch: / } } }
    - { type: RequestHeaderModifier, requestHeaderModifier: { set: [ { name: X-Shop, value: main } ] } }
    backendRefs: [ { name: api, port: 80 } ]
  - matches: [ { path: { type: Exact, value: /api/health }, method: GET } ]
    backendRefs: [ { name: app, port: 80 } ]
  - matches: [ { path: { value: / }, headers: [ { name: X-Version, value: '[2-9]', type: RegularExpression } ] } ]
    backendRefs: [ { name: api, port: 80 } ]
  - matches: [ { path: { value: /go } } ]
    filters: [ { type: RequestRedirect, requestRedirect: { scheme: https, hostname: new.test, path: { type: ReplacePrefixMatch, replacePrefixMatch: /there }, statusCode: 301 } } ]
  - matches: [ { path: { value: /admin } } ]
    filters: [ { type: ExtensionRef, extensionRef: { group: a.test, kind: Login, name: staff } } ]
    backendRefs: [ { name: app, port: 80 } ]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: { name: tenants }
spec:
  parentRefs: [ { name: edge } ]
  hostnames: ['*.test']
  rules:
  - matches: [ { path: { value: /tenants } } ]
    backendRefs: [ { name: app, port: 80 } ]
";

#[test]
fn requests_reach_what_ingresses_and_routes_lead_to() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (file, out) = (path("manifests.yaml"), path("plimsoll.toml"));
    fs::write(&file, FILE).unwrap();
    let output = plimsoll(&["gateway", "import", &file, "-o", &out]).exits(0);
    let notes = output.to_string();
    assert!(
        notes.contains("`ExtensionRef` may keep clients out"),
        "{notes}"
    );
    plimsoll(&["up", "--check", &out]).exits(0);
    let [ingress, edge] = free_ports().unwrap();
    let mut toml = fs::read_to_string(&out).unwrap();
    for (from, to) in [
        (
            "address = \":80\"",
            format!("address = \"127.0.0.1:{ingress}\""),
        ),
        (
            "address = \":8080\"",
            format!("address = \"127.0.0.1:{edge}\""),
        ),
    ] {
        assert!(toml.contains(from), "{toml}");
        toml = toml.replace(from, &to);
    }
    for (service, port) in [("app", mirror("app")), ("api", mirror("api"))] {
        for end in ["http", "80"] {
            let from = format!("kubernetes = \"default/{service}:{end}\"");
            assert!(toml.contains(&from), "{toml}");
            toml = toml.replace(&from, &format!("servers = [\"http://127.0.0.1:{port}\"]"));
        }
    }
    fs::write(&out, &toml).unwrap();
    let _served = Served::start(&["up", &out]);
    for (port, host, request, expected) in [
        (ingress, "inside.test", "GET /", "403"),
        (ingress, "blog.test", "GET /feed", "200 api\nGET /feed\n"),
        (ingress, "blog.test", "GET /feed/", "404"),
        (ingress, "blog.test", "GET /posts", "200 app\nGET /posts\n"),
        (
            ingress,
            "blog.test",
            "GET /posts/1?a",
            "200 app\nGET /posts/1?a\n",
        ),
        (ingress, "blog.test", "GET /postscript", "404"),
        (ingress, "blog.test", "GET /Posts", "404"),
        (ingress, "shop.test", "GET /", "404"),
        (edge, "shop.test", "GET /", "200 app\nGET /\n"),
        (
            edge,
            "shop.test",
            "GET /api/orders?a=b",
            "200 api\nGET /orders?a=b\n",
        ),
        (edge, "shop.test", "GET /api", "200 api\nGET /\n"),
        (edge, "shop.test", "GET /apis", "200 app\nGET /apis\n"),
        (
            edge,
            "shop.test",
            "GET /api/health",
            "200 app\nGET /api/health\n",
        ),
        (
            edge,
            "shop.test",
            "POST /api/health|x",
            "200 api\nPOST /health\n",
        ),
        (
            edge,
            "shop.test",
            "GET /go/a%20b?c=d",
            "301 https://new.test/there/a%20b?c=d",
        ),
        (edge, "shop.test", "GET /go", "301 https://new.test/there"),
        (edge, "shop.test", "GET /admin/x", "501"),
        (edge, "shop.test", "GET /%61dmin", "501"),
        (
            edge,
            "one.test",
            "GET /tenants/x",
            "200 app\nGET /tenants/x\n",
        ),
        (edge, "one.test", "GET /", "404"),
        (edge, "blog.test", "GET /feed", "404"),
    ] {
        let response = exchange(port, request, &format!("{host}:{port}")).unwrap();
        let content = String::from_utf8_lossy(&response.body);
        let location = response.field("location").unwrap_or_default();
        let found = format!("{} {location}{content}", response.status);
        assert!(
            found.starts_with(expected),
            "{host} {request}: {found}\n{toml}"
        );
        if request == "GET /api/orders?a=b" {
            assert!(content.contains("x-shop: main\n"), "{content}");
        }
    }
}
