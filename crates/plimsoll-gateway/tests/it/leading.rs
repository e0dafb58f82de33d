//! Routes that lead requests on to other routes: by the status of a response, or as a server wants it.

use std::fs;

use plimsoll_server::config::LogTarget;
use plimsoll_testkit::http::{HttpResponse, exchange, get, get_with};
use plimsoll_testkit::{Logic, Origin, Reply, Script, Step, eventually, refused_address};

use crate::server::{Served, compiled, named};

fn origin(status: u16, fields: &'static [(&'static str, &'static str)]) -> Origin {
    let logic = Logic::new(move |_| Reply::new(status, fields));
    let script = move |_| Script::new().then(Step::Reply(logic.clone()));
    Origin::builder().script(script).start()
}

fn url(origin: &Origin) -> String {
    origin.url("").trim_end_matches('/').to_owned()
}

#[test]
fn a_route_takes_over_by_the_status_of_another() {
    let served = Served::routes(
        r#"
        [[route]]
        path = "/named"
        respond = { status = 404 }
        on_status = { 404 = "missing", 4xx = "/pages/other" }

        [[route]]
        path = "/path"
        respond = { status = 410 }
        on_status = { 404 = "missing", 4xx = "/pages/other?because={it}" }

        [[route]]
        path = "/own"
        respond = { status = 404 }
        on_status = { 404 = { to = "missing", status = "own" } }

        [[route]]
        path = "/fixed"
        respond = { status = 503 }
        on_status = { 5xx = { to = "missing", status = 418 } }

        [[route]]
        path = "/circle"
        respond = { status = 404 }
        on_status = { 404 = "/circle" }

        [[route]]
        path = "/chain"
        respond = { status = 404 }
        on_status = { 404 = { to = "/path", status = "own" } }

        [[route]]
        path = "/secret"
        basic_auth = { users = { a = "$2y$04$abcdefghijklmnopqrstuuJ3X1yWl8Ht7gk7Ew5v3m9XlGm0VxF5K" } }
        respond = { body = "secret" }
        on_status = { 401 = "missing" }

        [[route]]
        name = "missing"
        internal = true
        respond = { template = "{method} {path} is elsewhere", headers = { x-page = "yes" } }

        [[route]]
        prefix = "/pages"
        internal = true
        respond = { template = "{method} {target}" }
        "#,
    );
    let get = |path: &str| {
        let received = get(served.address(), path);
        (received.status, received.into_text())
    };
    let text = |status: u16, text: &str| (status, text.to_owned());
    assert_eq!(get("/named"), text(404, "GET /named is elsewhere"));
    assert_eq!(get("/path"), text(410, "GET /pages/other?because={it}"));
    assert_eq!(get("/own"), text(200, "GET /own is elsewhere"));
    assert_eq!(get("/fixed"), text(418, "GET /fixed is elsewhere"));
    assert_eq!(get("/circle"), text(404, ""));
    assert_eq!(get("/chain"), text(410, "GET /pages/other?because={it}"));
    // Clients do not reach internal routes.
    assert_eq!(get("/pages/other").0, 404);
    // The password is still asked for.
    let secret = get_with(served.address(), "/secret", "");
    assert_eq!(
        (secret.status, secret.text().to_owned()),
        text(401, "GET /secret is elsewhere")
    );
    assert!(secret.field("www-authenticate").is_some(), "{secret:?}");
    assert_eq!(secret.field("x-page"), Some("yes"));
    // A path is fetched by GET, a name gets the request as it is.
    let post = |path: &str| {
        let head = format!("POST {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n");
        exchange(
            served.address(),
            format!("{head}content-length: 2\r\n\r\nhi").as_bytes(),
        )
        .into_text()
    };
    assert_eq!(post("/named"), "POST /named is elsewhere");
    assert_eq!(post("/path"), "GET /pages/other?because={it}");
}

#[test]
fn a_route_with_a_name_alone_is_found_by_it_alone() {
    let served = Served::routes(
        r#"
        [[route]]
        regex = "/a.*"
        respond = { status = 403 }
        on_status = { 403 = "named", 404 = "/nowhere" }

        [[route]]
        regex = "/b.*"
        respond = { status = 404 }
        on_status = { 404 = "/missing.html", 405 = { to = "named", status = "own" } }

        [[route]]
        regex = "/moved"
        redirect = { to = "/there", status = 302 }
        on_status = { 3xx = "named" }

        [[route]]
        name = "named"
        internal = true
        respond = { template = "named {method}" }
        "#,
    );
    let get = |path: &str| {
        let received = get(served.address(), path);
        (received.status, received.into_text())
    };
    assert_eq!(get("/a"), (403, "named GET".to_owned()));
    assert_eq!(get("/b"), (404, "not found\n".to_owned()));
    // A redirect without the field that says where would lead nowhere.
    assert_eq!(get("/moved"), (200, "named GET".to_owned()));
    // Who takes what is not allowed knows the methods.
    let options = "OPTIONS /b HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
    let answer = exchange(served.address(), options.as_bytes());
    assert_eq!((answer.status, answer.text()), (200, "named OPTIONS"));
}

#[test]
fn what_a_server_responds_with_is_relayed_unless_errors_are_intercepted() {
    let (failing, app) = (origin(503, &[("x-of", "server")]), named("app"));
    let asking = origin(
        401,
        &[
            ("www-authenticate", "Basic"),
            ("www-authenticate", "Digest"),
        ],
    );
    let served = Served::routes(&format!(
        r#"
        [[route]]
        path = "/relayed"
        proxy = {{ to = "{failing}" }}
        on_status = {{ 5xx = "sorry" }}

        [[route]]
        path = "/intercepted"
        proxy = {{ to = "{failing}", intercept_errors = true }}
        on_status = {{ 5xx = "sorry" }}

        [[route]]
        path = "/asking"
        proxy = {{ to = "{asking}", intercept_errors = true }}
        on_status = {{ 401 = "sorry" }}

        [[route]]
        path = "/refused"
        proxy = {{ to = "http://{refused}" }}
        on_status = {{ 502 = {{ to = "app", status = "own" }} }}

        [[route]]
        path = "/cached"
        proxy = {{ to = "{failing}", cache = {{ default_lifetime = {{ 503 = "1m" }} }} }}
        on_status = {{ 5xx = "sorry" }}

        [[route]]
        name = "sorry"
        internal = true
        respond = {{ body = "sorry" }}

        [[route]]
        name = "app"
        internal = true
        proxy = "{app}"
        "#,
        failing = url(&failing),
        asking = url(&asking),
        refused = refused_address(),
        app = app.url(),
    ));
    let get = |path: &str| get(served.address(), path);
    let shown = |it: &HttpResponse| (it.status, it.text().to_owned(), it.field("x-of").is_some());
    assert_eq!(shown(&get("/relayed")), (503, "hello".to_owned(), true));
    assert_eq!(
        shown(&get("/intercepted")),
        (503, "sorry".to_owned(), false)
    );
    // All challenges hold for the page too.
    let asked = get("/asking");
    assert_eq!(shown(&asked), (401, "sorry".to_owned(), false));
    let challenges = asked.joined_field("www-authenticate");
    assert_eq!(challenges.as_deref(), Some("Basic, Digest"));
    assert_eq!(shown(&get("/refused")), (200, "app".to_owned(), false));
    for expected in ["plimsoll; fwd=uri-miss; stored", "plimsoll; hit"] {
        let cached = get("/cached");
        assert_eq!(shown(&cached), (503, "hello".to_owned(), true));
        assert_eq!(cached.field("cache-status"), Some(expected));
    }
}

#[test]
fn a_server_names_the_path_that_responds() {
    let sending = origin(
        200,
        &[
            ("x-accel-redirect", "/files/report?v=1"),
            ("x-accel-expires", "5"),
            ("content-type", "application/pdf"),
            ("content-disposition", "attachment"),
            ("x-of", "server"),
        ],
    );
    let circling = origin(200, &[("x-accel-redirect", "/circle")]);
    let leading = origin(200, &[("x-accel-redirect", "elsewhere")]);
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("access.log");
    let served = Served::routes(&format!(
        r#"
        [[route]]
        path = "/report"
        proxy = {{ to = "{sending}", accel_redirect = true }}

        [[route]]
        path = "/plain"
        proxy = {{ to = "{sending}" }}

        [[route]]
        path = "/circle"
        proxy = {{ to = "{circling}", accel_redirect = true }}

        [[route]]
        path = "/elsewhere"
        proxy = {{ to = "{leading}", accel_redirect = true }}

        [[route]]
        prefix = "/files"
        internal = true
        respond = {{ template = "{{method}} {{target}}" }}

        [log]
        file = "{file}"
        format = "{{path}} {{route}} {{status}} {{upstream.attempts}}"
        "#,
        sending = url(&sending),
        circling = url(&circling),
        leading = url(&leading),
        file = file.display(),
    ));
    let path = file.clone();
    let log = served.log().unwrap();
    let _writer = log
        .write_to(Box::new(move || LogTarget::open_file(&path)))
        .unwrap();
    let received = get(served.address(), "/report?x=2");
    assert_eq!(
        (received.status, received.text()),
        (200, "GET /files/report?v=1")
    );
    assert_eq!(received.field("content-type"), Some("application/pdf"));
    assert_eq!(received.field("content-disposition"), Some("attachment"));
    assert_eq!(
        (received.field("x-of"), received.field("x-accel-expires")),
        (None, None)
    );
    let plain = get(served.address(), "/plain");
    assert_eq!(plain.field("x-accel-redirect"), Some("/files/report?v=1"));
    assert_eq!(get(served.address(), "/circle").status, 500);
    assert_eq!(get(served.address(), "/elsewhere").status, 404);
    let lines = || fs::read_to_string(&file).unwrap_or_default();
    eventually(|| lines().lines().count() == 4);
    // The route that responded, and where the request was forwarded before.
    let first = lines().lines().next().map(str::to_owned);
    assert_eq!(first.unwrap(), "/report /files 200 1");
}

#[test]
fn a_route_responds_as_for_another_path() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("access.log");
    let served = Served::new(&format!(
        r#"
        [[listen]]
        address = "127.0.0.1:0"

        [log]
        file = "{}"
        format = "{{target}} {{route}} {{status}}"

        [[route]]
        regex = "/rooms/([^/]+)"
        rewrite = {{ to = "/room.html?name={{1}}{{query}}" }}

        [[route]]
        regex = "/to/(.*)"
        rewrite = {{ to = "/{{1}}" }}

        [[route]]
        prefix = "/echoed"
        rewrite = {{ to = "/echo", route = "by name" }}

        [[route]]
        path = "/circle"
        rewrite = {{ to = "/circle" }}

        [[route]]
        path = "/elsewhere"
        rewrite = {{ to = "{{header:x-to}}" }}

        [[route]]
        name = "room"
        path = "/room.html"
        internal = true
        respond = {{ template = "{{method}} {{target}}" }}

        [[route]]
        name = "by name"
        internal = true
        echo = {{}}

        [[route]]
        prefix = "/private"
        addresses = {{ allow = "192.0.2.1" }}
        respond = {{ body = "secret" }}
        "#,
        log.display()
    ));
    let writer = served.log().unwrap();
    let path = log.clone();
    let open = move || Ok(Box::new(fs::File::create(&path)?) as Box<dyn std::io::Write + Send>);
    let writer = writer.write_to(Box::new(open)).unwrap();
    let get = |path: &str| {
        let received = get(served.address(), path);
        (received.status, received.into_text())
    };
    let room = "GET /room.html?name=a%20b&x=1".to_owned();
    assert_eq!(get("/rooms/a%20b?x=1"), (200, room));
    // Clients reach what is internal in this way alone, and nothing that is closed.
    assert_eq!(get("/room.html").0, 404);
    assert_eq!(get("/to/room.html").0, 200);
    assert_eq!(get("/private/a").0, 403);
    assert_eq!(get("/to/private/a").0, 403);
    assert_eq!(get("/to/PRIVATE/a").0, 403);
    assert_eq!(get("/to/nothing").0, 404);
    assert_eq!(get("/circle").0, 500);
    let elsewhere = |to: &str| get_with(served.address(), "/elsewhere", &format!("x-to: {to}\r\n"));
    assert_eq!(elsewhere("room.html").status, 404);
    assert_eq!(elsewhere("/private/../room.html").status, 404);
    assert_eq!(elsewhere("/room.html").status, 200);
    // Method and content are those of the client.
    let post =
        "POST /echoed/x HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-length: 2\r\n\r\nhi";
    assert_eq!(exchange(served.address(), post.as_bytes()).text(), "hi");
    writer.finish();
    let lines = fs::read_to_string(&log).unwrap();
    let first = lines.lines().next();
    assert_eq!(first, Some("/rooms/a%20b?x=1 room 200"), "{lines}");
}

#[test]
fn mistakes_of_paths_in_place_of_others_are_named() {
    let problem = |rewrite: &str| {
        let text = format!(
            "[[listen]]\naddress = \"127.0.0.1:0\"\n[[route]]\nname = \"home\"\nrespond = {{}}\n\
             [[route]]\npath = \"/x\"\nrewrite = {rewrite}\n"
        );
        let problems = compiled(&text).unwrap_err();
        let shown = problems.iter().map(|it| format!("{it} {:?}", it.hint));
        shown.collect::<Vec<_>>().join("\n")
    };
    for (rewrite, expected) in [
        ("{}", "to"),
        ("{ to = \"x\" }", "`x` is no path"),
        ("{ to = \"/{1}\" }", "no group of a regular expression"),
        ("{ to = \"/\", route = \"hom\" }", "did you mean `home`?"),
        ("{ to = \"/\", status = 200 }", "status"),
    ] {
        let found = problem(rewrite);
        assert!(found.contains(expected), "{rewrite}: {found}");
    }
}

#[test]
fn successors_that_are_not_there_are_mistakes() {
    let problems = |on_status: &str| {
        let text = format!(
            "[[listen]]\naddress = \"127.0.0.1:0\"\n[[route]]\nname = \"sorry\"\nrespond = {{}}\n\
             [[route]]\npath = \"/x\"\nrespond = {{}}\non_status = {on_status}\n"
        );
        let problems = compiled(&text).unwrap_err();
        let shown = problems.iter().map(|it| format!("{it} {:?}", it.hint));
        shown.collect::<Vec<_>>().join("\n")
    };
    let unknown = problems("{ 404 = \"sory\" }");
    assert!(unknown.contains("there is no route `sory`"), "{unknown}");
    assert!(unknown.contains("did you mean `sorry`?"), "{unknown}");
    let status = problems("{ 200 = \"sorry\", 2xx = \"sorry\" }");
    assert_eq!(
        status.matches("is not a status from 300 to 599").count(),
        2,
        "{status}"
    );
    let fixed = problems("{ 404 = { to = \"sorry\", status = 99 } }");
    assert!(fixed.contains("is not a status from 200 to 599"), "{fixed}");
    let missing = problems("{ 404 = { status = 200 } }");
    assert!(missing.contains("`to`"), "{missing}");
}
