//! `jwt` of routes: tokens of an issuer on loopback, good and bad.

use std::collections::BTreeSet;
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use plimsoll_server::config::LogTarget;
use plimsoll_testkit::http::{HttpResponse, exchange, get, get_with};
use plimsoll_testkit::{Authority, IdentityProvider, MaterialFiles, Origin, Script, eventually};
use serde_json::{Value, json};

use crate::server::{Served, compiled};

fn provider() -> IdentityProvider {
    let provider = IdentityProvider::new("http://gateway.test/callback");
    provider.set(|state| state.algorithm = "ES256");
    provider
}

/// A gateway whose route has these keys of `jwt` beside issuer and audience.
fn gateway(provider: &IdentityProvider, origin: &Origin, keys: &str, proxy: &str) -> Served {
    let (issuer, to) = (provider.url(), origin.url(""));
    Served::routes(&format!(
        "[[route]]\nname = \"api\"\njwt = {{ issuer = \"{issuer}\", audience = \"api\", {keys} }}\nproxy = {{ to = \"{to}\", {proxy} }}\n"
    ))
}

fn with_token(served: &Served, path: &str, token: &str) -> HttpResponse {
    let field = format!("Authorization: Bearer {token}\r\n");
    get_with(served.address(), path, &field)
}

fn challenge(response: &HttpResponse) -> &str {
    response.field("www-authenticate").unwrap()
}

fn metric(served: &Served, line: &str) -> Option<u64> {
    let metrics = get(*served.addresses.last().unwrap(), "/metrics").into_text();
    let rest = metrics.lines().find_map(|it| it.strip_prefix(line))?;
    rest.trim().parse().ok()
}

#[test]
fn requests_with_a_token_pass_and_its_claims_are_places() {
    let (provider, origin) = (provider(), Origin::hello());
    let proxy = "headers = { x-user = \"{jwt.sub}\", x-roles = \"{jwt.claim:realm.roles}\", x-split = \"{jwt.claim:split}\", x-log = \"{user}\" }";
    let served = gateway(&provider, &origin, "", proxy);
    let claims =
        json!({ "sub": "ann", "realm": { "roles": ["a", "b"] }, "split": "x\r\nx-admin: 1" });
    for algorithm in ["ES256", "RS256"] {
        provider.set(|state| state.algorithm = algorithm);
        let field = format!(
            "Authorization: Bearer {}\r\nX-User: root\r\nX-Split: root\r\nX_Roles: root\r\n",
            provider.token(&claims)
        );
        let response = get_with(served.address(), "/", &field);
        assert_eq!(response.status, 200, "{response:?}");
        let head = origin.heads().pop().unwrap().to_ascii_lowercase();
        assert!(head.contains("x-user: ann\r\n"), "{head}");
        assert!(head.contains("x-roles: a,b\r\n"), "{head}");
        assert!(head.contains("x-log: ann\r\n"), "{head}");
        assert!(head.contains("authorization: bearer ey"), "{head}");
        // A value that cannot be a field is none, and the client's does not take its place.
        for other in ["root", "x-split", "x-admin", "x_roles"] {
            assert!(!head.contains(other), "{head}");
        }
    }
    assert_eq!(provider.requests("GET /jwks"), 1, "keys are kept");
}

#[test]
fn requests_without_an_accepted_token_do_not_reach_the_server() {
    let (provider, origin) = (provider(), Origin::hello());
    let keys = "claims = { role = [\"admin\", \"ops\"] }, realm = \"the \\\"API\\\"\"";
    let served = gateway(&provider, &origin, keys, "");
    let response = get(served.address(), "/");
    assert_eq!(response.status, 401);
    assert_eq!(challenge(&response), "Bearer realm=\"the API\"");
    // Another scheme is no token.
    let response = get_with(served.address(), "/", "Authorization: Basic YTpi\r\n");
    assert_eq!(challenge(&response), "Bearer realm=\"the API\"");
    let now = 1_000_000_000;
    let other = self::provider();
    for (token, reason) in [
        ("x".to_owned(), "the token is not a signed JSON Web Token"),
        ("x".repeat(20_000), "the token is longer than 16384 bytes"),
        (
            provider.token(&json!({ "iss": "https://other.test" })),
            "the token is of another issuer",
        ),
        (
            provider.token(&json!({ "aud": ["x", "API"] })),
            "the token is for another audience",
        ),
        (
            provider.token(&json!({ "exp": now })),
            "the token has expired",
        ),
        (
            provider.token(&json!({ "exp": null })),
            "the token has no expiry",
        ),
        (
            provider.token(&json!({ "nbf": 9_999_999_999_u64 })),
            "the token is not valid yet",
        ),
        (
            other.token(&json!({ "iss": provider.url() })),
            "the signature of the token is wrong",
        ),
    ] {
        let response = with_token(&served, "/", &token);
        assert_eq!(response.status, 401, "{reason}: {response:?}");
        let expected = format!(
            "Bearer realm=\"the API\", error=\"invalid_token\", error_description=\"{reason}\""
        );
        assert_eq!(challenge(&response), expected);
    }
    let response = with_token(&served, "/", &provider.token(&json!({ "role": "user" })));
    assert_eq!(response.status, 403);
    assert!(
        challenge(&response).contains("error=\"insufficient_scope\""),
        "{response:?}"
    );
    assert_eq!(origin.requests(), 0);
    let response = with_token(
        &served,
        "/",
        &provider.token(&json!({ "role": ["x", "ops"] })),
    );
    assert_eq!(response.status, 200, "{response:?}");
}

#[test]
fn a_request_with_two_tokens_gets_a_400() {
    let (provider, origin) = (provider(), Origin::hello());
    let keys = "from = [\"header\", \"header:x-token\", \"cookie:t\", \"query:t\"]";
    let served = gateway(&provider, &origin, keys, "");
    let token = provider.token(&json!({}));
    for fields in [
        format!("Authorization: Bearer {token}\r\nAuthorization: Bearer {token}\r\n"),
        format!("Authorization: Bearer {token}\r\nauthorization: Basic YTpi\r\n"),
        format!("X-Token: {token}\r\nx-token: {token}\r\n"),
        format!("Cookie: t={token}; t=x\r\n"),
    ] {
        let response = get_with(served.address(), "/", &fields);
        assert_eq!(response.status, 400, "{response:?}");
        assert!(challenge(&response).contains("error=\"invalid_request\""));
    }
    let response = get(served.address(), &format!("/?t={token}&t={token}"));
    assert_eq!(response.status, 400, "{response:?}");
    assert_eq!(origin.requests(), 0);
}

#[test]
fn tokens_are_found_in_fields_cookies_and_queries_and_can_be_withheld_from_the_server() {
    let (provider, origin) = (provider(), Origin::hello());
    let keys =
        "from = [\"header\", \"header:x-token\", \"cookie:t\", \"query:t\"], pass_on = false";
    let served = gateway(&provider, &origin, keys, "");
    let token = provider.token(&json!({}));
    for (path, fields) in [
        (
            "/a?x=1".to_owned(),
            format!("Authorization: bearer {token}\r\n"),
        ),
        ("/a?x=1".to_owned(), format!("X-Token: {token}\r\n")),
        (
            "/a?x=1".to_owned(),
            format!("Cookie: a=1; t={token}; b=2\r\n"),
        ),
        (format!("/a?t={token}&x=1"), String::new()),
    ] {
        let response = get_with(served.address(), &path, &fields);
        assert_eq!(response.status, 200, "{fields}: {response:?}");
        let head = origin.heads().pop().unwrap();
        assert!(!head.contains(&token), "{head}");
        assert!(head.starts_with("GET /a?x=1 HTTP"), "{head}");
        if fields.contains("a=1") {
            assert!(
                head.to_ascii_lowercase().contains("cookie: a=1; b=2\r\n"),
                "{head}"
            );
        }
    }
    let response = get(served.address(), &format!("/a?t={token}"));
    assert_eq!(response.status, 200);
    assert!(origin.heads().pop().unwrap().starts_with("GET /a HTTP"));
}

#[test]
fn an_expired_token_is_refused_although_it_was_verified_before() {
    let (provider, origin) = (provider(), Origin::hello());
    let served = gateway(&provider, &origin, "leeway = \"0s\"", "");
    let exp = seconds() + 2;
    let token = provider.token(&json!({ "exp": exp }));
    assert_eq!(with_token(&served, "/", &token).status, 200);
    eventually(|| {
        let response = with_token(&served, "/", &token);
        // Refused, and no earlier than it expires.
        assert!(response.status == 200 || seconds() >= exp, "{response:?}");
        response.status == 401 && challenge(&response).contains("the token has expired")
    });
}

fn seconds() -> u64 {
    use plimsoll_model::Clock as _;
    let now = plimsoll_wire::SystemClock.wall();
    now.duration_since(std::time::UNIX_EPOCH).unwrap().as_secs()
}

#[test]
fn replaced_keys_are_fetched_for_the_first_token_of_them_and_old_ones_hold_no_more() {
    let (provider, origin) = (provider(), Origin::hello());
    let served = gateway(&provider, &origin, "refetch = \"0s\"", "");
    let old = provider.token(&json!({}));
    assert_eq!(with_token(&served, "/", &old).status, 200);
    provider.rotate("second");
    provider.retire();
    assert_eq!(
        with_token(&served, "/", &old).status,
        200,
        "the keys are not read for it"
    );
    let new = provider.token(&json!({}));
    assert_eq!(with_token(&served, "/", &new).status, 200);
    // Remembered, but its key is gone.
    assert_eq!(with_token(&served, "/", &old).status, 401);
    assert_eq!(with_token(&served, "/", &new).status, 200);
}

#[test]
fn unknown_keys_do_not_make_a_fetch_each() {
    let (provider, origin) = (provider(), Origin::hello());
    let served = gateway(&provider, &origin, "refetch = \"1h\"", "");
    assert_eq!(
        with_token(&served, "/", &provider.token(&json!({}))).status,
        200
    );
    let stranger = self::provider();
    for number in 0..20 {
        stranger.set(|state| state.kid = format!("guess-{number}"));
        let token = stranger.token(&json!({ "iss": provider.url() }));
        let response = with_token(&served, "/", &token);
        assert_eq!(response.status, 401);
        assert!(challenge(&response).contains("the key of the token is not known"));
    }
    assert_eq!(provider.requests("GET /jwks"), 1);
}

#[test]
fn keys_rotate_under_load_without_a_refused_request() {
    let (provider, origin) = (provider(), Origin::hello());
    let (issuer, to) = (provider.url(), origin.url(""));
    let served = Served::new(&format!(
        "threads = 4\n[[listen]]\naddress = \"127.0.0.1:0\"\n[[route]]\njwt = {{ issuer = \"{issuer}\", audience = \"api\", refetch = \"0s\" }}\nproxy = \"{to}\"\n"
    ));
    let address = served.address();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let clients: Vec<_> = (0..3)
            .map(|_| {
                scope.spawn(|| {
                    let mut statuses = BTreeSet::new();
                    while !is_over.load(Ordering::Relaxed) {
                        let token = provider.token(&json!({}));
                        let field = format!("Authorization: Bearer {token}\r\n");
                        statuses.insert(get_with(address, "/", &field).status);
                    }
                    statuses
                })
            })
            .collect();
        for number in 0..10 {
            provider.rotate(&format!("load-{number}"));
            let field = format!("Authorization: Bearer {}\r\n", provider.token(&json!({})));
            assert_eq!(get_with(address, "/", &field).status, 200);
        }
        is_over.store(true, Ordering::Relaxed);
        for client in clients {
            let statuses = client.join().unwrap();
            assert!(statuses.iter().all(|it| *it == 200), "{statuses:?}");
        }
    });
}

#[test]
fn keys_stay_while_the_issuer_is_away_and_without_any_there_is_a_503() {
    let (provider, origin) = (provider(), Origin::hello());
    provider.set(|state| state.is_away = true);
    let (issuer, to) = (provider.url(), origin.url(""));
    let text = format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\n[admin]\naddress = \"127.0.0.1:0\"\n[[route]]\nname = \"api\"\njwt = {{ issuer = \"{issuer}\", audience = \"api\", refresh = \"1s\" }}\nproxy = \"{to}\"\n"
    );
    let served = Served::new(&text);
    let token = provider.token(&json!({}));
    let response = with_token(&served, "/", &token);
    assert_eq!(response.status, 503, "{response:?}");
    assert_eq!(response.field("retry-after"), Some("5"));
    provider.set(|state| state.is_away = false);
    eventually(|| with_token(&served, "/", &token).status == 200);
    provider.set(|state| state.is_away = true);
    let failed =
        format!("plimsoll_gateway_jwt_key_reads_total{{source=\"{issuer}\",outcome=\"failed\"}} ");
    let before = metric(&served, &failed).unwrap();
    eventually(|| metric(&served, &failed).unwrap() > before);
    let fresh = provider.token(&json!({ "sub": "u-2" }));
    assert_eq!(with_token(&served, "/", &fresh).status, 200);
    let source = format!("{{source=\"{issuer}\"}} ");
    assert_eq!(
        metric(&served, &format!("plimsoll_gateway_jwt_keys{source}")),
        Some(2)
    );
    assert!(
        metric(
            &served,
            &format!("plimsoll_gateway_jwt_keys_age_seconds{source}")
        )
        .is_some()
    );
    let outcome = |name: &str| {
        let line = format!(
            "plimsoll_gateway_guard_total{{guard=\"jwt\",route=\"api\",outcome=\"{name}\"}} "
        );
        metric(&served, &line).unwrap()
    };
    assert!(outcome("verified") >= 2 && outcome("unavailable") >= 1);
}

#[test]
fn keys_of_files_and_of_the_configuration_need_no_issuer() {
    let (provider, origin, files) = (provider(), Origin::hello(), MaterialFiles::new());
    let mut keys = Value::Null;
    provider.set(|state| keys = state.keys());
    let file = files.write("keys.json", &keys.to_string());
    let key = &keys["keys"][1];
    let part = |name: &str| key[name].as_str().unwrap();
    let inline = format!(
        "jwks = {{ keys = [{{ kty = \"EC\", crv = \"P-256\", kid = \"{}\", x = \"{}\", y = \"{}\" }}] }}",
        part("kid"),
        part("x"),
        part("y")
    );
    let of_file = format!("jwks = \"{}\"", file.display());
    for keys in [inline, of_file] {
        let served = gateway(&provider, &origin, &keys, "");
        assert_eq!(
            with_token(&served, "/", &provider.token(&json!({}))).status,
            200
        );
    }
    assert_eq!(provider.requests("GET /jwks"), 0);
    // A file that changes is read again, and one that is broken is not.
    let served = gateway(
        &provider,
        &origin,
        &format!("jwks = \"{}\"", file.display()),
        "",
    );
    fs::write(&file, "{").unwrap();
    provider.rotate("second");
    provider.set(|state| keys = state.keys());
    let new = provider.token(&json!({}));
    assert_eq!(with_token(&served, "/", &new).status, 401);
    fs::write(&file, keys.to_string()).unwrap();
    eventually(|| with_token(&served, "/", &new).status == 200);
}

#[test]
fn claims_are_known_to_response_fields_and_logs() {
    let provider = provider();
    let issuer = provider.url();
    let files = MaterialFiles::new();
    let log = files.path("access.log");
    let served = Served::new(&format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\n[log]\nfile = \"{}\"\nformat = \"{{user}} {{jwt.claim:team}} {{status}}\"\n\
         [[route]]\njwt = {{ issuer = \"{issuer}\", audience = \"api\" }}\nresponse_headers = {{ set = {{ x-who = \"{{jwt.sub}} {{jwt.claim:team}}\" }} }}\nrespond = {{}}\n",
        log.display()
    ));
    let path = log.clone();
    let opened = served.log().unwrap();
    let _writer = opened
        .write_to(Box::new(move || LogTarget::open_file(&path)))
        .unwrap();
    let token = provider.token(&json!({ "sub": "ann", "team": "red" }));
    for _ in 0..2 {
        let response = with_token(&served, "/", &token);
        assert_eq!(response.field("x-who"), Some("ann red"), "{response:?}");
    }
    get(served.address(), "/");
    let lines = || fs::read_to_string(&log).unwrap_or_default();
    eventually(|| lines().lines().count() == 3);
    let lines = lines();
    let lines: Vec<_> = lines.lines().collect();
    assert_eq!(lines, ["ann red 200", "ann red 200", "- - 401"]);
}

#[test]
fn a_listener_can_want_tokens_and_routes_choose_by_claims() {
    let provider = provider();
    let issuer = provider.url();
    let served = Served::new(&format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\njwt = {{ issuer = \"{issuer}\", audience = \"api\", optional = true }}\n\
         [[route]]\nplaces = {{ \"jwt.claim:role\" = \"admin\" }}\nrespond = {{ body = \"admin\" }}\n\
         [[route]]\nplaces = {{ \"jwt.sub\" = true }}\nrespond = {{ body = \"user\" }}\n\
         [[route]]\nrespond = {{ body = \"nobody\" }}\n"
    ));
    let admin = provider.token(&json!({ "role": "admin" }));
    assert_eq!(with_token(&served, "/", &admin).text(), "admin");
    let user = provider.token(&json!({ "role": "user" }));
    assert_eq!(with_token(&served, "/", &user).text(), "user");
    assert_eq!(get(served.address(), "/").text(), "nobody");
    // A token is optional, a wrong one is refused.
    assert_eq!(with_token(&served, "/", "wrong").status, 401);
}

#[test]
fn a_limit_by_a_claim_counts_who_has_proved_it() {
    let provider = provider();
    let issuer = provider.url();
    let served = Served::routes(&format!(
        "[[route]]\njwt = {{ issuer = \"{issuer}\", audience = \"api\" }}\n\
         rate_limit = {{ requests = 1, per = \"1h\", key = \"{{jwt.sub}}\" }}\nrespond = {{ body = \"fine\" }}\n"
    ));
    for name in ["ann", "bob"] {
        let token = provider.token(&json!({ "sub": name }));
        assert_eq!(with_token(&served, "/", &token).status, 200);
        assert_eq!(with_token(&served, "/", &token).status, 429);
        assert_eq!(get(served.address(), "/").status, 401);
    }
}

#[test]
fn an_address_or_a_token_is_enough_by_satisfy() {
    let provider = provider();
    let issuer = provider.url();
    for (network, expected) in [("127.0.0.0/8", 200), ("10.0.0.0/8", 401)] {
        let served = Served::routes(&format!(
            "[[route]]\naddresses = {{ allow = [\"{network}\"] }}\nsatisfy = \"any\"\n\
             jwt = {{ issuer = \"{issuer}\", audience = \"api\" }}\nrespond = {{ body = \"fine\" }}\n"
        ));
        assert_eq!(get(served.address(), "/").status, expected);
        let token = provider.token(&json!({}));
        assert_eq!(with_token(&served, "/", &token).status, 200);
    }
}

#[test]
fn a_reload_keeps_the_keys() {
    let (provider, origin) = (provider(), Origin::hello());
    let (issuer, to) = (provider.url(), origin.url(""));
    let text = |route: &str| {
        format!(
            "[[listen]]\naddress = \"127.0.0.1:0\"\n[[route]]\nname = \"{route}\"\njwt = {{ issuer = \"{issuer}\", audience = \"api\" }}\nproxy = \"{to}\"\n"
        )
    };
    let mut served = Served::new(&text("a"));
    let token = provider.token(&json!({}));
    assert_eq!(with_token(&served, "/", &token).status, 200);
    provider.set(|state| state.is_away = true);
    served.reload(&text("b"));
    assert_eq!(with_token(&served, "/", &token).status, 200);
    assert_eq!(provider.requests("GET /jwks"), 1);
}

#[test]
fn a_cache_does_not_send_what_was_for_the_owner_of_another_token() {
    let answer = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 2\r\n\r\nhi";
    let origin = Origin::scripted(Script::serve(answer));
    let provider = provider();
    let served = gateway(&provider, &origin, "pass_on = false", "cache = true");
    for name in ["ann", "bob"] {
        let token = provider.token(&json!({ "sub": name }));
        assert_eq!(with_token(&served, "/", &token).status, 200);
    }
    assert_eq!(origin.requests(), 2);
}

#[test]
fn each_of_several_issuers_has_keys_and_rules_of_its_own() {
    let (staff, shop, typed) = (provider(), provider(), provider());
    let text = format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\n[[route]]\nrespond = {{ template = \"{{jwt.iss}} {{jwt.sub}}\" }}\n\
         [[route.jwt]]\nissuer = \"{}\"\naudience = \"api\"\nrefetch = \"0s\"\n\
         [[route.jwt]]\nissuer = \"{}\"\naudience = \"shop\"\nclaims = {{ role = \"buyer\" }}\n\
         [[route.jwt]]\nissuer = \"{}\"\naudience = \"api\"\ntype = \"at+jwt\"\n",
        staff.url(),
        shop.url(),
        typed.url()
    );
    let document = serde_json::to_value(toml::from_str::<toml::Table>(&text).unwrap()).unwrap();
    let schema = serde_json::from_str(plimsoll_server::config::SCHEMA).unwrap();
    jsonschema::validate(&schema, &document).unwrap();
    let served = Served::new(&text);
    let buyer = json!({ "aud": "shop", "role": "buyer", "sub": "bob" });
    let accepted = [
        (
            staff.token(&json!({ "sub": "ann" })),
            format!("{} ann", staff.url()),
        ),
        (shop.token(&buyer), format!("{} bob", shop.url())),
    ];
    for (token, expected) in &accepted {
        for _ in 0..2 {
            let response = with_token(&served, "/", token);
            assert_eq!((response.status, response.text()), (200, expected.as_str()));
        }
    }
    let of_staff = json!({ "iss": staff.url(), "aud": "api" });
    for (token, status, reason) in [
        // The shop signs in the name of the staff.
        (shop.token(&of_staff), 401, "signature"),
        (shop.token(&json!({})), 401, "another audience"),
        (shop.token(&json!({ "aud": "shop" })), 403, "`role`"),
        (staff.token(&buyer), 401, "another audience"),
        (
            staff.token(&json!({ "iss": "https://other.test" })),
            401,
            "another issuer",
        ),
        (staff.token(&json!({ "iss": null })), 401, "another issuer"),
        ("a.b.c".to_owned(), 401, "another issuer"),
        (typed.token(&json!({})), 401, "the type `JWT`"),
    ] {
        let response = with_token(&served, "/", &token);
        assert_eq!(response.status, status, "{response:?}");
        assert!(
            challenge(&response).contains(reason),
            "{reason}: {response:?}"
        );
    }
    // Keys of one that change leave what is remembered of the other.
    staff.rotate("second");
    assert_eq!(
        with_token(&served, "/", &staff.token(&json!({}))).status,
        200
    );
    assert_eq!(with_token(&served, "/", &accepted[1].0).status, 200);
    assert_eq!(shop.requests("GET /jwks"), 1);
    let twice = text.replace(&shop.url(), &staff.url());
    let problems = compiled(&twice).unwrap_err();
    assert!(
        problems[0]
            .to_string()
            .contains("is an issuer in more than one table"),
        "{problems:?}"
    );
    let odd = text.replace("claims = { role = \"buyer\" }", "from = \"cookie:a\"");
    assert!(
        compiled(&odd).unwrap_err()[0]
            .to_string()
            .contains("unknown key")
    );
}

#[test]
fn mistakes_are_reported_with_what_to_do() {
    let text = r#"
[[listen]]
address = "127.0.0.1:0"
[[route]]
jwt = { }
respond = {}
[[route]]
jwt = { issuer = "https://id.test", audience = "a", jwks = "http://id.test/keys" }
respond = {}
[[route]]
jwt = { issuer = ["https://a.test", "https://b.test"], audience = [], algorithms = ["HS256"], from = "body", leeway = "1h", claims = { a = "" } }
respond = {}
[[route]]
jwt = { issuer = "https://id.test", audience = "a", jwks = { keys = [] } }
respond = {}
[[route]]
jwt = { issuer = "https://id.test", audience = "a", ca = "/no/such/file" }
respond = {}
"#;
    let problems = compiled(text).unwrap_err();
    let problems: Vec<_> = problems.iter().map(ToString::to_string).collect();
    for expected in [
        "route[1].jwt: `issuer` is missing",
        "route[1].jwt: `audience` is missing",
        "route[2].jwt.jwks: must begin with `https://`; `http://` only on localhost",
        "route[3].jwt.audience: is an empty list",
        "route[3].jwt.algorithms: `HS256` is not accepted; there are RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384, EdDSA",
        "route[3].jwt.from: `body` is not known; there are header, header:NAME, cookie:NAME and query:NAME",
        "route[3].jwt: `leeway` is 10 minutes at most",
        "route[3].jwt.claims.a: is empty",
        "route[3].jwt: `jwks` is missing",
        "route[4].jwt.jwks: has no public key for signatures",
        "route[5].jwt.ca: ",
    ] {
        let is_there = problems.iter().any(|it| it.starts_with(expected));
        assert!(is_there, "{expected}: {problems:#?}");
    }
}

#[test]
fn keys_are_fetched_by_tls_from_whom_the_configuration_trusts_and_within_limits() {
    let (provider, origin, files) = (provider(), Origin::hello(), MaterialFiles::new());
    let mut keys = Value::Null;
    provider.set(|state| keys = state.keys());
    let authority = Authority::new();
    let ca = files.write("ca.pem", &authority.pem());
    let leaf = authority.issue(&["127.0.0.1"]);
    let serving = |status: &str, fields: &str, content: String| {
        let length = content.len();
        let answer =
            format!("HTTP/1.1 {status}\r\n{fields}Content-Length: {length}\r\n\r\n{content}");
        Origin::builder()
            .tls(leaf.server_config())
            .script(move |_| Script::serve(answer.clone()))
            .start()
    };
    let content = keys.to_string();
    let elsewhere = serving("200 OK", "", content.clone());
    let redirect = format!("Location: {}\r\n", elsewhere.url("/keys"));
    let token = provider.token(&json!({}));
    for (source, expected) in [
        (serving("200 OK", "", content.clone()), 200),
        (
            serving("200 OK", "", format!("{content}{}", " ".repeat(600_000))),
            503,
        ),
        (serving("302 Found", &redirect, String::new()), 503),
        (serving("404 Not Found", "", content.clone()), 503),
        (serving("200 OK", "", "<html>".to_owned()), 503),
    ] {
        let keys = format!(
            "jwks = \"{}\", ca = \"{}\"",
            source.url("/keys"),
            ca.display()
        );
        let served = gateway(&provider, &origin, &keys, "");
        assert_eq!(with_token(&served, "/", &token).status, expected);
        assert!(source.requests() >= 1);
    }
    // Of an authority that is not trusted.
    let source = serving("200 OK", "", content);
    let keys = format!("jwks = \"{}\"", source.url("/keys"));
    let served = gateway(&provider, &origin, &keys, "");
    assert_eq!(with_token(&served, "/", &token).status, 503);
    assert_eq!(source.requests(), 0);
    assert_eq!(elsewhere.requests(), 0, "no redirect is followed");
}

#[test]
fn a_preflight_needs_no_token() {
    let provider = provider();
    let issuer = provider.url();
    let served = Served::routes(&format!(
        "[[route]]\njwt = {{ issuer = \"{issuer}\", audience = \"api\" }}\n\
         cors = {{ origins = [\"https://app.test\"], methods = [\"PUT\"], headers = [\"authorization\"] }}\nrespond = {{}}\n"
    ));
    let request = "OPTIONS / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nOrigin: https://app.test\r\n\
                   Access-Control-Request-Method: PUT\r\nAccess-Control-Request-Headers: authorization\r\n\r\n";
    let response = exchange(served.address(), request.as_bytes());
    assert_eq!(response.status, 204, "{response:?}");
    let response = get_with(served.address(), "/", "Origin: https://app.test\r\n");
    assert_eq!(response.status, 401);
    assert_eq!(
        response.field("access-control-allow-origin"),
        Some("https://app.test")
    );
}
