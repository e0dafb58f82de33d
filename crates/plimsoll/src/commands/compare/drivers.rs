//! The tools that `plimsoll compare` lets load URLs, and how each is called.

use std::fmt::{self, Display};

use clap::ValueEnum;
use plimsoll_lab::compare::{Operand, Template, TemplateError};

/// A tool that loads URLs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Driver {
    /// plimsoll load
    Plimsoll,
    /// wrk, HTTP/1.1 only
    Wrk,
    /// oha
    Oha,
    /// h2load of nghttp2
    H2load,
}

/// How tools are called.
pub(super) struct Drivers<'a> {
    pub(super) own: &'a str,
    pub(super) http2: bool,
    pub(super) streams: u32,
    pub(super) insecure: bool,
    pub(super) at_rate: bool,
}

impl Drivers<'_> {
    /// A command with its program's name as label, or a load of a URL by each of `tools`.
    pub(super) fn operands(
        &self,
        text: &str,
        tools: &[Driver],
    ) -> Result<Vec<Operand>, BadCommand> {
        if text.starts_with("http://") || text.starts_with("https://") {
            let of_tool = |tool: &Driver| {
                Ok(Operand {
                    label: tool.label().to_owned(),
                    command: self.load_of(text, *tool)?,
                    prepare: None,
                    url: Some(text.to_owned()),
                    observed: None,
                })
            };
            return tools.iter().map(of_tool).collect();
        }
        let command = split(text)?;
        let program = command.words()[0].rsplit('/').next().unwrap_or_default();
        Ok(vec![Operand {
            label: program.to_owned(),
            command,
            prepare: None,
            url: None,
            observed: None,
        }])
    }

    /// A load of `url` by `tool`, with one thread; a placeholder stays one.
    pub(super) fn load_of(&self, url: &str, tool: Driver) -> Result<Template, BadCommand> {
        if self.at_rate && tool != Driver::Plimsoll {
            return Err(BadCommand::Tool(tool, "does not go with --rates"));
        }
        let streams = self.streams.to_string();
        let mut words: Vec<&str> = match tool {
            Driver::Plimsoll => vec![
                self.own,
                "load",
                "--no-tui",
                "--json",
                "-z",
                "{seconds}s",
                "-c",
                "{connections}",
            ],
            Driver::Wrk if self.http2 => {
                return Err(BadCommand::Tool(tool, "does not speak HTTP/2"));
            }
            Driver::Wrk => vec!["wrk", "-t1", "-c{connections}", "-d{seconds}s", "--latency"],
            Driver::Oha => vec![
                "oha",
                "--no-tui",
                "--output-format",
                "json",
                "-z",
                "{seconds}s",
                "-c",
                "{connections}",
            ],
            Driver::H2load => vec!["h2load", "-t1", "-c{connections}", "-D{seconds}"],
        };
        match tool {
            Driver::Plimsoll | Driver::Oha if self.http2 => {
                words.extend(["--http2", "-p", &streams]);
            }
            Driver::H2load if self.http2 => words.extend(["-m", &streams]),
            Driver::H2load => words.push("--h1"),
            _ => {}
        }
        if self.insecure && matches!(tool, Driver::Plimsoll | Driver::Oha) {
            // The others accept any certificate anyway.
            words.push("--insecure");
        }
        if self.at_rate {
            words.extend(["-q", "{rate}"]);
        }
        words.push(url);
        Ok(Template::new(
            words.into_iter().map(str::to_owned).collect(),
        )?)
    }
}

impl Driver {
    pub(super) const fn label(self) -> &'static str {
        match self {
            Self::Plimsoll => "plimsoll",
            Self::Wrk => "wrk",
            Self::Oha => "oha",
            Self::H2load => "h2load",
        }
    }
}

pub(super) fn split(command: &str) -> Result<Template, BadCommand> {
    let words = shlex::split(command).ok_or_else(|| BadCommand::Quotes(command.to_owned()))?;
    Ok(Template::new(words)?)
}

/// A command line that cannot be split.
#[derive(Debug)]
pub(super) enum BadCommand {
    Quotes(String),
    Template(TemplateError),
    Tool(Driver, &'static str),
}

impl From<TemplateError> for BadCommand {
    fn from(error: TemplateError) -> Self {
        Self::Template(error)
    }
}

impl Display for BadCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Quotes(command) => write!(f, "`{command}` has a quote that is not closed"),
            Self::Template(error) => error.fmt(f),
            Self::Tool(tool, problem) => write!(f, "--driver: {} {problem}", tool.label()),
        }
    }
}

impl std::error::Error for BadCommand {}
