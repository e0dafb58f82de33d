//! Names of containers by the API of Docker, which Podman serves too (`GET /containers/NAME/json`).

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use plimsoll_client::fetch::{FetchLimits, Fetcher};
use plimsoll_client::{ConnectOptions, ConnectPlan, Connector};
use serde_json::Value;
use url::Url;

use crate::machine::Machine;

/// A runtime that is busy answers later than at once.
const LIMITS: FetchLimits = FetchLimits {
    timeout: Duration::from_secs(2),
    bytes: 4 << 20,
    redirects: 0,
};

/// The id of the container of that name, by the first runtime that knows it.
pub(super) fn id_of(machine: &Machine, name: &str) -> Option<String> {
    let sockets = ["run/docker.sock", "run/podman/podman.sock"];
    let sockets = sockets.map(|socket| machine.file(socket));
    let sockets = sockets.into_iter().filter(|socket| socket.exists());
    sockets
        .filter_map(|socket| inspect(&socket, name))
        .find_map(|container| container["Id"].as_str().map(str::to_owned))
}

/// What the runtime at `socket` knows of a container.
fn inspect(socket: &Path, name: &str) -> Option<Value> {
    let mut url = Url::parse("http://localhost/containers/").ok()?;
    url.path_segments_mut()
        .ok()?
        .pop_if_empty()
        .extend([name, "json"]);
    let socket = socket.to_owned();
    // The caller may be a task of a runtime, which must not be blocked on another one.
    let fetching = thread::spawn(move || fetch(socket, &url));
    let content = fetching.join().ok().flatten()?;
    serde_json::from_slice(&content).ok()
}

fn fetch(socket: PathBuf, url: &Url) -> Option<Vec<u8>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .ok()?;
    let plan = ConnectPlan::new(ConnectOptions {
        unix_socket: Some(socket),
        timeout: Some(LIMITS.timeout),
        ..ConnectOptions::default()
    });
    runtime.block_on(async {
        let fetcher = Fetcher::over(Connector::new(Arc::new(plan.ok()?)), LIMITS);
        let answer = fetcher.send("GET", url, Vec::new(), None).await.ok()?;
        (answer.status == 200).then_some(answer.content)
    })
}
