//! A container of Docker or podman: whether it runs, and the result of its health check.
//!
//! Source: Docker Engine API, "Inspect a container", which podman serves too.

use std::path::PathBuf;
use std::sync::Arc;

use plimsoll_model::{Failure, FailureKind, Phase};
use serde_json::{Value, json};

use crate::probe::context::{ProbeContext, Reach};
use crate::probe::http::{HttpOptions, HttpProbe, HttpProbeError};
use crate::probe::reading::Reading;
use crate::probe::{Probe, ProbeFuture};

/// Looks at a container.
#[derive(Debug)]
pub struct DockerProbe {
    http: HttpProbe,
    /// The socket of the engine on this machine, unless it is reached by a URL.
    socket: Option<PathBuf>,
    container: String,
}

/// Where the engine is.
#[derive(Debug)]
pub enum DockerHost {
    /// The Unix socket of this machine.
    Socket(PathBuf),
    /// A URL of another one: `http://host:2375`, or `https://host:2376`.
    Url(String),
}

impl DockerProbe {
    /// - `container`: a name or a number that [`is_container`] accepts.
    /// - `agent`: the `User-Agent`.
    pub fn new(
        host: DockerHost,
        container: &str,
        agent: &str,
        reach: Reach,
    ) -> Result<Self, HttpProbeError> {
        let path = format!("/containers/{container}/json");
        let options = |base: &str| HttpOptions {
            url: format!("{}{path}", base.trim_end_matches('/')),
            method: "GET".to_owned(),
            fields: Vec::new(),
            body: None,
            basic_auth: None,
            redirects: 0,
            keeps_body: true,
            http2: false,
            agent: agent.to_owned(),
        };
        let (http, socket) = match host {
            DockerHost::Url(url) => (HttpProbe::new(options(&url), reach)?, None),
            DockerHost::Socket(socket) => {
                let http = HttpProbe::new(options("http://localhost"), reach)?;
                (http.at_socket(socket.clone()), Some(socket))
            }
        };
        Ok(Self {
            http,
            socket,
            container: container.to_owned(),
        })
    }
}

/// Whether a text can be the name or the number of a container, so that it is one segment of a path.
pub fn is_container(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
    name.bytes()
        .next()
        .is_some_and(|first| first.is_ascii_alphanumeric())
        && name.bytes().all(is_plain)
}

/// Turns the answer of the engine into the body that conditions see, or into the reason why the container is not up.
fn judge(reading: &mut Reading) {
    if reading.failure.is_some() {
        return;
    }
    let answer: Value = serde_json::from_slice(&reading.body).unwrap_or_default();
    reading.body = Vec::new();
    let state = &answer["State"];
    let status = state["Status"].as_str();
    let (Some(200), Some(status)) = (reading.code, status) else {
        let code = reading.code.unwrap_or_default();
        let message = answer["message"].as_str().or(answer["cause"].as_str());
        if let Some(message) = message {
            reading.unmet = Some(format!("the engine reports: {message}"));
        } else {
            let cause = format!("the answer is not one of a container engine (status {code})");
            let failure = Failure::new(Phase::Receive, FailureKind::Protocol);
            reading.failure = Some(failure.because(cause));
        }
        return;
    };
    let health = [&state["Health"], &state["Healthcheck"]];
    let health = health.iter().find_map(|it| it["Status"].as_str());
    // Without a check it is empty with podman, and `none` with Docker.
    let health = health.filter(|health| !["", "none"].contains(health));
    let exit_code = state["ExitCode"].as_i64().unwrap_or_default();
    let body = json!({
        "status": status,
        "running": state["Running"].as_bool().unwrap_or(status == "running"),
        "health": health,
        "exit_code": exit_code,
        "restarts": answer["RestartCount"].as_i64().unwrap_or_default(),
        "started_at": state["StartedAt"],
        "image": answer["Config"]["Image"],
    });
    reading.body = body.to_string().into_bytes();
    match (status, health) {
        ("running", Some("unhealthy")) => {
            let log = state["Health"]["Log"].as_array();
            let last = log.and_then(|log| log.last()?["Output"].as_str());
            let last = last.and_then(|output| output.lines().find(|line| !line.trim().is_empty()));
            reading.unmet = Some(match last {
                Some(last) => format!("the container is unhealthy: {}", last.trim()),
                None => "the container is unhealthy".to_owned(),
            });
        }
        ("running", Some("starting")) => {
            reading.warning =
                Some("the health check of the container has not passed yet".to_owned());
        }
        ("running", _) => {}
        ("exited", _) => {
            reading.unmet = Some(format!("the container has exited with {exit_code}"));
        }
        (other, _) => reading.unmet = Some(format!("the container is {other}")),
    }
}

impl Probe for DockerProbe {
    fn kind(&self) -> &'static str {
        "docker"
    }

    fn target(&self) -> String {
        match self.socket {
            Some(_) => self.container.clone(),
            None => self.http.target(),
        }
    }

    fn host(&self) -> Option<Arc<str>> {
        match &self.socket {
            Some(_) => None,
            None => self.http.host(),
        }
    }

    fn check<'a>(&'a self, context: &'a ProbeContext) -> ProbeFuture<'a> {
        Box::pin(async {
            let mut reading = self.http.check(context).await;
            judge(&mut reading);
            reading
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_one_segment() {
        for name in ["web", "shop-db_1.x", "8f3a"] {
            assert!(is_container(name), "{name}");
        }
        for name in ["", "a/b", "..", "-a", "a?all=1", "a b", "ä"] {
            assert!(!is_container(name), "{name}");
        }
    }

    #[test]
    fn a_container_is_up_while_it_runs_and_is_not_unhealthy() {
        let judged = |state: &str| {
            let mut reading = Reading {
                code: Some(200),
                body: format!(r#"{{"State":{state},"RestartCount":3,"Config":{{"Image":"a:1"}}}}"#)
                    .into(),
                ..Reading::default()
            };
            judge(&mut reading);
            assert_eq!(reading.failure, None);
            let body: Value = serde_json::from_slice(&reading.body).unwrap();
            assert_eq!(
                (&body["restarts"], &body["image"]),
                (&json!(3), &json!("a:1"))
            );
            (reading.unmet, reading.warning, body["health"].clone())
        };
        let healthy =
            judged(r#"{"Status":"running","Running":true,"Health":{"Status":"healthy"}}"#);
        assert_eq!(healthy, (None, None, json!("healthy")));
        let without = judged(r#"{"Status":"running","Running":true,"Health":{"Status":""}}"#);
        assert_eq!(without, (None, None, Value::Null));
        let starting = judged(r#"{"Status":"running","Health":{"Status":"starting"}}"#);
        assert!(starting.0.is_none() && starting.1.is_some());
        // Older versions of podman have another name.
        let unhealthy = r#"{"Status":"running","Healthcheck":{"Status":"unhealthy"}}"#;
        assert_eq!(
            judged(unhealthy).0.as_deref(),
            Some("the container is unhealthy")
        );
        let with_log = r#"{"Status":"running","Health":{"Status":"unhealthy","Log":[{"Output":"a"},{"Output":"\ncurl: (7)\n"}]}}"#;
        assert_eq!(
            judged(with_log).0.as_deref(),
            Some("the container is unhealthy: curl: (7)")
        );
        let exited = judged(r#"{"Status":"exited","Running":false,"ExitCode":137}"#);
        assert_eq!(
            exited.0.as_deref(),
            Some("the container has exited with 137")
        );
        assert_eq!(
            judged(r#"{"Status":"paused"}"#).0.as_deref(),
            Some("the container is paused")
        );
    }
}
