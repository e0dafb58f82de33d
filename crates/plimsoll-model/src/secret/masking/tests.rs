use proptest::prelude::*;

use super::*;

fn check(arguments: &[&str], expected: &str) {
    let masked = masked_arguments(arguments.iter().map(|&it| it.to_owned()));
    assert_eq!(masked.join(" "), expected);
}

#[test]
fn credentials_of_flags_are_masked() {
    check(&["load", "-a", "user:hunter2", "-c", "5"], "load -a … -c 5");
    check(&["-auser:hunter2"], "-a…");
    check(&["--basic-auth=user:hunter2"], "--basic-auth=…");
    check(&["--bearer", "hunter2"], "--bearer …");
    check(&["--digest=me:hunter2"], "--digest=…");
    check(&["curl", "-u", "me:hunter2"], "curl -u …");
    check(&["curl", "-ume:hunter2"], "curl -u…");
    check(&["python3", "-u", "server.py"], "python3 -u server.py");
    check(
        &["--api-token=abc", "--token-file=abc"],
        "--api-token=… --token-file=abc",
    );
    check(&["--cookies", "http://h/"], "--cookies http://h/");
}

#[test]
fn header_fields_are_masked_however_they_are_given() {
    check(
        &[
            "-H",
            "Authorization: Bearer abc",
            "-H",
            "accept: text/plain",
        ],
        "-H Authorization:… -H accept: text/plain",
    );
    check(&["-HAuthorization: Bearer abc"], "-HAuthorization:…");
    check(&["-H=X-Api-Key: abc def"], "-H=X-Api-Key:…");
    check(&["--header=x-api-key: abc"], "--header=x-api-key:…");
    check(
        &["--push-header", "X-Token: abc"],
        "--push-header X-Token:…",
    );
}

#[test]
fn variables_and_bodies_are_masked() {
    check(
        &["--var", "token=two words", "--var", "TOKEN", "--var=a=b"],
        "--var token=… --var TOKEN --var=a=b",
    );
    check(&["-d", "password=hunter2"], "-d password=…");
    check(&["-dpassword=hunter2"], "-dpassword=…");
    check(
        &["-d", "user=me&password=hunter2&x=1"],
        "-d user=me&password=…&x=1",
    );
    check(
        &[
            "-d",
            r#"{"user": "me", "password": "hun\"ter2", "pwd": 4711}"#,
        ],
        r#"-d {"user": "me", "password": "…", "pwd": …}"#,
    );
    check(
        &["-d", r#"{"tokens": ["a", {"b": "]"}], "n": 1}"#],
        r#"-d {"tokens": …, "n": 1}"#,
    );
}

#[test]
fn urls_are_masked() {
    check(
        &["-x", "http://me:hunter2@proxy:3128/", "http://127.0.0.1/"],
        "-x http://…@proxy:3128/ http://127.0.0.1/",
    );
    check(&["--otlp=http://tok3n@host/v1"], "--otlp=http://…@host/v1");
    check(
        &["http://host/a?x=1&api_key=abc&y=2#z"],
        "http://host/a?x=1&api_key=…&y=2#z",
    );
    check(&["http://host/a@b"], "http://host/a@b");
    check(
        &["http://host/?token=[a,b]c&password=[a]&api_key=a]b]&z=1"],
        "http://host/?token=…&password=…&api_key=…]&z=1",
    );
}

#[test]
fn a_command_line_may_be_one_argument() {
    check(
        &["compare", "wrk -a me:hunter2 -H 'X-Token: a' http://h/"],
        "compare wrk -a … -H 'X-Token:…' http://h/",
    );
}

#[test]
fn a_quote_that_is_not_closed_is_no_endless_command_line() {
    check(&["a:' -b token=x"], "a:' -b token=…");
}

#[test]
fn command_lines_keep_their_form() {
    let cases = [
        (
            "wrk -H 'Authorization: Bearer a b'  -d 5s http://h/",
            "wrk -H 'Authorization:…'  -d 5s http://h/",
        ),
        (
            r#"curl -u "me:hunter2" -d'password=x y' http://t@h/"#,
            r#"curl -u "…" -d'password=…' http://…@h/"#,
        ),
        ("API_TOKEN=abc ./run --x", "API_TOKEN=… ./run --x"),
        ("nginx -c /etc/nginx.conf", "nginx -c /etc/nginx.conf"),
    ];
    for (line, expected) in cases {
        assert_eq!(masked_command_line(line), expected);
    }
}

#[test]
fn documents_are_masked() {
    let plan = "[[load]]\nurl = \"http://u:p@h/?token=a\"\ncommand = \"oha -H 'X-Token: a' {url}\"\npassword = \"x\"\ncookies = true\n";
    let expected = "[[load]]\nurl = \"http://…@h/?token=…\"\ncommand = \"oha -H 'X-Token: …' {url}\"\npassword = \"…\"\ncookies = true\n";
    assert_eq!(masked_text(plan), expected);
    assert_eq!(
        masked_text("Authorization: Basic abc\r\naccept: */*"),
        "Authorization: …\r\naccept: */*"
    );
}

#[test]
fn masks_that_come_back_stand_for_what_is_there() {
    let whole = "https://u:p@h/a?x=1&api_key=one&token=two&api_key=three";
    let shown = masked_with(whole, "****");
    assert_eq!(
        shown,
        "https://****@h/a?x=1&api_key=****&token=****&api_key=****"
    );
    assert_eq!(unmasked(&shown, "****", whole).unwrap(), whole);
    for (text, expected) in [
        // Other parts may change, and the order of names.
        (
            "https://****@h/b?token=****&y=2&api_key=****",
            Ok("https://u:p@h/b?token=two&y=2&api_key=one"),
        ),
        (
            "https://h/a?api_key=new&api_key=****",
            Ok("https://h/a?api_key=new&api_key=three"),
        ),
        ("https://h/", Ok("https://h/")),
        ("https://h/?secret=****", Err("secret")),
        (
            "https://h/?api_key=****&api_key=****&api_key=****",
            Err("api_key"),
        ),
        ("https://h/****", Err("")),
        ("https://h/?x=****", Err("")),
        // Another mask that has a secret does not excuse one that has none.
        ("https://x:****@h/?api_key=****", Err("")),
        ("https://h/****?api_key=****", Err("")),
    ] {
        let found = unmasked(text, "****", whole);
        assert_eq!(
            found.as_deref(),
            expected
                .map_err(|name| MaskWithoutSecret(name.to_owned()))
                .as_deref(),
            "{text}"
        );
    }
    let body = r#"{"user": "me", "password": "hunter2"}"#;
    let shown = masked_with(body, "****");
    assert_eq!(unmasked(&shown, "****", body).unwrap(), body);
}

#[test]
fn messages_are_masked_within_their_urls_only() {
    for (message, expected) in [
        (
            "token: expected, https://u:p@h/?api_key=q&a=1: refused",
            "token: expected, https://…@h/?api_key=…&a=1: refused",
        ),
        (
            "redirected to `http://h/?token=a` and \"ws://p@h\"",
            "redirected to `http://h/?token=…` and \"ws://…@h\"",
        ),
        (
            "[BODY].token == a is not met",
            "[BODY].token == a is not met",
        ),
    ] {
        assert_eq!(masked_urls(message), expected);
    }
}

#[test]
fn fields_with_secrets_are_recognised() {
    for name in [
        "Authorization",
        "cookie",
        "X-Api-Key",
        "x-auth",
        "X-Session",
        "X-Vault-Token",
    ] {
        assert!(is_secret_field(name), "{name}");
    }
    for name in ["accept", "user-agent", "x-request-id", "content-type"] {
        assert!(!is_secret_field(name), "{name}");
    }
}

#[test]
fn names_of_secrets_are_recognised() {
    for name in [
        "Authorization",
        "set-cookie",
        "X-API-Key",
        "clientSecret",
        "pwd",
        "sid",
    ] {
        assert!(is_secret_name(name), "{name}");
    }
    for name in ["accept", "key", "id", "author", "design", "content-type"] {
        assert!(!is_secret_name(name), "{name}");
    }
}

proptest! {
    /// Any text is handled; what a second pass finds is only what the first one left of a value.
    #[test]
    fn any_text_can_be_masked(text in "[a-z =:&?@/\"'{}\\[\\]…\\\\\n-]{0,60}|(token|password)[=:] ?\\PC{0,20}") {
        let once = masked_text(&text).into_owned();
        prop_assert!(masked_text(&once).chars().count() <= once.chars().count());
        masked_command_line(&text);
    }

    /// No value of a secret name survives in a URL's query.
    #[test]
    fn no_query_value_survives(value in "[A-Z0-9]{4,20}", bracketed in "\\[?[a-z]{0,4}[\\]}]?") {
        let url = format!("http://host/path?a=1&access_token={bracketed}{value}&b=2");
        prop_assert!(!masked_text(&url).contains(&value));
    }
}
