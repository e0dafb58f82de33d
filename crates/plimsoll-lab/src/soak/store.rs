//! The folder of a soak: a folder for each scenario, so that an interrupted soak is resumed.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::outcome::ScenarioResult;
use super::plan::SoakPlan;
use super::samples;
use crate::plans::file_name;
use crate::whole_file;

const PLAN: &str = "plan.json";
const SAMPLES: &str = "samples.csv";
const VERDICT: &str = "verdict.json";

/// The plan and the program that ran the scenarios of a folder.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct StoredSoak {
    plan: String,
    duration_secs: f64,
    sample_secs: f64,
    scale: f64,
}

/// A folder that samples and verdicts are kept in.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
}

/// Why a folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// Another soak is there.
    #[error("{folder} holds another soak, or the same with another duration, interval or scale")]
    Another {
        /// The folder.
        folder: String,
    },
    /// The system refused.
    #[error("cannot write {path}")]
    Write {
        /// The file to write.
        path: String,
        /// The error of the system.
        #[source]
        cause: io::Error,
    },
}

impl Folder {
    /// Makes the folder, or finds what the same soak has left in it.
    ///
    /// - `identity`: text that differs between plans.
    pub fn open(path: &Path, identity: &str, plan: &SoakPlan) -> Result<Self, FolderError> {
        let ours = StoredSoak {
            plan: plimsoll_model::masked_text(identity).into_owned(),
            duration_secs: plan.duration.as_secs_f64(),
            sample_secs: plan.sample.as_secs_f64(),
            scale: plan.scale,
        };
        let file = path.join(PLAN);
        let is_ours = whole_file::holds(&file, &ours).map_err(|cause| FolderError::Write {
            path: file.display().to_string(),
            cause,
        })?;
        if !is_ours {
            return Err(FolderError::Another {
                folder: path.display().to_string(),
            });
        }
        Ok(Self {
            path: path.to_owned(),
        })
    }

    /// The result of a scenario that has ended, with its samples.
    pub(super) fn finished(&self, scenario: &str) -> Option<ScenarioResult> {
        let folder = self.scenario_folder(scenario);
        let json = fs::read(folder.join(VERDICT)).ok()?;
        // By way of a value: numbers keep their text in JSON, and flattened structures cannot take them so.
        let json: serde_json::Value = serde_json::from_slice(&json).ok()?;
        let mut result: ScenarioResult = serde_json::from_value(json).ok()?;
        if result.failure.is_some() {
            // The obstacle may be gone.
            return None;
        }
        let kind_of = |name: &str| {
            let judged = result.series.iter().find(|series| series.name == name);
            judged.map(|series| series.kind)
        };
        let (samples, cores) = samples::read(&folder.join(SAMPLES), kind_of).ok()?;
        result.samples = samples;
        result.cores = cores;
        Some(result)
    }

    /// Where the samples of a scenario go; those of a run that was cut off are kept beside them, as `samples.1.csv` and so on.
    pub(super) fn samples(&self, scenario: &str) -> Result<PathBuf, FolderError> {
        let folder = self.scenario_folder(scenario);
        let path = folder.join(SAMPLES);
        let made = fs::create_dir_all(&folder).and_then(|()| {
            let is_free = |path: &PathBuf| !path.exists();
            let mut beside = (1..).map(|number| folder.join(format!("samples.{number}.csv")));
            match beside.find(is_free) {
                Some(beside) if path.exists() => fs::rename(&path, beside),
                _ => Ok(()),
            }
        });
        made.map_err(|cause| FolderError::Write {
            path: path.display().to_string(),
            cause,
        })?;
        Ok(path)
    }

    /// Keeps the result of a scenario that has ended.
    pub(super) fn keep(&self, result: &ScenarioResult) -> Result<(), FolderError> {
        let json = serde_json::to_vec_pretty(result).expect("plain values");
        write(&self.scenario_folder(&result.name).join(VERDICT), &json)
    }

    fn scenario_folder(&self, scenario: &str) -> PathBuf {
        self.path.join(file_name(scenario))
    }
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), FolderError> {
    whole_file::write(path, bytes).map_err(|cause| FolderError::Write {
        path: path.display().to_string(),
        cause,
    })
}
