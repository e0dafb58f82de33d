//! `cargo xtask agree`: our generator beside wrk, oha and h2load, which know nothing of it.
//!
//! Over HTTP/1.1, in the clear and over TLS, and over HTTP/2, all load an origin that answers after a delay of 1 ms, in turns; then slow ones, of 100 ms
//! and 1.5 s, where it matters whether responses that arrive after the end count as throughput. When their rates and percentiles
//! agree, and each counts what the server counted, it was the server that was measured. Where the peers differ from each other, it is enough to lie among them.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use clap::Args;
use serde_json::Value;

use crate::packages;
use crate::step;
use crate::{Failure, Outcome};

/// How much, and how long
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Trials of each tool
    #[arg(long, default_value_t = 8)]
    trials: u32,

    /// Length of a trial
    #[arg(long, default_value_t = 3)]
    seconds: u32,

    /// Connections; with few, what a generator takes for itself shows in the rates, and the answers of many come at the
    /// same tick, so that the last of them wait for what it does with the others
    #[arg(long, default_value_t = 4)]
    connections: u32,
}

/// Tolerated difference of rates and percentiles.
const WITHIN: f64 = 0.05;

/// Tolerated difference where the interval of a ratio reaches into [`WITHIN`]: the p99 of one tool differs by more than 5 % from trial
/// to trial, so the median of eight trials can be that far off without any difference between the tools.
const WITHIN_NOISE: f64 = 0.10;

/// What is spoken, and who speaks it beside us.
struct Scene {
    name: &'static str,
    is_tls: bool,
    is_http2: bool,
    peers: [&'static str; 2],
    /// The route of the origin, and how long it waits before it responds.
    path: &'static str,
    delay: &'static str,
    /// Of a slow server, whose trials need a length that is no multiple of the delay.
    slow: Option<Slow>,
}

/// What replaces the arguments for a slow server.
#[derive(Clone, Copy)]
struct Slow {
    trials: u32,
    seconds: u32,
    connections: u32,
}

const SLOW: Slow = Slow {
    trials: 3,
    seconds: 4,
    connections: 32,
};

const QUICK: Scene = Scene {
    name: "HTTP/1.1",
    is_tls: false,
    is_http2: false,
    peers: ["wrk", "oha"],
    path: "/",
    delay: "1ms",
    slow: None,
};

const SCENES: [Scene; 5] = [
    QUICK,
    Scene {
        name: "HTTP/1.1 over TLS",
        is_tls: true,
        ..QUICK
    },
    Scene {
        name: "HTTP/2 over TLS",
        is_tls: true,
        is_http2: true,
        peers: ["h2load", "oha"],
        ..QUICK
    },
    Scene {
        name: "HTTP/1.1, 100 ms a response",
        path: "/slow",
        delay: "100ms",
        slow: Some(SLOW),
        ..QUICK
    },
    Scene {
        name: "HTTP/1.1, 1.5 s a response",
        path: "/slower",
        delay: "1500ms",
        slow: Some(SLOW),
        ..QUICK
    },
];

impl Arguments {
    /// Those of `scene`.
    fn for_scene(&self, scene: &Scene) -> Slow {
        scene.slow.unwrap_or(Slow {
            trials: self.trials,
            seconds: self.seconds,
            connections: self.connections,
        })
    }
}

/// The routes of the origin, in the form of its configuration.
fn routes() -> String {
    let mut scenes: Vec<&Scene> = SCENES.iter().collect();
    scenes.dedup_by_key(|scene| scene.path);
    let route = |scene: &Scene| {
        format!(
            "[[route]]\npath = \"{}\"\ndelay = \"{}\"\nrespond = {{ body = \"hello\" }}\n",
            scene.path, scene.delay
        )
    };
    scenes.into_iter().map(route).collect()
}

/// Runs the task; fails if a tool does not agree with us.
pub(crate) fn run(root: &Path, arguments: &Arguments) -> Outcome {
    let target = crate::bench::target_directory(root)?;
    crate::bench::install_peers(root, &target.join("peers"), &["wrk", "h2load", "oha"])?;
    let peers = target.join("peers/bin");
    step::run(
        root,
        &mut step::cargo(&["build", "--profile", "dist", "--locked", "-p", "plimsoll"]),
    )?;
    let plimsoll = target.join("dist/plimsoll");
    let origin = Origin::start(&plimsoll, &target)?;
    let mut apart = 0;
    for scene in &SCENES {
        let counted = counts(&plimsoll, &peers, &origin, scene, arguments)?;
        let document = compare(root, &plimsoll, &peers, &origin, scene, arguments)?;
        let figures = figures(&document)?;
        println!("{}", scene.name);
        for line in counted.iter().chain(&figures) {
            println!("  {}", line.text);
            apart += usize::from(!line.agrees);
        }
    }
    match apart {
        0 => Ok(()),
        _ => Err(format!("{apart} figures do not agree").into()),
    }
}

/// An origin that answers after 1 ms, and reports how many it has answered.
struct Origin {
    process: Child,
    port: u16,
    tls_port: u16,
    admin: u16,
    file: PathBuf,
}

impl Origin {
    fn start(plimsoll: &Path, target: &Path) -> Result<Self, Failure> {
        let [port, tls_port, admin] = crate::bench::free_ports()?;
        let file = target.join(format!("agree-{}.toml", std::process::id()));
        let text = format!(
            "threads = 1\npin = true\n[[listen]]\naddress = \"127.0.0.1:{port}\"\n[[listen]]\naddress = \"127.0.0.1:{tls_port}\"\n\
             tls = [{{ self_signed = true }}]\n{}[admin]\naddress = \"127.0.0.1:{admin}\"\n",
            routes()
        );
        fs::write(&file, text)
            .map_err(|error| format!("cannot write {}: {error}", file.display()))?;
        let process = Command::new(plimsoll)
            .arg("up")
            .arg(&file)
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("cannot start the origin: {error}"))?;
        let mut origin = Self {
            process,
            port,
            tls_port,
            admin,
            file,
        };
        // It prints each address once it listens there.
        let mut output = String::new();
        let mut byte = [0; 1];
        let stdout = origin.process.stdout.as_mut();
        let stdout = stdout.ok_or("the origin has no output")?;
        while output.lines().count() < 3 || !output.ends_with('\n') {
            match stdout.read(&mut byte) {
                Ok(1) => output.push(char::from(byte[0])),
                _ => return Err("the origin ended before it listened".into()),
            }
        }
        Ok(origin)
    }

    fn url(&self, scene: &Scene) -> String {
        if scene.is_tls {
            format!("https://127.0.0.1:{}{}", self.tls_port, scene.path)
        } else {
            format!("http://127.0.0.1:{}{}", self.port, scene.path)
        }
    }

    /// How many requests of the scene's route it has answered.
    fn answered(&self, scene: &Scene) -> Result<u64, Failure> {
        let ask = || -> std::io::Result<String> {
            let mut stream = TcpStream::connect(("127.0.0.1", self.admin))?;
            stream.write_all(
                b"GET /metrics HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n",
            )?;
            let mut text = String::new();
            stream.read_to_string(&mut text)?;
            Ok(text)
        };
        let page = ask().map_err(|error| format!("cannot ask the origin: {error}"))?;
        Ok(answered(&page, scene.path))
    }
}

impl Drop for Origin {
    fn drop(&mut self) {
        // What has ended already needs no end.
        self.process.kill().ok();
        self.process.wait().ok();
        fs::remove_file(&self.file).ok();
    }
}

/// The requests of a route on a page of counters.
fn answered(page: &str, path: &str) -> u64 {
    let counter = format!("plimsoll_route_requests_total{{route=\"{path}\"");
    page.lines()
        .filter(|line| line.starts_with(&counter))
        .filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok())
        .sum()
}

/// One figure beside another.
#[derive(Debug)]
struct Line {
    text: String,
    agrees: bool,
}

/// Each tool once, with its count beside the server's.
fn counts(
    plimsoll: &Path,
    peers: &Path,
    origin: &Origin,
    scene: &Scene,
    arguments: &Arguments,
) -> Result<Vec<Line>, Failure> {
    let Slow {
        seconds,
        connections,
        ..
    } = arguments.for_scene(scene);
    let url = origin.url(scene);
    let (c, time) = (connections.to_string(), format!("{seconds}s"));
    let tools = ["plimsoll"].into_iter().chain(scene.peers);
    let commands = tools.map(|tool| {
        let mut words: Vec<String> = match tool {
            "plimsoll" => vec![plimsoll.to_string_lossy().into_owned(), "load".to_owned()],
            "oha" => vec![
                packages::find("oha", &[peers.to_owned()])
                    .unwrap_or_default()
                    .to_string_lossy()
                    .into_owned(),
            ],
            other => vec![other.to_owned()],
        };
        let more: &[&str] = match tool {
            "plimsoll" => &["--no-tui", "--json", "-k", "-z", &time],
            "oha" => &[
                "--no-tui",
                "--output-format",
                "json",
                "--insecure",
                "-z",
                &time,
            ],
            "wrk" => &["-t1", "-d", &time],
            _ => &["-t1", "-D", &time],
        };
        words.extend(more.iter().map(|word| (*word).to_owned()));
        if scene.is_http2 && matches!(tool, "plimsoll" | "oha") {
            words.push("--http2".to_owned());
        }
        words.extend(["-c".to_owned(), c.clone(), url.clone()]);
        (tool, words)
    });
    let mut lines = Vec::new();
    for (name, words) in commands {
        let before = origin.answered(scene)?;
        let output = Command::new(&words[0])
            .args(&words[1..])
            .output()
            .map_err(|error| format!("cannot run `{name}`: {error}"))?;
        let output = String::from_utf8_lossy(&output.stdout).into_owned();
        let counted = count_of(name, &output).ok_or_else(|| format!("{name} printed no count"))?;
        let answered = origin.answered(scene)? - before;
        // Others leave what is under way at the end; ours waits for it, and counts it.
        let left = if name == "plimsoll" { 0 } else { connections };
        let agrees = answered.abs_diff(counted) <= u64::from(left);
        let mark = if agrees { "agrees" } else { "APART" };
        lines.push(Line {
            text: format!("{name:<9} counted {counted:>9}, the server {answered:>9}  {mark}"),
            agrees,
        });
    }
    Ok(lines)
}

/// How many responses a tool says it had.
fn count_of(tool: &str, output: &str) -> Option<u64> {
    if tool == "wrk" {
        let line = output.lines().find(|line| line.contains(" requests in "))?;
        return line.split_whitespace().next()?.parse().ok();
    }
    if tool == "h2load" {
        let line = output.lines().find(|line| line.starts_with("requests: "))?;
        let part = line.split(", ").find(|part| part.ends_with(" succeeded"))?;
        return part.split_whitespace().next()?.parse().ok();
    }
    let document: Value = serde_json::from_str(output).ok()?;
    if tool == "plimsoll" {
        return document.pointer("/counts/ok")?.as_u64();
    }
    let statuses = document.get("statusCodeDistribution")?.as_object()?;
    statuses.values().map(Value::as_u64).sum()
}

/// All of a scene in turns, by `plimsoll compare`.
fn compare(
    root: &Path,
    plimsoll: &Path,
    peers: &Path,
    origin: &Origin,
    scene: &Scene,
    arguments: &Arguments,
) -> Result<Value, Failure> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let directories = std::env::split_paths(&path).chain([peers.to_owned()]);
    let path = std::env::join_paths(directories).map_err(|error| error.to_string())?;
    let Slow {
        trials,
        seconds,
        connections,
    } = arguments.for_scene(scene);
    let mut command = Command::new(plimsoll);
    command
        .args(["compare", "--json", "-k", "--pin", "1", "--driver"])
        .arg(format!("plimsoll,{}", scene.peers.join(",")))
        .args(["--trials", &trials.to_string()])
        .args(["--seconds", &seconds.to_string()])
        .args(["-c", &connections.to_string()])
        .args(scene.is_http2.then_some("--http2"))
        .arg(origin.url(scene))
        .env("PATH", path);
    println!("$ {}", step::shown(&command));
    let json = step::output(root, &mut command)?;
    serde_json::from_str(&json).map_err(|error| format!("plimsoll compare: {error}").into())
}

/// What is compared, by its name in the document and whether every tool prints it: h2load has no percentiles.
const METRICS: [(&str, bool); 3] = [("rps", true), ("p50_us", false), ("p99_us", false)];

/// Ours beside each other tool's.
fn figures(document: &Value) -> Result<Vec<Line>, Failure> {
    let pairs = document.get("pairs").and_then(Value::as_array);
    let pairs = pairs.ok_or("plimsoll compare has compared nothing")?;
    let mut lines = Vec::new();
    for (metric, is_everyones) in METRICS {
        let mut ratios = Vec::new();
        for pair in pairs {
            let peer = pair["peer"].as_u64().unwrap_or_default();
            let label = document.pointer(&format!("/operands/{peer}/label"));
            let label = label.and_then(Value::as_str).unwrap_or("another");
            match Ratio::from_pair(pair, metric) {
                Some(ratio) => ratios.push((label, ratio)),
                None if !is_everyones && label == "h2load" => {}
                None => return Err(format!("{label} reports no {metric}").into()),
            }
        }
        lines.extend(judged(metric, &ratios));
    }
    Ok(lines)
}

/// Ours over the peer's, with its interval.
#[derive(Debug, Clone, Copy)]
struct Ratio {
    median: f64,
    low: f64,
    high: f64,
}

impl Ratio {
    fn from_pair(pair: &Value, metric: &str) -> Option<Self> {
        let metrics = pair["metrics"].as_array()?;
        let found = metrics.iter().find(|row| row["metric"] == metric)?;
        let median = found.get("ratio")?.as_f64()?;
        let bound = |name: &str| found["interval"][name].as_f64();
        Some(Self {
            median,
            low: bound("low").unwrap_or(median),
            high: bound("high").unwrap_or(median),
        })
    }

    fn mark(self) -> Option<&'static str> {
        let apart = (self.median - 1.0).abs();
        let reaches = self.low <= 1.0 + WITHIN && self.high >= 1.0 - WITHIN;
        if apart <= WITHIN {
            Some("agrees")
        } else if apart <= WITHIN_NOISE && reaches {
            Some("agrees within its interval")
        } else {
            None
        }
    }
}

/// A line for each of `ratios`, which are ours over each peer's.
///
/// Where the peers differ from each other by more than the tolerance, agreement with both is impossible:
/// ours has to agree with one of them, or to lie between them.
fn judged(metric: &str, ratios: &[(&str, Ratio)]) -> Vec<Line> {
    let (least, most) = ratios
        .iter()
        .fold((f64::INFINITY, 0.0_f64), |(least, most), (_, ratio)| {
            (least.min(ratio.median), most.max(ratio.median))
        });
    let peers_differ = most > least * (1.0 + WITHIN);
    let is_among_them =
        ratios.iter().any(|(_, ratio)| ratio.mark().is_some()) || (least < 1.0 && most > 1.0);
    let line = |&(label, ratio): &(&str, Ratio)| {
        let (mark, agrees) = match ratio.mark() {
            Some(mark) => (mark, true),
            None if peers_differ && is_among_them => ("apart, as the peers are", true),
            None => ("APART", false),
        };
        Line {
            text: format!(
                "{metric:<7} plimsoll / {label:<6} {:.3} [{:.2}–{:.2}]  {mark}",
                ratio.median, ratio.low, ratio.high
            ),
            agrees,
        }
    };
    ratios.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_read_from_each_tool() {
        let wrk = "Running 3s test\n  24000 requests in 3.00s, 2.9MB read\n";
        assert_eq!(count_of("wrk", wrk), Some(24_000));
        assert_eq!(count_of("plimsoll", r#"{"counts":{"ok":7}}"#), Some(7));
        let oha = r#"{"statusCodeDistribution":{"200":5,"503":1}}"#;
        assert_eq!(count_of("oha", oha), Some(6));
        let h2load =
            "finished in 3.00s\nrequests: 90 total, 90 started, 88 done, 87 succeeded, 1 failed\n";
        assert_eq!(count_of("h2load", h2load), Some(87));
        assert_eq!(count_of("wrk", "usage: wrk"), None);
        assert_eq!(count_of("oha", "not JSON"), None);
    }

    #[test]
    fn the_server_counts_its_own_route_only() {
        let page = "plimsoll_route_requests_total{route=\"/\",status=\"2xx\"} 40\n\
                    plimsoll_route_requests_total{route=\"/\",status=\"5xx\"} 2\n\
                    plimsoll_route_requests_total{route=\"admin\",status=\"2xx\"} 9\n";
        assert_eq!(answered(page, "/"), 42);
    }

    #[test]
    fn the_origin_has_a_route_for_each_delay() {
        let routes = routes();
        for (path, delay) in [("/", "1ms"), ("/slow", "100ms"), ("/slower", "1500ms")] {
            let route = format!("path = \"{path}\"\ndelay = \"{delay}\"\n");
            assert_eq!(routes.matches(&route).count(), 1, "{routes}");
        }
    }

    #[test]
    fn what_is_more_than_five_percent_apart_does_not_agree() {
        let metric = |name: &str, ratio: f64| serde_json::json!({"metric": name, "ratio": ratio});
        let document = serde_json::json!({
            "operands": [{"label": "plimsoll"}, {"label": "wrk"}],
            "pairs": [{"peer": 1, "metrics": [
                metric("rps", 0.97), metric("p50_us", 1.04), metric("p99_us", 1.07)]}],
        });
        let lines = figures(&document).unwrap_or_else(|Failure(message)| panic!("{message}"));
        let agree: Vec<bool> = lines.iter().map(|line| line.agrees).collect();
        assert_eq!(agree, [true, true, false]);
        assert!(figures(&serde_json::json!({})).is_err());
    }

    #[test]
    fn no_reader_has_to_agree_with_peers_that_differ() {
        let verdict = |ratios: &[f64]| -> Vec<bool> {
            let exact = |ratio: &f64| Ratio {
                median: *ratio,
                low: *ratio,
                high: *ratio,
            };
            let ratios: Vec<_> = ratios.iter().map(|ratio| ("peer", exact(ratio))).collect();
            let lines = judged("p99_us", &ratios);
            lines.iter().map(|line| line.agrees).collect()
        };
        assert_eq!(verdict(&[0.99, 0.93]), [true, true]);
        assert_eq!(verdict(&[1.07, 0.94]), [true, true]);
        // These two agree with each other, and not with us.
        assert_eq!(verdict(&[0.96, 0.93]), [true, false]);
        assert_eq!(verdict(&[1.06, 1.07]), [false, false]);
        // Those differ, and we differ from both on one side.
        assert_eq!(verdict(&[1.06, 1.30]), [false, false]);
        assert_eq!(verdict(&[0.93]), [false]);
    }

    #[test]
    fn an_interval_that_reaches_five_percent_agrees_up_to_ten() {
        let verdict = |median: f64, low: f64, high: f64| {
            let ratio = Ratio { median, low, high };
            judged("p99_us", &[("peer", ratio)])[0].agrees
        };
        assert!(verdict(0.93, 0.85, 0.97));
        assert!(!verdict(0.93, 0.90, 0.94));
        assert!(!verdict(0.88, 0.70, 1.10));
        assert!(verdict(1.08, 1.04, 1.20));
    }
}
