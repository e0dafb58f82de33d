//! A headless Chromium, driven by its `DevTools` protocol.

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};
use tempfile::TempDir;
use tungstenite::handshake::HandshakeError;
use tungstenite::{Error, Message, WebSocket};

/// Longer than any answer takes.
const PATIENCE: Duration = Duration::from_mins(1);

/// One page of a browser.
pub(crate) struct Browser {
    child: Child,
    _profile: TempDir,
    socket: WebSocket<TcpStream>,
    count: u64,
    /// The browser's complaints about the page: errors of scripts, and what its policy forbids.
    complaints: Vec<String>,
}

impl Browser {
    pub(crate) fn start() -> Self {
        Self::with(&[])
    }

    /// - `flags`: of Chromium, beside the usual ones.
    pub(crate) fn with(flags: &[String]) -> Self {
        let profile = tempfile::tempdir().unwrap();
        let mut child = Command::new("chromium")
            .args(["--headless", "--no-sandbox", "--disable-gpu"])
            .args(["--no-first-run", "--disable-background-networking"])
            .args(["--disable-component-update", "--disable-sync"])
            .args(["--remote-debugging-port=0", "--window-size=1280,800"])
            // The folder of its lock would stay in the usual place.
            .env("TMPDIR", profile.path())
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .args(flags)
            .arg("about:blank")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("chromium is installed by `cargo xtask test`");
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let mut lines = stderr.lines().map_while(Result::ok);
        let address = lines
            .find_map(|line| Some(line.strip_prefix("DevTools listening on ws://")?.to_owned()))
            .expect("chromium says where it listens");
        // It goes on writing, and must not wait for anybody to read that.
        std::thread::spawn(move || lines.for_each(drop));
        let address = address.split('/').next().unwrap().to_owned();
        let pages: Value = serde_json::from_str(&get(&address, "/json/list")).unwrap();
        let pages = pages.as_array().unwrap();
        let page = pages.iter().find(|page| page["type"] == "page").unwrap();
        let url = page["webSocketDebuggerUrl"].as_str().unwrap();
        let socket = debugger(&address, url);
        let mut browser = Self {
            child,
            _profile: profile,
            socket,
            count: 0,
            complaints: Vec::new(),
        };
        for domain in ["Page", "Runtime", "Log"] {
            browser.call(&format!("{domain}.enable"), &json!({}));
        }
        browser
    }

    pub(crate) fn open(&mut self, url: &str) {
        self.call("Page.navigate", &json!({ "url": url }));
    }

    /// What an expression of the page comes to; null while it has errors.
    pub(crate) fn evaluate(&mut self, expression: &str) -> Value {
        let parameters = json!({
            "expression": expression,
            "returnByValue": true,
            "awaitPromise": true,
        });
        let output = self.call("Runtime.evaluate", &parameters);
        output["result"]["value"].clone()
    }

    /// What `prefers-color-scheme` of style sheets is: `light` or `dark`.
    pub(crate) fn color_scheme(&mut self, scheme: &str) {
        let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        self.call(
            "Emulation.setEmulatedMedia",
            &json!({ "features": features }),
        );
    }

    /// What an expression comes to on a phone.
    pub(crate) fn evaluate_on_phone(&mut self, expression: &str) -> Value {
        self.screen(PHONE, true);
        let value = self.evaluate(expression);
        self.call("Emulation.clearDeviceMetricsOverride", &json!({}));
        value
    }

    /// A narrow phone from now on.
    pub(crate) fn become_phone(&mut self) {
        self.screen(NARROW, true);
    }

    /// Presses a key as a keyboard does.
    pub(crate) fn press(&mut self, key: Key) {
        let (name, code, text) = match key {
            Key::Tab => ("Tab".to_owned(), 9, String::new()),
            Key::Enter => ("Enter".to_owned(), 13, "\r".to_owned()),
            Key::Space => (" ".to_owned(), 32, " ".to_owned()),
            Key::Letter(letter) => (
                letter.to_string(),
                u32::from(letter.to_ascii_uppercase()),
                letter.to_string(),
            ),
        };
        for kind in ["keyDown", "keyUp"] {
            let event = json!({
                "type": kind, "key": name, "windowsVirtualKeyCode": code,
                "text": if kind == "keyDown" { text.as_str() } else { "" },
            });
            self.call("Input.dispatchKeyEvent", &event);
        }
    }

    /// Types into what has the focus.
    pub(crate) fn type_text(&mut self, text: &str) {
        self.call("Input.insertText", &json!({ "text": text }));
    }

    fn screen(&mut self, width: u32, is_phone: bool) {
        let metrics = json!({
            "width": width, "height": 800, "deviceScaleFactor": 1, "mobile": is_phone,
        });
        self.call("Emulation.setDeviceMetricsOverride", &metrics);
    }

    /// A picture of the whole page in PNG, as it is on a screen of that width.
    fn picture(&mut self, width: u32, is_phone: bool) -> Vec<u8> {
        self.screen(width, is_phone);
        let parameters = json!({ "format": "png", "captureBeyondViewport": true });
        let picture = self.call("Page.captureScreenshot", &parameters);
        self.call("Emulation.clearDeviceMetricsOverride", &json!({}));
        BASE64_STANDARD
            .decode(picture["data"].as_str().unwrap())
            .unwrap()
    }

    /// The text that a reader of the page sees.
    pub(crate) fn text(&mut self) -> String {
        let text = self.evaluate("document.body.innerText");
        text.as_str().unwrap_or_default().to_owned()
    }

    /// Whether nothing on the page went wrong so far.
    pub(crate) fn complaints(&mut self) -> &[String] {
        self.evaluate("1");
        &self.complaints
    }

    fn call(&mut self, method: &str, parameters: &Value) -> Value {
        self.count += 1;
        let call = json!({ "id": self.count, "method": method, "params": parameters });
        self.socket.send(Message::text(call.to_string())).unwrap();
        loop {
            let text = match self.socket.read() {
                Ok(Message::Text(text)) => text,
                Ok(_) => continue,
                // A signal ends a read that has a timeout (signal(7)); nothing was read.
                Err(Error::Io(error)) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => panic!("{method}: {error}"),
            };
            let output: Value = serde_json::from_str(&text).unwrap();
            match output["method"].as_str() {
                Some("Runtime.exceptionThrown") => self.complaints.push(output.to_string()),
                Some("Log.entryAdded") if output["params"]["entry"]["level"] == "error" => {
                    self.complaints.push(output.to_string());
                }
                _ => {}
            }
            if output["id"] == self.count {
                return output["result"].clone();
            }
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// A key that is no text.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Key {
    Tab,
    Enter,
    Space,
    /// A small letter.
    Letter(char),
}

/// Width of the screen of a narrow phone.
pub(crate) const NARROW: u32 = 375;

/// Width of a phone's screen.
const PHONE: u32 = 390;

/// Pictures of pages for people to look at, in the folder that `PLIMSOLL_PICTURES` names; without it there are none.
pub(crate) struct Pictures(Option<PathBuf>);

impl Pictures {
    pub(crate) fn of_environment() -> Self {
        let folder = std::env::var_os("PLIMSOLL_PICTURES").map(PathBuf::from);
        if let Some(folder) = &folder {
            fs::create_dir_all(folder).unwrap();
        }
        Self(folder)
    }

    /// Whether there are any.
    pub(crate) fn are_taken(&self) -> bool {
        self.0.is_some()
    }

    /// The page as it is, on a desktop and a phone, light and dark.
    pub(crate) fn take_picture(&self, browser: &mut Browser, name: &str) {
        let Some(folder) = &self.0 else {
            return;
        };
        for scheme in ["light", "dark"] {
            browser.color_scheme(scheme);
            for (device, width, is_phone) in [("desktop", 1280, false), ("phone", PHONE, true)] {
                let file = folder.join(format!("{name}-{device}-{scheme}.png"));
                fs::write(file, browser.picture(width, is_phone)).unwrap();
            }
        }
        browser.color_scheme("light");
    }
}

/// The content at a path, in the clear.
pub(crate) fn get(address: &str, path: &str) -> String {
    ask(address, "GET", path, "")
}

/// The content of an answer.
pub(crate) fn ask(address: &str, method: &str, path: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let length = body.len();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        if line.trim().is_empty() {
            break;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
    }
    let mut content = vec![0; length];
    reader.read_exact(&mut content).unwrap();
    String::from_utf8(content).unwrap()
}

/// Connects to the debugger. A signal may interrupt a read that has a timeout, which ends a handshake.
fn debugger(address: &str, url: &str) -> WebSocket<TcpStream> {
    for _ in 0..10 {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        match tungstenite::client(url, stream) {
            Ok((socket, _)) => return socket,
            Err(HandshakeError::Failure(Error::Io(error)))
                if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => panic!("{error}"),
        }
    }
    panic!("the handshake with the debugger is interrupted again and again");
}
