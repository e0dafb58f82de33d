//! Profiles handed to a store of profiles.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use plimsoll_client::{ConnectPlan, Endpoint};
use plimsoll_lab::profile::{Profile, pprof, store};
use plimsoll_model::GrpcStatus;

use crate::commands::load;
use crate::flags::{Problems, RequestParts, connection_variables};
use crate::grpc::{self, Caller};
use crate::problem::{Failed, Problem};

/// How long connecting may take.
const TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Store")]
pub(super) struct StoreArgs {
    /// Hand the profile to the store of profiles at this URL, as Parca takes them, over gRPC
    #[arg(long, value_name = "URL")]
    pub(super) push: Option<String>,

    /// Label of the series; repeatable. Without `__name__` it is called `process_cpu`
    #[arg(long, value_name = "NAME=VALUE", requires = "push")]
    push_label: Vec<String>,

    /// Header field of what is sent to --push, such as `authorization: Bearer …`; repeatable
    #[arg(long, value_name = "NAME: VALUE", requires = "push")]
    push_header: Vec<String>,
}

/// A store, and the labels of a series in it.
#[derive(Debug)]
pub(super) struct Store {
    url: String,
    endpoint: Endpoint,
    connect: Arc<ConnectPlan>,
    parts: RequestParts,
    labels: Vec<(String, String)>,
}

impl StoreArgs {
    /// The store of the flags, if one is given.
    pub(super) fn compile(&self, problems: &mut Problems) -> Option<Store> {
        let mut labels = Vec::new();
        for text in &self.push_label {
            match text.split_once('=') {
                Some((name, value)) if is_label(name) => {
                    labels.push((name.to_owned(), value.to_owned()));
                }
                _ => problems.add(
                    "--push-label",
                    format!("`{text}` is not of the form NAME=VALUE, with a name of letters, digits and _"),
                ),
            }
        }
        let fields = problems.header_fields("--push-header", &self.push_header);
        let url = self.push.clone()?;
        let of_method = problems.value("--push", grpc::url(&url, &store::METHOD))?;
        let endpoint = problems.value("--push", Endpoint::parse(&of_method))?;
        let mut connection = load::without_flags().connection;
        connection.http2 = true;
        let endpoints = std::slice::from_ref(&endpoint);
        let connect = connection.plan(endpoints, TIMEOUT, &connection_variables(), problems)?;
        Some(Store {
            url,
            endpoint,
            connect: Arc::new(connect),
            parts: RequestParts::post(fields.into_iter(), Vec::new()),
            labels,
        })
    }
}

/// As Prometheus has them.
fn is_label(name: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphabetic() || byte == b'_';
    name.bytes().next().is_some_and(is_letter)
        && name
            .bytes()
            .all(|byte| is_letter(byte) || byte.is_ascii_digit())
}

impl Store {
    /// Hands over a profile that was begun then.
    pub(super) fn keep_profile(&self, profile: &Profile, begun: SystemTime) -> Result<(), Failed> {
        self.handed(profile, begun).map_err(|error| {
            let message = format!("{} has not taken the profile: {error}", self.url);
            Problem::with("--push", message).could_not_run()
        })
    }

    fn handed(&self, profile: &Profile, begun: SystemTime) -> Result<(), String> {
        let encoded = pprof::encode(profile, begun).map_err(|error| error.to_string())?;
        let message = store::write_raw(&self.labels, encoded);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| error.to_string())?;
        let reply = runtime.block_on(async {
            let connecting = Caller::connect(&self.connect, &self.endpoint, &self.url, &self.parts);
            connecting.await?.call(store::METHOD, &message).await
        })?;
        match reply.status {
            GrpcStatus::OK => Ok(()),
            status => {
                let message = reply.message.map(|message| format!(": {message}"));
                Err(format!("{status}{}", message.unwrap_or_default()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::is_label;

    #[test]
    fn labels_are_named_as_in_prometheus() {
        assert!(is_label("__name__") && is_label("job2"));
        assert!(!is_label("") && !is_label("2job") && !is_label("a-b"));
    }
}
