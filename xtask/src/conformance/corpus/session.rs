//! A repository, checked out for both programs, and its scripts inspected and run.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{LazyLock, Mutex, PoisonError};

use regex::{Captures, Regex};
use serde_json::Value;

use super::checkout::{self, Repository, Scripts};
use super::differ::SAMPLED;
use super::grpc::{self, GrpcServer, Python};
use super::rewrite::Addresses;
use super::{Corpus, emptied, rewrite};
use crate::Failure;

/// Seconds that a run gets.
const SECONDS: &str = "60";

/// The clone that has the libraries of jslib.k6.io.
const JSLIB: &str = "grafana/jslib.k6.io";

/// Endings of files with code.
const CODE: [&str; 4] = ["js", "ts", "mjs", "cjs"];

/// Endings of other files that may have addresses.
const DATA: [&str; 5] = ["json", "env", "csv", "txt", "yaml"];

/// Larger files have no addresses that matter.
const LONGEST: u64 = 2 << 20;

/// Which of the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tool {
    K6,
    Plimsoll,
}

/// Both programs and what they share.
pub(super) struct Programs<'a> {
    corpus: &'a Corpus<'a>,
    /// `HOST:PORT` of the stand-in.
    address: String,
    /// Checkouts of clones with libraries.
    libraries: PathBuf,
    work: PathBuf,
    python: Python,
    /// Files of clones are written by one thread at a time.
    writing: Mutex<()>,
}

impl<'a> Programs<'a> {
    pub(super) fn prepare(corpus: &'a Corpus<'a>, address: &str) -> Result<Self, Failure> {
        let libraries = emptied(&corpus.target.join("libraries"))?;
        let jslib = Repository {
            name: JSLIB.to_owned(),
            commit: "HEAD".to_owned(),
        };
        let git = jslib
            .clone_in(corpus.clones)
            .ok_or_else(|| format!("there is no clone of {JSLIB}, whose libraries k6 needs"))?;
        let folder = emptied(&libraries.join("jslib"))?;
        jslib.check_out(&git, &folder)?;
        Ok(Self {
            corpus,
            address: address.to_owned(),
            libraries,
            work: emptied(&corpus.target.join("work"))?,
            python: Python::new(corpus.root, corpus.target),
            writing: Mutex::default(),
        })
    }

    /// Imports from other servers as imports of files, where a clone has them.
    fn local_imports(&self, text: &str) -> String {
        static REMOTE: LazyLock<Regex> = LazyLock::new(|| {
            let pattern = r#"https://(jslib\.k6\.io|raw\.githubusercontent\.com)(/[^'"`\s]+)"#;
            Regex::new(pattern).expect("the pattern is fixed")
        });
        let replaced = REMOTE.replace_all(text, |found: &Captures<'_>| {
            let whole = found[0].to_owned();
            let file = match &found[1] {
                "jslib.k6.io" => Some(
                    self.libraries
                        .join("jslib/lib")
                        .join(found[2].trim_start_matches('/')),
                ),
                _ => self.raw_file(&found[2]),
            };
            let file = file.filter(|file| file.is_file());
            file.map_or(whole, |file| file.to_string_lossy().into_owned())
        });
        replaced.into_owned()
    }

    /// A file of a clone by its path on raw.githubusercontent.com.
    fn raw_file(&self, path: &str) -> Option<PathBuf> {
        let mut parts = path.trim_start_matches('/').splitn(4, '/');
        let (owner, name) = (parts.next()?, parts.next()?);
        let (_, inner) = (parts.next()?, parts.next()?);
        let repository = Repository {
            name: format!("{owner}/{name}"),
            commit: "HEAD".to_owned(),
        };
        let git = repository.clone_in(self.corpus.clones)?;
        let file = self.libraries.join(owner).join(name).join(inner);
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        if file.is_file() {
            return Some(file);
        }
        let shown = Command::new("git")
            .arg("--git-dir")
            .arg(git)
            .arg("show")
            .arg(format!("HEAD:{inner}"))
            .output()
            .ok()
            .filter(|shown| shown.status.success())?;
        fs::create_dir_all(file.parent()?).ok()?;
        fs::write(&file, shown.stdout).ok()?;
        Some(file)
    }
}

/// A repository, checked out for both programs.
pub(super) struct Session<'a> {
    programs: &'a Programs<'a>,
    folder: PathBuf,
    addresses: Addresses,
    /// Runs while there is a session.
    _grpc: Option<GrpcServer>,
    /// `NAME=VALUE`
    variables: Vec<String>,
}

/// What a run has left behind.
#[derive(Debug, Default)]
pub(super) struct RunResult {
    pub(super) exit: Option<i32>,
    /// Lines of the console, with their level.
    pub(super) console: Vec<String>,
    /// The first error that is no line of the console.
    pub(super) error: String,
    pub(super) stdout: String,
    /// The content of `--summary-export`.
    pub(super) export: Value,
    /// Names of tags by metric, in the output of JSON.
    pub(super) tags: BTreeMap<String, BTreeSet<String>>,
    /// The first line of the output of CSV.
    pub(super) csv: String,
    /// Files that the script wrote, with the shape of JSON in them.
    pub(super) files: BTreeMap<String, String>,
}

impl<'a> Session<'a> {
    pub(super) fn check_out(
        programs: &'a Programs<'a>,
        repository: &Repository,
        git: &Path,
    ) -> Result<Self, Failure> {
        let folder = emptied(&programs.work.join(repository.name.replace('/', "+")))?;
        for tool in [Tool::K6, Tool::Plimsoll] {
            repository.check_out(git, &emptied(&folder.join(tool.name()))?)?;
        }
        let own = folder.join(Tool::K6.name());
        let texts: Vec<_> = files_with_addresses(&own)?
            .into_iter()
            .filter(|it| it.is_code)
            .map(|it| it.text)
            .collect();
        let grpc = grpc::is_called(&texts).then(|| programs.python.serve(&own));
        let grpc = grpc.transpose()?;
        let http = programs.address.clone();
        let addresses = Addresses {
            grpc: grpc
                .as_ref()
                .map_or_else(|| http.clone(), |it| it.address.clone()),
            http,
        };
        for tool in [Tool::K6, Tool::Plimsoll] {
            for file in files_with_addresses(&folder.join(tool.name()))? {
                let made = if file.is_code {
                    let made = rewrite::code(&file.text, &addresses);
                    programs.local_imports(&made)
                } else {
                    rewrite::hosts(&file.text, &addresses.http)
                };
                if made != file.text {
                    let path = &file.path;
                    fs::write(path, made)
                        .map_err(|error| format!("{}: {error}", path.display()))?;
                }
            }
        }
        let variables = rewrite::variables(&texts, &addresses).into_iter();
        Ok(Self {
            programs,
            folder,
            addresses,
            _grpc: grpc,
            variables: variables
                .map(|(name, value)| format!("{name}={value}"))
                .collect(),
        })
    }

    pub(super) fn scripts(&self) -> Result<Scripts, Failure> {
        checkout::scripts(&self.folder.join(Tool::K6.name()))
    }

    /// Removes the checkouts.
    pub(super) fn clear(&self) {
        // What is left lies in the target directory.
        fs::remove_dir_all(&self.folder).ok();
    }

    /// The options of the script by k6, or the error.
    pub(super) fn inspect_by_k6(&self, script: &str) -> Result<Result<Value, String>, Failure> {
        self.inspected(Tool::K6, script)
    }

    /// The same by plimsoll.
    pub(super) fn inspect_by_plimsoll(
        &self,
        script: &str,
    ) -> Result<Result<Value, String>, Failure> {
        self.inspected(Tool::Plimsoll, script)
    }

    /// Bundles a script with the modules that it imports, for both programs; `None` if that is not possible or k6 does not initialise the
    /// bundle either.
    pub(super) fn bundle(&self, script: &str) -> Result<Option<(String, Value)>, Failure> {
        let Some(esbuild) = self.programs.corpus.esbuild else {
            return Ok(None);
        };
        let bundle = format!("{script}.bundle.js");
        for tool in [Tool::K6, Tool::Plimsoll] {
            let own = self.folder.join(tool.name());
            let output = Command::new(esbuild)
                .args(["--bundle", "--format=esm", "--platform=neutral"])
                .args(["--main-fields=module,main", "--log-level=error"])
                .args(["--external:k6", "--external:k6/*", "--external:https://*"])
                .arg(format!("--outfile={}", own.join(&bundle).display()))
                .arg(own.join(script))
                .stdin(Stdio::null())
                .output()
                .map_err(|error| format!("esbuild: {error}"))?;
            if !output.status.success() {
                return Ok(None);
            }
        }
        let theirs = self.inspect_by_k6(&bundle)?;
        Ok(theirs.ok().map(|theirs| (bundle, theirs)))
    }

    fn inspected(&self, tool: Tool, script: &str) -> Result<Result<Value, String>, Failure> {
        let output = self.inspect(tool, script)?;
        if !output.status.success() {
            let text = String::from_utf8_lossy(&output.stderr);
            return Ok(Err(first_error(&text)));
        }
        let json = serde_json::from_slice(&output.stdout);
        Ok(json.map_err(|error| error.to_string()))
    }

    fn inspect(&self, tool: Tool, script: &str) -> Result<Output, Failure> {
        let mut command = self.command(tool, "inspect", script);
        command.arg("--execution-requirements");
        self.finish(command, tool, script)
    }

    pub(super) fn run_k6(&self, script: &str) -> Result<RunResult, Failure> {
        self.run(Tool::K6, script)
    }

    pub(super) fn run_plimsoll(&self, script: &str) -> Result<RunResult, Failure> {
        self.run(Tool::Plimsoll, script)
    }

    fn run(&self, tool: Tool, script: &str) -> Result<RunResult, Failure> {
        let own = self.folder.join(tool.name());
        let path = own.join(script);
        let text = fs::read_to_string(&path).map_err(|error| format!("{script}: {error}"))?;
        let before: BTreeSet<_> = checkout::files(&own)?.into_iter().collect();
        let main = rewrite::main(&text, &self.addresses);
        fs::write(&path, main).map_err(|error| format!("{script}: {error}"))?;
        let results = emptied(&self.folder.join("results"))?;
        let file = |name: &str| results.join(name).to_string_lossy().into_owned();
        let mut command = self.command(tool, "run", script);
        command
            .args(["--quiet", "--no-color", "--no-usage-report"])
            .args(["--log-format", "json"])
            .arg(format!("--summary-export={}", file("export.json")))
            .arg(format!("--out=json={}", file("samples.json")))
            .arg(format!("--out=csv={}", file("samples.csv")));
        let output = self.finish(command, tool, script)?;
        fs::write(&path, text).map_err(|error| format!("{script}: {error}"))?;
        let read = |name: &str| fs::read_to_string(results.join(name)).unwrap_or_default();
        let mut result = RunResult {
            exit: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            export: serde_json::from_str(&read("export.json")).unwrap_or_default(),
            tags: tags(&read("samples.json")),
            csv: read("samples.csv")
                .lines()
                .next()
                .unwrap_or_default()
                .to_owned(),
            ..RunResult::default()
        };
        let stderr = String::from_utf8_lossy(&output.stderr);
        result.error = first_error(&stderr);
        for line in stderr.lines() {
            let line: Value = serde_json::from_str(line).unwrap_or_default();
            if line["source"] == "console" {
                let text = |key: &str| line[key].as_str().unwrap_or_default().to_owned();
                result
                    .console
                    .push(format!("{} {}", text("level"), text("msg")));
            }
        }
        for written in checkout::files(&own)? {
            if before.contains(&written) {
                continue;
            }
            let file = own.join(&written);
            let content = fs::read_to_string(&file).unwrap_or_default();
            let shape = serde_json::from_str::<Value>(&content);
            let shape = shape.map_or_else(|_| String::new(), |value| shape_of(&value));
            result.files.insert(written, shape);
            // The next run writes it anew.
            fs::remove_file(file).ok();
        }
        Ok(result)
    }

    fn command(&self, tool: Tool, name: &str, script: &str) -> Command {
        let program = match tool {
            Tool::K6 => self.programs.corpus.k6,
            Tool::Plimsoll => self.programs.corpus.program,
        };
        let mut command = Command::new("timeout");
        command.args(["--signal=KILL", SECONDS]).arg(program);
        if tool == Tool::Plimsoll {
            command.arg("k6");
        }
        command.arg(name);
        for variable in &self.variables {
            command.arg("-e").arg(variable);
        }
        let file = Path::new(script).file_name().unwrap_or_default();
        command.arg(file);
        command
    }

    /// Runs it beside the script, without the variables of this process.
    fn finish(&self, mut command: Command, tool: Tool, script: &str) -> Result<Output, Failure> {
        let path = self.folder.join(tool.name()).join(script);
        let folder = path.parent().unwrap_or(&self.folder);
        let output = command
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("HOME", &self.programs.work)
            .current_dir(folder)
            .stdin(Stdio::null())
            .output();
        Ok(output.map_err(|error| format!("{script}: {error}"))?)
    }
}

impl Tool {
    fn name(self) -> &'static str {
        match self {
            Self::K6 => "k6",
            Self::Plimsoll => "plimsoll",
        }
    }
}

/// A file that may have addresses.
struct AddressedFile {
    path: PathBuf,
    is_code: bool,
    text: String,
}

/// Those of a checkout.
fn files_with_addresses(folder: &Path) -> Result<Vec<AddressedFile>, Failure> {
    let found = checkout::files(folder)?.into_iter().filter_map(|file| {
        let path = folder.join(file);
        let extension = path.extension().unwrap_or_default().to_string_lossy();
        let is_code = CODE.contains(&extension.as_ref());
        let is_data =
            DATA.contains(&extension.as_ref()) || path.file_name().is_some_and(|it| it == ".env");
        let is_short = fs::metadata(&path).is_ok_and(|found| found.len() <= LONGEST);
        if !(is_short && (is_code || is_data)) {
            return None;
        }
        let text = fs::read_to_string(&path).ok()?;
        Some(AddressedFile {
            path,
            is_code,
            text,
        })
    });
    Ok(found.collect())
}

/// The first line that is an error, without what every run has anew.
fn first_error(stderr: &str) -> String {
    for line in stderr.lines() {
        if let Ok(json) = serde_json::from_str::<Value>(line) {
            if json["level"] == "error" && json["source"] != "console" {
                return first_line(json["msg"].as_str().unwrap_or_default());
            }
        } else if let Some(message) = line.strip_prefix("error: ") {
            return first_line(message);
        } else if let Some((_, message)) = line.split_once(" level=error msg=") {
            return first_line(message.trim_start_matches('"'));
        }
    }
    String::new()
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}

/// Names of tags by metric.
fn tags(lines: &str) -> BTreeMap<String, BTreeSet<String>> {
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for line in lines.lines() {
        let line: Value = serde_json::from_str(line).unwrap_or_default();
        if line["type"] != "Point" {
            continue;
        }
        let metric = line["metric"].as_str().unwrap_or_default().to_owned();
        let names = found.entry(metric).or_default();
        names.extend(
            line["data"]["tags"]
                .as_object()
                .into_iter()
                .flatten()
                .map(|(name, _)| name.clone()),
        );
    }
    found
}

/// Keys and kinds of JSON without its values; of lists the first element.
fn shape_of(value: &Value) -> String {
    match value {
        Value::Object(members) => {
            let members = members.iter();
            let mut members: Vec<_> = members
                .filter(|(key, _)| !SAMPLED.contains(&key.as_str()))
                .map(|(key, value)| format!("{key}:{}", shape_of(value)))
                .collect();
            members.sort();
            format!("{{{}}}", members.join(","))
        }
        Value::Array(elements) => format!("[{}]", elements.first().map_or(String::new(), shape_of)),
        Value::Null => "null".to_owned(),
        Value::Bool(_) => "bool".to_owned(),
        Value::Number(_) => "number".to_owned(),
        Value::String(_) => "text".to_owned(),
    }
}
