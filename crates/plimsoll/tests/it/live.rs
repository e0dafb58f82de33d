//! `plimsoll serve --live` before a browser.

use std::fs;
use std::process::{Child, Command, Stdio};

use plimsoll_testkit::eventually;
use tempfile::TempDir;

use crate::site::{serve, site};

/// A browser that shows one page, without a screen.
struct Chromium {
    child: Child,
    _profile: TempDir,
}

impl Chromium {
    fn show(url: &str) -> Self {
        let profile = tempfile::tempdir().unwrap();
        let child = Command::new("chromium")
            .args(["--headless", "--no-sandbox", "--disable-gpu"])
            .args(["--no-first-run", "--disable-sync"])
            .args([
                "--disable-background-networking",
                "--disable-component-update",
            ])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            // Without it, the program ends once the page is there.
            .arg("--remote-debugging-port=0")
            .arg(url)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("chromium is installed by `cargo xtask test`");
        Self {
            child,
            _profile: profile,
        }
    }
}

impl Drop for Chromium {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

#[test]
fn a_browser_loads_a_page_again_when_it_changes() {
    let files = site();
    let page = |image: &str| {
        let text = format!("<!doctype html><body><img src={image}>");
        fs::write(files.path("public/index.html"), text).unwrap();
    };
    // Nothing but pictures may be loaded, were it not for the mode.
    files.write(
        "public/_headers",
        "/*\n  Content-Security-Policy: default-src 'none'; img-src 'self'\n",
    );
    page("/one.png");
    let log = files.path("access.log");
    let (public, log_file) = (files.path("public"), log.to_string_lossy());
    let serving = serve(&[
        &public.to_string_lossy(),
        "--live",
        "--dialect",
        "netlify",
        "--access-log",
        &log_file,
    ]);
    let _browser = Chromium::show(&serving.url);
    let was_asked_for = |path: &str| {
        let log = fs::read_to_string(&log).unwrap_or_default();
        log.contains(&format!("\"path\":\"{path}\""))
    };
    eventually(|| was_asked_for("/one.png"));
    page("/two.png");
    eventually(|| was_asked_for("/two.png"));
    // Again, by the page that was loaded again.
    page("/three.png");
    eventually(|| was_asked_for("/three.png"));
}
