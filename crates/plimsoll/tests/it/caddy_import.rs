//! A Caddyfile, imported: each request has the response and reaches the server that it has with Caddy itself.

use std::fs;
use std::net::{Ipv4Addr, TcpStream};

use plimsoll_testkit::{eventually, free_ports};
use plimsoll_wire::process::{Process, ProcessSpec};

use crate::nginx_import::{exchange, mirror};
use crate::plimsoll::plimsoll;
use crate::served::Served;

const FILE: &str = "
{
	http_port {port}
	admin off
}

(common) {
	encode zstd gzip
	header -Server
}

http://shop.test {
	import common
	redir /old/* https://{host}/new permanent

	handle_path /api/* {
		reverse_proxy 127.0.0.1:{api}
	}
	handle /health {
		respond \"fine\"
	}
	handle {
		root * {dir}/public
		try_files {path} /index.html
		file_server
	}
}

http://app.test {
	import common
	basicauth /admin/* {
		ann $2a$10$kbWLKUmC1g1ngzgbO4iddOgjz72gBRlfas99nLdlOjXGmtZFUZPj6
	}
	uri strip_prefix /app
	@writes method POST PUT
	reverse_proxy @writes 127.0.0.1:{api}
	reverse_proxy 127.0.0.1:{app} {
		header_up X-Tenant main
		header_down -X-Powered-By
	}
}

http://down.test {
	root * {dir}/public
	error /gone 410
	reverse_proxy 127.0.0.1:{dead}
	handle_errors {
		rewrite * /sorry.html
		file_server
	}
}
";

#[test]
fn requests_reach_what_sites_of_caddy_lead_to() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    fs::create_dir_all(path("public/assets")).unwrap();
    for (name, text) in [
        ("public/index.html", "the page\n"),
        ("public/sorry.html", "we will be back\n"),
        ("public/assets/app.css", "body { }\n"),
    ] {
        fs::write(path(name), text).unwrap();
    }
    let [port, other] = free_ports().unwrap();
    let (app, api) = (mirror("app"), mirror("api"));
    let dead = plimsoll_testkit::refused_address().port();
    let text = |port: u16| {
        FILE.trim_start()
            .replace("{dir}", folder.path().to_str().unwrap())
            .replace("{port}", &port.to_string())
            .replace("{app}", &app.to_string())
            .replace("{api}", &api.to_string())
            .replace("{dead}", &dead.to_string())
    };
    let (file, out) = (path("Caddyfile"), path("plimsoll.toml"));
    fs::write(&file, text(port)).unwrap();
    let home = path("");
    let command = format!(
        "env HOME={home} XDG_DATA_HOME={home} XDG_CONFIG_HOME={home} caddy run --config {file}"
    );
    let _caddy = Process::spawn(&ProcessSpec {
        argv: shlex::split(&command).unwrap(),
        ..ProcessSpec::default()
    })
    .expect("it is installed by `cargo xtask test`");
    eventually(|| TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok());
    fs::write(&file, text(other)).unwrap();
    let notes = plimsoll(&["gateway", "import", &file, "-o", &out]).exits(0);
    let toml = fs::read_to_string(&out).unwrap().replace(
        &format!("address = \":{other}\""),
        &format!("address = \"127.0.0.1:{other}\""),
    );
    fs::write(&out, &toml).unwrap();
    plimsoll(&["up", "--check", &out]).exits(0);
    let _served = Served::start(&["up", &out]);
    for (host, request, expected) in [
        ("shop.test", "GET /old/x", "301 https://shop.test/new"),
        (
            "shop.test",
            "GET /api/orders?a=b",
            "200 api\nGET /orders?a=b\n",
        ),
        ("shop.test", "GET /health", "200 fine"),
        ("shop.test", "GET /", "200 the page\n"),
        ("shop.test", "GET /orders/5", "200 the page\n"),
        ("shop.test", "GET /apis", "200 the page\n"),
        ("shop.test", "GET /assets/app.css", "200 body { }\n"),
        ("app.test", "GET /orders", "200 app\nGET /orders\n"),
        ("app.test", "GET /app/orders?a", "200 app\nGET /orders?a\n"),
        ("app.test", "POST /app/orders|x", "200 api\nPOST /orders\n"),
        ("app.test", "GET /admin/x", "401"),
        ("app.test", "GET /app/admin/x", "401"),
        ("app.test", "GET /ADMIN/x", "401"),
        ("app.test", "GET /%61dmin/x", "401"),
        ("down.test", "GET /orders", "502 we will be back\n"),
        ("down.test", "GET /gone", "410 we will be back\n"),
    ] {
        for port in [port, other] {
            let response = exchange(port, request, &format!("{host}:{port}")).unwrap();
            let content = String::from_utf8_lossy(&response.body);
            let location = response.field("location").unwrap_or_default();
            let found = format!("{} {location}{content}", response.status);
            let who = if port == other { "plimsoll" } else { "Caddy" };
            assert!(
                found.starts_with(expected),
                "{who}: {host} {request}: {found}\n{notes}\n{toml}"
            );
            if host == "app.test" && response.status == 200 {
                let is_get = request.starts_with("GET ");
                assert_eq!(response.field("x-powered-by").is_none(), is_get, "{found}");
                assert_eq!(content.contains("x-tenant: main\n"), is_get, "{found}");
            }
        }
    }
}
