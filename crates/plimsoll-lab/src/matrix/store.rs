//! The folder of a matrix: a folder for each finished trial, so that an interrupted run goes on.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use plimsoll_model::masked_text;
use serde::{Deserialize, Serialize};

use super::order::Turn;
use super::plan::MatrixPlan;
use super::trial::{Finale, Outcome, Trial};
use crate::plans::file_name;
use crate::whole_file;

const PLAN: &str = "plan.json";
const TRIALS: &str = "trials";
const TRIAL: &str = "trial.json";

/// The plan and the program that made the trials of a folder.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct StoredMatrix {
    plan: String,
    seed: u64,
    repeats: u32,
    warm_up_us: u64,
    window_us: u64,
}

/// A folder that trials are kept in.
#[derive(Debug)]
pub struct Store {
    folder: PathBuf,
}

/// Why a folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Other trials are there.
    #[error(
        "{folder} holds the trials of another plan, or of the same with another seed or length"
    )]
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

impl Store {
    /// Makes the folder, or finds what the same plan has left in it.
    ///
    /// - `text`: the plan's file.
    pub fn open(folder: &Path, text: &str, plan: &MatrixPlan) -> Result<Self, StoreError> {
        let micros =
            |time: std::time::Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let ours = StoredMatrix {
            plan: masked_text(text).into_owned(),
            seed: plan.seed,
            repeats: plan.repeats,
            warm_up_us: micros(plan.warm_up),
            window_us: micros(plan.window),
        };
        let path = folder.join(PLAN);
        let is_ours = whole_file::holds(&path, &ours).map_err(|cause| StoreError::Write {
            path: path.display().to_string(),
            cause,
        })?;
        if !is_ours {
            return Err(StoreError::Another {
                folder: folder.display().to_string(),
            });
        }
        Ok(Self {
            folder: folder.to_owned(),
        })
    }

    /// The trial of `turn`, if it is finished. One that failed is not: what stood in its way may be
    /// gone.
    pub(super) fn finished(&self, plan: &MatrixPlan, turn: Turn) -> Option<Trial> {
        let json = fs::read(self.place(plan, turn).join(TRIAL)).ok()?;
        // By way of a value: numbers keep their text in JSON, and tagged enums cannot take them so.
        let json: serde_json::Value = serde_json::from_slice(&json).ok()?;
        let trial: Trial = serde_json::from_value(json).ok()?;
        (!matches!(trial.outcome, Outcome::Failed { .. })).then_some(trial)
    }

    /// Keeps a trial, and what its tool printed beside it.
    pub(super) fn keep(
        &self,
        plan: &MatrixPlan,
        turn: Turn,
        finale: &Finale,
    ) -> Result<(), StoreError> {
        let place = self.place(plan, turn);
        let output = finale.output.as_bytes();
        let name = if output.starts_with(b"{") {
            "load.json"
        } else {
            "load.txt"
        };
        if !output.is_empty() {
            write(&place.join(name), output)?;
        }
        let json = serde_json::to_vec_pretty(&finale.trial).expect("plain values");
        // Last, since this file says that the trial is whole.
        write(&place.join(TRIAL), &json)
    }

    fn place(&self, plan: &MatrixPlan, turn: Turn) -> PathBuf {
        let cell = turn.cell;
        let names = [
            file_name(&plan.targets[cell.target].name),
            file_name(&plan.loads[cell.load].name),
            file_name(&plan.sizes[cell.size].name),
            (turn.round + 1).to_string(),
        ];
        // No name has this character.
        self.folder.join(TRIALS).join(names.join("~"))
    }
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    whole_file::write(path, bytes).map_err(|cause| StoreError::Write {
        path: path.display().to_string(),
        cause,
    })
}
