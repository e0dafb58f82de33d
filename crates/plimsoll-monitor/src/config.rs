//! The configuration: plans, and the TOML file that they are compiled from.
//!
//! The configuration of Gatus is compiled to the same plans.

pub mod import;

mod plan;

mod acknowledge;

mod agent;

mod store;

mod file;

mod gatus;

mod notify;

mod oncall;

mod escalation;

mod discover;

mod oidc;

pub mod overlay;

pub(crate) mod blackbox;

pub mod mask;

mod monitor;

mod kinds;

mod language;

pub mod maintenance;

pub mod page;

pub mod subscriptions;

use std::path::Path;

use crate::probe::SuppliedKinds;

pub use crate::config::agent::{AgentPlan, DEFAULT_REGION};
pub use crate::config::blackbox::{Module, Modules};
pub use crate::config::discover::{DiscoverPlan, DiscoverSource, HttpListPlan, KubernetesListPlan};
pub(crate) use crate::config::kinds::is_kind;
pub use crate::config::language::Language;
pub use crate::config::oidc::OidcPlan;
pub use crate::config::overlay::Grounds;
pub use crate::config::page::{Guard, PagePlan};
pub use crate::config::plan::{
    BasicLogin, CompositePlan, Dialect, EveryOrCron, GatusSettings, HeartbeatPlan, MonitorPlan,
    Plan, Retries, StorePlan, What, key_of,
};
pub use crate::config::store::DEFAULT_ORGANISATION;
pub use crate::config::subscriptions::SubscriptionPlan;
pub use crate::store::Source;
pub use crate::token::ApiToken;
pub use crate::yaml::Warning;
pub use plimsoll_model::document::ConfigProblem;

/// The JSON Schema of the file.
pub const SCHEMA: &str = include_str!("../../../schemas/monitor.v1.json");

/// Why a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// It cannot be read.
    #[error("cannot read {path}: {reason}")]
    Read {
        /// The file.
        path: String,
        /// Why.
        reason: String,
    },
    /// It has errors.
    #[error("{path} has {} errors", problems.len())]
    Problems {
        /// The file.
        path: String,
        /// All of them, in the order of the file.
        problems: Vec<ConfigProblem>,
    },
}

/// Compiles what an agent was sent: monitors that name no files of its machine.
pub(crate) fn of_agent(text: &str) -> Result<Plan, Vec<ConfigProblem>> {
    let ground = file::Ground {
        directory: Path::new(""),
        may_name_files: false,
        supplied: &[],
    };
    file::compile(text, ground, &|_| None)
}

/// Loads a configuration: Gatus's if the file ends in `.yaml` or `.yml` or is a folder of such files, ours otherwise.
///
/// - `environment`: gives the values of variables, which Gatus's configuration may name.
pub fn load(path: &Path, environment: &dyn Fn(&str) -> Option<String>) -> Result<Plan, LoadError> {
    load_with(path, environment, &[])
}

/// The same with kinds of probes that the program supplies.
pub fn load_with(
    path: &Path,
    environment: &dyn Fn(&str) -> Option<String>,
    supplied: SuppliedKinds,
) -> Result<Plan, LoadError> {
    let shown = path.display().to_string();
    let is_gatus = path.is_dir()
        || path
            .extension()
            .is_some_and(|extension| extension == "yaml" || extension == "yml");
    if is_gatus {
        return gatus::load(path, environment);
    }
    let text = std::fs::read_to_string(path).map_err(|error| LoadError::Read {
        path: shown.clone(),
        reason: error.to_string(),
    })?;
    let directory = path.parent().unwrap_or(Path::new(""));
    let ground = file::Ground {
        directory,
        may_name_files: true,
        supplied,
    };
    let mut plan =
        file::compile(&text, ground, environment).map_err(|problems| LoadError::Problems {
            path: shown,
            problems,
        })?;
    plan.files.insert(0, path.to_owned());
    Ok(plan)
}

#[cfg(test)]
mod filter_tests;
