//! Notices from the outbox to receivers: retried, grouped, escalated, and never lost.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::thread;

use http::{Method, StatusCode};
use plimsoll_monitor::config::load;
use plimsoll_testkit::{Origin, eventually, mail_server, refused_address};
use serde_json::Value;
use tempfile::TempDir;

use crate::client::Running;

/// Receives requests of HTTP, and answers with one status after the other, then 200. A status of 0 is no answer.
pub(crate) struct Receiver {
    pub(crate) address: SocketAddr,
    pub(crate) requests: Arc<Mutex<Vec<(String, String)>>>,
}

impl Receiver {
    pub(crate) fn new(statuses: &[u16]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let requests = Arc::<Mutex<Vec<_>>>::default();
        let seen = Arc::clone(&requests);
        let statuses = Arc::new(Mutex::new(VecDeque::from(statuses.to_vec())));
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (seen, statuses) = (Arc::clone(&seen), Arc::clone(&statuses));
                thread::spawn(move || answer(&stream, &seen, &statuses));
            }
        });
        Self { address, requests }
    }

    pub(crate) fn bodies(&self) -> Vec<Value> {
        let requests = self.requests.lock().unwrap();
        let bodies = requests.iter();
        bodies
            .map(|(_, body)| serde_json::from_str(body).unwrap())
            .collect()
    }

    pub(crate) fn titles(&self) -> Vec<String> {
        let titles = self.bodies();
        let titles = titles
            .iter()
            .map(|body| body["title"].as_str().unwrap().to_owned());
        titles.collect()
    }
}

fn answer(
    stream: &TcpStream,
    seen: &Mutex<Vec<(String, String)>>,
    statuses: &Mutex<VecDeque<u16>>,
) {
    let mut reader = BufReader::new(stream);
    let mut writer = stream;
    loop {
        let (mut head, mut length) = (String::new(), 0);
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).unwrap_or(0) == 0 {
                return;
            }
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
            if line == "\r\n" {
                break;
            }
            head.push_str(&line);
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        let status = statuses.lock().unwrap().pop_front().unwrap_or(200);
        let body = String::from_utf8(body).unwrap();
        seen.lock().unwrap().push((head, body));
        if status == 0 {
            continue;
        }
        let answer = format!("HTTP/1.1 {status} Answer\r\ncontent-length: 2\r\n\r\nno");
        if writer.write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

const TOKEN: &str = r#"
        [[token]]
        name = "ann"
        sha256 = "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b"
        scopes = ["write"]
"#;
pub(crate) const WRITER: (&str, &str) = ("authorization", "Bearer secret");

fn text(targets: &[SocketAddr], notify: &str) -> String {
    use std::fmt::Write as _;

    let mut text = String::from(
        "store = \"state.db\"\n[defaults]\ninterval = \"100ms\"\nconfirm = 1\nrecover = 1\nhold = \"0s\"\nflap = false\n",
    );
    for (number, target) in targets.iter().enumerate() {
        write!(
            text,
            "[[monitor]]\nname = \"m{number}\"\nhttp = \"http://{target}/\"\n"
        )
        .unwrap();
    }
    text + TOKEN + notify
}

pub(crate) fn webhook(receiver: &Receiver, more: &str) -> String {
    format!(
        "[[notify]]\nname = \"hook\"\nwebhook = {{ url = \"http://{}/\", secret = \"s\" }}\n{more}\n",
        receiver.address
    )
}

/// States of all notices, the oldest first.
fn states(running: &Running) -> Vec<(String, String)> {
    let (_, text) = running.call(Method::GET, "/api/v1/notices", &[WRITER], "");
    let answer: Value = serde_json::from_str(&text).unwrap();
    let notices = answer["notices"].as_array().unwrap().iter().rev();
    let state = |notice: &Value| {
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        (text(&notice["message"]["kind"]), text(&notice["state"]))
    };
    notices.map(state).collect()
}

#[test]
fn an_outage_and_its_end_reach_a_webhook_once() {
    let folder = TempDir::new().unwrap();
    let receiver = Receiver::new(&[]);
    let address = refused_address();
    let config = text(&[address], &webhook(&receiver, ""));
    let running = Running::new(folder.path(), "monitor.toml", &config);
    eventually(|| receiver.titles() == ["m0 is down"]);
    let first = receiver.bodies().remove(0);
    assert!(
        first["text"].as_str().unwrap().contains("refused"),
        "{first}"
    );
    let head = receiver.requests.lock().unwrap()[0].0.to_ascii_lowercase();
    assert!(head.contains("plimsoll-signature: t="), "{head}");
    let _origin = Origin::builder().port(address.port()).start();
    eventually(|| receiver.titles() == ["m0 is down", "m0 is up again"]);
    let bodies = receiver.bodies();
    assert_eq!(bodies[0]["incident"], bodies[1]["incident"]);
    let expected = [("opened", "sent"), ("resolved", "sent")];
    let expected = expected.map(|(kind, state)| (kind.to_owned(), state.to_owned()));
    eventually(|| states(&running) == expected);
}

#[test]
fn an_issue_is_looked_for_before_it_is_opened() {
    let folder = TempDir::new().unwrap();
    let receiver = Receiver::new(&[]);
    let notify = format!(
        "[[notify]]\nname = \"issues\"\ngithub = {{ repository = \"a/b\", token = \"t\", url = \"http://{}/\" }}\non = [\"opened\"]\n",
        receiver.address
    );
    let config = text(&[refused_address()], &notify);
    let running = Running::new(folder.path(), "monitor.toml", &config);
    eventually(|| states(&running) == [("opened".to_owned(), "sent".to_owned())]);
    let requests = receiver.requests.lock().unwrap();
    let lines: Vec<_> = requests
        .iter()
        .map(|(head, _)| head.lines().next().unwrap())
        .collect();
    assert_eq!(
        lines,
        [
            "GET /repos/a/b/issues?state=open&per_page=100 HTTP/1.1",
            "POST /repos/a/b/issues HTTP/1.1"
        ]
    );
    let issue: Value = serde_json::from_str(&requests[1].1).unwrap();
    assert_eq!(issue["title"], "m0 is down");
}

#[test]
fn a_refused_notice_is_given_up_and_a_failed_one_waits() {
    let folder = TempDir::new().unwrap();
    let [refusing, failing] = [Receiver::new(&[404]), Receiver::new(&[500])];
    let notify = format!(
        "{}[[notify]]\nname = \"failing\"\nwebhook = {{ url = \"http://{}/\" }}\n",
        webhook(&refusing, ""),
        failing.address
    );
    let config = text(&[refused_address()], &notify);
    let running = Running::new(folder.path(), "monitor.toml", &config);
    let find = |channel: &str| -> Option<Value> {
        let (_, text) = running.call(Method::GET, "/api/v1/notices", &[WRITER], "");
        let answer: Value = serde_json::from_str(&text).unwrap();
        let notices = answer["notices"].as_array().unwrap();
        notices.iter().find(|it| it["channel"] == channel).cloned()
    };
    eventually(|| find("hook").is_some_and(|it| it["state"] == "given_up"));
    assert_eq!(find("hook").unwrap()["error"], "status 404 no");
    eventually(|| find("failing").is_some_and(|it| it["attempts"] == 1));
    let waiting = find("failing").unwrap();
    assert_eq!(
        (&waiting["state"], &waiting["error"]),
        (&"waiting".into(), &"status 500 no".into())
    );
    eventually(|| {
        let notices = running.notices.lock().unwrap().join("\n");
        notices.contains("to hook is given up: status 404")
            && notices.contains("to failing is tried again: status 500")
    });
}

#[test]
fn a_mass_failure_is_one_notice() {
    let folder = TempDir::new().unwrap();
    let receiver = Receiver::new(&[]);
    let targets: Vec<_> = (0..12).map(|_| refused_address()).collect();
    let origins: Vec<_> = targets
        .iter()
        .map(|target| Origin::builder().port(target.port()).start())
        .collect();
    let config = text(&targets, &webhook(&receiver, "on = [\"opened\"]"));
    let running = Running::new(folder.path(), "monitor.toml", &config);
    for number in 0..12 {
        let path = format!("/api/v1/monitors/_m{number}");
        eventually(|| {
            running
                .call(Method::GET, &path, &[WRITER], "")
                .1
                .contains("\"health\":\"up\"")
        });
    }
    drop(origins);
    eventually(|| {
        states(&running)
            .iter()
            .filter(|(_, state)| state == "sent")
            .count()
            == 12
    });
    let titles = receiver.titles();
    assert!(titles.len() <= 4, "{titles:?}");
    assert!(
        titles
            .iter()
            .any(|title| title.ends_with("monitors are down")),
        "{titles:?}"
    );
}

#[test]
fn an_escalation_waits_and_is_dropped_once_the_incident_is_acknowledged() {
    let folder = TempDir::new().unwrap();
    let receiver = Receiver::new(&[]);
    let address = refused_address();
    let config = text(&[address], &webhook(&receiver, "after = \"3s\""));
    let running = Running::new(folder.path(), "monitor.toml", &config);
    eventually(|| states(&running) == [("opened".to_owned(), "waiting".to_owned())]);
    let path = "/api/v1/monitors/_m0/acknowledge";
    let acknowledged = running.call(Method::POST, path, &[WRITER], "");
    assert_eq!(acknowledged.0, StatusCode::OK, "{}", acknowledged.1);
    let _origin = Origin::builder().port(address.port()).start();
    // An incident that was not reported is not resolved either.
    let expected = [("opened", "dropped"), ("resolved", "dropped")];
    let expected = expected.map(|(kind, state)| (kind.to_owned(), state.to_owned()));
    eventually(|| states(&running) == expected);
    assert_eq!(receiver.titles(), Vec::<String>::new());
}

/// The process that [`a_notice_survives_a_kill`] kills.
#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "the parent test names the folder"
)]
fn monitors_until_it_is_killed() {
    let Ok(folder) = std::env::var("PLIMSOLL_TEST_KILLED_MONITOR") else {
        return;
    };
    let folder = std::path::Path::new(&folder);
    let config = std::fs::read_to_string(folder.join("monitor.toml")).unwrap();
    let _running = Running::new(folder, "monitor.toml", &config);
    loop {
        thread::park();
    }
}

#[test]
fn a_notice_survives_a_kill() {
    let folder = TempDir::new().unwrap();
    // The first request is received and never answered: the sender dies in between.
    let receiver = Receiver::new(&[0]);
    let config = text(&[refused_address()], &webhook(&receiver, ""));
    std::fs::write(folder.path().join("monitor.toml"), &config).unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "notices::monitors_until_it_is_killed"])
        .env("PLIMSOLL_TEST_KILLED_MONITOR", folder.path())
        .spawn()
        .unwrap();
    eventually(|| receiver.titles() == ["m0 is down"]);
    child.kill().unwrap();
    child.wait().unwrap();
    let running = Running::new(folder.path(), "monitor.toml", &config);
    eventually(|| receiver.titles() == ["m0 is down", "m0 is down"]);
    eventually(|| states(&running) == [("opened".to_owned(), "sent".to_owned())]);
}

#[test]
fn an_error_budget_that_burns_is_reported_once_per_outage() {
    let folder = TempDir::new().unwrap();
    let receiver = Receiver::new(&[]);
    let notify = webhook(&receiver, "on = [\"budget_burning\", \"budget_steady\"]");
    let address = refused_address();
    // Milliseconds of downtime are too much.
    let config = text(&[address], &notify).replace("[defaults]", "[defaults]\nslo = \"99.99999%\"");
    let running = Running::new(folder.path(), "monitor.toml", &config);
    let once = ["m0 uses its error budget up too fast"];
    eventually(|| receiver.titles() == once);
    // Until that is noted, a process that ends sends it again.
    eventually(|| states(&running).iter().all(|(_, state)| state == "sent"));
    let uptime = running.json_as(WRITER, "/api/v1/monitors/_m0/uptime");
    assert!(uptime["budget"]["left"].as_f64().unwrap() < 1.0, "{uptime}");
    assert_eq!(uptime["budget"]["burning"]["window_s"], 3_600, "{uptime}");
    drop(running);
    // The same outage after a restart is the same notice.
    let running = Running::new(folder.path(), "monitor.toml", &config);
    eventually(|| {
        running.json_as(WRITER, "/api/v1/monitors/_m0/uptime")["budget"]["burning"].is_object()
    });
    running.call(
        Method::POST,
        "/api/v1/monitors/_m0/check-now",
        &[WRITER],
        "",
    );
    drop(running);
    assert_eq!(receiver.titles(), once);
    // Its monitor is removed while nothing runs: the alert ends too.
    let without = config.replace("name = \"m0\"", "name = \"another\"");
    let _running = Running::new(folder.path(), "monitor.toml", &without);
    let steady = "m0 no longer uses its error budget up too fast".to_owned();
    eventually(|| receiver.titles().contains(&steady));
}

#[test]
fn who_is_on_call_gets_what_opens_and_its_end() {
    let folder = TempDir::new().unwrap();
    let [ann, bob, all] = [(); 3].map(|()| Receiver::new(&[]));
    let address = refused_address();
    let hook = |name: &str, receiver: &Receiver| {
        format!(
            "[[notify]]\nname = \"{name}\"\nwebhook = {{ url = \"http://{}/\" }}\n",
            receiver.address
        )
    };
    // The first turn takes years.
    let rotation = "[[on_call]]\nname = \"backend\"\nmembers = [\"ann\", \"bob\"]\nrotate = \"200000h\"\nstart = \"2026-01-01T00:00\"\ntoken = \"0123456789abcdef\"\n";
    let notify = [
        hook("ann", &ann),
        hook("bob", &bob),
        hook("all", &all),
        rotation.to_owned(),
    ]
    .concat();
    let running = Running::new(folder.path(), "monitor.toml", &text(&[address], &notify));
    eventually(|| all.titles() == ["m0 is down"] && ann.titles() == ["m0 is down"]);
    let origin = Origin::builder().port(address.port()).start();
    let both = ["m0 is down", "m0 is up again"];
    eventually(|| all.titles() == both && ann.titles() == both);
    // That of bob was dropped, as that of his was never written.
    eventually(|| {
        let waiting = states(&running)
            .iter()
            .filter(|(_, state)| state == "waiting")
            .count();
        waiting == 0
    });
    assert_eq!(bob.titles(), [""; 0]);
    let on_call = running.json_as(WRITER, "/api/v1/on-call");
    assert_eq!(on_call["rotations"][0]["who"], "ann");
    let (status, calendar) = running.get("/on-call/0123456789abcdef.ics");
    assert_eq!(status, StatusCode::OK);
    assert!(calendar.contains("SUMMARY:backend: ann"), "{calendar}");
    for other in [
        "/on-call/0123456789abcdee.ics",
        "/on-call/.ics",
        "/on-call/x",
    ] {
        assert_eq!(running.get(other).0, StatusCode::NOT_FOUND, "{other}");
    }
    drop(origin);
}

#[test]
fn an_outage_is_mailed() {
    let folder = TempDir::new().unwrap();
    let (address, serving) = mail_server();
    let notify = format!(
        "[[notify]]\nname = \"mail\"\non = \"opened\"\ntitle = \"[{{state}}] {{name}} since {{since}}\"\nemail = {{ host = \"127.0.0.1\", port = {}, security = \"none\", from = \"Monitor <monitor@example.org>\", to = \"ann@example.org\" }}\n",
        address.port()
    );
    let config = text(&[refused_address()], &notify);
    let running = Running::new(folder.path(), "monitor.toml", &config);
    eventually(|| states(&running) == [("opened".to_owned(), "sent".to_owned())]);
    let mail = serving.join().unwrap();
    assert!(mail.contains("Subject: [down] m0 since 20"), "{mail}");
    assert!(mail.contains("To: ann@example.org"), "{mail}");
    assert!(
        mail.contains("From: Monitor <monitor@example.org>"),
        "{mail}"
    );
    assert!(mail.contains("refused"), "{mail}");
}

#[test]
fn errors_of_channels_name_their_place() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("monitor.toml");
    let text = r#"
[[monitor]]
name = "web"
manual = true
[[notify]]
name = "a"
slack = { url = "hooks.slack.com", channel = "x" }
on = ["opend"]
monitors = ["wab"]
remind = "1s"
title = "{nmae}"
[[notify]]
name = "a"
[[notify]]
name = "b"
pagerduty = { routing_key = { env = "NO_SUCH_VARIABLE" }, severity = "bad" }
ntfy = { topic = "x" }
[[notify]]
name = "c"
telegram = { token = { env = "NO_SUCH_VARIABLE" } }
[[notify]]
email = { host = "a", from = "no address", to = [] }
"#;
    std::fs::write(&path, text).unwrap();
    let Err(error) = load(&path, &|_| None) else {
        panic!("the file has errors");
    };
    let problems = format!("{error:?}");
    for expected in [
        "must be a URL that begins with",
        "channel",
        "`opend` is not one of opened, reminder, resolved, no_data, data_again, budget_burning, budget_steady, test",
        "there is no monitor and no group `wab`",
        "must be a minute or more",
        "`{nmae}` is not one of {name}",
        "`a` is the name of another channel",
        "exactly one of alertmanager, aws_sns",
        "the environment has no variable `NO_SUCH_VARIABLE`",
        "`chat` is missing",
        "`no address` is no address of mail",
        "`name` is missing",
    ] {
        assert!(problems.contains(expected), "{expected}: {problems}");
    }
}

#[test]
fn alerts_of_gatus_go_to_its_providers() {
    let folder = TempDir::new().unwrap();
    let [slack, ntfy] = [Receiver::new(&[]), Receiver::new(&[])];
    let address = refused_address();
    let alert = |kind: &str, resolved: bool| {
        format!(
            "{{type: {kind}, failure-threshold: 1, success-threshold: 1, send-on-resolved: {resolved}}}"
        )
    };
    let endpoint = |name: &str, alerts: &str| {
        format!(
            "  - name: {name}\n    url: http://{address}/\n    interval: 100ms\n    conditions: ['[CONNECTED] == true']\n    alerts: [{alerts}]\n"
        )
    };
    let config = format!(
        "alerting:\n  slack: {{webhook-url: 'http://{}/'}}\n  ntfy: {{url: 'http://{}', topic: t}}\nendpoints:\n{}{}",
        slack.address,
        ntfy.address,
        endpoint("a", &alert("slack", true)),
        endpoint("b", &alert("ntfy", false)),
    );
    let _running = Running::new(folder.path(), "config.yaml", &config);
    let texts = |receiver: &Receiver, key: &str| -> Vec<String> {
        let bodies = receiver.bodies();
        let texts = bodies
            .iter()
            .map(|body| body[key].as_str().unwrap().to_owned());
        texts.collect()
    };
    eventually(|| texts(&slack, "text") == ["🔴 a is down"]);
    eventually(|| texts(&ntfy, "title") == ["b is down"]);
    let _origin = Origin::builder().port(address.port()).start();
    eventually(|| texts(&slack, "text") == ["🔴 a is down", "🟢 a is up again"]);
    assert_eq!(
        texts(&ntfy, "title"),
        ["b is down"],
        "without send-on-resolved"
    );
}
