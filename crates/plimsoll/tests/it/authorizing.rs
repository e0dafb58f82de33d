//! Imported configurations in which a service authorizes requests for files, redirects and servers.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};

use plimsoll_testkit::http::get_with;
use plimsoll_testkit::{authorization_service, free_ports, user_echo};

use crate::plimsoll::plimsoll;
use crate::served::Served;

const ANN: &str = "Cookie: session=ann\r\n";

fn address(served: &Served) -> SocketAddr {
    let (_, address) = served.url.split_once("://").unwrap();
    address.trim_end_matches('/').parse().unwrap()
}

/// The same requests as nginx responds to with this configuration.
#[test]
fn what_is_imported_from_nginx_asks_before_files_and_applications() {
    let (service, origin) = (authorization_service(), user_echo());
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("docs")).unwrap();
    fs::write(folder.path().join("docs/a.txt"), "a file").unwrap();
    let users = folder.path().join("users");
    fs::write(&users, "ann:{PLAIN}secret\n").unwrap();
    let text = format!(
        r#"
        server {{
            listen 127.0.0.1:0;
            root {root};
            location = /check {{
                proxy_pass {service};
                proxy_pass_request_body off;
                proxy_set_header Content-Length "";
            }}
            location = /nobody {{ return 403; }}
            location /docs/ {{
                auth_request /check;
                auth_request_set $user $upstream_http_x_user;
                add_header X-Known-As $user;
                error_page 401 = @login;
                try_files $uri @app;
            }}
            location @app {{ proxy_pass {server}; proxy_set_header X-Other $user; }}
            location @login {{ return 302 /login; }}
            location /app/ {{
                auth_request /check;
                auth_request_set $user $upstream_http_x_user;
                proxy_set_header X-Other "<$user>";
                proxy_set_header X-User "";
                proxy_pass {server};
            }}
            location /moved/ {{ auth_request /check; return 301 /docs/; }}
            location /closed/ {{ auth_request /nobody; }}
            location /any/ {{
                satisfy any;
                auth_basic r;
                auth_basic_user_file {users};
                auth_request /check;
                proxy_pass {server};
            }}
        }}
        "#,
        root = folder.path().display(),
        users = users.display(),
        service = service.url("").trim_end_matches('/'),
        server = origin.url("").trim_end_matches('/'),
    );
    let (file, out) = (
        folder.path().join("nginx.conf"),
        folder.path().join("plimsoll.toml"),
    );
    fs::write(&file, text).unwrap();
    let (file, out) = (file.to_str().unwrap(), out.to_str().unwrap());
    let notes = plimsoll(&["gateway", "import", file, "-o", out]).exits(0);
    let served = Served::start(&["up", out]);
    let address = address(&served);
    let password = "Authorization: Basic YW5uOnNlY3JldA==\r\n";
    for (path, fields, status, field, value) in [
        ("/docs/a.txt", ANN, 200, "x-known-as", Some("ann")),
        ("/docs/a.txt", "", 302, "location", Some("/login")),
        // That the service knows no such user is no decision, and leads nowhere else.
        ("/docs/a.txt", "Cookie: status=404\r\n", 500, "x-seen", None),
        ("/docs/gone", ANN, 200, "x-seen", Some("/ann")),
        ("/docs/gone", "", 302, "x-seen", None),
        ("/docs/gone", "Cookie: status=404\r\n", 500, "x-seen", None),
        ("/app/", ANN, 200, "x-seen", Some("/<ann>")),
        ("/app/", "", 401, "www-authenticate", Some("Bearer")),
        ("/app/", "Cookie: status=403\r\n", 403, "x-service", None),
        ("/moved/", "", 301, "x-seen", None),
        ("/closed/", ANN, 403, "x-seen", None),
        ("/any/", password, 200, "x-seen", Some("/")),
        ("/any/", ANN, 200, "x-seen", Some("/")),
        ("/any/", "", 401, "x-seen", None),
    ] {
        let received = get_with(address, path, fields);
        assert_eq!(
            received.status, status,
            "{path} {fields} {received:?}\n{notes}"
        );
        assert_eq!(
            received.field(field),
            value,
            "{path} {fields} {received:?}\n{notes}"
        );
    }
}

/// `forward_auth` of Caddy before files and texts.
#[test]
fn what_is_imported_from_caddy_asks_before_files_and_texts() {
    let service = authorization_service();
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.txt"), "a file").unwrap();
    let [port] = free_ports().unwrap();
    let text = format!(
        ":{port} {{\n\tforward_auth 127.0.0.1:{} {{\n\t\turi /check\n\t}}\n\thandle /text {{\n\t\trespond \"a text\"\n\t}}\n\thandle {{\n\t\troot * {}\n\t\tfile_server\n\t}}\n}}\n",
        service.port(),
        folder.path().display(),
    );
    let (file, out) = (
        folder.path().join("Caddyfile"),
        folder.path().join("plimsoll.toml"),
    );
    fs::write(&file, text).unwrap();
    let (file, out) = (file.to_str().unwrap(), out.to_str().unwrap());
    let notes = plimsoll(&["gateway", "import", file, "-o", out]).exits(0);
    let _served = Served::start(&["up", out]);
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    for (path, text) in [("/a.txt", "a file"), ("/text", "a text")] {
        let passed = get_with(address, path, ANN);
        assert_eq!((passed.status, passed.text()), (200, text), "{notes}");
        let refused = get_with(address, path, "");
        assert_eq!(refused.status, 401, "{notes}");
        assert_eq!(refused.field("x-service"), Some("yes"));
        let led = get_with(address, path, "Cookie: status=302\r\n");
        assert_eq!((led.status, led.field("location")), (302, Some("/login")));
    }
}
