//! Monitors that agents in other regions check.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use http::{Method, Request, StatusCode};
use plimsoll_monitor::agent::work::work;
use plimsoll_monitor::agent::{self, AgentOptions, CentreError, Link, LinkFuture, Reply};
use plimsoll_monitor::config::{ApiToken, load};
use plimsoll_monitor::engine::report::Report;
use plimsoll_monitor::time::Timestamp;
use plimsoll_testkit::{Origin, eventually, refused_address};
use serde_json::Value;
use tempfile::TempDir;
use tokio::sync::oneshot;
use tower_service::Service as _;

use crate::client::Running;

const TOKEN: &str = "pm_agent";

/// The centre without sockets, which may be away.
struct Direct {
    router: Mutex<Router>,
    token: Mutex<String>,
    is_away: AtomicBool,
    reports: AtomicU32,
    /// Takes the next report, and loses the answer.
    loses: AtomicBool,
}

impl Direct {
    fn new(running: &Running) -> Arc<Self> {
        Arc::new(Self {
            router: Mutex::new(running.router()),
            token: Mutex::new(TOKEN.to_owned()),
            is_away: AtomicBool::new(false),
            reports: AtomicU32::new(0),
            loses: AtomicBool::new(false),
        })
    }

    fn set_away(&self, is_away: bool) {
        self.is_away.store(is_away, Ordering::SeqCst);
    }

    async fn call(
        &self,
        method: Method,
        path: &str,
        known: Option<String>,
        body: String,
    ) -> Result<String, CentreError> {
        if self.is_away.load(Ordering::SeqCst) {
            return Err(CentreError::Away("refused".to_owned()));
        }
        let token = format!("Bearer {}", self.token.lock().unwrap());
        let mut request = Request::builder().method(method).uri(path);
        request = request.header("authorization", token);
        if let Some(known) = known {
            request = request.header("if-none-match", known);
        }
        let mut router = self.router.lock().unwrap().clone();
        let response = router.call(request.body(Body::from(body)).unwrap()).await;
        let response = response.unwrap();
        let status = response.status();
        let content = to_bytes(response.into_body(), 10_000_000).await.unwrap();
        let text = String::from_utf8(content.to_vec()).unwrap();
        match status.as_u16() {
            200 | 304 => Ok(text),
            401 | 403 => Err(CentreError::Refused(status.to_string())),
            _ => Err(CentreError::Away(format!("{status} {text}"))),
        }
    }
}

/// The link of an agent on its thread.
struct Way(Arc<Direct>);

impl Link for Way {
    fn fetch(&self, known: Option<String>) -> LinkFuture<'_> {
        Box::pin(async move {
            let path = "/api/v1/agent/work";
            let text = self.0.call(Method::GET, path, known, String::new()).await?;
            Ok(if text.is_empty() {
                Reply::Fine
            } else {
                Reply::Work(text)
            })
        })
    }

    fn send(&self, report: Report) -> LinkFuture<'_> {
        Box::pin(async move {
            let report = serde_json::to_string(&report).unwrap();
            let path = "/api/v1/agent/results";
            let sent = self.0.call(Method::POST, path, None, report).await;
            self.0.reports.fetch_add(1, Ordering::SeqCst);
            if self.0.loses.swap(false, Ordering::SeqCst) {
                return Err(CentreError::Away("the answer is lost".to_owned()));
            }
            sent.map(|text| Reply::to_report(text.as_bytes()))
        })
    }
}

/// Runs an agent until `done` holds; what the operator saw.
#[track_caller]
fn with_agent(
    link: &Arc<Direct>,
    options: AgentOptions,
    done: impl FnMut() -> bool,
) -> Vec<String> {
    let seen = Arc::<Mutex<Vec<String>>>::default();
    let (stop, stopped) = oneshot::channel();
    let thread = std::thread::spawn({
        let (seen, link) = (Arc::clone(&seen), Arc::clone(link));
        move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            let report = move |message: &str| seen.lock().unwrap().push(message.to_owned());
            let agent = agent::run(options, Rc::new(Way(link)), Arc::new(report), stopped);
            tokio::task::LocalSet::new().block_on(&runtime, agent);
        }
    });
    eventually(done);
    drop(stop);
    thread.join().unwrap();
    let seen = seen.lock().unwrap();
    seen.clone()
}

fn quick() -> AgentOptions {
    AgentOptions {
        fetch_every: Duration::from_millis(20),
        send_every: Duration::from_millis(20),
        ..AgentOptions::default()
    }
}

fn configuration(target: &str, more: &str) -> String {
    let hash = ApiToken::written(&ApiToken::hash_of(TOKEN));
    format!(
        r#"
        store = "monitor.db"
        region = "home"
        [[agent]]
        name = "far"
        sha256 = "{hash}"
        [[monitor]]
        name = "web"
        http = "{target}"
        interval = "100ms"
        jitter = "0%"
        hold = "0s"
        expect = ["status == 200"]
        {more}
        "#
    )
}

fn regions_of(web: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let regions = web["regions"].as_array().unwrap();
    regions
        .iter()
        .map(|it| (text(&it["name"]), text(&it["health"])))
        .collect()
}

#[test]
fn an_agent_checks_what_it_is_sent_and_its_results_are_those_of_its_region() {
    let folder = TempDir::new().unwrap();
    let origin = Origin::builder().start();
    let text = configuration(&origin.url("/"), "from = [\"home\", \"far\"]");
    let running = Running::new(folder.path(), "monitor.toml", &text);
    let link = Direct::new(&running);
    let both = || {
        let web = running.json("/api/v1/monitors/_web");
        let up = |name: &str| (name.to_owned(), "up".to_owned());
        regions_of(&web) == [up("far"), up("home")]
    };
    let shown = with_agent(&link, quick(), both);
    assert_eq!(shown, [""; 0]);
    for region in ["home", "far"] {
        let of_region = || {
            let found = running.json("/api/v1/monitors/_web/results?limit=500");
            let results = found["results"].as_array().unwrap();
            let mut results = results.iter();
            results.find(|result| result["region"] == region).cloned()
        };
        // Results reach the store in batches, behind the health they lead to.
        eventually(|| of_region().is_some());
        let of_region = of_region().unwrap();
        assert_eq!(of_region["status"], "up");
        assert!(of_region["phases"]["connect_us"].is_u64(), "{of_region}");
    }
    let regions = running.json("/api/v1/regions");
    assert_eq!(regions["regions"][0]["name"], "home");
    assert_eq!(regions["regions"][1]["name"], "far");
    assert_eq!(regions["regions"][1]["monitors"], 1);
    assert!(regions["regions"][1]["seen"].is_string(), "{regions}");
    let (_, metrics) = running.get("/metrics");
    assert!(
        metrics.contains("plimsoll_monitor_agent_last_seen_seconds{region=\"far\",agent=\"far\"}"),
        "{metrics}"
    );
}

#[test]
fn checks_go_on_while_the_centre_is_away_and_nothing_is_counted_twice() {
    let folder = TempDir::new().unwrap();
    let origin = Origin::builder().start();
    let text = configuration(&origin.url("/"), "from = \"far\"");
    let running = Running::new(folder.path(), "monitor.toml", &text);
    let link = Direct::new(&running);
    let options = AgentOptions {
        state: Some(folder.path().join("work.toml")),
        ..quick()
    };
    let stored = || {
        let found = running.json("/api/v1/monitors/_web/results?limit=500");
        found["results"].as_array().unwrap().len()
    };
    let mut before = None;
    let shown = with_agent(&link, options.clone(), || {
        let requests = origin.requests();
        match before {
            None => {
                if stored() > 0 {
                    link.loses.store(true, Ordering::SeqCst);
                    link.set_away(true);
                    before = Some(requests);
                }
                false
            }
            // Checks go on.
            Some(before) => {
                if requests >= before + 3 {
                    link.set_away(false);
                }
                stored() as u64 >= before + 3
            }
        }
    });
    assert!(
        shown.iter().any(|it| it.contains("the centre is away")),
        "{shown:?}"
    );
    // Every check was stored once; the last ones may have been stopped on their way.
    assert!(
        stored() as u64 <= origin.requests(),
        "{} > {}",
        stored(),
        origin.requests()
    );
    let web = running.json("/api/v1/monitors/_web");
    assert_eq!(web["health"], "up");
    let (status, text) = running.call(Method::POST, "/api/v1/monitors/_web/check-now", &[], "");
    assert_eq!(status, StatusCode::FORBIDDEN, "{text}");

    // A start without the centre begins with the last configuration.
    link.set_away(true);
    let requests = origin.requests();
    with_agent(&link, options, || origin.requests() > requests);
    let kept = std::fs::metadata(folder.path().join("work.toml")).unwrap();
    assert_eq!(kept.permissions().mode() & 0o777, 0o600);
}

#[test]
fn an_outage_in_one_region_is_none_by_majority_and_one_by_any() {
    for (rule, expected) in [("majority", "degraded"), ("any", "down")] {
        let folder = TempDir::new().unwrap();
        let address = refused_address();
        let more = format!("from = [\"far\"]\nregions = \"{rule}\"");
        let text = configuration(&format!("http://{address}/"), &more);
        // This process reaches it by a manual verdict: a monitor of one region cannot have two here.
        let text = text.replace("from = [\"far\"]", "from = [\"far\", \"home\", \"third\"]");
        let hash = ApiToken::written(&ApiToken::hash_of("pm_third"));
        let text = text.replace(
            "[[monitor]]",
            &format!("[[agent]]\nname = \"third\"\nsha256 = [\"{hash}\", \"{hash}\"]\n[[monitor]]"),
        );
        let running = Running::new(folder.path(), "monitor.toml", &text);
        let report = |token: &str, number: u64, status: &str| {
            // By a clock that stands at 1970: the centre corrects it.
            let now = 0;
            let body = serde_json::json!({
                "run": 1, "version": "0", "now": now, "waiting": 0, "lost": 0,
                "results": [{
                    "number": number, "key": "_web", "at": now, "status": status, "took_us": 5,
                    "phases_us": [], "code": null, "reason": null, "connected": true,
                    "conditions": [], "certificate_expires": null, "domain_expires": null,
                }],
            });
            let token = format!("Bearer {token}");
            let fields = [("authorization", token.as_str())];
            let path = "/api/v1/agent/results";
            let (status, text) = running.call(Method::POST, path, &fields, &body.to_string());
            assert_eq!(status, StatusCode::OK, "{text}");
            serde_json::from_str::<Value>(&text).unwrap()["taken"]
                .as_u64()
                .unwrap()
        };
        // The target refuses this process; the two agents reach it.
        eventually(|| {
            let web = running.json("/api/v1/monitors/_web");
            regions_of(&web).contains(&("home".to_owned(), "down".to_owned()))
        });
        for number in 1..=2 {
            assert_eq!(report("pm_agent", number, "up"), 1);
            assert_eq!(report("pm_third", number, "up"), 1);
        }
        running.wait_for("_web", expected);
        // A report that is repeated counts once.
        assert_eq!(report("pm_agent", 2, "down"), 0);
        running.wait_for("_web", expected);
    }
}

#[test]
fn agents_of_one_region_share_its_monitors_and_take_over_from_each_other() {
    const MONITORS: usize = 12;
    const TOKENS: [&str; 2] = [TOKEN, "pm_second"];

    let folder = TempDir::new().unwrap();
    let origin = Origin::builder().start();
    let mut text = String::from("store = \"monitor.db\"\nregion = \"home\"\n");
    for (number, token) in TOKENS.iter().enumerate() {
        let hash = ApiToken::written(&ApiToken::hash_of(token));
        write!(
            text,
            "[[agent]]\nname = \"far-{number}\"\nregion = \"far\"\nsha256 = \"{hash}\"\n"
        )
        .unwrap();
    }
    for number in 0..MONITORS {
        let target = origin.url(&format!("/{number}"));
        write!(
            text,
            "[[monitor]]\nname = \"m{number}\"\nhttp = \"{target}\"\ninterval = \"100ms\"\nfrom = \"far\"\n"
        )
        .unwrap();
    }
    let running = Running::new(folder.path(), "monitor.toml", &text);
    let names = |work: &str| -> BTreeSet<String> {
        let lines = work.lines().filter(|line| line.starts_with("name = "));
        lines.map(str::to_owned).collect()
    };
    let share = |token: &str| {
        let token = format!("Bearer {token}");
        let fields = [("authorization", token.as_str())];
        let (status, work) = running.call(Method::GET, "/api/v1/agent/work", &fields, "");
        assert_eq!(status, StatusCode::OK);
        names(&work)
    };
    let links = TOKENS.map(|token| {
        let link = Direct::new(&running);
        token.clone_into(&mut link.token.lock().unwrap());
        link
    });
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| with_agent(&links[1], quick(), || is_over.load(Ordering::SeqCst)));
        with_agent(&links[0], quick(), || {
            let shares = TOKENS.map(share);
            let is_divided = shares.iter().all(|share| !share.is_empty())
                && shares[0].is_disjoint(&shares[1])
                && shares[0].len() + shares[1].len() == MONITORS;
            let is_up = |number: usize| {
                running.json(&format!("/api/v1/monitors/_m{number}"))["health"] == "up"
            };
            is_divided && (0..MONITORS).all(is_up)
        });
        is_over.store(true, Ordering::SeqCst);
    });
    let regions = running.json("/api/v1/regions");
    let far = &regions["regions"][1];
    assert_eq!(far["name"], "far");
    assert_eq!(far["monitors"], MONITORS);
    assert_eq!(far["agents"][1]["name"], "far-1");
    assert!(far["agents"][1]["seen"].is_string(), "{regions}");
    // Neither has reported recently: each agent that fetches its work gets all monitors.
    let board = &running.monitor.handle().board;
    let later = Timestamp(4_000_000_000_000);
    for agent in ["far-0", "far-1"] {
        assert_eq!(names(&work(board, agent, later)).len(), MONITORS);
    }
}

#[test]
fn a_token_can_be_replaced_and_reaches_only_what_its_agent_checks() {
    let folder = TempDir::new().unwrap();
    let origin = Origin::builder().start();
    let text = configuration(&origin.url("/"), "from = \"far\"");
    let text = format!(
        "{text}\n[[monitor]]\nname = \"own\"\ninterval = \"1h\"\nhttp = {{ url = \"{}\", bearer = \"hidden\" }}\n",
        origin.url("/")
    );
    let running = Running::new(folder.path(), "monitor.toml", &text);
    let link = Direct::new(&running);
    let work = |token: &str| {
        let token = format!("Bearer {token}");
        running.call(
            Method::GET,
            "/api/v1/agent/work",
            &[("authorization", &token)],
            "",
        )
    };
    let (status, sent) = work(TOKEN);
    assert_eq!(status, StatusCode::OK);
    assert!(
        sent.contains("name = \"web\"") && !sent.contains("hidden"),
        "{sent}"
    );
    let token = format!("Bearer {TOKEN}");
    let fields = [("authorization", token.as_str())];
    for path in ["/api/v1/tokens", "/api/v1/audit"] {
        let (status, text) = running.call(Method::GET, path, &fields, "");
        assert_eq!(status, StatusCode::FORBIDDEN, "{path}: {text}");
    }
    let report = r#"{"run":1,"version":"0","now":0,"waiting":0,"lost":0,"results":[{"number":1,"key":"_own","at":0,
        "status":"down","took_us":1,"phases_us":[],"code":null,"reason":null,"connected":true,"conditions":[],
        "certificate_expires":null,"domain_expires":null}]}"#;
    let (status, answer) = running.call(Method::POST, "/api/v1/agent/results", &fields, report);
    assert_eq!((status, answer.as_str()), (StatusCode::OK, "{\"taken\":0}"));
    assert_eq!(work("pm_other").0, StatusCode::UNAUTHORIZED);

    // Both tokens are valid until the old one is taken out.
    let old = ApiToken::written(&ApiToken::hash_of(TOKEN));
    let new = ApiToken::written(&ApiToken::hash_of("pm_new"));
    let change = |hashes: &str| {
        let text = text.replace(
            &format!("sha256 = \"{old}\""),
            &format!("sha256 = {hashes}"),
        );
        std::fs::write(folder.path().join("monitor.toml"), text).unwrap();
        let plan = load(&folder.path().join("monitor.toml"), &|_| None).unwrap();
        running
            .block_on(running.monitor.handle().reload(plan))
            .unwrap();
    };
    change(&format!("[\"{old}\", \"{new}\"]"));
    assert_eq!(work(TOKEN).0, StatusCode::OK);
    assert_eq!(work("pm_new").0, StatusCode::OK);
    change(&format!("\"{new}\""));
    assert_eq!(work(TOKEN).0, StatusCode::UNAUTHORIZED);
    // An agent that is refused stops, and goes on with a token that is accepted.
    let requests = origin.requests();
    let mut is_refused = false;
    let shown = with_agent(&link, quick(), || {
        if !is_refused && link.reports.load(Ordering::SeqCst) > 3 {
            is_refused = true;
            assert_eq!(origin.requests(), requests);
            "pm_new".clone_into(&mut link.token.lock().unwrap());
        }
        origin.requests() > requests
    });
    assert!(is_refused);
    assert!(shown[0].contains("refuses the token"), "{shown:?}");
}

#[test]
fn problems_of_regions_are_reported_with_their_places() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("monitor.toml");
    let text = r#"
        store = "memory"
        [[agent]]
        name = "Far Away"
        sha256 = "12"
        [[agent]]
        name = "near"
        sha256 = "0000000000000000000000000000000000000000000000000000000000000000"
        [[agent]]
        name = "near"
        sha256 = "0000000000000000000000000000000000000000000000000000000000000000"
        [[agent]]
        name = "other"
        region = "default"
        sha256 = "0000000000000000000000000000000000000000000000000000000000000000"
        [[monitor]]
        name = "a"
        http = "http://127.0.0.1/"
        from = ["neer"]
        [[monitor]]
        name = "b"
        http = { url = "http://127.0.0.1/", ca = "ca.pem" }
        from = ["near"]
        [[monitor]]
        name = "c"
        manual = true
        from = ["near"]
    "#;
    std::fs::write(&path, text).unwrap();
    let error = load(&path, &|_| None).unwrap_err();
    let shown = format!("{error:?}");
    for expected in [
        "`Far Away` is no name of a region",
        "`near` is the name of another agent",
        "`default` is the region of this process",
        "there is no region `neer`",
        "names a file of the machine",
        "`from` has no effect on this kind",
    ] {
        assert!(shown.contains(expected), "{expected}: {shown}");
    }
}

#[test]
fn a_check_at_once_reaches_the_agents_and_the_page_shows_what_each_region_sees() {
    let folder = TempDir::new().unwrap();
    let origin = Origin::builder().start();
    let page = "[[page]]\nslug = \"p\"\ntitle = \"P\"\n[[monitor]]\nname = \"rare\"\nfrom = \"far\"\ninterval = \"1h\"\n";
    let more = format!(
        "from = [\"home\", \"far\"]\n{page}http = \"{}\"\n",
        origin.url("/rare")
    );
    let text = configuration(&origin.url("/"), &more);
    let running = Running::new(folder.path(), "monitor.toml", &text);
    let handle = running.monitor.handle().clone();
    // Without an agent it is refused at once.
    let error = running.block_on(handle.check_now("_rare")).unwrap_err();
    assert!(
        error.to_string().contains("none of them reports"),
        "{error}"
    );
    let link = Direct::new(&running);
    let results_of = |monitor: &str, region: &str| {
        let found = running.json(&format!("/api/v1/monitors/{monitor}/results?limit=500"));
        let results = found["results"].as_array().unwrap();
        results.iter().filter(|it| it["region"] == region).count()
    };
    let results = |region: &str| results_of("_web", region);
    let checks = || {
        origin
            .heads()
            .iter()
            .filter(|head| head.starts_with("GET /rare"))
            .count()
    };
    let mut asked = None;
    with_agent(&link, quick(), || {
        // Its first check was due by itself, the next one is in an hour. While it is under way, `check_now` would get its result.
        if asked.is_none() && results_of("_rare", "far") > 0 {
            let before = checks();
            let result = running.block_on(handle.check_now("_rare")).unwrap();
            assert_eq!(result.status, plimsoll_monitor::Status::Up);
            assert_eq!(checks(), before + 1);
            asked = Some(before);
        }
        asked.is_some() && results("far") > 2 && results("home") > 2
    });
    let shown = || running.get("/status/p/components/_web").1;
    eventually(|| shown().contains("<th scope=\"row\">far</th>"));
    let shown = shown();
    assert!(shown.contains("<th scope=\"row\">home</th>"), "{shown}");
    assert!(shown.contains("Regions, last 24 hours"), "{shown}");
    // A monitor of one region has no such table.
    let (_, rare) = running.get("/status/p/components/_rare");
    assert!(!rare.contains("Regions, last 24 hours"));
}
