use super::*;

const TEXT: &str = r#"
    name = "a"
    [http]
    url = "https://u:three@a.example/x?api_key=four&y=1"
    bearer = "one"
    body = '{"password": "five"}'
    [http.headers]
    X-Api-Key = "two"
    accept = "text/html"
"#;

fn whole() -> Table {
    TEXT.parse().unwrap()
}

fn shown() -> Table {
    let mut shown = whole();
    mask(&mut shown);
    shown
}

fn set(definition: &mut Table, key: &str, value: impl Into<Value>) {
    if let Some(Value::Table(http)) = definition.get_mut("http") {
        http.insert(key.to_owned(), value.into());
    }
}

#[test]
fn credentials_are_masked_and_masks_that_come_back_change_nothing() {
    let text = shown().to_string();
    for secret in ["one", "two", "three", "four", "five"] {
        assert!(!text.contains(secret), "{text}");
    }
    assert!(
        text.contains("text/html") && text.contains("&y=1"),
        "{text}"
    );
    assert!(is_masked(&shown()) && !is_masked(&whole()));
    assert!(has_credentials(&whole()) && !has_credentials(&shown()));
    let mut back = shown();
    unmask(&mut back, &whole()).unwrap();
    assert_eq!(back, whole());
    let mut back = shown();
    set(&mut back, "bearer", "six");
    set(
        &mut back,
        "url",
        "https://********@a.example:443/other?api_key=********",
    );
    unmask(&mut back, &whole()).unwrap();
    assert_eq!(back["http"]["bearer"].as_str(), Some("six"));
    assert_eq!(
        back["http"]["url"].as_str(),
        Some("https://u:three@a.example:443/other?api_key=four")
    );
    assert_eq!(back["http"]["headers"], whole()["http"]["headers"]);
}

#[test]
fn a_mask_without_a_value_in_its_place_is_refused() {
    let error = unmask(&mut shown(), &Table::new()).unwrap_err().to_string();
    assert!(error.contains("leads elsewhere"), "{error}");
    for (key, value) in [
        ("url", "https://********@a.example/?other_token=********"),
        ("url", "https://a.example/********"),
        ("url", "https://x:********@a.example/"),
        ("url", "https://x:********@a.example/?api_key=********"),
        ("url", "https://********:three@a.example/?api_key=********"),
        ("bearer", "x********"),
        ("method", "********"),
        ("body", "********"),
        ("body", "{\"secret\": \"********\"}"),
    ] {
        let mut moved = shown();
        set(&mut moved, key, value);
        let error = unmask(&mut moved, &whole()).unwrap_err().to_string();
        assert!(error.contains("is a mask"), "{key} {value}: {error}");
    }
    let mut moved = shown();
    let headers = Table::from_iter([("x-other-key".to_owned(), MASK.into())]);
    set(&mut moved, "headers", headers);
    let error = unmask(&mut moved, &whole()).unwrap_err().to_string();
    assert!(error.contains("headers.x-other-key"), "{error}");
}

#[test]
fn credentials_stay_with_their_target() {
    let urls = [
        "https://evil.example/",
        "http://a.example/",
        "https://a.example:8443/",
        "https://a.example.evil.example/",
        "https://a.example@evil.example/",
        "a.example",
    ];
    let urls = urls.map(|url| ("url", Value::from(url)));
    let routes = [
        ("insecure", Value::Boolean(true)),
        ("name_server", "192.0.2.1".into()),
    ];
    // An unknown key decides, unless the list has it.
    let unknown =
        ["proxy", "server_name", "sni", "connect_to", "ca"].map(|key| (key, "evil.example".into()));
    for (key, value) in urls.into_iter().chain(routes).chain(unknown) {
        let mut elsewhere = shown();
        set(&mut elsewhere, key, value.clone());
        let error = unmask(&mut elsewhere, &whole()).unwrap_err().to_string();
        assert!(error.contains("leads elsewhere"), "{value}: {error}");
    }
    for field in ["host", "Host", ":authority", "X-Forwarded-Host"] {
        for present in [None, Some("a.example")] {
            let mut before = whole();
            if let (Some(present), Some(Value::Table(headers))) =
                (present, before["http"].get_mut("headers"))
            {
                headers.insert(field.to_owned(), present.into());
            }
            let mut elsewhere = before.clone();
            mask(&mut elsewhere);
            let mut same = elsewhere.clone();
            unmask(&mut same, &before).unwrap();
            if let Some(Value::Table(headers)) = elsewhere["http"].get_mut("headers") {
                headers.insert(field.to_owned(), "evil.example".into());
            }
            let error = unmask(&mut elsewhere, &before).unwrap_err();
            let error = error.to_string();
            assert!(error.contains("leads elsewhere"), "{field}: {error}");
        }
    }
    let mut harmless = shown();
    set(&mut harmless, "redirects", 3);
    set(&mut harmless, "insecure", false);
    unmask(&mut harmless, &whole()).unwrap();
}

#[test]
fn a_target_without_a_table_has_credentials_too() {
    let whole: Table = "name = 'token: x'\nhttp = 'http://u:pw@h/?token=t'"
        .parse()
        .unwrap();
    let mut shown = whole.clone();
    mask(&mut shown);
    assert_eq!(
        shown["http"].as_str(),
        Some("http://********@h/?token=********")
    );
    assert_eq!(shown["name"], whole["name"]);
    let mut moved = shown.clone();
    moved["http"] = "http://********@other/".into();
    assert!(unmask(&mut moved, &whole).is_err());
    unmask(&mut shown, &whole).unwrap();
    assert_eq!(shown, whole);
}

#[test]
fn a_target_without_a_scheme_has_credentials_too() {
    for text in [
        "http = 'u:pw@h/?token=t'",
        "http = { url = 'u:pw@h/?token=t' }",
        "tcp = { to = 'u:pw@h:80' }",
    ] {
        let whole: Table = text.parse().unwrap();
        let mut shown = whole.clone();
        mask(&mut shown);
        let text = shown.to_string();
        assert!(
            text.contains("********@h") && !text.contains("pw"),
            "{text}"
        );
        assert!(!text.contains("://"), "{text}");
        unmask(&mut shown, &whole).unwrap();
        assert_eq!(shown, whole);
        assert!(!known_secrets(&whole).hide("is pw").contains("pw"));
    }
}

#[test]
fn the_credentials_of_a_definition_are_known() {
    let secrets = known_secrets(&whole());
    for secret in ["one", "two", "three", "four", "five"] {
        assert!(
            !secrets.hide(&format!("it is {secret}.")).contains(secret),
            "{secret}"
        );
    }
    assert_eq!(secrets.hide("text/html"), "text/html");
    let job: Table = "heartbeat = { token = '0123456789abcdef', every = '1h' }"
        .parse()
        .unwrap();
    assert!(
        known_secrets(&job)
            .hide("/ping/0123456789abcdef")
            .ends_with("********")
    );
}

#[test]
fn logins_in_conversations_are_masked_and_come_back() {
    let whole: Table = r#"
        tcp = { to = "mail.example:25", talk = [
            { expect = "^220", send = "EHLO a\r\n" },
            { expect = "^250 ", send = "AUTH LOGIN\r\n" },
            { expect = "^334", send = "YW5u\r\n" },
            { expect = "^334", send = "c2VjcmV0\r\n" },
            { expect = "^235", send = "QUIT\r\n" },
        ] }
    "#
    .parse()
    .unwrap();
    let mut shown = whole.clone();
    mask(&mut shown);
    let text = shown.to_string();
    assert!(!text.contains("YW5u") && !text.contains("c2Vj"), "{text}");
    assert!(text.contains("QUIT") && has_credentials(&whole));
    let mut back = shown.clone();
    unmask(&mut back, &whole).unwrap();
    assert_eq!(back, whole);
    let secrets = known_secrets(&whole);
    assert!(!secrets.hide("535 secret is wrong").contains("secret"));
    // As the text of a mail, a password would leave the server.
    let steps = |table: &mut Table| table["tcp"]["talk"].as_array().unwrap().clone();
    let mut other = shown.clone();
    let mut moved = steps(&mut other);
    moved.insert(3, toml::toml! { send = "*\r\nDATA\r\n" }.into());
    other["tcp"]["talk"] = moved.into();
    let error = unmask(&mut other, &whole).unwrap_err().to_string();
    assert!(error.contains("leads elsewhere"), "{error}");
    let sent: Table = r#"tcp = { to = "a:6379", send = "AUTH secret\r\nPING\r\n" }"#
        .parse()
        .unwrap();
    let mut shown = sent.clone();
    mask(&mut shown);
    assert_eq!(
        shown["tcp"]["send"].as_str(),
        Some("AUTH ********\r\nPING\r\n")
    );
    let mut back = shown.clone();
    unmask(&mut back, &sent).unwrap();
    assert_eq!(back, sent);
    shown["tcp"]["send"] = "LPUSH x ********\r\n".into();
    assert!(
        unmask(&mut shown, &sent).is_err(),
        "a part of it is not known"
    );
}

#[test]
fn a_password_beside_its_user_comes_back_and_is_known_as_it_is_sent() {
    for text in [
        "smtp = { to = 'mail.example', user = 'ann', password = 'hunter22' }",
        "ldap = { url = 'ldap://a.example', bind = 'cn=ann', password = 'hunter22' }",
        "snmp = { to = 'a.example', community = 'hunter22' }",
        "nats = { url = 'nats://a.example', auth_token = 'hunter22' }",
    ] {
        let whole: Table = text.parse().unwrap();
        let mut shown = whole.clone();
        mask(&mut shown);
        assert!(!shown.to_string().contains("hunter22"), "{text}");
        unmask(&mut shown, &whole).unwrap();
        assert_eq!(shown, whole);
    }
    let whole: Table = "smtp = { to = 'a', user = 'ann', password = 'hunter22' }"
        .parse()
        .unwrap();
    let secrets = known_secrets(&whole);
    for echo in ["hunter22", "AGFubgBodW50ZXIyMg==", "aHVudGVyMjI="] {
        assert_eq!(secrets.hide(echo), MASK);
    }
    for other in [
        "smtp = { to = 'b', user = 'ann', password = '********' }",
        "smtp = { to = 'a', user = 'bob', password = '********' }",
        "smtp = { to = 'a', user = 'ann', password = '********', insecure = true }",
    ] {
        let mut other: Table = other.parse().unwrap();
        assert!(unmask(&mut other, &whole).is_err(), "{other}");
    }
}
