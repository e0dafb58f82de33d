use std::path::Path;

use plimsoll_server::{FieldCondition, PathCondition, RouteConditions, RouteIndex, RouteInput};
use proptest::prelude::*;
use proptest::test_runner::{RngSeed, TestRunner};

use super::*;
use crate::import::{import_nginx, loads, nginx};

/// A request of a client.
struct Sent<'r> {
    host: &'r str,
    path: &'r str,
    query: Option<&'r str>,
}

impl RouteInput for Sent<'_> {
    fn method(&self) -> &'static str {
        "GET"
    }

    fn host(&self) -> &str {
        self.host
    }

    fn path(&self) -> &str {
        self.path
    }

    fn query(&self) -> Option<&str> {
        self.query
    }

    fn any_field(&self, _: &str, _: &mut dyn FnMut(&[u8]) -> bool) -> bool {
        false
    }
}

fn translated(text: &str) -> (String, Vec<String>) {
    let mut include = |_: &str| Err("there are no files here".into());
    let imported = import_nginx("nginx.conf", text, &mut include).unwrap();
    let problems = loads::problems(&imported.toml, Path::new(""));
    assert!(problems.is_empty(), "{problems:?}\n{}", imported.toml);
    let notes = imported.notes.iter().map(ToString::to_string).collect();
    (imported.toml, notes)
}

/// The routes of a file as the server looks them up for clients, read from its text.
fn index(toml: &str) -> RouteIndex<toml::Table> {
    index_of(toml, |route| !route.contains_key("internal"))
}

/// Those that other routes lead to by their paths.
fn index_behind(toml: &str) -> RouteIndex<toml::Table> {
    index_of(toml, |route| !route.contains_key("name"))
}

fn index_of(toml: &str, is_wanted: impl Fn(&toml::Table) -> bool) -> RouteIndex<toml::Table> {
    let file: toml::Table = toml.parse().unwrap();
    let empty = Vec::new();
    let routes = file
        .get("route")
        .and_then(|it| it.as_array())
        .unwrap_or(&empty);
    let routes = routes.iter().map(|route| route.as_table().unwrap());
    let routes = routes.filter(|route| is_wanted(route)).map(|route| {
        let text = |key: &str| route.get(key).and_then(|it| it.as_str());
        let path = match (text("path"), text("prefix"), text("regex")) {
            (Some(path), _, _) => PathCondition::exact(path),
            (_, Some(prefix), _) => PathCondition::prefix(prefix),
            (_, _, regex) => PathCondition::regex(regex.unwrap()),
        };
        let query = route.get("query").and_then(|it| it.as_table());
        let query = query
            .into_iter()
            .flatten()
            .map(|(name, value)| FieldCondition {
                name: name.clone(),
                value: value.as_str().map(str::to_owned),
            });
        let conditions = RouteConditions {
            host: text("host").map(str::to_owned),
            query: query.collect(),
            ..RouteConditions::of_path(path.unwrap())
        };
        (conditions, route.clone())
    });
    RouteIndex::new(routes.collect())
}

/// How a request is kept out, the least first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kept {
    In,
    /// Let in by a password.
    Password,
    Out,
}

fn kept(index: &RouteIndex<toml::Table>, sent: &Sent<'_>) -> Kept {
    let Ok(Some(route)) = index.find(sent) else {
        return Kept::Out;
    };
    let status = route
        .get("respond")
        .and_then(|it| it.get("status")?.as_integer());
    // Files whose names begin with a dot are not found.
    let is_hidden = route.contains_key("files") && sent.path.contains("/.");
    if status.is_some_and(|it| it >= 400) || is_hidden || route.contains_key("redirect") {
        Kept::Out
    } else if route.contains_key("basic_auth") {
        Kept::Password
    } else {
        Kept::In
    }
}

/// What nginx answers by an error stays closed, and what is `open` stays open.
fn check(text: &str, closed: &[&str], open: &[&str]) {
    let (toml, notes) = translated(text);
    let index = index(&toml);
    for (url, expected) in closed
        .iter()
        .map(|it| (it, true))
        .chain(open.iter().map(|it| (it, false)))
    {
        // A URL without its scheme.
        let (host, rest) = url.split_at(url.find('/').unwrap());
        let (path, query) = match rest.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (rest, None),
        };
        let is = kept(&index, &Sent { host, path, query }) > Kept::In;
        assert_eq!(is, expected, "{url}\n{toml}\n{notes:#?}");
    }
}

const OPEN: &str = "proxy_pass http://127.0.0.1:1;";

/// Each with the paths to which nginx answers 401, 403 or 404, and some to which it answers 200.
#[test]
fn what_nginx_chooses_to_close_is_closed() {
    let cases: &[(&str, &[&str], &[&str])] = &[
        (
            "location ^~ /a/ { OPEN } location /a/secret/ { deny all; OPEN }
             location /a/adm { auth_basic x; auth_basic_user_file p; OPEN } location ~ \\.png$ { OPEN }",
            &["/a/secret/x", "/a/adm", "/a/admin"],
            &["/a/x", "/x.png", "/a/x.png"],
        ),
        (
            "rewrite ^/away /there permanent;
             location ^~ /a/ { OPEN } location ^~ /a/secret/ { deny all; OPEN }",
            &["/a/secret/x"],
            &["/a/x"],
        ),
        (
            "location /open/ { OPEN location ~ \\.txt$ { OPEN } } location /closed/ { deny all; OPEN }
             location /pw/ { auth_basic x; auth_basic_user_file p; OPEN }",
            &["/closed/a.txt", "/closed/a", "/pw/a.txt", "/pw/a"],
            &["/open/a.txt", "/open/a"],
        ),
        (
            "location ~ \\.php$ { OPEN }
             location /uploads/ { OPEN location ~ \\.php$ { deny all; } }
             location ^~ /files/ { OPEN location ~ \\.php$ { return 403; } }",
            &["/uploads/a.php", "/files/a.php"],
            &["/a.php", "/uploads/a", "/files/a"],
        ),
        (
            "location /Admin/ { OPEN } location /admin/ { deny all; OPEN }
             location = /Login { OPEN } location = /login { return 403; }",
            &["/admin/x", "/login"],
            &["/Admin/x", "/Login"],
        ),
        (
            "auth_basic x; auth_basic_user_file p; location = /Ping { auth_basic off; OPEN } location / { OPEN }",
            &["/ping", "/x"],
            &["/Ping"],
        ),
        (
            "location /static/ { alias /srv/files/; } location ~ \\.conf$ { return 403; } location / { OPEN }",
            &["/static/secret.conf", "/x.conf"],
            &["/x"],
        ),
        (
            "location /static/ { alias /srv/files/; } location ~ /\\.ht { deny all; } location / { OPEN }",
            &["/.htaccess", "/x/.htpasswd"],
            &["/x", "/static/x"],
        ),
        (
            "auth_basic x; auth_basic_user_file p;
             location /pub/ { auth_basic off; alias /srv/pub/; } location / { OPEN }",
            &["/pub", "/x"],
            &["/pub/x"],
        ),
        (
            "rewrite ^/old/(.*)$ /new/$1 last; location /new/ { deny all; OPEN } location / { OPEN }",
            &["/old/a", "/new/a"],
            &["/a"],
        ),
        (
            "location /t { rewrite ^/t/admin /u last; OPEN } location /u { return 403; } location / { OPEN }",
            &["/t/admin", "/t/admin/x", "/u"],
            &["/t/x", "/x"],
        ),
        (
            "rewrite ^/go/(.*)$ /$1 last; location /secret/ { deny all; OPEN } location / { OPEN }",
            &["/secret/x", "/go/secret/x"],
            &["/x"],
        ),
        (
            "rewrite ^/go/(.*)$ /$uri last; location /secret/ { deny all; OPEN } location / { OPEN }",
            &["/secret/x", "/go/x"],
            &["/x"],
        ),
        (
            // All clients may read files; a missing file leads to a closed route.
            "location / { try_files $uri @app; } location @app { deny all; OPEN }",
            &[],
            &["/x"],
        ),
        (
            "location / { OPEN } location /b { if ($arg_debug) { return 403; } OPEN }",
            &["/b?debug=1", "/b?DEBUG=1"],
            &["/x"],
        ),
        (
            "location / { try_files $uri /closed/x; OPEN } location /closed/ { deny all; OPEN }
             location /open/ { try_files $uri /open/x; OPEN }",
            &["/x", "/closed/x"],
            &["/open/y"],
        ),
        (
            "location / { try_files $uri =403; OPEN } location /open/ { try_files $uri =404; OPEN }",
            &["/x"],
            &["/open/y"],
        ),
        (
            "location / { try_files $uri @app; OPEN } location @app { deny all; OPEN }
             location /a/ { try_files $uri @on; } location @on { rewrite ^ /closed/x last; OPEN }
             location /closed/ { deny all; } location /open/ { OPEN }",
            &["/x", "/closed/x"],
            &["/open/x", "/a/x"],
        ),
        (
            "try_files $uri /closed/x; location /open/ { OPEN } location /closed/ { deny all; OPEN }",
            &["/closed/x"],
            &["/open/x"],
        ),
        (
            "location / { if ($arg_x) { rewrite ^ /closed/x last; } OPEN }
             location /closed/ { deny all; OPEN }
             location /open/ { if ($http_x) { rewrite ^ /closed/x break; } OPEN }",
            &["/x?x=1", "/closed/x"],
            &["/open/x"],
        ),
        (
            "if ($http_x) { rewrite ^/a/(.*)$ /closed/$1; }
             location /closed/ { deny all; OPEN } location / { OPEN }",
            &["/a/x", "/closed/x"],
            &["/x"],
        ),
        (
            "location /in/ { if ($cookie_user = '') { rewrite ^ /login redirect; } OPEN } location / { OPEN }",
            &["/in/x"],
            &["/login"],
        ),
        (
            "location /a/ { if ($http_x) { rewrite ^ /closed/x; } return 200; }
             location /closed/ { deny all; OPEN }",
            &["/closed/x"],
            &["/a/x"],
        ),
    ];
    for (locations, closed, open) in cases {
        let server = locations.replace("OPEN", OPEN);
        check(
            &format!("server {{ listen 80; root /srv; {server} }}"),
            closed,
            open,
        );
    }
}

/// A path that nginx itself leads to is not requested by a client, and may be `internal`.
#[test]
fn what_errors_and_missing_files_lead_to_is_not_sent_if_it_is_closed() {
    for (rule, is_sent) in [
        ("deny all;", false),
        ("auth_basic x; auth_basic_user_file p;", false),
        ("return 403;", false),
        ("internal;", true),
        ("", true),
    ] {
        let (toml, notes) = translated(&format!(
            "server {{ listen 80; root /srv;
                location /f/ {{ try_files $uri /f/x/last.html; }}
                location / {{ error_page 502 /f/x/e.html; {OPEN} }}
                location /f/x/ {{ {rule} }} }}"
        ));
        let leads = ["404 = { to = \"/f/x/last.html\"", "502 = \"/f/x/e.html\""];
        assert!(leads.iter().all(|it| toml.contains(it)), "{rule}\n{toml}");
        // The route that they lead to keeps clients out by itself.
        let behind = index_behind(&toml);
        for path in ["/f/x/last.html", "/f/x/e.html"] {
            let sent = Sent {
                host: "a",
                path,
                query: None,
            };
            assert_eq!(kept(&behind, &sent) == Kept::In, is_sent, "{rule}\n{toml}");
        }
        assert!(notes.is_empty(), "{notes:?}");
    }
}

#[test]
fn hosts_of_a_server_whose_names_have_no_counterpart_do_not_get_the_default_server() {
    for (name, host) in [
        (r"~^adm(in)?\.test$", "admin.test/"),
        ("mail.*", "mail.org/"),
    ] {
        for rule in ["deny all;", "location /x { deny all; }"] {
            check(
                &format!(
                    "server {{ listen 80; server_name a.test; location / {{ {OPEN} }} }}
                     server {{ listen 80; server_name {name}; {rule} location / {{ {OPEN} }} }}"
                ),
                &[host],
                &["a.test/"],
            );
        }
    }
    // One that restricts no client leaves the default as it is.
    check(
        &format!(
            "server {{ listen 80; server_name a.test; location / {{ {OPEN} }} }}
             server {{ listen 80; server_name mail.*; location / {{ {OPEN} }} }}"
        ),
        &[],
        &["a.test/", "b.test/"],
    );
}

/// As nginx 1.22 answers.
#[test]
fn the_model_chooses_as_nginx_does() {
    let server = r"server {
        location = /a { }
        location / { location ~ ^/n { } location /in/ { } }
        location /a/ { location ~ \.p$ { } location /a/b/ { } }
        location ^~ /f/ { location ~ q { } }
        location /f/long/ { }
        location ~ \.p$ { }
        location ~* \.Q$ { location ~ z { } }
    }";
    let parsed = nginx::parse("n", server, &mut |_| Err("".into())).unwrap();
    let scope = Scope::new(&[]).within(&parsed[0].block);
    let selection = Selection::new(&parsed[0], &scope);
    for (path, expected) in [
        ("/a", "= /a"),
        ("/x", "/"),
        ("/n.p", "~ ^/n"),
        ("/in/x", "/in/"),
        ("/in/x.p", r"~ \.p$"),
        ("/a/x", "/a/"),
        ("/a/x.p", r"~ \.p$"),
        ("/a/b/x", "/a/b/"),
        ("/a/b/x.q", r"~* \.Q$"),
        ("/f/x.p", "/f/"),
        ("/f/xq.p", "~ q"),
        ("/f/long/x", "/f/long/"),
        ("/f/long/xq.p", r"~ \.p$"),
        ("/z.q", "~ z"),
        ("/x.q", r"~* \.Q$"),
    ] {
        let place = selection.choices(path)[0].place.unwrap();
        let shown = place.directive.arguments.join(" ");
        assert_eq!(shown.trim_start_matches("^~ "), expected, "{path}");
    }
}

/// A location: its modifier, its pattern, what it does, and those within it.
#[derive(Debug, Clone)]
struct Spec {
    head: &'static str,
    action: &'static str,
    within: Vec<Spec>,
}

const PREFIXES: &[&str] = &[
    "/", "/a", "/a/", "/A/", "/a/b", "/a/b/", "/b", "/b/", "/ab", "/a/b/a/", "^~ /a", "^~ /a/",
    "^~ /a/b/", "^~ /b/", "^~ /A", "^~ /",
];
const EXACT: &[&str] = &["= /a", "= /A", "= /a/b", "= /b/", "= /a/b/x"];
const EXPRESSIONS: &[&str] = &[
    r"~ \.p$",
    r"~ ^/a/",
    "~ b",
    "~ /a$",
    "~ ^/(a|b)/x",
    r"~ /\.",
    "~* ^/b",
    r"~* \.P$",
    "~ ^/a/b|x$",
    "~ (?!x)a",
    "~ ^/[^/]+/b",
];
const ACTIONS: &[&str] = &[
    "deny all; proxy_pass http://127.0.0.1:1;",
    "proxy_pass http://127.0.0.1:2;",
    "proxy_pass http://127.0.0.1:3;",
    "return 403;",
    "root /srv;",
    "auth_basic x; auth_basic_user_file p; proxy_pass http://127.0.0.1:4;",
    "try_files $uri /a/b/x;",
    "try_files $uri /b/x; proxy_pass http://127.0.0.1:5;",
    "try_files $uri =403; proxy_pass http://127.0.0.1:5;",
    "error_page 502 /a/x; error_page 504 /b/x; proxy_pass http://127.0.0.1:6;",
    "if ($arg_q) { rewrite ^ /a/b/x last; } proxy_pass http://127.0.0.1:7;",
    "if ($http_q) { rewrite ^/a/(.*)$ /b/$1; } proxy_pass http://127.0.0.1:8;",
    "internal; proxy_pass http://127.0.0.1:9;",
    "rewrite ^/a/(.*)$ /b/$1;",
    "rewrite ^ /a/b/x last;",
];
const REWRITES: &[&str] = &[
    "",
    "",
    "",
    "rewrite ^/x/(.*)$ /$1 last;",
    "rewrite ^/b/(.*)$ /a/$1;",
    "rewrite x /a/b/x break;",
    "deny all;",
    "if ($arg_q) { rewrite x /a/b/x last; }",
    "rewrite ^/ab/(.*)$ /b/$1; break;",
];

fn specs(depth: u32) -> BoxedStrategy<Vec<Spec>> {
    let heads = [PREFIXES, PREFIXES, EXACT, EXPRESSIONS, EXPRESSIONS].concat();
    let within = if depth == 0 {
        Just(Vec::new()).boxed()
    } else {
        specs(depth - 1)
    };
    let spec = (
        proptest::sample::select(heads),
        proptest::sample::select(ACTIONS),
        within,
    );
    let spec = spec.prop_map(|(head, action, within)| Spec {
        head,
        action,
        within,
    });
    let count = if depth == 0 { 0..3_usize } else { 0..6 };
    proptest::collection::vec(spec, count).boxed()
}

/// The text of locations, without the ones that nginx refuses.
fn written(specs: &[Spec], outer: &str) -> String {
    let mut known = BTreeSet::new();
    let mut text = String::new();
    for spec in specs {
        let pattern = spec.head.trim_start_matches("^~ ");
        let is_allowed = match outer.split_once(' ') {
            _ if spec.head.starts_with('~') => !outer.starts_with('='),
            Some(("^~", prefix)) => {
                pattern.trim_start_matches("= ").starts_with(prefix) && pattern != prefix
            }
            Some(_) => false,
            None => pattern.trim_start_matches("= ").starts_with(outer) && pattern != outer,
        };
        if is_allowed && known.insert(pattern) {
            let within = written(&spec.within, spec.head);
            text.extend(["location ", spec.head, " { ", spec.action, &within, " }\n"]);
        }
    }
    text
}

/// Paths in nginx's normal form: without repeated slashes and segments of dots.
fn paths() -> impl Strategy<Value = Vec<String>> {
    let pieces = vec![
        "/", "/a", "/b", "a", "b", "A", "/A", ".p", ".P", "x", "/x", "/.", "ab",
    ];
    let path = proptest::collection::vec(proptest::sample::select(pieces), 1..7);
    let path = path.prop_map(|pieces| {
        let joined = pieces.concat();
        let is_segment = |it: &&str| !matches!(*it, "" | "." | "..");
        let segments: Vec<_> = joined.split('/').filter(is_segment).collect();
        let slash = if joined.ends_with('/') && !segments.is_empty() {
            "/"
        } else {
            ""
        };
        format!("/{}{slash}", segments.join("/"))
    });
    proptest::collection::vec(path, 40)
}

/// What a request meets at most, by rules.
fn by_rules(rules: &[String]) -> Kept {
    let by_password = rules.iter().all(|it| it.starts_with("auth_basic"));
    match (rules.is_empty(), by_password) {
        (true, _) => Kept::In,
        (false, true) => Kept::Password,
        (false, false) => Kept::Out,
    }
}

/// How nginx keeps a request for a path out, at least for some of the requests for it.
fn wanted(selection: &Selection<'_>, path: &str) -> Kept {
    let choices = selection.choices(path);
    // What `try_files` leads to is for what is no file.
    let requested = choices.iter().filter(|it| !it.is_led);
    let kept = requested.map(|it| by_rules(it.rules));
    kept.max().unwrap_or(Kept::In)
}

/// The same if nginx itself leads there.
fn wanted_behind(selection: &Selection<'_>, path: &str) -> Kept {
    by_rules(&selection.rules_behind(path))
}

/// What nginx does with a path beyond the location that it chooses, which a route may do too.
fn is_kept_behind(
    selection: &Selection<'_>,
    (index, behind): (&RouteIndex<toml::Table>, &RouteIndex<toml::Table>),
    path: &str,
) -> Result<(), String> {
    let sent = Sent {
        host: "a",
        path,
        query: None,
    };
    let Ok(Some(route)) = index.find(&sent) else {
        return Ok(());
    };
    let is = kept(index, &sent);
    let mut targets = Vec::new();
    for choice in selection.choices(path) {
        let Some(place) = choice.place else {
            continue;
        };
        let directive = place.directive;
        let forwards = route.contains_key("proxy");
        if let Some(tried) = directive.last("try_files") {
            let last = tried.arguments.last().unwrap();
            // Without a file in its place what is not there is not found.
            let has_fallback = route
                .get("files")
                .is_some_and(|it| it.get("fallback").is_some());
            if last.starts_with('/') && (forwards || has_fallback) {
                targets.push(last.clone());
            } else if last == "=403" && forwards && is < Kept::Out {
                return Err("is forwarded, and nginx responds with 403".to_owned());
            }
        }
    }
    let successors = route.get("on_status").and_then(|it| it.as_table());
    for (_, successor) in successors.into_iter().flatten() {
        let to = successor.as_str().or_else(|| successor.get("to")?.as_str());
        let Some(path) = to.filter(|it| it.starts_with('/')) else {
            continue;
        };
        let led = Sent {
            host: "a",
            path,
            query: None,
        };
        if kept(behind, &led).max(is) < wanted_behind(selection, path) {
            return Err(format!("leads to {path}"));
        }
    }
    match targets.iter().find(|it| is < wanted_behind(selection, it)) {
        Some(target) => Err(format!("leads to {target}")),
        None => Ok(()),
    }
}

/// `PLIMSOLL_SEED` repeats a run or makes another one, `PLIMSOLL_CASES` a longer one.
#[test]
fn whatever_nginx_keeps_somebody_out_of_is_closed() {
    let seed = plimsoll_testkit::seed(7);
    let mut runner = TestRunner::new(ProptestConfig {
        cases: plimsoll_testkit::cases(200),
        rng_seed: RngSeed::Fixed(seed),
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    let inputs = (specs(1), proptest::sample::select(REWRITES), paths());
    let checked = runner.run(&inputs, |(specs, rewrite, paths)| {
        let text = format!(
            "server {{ listen 80; root /srv; {rewrite}\n{} }}",
            written(&specs, "")
        );
        let parsed = nginx::parse("n", &text, &mut |_| Err("".into())).unwrap();
        let scope = Scope::new(&[]).within(&parsed[0].block);
        let selection = Selection::new(&parsed[0], &scope);
        let (toml, _) = translated(&text);
        let (index, behind_index) = (index(&toml), index_behind(&toml));
        for path in paths {
            let sent = Sent {
                host: "a",
                path: &path,
                query: None,
            };
            let wanted = wanted(&selection, &path);
            prop_assert!(kept(&index, &sent) >= wanted, "{path}\n{text}\n{toml}");
            let behind = is_kept_behind(&selection, (&index, &behind_index), &path);
            prop_assert!(behind.is_ok(), "{behind:?}: {path}\n{text}\n{toml}");
        }
        Ok(())
    });
    checked.unwrap_or_else(|error| panic!("repeat it with PLIMSOLL_SEED={seed}\n{error}"));
}
