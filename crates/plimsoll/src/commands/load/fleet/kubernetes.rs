//! `load --fleet … --kubernetes N`: prints the manifests of a run in a cluster, for `kubectl apply -f -`.
//!
//! An Indexed Job has the agents, another Job is the coordinator, and a `ConfigMap` has the files of the command. Keys, the
//! broker's password and values of variables come from a Secret, which is not printed.

pub(crate) mod flags;

mod manifests;

mod yaml;

use std::path::PathBuf;

use plimsoll_fleet::{Argument, OrderFile};
use plimsoll_load::RunPlan;
use url::Url;

use self::manifests::{BrokerFile, ClusterRun};
use super::FleetArgs;
use super::arguments;
use crate::exit::Exit;
use crate::problem::{Failed, Problem};
use crate::terminal;

/// Bytes that a `ConfigMap` takes, with its text around them. Source: the page about them of kubernetes.io.
const MOST_FILE_BYTES: usize = 900 << 10;

/// Prints the manifests of a plain load.
pub(super) fn print(args: &super::Args, url: &str, plan: &RunPlan) -> Result<Exit, Failed> {
    let order = arguments::of_pod(args)?;
    let hosts = plan.endpoints.iter().map(|it| it.host().to_string());
    let mut hosts: Vec<_> = hosts.collect();
    hosts.sort();
    hosts.dedup();
    let run = cluster_run(&args.fleet, url, order.command, order.files, hosts)?;
    print_run(&run)
}

/// The run by its flags.
///
/// - `hosts`: that the load is sent to, unless flags name them.
pub(super) fn cluster_run(
    args: &FleetArgs,
    url: &str,
    command: Vec<Argument>,
    files: Vec<OrderFile>,
    hosts: Vec<String>,
) -> Result<ClusterRun, Failed> {
    let flags = &args.kubernetes;
    let bytes: usize = files.iter().map(|file| file.content.len()).sum();
    if bytes > MOST_FILE_BYTES && flags.kubernetes_folder.is_none() {
        let message = format!(
            "the files have {} KiB, and a ConfigMap takes {} KiB",
            bytes >> 10,
            MOST_FILE_BYTES >> 10
        );
        let hint = "put them into an image of your own (--kubernetes-image) and name its folder: --kubernetes-folder PATH";
        return Err(Problem::with("--kubernetes", message).hint(hint).usage());
    }
    let has_password = Url::parse(url).is_ok_and(|url| !url.username().is_empty());
    let allow = if flags.kubernetes_allow.is_empty() {
        hosts
    } else {
        flags.kubernetes_allow.clone()
    };
    Ok(ClusterRun {
        name: flags.kubernetes_name.clone(),
        image: flags.kubernetes_image.clone(),
        agents: flags.kubernetes.unwrap_or(1),
        cores: flags.kubernetes_cpu,
        memory: flags.kubernetes_memory,
        secret: flags.kubernetes_secret.clone(),
        labels: flags.kubernetes_label.clone(),
        annotations: flags.kubernetes_annotation.clone(),
        broker: (!has_password).then(|| url.to_owned()),
        broker_files: broker_files(args),
        allow,
        command,
        files: if flags.kubernetes_folder.is_none() {
            files
        } else {
            Vec::new()
        },
        folder: flags.kubernetes_folder.clone(),
    })
}

/// What a login at the broker, or its TLS, needs in pods: files of the same Secret, in place of those that the flags name.
fn broker_files(args: &FleetArgs) -> Vec<BrokerFile> {
    let file = |path: &Option<PathBuf>, of_load, of_agent, key| {
        path.as_ref().map(|_| BrokerFile {
            of_load,
            of_agent,
            key,
        })
    };
    [
        file(
            &args.fleet_creds,
            "--fleet-creds",
            "--creds",
            "broker.creds",
        ),
        file(
            &args.fleet_cacert,
            "--fleet-cacert",
            "--cacert",
            "broker-ca.pem",
        ),
        file(
            &args.fleet_cert,
            "--fleet-cert",
            "--cert",
            "broker-cert.pem",
        ),
        file(&args.fleet_key, "--fleet-key", "--key", "broker-key.pem"),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Prints the manifests, and on standard error what has to be there before.
pub(super) fn print_run(run: &ClusterRun) -> Result<Exit, Failed> {
    terminal::print(manifests::text(run).trim_end())
        .map_err(|error| Problem::caused_by(&error).could_not_run())?;
    let url = if run.broker.is_none() {
        " --from-literal=nats=URL"
    } else {
        ""
    };
    let keys = run
        .broker_files
        .iter()
        .flat_map(|file| [" --from-file=", file.key]);
    let broker: String = keys.collect();
    terminal::log_line(&format!(
        "needs the Secret {0}: kubectl create secret generic {0} --from-file=key.pem --from-file=trust.pem{url}{broker}",
        run.secret
    ));
    Ok(Exit::Fine)
}
