//! A described request, and the mock that answers it.

use std::path::{Path, PathBuf};

use plimsoll_mock::explain::Explanation;
use plimsoll_mock::{Folder, KeptRequest, MockPlan};

use super::{open, what};
use crate::flags::{BodyArgs, Problems};
use crate::problem::{Failed, Problem};

/// A request, and what would answer it.
#[derive(Debug, clap::Args)]
pub(crate) struct Asking {
    /// Path and query
    #[arg(value_name = "PATH")]
    target: String,

    /// Folder, or rule file (TOML)
    #[arg(value_name = "DIR or FILE")]
    what: Option<PathBuf>,

    /// Request method [default: GET, or POST with a body]
    #[arg(short, long, value_name = "METHOD")]
    method: Option<String>,

    /// Request header, repeatable
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE")]
    headers: Vec<String>,

    #[command(flatten)]
    body: BodyArgs,
}

impl Asking {
    /// The rules and files that respond.
    pub(super) fn plan(&self) -> Result<MockPlan, Failed> {
        let what = what(self.what.as_deref());
        if !what.is_dir() {
            return open(&what).map(|file| file.plan);
        }
        folder(&what)
    }

    /// The request.
    pub(super) fn request(&self) -> Result<KeptRequest, Failed> {
        let mut problems = Problems::default();
        let body = self.body.read(&mut problems);
        let method = self.method.as_deref();
        let method = method.unwrap_or(if body.is_some() { "POST" } else { "GET" });
        let mut request = KeptRequest::made(method, &self.target);
        let fields = problems.header_fields("-H", &self.headers);
        let fields = fields
            .into_iter()
            .map(|(name, value)| (name, value.into_bytes()));
        request.fields.extend(fields);
        request.body = body.unwrap_or_default().into();
        problems.unless_any(Some(request))
    }
}

fn folder(what: &Path) -> Result<MockPlan, Failed> {
    let folder = Folder::new(what).map_err(|error| {
        Problem::new(format!("cannot read {}: {error}", what.display())).could_not_run()
    })?;
    Ok(MockPlan::of_folder(folder))
}

/// Whether something answers.
pub(super) fn is_answered(explanation: &Explanation) -> bool {
    explanation.rule.is_some()
        || explanation.collection.is_some()
        || explanation.openapi.is_some()
        || explanation.file.is_some()
}
