//! A client of the protocol that sends what a test writes.

use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::plimsoll::command;

/// Far longer than any answer takes on a busy machine.
const PATIENCE: Duration = Duration::from_mins(2);

/// The program with a client that has initialized it.
pub(super) struct Client {
    pub(super) child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    /// Messages that were read before they were awaited.
    unread: VecDeque<Value>,
    next: u64,
}

impl Client {
    /// - `flags`: of `plimsoll mcp`, besides its root.
    pub(super) fn start(root: &Path, flags: &[&str]) -> Self {
        let mut client = Self::uninitialized(root, flags);
        let answer = client.request(
            "initialize",
            &json!({
                "protocolVersion": "2025-06-18",
                "capabilities": {},
                "clientInfo": { "name": "test", "version": "1" },
            }),
        );
        assert_eq!(
            answer["result"]["serverInfo"]["name"], "plimsoll",
            "{answer}"
        );
        client.notify("notifications/initialized", &json!({}));
        client
    }

    pub(super) fn uninitialized(root: &Path, flags: &[&str]) -> Self {
        let root = root.to_str().unwrap();
        let mut child = command(&[&["mcp", "--root", root], flags].concat())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .env("SECRET_OF_THE_OPERATOR", "not for models")
            .spawn()
            .unwrap();
        let stdin = child.stdin.take();
        let stdout = child.stdout.take().unwrap();
        let (sender, lines) = channel();
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        Self {
            child,
            stdin,
            lines,
            unread: VecDeque::new(),
            next: 1,
        }
    }

    /// Sends bytes as they are.
    pub(super) fn send_bytes(&mut self, bytes: &[u8]) {
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(bytes).and_then(|()| stdin.flush()).unwrap();
    }

    pub(super) fn send(&mut self, message: &Value) {
        self.send_bytes(format!("{message}\n").as_bytes());
    }

    pub(super) fn notify(&mut self, method: &str, params: &Value) {
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    }

    /// Sends a request and returns its id.
    pub(super) fn begin(&mut self, method: &str, params: &Value) -> u64 {
        let id = self.next;
        self.next += 1;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        id
    }

    /// The next message for which `is_wanted` holds; others wait for their turn. Everything on standard output is JSON.
    pub(super) fn message(&mut self, is_wanted: impl Fn(&Value) -> bool) -> Value {
        if let Some(position) = self.unread.iter().position(&is_wanted) {
            return self.unread.remove(position).unwrap();
        }
        loop {
            let line = self.lines.recv_timeout(PATIENCE).unwrap();
            let message: Value =
                serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error} in {line}"));
            assert_eq!(message["jsonrpc"], "2.0", "{line}");
            if is_wanted(&message) {
                return message;
            }
            self.unread.push_back(message);
        }
    }

    pub(super) fn answer(&mut self, id: u64) -> Value {
        self.message(|message| message["id"] == id)
    }

    pub(super) fn request(&mut self, method: &str, params: &Value) -> Value {
        let id = self.begin(method, params);
        self.answer(id)
    }

    pub(super) fn begin_call(&mut self, tool: &str, arguments: &Value) -> u64 {
        self.begin(
            "tools/call",
            &json!({ "name": tool, "arguments": arguments }),
        )
    }

    /// The result of a tool.
    pub(super) fn call(&mut self, tool: &str, arguments: &Value) -> Called {
        let id = self.begin_call(tool, arguments);
        Called::from_answer(&self.answer(id))
    }

    /// The client closes its end, as at the end of a session.
    pub(super) fn leave(&mut self) {
        self.stdin = None;
    }

    pub(super) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.stdin = None;
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// What a tool returned.
#[derive(Debug)]
pub(super) struct Called {
    pub(super) is_error: bool,
    pub(super) text: String,
    pub(super) structured: Value,
}

impl Called {
    pub(super) fn from_answer(answer: &Value) -> Self {
        let result = &answer["result"];
        assert!(result.is_object(), "{answer}");
        let text = result["content"][0]["text"].as_str().unwrap();
        Self {
            is_error: result["isError"] == true,
            text: text.to_owned(),
            structured: result["structuredContent"].clone(),
        }
    }

    #[track_caller]
    pub(super) fn succeeds(self) -> Self {
        assert!(!self.is_error, "{}", self.text);
        assert!(!self.text.is_empty());
        self
    }

    /// - `parts`: of its text.
    #[track_caller]
    pub(super) fn fails(self, parts: &[&str]) -> Self {
        assert!(self.is_error, "{} {}", self.text, self.structured);
        for part in parts {
            assert!(self.text.contains(part), "{part} in {}", self.text);
        }
        self
    }
}
