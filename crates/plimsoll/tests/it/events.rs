//! `plimsoll load --sse` from its flags to its summary, against a server that we did not write.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use crate::plimsoll::plimsoll;

/// Python's own server, with a stream of ten events a second that never ends at `/events`, and one of
/// three events at `/short`.
const SERVER: &str = r#"
import http.server, sys, time

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        number = int(self.headers.get("Last-Event-ID", "0"))
        is_short = self.path == "/short"
        try:
            for _ in range(3 if is_short else 10**9):
                number += 1
                self.wfile.write(f"retry: 10\nid: {number}\ndata: tick\n\n".encode())
                self.wfile.flush()
                if not is_short:
                    time.sleep(0.1)
        except OSError:
            pass

    def log_message(self, *_):
        pass

server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
"#;

pub(crate) struct EventServer {
    child: Child,
    port: String,
}

impl EventServer {
    pub(crate) fn start() -> Self {
        let mut child = Command::new("python3")
            .args(["-c", SERVER])
            .stdout(Stdio::piped())
            .spawn()
            .expect("python3 is installed");
        let mut port = String::new();
        let stdout = child.stdout.take().unwrap();
        BufReader::new(stdout).read_line(&mut port).unwrap();
        Self {
            child,
            port: port.trim().to_owned(),
        }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }
}

impl Drop for EventServer {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

#[test]
fn events_of_a_foreign_server_are_counted() {
    let server = EventServer::start();
    let url = server.url("/events");
    let flags = ["load", "--sse", "--json", "-c", "4", "-z", "600ms", &url];
    let summary = plimsoll(&flags).exits(0).json();
    assert_eq!(summary["load"]["exchanges"], "streams");
    assert_eq!(summary["counts"]["ok"], 4);
    assert_eq!(summary["events"]["left"], 4);
    let received = summary["events"]["received"].as_u64().unwrap();
    assert!((4..=4 * 7).contains(&received), "{received}");
    assert_eq!(summary["events"]["gaps"]["count"], received);

    let url = server.url("/short");
    let flags = ["load", "-v", "--sse", "-c", "1", "-n", "3", &url];
    let output = plimsoll(&flags).exits(0);
    for part in [
        "\nevents     ",
        "\nstreams    ",
        "3 opened; 3 ended by the server",
        "9,",
    ] {
        assert!(output.stdout.contains(part), "{part}: {output}");
    }
}

#[test]
fn what_does_not_go_with_streams_is_reported_at_once() {
    let flags = "load --sse --expect status==200 --cookies --digest a:b";
    let output = plimsoll(&flags.split_whitespace().collect::<Vec<_>>()).exits(2);
    for flag in ["--expect", "--cookies", "--digest"] {
        assert!(
            output
                .stderr
                .contains(&format!("{flag}: does not go with --sse")),
            "{output}"
        );
    }
    assert!(
        output.stderr.contains("the embedded origin has no streams"),
        "{output}"
    );
}
