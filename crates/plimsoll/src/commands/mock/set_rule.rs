//! `plimsoll mock set rule`: a rule of a file, changed without touching what stands around it.

use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use plimsoll_mock::RuleSet;
use plimsoll_mock::config;
use plimsoll_mock::edit::{RuleChange, RuleContent, WhichRule, changed};
use plimsoll_wire::files::NewFile;

use super::{FILE, failed, open};
use crate::exit::Exit;
use crate::flags::Problems;
use crate::problem::{Failed, Problem};
use crate::terminal;

/// Change or add a rule in a file and keep its comments
///
/// The file is not written if it would become invalid. A running mock applies the change at once.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Rule file, or the file that names it
    #[arg(default_value = FILE)]
    file: PathBuf,

    /// Number of the rule file among those that FILE names, from 1 [default: the only one]
    #[arg(long, value_name = "N")]
    rule_set: Option<usize>,

    /// Rule to change, by number from 1 or id [default: add a rule at the end]
    #[arg(long, value_name = "N or ID")]
    rule: Option<String>,

    /// Set the rule's id
    #[arg(long, value_name = "ID")]
    id: Option<String>,

    /// Set the path it matches
    #[arg(long, value_name = "PATH")]
    path: Option<String>,

    /// Set the method it matches
    #[arg(short, long, value_name = "METHOD")]
    method: Option<String>,

    /// Set a header it matches, repeatable
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE")]
    headers: Vec<String>,

    /// Set the response status
    #[arg(long, value_name = "STATUS")]
    status: Option<u16>,

    /// Set the response text
    #[arg(long, value_name = "TEXT")]
    text: Option<String>,

    /// Set the response JSON
    #[arg(long, value_name = "JSON", conflicts_with = "text")]
    json: Option<String>,

    /// Set the response file
    #[arg(long = "file", value_name = "FILE", conflicts_with_all = ["text", "json"])]
    content_file: Option<String>,

    /// Set the delay before the response
    #[arg(long, value_name = "TIME")]
    delay: Option<String>,

    /// Print the change without writing it
    #[arg(long)]
    dry_run: bool,
}

pub(crate) fn run(args: &Args) -> Result<Exit, Failed> {
    let change = args.change()?;
    let plan = open(&args.file)?.plan;
    let set = args.set(&plan.sets.iter().map(|set| &**set).collect::<Vec<_>>())?;
    let cannot = |verb: &str, error: &io::Error| {
        Problem::new(format!("cannot {verb} {}: {error}", set.display())).could_not_run()
    };
    let before = fs::read_to_string(&set).map_err(|error| cannot("read", &error))?;
    let (after, number) = changed(&before, &args.which(), &change)
        .map_err(|error| Problem::new(format!("{}: {error}", set.display())).usage())?;
    config::load_as_if(&args.file, &set, &after)
        .map_err(|problems| failed(Exit::Objective, &problems))?;
    if !args.dry_run {
        let is_written = write(&set, &before, &after).map_err(|error| cannot("write", &error))?;
        if !is_written {
            let message = format!(
                "{} was changed meanwhile; nothing is written",
                set.display()
            );
            return Err(Failed {
                exit: Exit::Objective,
                problems: vec![Problem::new(message)],
            });
        }
    }
    let verb = match (args.dry_run, &args.rule) {
        _ if before == after => "is so already",
        (true, Some(_)) => "would change",
        (true, None) => "would be added",
        (false, Some(_)) => "changed",
        (false, None) => "added",
    };
    let text = format!("{}: rules[{number}] {verb}\n", set.display());
    terminal::print((text + &difference(&before, &after)).trim_end())
        .map_err(|error| Problem::caused_by(&error).could_not_run())?;
    Ok(Exit::Fine)
}

impl Args {
    fn change(&self) -> Result<RuleChange, Failed> {
        let mut problems = Problems::default();
        let headers = problems.header_fields("-H", &self.headers);
        let text = self.text.clone().map(RuleContent::Text);
        let json = self.json.clone().map(RuleContent::Json);
        let file = self.content_file.clone().map(RuleContent::File);
        let change = RuleChange {
            id: self.id.clone(),
            path: self.path.clone(),
            method: self.method.clone(),
            headers,
            status: self.status,
            content: text.or(json).or(file),
            delay: self.delay.clone(),
        };
        if self.headers.is_empty() && change == RuleChange::default() {
            problems.add("set rule", "needs something to set, such as `--status 503`");
        }
        problems.unless_any(Some(change))
    }

    fn which(&self) -> WhichRule {
        let Some(rule) = &self.rule else {
            return WhichRule::New;
        };
        // As `get --why` and the page name rules without an id.
        let number = rule
            .strip_prefix("rules[")
            .and_then(|it| it.strip_suffix(']'));
        match number.unwrap_or(rule).parse() {
            Ok(number) => WhichRule::Number(number),
            Err(_) => WhichRule::Id(rule.clone()),
        }
    }

    /// The file of rules that is meant.
    fn set(&self, sets: &[&RuleSet]) -> Result<PathBuf, Failed> {
        let number = match (self.rule_set, sets) {
            (Some(number), _) => number,
            (None, [_]) => 1,
            (None, []) => {
                let message = format!("{} names no file of rules", self.file.display());
                return Err(Problem::new(message).usage());
            }
            (None, many) => {
                let names: Vec<_> = many
                    .iter()
                    .map(|it| it.file.display().to_string())
                    .collect();
                let message = format!("says which of {} is meant", names.join(", "));
                return Err(Problem::with("--rule-set", message).usage());
            }
        };
        let set = number.checked_sub(1).and_then(|index| sets.get(index));
        let set = set.ok_or_else(|| {
            let message = format!("there are {} files of rules, not {number}", sets.len());
            Problem::with("--rule-set", message).usage()
        })?;
        Ok(set.file.clone())
    }
}

/// Puts `after` in the place of `before`; whether it did: not if something else is there by now.
fn write(file: &Path, before: &str, after: &str) -> io::Result<bool> {
    let mut new = NewFile::beside(file)?;
    new.file().write_all(after.as_bytes())?;
    if fs::read_to_string(file)? != before {
        return Ok(false);
    }
    new.put()?;
    Ok(true)
}

/// The lines that are others, as `diff` shows them; those between the first and the last one too.
fn difference(before: &str, after: &str) -> String {
    let old: Vec<&str> = before.lines().collect();
    let new: Vec<&str> = after.lines().collect();
    let is_same = |(old, new): &(&&str, &&str)| old == new;
    let head = old.iter().zip(&new).take_while(is_same).count();
    let (old_rest, new_rest) = (&old[head..], &new[head..]);
    let tail = old_rest.iter().rev().zip(new_rest.iter().rev());
    let tail = tail.take_while(is_same).count();
    let mut text = String::new();
    let mut line = |sign: char, line: &str| {
        writeln!(text, "{sign} {line}").expect("texts take everything");
    };
    for gone in &old_rest[..old_rest.len() - tail] {
        line('-', gone);
    }
    for come in &new_rest[..new_rest.len() - tail] {
        line('+', come);
    }
    text
}
