//! Monitors that something else lists: a URL, a folder, a container engine, Kubernetes. What it lists is part of the configuration, as if it stood in the file.
//!
//! One seam ([`MonitorSource`]) and one contract: a list replaces the last one; a source that cannot be read changes nothing, and
//! what it listed last stays, also over a restart (the store has it). A monitor that is listed no more ends as one that is
//! removed from the file.

mod docker;

mod folder;

mod http_list;

mod kubernetes;

mod labels;

mod tables;

#[cfg(test)]
mod contract;

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinSet;
use toml::Table;

use crate::config::{DiscoverPlan, DiscoverSource};
use crate::discovery::docker::Docker;
use crate::discovery::folder::Folder;
use crate::discovery::http_list::HttpList;
use crate::discovery::kubernetes::Kubernetes;
use crate::time::Timestamp;

/// After a failure a source is read again so much later, and twice as much after each further one.
const SOONEST: Duration = Duration::from_secs(1);

/// Lists that wait for the loop.
const MOST_WAITING: usize = 16;

/// Monitors of one source.
const MOST_MONITORS: usize = 20_000;

/// What a source lists.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Listed {
    /// Definitions of monitors, each as the table of a `[[monitor]]`.
    pub(crate) definitions: Vec<Table>,
    /// What is wrong with parts of the list, which are left out.
    pub(crate) problems: Vec<String>,
}

/// Why there is no list.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DiscoverError {
    /// Requests cannot be prepared.
    #[error("{0}")]
    Prepare(#[from] plimsoll_client::fetch::FetcherError),
    /// No answer came.
    #[error("{0}")]
    Fetch(#[from] plimsoll_client::fetch::FetchError),
    /// The API gives no list.
    #[error("{0}")]
    Api(#[from] plimsoll_client::json_api::ApiError),
    /// Another answer than a list came.
    #[error("it answers with status {0}")]
    Status(u16),
    /// The answer is no list of monitors.
    #[error("{0}")]
    List(#[from] tables::ListError),
    /// The folder cannot be read.
    #[error("cannot read {path}: {cause}")]
    Read {
        /// Which.
        path: String,
        /// Why.
        cause: std::io::Error,
    },
    /// There are too many.
    #[error("it lists {0} monitors; at most {MOST_MONITORS} are taken")]
    TooMany(usize),
}

/// The next list, or the error of reading it.
pub(crate) type ListFuture<'s> = Pin<Box<dyn Future<Output = Result<Listed, DiscoverError>> + 's>>;

/// Something that lists monitors.
pub(crate) trait MonitorSource {
    /// At first at once; from then on, once the list has changed or was found to be the same. It may be dropped and called again.
    fn next(&mut self) -> ListFuture<'_>;
}

/// What became of reading a source.
#[derive(Debug)]
pub(crate) struct Found {
    /// Which source; another plan of the same name is another source.
    pub(crate) plan: Arc<DiscoverPlan>,
    /// Its list, or the error of reading it.
    pub(crate) outcome: Result<Listed, String>,
}

/// The state of a source, for operators.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiscoveryView {
    /// The name.
    pub name: String,
    /// What it is: `http`, `folder`, `docker`, `kubernetes`.
    pub kind: &'static str,
    /// Where it is, without credentials.
    pub place: String,
    /// Keys of its monitors.
    pub keys: Arc<[String]>,
    /// When it last had a list.
    pub listed: Option<Timestamp>,
    /// Why it cannot be read at present.
    pub error: Option<String>,
    /// What of its list is left out, and why.
    pub problems: Vec<String>,
}

/// The tasks that read sources. They end when this is dropped.
pub(crate) struct Discovery {
    found: mpsc::Receiver<Found>,
    sender: mpsc::Sender<Found>,
    tasks: HashMap<String, (Arc<DiscoverPlan>, JoinSet<()>)>,
}

impl Default for Discovery {
    fn default() -> Self {
        let (sender, found) = mpsc::channel(MOST_WAITING);
        Self {
            found,
            sender,
            tasks: HashMap::new(),
        }
    }
}

impl Discovery {
    /// Reads these sources from now on; those that stay as they are go on.
    pub(crate) fn follow(&mut self, plans: &[Arc<DiscoverPlan>]) {
        self.tasks.retain(|_, (known, _)| plans.contains(known));
        for plan in plans {
            if self.tasks.contains_key(&plan.name) {
                continue;
            }
            let mut task = JoinSet::new();
            task.spawn_local(read(Arc::clone(plan), self.sender.clone()));
            self.tasks
                .insert(plan.name.clone(), (Arc::clone(plan), task));
        }
    }

    /// The next outcome; never without sources.
    pub(crate) async fn next(&mut self) -> Found {
        loop {
            match self.found.recv().await {
                // One that was replaced meanwhile counts no more.
                Some(found) if self.is_followed(&found.plan) => return found,
                Some(_) => {}
                None => std::future::pending().await,
            }
        }
    }

    fn is_followed(&self, plan: &Arc<DiscoverPlan>) -> bool {
        let task = self.tasks.get(&plan.name);
        task.is_some_and(|(known, _)| known == plan)
    }
}

/// Opens a source.
fn open(plan: &DiscoverPlan) -> Result<Box<dyn MonitorSource>, DiscoverError> {
    Ok(match &plan.source {
        DiscoverSource::Http(list) => Box::new(HttpList::new(list, plan.refresh)?),
        DiscoverSource::Docker(access) => Box::new(Docker::new(access, plan.refresh)?),
        DiscoverSource::Kubernetes(list) => Box::new(Kubernetes::new(list, plan.refresh)?),
        DiscoverSource::Folder(folder) => Box::new(Folder::new(folder.clone(), plan.refresh)),
    })
}

/// Reads a source for as long as there is a receiver.
async fn read(plan: Arc<DiscoverPlan>, sender: mpsc::Sender<Found>) {
    let mut source = None;
    let mut pause = SOONEST;
    loop {
        let outcome = async {
            let source = match &mut source {
                Some(source) => source,
                none => none.insert(open(&plan)?),
            };
            let listed = source.next().await?;
            match listed.definitions.len() {
                count if count > MOST_MONITORS => Err(DiscoverError::TooMany(count)),
                _ => Ok(listed),
            }
        };
        let outcome = outcome.await.map_err(|error| error.to_string());
        let has_failed = outcome.is_err();
        let found = Found {
            plan: Arc::clone(&plan),
            outcome,
        };
        if sender.send(found).await.is_err() {
            return;
        }
        if has_failed {
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(plan.refresh.max(SOONEST));
        } else {
            pause = SOONEST;
        }
    }
}

/// Definitions as the store keeps them.
pub(crate) fn stored_text(definitions: &[Table]) -> String {
    let all = definitions.iter().cloned().map(toml::Value::Table);
    let mut table = Table::new();
    table.insert("monitor".to_owned(), toml::Value::Array(all.collect()));
    table.to_string()
}

/// The definitions of such a text; none of one that is damaged.
pub(crate) fn of_stored_text(text: &str) -> Vec<Table> {
    let table = text.parse::<Table>().unwrap_or_default();
    let all = table.get("monitor").and_then(toml::Value::as_array);
    let all = all.into_iter().flatten().filter_map(toml::Value::as_table);
    all.cloned().collect()
}
