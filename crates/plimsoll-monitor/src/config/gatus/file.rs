//! A configuration of Gatus as a whole, compiled to our plans.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::tz::TimeZone;
use plimsoll_formats::yaml::Node;
use plimsoll_model::Secret;
use plimsoll_model::document::ConfigProblem;
use plimsoll_server::{BasicAuth, HashError, PasswordHash};

use crate::config::gatus::alerting::Alerting;
use crate::config::gatus::endpoint::Endpoints;
use crate::config::maintenance::{clock_time_of, weekday_of};
use crate::config::{
    BasicLogin, DEFAULT_ORGANISATION, DEFAULT_REGION, Dialect, GatusSettings, Guard, LoadError,
    MonitorPlan, PagePlan, Plan, StorePlan,
};
use crate::detect::window::{Starts, Window};
use crate::schedule::GateLimits;
use crate::store::Retention;
use crate::time::Timestamp;
use crate::yaml::block::Block;
use crate::yaml::findings::Findings;
use crate::yaml::{self, UnsetVariable};

/// Loads a file, or all files of a folder, which are merged.
pub(in crate::config) fn load(
    path: &Path,
    environment: &dyn Fn(&str) -> Option<String>,
) -> Result<Plan, LoadError> {
    let shown = path.display().to_string();
    let unreadable = |path: &Path, error: &std::io::Error| LoadError::Read {
        path: path.display().to_string(),
        reason: error.to_string(),
    };
    let mut files = Vec::new();
    if path.is_dir() {
        collect(path, &mut files).map_err(|error| unreadable(path, &error))?;
        files.sort();
    } else {
        files.push(path.to_owned());
    }
    if files.is_empty() {
        return Err(LoadError::Read {
            path: shown,
            reason: "the folder has no .yaml or .yml file".to_owned(),
        });
    }
    let mut problems = Vec::new();
    let mut merged: Option<Node> = None;
    let mut unset = Vec::new();
    for file in &files {
        let text = fs::read_to_string(file).map_err(|error| unreadable(file, &error))?;
        let (text, missing) = yaml::substitute(&text, environment);
        // It is not known which of several files a line is in.
        if files.len() == 1 {
            unset = missing;
        }
        match (yaml::parse(&text), &mut merged) {
            (Ok(node), None) => merged = Some(node),
            (Ok(node), Some(merged)) => yaml::merge(merged, node, "", &mut problems),
            (Err(problem), _) => problems.push(problem),
        }
    }
    let directory = if path.is_dir() {
        path
    } else {
        path.parent().unwrap_or(Path::new(""))
    };
    let compiled = match merged {
        Some(node) if problems.is_empty() => compile(&node, directory, &unset),
        _ => Err(problems),
    };
    match compiled {
        Ok(mut plan) => {
            plan.files = files;
            Ok(plan)
        }
        Err(problems) => Err(LoadError::Problems {
            path: shown,
            problems,
        }),
    }
}

/// The YAML files below a folder.
fn collect(directory: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path
            .extension()
            .is_some_and(|it| it == "yaml" || it == "yml")
        {
            files.push(path);
        }
    }
    Ok(())
}

fn compile(
    node: &Node,
    directory: &Path,
    unset: &[UnsetVariable],
) -> Result<Plan, Vec<ConfigProblem>> {
    let findings = Rc::<RefCell<Findings>>::default();
    let plan = Block::from_node(node, "", &findings).map(|root| compile_root(&root, directory));
    let (problems, warnings) = findings.take().into_report(unset);
    match plan {
        Some(mut plan) if problems.is_empty() => {
            plan.warnings = warnings;
            Ok(plan)
        }
        _ => Err(problems),
    }
}

/// Keys that Gatus has and that change nothing here, with the reason.
const WITHOUT_EFFECT: [(&str, &str); 4] = [
    ("disable-monitoring-lock", "checks run side by side here"),
    (
        "connectivity",
        "the connection of this machine is not checked",
    ),
    ("remote", "endpoints of other instances are not shown"),
    ("tunneling", "no endpoint can use a tunnel"),
];

fn compile_root(root: &Block, directory: &Path) -> Plan {
    root.boolean("debug");
    let metrics = root.boolean("metrics").unwrap_or(false);
    let skips_invalid_updates = root.boolean("skip-invalid-config-update").unwrap_or(false);
    for (key, reason) in WITHOUT_EFFECT {
        if root.node(key).is_some() {
            root.warn(key, format!("has no effect: {reason}"));
        }
    }
    let alerting = Alerting::compile(root.block("alerting"));
    let maintenance = root.block("maintenance").and_then(|block| window(&block));
    let mut endpoints = Endpoints {
        alerting,
        directory: directory.to_owned(),
        reaches: Vec::new(),
    };
    let own = root.blocks("endpoints");
    let external = root.blocks("external-endpoints");
    let suites = root.blocks("suites");
    if own.is_empty() && suites.is_empty() {
        let message = if external.is_empty() {
            "there are no endpoints"
        } else {
            "external endpoints alone are not enough"
        };
        let hint = if root.node("modules").is_some() {
            "modules of blackbox_exporter check nothing by themselves; write `probe_modules = \"FILE\"` in a configuration in TOML"
        } else {
            "add an endpoint with `name`, `url` and `conditions`"
        };
        root.wrong("endpoints", message, Some(hint));
    }
    let mut monitors: Vec<MonitorPlan> = own
        .iter()
        .filter_map(|block| endpoints.compile(block))
        .collect();
    monitors.extend(
        external
            .iter()
            .filter_map(|block| endpoints.compile_external(block)),
    );
    let suites = suites.iter();
    monitors.extend(suites.filter_map(|block| endpoints.compile_suite(block)));
    let mut keys = HashSet::new();
    for monitor in &monitors {
        if !keys.insert(monitor.key.clone()) {
            let message = format!("two endpoints have the key `{}`", monitor.key);
            root.wrong(
                "endpoints",
                &message,
                Some("give each endpoint of a group its own name"),
            );
        }
    }
    if let Some(window) = maintenance.map(Arc::new) {
        for monitor in &mut monitors {
            monitor.windows.push(Arc::clone(&window));
        }
    }
    let extra_labels = monitors
        .iter()
        .flat_map(|monitor| monitor.labels.keys().cloned());
    let mut extra_labels: Vec<_> = extra_labels.collect();
    extra_labels.sort();
    extra_labels.dedup();
    let (store, most_results, most_events) = storage(root, directory);
    let settings = GatusSettings {
        most_results,
        most_events,
        title: title(root),
        address: address(root),
        basic: security(root),
        announcements: announcements(root),
        extra_labels,
        skips_invalid_updates,
    };
    root.number("concurrency");
    root.finish();
    let guard = match &settings.basic {
        None => Guard::Open,
        Some(login) => Guard::Basic(Arc::clone(&login.auth)),
    };
    let channels = endpoints.alerting.channels();
    let monitors: Vec<_> = monitors.into_iter().map(Arc::new).collect();
    let page = PagePlan::of_all(&settings.title, &monitors, guard);
    Plan {
        organisation: DEFAULT_ORGANISATION.to_owned(),
        monitors,
        store,
        limits: GateLimits {
            per_host: usize::MAX,
            breaker: None,
            ..GateLimits::default()
        },
        retention: Retention::default(),
        metrics,
        ping_key: None,
        dialect: Dialect::Gatus(settings),
        discover: Vec::new(),
        tokens: Vec::new(),
        region: DEFAULT_REGION.to_owned(),
        agents: Vec::new(),
        pages: vec![Arc::new(page)],
        keys: Vec::new(),
        rotations: Vec::new(),
        subscriptions: None,
        acknowledge: None,
        escalations: Vec::new(),
        oidc: None,
        channels,
        grounds: Arc::default(),
        warnings: Vec::new(),
        files: Vec::new(),
        named: endpoints.named(),
    }
}

/// `maintenance`, and each of `maintenance-windows`.
pub(super) fn window(block: &Block) -> Option<Window> {
    let enabled = block.boolean("enabled").unwrap_or(true);
    let zone = match block.text("timezone") {
        None => Some(TimeZone::UTC),
        Some(name) => {
            let zone = TimeZone::get(&name).ok();
            if zone.is_none() {
                block.wrong(
                    "timezone",
                    &format!("`{name}` is not a time zone"),
                    Some("write one such as Europe/Berlin"),
                );
            }
            zone
        }
    };
    let mut days = Vec::new();
    for node in block.list("every") {
        let name = node.to_json();
        match name.as_str().and_then(weekday_of) {
            Some(day) => days.push(day),
            None => block.wrong_at(
                &node,
                "every",
                &format!("{name} is not a day of the week"),
                Some("write one such as Monday"),
            ),
        }
    }
    if days.is_empty() {
        let all = [
            "monday",
            "tuesday",
            "wednesday",
            "thursday",
            "friday",
            "saturday",
            "sunday",
        ];
        days.extend(all.into_iter().filter_map(weekday_of));
    }
    if !enabled {
        return None;
    }
    let time = if let Some(text) = block.text("start") {
        let time = clock_time_of(&text);
        if time.is_none() {
            block.wrong(
                "start",
                &format!("`{text}` is not a clock time"),
                Some("write hh:mm, such as 02:30"),
            );
        }
        time
    } else {
        block.wrong("start", "is missing", Some("write hh:mm, such as 02:30"));
        None
    };
    let duration = block.duration("duration");
    if duration.is_none() && block.node("duration").is_none() {
        block.wrong(
            "duration",
            "is missing",
            Some("write how long the window takes, such as 1h"),
        );
    }
    let duration = duration?;
    if duration > std::time::Duration::from_hours(24) {
        block.wrong("duration", "is longer than 24 hours", None);
    }
    block.finish();
    Some(Window {
        name: "maintenance".to_owned(),
        about: None,
        starts: Starts::Weekly { days, time: time? },
        duration,
        zone: zone?,
    })
}

fn storage(root: &Block, directory: &Path) -> (StorePlan, usize, usize) {
    let Some(block) = root.block("storage") else {
        return (StorePlan::Memory, 100, 50);
    };
    let count = |key, default| {
        block
            .number(key)
            .map_or(default, |number| usize::try_from(number).unwrap_or(default))
    };
    let most_results = count("maximum-number-of-results", 100);
    let most_events = count("maximum-number-of-events", 50);
    block.boolean("caching");
    let path = block.text("path");
    let kind = block.text("type").unwrap_or_else(|| "memory".to_owned());
    let store = match (kind.as_str(), path) {
        ("memory", None) => StorePlan::Memory,
        ("memory", Some(_)) => {
            block.wrong(
                "path",
                "has no place beside `type: memory`",
                Some("remove it, or write `type: sqlite`"),
            );
            StorePlan::Memory
        }
        ("sqlite", Some(path)) => {
            // Gatus's own database stays as it is.
            let own = directory.join(format!("{path}.plimsoll"));
            block.warn(
                "path",
                format!(
                    "the history of Gatus is not read; results go to {}",
                    own.display()
                ),
            );
            StorePlan::Sqlite(own)
        }
        ("sqlite", None) => {
            block.wrong("path", "is missing", Some("write the file of the database"));
            StorePlan::Memory
        }
        ("postgres", _) => {
            // Gatus's own database stays as it is.
            let own = directory.join("gatus.plimsoll");
            block.warn(
                "type",
                format!(
                    "PostgreSQL is not used with a file of Gatus; results go to {}",
                    own.display()
                ),
            );
            StorePlan::Sqlite(own)
        }
        (other, _) => {
            block.wrong(
                "type",
                &format!("`{other}` is not a store"),
                Some("write memory, sqlite or postgres"),
            );
            StorePlan::Memory
        }
    };
    block.finish();
    (store, most_results, most_events)
}

fn title(root: &Block) -> String {
    let title = root.block("ui").and_then(|ui| ui.text("title"));
    title.unwrap_or_else(|| "Health Dashboard | Gatus".to_owned())
}

fn address(root: &Block) -> String {
    let web = root.block("web");
    let address = web.as_ref().and_then(|web| web.text("address"));
    let port = web
        .as_ref()
        .and_then(|web| web.number("port"))
        .unwrap_or(8080);
    if let Some(web) = &web {
        web.number("read-buffer-size");
        if web.node("tls").is_some() {
            web.warn(
                "tls",
                "has no effect: give --cert and --key to `plimsoll monitor`",
            );
        }
        web.finish();
    }
    let address = address.unwrap_or_else(|| "0.0.0.0".to_owned());
    if address.contains(':') {
        format!("[{address}]:{port}")
    } else {
        format!("{address}:{port}")
    }
}

fn security(root: &Block) -> Option<BasicLogin> {
    let security = root.block("security")?;
    if security.node("oidc").is_some() {
        security.wrong(
            "oidc",
            "is not supported",
            Some("use `basic`, or a proxy that signs users in"),
        );
    }
    let basic = security.block("basic")?;
    let (user, hash) = (basic.text("username"), basic.text("password-bcrypt-base64"));
    let (Some(user), Some(encoded)) = (user, hash) else {
        basic.wrong("", "needs `username` and `password-bcrypt-base64`", None);
        return None;
    };
    let wrong = |message: &str| {
        let hint =
            "`htpasswd -nBb NAME PASSWORD | cut -d: -f2 | tr -d '\\n' | base64 -w0` makes one";
        basic.wrong("password-bcrypt-base64", message, Some(hint));
    };
    let hash = STANDARD.decode(encoded.trim()).ok();
    let Some(hash) = hash.and_then(|bytes| String::from_utf8(bytes).ok()) else {
        wrong("is not Base64");
        return None;
    };
    let parsed = PasswordHash::bcrypt(&hash).map_err(|error| match error {
        HashError::Kind | HashError::NotBcrypt => wrong("is not a bcrypt hash in Base64"),
        HashError::Cost => wrong(&error.to_string()),
    });
    let users = HashMap::from([(user.clone(), parsed.ok()?)]);
    let auth = BasicAuth::new("Gatus", users).ok()?;
    Some(BasicLogin {
        user: (user, Secret::new(hash)),
        auth: Arc::new(auth),
    })
}

fn announcements(root: &Block) -> Vec<serde_json::Value> {
    let mut all = Vec::new();
    for block in root.blocks("announcements") {
        let date = block.text("timestamp");
        let parsed = date.as_deref().and_then(Timestamp::parse);
        if parsed.is_none() {
            block.wrong(
                "timestamp",
                "must be a date of RFC 3339, such as 2026-03-01T12:00:00Z",
                None,
            );
        }
        let kind = block.text("type").unwrap_or_else(|| "none".to_owned());
        if !["outage", "warning", "information", "operational", "none"].contains(&kind.as_str()) {
            block.wrong(
                "type",
                &format!("`{kind}` is not a type"),
                Some("write outage, warning, information, operational or none"),
            );
        }
        let message = block.text("message");
        if message.is_none() {
            block.wrong("message", "is missing", None);
        }
        all.push(serde_json::json!({
            "timestamp": date,
            "type": kind,
            "message": message,
            "archived": block.boolean("archived").unwrap_or(false),
        }));
        block.finish();
    }
    all
}
