//! `--observe`: servers whose cost is measured by name, here or by the agents of other machines.

use std::fs;
use std::path::{Path, PathBuf};

use plimsoll_model::Secret;
use plimsoll_observe::{
    AttachError, NamedTarget, RemoteError, RemotePlan, TargetName, TargetPlace,
};
use plimsoll_wire::tls::Trust;

use super::Problems;
use crate::problem::{Failed, Problem};

/// Servers of one run.
const MOST: usize = 16;

/// A token is a line; longer files are something else.
const LONGEST_TOKEN: usize = 4096;

#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct ObserveArgs {
    /// Measure the cost of this server, here or by `plimsoll observe` on its machine; repeatable
    ///
    /// `https://HOST:7070/?unit=nginx` is a target of an agent, `unit:nginx` one on this machine; kinds are pid, unit, cgroup,
    /// container and pod. `NAME=` before it names the server in tables and thresholds:
    /// `server_cpu_per_request{name:db}:value<2ms`. The first one is what requests cost, unless --pid or --spawn names it.
    #[arg(long, value_name = "[NAME=]URL|KIND:VALUE")]
    pub(crate) observe: Vec<String>,

    /// File with the token of the agents, or with that of one of them; repeatable
    #[arg(
        long,
        value_name = "[NAME=]FILE",
        requires = "observe",
        hide_short_help = true
    )]
    pub(crate) observe_token_file: Vec<String>,

    /// Trust the CA certificates in this PEM file for agents
    #[arg(
        long,
        value_name = "FILE",
        requires = "observe",
        hide_short_help = true
    )]
    pub(crate) observe_ca: Option<PathBuf>,
}

/// One server to be observed.
#[derive(Debug, Clone)]
pub(crate) struct NamedPlace {
    /// Its name, which no other one has.
    pub(crate) name: String,
    /// Where it is.
    pub(crate) place: TargetPlace,
}

impl ObserveArgs {
    /// Whether a server is observed by name.
    pub(crate) fn is_given(&self) -> bool {
        !self.observe.is_empty()
    }

    /// The plans of the flags; what is wrong is added to `problems`.
    pub(crate) fn compile(&self, problems: &mut Problems) -> Vec<NamedPlace> {
        let trust = match &self.observe_ca {
            Some(file) => Trust::Only(file.clone()),
            None => Trust::PublicRoots,
        };
        let mut plans: Vec<NamedPlace> = Vec::new();
        if self.observe.len() > MOST {
            problems.add(
                "--observe",
                format!("at most {MOST} servers can be observed"),
            );
        }
        let names: Vec<_> = self.observe.iter().map(|text| named(text).0).collect();
        let tokens = self.tokens(&names, problems);
        for text in &self.observe {
            let (name, place) = named(text);
            let token = tokens.token_for(name);
            let Some(place) = problems.value("--observe", place_of(place, token, &trust)) else {
                continue;
            };
            let name = name.unwrap_or(&place.target().value);
            if plans.iter().any(|plan| plan.name == name) {
                problems.push(
                    Problem::with("--observe", format!("two servers have the name `{name}`"))
                        .hint(format!("name one otherwise: --observe OTHER={text}")),
                );
                continue;
            }
            let name = name.to_owned();
            plans.push(NamedPlace { name, place });
        }
        plans
    }

    /// The servers, which are there and can be sampled.
    pub(crate) fn open(&self) -> Result<Vec<NamedTarget>, Failed> {
        let mut problems = Problems::default();
        let plans = self.compile(&mut problems);
        let plans = problems.unless_any(Some(plans))?;
        plans.into_iter().map(NamedPlace::open).collect()
    }

    fn tokens(&self, names: &[Option<&str>], problems: &mut Problems) -> Tokens<'_> {
        let mut tokens = Tokens::default();
        for text in &self.observe_token_file {
            // A path may have an equals sign in it.
            let of_one = text.split_once('=');
            let of_one = of_one.filter(|(name, _)| names.contains(&Some(*name)));
            let (name, file) = match of_one {
                Some((name, file)) => (Some(name), file),
                None => (None, text.as_str()),
            };
            if let Some(token) = problems.value("--observe-token-file", token_in(Path::new(file))) {
                tokens.0.push((name, token));
            }
        }
        tokens
    }
}

/// Tokens by the name of the server that they are for; without one they are for all others.
#[derive(Debug, Default)]
struct Tokens<'a>(Vec<(Option<&'a str>, Secret)>);

impl Tokens<'_> {
    fn token_for(&self, name: Option<&str>) -> Option<&Secret> {
        let by = |wanted: Option<&str>| self.0.iter().find(|(name, _)| *name == wanted);
        let own = name.and_then(|name| by(Some(name)));
        own.or_else(|| by(None)).map(|(_, token)| token)
    }
}

impl NamedPlace {
    fn open(self) -> Result<NamedTarget, Failed> {
        let target = self.place.open();
        Ok(NamedTarget {
            target: target.map_err(|error| unobservable(&error).could_not_run())?,
            name: self.name,
        })
    }
}

/// Why a server cannot be observed, and what to do.
pub(crate) fn unobservable(error: &AttachError) -> Problem {
    let problem = Problem::caused_by(error).about("--observe");
    let AttachError::Remote(error) = error else {
        return problem;
    };
    match error {
        RemoteError::Token { .. } => {
            problem.hint("name the file of its token: --observe-token-file FILE")
        }
        RemoteError::Unreachable { reason, .. } if reason.contains("certificate") => {
            problem.hint("trust its authority: --observe-ca FILE")
        }
        RemoteError::Unreachable { .. } => {
            problem.hint("start `plimsoll observe` on that machine, or correct host and port")
        }
        _ => problem,
    }
}

/// The token in a file, without the line feed at its end.
pub(crate) fn token_in(file: &Path) -> Result<Secret, String> {
    /// Fewer characters can be guessed.
    const SHORTEST: usize = 16;

    let text = fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let token = text.trim();
    let is_visible = token.bytes().all(|byte| byte.is_ascii_graphic());
    if token.len() < SHORTEST || token.len() > LONGEST_TOKEN || !is_visible {
        return Err(format!(
            "{}: a token is one word of {SHORTEST} to {LONGEST_TOKEN} characters; `openssl rand -hex 32` prints one",
            file.display()
        ));
    }
    Ok(Secret::new(token))
}

/// `NAME=` before a URL or target, and the rest. A name may be host and port, as operands of `compare` have it.
fn named(text: &str) -> (Option<&str>, &str) {
    let is_name = |name: &str, place: &str| {
        let mut bytes = name.bytes();
        let is_word = |byte: u8| {
            byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b':' | b'[' | b']')
        };
        // Targets have a colon too: `unit:a=b` is one, and has no name.
        let is_target = || place.contains("://") || place.parse::<TargetName>().is_ok();
        !name.is_empty() && bytes.all(is_word) && (!name.contains(':') || is_target())
    };
    match text.split_once('=') {
        Some((name, place)) if is_name(name, place) => (Some(name), place),
        _ => (None, text),
    }
}

fn place_of(text: &str, token: Option<&Secret>, trust: &Trust) -> Result<TargetPlace, String> {
    if !text.contains("://") {
        let target = text.parse::<TargetName>();
        let target = target.map_err(|error| {
            format!("{error}; an agent is named by its URL, such as https://HOST:7070/?unit=nginx")
        })?;
        return Ok(TargetPlace::Here(target));
    }
    let plan = RemotePlan::new(text, token.cloned(), trust.clone());
    let plan = plan.map_err(|error| error.to_string())?;
    Ok(TargetPlace::Agent(Box::new(plan)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(observe: &[&str]) -> ObserveArgs {
        ObserveArgs {
            observe: observe.iter().map(|it| (*it).to_owned()).collect(),
            ..ObserveArgs::default()
        }
    }

    fn names(observe: &[&str]) -> Result<Vec<String>, Vec<String>> {
        let mut problems = Problems::default();
        let plans = args(observe).compile(&mut problems);
        let plans = problems.unless_any(Some(plans));
        let shown = |failed: Failed| failed.problems.into_iter().map(|it| it.message);
        let plans = plans.map_err(|failed| shown(failed).collect::<Vec<_>>())?;
        Ok(plans.into_iter().map(|plan| plan.name).collect())
    }

    #[test]
    fn servers_have_the_given_names_or_those_of_their_targets() {
        let named = names(&[
            "db=https://db1:7070/?unit=postgresql",
            "https://web1:7070/?container=web",
            "cache=unit:redis",
            "cgroup:/a.slice/b=c",
            "unit:a=b",
            "127.0.0.1:8080=unit:nginx",
            "[::1]:80=https://h:7070/?pid=1",
        ]);
        let expected = [
            "db",
            "web",
            "cache",
            "/a.slice/b=c",
            "a=b",
            "127.0.0.1:8080",
            "[::1]:80",
        ];
        assert_eq!(named.unwrap(), expected);
    }

    #[test]
    fn every_mistake_is_reported_with_what_to_write() {
        for (text, message) in [
            ("nginx", "is not of the form KIND:VALUE"),
            ("https://db1:7070/", "name one target as the query"),
            (
                "https://db1:7070/?unit=a&unit=b",
                "name one target as the query",
            ),
            (
                "https://db1:7070/?service=a",
                "name one target as the query",
            ),
            ("ftp://db1/?unit=a", "an agent is reached by https://"),
            ("https://me:secret@db1/?unit=a", "has no user"),
        ] {
            let found = names(&[text]).unwrap_err();
            assert!(found[0].contains(message), "{text}: {found:?}");
            assert!(!found[0].contains("secret"), "{found:?}");
        }
        let twice = names(&["unit:a", "unit:a"]).unwrap_err();
        assert_eq!(twice, ["two servers have the name `a`"]);
    }

    #[test]
    fn a_token_goes_to_its_server_and_never_in_the_clear() {
        let folder = tempfile::tempdir().unwrap();
        let token = folder.path().join("token");
        fs::write(&token, "0123456789abcdef\n").unwrap();
        let file = token.display().to_string();
        let mut problems = Problems::default();
        let mut flags = args(&[
            "db=http://db1:7070/?unit=a",
            "web=http://localhost:1/?unit=b",
        ]);
        flags.observe_token_file = vec![format!("web={file}")];
        assert_eq!(flags.compile(&mut problems).len(), 2);
        assert_eq!(problems.len(), 0);
        flags.observe_token_file = vec![file];
        assert_eq!(
            flags.compile(&mut problems).len(),
            1,
            "db1 is another machine"
        );
        assert_eq!(problems.len(), 1);
        fs::write(&token, "short").unwrap();
        assert!(token_in(&token).unwrap_err().contains("openssl rand"));
    }
}
