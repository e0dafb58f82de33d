//! `auth` of routes: a service authorizes each request, for every action.

use plimsoll_client::forward::Speaks;
use plimsoll_testkit::http::{HttpResponse, connect, exchange, get, get_with, talk};
use plimsoll_testkit::{Origin, Script, WebSocketOrigin, authorization_service, user_echo};
use tungstenite::Message;

use crate::client::{pool, run_local, websocket};
use crate::server::Served;

fn post(served: &Served, path: &str, fields: &str, body: &str) -> HttpResponse {
    let length = body.len();
    let request = format!(
        "POST {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n{fields}Content-Length: {length}\r\n\r\n{body}"
    );
    exchange(served.address(), request.as_bytes())
}

const ANN: &str = "Cookie: session=ann\r\n";

#[test]
fn a_service_keeps_clients_from_every_action() {
    let (service, origin) = (authorization_service(), user_echo());
    let auth = format!(
        "auth = {{ to = \"{}\", copy = [\"x-user\"], to_client = [\"x-level\"] }}",
        service.url("/check")
    );
    let served = Served::routes(&format!(
        "[[route]]\npath = \"/respond\"\n{auth}\nrespond = {{ body = \"text\" }}\n\
         [[route]]\npath = \"/redirect\"\n{auth}\nredirect = {{ to = \"/else\", status = 302 }}\n\
         [[route]]\npath = \"/echo\"\n{auth}\necho = {{}}\n\
         [[route]]\npath = \"/proxy\"\n{auth}\nproxy = \"{}\"\n",
        origin.url("").trim_end_matches('/'),
    ));
    for (path, status, text) in [
        ("/respond", 200, "text"),
        ("/redirect", 302, ""),
        ("/echo", 200, ""),
        ("/proxy", 200, "hello"),
    ] {
        let refused = get(served.address(), path);
        assert_eq!(refused.status, 401, "{path}");
        let challenge = refused.field("www-authenticate");
        let is_whole = challenge == Some("Bearer") && refused.field("x-service") == Some("yes");
        assert!(is_whole, "{path}: {refused:?}");
        let passed = get_with(served.address(), path, ANN);
        assert_eq!((passed.status, passed.text()), (status, text), "{path}");
        assert_eq!(passed.field("x-level"), Some("2"), "{path}");
        let cookie = passed.field("set-cookie");
        assert_eq!(cookie, Some("session=renewed"), "{path}");
    }
    let asked = service.heads().pop().unwrap().to_ascii_lowercase();
    assert!(asked.starts_with("get /check http/1.1"), "{asked}");
    assert!(asked.contains("x-forwarded-uri: /proxy\r\n"), "{asked}");
    // Who sends a request back would send what the service has added.
    let trace =
        b"TRACE /echo HTTP/1.1\r\nHost: a\r\nCookie: session=ann\r\nConnection: close\r\n\r\n";
    let before = service.requests();
    assert_eq!(exchange(served.address(), trace).status, 405);
    assert_eq!(service.requests(), before);
}

#[test]
fn what_the_service_says_clients_cannot_say() {
    let (service, origin) = (authorization_service(), user_echo());
    let served = Served::routes(&format!(
        "[[route]]\nauth = {{ to = \"{}\", copy = [\"x-user\", \"x-other\"] }}\n\
         response_headers = {{ set = {{ x-who = \"<{{auth:x-user}}>\" }} }}\nproxy = \"{}\"\n",
        service.url("/"),
        origin.url("").trim_end_matches('/'),
    ));
    let forged =
        format!("{ANN}X-User: root\r\nX-Other: root\r\nX_User: root\r\nX-Forwarded-Uri: /x\r\n");
    for connection in ["close", "close, x-user, x-other, cookie"] {
        let request =
            format!("GET /a?b HTTP/1.1\r\nHost: a\r\nConnection: {connection}\r\n{forged}\r\n");
        let received = exchange(served.address(), request.as_bytes());
        // A cookie that `Connection` names is not forwarded.
        if connection.contains("cookie") {
            assert_eq!(received.status, 401, "{received:?}");
            continue;
        }
        assert_eq!(received.field("x-seen"), Some("ann/"), "{received:?}");
        assert_eq!(received.field("x-who"), Some("<ann>"), "{received:?}");
    }
    let nominated =
        format!("GET / HTTP/1.1\r\nHost: a\r\nConnection: close, x-user\r\n{forged}\r\n");
    let received = exchange(served.address(), nominated.as_bytes());
    assert_eq!(received.field("x-seen"), Some("ann/"), "{received:?}");
    for asked in service.heads() {
        let asked = asked.to_ascii_lowercase();
        assert!(
            !asked.contains("root") && !asked.contains("uri: /x"),
            "{asked}"
        );
    }
}

#[test]
fn content_waits_until_the_service_has_decided() {
    let service = authorization_service();
    let echo = Served::routes(&format!(
        "[[route]]\nauth = {{ to = \"{}\" }}\necho = {{}}\n",
        service.url("/"),
    ));
    let passed = post(&echo, "/", ANN, "some content");
    assert_eq!((passed.status, passed.text()), (200, "some content"));
    let refused = post(&echo, "/", "", "some content");
    assert_eq!(refused.status, 401);
    // No 100 (Continue) is sent before the service has decided.
    let expecting = "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n";
    let refused = talk(echo.address(), expecting.as_bytes());
    let refused = HttpResponse::parse(&refused).unwrap();
    assert!(refused.status == 401 && refused.interims.is_empty());
    for asked in service.heads() {
        assert!(
            !asked.to_ascii_lowercase().contains("content-length"),
            "{asked}"
        );
    }
}

#[test]
fn a_websocket_opens_once_the_service_agrees() {
    let origin = WebSocketOrigin::echo();
    let any = "satisfy = \"any\"\nbasic_auth = { users = { ann = \"{PLAIN}secret\" } }\n";
    for more in ["", any] {
        let service = Origin::scripted(Script::serve(
            "HTTP/1.1 200 OK\r\nX-User: ann\r\nContent-Length: 0\r\n\r\n",
        ));
        let served = Served::routes(&format!(
            "[[route]]\n{more}auth = {{ to = \"{}\" }}\nproxy = \"http://{}\"\n",
            service.url("/"),
            origin.address(),
        ));
        let stream = connect(served.address());
        let url = format!("ws://{}/chat", served.address());
        let (mut socket, response) = tungstenite::client(url, stream).unwrap();
        assert_eq!(response.status(), 101);
        socket.send(Message::text("one")).unwrap();
        assert_eq!(socket.read().unwrap(), Message::text("one"));
        let http2 = Speaks::Http2;
        let opened = run_local(async { websocket(&pool(http2), http2, &served.url()).await.0 });
        assert_eq!(opened, 200);
        let asked = service.heads();
        assert_eq!(asked.len(), 2);
        let asked = asked.concat().to_ascii_lowercase();
        assert!(
            !asked.contains("upgrade") && !asked.contains("connect /"),
            "{asked}"
        );
    }
}

/// With `satisfy = "any"` the address is checked first, then the password, then the service.
#[test]
fn one_of_address_password_and_service_is_enough() {
    let service = authorization_service();
    let auth = format!("auth = {{ to = \"{}\", relay = false }}", service.url("/"));
    let basic = "basic_auth = { realm = \"r\", users = { ann = \"{PLAIN}secret\" } }";
    let any = "satisfy = \"any\"";
    let denied = "addresses = { deny = [\"127.0.0.0/8\"] }";
    let allowed = "addresses = { allow = [\"127.0.0.0/8\"] }";
    let served = Served::routes(&format!(
        "[[route]]\npath = \"/password\"\n{any}\n{basic}\n{auth}\necho = {{}}\n\
         [[route]]\npath = \"/denied\"\n{any}\n{denied}\n{auth}\necho = {{}}\n\
         [[route]]\npath = \"/allowed\"\n{any}\n{allowed}\n{basic}\n{auth}\necho = {{}}\n\
         [[route]]\npath = \"/all\"\n{basic}\n{auth}\necho = {{}}\n",
    ));
    let right = "Authorization: Basic YW5uOnNlY3JldA==\r\n";
    let wrong = "Authorization: Basic YW5uOndyb25n\r\n";
    let both = format!("{right}{ANN}");
    let second = format!("{wrong}{ANN}");
    let forbidden = "Cookie: status=403\r\n";
    for (path, fields, status, asked) in [
        ("/password", right, 200, 0),
        ("/password", second.as_str(), 200, 1),
        ("/password", ANN, 200, 1),
        ("/password", wrong, 401, 1),
        // That a password is wanted matters more than that the service wants nothing.
        ("/password", forbidden, 401, 1),
        // What is no decision ends it.
        ("/password", "Cookie: status=404\r\n", 500, 1),
        ("/denied", ANN, 200, 1),
        ("/denied", "", 401, 1),
        ("/denied", forbidden, 403, 1),
        ("/allowed", "", 200, 0),
        ("/all", both.as_str(), 200, 1),
        ("/all", right, 401, 1),
        ("/all", ANN, 401, 0),
    ] {
        let before = service.requests();
        let received = post(&served, path, fields, "content");
        assert_eq!(received.status, status, "{path} {fields} {received:?}");
        assert_eq!(service.requests() - before, asked, "{path} {fields}");
        if status == 200 {
            assert_eq!(received.text(), "content", "{path} {fields}");
        }
    }
    let refused = post(&served, "/password", "", "");
    let head = refused.head.to_ascii_lowercase();
    for challenge in [
        "www-authenticate: basic realm=\"r\"",
        "www-authenticate: bearer",
    ] {
        assert!(head.contains(challenge), "{head}");
    }
}

#[test]
fn without_relay_the_client_gets_the_status_alone() {
    let service = authorization_service();
    let served = Served::routes(&format!(
        "[[route]]\nauth = {{ to = \"{}\", relay = false }}\nrespond = {{}}\n",
        service.url("/"),
    ));
    for (said, status) in [(401, 401), (403, 403), (302, 500), (404, 500), (500, 500)] {
        let fields = format!("Cookie: status={said}\r\n");
        let received = get_with(served.address(), "/", &fields);
        assert_eq!(received.status, status, "{said}");
        let others = ["x-service", "location", "set-cookie"];
        let has_others = others.iter().any(|it| received.field(it).is_some());
        assert!(!has_others, "{received:?}");
    }
    let refused = get(served.address(), "/");
    assert_eq!(refused.field("www-authenticate"), Some("Bearer"));
    assert!(refused.field("set-cookie").is_none(), "{refused:?}");
}

/// That the service does not know a user must not look like a file that is not there.
#[test]
fn another_route_takes_over_after_a_refusal_alone() {
    let service = authorization_service();
    let served = Served::routes(&format!(
        "[[route]]\nauth = {{ to = \"{}\" }}\nrespond = {{ status = 404 }}\n\
         on_status = {{ 404 = {{ to = \"open\", status = \"own\" }}, 401 = {{ to = \"login\", status = \"own\" }}, 302 = {{ to = \"open\", status = \"own\" }} }}\n\
         [[route]]\nname = \"open\"\ninternal = true\nrespond = {{ body = \"open\" }}\n\
         [[route]]\nname = \"login\"\ninternal = true\nrespond = {{ body = \"login\" }}\n",
        service.url("/"),
    ));
    let text = |fields: &str| get_with(served.address(), "/gone", fields).into_text();
    assert_eq!(text(ANN), "open");
    assert_eq!(text(""), "login");
    for said in ["404", "302"] {
        let fields = format!("Cookie: status={said}\r\n");
        let received = get_with(served.address(), "/gone", &fields);
        assert_eq!(received.status.to_string(), said);
        assert_eq!(received.field("x-service"), Some("yes"));
    }
}

#[test]
fn a_cache_stands_behind_the_service() {
    let service = authorization_service();
    let origin = Origin::scripted(Script::serve(
        "HTTP/1.1 200 OK\r\nCache-Control: public, max-age=60\r\nContent-Length: 5\r\n\r\nhello",
    ));
    let of_one = Origin::scripted(Script::serve(
        "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 5\r\n\r\nhello",
    ));
    let auth = format!("auth = {{ to = \"{}\" }}", service.url("/"));
    let proxy = |to: &Origin| {
        let url = to.url("");
        format!(
            "proxy = {{ to = \"{}\", cache = true }}",
            url.trim_end_matches('/')
        )
    };
    let served = Served::routes(&format!(
        "[[route]]\npath = \"/public\"\n{auth}\n{}\n[[route]]\n{auth}\n{}\n",
        proxy(&origin),
        proxy(&of_one)
    ));
    for _ in 0..3 {
        assert_eq!(get_with(served.address(), "/public", ANN).text(), "hello");
        assert_eq!(get(served.address(), "/public").status, 401);
        assert_eq!(get_with(served.address(), "/", ANN).text(), "hello");
    }
    assert_eq!(service.requests(), 9);
    assert_eq!(origin.requests(), 1);
    // It may be for this user.
    assert_eq!(of_one.requests(), 3);
}

#[test]
fn listeners_have_it_and_figures_count_it() {
    let service = authorization_service();
    let refused = format!("http://{}", plimsoll_testkit::refused_address());
    let served = Served::new(&format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\nauth = {{ to = \"{}\", trust = [\"127.0.0.1\"] }}\n\
         [[route]]\npath = \"/down\"\nname = \"down\"\nauth = {{ to = \"{refused}\" }}\nrespond = {{}}\n\
         [[route]]\nname = \"all\"\nauth = {{ to = \"auth\", path = \"/inner\" }}\nrespond = {{ body = \"{{}}\" }}\n\
         [upstream.auth]\nservers = [\"{}\"]\n[admin]\naddress = \"127.0.0.1:0\"\n",
        service.url("/"),
        service.url("").trim_end_matches('/'),
    ));
    let trusted = format!("{ANN}X-Forwarded-For: 192.0.2.1\r\nX-Forwarded-Proto: https\r\n");
    assert_eq!(get_with(served.address(), "/", &trusted).status, 200);
    let asked = service.heads();
    let [outer, inner] = asked.as_slice() else {
        panic!("{asked:?}");
    };
    let outer = outer.to_ascii_lowercase();
    assert!(
        outer.contains("x-forwarded-for: 192.0.2.1, 127.0.0.1\r\n"),
        "{outer}"
    );
    assert!(outer.contains("x-forwarded-proto: https\r\n"), "{outer}");
    let inner = inner.to_ascii_lowercase();
    assert!(inner.starts_with("get /inner "), "{inner}");
    assert!(inner.contains("x-forwarded-for: 127.0.0.1\r\n"), "{inner}");
    assert_eq!(get(served.address(), "/").status, 401);
    assert_eq!(get_with(served.address(), "/down", ANN).status, 502);
    let metrics = get(served.addresses[1], "/metrics").into_text();
    for (route, outcome, count) in [("all", "verified", 1), ("down", "unavailable", 1)] {
        let line = format!(
            "plimsoll_gateway_guard_total{{guard=\"auth\",route=\"{route}\",outcome=\"{outcome}\"}} {count}"
        );
        assert!(metrics.contains(&line), "{metrics}");
    }
}
