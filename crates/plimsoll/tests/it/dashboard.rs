//! The page of a run that goes on.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};

use plimsoll_testkit::http::{connect, talk};
use plimsoll_testkit::{Origin, eventually};
use rustix::process::{Pid, Signal, kill_process};

use crate::browser::{Browser, Pictures};
use crate::plimsoll::command;

/// A run with its dashboard.
struct Run {
    child: Child,
    /// `HOST:PORT`
    address: String,
}

impl Run {
    /// - `program`: says on standard error where the dashboard is.
    fn start(program: &mut Command) -> Self {
        let mut child = program
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let address = lines
            .by_ref()
            .map_while(Result::ok)
            .find_map(|line| {
                let (_, url) = line.split_once("the dashboard is at http://")?;
                Some(url.split('/').next().unwrap().to_owned())
            })
            .expect("it says where the dashboard is");
        // It goes on writing, and must not wait for anybody to read that.
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
        Self { child, address }
    }

    fn get(&self, request: &str, host: &str) -> String {
        let request = format!("{request} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        String::from_utf8(talk(&self.address, request.as_bytes())).unwrap()
    }

    fn stop(mut self) -> Option<i32> {
        // It may have ended by itself.
        kill_process(Pid::from_child(&self.child), Signal::INT).ok();
        self.child.wait().unwrap().code()
    }
}

const SCRIPT: &str = "import http from 'k6/http'; import { check, sleep } from 'k6';
    export const options = { thresholds: { http_reqs: ['count>0'] }, scenarios: {
      browse: { executor: 'ramping-vus', startVUs: 1, gracefulStop: '1s', stages: [{ duration: '20s', target: 8 }, { duration: '40s', target: 3 }] },
      orders: { executor: 'constant-arrival-rate', rate: 20, duration: '60s', preAllocatedVUs: 4, gracefulStop: '1s' } } };
    export default function () {
      const response = http.get(`${__ENV.BASE}/`);
      check(response, { 'has <b>content</b>': (r) => r.body.length > 0 });
      sleep(0.05 + Math.random() * 0.1);
    }";

fn scripted(folder: &tempfile::TempDir, origin: &Origin) -> Command {
    let script = folder.path().join("script.js");
    std::fs::write(&script, SCRIPT).unwrap();
    let base = format!("BASE={}", origin.url(""));
    let mut command = command(&[
        "k6",
        "run",
        "--quiet",
        "-e",
        &base,
        script.to_str().unwrap(),
    ]);
    command
        .env("K6_WEB_DASHBOARD", "true")
        .env("K6_WEB_DASHBOARD_PORT", "0")
        .current_dir(folder.path());
    command
}

#[test]
fn a_script_is_followed_by_events_and_leaves_its_page() {
    let origin = Origin::hello();
    let folder = tempfile::tempdir().unwrap();
    let export = folder.path().join("report.html");
    let run = Run::start(scripted(&folder, &origin).env("K6_WEB_DASHBOARD_EXPORT", &export));
    assert!(
        run.address.starts_with("127.0.0.1:") || run.address.starts_with("[::1]:"),
        "{}",
        run.address
    );
    let page = run.get("GET /", "localhost");
    assert!(page.starts_with("HTTP/1.1 200"), "{page}");
    let head = page.split("\r\n\r\n").next().unwrap().to_lowercase();
    for expected in [
        "content-security-policy: default-src 'none'; script-src 'self'; connect-src 'self';",
        "x-content-type-options: nosniff",
        "x-frame-options: deny",
        "cache-control: no-store",
    ] {
        assert!(head.contains(expected), "{expected}\n{head}");
    }
    // Events come while the run goes on.
    let mut stream = connect(&run.address);
    write!(stream, "GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut events = BufReader::new(stream);
    let mut next = || {
        let mut line = String::new();
        while !line.starts_with("data: ") {
            line.clear();
            assert_ne!(events.read_line(&mut line).unwrap(), 0, "the stream ended");
        }
        line
    };
    next();
    let mut event = next();
    while !event.contains("Requests and iterations per second") {
        event = next();
    }
    assert!(
        event.contains("browse") && event.contains("ramping-vus"),
        "{event}"
    );
    let code = run.stop();
    assert_eq!(code, Some(105));
    let mut rest = String::new();
    events.read_to_string(&mut rest).ok();
    assert!(rest.contains("event: end\n"), "{rest}");
    let page = std::fs::read_to_string(export).unwrap();
    assert!(
        page.contains("<td>has &lt;b&gt;content&lt;/b&gt;</td>"),
        "{page}"
    );
    assert!(
        page.contains("count&gt;0") && page.contains("http_req_duration"),
        "{page}"
    );
    assert!(!page.contains("<script"), "{page}");
}

#[test]
fn a_page_of_another_site_reads_nothing() {
    let origin = Origin::hello();
    let folder = tempfile::tempdir().unwrap();
    let run = Run::start(&mut scripted(&folder, &origin));
    for (request, host, status) in [
        ("GET /", "localhost", "200"),
        ("GET /", "attacker.test", "421"),
        ("GET /events", "attacker.test", "421"),
        ("POST /", "localhost", "405"),
        ("GET /other", "localhost", "404"),
        ("GET /dashboard.js", "127.0.0.1", "200"),
    ] {
        let response = run.get(request, host);
        assert!(
            response.starts_with(&format!("HTTP/1.1 {status}")),
            "{request} {host}: {response}"
        );
    }
    run.stop();
}

#[test]
fn the_file_is_written_without_a_server_too() {
    let origin = Origin::hello();
    let folder = tempfile::tempdir().unwrap();
    let export = folder.path().join("report.html");
    let mut command = scripted(&folder, &origin);
    let output = command
        .args(["-i", "4"])
        .env("K6_WEB_DASHBOARD_PORT", "-1")
        .env("K6_WEB_DASHBOARD_EXPORT", &export)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(!String::from_utf8_lossy(&output.stderr).contains("dashboard is at"));
    assert!(
        std::fs::read_to_string(export)
            .unwrap()
            .contains("<h2>Checks</h2>")
    );
}

#[test]
fn pages_move_in_a_browser() {
    let origin = Origin::hello();
    let folder = tempfile::tempdir().unwrap();
    let pictures = Pictures::of_environment();
    let of_url = &mut command(&[
        "load",
        "-c",
        "4",
        "-q",
        "200",
        "-z",
        "60s",
        "--dashboard",
        "127.0.0.1:0",
        &origin.url("/"),
    ]);
    for (name, run) in [
        (
            "dashboard-script",
            Run::start(&mut scripted(&folder, &origin)),
        ),
        ("dashboard-load", Run::start(of_url)),
    ] {
        let mut browser = Browser::start();
        browser.open(&format!("http://{}/", run.address));
        eventually(|| {
            let points = browser.evaluate("document.querySelectorAll('path.line').length");
            points.as_u64().unwrap_or_default() >= 3
        });
        let wide = "document.documentElement.scrollWidth > innerWidth";
        assert_eq!(browser.evaluate_on_phone(wide), false, "{name}");
        if pictures.are_taken() {
            // Enough to look at.
            let drawn = "document.querySelector('path.line').getAttribute('d').split('L').length";
            eventually(|| browser.evaluate(drawn).as_u64().unwrap_or_default() > 12);
        }
        pictures.take_picture(&mut browser, name);
        run.stop();
        eventually(|| {
            let text = browser.text();
            text.contains("ended") || text.contains("stopped by a signal")
        });
        pictures.take_picture(&mut browser, &format!("{name}-end"));
        assert_eq!(browser.complaints(), [] as [String; 0], "{name}");
    }
}
