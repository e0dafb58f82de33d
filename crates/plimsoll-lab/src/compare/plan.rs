//! The plan of a comparison, checked before anything is started.

use plimsoll_observe::TargetPlace;
use plimsoll_wire::tls::Trust;
use url::Url;

use super::gate::Gate;
use super::metric::Metric;
use super::template::{Template, TemplateError, Values};
use crate::statistics::Bootstrap;

/// The plan.
#[derive(Debug, Clone)]
pub struct CompareOptions {
    /// The one under judgement first; at least two.
    pub operands: Vec<Operand>,
    /// Measured trials of each operand.
    pub trials: u32,
    /// Length of a trial, for `{seconds}`.
    pub seconds: u32,
    /// Connections, for `{connections}`.
    pub connections: u32,
    /// Requests per second, for `{rate}`; with it a single operand will do.
    pub rate: Option<u32>,
    /// Cores of the operands; none means that the scheduler chooses.
    pub pin: Vec<usize>,
    /// A server that all trials share.
    pub server: Option<Server>,
    /// Set if the operands are servers.
    pub drive: Option<Drive>,
    /// The server that all operands load and that is observed where it runs.
    pub observed: Option<TargetPlace>,
    /// For `{url}`; without it the driven URL, or the one by which the server shows itself ready.
    pub url: Option<String>,
    /// For `{port}`; without it a free one: per trial if operands are servers, else per run.
    pub port: Option<u16>,
    /// A `stub_status` page by which requests are counted instead of by the tool's output.
    pub count_from: Option<String>,
    /// The metric of the verdict.
    pub metric: Metric,
    /// What is judged, if anything.
    pub gate: Option<Gate>,
    /// First compare the first operand with itself: what that shows is noise.
    pub self_test: bool,
    /// Operands whose answers to a request are not alike are compared too.
    pub answers_may_differ: bool,
    /// Which certificates of operands are trusted when their answers are compared.
    pub trust: Trust,
    /// Settings of the intervals.
    pub bootstrap: Bootstrap,
    /// plimsoll's version, for the record.
    pub version: String,
    /// plimsoll's command line, for the record.
    pub command: Vec<String>,
}

/// One side of a comparison.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operand {
    /// A short name for tables.
    pub label: String,
    /// The command.
    pub command: Template,
    /// The command to run before each of its trials, without being measured.
    pub prepare: Option<Template>,
    /// What it loads, if that is its own.
    pub url: Option<String>,
    /// The server that only it loads and whose cost is its own, observed where it runs.
    pub observed: Option<TargetPlace>,
}

impl CompareOptions {
    /// Whether servers are compared, behind URLs, and the costs are not theirs: nothing says which processes they are.
    pub fn costs_are_of_generators(&self) -> bool {
        let urls: Vec<_> = self
            .operands
            .iter()
            .filter_map(|it| it.url.as_ref())
            .collect();
        let is_unobserved = self.operands.iter().all(|it| it.observed.is_none());
        urls.len() == self.operands.len()
            && urls.iter().any(|url| *url != urls[0])
            && is_unobserved
            && self.observed.is_none()
            && self.drive.is_none()
    }
}

/// A server that is started once and shared by all trials.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// A command that stays in the foreground.
    pub command: Template,
    /// Its cores; none means that the scheduler chooses.
    pub pin: Vec<usize>,
    /// It is ready once this URL answers.
    pub ready: String,
}

/// Driver of operands that are servers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drive {
    /// An operand is ready once this URL answers; also what `{url}` stands for.
    pub url: String,
    /// A load generator whose output is known.
    pub command: Template,
    /// Its cores; none means that the scheduler chooses.
    pub pin: Vec<usize>,
}

/// Why nothing can be compared.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// Fewer than two operands.
    #[error(
        "a comparison takes at least two operands, and {} given; add a URL or a command", if *.0 == 1 { "one is" } else { "none is" }
    )]
    Operands(usize),
    /// A number that must be positive.
    #[error("{0} must be at least 1")]
    Zero(&'static str),
    /// A command that cannot be used.
    #[error(transparent)]
    Template(#[from] TemplateError),
    /// A URL that is none.
    #[error("{flag}: `{text}` is not an http or https URL")]
    Url {
        /// The flag it came from.
        flag: &'static str,
        /// The text as written.
        text: String,
    },
    /// Two ways at once.
    #[error("--server and --drive exclude each other: with --drive the operands are the servers")]
    ServerAndDrive,
    /// A server that is started is measured by its processes.
    #[error("--observe is for servers that run already, and --server and --drive start theirs")]
    ObservedAndStarted,
    /// The cost of one operand would be that of a server, of another that of a client.
    #[error(
        "--observe names the server of some operands: name one for each, or the one that all of them load by a name of its own"
    )]
    ObservedInPart,
}

/// A comparison that can be run.
#[derive(Debug, Clone)]
pub struct ComparePlan {
    pub(super) options: CompareOptions,
    pub(super) url: Option<String>,
}

impl ComparePlan {
    /// Operands, trials and seconds are not limited: hours of trials take hours.
    pub fn new(options: CompareOptions) -> Result<Self, PlanError> {
        let least = if options.rate.is_some() { 1 } else { 2 };
        if options.operands.len() < least {
            return Err(PlanError::Operands(options.operands.len()));
        }
        for (number, flag) in [
            (options.trials, "--trials"),
            (options.seconds, "--seconds"),
            (options.connections, "--connections"),
            (options.rate.unwrap_or(1), "--rates"),
        ] {
            if number == 0 {
                return Err(PlanError::Zero(flag));
            }
        }
        if options.server.is_some() && options.drive.is_some() {
            return Err(PlanError::ServerAndDrive);
        }
        let observed = options.operands.iter().filter(|it| it.observed.is_some());
        let observed = observed.count();
        let starts = options.server.is_some() || options.drive.is_some();
        if starts && (observed > 0 || options.observed.is_some()) {
            return Err(PlanError::ObservedAndStarted);
        }
        let is_in_part = observed > 0 && observed < options.operands.len();
        if is_in_part || (observed > 0 && options.observed.is_some()) {
            return Err(PlanError::ObservedInPart);
        }
        let url = options
            .url
            .clone()
            .or_else(|| options.drive.as_ref().map(|drive| drive.url.clone()))
            .or_else(|| options.server.as_ref().map(|server| server.ready.clone()));
        let plan = Self { options, url };
        plan.check_urls()?;
        plan.check_templates()?;
        Ok(plan)
    }

    /// Whether the cost of an operand is that of a server.
    pub(super) fn operands_are_servers(&self) -> bool {
        let options = &self.options;
        options.drive.is_some() || options.operands.iter().all(|it| it.observed.is_some())
    }

    /// Number of trials, warm-ups included.
    pub fn turns(&self) -> usize {
        self.options.operands.len() * (self.options.trials as usize + 1)
    }

    /// The least time that the trials take, in seconds.
    pub fn least_seconds(&self) -> u64 {
        self.turns() as u64 * u64::from(self.options.seconds)
    }

    /// The values of the placeholders when `port` is the port.
    pub(super) fn values(&self, port: u16) -> Values {
        Values {
            seconds: self.options.seconds,
            connections: self.options.connections,
            rate: self.options.rate,
            url: self.url.clone(),
            port,
        }
    }

    fn check_urls(&self) -> Result<(), PlanError> {
        let options = &self.options;
        let drive = options.drive.as_ref().map(|drive| drive.url.as_str());
        let ready = options.server.as_ref().map(|server| server.ready.as_str());
        for (flag, text) in [
            ("--url", options.url.as_deref()),
            ("--drive", drive),
            ("--ready", ready),
            ("--count-from", options.count_from.as_deref()),
        ] {
            let Some(text) = text else { continue };
            let usable = parse_url(&self.values(1).fill(text))
                .is_some_and(|url| flag != "--count-from" || url.scheme() == "http");
            if !usable {
                return Err(PlanError::Url {
                    flag,
                    text: text.to_owned(),
                });
            }
        }
        Ok(())
    }

    fn check_templates(&self) -> Result<(), PlanError> {
        if self.url.is_some() {
            return Ok(());
        }
        let operands = self.options.operands.iter();
        let mut commands = operands
            .clone()
            .map(|operand| &operand.command)
            .chain(operands.filter_map(|operand| operand.prepare.as_ref()));
        match commands.find_map(Template::needs_url) {
            Some(text) => Err(PlanError::Template(TemplateError::NoUrl {
                text: text.to_owned(),
            })),
            None => Ok(()),
        }
    }
}

/// An http or https URL with a host.
pub(super) fn parse_url(text: &str) -> Option<Url> {
    let url = Url::parse(text).ok()?;
    (matches!(url.scheme(), "http" | "https") && url.has_host()).then_some(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(line: &str) -> Template {
        Template::new(line.split(' ').map(str::to_owned).collect()).unwrap()
    }

    fn options(lines: &[&str]) -> CompareOptions {
        CompareOptions {
            operands: lines
                .iter()
                .map(|line| Operand {
                    label: (*line).to_owned(),
                    command: command(line),
                    prepare: None,
                    url: None,
                    observed: None,
                })
                .collect(),
            trials: 5,
            seconds: 3,
            connections: 50,
            rate: None,
            pin: vec![],
            server: None,
            drive: None,
            observed: None,
            url: None,
            port: None,
            count_from: None,
            metric: Metric::CpuUsPerRequest,
            gate: None,
            self_test: false,
            answers_may_differ: false,
            trust: Trust::default(),
            bootstrap: Bootstrap::default(),
            version: "0".to_owned(),
            command: vec![],
        }
    }

    fn error(options: CompareOptions) -> String {
        ComparePlan::new(options).unwrap_err().to_string()
    }

    #[test]
    fn what_cannot_be_compared_is_reported() {
        assert!(error(options(&["a"])).contains("at least two"));
        let none = CompareOptions {
            trials: 0,
            ..options(&["a", "b"])
        };
        assert_eq!(error(none), "--trials must be at least 1");
        assert_eq!(
            error(options(&["a", "b {url}"])),
            "`{url}` uses {url}, but no URL is given; name it with --url"
        );
        let status = Some("https://127.0.0.1/status".to_owned());
        let page = CompareOptions {
            count_from: status,
            ..options(&["a", "b"])
        };
        assert!(error(page).starts_with("--count-from: "));
        let both = CompareOptions {
            server: Some(Server {
                command: command("s"),
                pin: vec![],
                ready: "http://h/".to_owned(),
            }),
            drive: Some(Drive {
                url: "http://h/".to_owned(),
                command: command("d"),
                pin: vec![],
            }),
            ..options(&["a", "b"])
        };
        assert!(error(both).contains("exclude"));
        let place = || Some(TargetPlace::Here("unit:a".parse().unwrap()));
        let started = CompareOptions {
            drive: Some(Drive {
                url: "http://h/".to_owned(),
                command: command("d"),
                pin: vec![],
            }),
            observed: place(),
            ..options(&["a", "b"])
        };
        assert!(error(started).contains("servers that run already"));
        let mut in_part = options(&["a", "b"]);
        in_part.operands[1].observed = place();
        assert!(error(in_part.clone()).contains("name one for each"));
        in_part.operands[0].observed = place();
        assert!(ComparePlan::new(in_part).unwrap().operands_are_servers());
    }

    #[test]
    fn the_url_is_the_servers_unless_given() {
        let server = Server {
            command: command("s {port}"),
            pin: vec![],
            ready: "http://127.0.0.1:{port}/ready".to_owned(),
        };
        let shared = CompareOptions {
            server: Some(server),
            ..options(&["a {url}", "b"])
        };
        let plan = ComparePlan::new(shared.clone()).unwrap();
        let filled = plan.options.operands[0].command.fill(&plan.values(81));
        assert_eq!(filled, ["a", "http://127.0.0.1:81/ready"]);
        assert_eq!((plan.turns(), plan.least_seconds()), (12, 36));

        let named = CompareOptions {
            url: Some("http://h:{port}/".to_owned()),
            ..shared
        };
        let plan = ComparePlan::new(named).unwrap();
        let filled = plan.options.operands[0].command.fill(&plan.values(81));
        assert_eq!(filled, ["a", "http://h:81/"]);
    }
}
