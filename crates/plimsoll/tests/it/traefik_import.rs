//! Configurations of Traefik, imported: each request gets the response that the documentation of Traefik says.

use std::fs;

use plimsoll_testkit::free_ports;

use crate::nginx_import::{exchange, mirror};
use crate::plimsoll::plimsoll;
use crate::served::Served;

const FILE: &str = r#"
entryPoints:
  web:
    address: "127.0.0.1:{port}"
http:
  routers:
    api:
      rule: "Host(`shop.test`) && PathPrefix(`/api`)"
      middlewares: [strip]
      service: api
    health:
      rule: "Host(`shop.test`) && Path(`/api/health`) && Method(`GET`)"
      service: app
    shop:
      rule: "Host(`shop.test`)"
      middlewares: [fields]
      service: app
    admin:
      rule: "PathPrefix(`/admin`) && !Header(`X-Inside`, `yes`)"
      priority: 1000
      middlewares: [password]
      service: app
    old:
      rule: "Host(`old.test`)"
      middlewares: [moved]
      service: app
    tenants:
      rule: "HostRegexp(`^[a-z]+\\.tenants\\.test$`)"
      middlewares: [below]
      service: app
    guarded:
      rule: "Host(`guarded.test`)"
      middlewares: [bouncer]
      service: app
    outside:
      rule: "Host(`inside.test`)"
      middlewares: [networks]
      service: app
  middlewares:
    strip: { stripPrefix: { prefixes: [/api] } }
    fields: { headers: { customRequestHeaders: { X-Shop: main }, contentTypeNosniff: true } }
    password: { basicAuth: { users: ["ann:{PLAIN}secret"] } }
    moved: { redirectRegex: { regex: "^http://old\\.test(:[0-9]+)?/go/(.*)", replacement: "https://new.test/${2}", permanent: true } }
    below: { addPrefix: { prefix: /tenants } }
    bouncer: { plugin: { bouncer: { key: secret } } }
    networks: { ipAllowList: { sourceRange: [10.0.0.0/8] } }
  services:
    app: { loadBalancer: { servers: [ { url: "http://127.0.0.1:{app}" } ] } }
    api: { loadBalancer: { servers: [ { url: "http://127.0.0.1:{api}" } ] } }
"#;

#[test]
fn requests_reach_what_routers_of_traefik_lead_to() {
    let folder = tempfile::tempdir().unwrap();
    let (file, imported) = (
        folder.path().join("traefik.yml"),
        folder.path().join("plimsoll.toml"),
    );
    let [port] = free_ports().unwrap();
    let text = FILE
        .replace("{port}", &port.to_string())
        .replace("{app}", &mirror("app").to_string())
        .replace("{api}", &mirror("api").to_string());
    fs::write(&file, text).unwrap();
    let (file, out) = (file.to_str().unwrap(), imported.to_str().unwrap());
    let output = plimsoll(&["gateway", "import", file, "-o", out]).exits(0);
    let notes = output.to_string();
    assert!(notes.contains("its routers respond with 501"), "{notes}");
    plimsoll(&["up", "--check", out]).exits(0);
    let _served = Served::start(&["up", out]);
    for (host, request, expected) in [
        (
            "shop.test",
            "GET /api/orders?a=b",
            "200 api\nGET /orders?a=b\n",
        ),
        ("shop.test", "GET /apis", "200 api\nGET /s\n"),
        ("shop.test", "GET /API/orders", "200 app\nGET /API/orders\n"),
        ("shop.test", "GET /api/health", "200 app\nGET /api/health\n"),
        ("shop.test", "POST /api/health|x", "200 api\nPOST /health\n"),
        ("shop.test", "GET /", "200 app\nGET /\n"),
        ("shop.test", "GET /admin/x", "401"),
        ("shop.test", "GET /%61dmin/x", "401"),
        ("other.test", "GET /admin", "401"),
        ("other.test", "GET /", "404"),
        ("old.test", "GET /go/there", "308 https://new.test/there"),
        ("old.test", "GET /stay", "200 app\nGET /stay\n"),
        ("one.tenants.test", "GET /x", "200 app\nGET /tenants/x\n"),
        ("1.tenants.test", "GET /x", "404"),
        ("guarded.test", "GET /", "501"),
        ("inside.test", "GET /", "403"),
    ] {
        let response = exchange(port, request, &format!("{host}:{port}")).unwrap();
        let content = String::from_utf8_lossy(&response.body);
        let location = response.field("location").unwrap_or_default();
        let found = format!("{} {location}{content}", response.status);
        let toml = fs::read_to_string(&imported).unwrap();
        assert!(
            found.starts_with(expected),
            "{host} {request}: {found}\n{toml}"
        );
        if (host, request) == ("shop.test", "GET /") {
            assert!(content.contains("x-shop: main\n"), "{content}");
            assert!(
                content.contains(&format!("host: shop.test:{port}\n")),
                "{content}"
            );
            assert_eq!(response.field("x-content-type-options"), Some("nosniff"));
        }
    }
}
