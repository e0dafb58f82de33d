//! `.http` files whose requests need values of the responses to earlier ones.

use std::fs;
use std::sync::{Arc, Mutex};

use plimsoll_testkit::{Logic, Origin, Question, Reply, Script, Step};
use serde_json::Value;

use crate::plimsoll::{CommandOutput, plimsoll};
use crate::sessions::over_each;

const EDITORS: &str = "\
# @name login
POST /login
Content-Type: application/json

{}

###
GET /items/{{login.response.body.$.user.id}}?page={{login.response.headers.X-Page}}
Authorization: Bearer {{login.response.body.$.token}}

###
DELETE /session
";

const JETBRAINS: &str = "\
POST /login
Content-Type: application/json

{}

> {%
    client.global.set(\"token\", response.body.token);
    client.global.set('id', response.body.user[\"id\"]);
    client.global.set(\"page\", response.headers.valueOf(\"X-Page\"));
%}

###
GET /items/{{id}}?page={{page}}
Authorization: Bearer {{token}}

###
DELETE /session
";

/// Gives each login a token of its own, and notes what each request carries.
fn logins() -> (Logic, Arc<Mutex<Vec<String>>>) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let shared = Arc::clone(&seen);
    let logic = Logic::new(move |question: &Question| {
        let field = |name| question.field(name).unwrap_or("-").to_owned();
        let mut seen = shared.lock().unwrap();
        let number = seen.len();
        let (method, target) = (&question.method, &question.target);
        seen.push(format!(
            "{method} {target} {} {}",
            field("authorization"),
            field("cookie")
        ));
        match target.as_str() {
            "/login" => {
                let page = number.to_string();
                let fields = [("x-page", page.as_str()), ("set-cookie", "session=1")];
                let content =
                    format!("{{\"token\": \"t{number}\", \"user\": {{\"id\": {number}}}}}");
                Reply::new(200, &fields).content(content)
            }
            _ => Reply::new(200, &[]),
        }
    });
    (logic, seen)
}

fn run(file: &str, url: &[&str], more: &[&str]) -> CommandOutput {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shop.http");
    fs::write(&path, file).unwrap();
    let path = path.to_str().unwrap();
    plimsoll(&[&["load", "--from", path, "--json"], more, url].concat())
}

#[test]
fn values_of_responses_are_those_of_the_same_user() {
    for file in [EDITORS, JETBRAINS] {
        let (logic, seen) = logins();
        over_each(&logic, "/", "2", |url| {
            seen.lock().unwrap().clear();
            let output = run(file, url, &["-c", "2", "-n", "24"]).exits(0);
            assert_eq!(output.json()["counts"]["ok"], 24, "{output}");
            let seen = seen.lock().unwrap();
            // Each login is followed by a request with its values.
            let logins = seen.iter().enumerate();
            let logins = logins.filter(|(_, line)| line.starts_with("POST /login"));
            let followed = logins.filter(|(number, _)| {
                let wanted =
                    format!("GET /items/{number}?page={number} Bearer t{number} session=1");
                seen.contains(&wanted)
            });
            // Users that are under way at the end have none yet.
            let gets = seen.iter().filter(|line| line.starts_with("GET ")).count();
            assert!(gets >= 6, "{seen:#?}");
            assert_eq!(followed.count(), gets, "{seen:#?}");
            let deletes = seen
                .iter()
                .filter(|line| line.starts_with("DELETE /session - "));
            assert!(deletes.count() >= 4, "{seen:#?}");
        });
    }
}

#[test]
fn users_of_a_sequence_think_between_its_requests_and_arrive_by_and_by() {
    let (logic, seen) = logins();
    over_each(&logic, "/", "2", |url| {
        seen.lock().unwrap().clear();
        let flags = [
            "-c",
            "4",
            "-z",
            "1s",
            "--think",
            "100ms",
            "--ramp-up",
            "500ms",
        ];
        let output = run(EDITORS, url, &flags).exits(0);
        let ok = output.json()["counts"]["ok"].as_u64().unwrap();
        // At most one request in 100 ms of each user, of whom streams make twice as many.
        assert!((8..=80).contains(&ok), "{output}");
        let seen = seen.lock().unwrap();
        let answered = seen.iter().filter(|line| !line.starts_with("POST "));
        assert!(answered.count() >= 4, "{seen:#?}");
    });
}

#[test]
fn a_response_without_the_value_fails_and_begins_the_sequence_again() {
    let logic = Logic::new(|_| Reply::new(401, &[("x-page", "1")]).content("{\"token\": null}"));
    let origin = Origin::scripted(Script::new().then(Step::Reply(logic)));
    let output = run(EDITORS, &[&origin.url("/")], &["-c", "1", "-n", "5"]).exits(1);
    let json: Value = output.json();
    assert_eq!(json["failures"][0]["kind"], "missing-value", "{output}");
    assert_eq!(json["failures"][0]["count"], 5, "{output}");
    assert!(json.to_string().contains("status 401"), "{output}");
    assert!(
        origin
            .heads()
            .iter()
            .all(|head| head.starts_with("POST /login"))
    );
}

#[test]
fn a_value_cannot_end_a_header_field() {
    let (sent, received) = ("a\\r\\nx-evil: 1", "Bearer ax-evil: 1");
    let seen = Arc::new(Mutex::new(Vec::new()));
    let shared = Arc::clone(&seen);
    let logic = Logic::new(move |question: &Question| {
        shared.lock().unwrap().push((
            question.field("authorization").map(str::to_owned),
            question.field("x-evil").map(str::to_owned),
        ));
        let content = format!("{{\"token\": \"{sent}\", \"user\": {{\"id\": 1}}}}");
        Reply::new(200, &[("x-page", "1")]).content(content)
    });
    over_each(&logic, "/", "1", |url| {
        seen.lock().unwrap().clear();
        run(EDITORS, url, &["-c", "1", "-n", "2"]).exits(0);
        let expected = [(None, None), (Some(received.to_owned()), None)];
        assert_eq!(*seen.lock().unwrap(), expected);
    });
}

#[test]
fn mistakes_have_a_line_and_a_remedy() {
    let text = "\
GET http://h/{{login.response.body.$.id}}

### login
POST http://h/login

###
GET http://h/{{loging.response.body.$.id}}?{{login.response.body.$[}}
";
    let output = run(text, &[], &[]).exits(2);
    let messages: Vec<_> = output
        .stderr
        .lines()
        .map(|line| {
            line.rsplit_once("shop.http")
                .map_or(line, |(_, message)| message)
        })
        .collect();
    insta::assert_snapshot!(messages.join("\n"), @r"
    :1: `{{login.response.body.$.id}}` has no value
      hint: the request in line 4 gives it: it has to come before
    :7: `{{loging.response.body.$.id}}` has no value
      hint: no request has the name `loging`; there are login
    :4: `login.response.body.$[`: JSON path `$[`: at position 1, parser error; write for example `$.items[0].name`
    ");
}

#[test]
fn an_environment_gives_the_values_that_are_missing() {
    let origin = Origin::hello();
    let folder = tempfile::tempdir().unwrap();
    let requests = folder.path().join("a.http");
    let path = requests.to_str().unwrap();
    let environments = folder.path().join("http-client.env.json");
    let load = |more: &[&str]| plimsoll(&[&["load", "--from", path, "-n", "1"], more].concat());
    fs::write(&requests, "GET {{host}}\n").unwrap();
    let one = format!("{{\"dev\": {{\"host\": \"{}\"}}}}", origin.url("/dev"));
    fs::write(&environments, one).unwrap();
    load(&[]).exits(0);
    assert!(origin.heads()[0].starts_with("GET /dev "));
    fs::write(&environments, "{\"dev\": {\"a\": 1}, \"test\": {}}").unwrap();
    let output = load(&[]).exits(2);
    assert!(output.stderr.contains("environments dev, test"), "{output}");
    // A file that cannot be used matters only where a value is missing.
    fs::write(&environments, "{").unwrap();
    let output = load(&[]).exits(2);
    assert!(
        output.stderr.contains("http-client.env.json is not JSON"),
        "{output}"
    );
    fs::write(&requests, format!("GET {}\n", origin.url("/"))).unwrap();
    load(&[]).exits(0);
}
