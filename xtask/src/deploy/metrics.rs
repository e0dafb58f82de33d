//! Dashboards of Grafana and alert rules of Prometheus: each query is asked of a Prometheus that has scraped our servers and to which a load
//! test wrote.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use regex::Regex;
use serde_json::Value;

use super::{cannot, read, write};
use crate::bench::free_ports;
use crate::server::{Server, wait_for};
use crate::step;
use crate::{Failure, Outcome};

/// The dashboards, from packaging/grafana/.
const DASHBOARDS: [&str; 3] = ["load.json", "gateway.json", "monitor.json"];

/// Seconds of load: live figures are sent every five.
const LOAD_SECONDS: &str = "12";

/// Of the agent whose metrics an alert needs; printed by `plimsoll monitor token far --agent` for the test alone.
const AGENT: &str = "far";

/// Checks the rules with promtool, then all queries.
pub(super) fn check(root: &Path, program: &Path, directory: &Path) -> Outcome {
    let folder = root.join("packaging/prometheus");
    let rules = folder.join("alerts.yml");
    let mut promtool = Command::new("promtool");
    step::run(root, promtool.args(["check", "rules"]).arg(&rules))?;
    let mut promtool = Command::new("promtool");
    let tests = folder.join("alerts.test.yml");
    step::run(root, promtool.args(["test", "rules"]).arg(tests))?;

    let prometheus = Prometheus::with_everything(root, program, directory, &rules)?;
    let mut problems = Vec::new();
    let mut queries = 0;
    for name in DASHBOARDS {
        let text = read(&root.join("packaging/grafana").join(name))?;
        let dashboard: Value =
            serde_json::from_str(&text).map_err(|error| format!("{name}: {error}"))?;
        for query in shown(&dashboard) {
            queries += 1;
            problems.extend(
                prometheus
                    .problems_of(&query)?
                    .map(|it| format!("{name}: {it}")),
            );
        }
    }
    for rule in prometheus.rules()? {
        for selector in selectors(&rule.expression) {
            queries += 1;
            let query = Query {
                expression: selector,
                labels: rule.labels.clone(),
            };
            let problem = prometheus.problems_of(&query)?;
            problems.extend(problem.map(|it| format!("{}: {it}", rule.name)));
        }
    }
    if problems.is_empty() && queries > 0 {
        println!("{queries} queries of dashboards and alerts find series");
        Ok(())
    } else {
        Err(format!(
            "{} of {queries} queries:\n{}",
            problems.len(),
            problems.join("\n")
        )
        .into())
    }
}

/// A query and the labels that its series need.
#[derive(Debug, PartialEq)]
struct Query {
    expression: String,
    labels: BTreeSet<String>,
}

struct Rule {
    name: String,
    expression: String,
    /// By which it groups, and which its texts name.
    labels: BTreeSet<String>,
}

/// The queries of the panels of a dashboard, with all of its variables at "All".
fn shown(dashboard: &Value) -> Vec<Query> {
    let panels = dashboard.get("panels").and_then(Value::as_array);
    let targets = panels
        .into_iter()
        .flatten()
        .filter_map(|panel| panel.get("targets")?.as_array())
        .flatten();
    let legend = Regex::new(r"\{\{(\w+)\}\}").expect("the pattern is valid");
    let variable = Regex::new(r"\$\w+").expect("the pattern is valid");
    targets
        .filter_map(|target| {
            let expression = target.get("expr")?.as_str()?;
            let expression = expression
                .replace("$__rate_interval", "1m")
                .replace("$__range", "5m");
            let text = target.get("legendFormat")?.as_str()?;
            let labels = legend.captures_iter(text);
            Some(Query {
                expression: variable.replace_all(&expression, ".+").into_owned(),
                labels: labels.map(|it| it[1].to_owned()).collect(),
            })
        })
        .collect()
}

/// The selectors of metrics of ours in an expression, with their matchers.
fn selectors(expression: &str) -> BTreeSet<String> {
    let selector = Regex::new(r"plimsoll_\w+(\{[^}]*\})?").expect("the pattern is valid");
    let found = selector.find_iter(expression);
    found.map(|it| it.as_str().to_owned()).collect()
}

/// The labels that the texts of a rule name, and by which it groups.
fn labels_of(expression: &str, annotations: &str) -> BTreeSet<String> {
    let named = Regex::new(r"\$labels\.(\w+)").expect("the pattern is valid");
    let grouped = Regex::new(r"by \(([^)]*)\)").expect("the pattern is valid");
    let named = named.captures_iter(annotations).map(|it| it[1].to_owned());
    let grouped = grouped.captures_iter(expression).flat_map(|it| {
        it[1]
            .split(',')
            .map(|label| label.trim().to_owned())
            .collect::<Vec<_>>()
    });
    named.chain(grouped).collect()
}

/// Prometheus, and the servers that it scrapes.
struct Prometheus {
    port: u16,
    _processes: Vec<Server>,
}

impl Prometheus {
    /// Starts it with a site, a gateway, a monitor and its agent, and lets a load test write to it.
    fn with_everything(
        root: &Path,
        program: &Path,
        directory: &Path,
        rules: &Path,
    ) -> Result<Self, Failure> {
        let [site, secure, gateway, metrics, monitor, port] = free_ports()?;
        let folder = directory.join("site");
        fs::create_dir_all(&folder).map_err(|error| cannot("make", &folder, &error))?;
        write(&folder.join("index.html"), "<p>It serves.")?;
        let (token, sha256) = token(root, program)?;
        let gateway_file = directory.join("gateway-test.toml");
        write(
            &gateway_file,
            &gateway_configuration(gateway, metrics, site),
        )?;
        let monitor_file = directory.join("monitor-test.toml");
        write(&monitor_file, &monitor_configuration(site, secure, &sha256))?;
        let configuration = directory.join("prometheus.yml");
        write(
            &configuration,
            &format!(
                "global: {{scrape_interval: 1s, evaluation_interval: 1s}}\nrule_files: [{}]\nscrape_configs: \
                 [{{job_name: plimsoll, static_configs: [{{targets: ['127.0.0.1:{metrics}', '127.0.0.1:{monitor}']}}]}}]\n",
                rules.display()
            ),
        )?;

        let plimsoll = |arguments: &[&str]| {
            let mut command = Command::new(program);
            command.args(arguments).current_dir(directory);
            command.stdout(Stdio::null());
            command
        };
        let at = |port: u16| format!("127.0.0.1:{port}");
        let pages = folder.display().to_string();
        let serve = ["serve", &pages, "--listen", &at(site)];
        let serve_tls = ["serve", &pages, "--tls", "--listen", &at(secure)];
        let up = ["up", &gateway_file.display().to_string()];
        let monitors = [
            "monitor",
            &monitor_file.display().to_string(),
            "--listen",
            &at(monitor),
        ];
        let mut processes = Vec::new();
        let target = Server::start(&mut plimsoll(&serve))?;
        let target_pid = target.0.id().to_string();
        processes.push(target);
        for arguments in [&serve_tls[..], &up, &monitors] {
            processes.push(Server::start(&mut plimsoll(arguments))?);
        }
        for port in [site, secure, gateway, metrics, monitor] {
            wait_for(port)?;
        }
        let to_monitor = format!("http://127.0.0.1:{monitor}");
        let mut agent = plimsoll(&["monitor", "agent", &to_monitor]);
        processes.push(Server::start(agent.env("PLIMSOLL_AGENT_TOKEN", token))?);
        let mut prometheus = Command::new("prometheus");
        prometheus
            .arg(format!("--config.file={}", configuration.display()))
            .arg(format!(
                "--storage.tsdb.path={}",
                directory.join("tsdb").display()
            ))
            .arg(format!("--web.listen-address=127.0.0.1:{port}"))
            .args(["--web.enable-remote-write-receiver", "--log.level=warn"]);
        processes.push(Server::start(&mut prometheus)?);
        wait_for(port)?;

        // An error of its own, so that there is a class of it.
        let mut error = Command::new("curl");
        error.args(["-s", &format!("http://127.0.0.1:{gateway}/error")]);
        step::output(root, &mut error)?;
        let write_to = format!("http://127.0.0.1:{port}/api/v1/write");
        let url = format!("http://127.0.0.1:{gateway}/");
        let seconds = format!("{LOAD_SECONDS}s");
        let mut load = plimsoll(&[
            "load",
            "-q",
            "20",
            "-z",
            &seconds,
            "--pid",
            &target_pid,
            "--prometheus-remote-write",
            &write_to,
            "--run-name",
            "check",
            &url,
        ]);
        step::run(root, &mut load)?;
        let prometheus = Self {
            port,
            _processes: processes,
        };
        prometheus.wait_for_agent()?;
        Ok(prometheus)
    }

    /// Until the agent has been heard of.
    fn wait_for_agent(&self) -> Outcome {
        for _ in 0..120 {
            let found = self.ask("query", Some("plimsoll_monitor_agent_last_seen_seconds"))?;
            if !series(&found).is_empty() {
                return Ok(());
            }
            thread::park_timeout(Duration::from_millis(500));
        }
        Err("the monitor did not hear of its agent".into())
    }

    /// What is wrong with the answer to a query.
    fn problems_of(&self, query: &Query) -> Result<Option<String>, Failure> {
        let answer = self.ask("query", Some(&query.expression))?;
        if let Some(error) = answer.get("error") {
            return Ok(Some(format!("`{}`: {error}", query.expression)));
        }
        let found = series(&answer);
        if found.is_empty() {
            return Ok(Some(format!("`{}` finds nothing", query.expression)));
        }
        let missing = query.labels.iter().find(|label| {
            !found
                .iter()
                .all(|one| one.get("metric").is_some_and(|it| it.get(*label).is_some()))
        });
        Ok(missing.map(|label| format!("`{}` has no label {label}", query.expression)))
    }

    fn rules(&self) -> Result<Vec<Rule>, Failure> {
        let answer = self.ask("rules", None)?;
        let groups = answer.pointer("/data/groups").and_then(Value::as_array);
        let rules = groups
            .into_iter()
            .flatten()
            .filter_map(|group| group.get("rules")?.as_array())
            .flatten();
        let rules: Vec<Rule> = rules
            .filter_map(|rule| {
                let expression = rule.get("query")?.as_str()?;
                Some(Rule {
                    name: rule.get("name")?.as_str()?.to_owned(),
                    labels: labels_of(expression, &rule.get("annotations")?.to_string()),
                    expression: expression.to_owned(),
                })
            })
            .collect();
        if rules.is_empty() {
            return Err("Prometheus has loaded no rules".into());
        }
        Ok(rules)
    }

    fn ask(&self, path: &str, query: Option<&str>) -> Result<Value, Failure> {
        let mut curl = Command::new("curl");
        curl.args(["-s", "--get"]);
        curl.arg(format!("http://127.0.0.1:{}/api/v1/{path}", self.port));
        if let Some(query) = query {
            curl.arg("--data-urlencode").arg(format!("query={query}"));
        }
        let answer = step::output(Path::new("."), &mut curl)?;
        serde_json::from_str(&answer)
            .map_err(|error| format!("Prometheus answered what is no JSON: {error}").into())
    }
}

fn series(answer: &Value) -> Vec<&Value> {
    let found = answer.pointer("/data/result").and_then(Value::as_array);
    found.into_iter().flatten().collect()
}

/// A token of an agent, and its hash for the configuration.
fn token(root: &Path, program: &Path) -> Result<(String, String), Failure> {
    let mut command = Command::new(program);
    let text = step::output(root, command.args(["monitor", "token", AGENT, "--agent"]))?;
    let token = text.lines().find(|line| line.starts_with("pm_"));
    let sha256 = text.lines().find(|line| line.starts_with("sha256 = "));
    match (token, sha256) {
        (Some(token), Some(sha256)) => Ok((token.trim().to_owned(), sha256.to_owned())),
        _ => Err("`plimsoll monitor token` printed no token".into()),
    }
}

fn gateway_configuration(port: u16, metrics: u16, site: u16) -> String {
    format!(
        r#"threads = 1
[[listen]]
address = "127.0.0.1:{port}"
[metrics]
address = "127.0.0.1:{metrics}"
[upstream.app]
servers = ["http://127.0.0.1:{site}"]
[[route]]
path = "/error"
respond = {{ status = 500 }}
[[route]]
proxy = "app"
"#
    )
}

fn monitor_configuration(site: u16, secure: u16, sha256: &str) -> String {
    format!(
        r#"store = "memory"
[[agent]]
name = "{AGENT}"
{sha256}
[[monitor]]
name = "site"
http = "http://127.0.0.1:{site}/"
interval = "1s"
[[monitor]]
name = "secure"
http = {{ url = "https://127.0.0.1:{secure}/", insecure = true }}
interval = "1s"
"#
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    #[test]
    fn queries_of_panels_are_read() {
        let dashboard = serde_json::json!({"panels": [{"targets": [
            {"expr": "rate(a{job=~\"$job\"}[$__rate_interval])", "legendFormat": "{{job}} {{le}}"}
        ]}]});
        assert_eq!(
            shown(&dashboard),
            [Query {
                expression: "rate(a{job=~\".+\"}[1m])".to_owned(),
                labels: names(&["job", "le"]),
            }]
        );
    }

    #[test]
    fn selectors_and_labels_of_rules_are_read() {
        let expression = "sum by (job, x) (plimsoll_a_total{c=\"5xx\"}) > plimsoll_b";
        assert_eq!(
            selectors(expression),
            names(&["plimsoll_a_total{c=\"5xx\"}", "plimsoll_b"])
        );
        assert_eq!(
            labels_of(expression, "{{ $labels.server }} is out"),
            names(&["job", "server", "x"])
        );
    }
}
