//! The pages that instruments write, in a browser: nothing is wider than a phone, and no script or style is refused.
//!
//! `PLIMSOLL_PICTURES=DIR` has a picture of each.

use std::fs;
use std::path::Path;

use plimsoll_testkit::{Origin, eventually};

use crate::browser::{Browser, Pictures};
use crate::observe::{pid, server};
use crate::plimsoll::plimsoll;

const PLAN: &str = r#"
name = "twins"
repeats = 2
warm_up = "100ms"
window = "300ms"

[[target]]
name = "one"
command = "{plimsoll} origin --port {port}"
url = "http://127.0.0.1:{port}/"

[[target]]
name = "the other with a name longer than most"
command = "{plimsoll} origin --port {port}"
url = "http://127.0.0.1:{port}/"

[[load]]
name = "closed"
connections = 2
"#;

#[test]
fn pages_of_instruments_fit_a_phone() {
    let origin = Origin::hello();
    let url = origin.url("/a/path/that/is/longer/than/a/phone/is/wide?with=a&query=of-its-own");
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    for name in ["before", "after"] {
        let load = ["load", "-n", "200", "-c", "2", "--threshold", "p99<10s"];
        plimsoll(&[&load[..], &["--out", &path(name), &url]].concat()).exits(0);
    }
    let both = path("both.html");
    let report = ["report", "--format", "html", "-o", &both];
    plimsoll(&[&report[..], &[&path("before"), &path("after")]].concat()).exits(0);
    let short = ["compare", "--trials", "2", "--seconds", "1", "-c", "2"];
    plimsoll(&[&short[..], &["--out", &path("compare"), &url, &url]].concat()).exits(0);
    let line = [
        "line",
        "--first",
        "300",
        "--objective",
        "http_reqs:rate<320",
    ];
    let quick = ["--window", "200ms", "--warm-up", "0s", "--rounds", "1"];
    plimsoll(&[&line[..], &quick, &["--out", &path("line"), &url]].concat());
    let observed = server();
    let soak = ["soak", "--sample", "100ms", "-z", "2s", "--pid"];
    plimsoll(&[&soak[..], &[&pid(&observed), "--out", &path("soak")]].concat()).exits(0);
    let plan = path("plan.toml");
    fs::write(&plan, PLAN).unwrap();
    plimsoll(&["lab", &plan, "--out", &path("lab")]).exits(0);

    let rates = ["--rates", "100,200"];
    let out = path("rates");
    plimsoll(&[&short[..], &rates, &["--out", &out, &url, &url]].concat()).exits(0);
    let trend = path("trend.html");
    let report = ["report", "--trend", "--format", "html", "-o", &trend];
    plimsoll(&[&report[..], &[&path("before"), &path("after")]].concat()).exits(0);

    let pictures = Pictures::of_environment();
    for page in [
        "before/report.html",
        "both.html",
        "compare/compare.html",
        "rates/compare.html",
        "trend.html",
        "line/line.html",
        "soak/report.html",
        "lab/lab.html",
        "lab/target-one.html",
    ] {
        let file = path(page);
        assert!(Path::new(&file).is_file(), "{page} is missing");
        let mut browser = Browser::start();
        browser.open(&format!("file://{file}"));
        eventually(|| browser.evaluate("document.readyState") == "complete");
        let wider = "[...document.querySelectorAll('body *')].filter(it => it.getBoundingClientRect().right > innerWidth + 1 \
                     && !it.closest('.wide, svg')).map(it => it.outerHTML.slice(0, 80)).slice(0, 3).join()";
        let scrolls = "document.documentElement.scrollWidth > innerWidth";
        let is_wide = browser.evaluate_on_phone(scrolls);
        let what = browser.evaluate_on_phone(wider);
        assert_eq!(is_wide, false, "{page}: {what}");
        let name = page.replace(['/', '.'], "-");
        pictures.take_picture(&mut browser, &name);
        assert_eq!(browser.complaints(), [] as [String; 0], "{page}");
    }
}
