//! Configurations of nginx, imported: each request has the response and reaches the server that it has with nginx itself.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::thread;

use plimsoll_testkit::http::{HttpResponse, talk};
use plimsoll_testkit::{eventually, free_ports};
use plimsoll_wire::process::{Process, ProcessSpec};

use crate::plimsoll::plimsoll;
use crate::served::Served;

/// A server that responds with its name, the request line without the version, and the fields in order; with a redirect to what is behind
/// `?location=`.
pub(crate) fn mirror(name: &'static str) -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let stream = stream.unwrap();
            thread::spawn(move || reflect(name, &stream));
        }
    });
    port
}

fn reflect(name: &str, mut stream: &TcpStream) {
    let mut reader = BufReader::new(stream);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) == 0 {
            return;
        }
        let (request, _version) = line.trim().rsplit_once(' ').unwrap();
        let fields = fields_of(&mut reader);
        let length = fields
            .get("content-length")
            .map_or(0, |it| it.parse().unwrap());
        let mut content = vec![0; length];
        reader.read_exact(&mut content).unwrap();
        let mut body = format!("{name}\n{request}\n");
        for (field, value) in &fields {
            // Those of the connection, and of the gateway itself.
            if !["connection", "via", "content-length"].contains(&field.as_str()) {
                writeln!(body, "{field}: {value}").unwrap();
            }
        }
        writeln!(body, "{} bytes", content.len()).unwrap();
        if let Some((_, location)) = request.split_once("?location=") {
            let head =
                format!("HTTP/1.1 302 Found\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n");
            if stream.write_all(head.as_bytes()).is_err() {
                return;
            }
            continue;
        }
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nX-Powered-By: {name}\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        if stream.write_all((head + &body).as_bytes()).is_err() {
            return;
        }
    }
}

fn fields_of(reader: &mut impl BufRead) -> BTreeMap<String, String> {
    let mut fields = BTreeMap::<String, String>::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        let Some((name, value)) = line.trim().split_once(':') else {
            return fields;
        };
        let value = value.trim();
        fields
            .entry(name.to_ascii_lowercase())
            .and_modify(|known| *known = format!("{known}, {value}"))
            .or_insert_with(|| value.to_owned());
    }
}

/// `None` if the connection is closed without a response.
pub(crate) fn exchange(port: u16, request: &str, host: &str) -> Option<HttpResponse> {
    let (line, content) = request.split_once('|').unwrap_or((request, ""));
    let length = if content.is_empty() {
        String::new()
    } else {
        format!("Content-Length: {}\r\n", content.len())
    };
    let text = format!(
        "{line} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nAccept-Encoding: identity\r\n\
         Cookie: a=b\r\n{length}\r\n{content}"
    );
    let received = talk((Ipv4Addr::LOCALHOST, port), text.as_bytes());
    if received.is_empty() {
        return None;
    }
    let response = HttpResponse::parse(&received);
    Some(response.unwrap_or_else(|| panic!("{}", String::from_utf8_lossy(&received))))
}

/// What has to be the same: the status, the content unless it is a page of nginx's own, and these fields.
fn shown(response: Option<HttpResponse>, port: u16, is_nginx: bool) -> String {
    let Some(response) = response else {
        return "closed".to_owned();
    };
    let status = response.status;
    let mut shown = format!("{status}\n");
    for name in [
        "location",
        "cache-control",
        "x-served-by",
        "x-powered-by",
        "referrer-policy",
        "x-content-type-options",
        "x-frame-options",
    ] {
        // A file that is not there has the `no-cache` of plimsoll.
        if let Some(value) = response.joined_field(name)
            && (status < 400 || name != "cache-control")
        {
            // nginx makes the targets of redirects URLs.
            let own = ["shop.test", "cloud.test", "edge.test", "moved.test"]
                .map(|host| format!("http://{host}:{port}/"));
            let value = own.iter().fold(value, |value, own| value.replace(own, "/"));
            writeln!(shown, "{name}: {value}").unwrap();
        }
    }
    if status == 200 {
        for line in response.text().lines() {
            // It names its client by more fields than it is configured to with nginx.
            if is_nginx
                || !["x-forwarded-host", "x-forwarded-proto"]
                    .iter()
                    .any(|it| line.starts_with(it))
            {
                shown.push_str(&line.replace(&port.to_string(), "PORT"));
                shown.push('\n');
            }
        }
    }
    shown
}

fn same(configuration: &str, host: &str, requests: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    fs::create_dir_all(path.join("public/assets")).unwrap();
    for (name, text) in [
        ("assets/app.css", "body { }\n"),
        ("plain.js", "1\n"),
        ("notes.sql", "secret\n"),
    ] {
        fs::write(path.join("public").join(name), text).unwrap();
    }
    let [port, other] = free_ports().unwrap();
    let (app, api) = (mirror("app"), mirror("api"));
    let text = |port: u16| {
        configuration
            .replace("{dir}", &path.display().to_string())
            .replace("{port}", &port.to_string())
            .replace("{app}", &app.to_string())
            .replace("{api}", &api.to_string())
    };
    let _nginx = nginx(path, &text(port), port);
    let (file, imported) = (path.join("site.conf"), path.join("plimsoll.toml"));
    fs::write(&file, text(other)).unwrap();
    let shown_path = |path: &Path| path.to_str().unwrap().to_owned();
    let import = [
        "gateway",
        "import",
        &shown_path(&file),
        "-o",
        &shown_path(&imported),
    ];
    let notes = plimsoll(&import).exits(0);
    let served = Served::start(&["up", &shown_path(&imported)]);
    let mut differences = String::new();
    for request in requests {
        let request = &request
            .replace("{app}", &app.to_string())
            .replace("{api}", &api.to_string());
        let expected = shown(
            exchange(port, request, &format!("{host}:{port}")),
            port,
            true,
        );
        let found = shown(
            exchange(other, request, &format!("{host}:{other}")),
            other,
            false,
        );
        // What nginx adds of these, plimsoll adds too.
        let is_added = |line: &&str| {
            line.starts_with("x-forwarded-proto") || line.starts_with("x-forwarded-host")
        };
        let lines = expected.lines().filter(|line| !is_added(line));
        let expected = lines.fold(String::new(), |text, line| text + line + "\n");
        if expected != found {
            let shown = format!("{request}\n--- nginx\n{expected}--- plimsoll\n{found}\n");
            differences.push_str(&shown);
        }
    }
    drop(served);
    let toml = fs::read_to_string(&imported).unwrap();
    assert!(differences.is_empty(), "{differences}\n{notes}\n{toml}");
}

/// Starts an nginx with these servers.
fn nginx(path: &Path, servers: &str, port: u16) -> Process {
    let folder = path.display();
    let text = format!(
        "daemon off;\npid {folder}/nginx.pid;\nerror_log {folder}/error.log;\nevents {{ }}\nhttp {{\n\
         access_log off;\ntypes {{ text/css css; application/javascript js; }}\ndefault_type application/octet-stream;\n\
         client_body_temp_path {folder}/body;\nproxy_temp_path {folder}/proxy;\nfastcgi_temp_path {folder}/fastcgi;\n\
         uwsgi_temp_path {folder}/uwsgi;\nscgi_temp_path {folder}/scgi;\n{servers}\n}}\n"
    );
    let file = path.join("nginx.conf");
    fs::write(&file, text).unwrap();
    let argv = [
        "nginx",
        "-p",
        path.to_str().unwrap(),
        "-c",
        file.to_str().unwrap(),
    ];
    let process = Process::spawn(&ProcessSpec {
        argv: argv.map(str::to_owned).to_vec(),
        ..ProcessSpec::default()
    })
    .expect("nginx is installed by `cargo xtask test`");
    eventually(|| TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok());
    process
}

#[test]
fn an_application_server_behind_nginx() {
    same(
        include_str!("nginx_import/rails.conf"),
        "shop.test",
        &[
            "GET /",
            "GET /orders/5?page=2&sort=a%20b",
            "POST /orders|name=x",
            "DELETE /orders/5",
            "GET /cable",
            "GET /cable/more?x",
            "GET /assets/app.css",
            "GET /assets/missing.css",
            "HEAD /assets/app.css",
        ],
    );
}

#[test]
fn a_file_cloud_behind_nginx() {
    same(
        include_str!("nginx_import/cloud.conf"),
        "cloud.test",
        &[
            "GET /",
            "GET /robots.txt",
            "GET /index.php/apps/files?dir=/",
            "PROPFIND /remote.php/dav/files/ann/a%20b",
            "PUT /remote.php/dav/files/ann/x|0123456789",
            "GET /.well-known/carddav",
            "GET /.well-known/caldav",
            "GET /.well-known/webfinger?resource=x",
            "GET /data/secret",
            "GET /config",
            "GET /configuration",
            "GET /.htaccess",
            "GET /occ",
            "GET /core/app.js.map",
            "GET /core/app.js.mapped",
        ],
    );
}

#[test]
fn a_site_with_several_services_behind_nginx() {
    same(
        include_str!("nginx_import/site.conf"),
        "www.site.test",
        &[
            "GET /",
            "GET /page?x=1",
            "GET /health",
            "GET /healthy",
            "GET /home",
            "GET /moved/a?b=c",
            "GET /api/items?x=1",
            "GET /api/",
            "POST /api/items|{}",
            "GET /api/admin",
            "GET /api/administrators",
            "GET /users/12/avatar",
            "GET /users/ann/avatar",
            "GET /old/a/b?c=d",
            "GET /old/",
            "GET /.git/config",
            "GET /.ENV",
            "GET /notes.sql",
            "GET /plain.js",
            "GET /assets/app.css",
            "GET /missing.css",
        ],
    );
}

#[test]
fn services_chosen_by_method_and_field_behind_nginx() {
    same(
        include_str!("nginx_import/services.conf"),
        "edge.test",
        &[
            "GET /",
            "POST /orders|x",
            "PUT /orders|x",
            "PURGE /orders",
            "GET /kind",
            "GET /kind/a?kind=old",
            "GET /kind/a?kind=new",
            "GET /read/a",
            "HEAD /read/a",
            "DELETE /read/a",
            "GET /read",
            "GET /read?x=1",
            "GET /private/a",
            "GET /internal/a",
            "GET /files/app.css",
            "GET /files/missing.css",
            "GET /members/a",
            "GET /check",
        ],
    );
}

#[test]
fn files_and_what_stands_in_for_them_behind_nginx() {
    same(
        include_str!("nginx_import/files.conf"),
        "files.test",
        &[
            "GET /assets/app.css",
            "GET /assets/none.css",
            "HEAD /assets/none.css",
            "GET /busy/a",
            "GET /app/a",
            "GET /app/a.js?b=c",
            "GET /plain.js",
            "GET /notes",
        ],
    );
}

#[test]
fn redirects_behind_nginx() {
    same(
        include_str!("nginx_import/moved.conf"),
        "moved.test",
        &[
            "GET /",
            "GET /legacy/about.php",
            "GET /legacy/about.php?x=1",
            "GET /legacy/about.html",
            "GET /old/legacy/about.php",
            "GET /search",
            "GET /search?q=a",
            "GET /users/ann/12",
            "GET /users/ANN/12",
            "GET /go/a/b?x=1",
            "GET /go/a",
            "GET /old/a/b?c=d",
            "GET /old/a%20b",
            "GET /old/",
            "GET /exact?x=1",
            "GET /exactly",
            "GET /shop/cart-12?x=1",
            "GET /shop/cart-x?x=1",
            "GET /shop/?location=http://api/x",
            "GET /app/?location=http://127.0.0.1:{app}/x/y?z",
            "GET /app/?location=/x",
            "GET /app/?location=http://elsewhere.test/x",
            "GET /plain/?location=http://127.0.0.1:{app}/x",
            "GET /off/?location=http://127.0.0.1:{app}/x",
            "GET /two/?location=http://internal.test/a",
            "GET /two/?location=http://other.test:8080/a",
            "GET /two/?location=http://127.0.0.1:{app}/a",
            "GET /regex/?location=http://a.test/b/c",
            "GET /regex/?location=https://a.test/b/c",
        ],
    );
}
