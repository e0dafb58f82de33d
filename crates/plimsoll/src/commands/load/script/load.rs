//! Scripts and archives with everything that they need before they are run, inspected or archived.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::Arc;

use plimsoll_client::ProxyRules;
use plimsoll_k6::{
    Archive, ExitCode as K6ExitCode, Fetch, Invocation, LineSource, LoadError, ModuleLockError,
    RemoteModules, Script, ScriptText, Secrets, UnpackedArchive,
};
use plimsoll_script::Level;

use super::flags::{Compatibility, GlobalFlags, SourceFlags, TestType, boolean};
use super::{Failure, remote, variable};
use crate::flags::{connection_variables, key_log_of};
use crate::problem::Problem;
use crate::temporary_folder::{Purpose, TemporaryFolder};

/// Longer scripts on standard input are rejected; archives have a limit of their own.
const LONGEST: u64 = 16 << 20;

/// Bytes by which a tar file is recognised.
const HEAD: usize = 512;

/// Writes a line of a log: its level, its text, and where it comes from.
type WriteLine = Arc<dyn Fn(Level, &str, LineSource) + Send + Sync>;

/// A compiled script with its surroundings.
#[derive(Debug)]
pub(crate) struct Loaded {
    script: Script,
    environment: Vec<(String, String)>,
    pub(crate) proxies: ProxyRules,
    key_log: Option<PathBuf>,
    secrets: Secrets,
    /// The files of an archive, until the run has ended.
    _folder: Option<TemporaryFolder>,
}

impl Loaded {
    /// A run of it with the defaults of everything else.
    pub(crate) fn invocation<'a>(
        &self,
        log: WriteLine,
        is_interrupted: &'a dyn Fn() -> bool,
    ) -> Invocation<'a> {
        Invocation {
            environment: self.environment.clone(),
            proxies: self.proxies.clone(),
            key_log: self.key_log.clone(),
            secrets: self.secrets.clone(),
            ..Invocation::new(self.script.clone(), log, is_interrupted)
        }
    }
}

/// Reads and compiles what the flags name.
///
/// - `sees_system`: whether scripts see the variables of the environment by default.
pub(crate) fn load(
    source: &SourceFlags,
    global: &GlobalFlags,
    test_type: Option<TestType>,
    sees_system: bool,
) -> Result<Loaded, Failure> {
    let other = |problem: Problem| (problem, K6ExitCode::Other);
    let config = |problem: Problem| (problem, K6ExitCode::InvalidConfig);
    check_compatibility(source).map_err(other)?;
    let (text, folder) =
        script_text(&source.script, type_of(test_type).map_err(other)?).map_err(other)?;
    let variables = connection_variables();
    let key_log = key_log_of(&variables);
    let variables = variables.iter();
    let proxies =
        ProxyRules::from_variables(variables.map(|(name, value)| (name.as_str(), value.as_str())));
    let proxies =
        proxies.map_err(|error| other(Problem::with("environment", error.to_string())))?;
    let remote = match &text {
        ScriptText::Archived(archive) => archived_modules(archive.remote.clone()),
        _ => remote::modules(source.module_lock.clone(), variable, proxies.clone()),
    };
    let remote =
        remote.map_err(|error| config(Problem::with("--module-lock", error.to_string())))?;
    let mut environment = match &text {
        ScriptText::Archived(archive) => archive.environment.clone(),
        _ => Vec::new(),
    };
    let script = Script::load_with(&text, Some(remote)).map_err(|error| {
        let code = match error {
            LoadError::File { .. } => K6ExitCode::Other,
            LoadError::Script(_) => K6ExitCode::ScriptException,
        };
        // Its text has all that its causes say.
        (Problem::new(error.to_string()), code)
    })?;
    if sees_system_variables(source, sees_system).map_err(other)? {
        environment.extend(std::env::vars_os().filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        }));
    }
    environment.extend(source.environment.iter().cloned());
    let secrets = Secrets::parse(&global.secret_sources, |path| fs::read_to_string(path));
    let secrets =
        secrets.map_err(|error| config(Problem::with("--secret-source", error.to_string())))?;
    Ok(Loaded {
        script,
        environment,
        proxies,
        key_log,
        secrets,
        _folder: folder,
    })
}

/// What the argument is to be taken for.
fn type_of(flag: Option<TestType>) -> Result<Option<TestType>, Problem> {
    match (flag, variable("K6_TYPE").as_deref()) {
        (Some(flag), _) => Ok(Some(flag)),
        (None, None) => Ok(None),
        (None, Some("js")) => Ok(Some(TestType::Js)),
        (None, Some("archive")) => Ok(Some(TestType::Archive)),
        (None, Some(other)) => {
            let message = format!("`{other}` is neither js nor archive");
            Err(Problem::with("K6_TYPE", message))
        }
    }
}

/// Both modes are one here; a wrong name is wrong all the same.
fn check_compatibility(source: &SourceFlags) -> Result<(), Problem> {
    const VARIABLE: &str = "K6_COMPATIBILITY_MODE";
    let Some(name) = variable(VARIABLE).filter(|_| source.compatibility_mode.is_none()) else {
        return Ok(());
    };
    let known = <Compatibility as clap::ValueEnum>::from_str(&name, false);
    known
        .map(drop)
        .map_err(|_| Problem::with(VARIABLE, format!("`{name}` is neither extended nor base")))
}

fn sees_system_variables(source: &SourceFlags, default: bool) -> Result<bool, Problem> {
    const VARIABLE: &str = "K6_INCLUDE_SYSTEM_ENV_VARS";
    match (source.include_system_env_vars, variable(VARIABLE)) {
        (Some(flag), _) => Ok(flag),
        (None, Some(text)) => boolean(&text).map_err(|message| Problem::with(VARIABLE, message)),
        (None, None) => Ok(default),
    }
}

/// Modules of other servers come from the archive alone.
fn archived_modules(modules: BTreeMap<String, Vec<u8>>) -> Result<RemoteModules, ModuleLockError> {
    let fetch: Fetch = Box::new(move |url| {
        let found = modules.get(url).cloned();
        found.ok_or_else(|| "the archive does not have it".into())
    });
    RemoteModules::new(None, None, fetch)
}

/// The script, or the folder into which its archive was unpacked with it.
fn script_text(
    script: &str,
    test_type: Option<TestType>,
) -> Result<(ScriptText, Option<TemporaryFolder>), Problem> {
    let unreadable = |error: io::Error| Problem::new(format!("cannot read {script}: {error}"));
    let is_archive = |head: &[u8]| match test_type {
        Some(test_type) => test_type == TestType::Archive,
        None => Archive::is_archive(head),
    };
    if script != "-" {
        let mut head = Vec::new();
        // A file that cannot be read is reported when it is compiled.
        if let Ok(file) = fs::File::open(script) {
            file.take(HEAD as u64).read_to_end(&mut head).ok();
        }
        if !is_archive(&head) {
            return Ok((ScriptText::File(PathBuf::from(script)), None));
        }
        let file = fs::File::open(script).map_err(unreadable)?;
        return unpacked(script, io::BufReader::new(file));
    }
    let mut head = Vec::new();
    let mut stdin = io::stdin().lock();
    let read = (&mut stdin).take(HEAD as u64).read_to_end(&mut head);
    read.map_err(unreadable)?;
    if is_archive(&head) {
        return unpacked(script, head.as_slice().chain(stdin));
    }
    let mut bytes = head;
    let read = stdin.take(LONGEST + 1).read_to_end(&mut bytes);
    read.map_err(unreadable)?;
    if bytes.len() as u64 > LONGEST {
        let mebibytes = LONGEST >> 20;
        return Err(Problem::new(format!(
            "the script on standard input is longer than {mebibytes} MiB"
        )));
    }
    let text = String::from_utf8(bytes);
    let text = text.map_err(|_| Problem::new("the script on standard input is not UTF-8"))?;
    let directory = std::env::current_dir()
        .map_err(|error| Problem::new(format!("there is no current directory: {error}")))?;
    Ok((ScriptText::Given { text, directory }, None))
}

fn unpacked(
    script: &str,
    input: impl Read,
) -> Result<(ScriptText, Option<TemporaryFolder>), Problem> {
    let wrong = |error: &dyn std::error::Error| Problem::with(script, error.to_string());
    let archive = Archive::read(input).map_err(|error| wrong(&error))?;
    let folder = TemporaryFolder::new(Purpose::Archive);
    let folder = folder.map_err(|error| wrong(&error))?;
    let unpacked: UnpackedArchive = archive
        .unpack(folder.path())
        .map_err(|error| wrong(&error))?;
    Ok((ScriptText::Archived(Box::new(unpacked)), Some(folder)))
}
