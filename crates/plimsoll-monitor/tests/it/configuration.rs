//! Rejected files, and the wording of errors.

use plimsoll_monitor::config::{LoadError, load};
use tempfile::TempDir;

/// The problems of a file, a line each: place, message and hint.
fn problems(name: &str, text: &str) -> Vec<String> {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, text).unwrap();
    match load(&path, &|_| None) {
        Ok(plan) => plan
            .warnings
            .iter()
            .map(|it| format!("warning: {}: {}", it.place, it.message))
            .collect(),
        Err(LoadError::Problems { problems, .. }) => problems
            .iter()
            .map(|problem| {
                let hint = problem
                    .hint
                    .as_ref()
                    .map_or(String::new(), |hint| format!(" ({hint})"));
                format!("{}:{} {problem}{hint}", problem.line, problem.column)
            })
            .collect(),
        Err(error) => vec![error.to_string()],
    }
}

#[track_caller]
fn check(name: &str, text: &str, expected: &[&str]) {
    assert_eq!(problems(name, text), expected, "{text}");
}

#[test]
fn every_problem_of_a_file_is_reported_with_its_place() {
    check(
        "monitor.toml",
        r#"stor = "memory"
[defaults]
interval = "5 parsecs"
[[monitor]]
name = "a"
http = "ftp://example.org"
timout = "1s"
expect = ["status = 200", "statsu == 200"]
[[monitor]]
name = "a"
tcp = "localhost"
udp = "localhost:1"
[[monitor]]
name = "b"
manual = true
depends_on = "bb"
[[monitor]]
http = { url = "http://localhost", redirect = 3 }
regions = "most"
"#,
        &[
            "1:1 stor: unknown key (did you mean `store`?)",
            "3:12 defaults.interval: unknown unit ` parsecs`; known are ns, us, ms, s, m, h, d",
            "6:8 monitor[1].http: unknown scheme `ftp`; plimsoll speaks http:// and https://",
            "7:1 monitor[1].timout: unknown key (did you mean `timeout`?)",
            "8:27 monitor[1].expect[2]: unknown subject `statsu`; did you mean `status`? known are status, time, dns, connect, tls, send, wait, receive, size, ip, cert.days, grpc.status, body, body.sha256, body.json(PATH), header.NAME, any(…), not(…)",
            "9:1 monitor[2]: another monitor has the key `_a` (give each monitor of a group its own name)",
            "12:7 monitor[2].udp: a monitor has one kind, and this one has `tcp` and `udp`",
            "16:14 monitor[3].depends_on: there is no monitor `bb` (did you mean `b`?)",
            "17:1 monitor[4]: `name` is missing (what the monitor is called)",
            "18:36 monitor[4].http.redirect: unknown key (did you mean `redirects`?)",
            "19:11 monitor[4].regions: `most` is not \"any\", \"majority\", \"all\" or a number",
        ],
    );
}

#[test]
fn configurations_of_gatus_are_refused_where_gatus_refuses_them_or_we_cannot_keep_them() {
    check(
        "config.yaml",
        "endpoints:\n  - name: a\n    url: sctp://x:1\n    conditions:\n      - '[STATUS]==200'\n    interval: 1 minute\n  - name: b\n    conditions: ['[STATUS] == 200']\nsuites:\n  - name: s\n  - name: t\n    context: [1]\n    endpoints:\n      - {name: x, url: 'tcp://[CONTEXT].host:1', conditions: ['[CONNECTED] == true'], store: {'a b': '[STATUS]'}, interval: 5s}\n      - {name: y, url: 'http://', conditions: ['[STATUS] == 200']}\n      - {name: y, url: 'http://a', conditions: ['[STATUS] == 200']}\nstorage:\n  type: mysql\n  path: x\n",
        &[
            "3:10 endpoints[0].url: `sctp://` is not supported (known are http, https, tcp, tls, udp, icmp, starttls, ssh, ws, wss, grpc, grpcs)",
            "5:9 endpoints[0].conditions[0]: `[STATUS]==200` is not a condition; write for example `[STATUS] == 200`, with spaces around the operator",
            "6:15 endpoints[0].interval: `1 minute` is not a duration (write hours, minutes or seconds, such as 1h30m, 30s or 250ms)",
            "7:5 endpoints[1].url: is missing (write what is checked, such as https://example.org)",
            "10:5 suites[0].endpoints: there are none (write the endpoints that are checked one after the other)",
            "12:14 suites[1].context: must be a map of values",
            "14:24 suites[1].endpoints[0].url: [CONTEXT] is filled in HTTP requests only (write the value itself here, or an http:// or https:// URL)",
            "14:94 suites[1].endpoints[0].store: `a b` cannot be used as [CONTEXT].a b (use letters, digits, hyphens and underscores)",
            "15:24 suites[1].endpoints[1].url: `http://` has no host",
            "16:16 suites[1].endpoints[2].name: two endpoints of this suite have the name `y` (give each its own name)",
            "18:9 storage.type: `mysql` is not a store (write memory, sqlite or postgres)",
        ],
    );
    check(
        "config.yaml",
        "alerting: {ntfy: {topic: x, priority: 5, default-alert: {enabled: true}}, slack: {webhook-url: x}}\nendpoints:\n  - name: a\n    url: http://localhost\n    intervall: 5s\n    conditions: ['[BODY].a != 1']\n",
        &[
            "warning: alerting.ntfy.priority: is not carried over",
            "warning: alerting.slack: nothing is sent to this provider: webhook-url: must be a URL that begins with `https://` or `http://`",
            "warning: endpoints[0].conditions[0]: `[BODY].a != 1` holds if the path is missing",
            "warning: endpoints[0].intervall: is not a known key and has no effect; did you mean `interval`?",
        ],
    );
    check(
        "config.yaml",
        "a: [",
        &["1:4 is not YAML: unclosed bracket '[' at line 1, column 4"],
    );
}

#[test]
fn monitors_that_depend_on_themselves_are_refused() {
    check(
        "monitor.toml",
        "[[monitor]]\nname = \"a\"\nmanual = true\ndepends_on = \"c\"\n[[monitor]]\nname = \"b\"\nall_of = [\"a\"]\n[[monitor]]\nname = \"c\"\nany_of = [\"b\"]\n[[monitor]]\nname = \"d\"\nall_of = \"d\"\n",
        &[
            "4:14 monitor[1].depends_on: leads back to `a` itself",
            "7:11 monitor[2].all_of[1]: leads back to `b` itself",
            "10:11 monitor[3].any_of[1]: leads back to `c` itself",
            "13:10 monitor[4].all_of: is the monitor itself",
        ],
    );
}

#[test]
fn the_examples_are_valid() {
    let examples = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");
    for name in ["monitor.toml", "gatus.yaml"] {
        let loaded = load(&std::path::Path::new(examples).join(name), &|_| None);
        assert!(loaded.is_ok(), "{name}: {loaded:?}");
    }
}

#[test]
fn the_schema_takes_what_the_program_takes_and_refuses_other_keys() {
    let schema = serde_json::from_str(plimsoll_monitor::config::SCHEMA).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let document = |text: &str| serde_json::to_value(text.parse::<toml::Table>().unwrap()).unwrap();
    let example = include_str!("../../../../examples/monitor.toml");
    let errors: Vec<_> = validator
        .iter_errors(&document(example))
        .map(|error| error.to_string())
        .collect();
    assert!(errors.is_empty(), "{errors:?}");
    let monitor = "[[monitor]]\nname = \"a\"\n";
    for valid in [
        "tcp = { to = \"a:1\", send = \"x\" }",
        "domain = \"example.org\"\nconfirm = 3\nflap = false\nregions = 2",
        "heartbeat = { every = \"1h\", token = \"0123456789abcdef\" }",
        "manual = true\ndepends_on = [\"b\"]",
        "manual = true\n[[page]]\nslug = \"a\"\ntitle = \"A\"\n[[page.group]]\nname = \"g\"\nmonitors = [{ monitor = \"a\", about = \"x\" }]",
        "manual = true\n[[notify]]\nname = \"a\"\nslack = { url = { env = \"URL\" } }\non = \"opened\"\nafter = \"5m\"",
        "manual = true\n[[maintenance]]\nabout = \"x\"\ncron = \"0 3 * * *\"\nduration = \"1h\"",
    ] {
        assert!(
            validator.is_valid(&document(&format!("{monitor}{valid}"))),
            "{valid}"
        );
    }
    for invalid in [
        "",
        "tcp = \"a:1\"\nudp = { to = \"a:1\" }",
        "tcp = \"a:1\"\ntimout = \"1s\"",
        "heartbeat = { token = \"0123456789abcdef\" }",
        "manual = false",
        "manual = true\n[[page]]\nslug = \"Not good\"\ntitle = \"A\"",
        "manual = true\n[[page]]\nslug = \"a\"\ntitel = \"A\"",
        "manual = true\n[[notify]]\nname = \"a\"",
        "manual = true\n[[notify]]\nname = \"a\"\nslack = { url = \"https://a\" }\nntfy = { topic = \"a\" }",
    ] {
        assert!(
            !validator.is_valid(&document(&format!("{monitor}{invalid}"))),
            "{invalid}"
        );
    }
}

#[test]
fn a_folder_of_gatus_files_is_merged() {
    let folder = TempDir::new().unwrap();
    let endpoint = |name: &str| {
        format!(
            "endpoints:\n  - name: {name}\n    url: tcp://localhost:1\n    conditions: ['[CONNECTED] == true']\n"
        )
    };
    std::fs::write(folder.path().join("a.yaml"), endpoint("a")).unwrap();
    std::fs::create_dir(folder.path().join("more")).unwrap();
    std::fs::write(folder.path().join("more/b.yml"), endpoint("b")).unwrap();
    let plan = load(folder.path(), &|_| None).unwrap();
    let keys: Vec<_> = plan
        .monitors
        .iter()
        .map(|monitor| monitor.key.as_str())
        .collect();
    assert_eq!(keys, ["_a", "_b"]);
    assert_eq!(plan.files.len(), 2);
}

#[test]
fn a_password_of_gatus_must_be_a_hash() {
    let file = |hash: &str| {
        format!(
            "security:\n  basic: {{username: ann, password-bcrypt-base64: '{hash}'}}\nendpoints:\n- {{name: a, url: 'http://localhost', conditions: ['[STATUS] == 200']}}\n"
        )
    };
    let hint = "`htpasswd -nBb NAME PASSWORD | cut -d: -f2 | tr -d '\\n' | base64 -w0` makes one";
    check(
        "config.yaml",
        &file("?"),
        &[&format!(
            "2:50 security.basic.password-bcrypt-base64: is not Base64 ({hint})"
        )],
    );
    check(
        "config.yaml",
        &file("c2VjcmV0"),
        &[&format!(
            "2:50 security.basic.password-bcrypt-base64: is not a bcrypt hash in Base64 ({hint})"
        )],
    );
}
