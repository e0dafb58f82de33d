//! The manifests of a run: values in, text out.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use plimsoll_fleet::{Argument, OrderFile};
use plimsoll_model::ByteSize;
use serde_json::{Map, Value, json};

use super::yaml;

/// Where the files of the command lie in the coordinator's pod.
const FILES: &str = "/load";

/// Where the keys lie in pods.
const KEYS: &str = "/keys";

/// A user of no machine, as in the Helm chart.
const USER: u32 = 65_532;

/// A run in a cluster.
#[derive(Debug)]
pub(in super::super) struct ClusterRun {
    pub(in super::super) name: String,
    pub(in super::super) image: String,
    pub(in super::super) agents: usize,
    /// Of each agent.
    pub(in super::super) cores: usize,
    /// Of each pod.
    pub(in super::super) memory: ByteSize,
    pub(in super::super) secret: String,
    pub(in super::super) labels: Vec<(String, String)>,
    pub(in super::super) annotations: Vec<(String, String)>,
    /// URL of the broker; `None` if the Secret has it.
    pub(in super::super) broker: Option<String>,
    /// For its login and its TLS.
    pub(super) broker_files: Vec<BrokerFile>,
    /// Hosts that agents may load.
    pub(in super::super) allow: Vec<String>,
    /// Of `load`, without what is about the fleet.
    pub(in super::super) command: Vec<Argument>,
    /// Its files, unless the image has them.
    pub(in super::super) files: Vec<OrderFile>,
    /// Where the image has them.
    pub(in super::super) folder: Option<String>,
}

/// A file of the Secret that both ends need for the broker.
#[derive(Debug, Clone, Copy)]
pub(super) struct BrokerFile {
    /// The flag of `load` that names it.
    pub(super) of_load: &'static str,
    /// The flag of `agent`.
    pub(super) of_agent: &'static str,
    /// Its name in the Secret.
    pub(super) key: &'static str,
}

/// All of them as YAML.
pub(super) fn text(run: &ClusterRun) -> String {
    let mut all = Vec::new();
    if !run.files.is_empty() {
        all.push(config_map(run));
    }
    all.push(agents(run));
    all.push(coordinator(run));
    yaml::documents(&all)
}

fn config_map(run: &ClusterRun) -> Value {
    let (mut data, mut binary) = (Map::new(), Map::new());
    for file in &run.files {
        match std::str::from_utf8(&file.content) {
            Ok(text) => data.insert(file.name.clone(), json!(text)),
            Err(_) => binary.insert(file.name.clone(), json!(STANDARD.encode(&file.content))),
        };
    }
    let mut map = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata(run, &format!("{}-files", run.name), "files"),
    });
    if !data.is_empty() {
        map["data"] = Value::Object(data);
    }
    if !binary.is_empty() {
        map["binaryData"] = Value::Object(binary);
    }
    map
}

fn agents(run: &ClusterRun) -> Value {
    let mut arguments = vec![
        "agent".to_owned(),
        "--once".to_owned(),
        // An Indexed Job starts a pod that was lost again under its number.
        "--name=agent-$(PLIMSOLL_INDEX)".to_owned(),
        format!("--group={}", run.name),
        format!("--cores={}", run.cores),
        format!("--trust={KEYS}/trust.pem"),
    ];
    arguments.extend(
        run.broker_files
            .iter()
            .map(|file| format!("{}={KEYS}/{}", file.of_agent, file.key)),
    );
    arguments.extend(
        run.allow
            .iter()
            .map(|host| format!("--allow={}", literal(host))),
    );
    let index = json!({
        "name": "PLIMSOLL_INDEX",
        "valueFrom": {
            "fieldRef": {
                "fieldPath": "metadata.annotations['batch.kubernetes.io/job-completion-index']"
            }
        }
    });
    let mut pod = pod(run, "agent", &arguments, &[broker(run), index], "trust.pem");
    pod["affinity"] = json!({
        "podAntiAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [{
                "weight": 100,
                "podAffinityTerm": {
                    "topologyKey": "kubernetes.io/hostname",
                    "labelSelector": { "matchLabels": own_labels(run, "agent") },
                },
            }],
        },
    });
    let cores = run.cores.to_string();
    let memory = run.memory.0.to_string();
    pod["containers"][0]["resources"] = json!({
        "requests": { "cpu": cores, "memory": memory },
        "limits": { "cpu": cores, "memory": memory },
    });
    job(
        run,
        &format!("{}-agents", run.name),
        "agent",
        &pod,
        |spec| {
            spec["completionMode"] = json!("Indexed");
            spec["completions"] = json!(run.agents);
            spec["parallelism"] = json!(run.agents);
            // Before the start a pod may move to another node; a run that has lost an agent has ended.
            spec["backoffLimit"] = json!(run.agents);
        },
    )
}

fn coordinator(run: &ClusterRun) -> Value {
    let mut arguments = vec![
        "load".to_owned(),
        "--fleet=$(PLIMSOLL_NATS)".to_owned(),
        format!("--agents={}", run.agents),
        format!("--agent-group={}", run.name),
        format!("--sign={KEYS}/key.pem"),
    ];
    arguments.extend(
        run.broker_files
            .iter()
            .map(|file| format!("{}={KEYS}/{}", file.of_load, file.key)),
    );
    let is_wait =
        |it: &Argument| matches!(it, Argument::Text(text) if text.starts_with("--agent-wait"));
    if !run.command.iter().any(is_wait) {
        // Nodes may have to be added and images fetched first.
        arguments.push("--agent-wait=10m".to_owned());
    }
    let folder = run.folder.as_deref().unwrap_or(FILES);
    let folder = folder.trim_end_matches('/');
    arguments.extend(run.command.iter().map(|argument| match argument {
        Argument::Text(text) => literal(text),
        Argument::File(name) if run.folder.is_some() => {
            // Files of an order have a number before their names.
            let own = name.split_once('-').map_or(name.as_str(), |(_, own)| own);
            literal(&format!("{folder}/{own}"))
        }
        Argument::File(name) => format!("{folder}/{name}"),
    }));
    let mut pod = pod(run, "coordinator", &arguments, &[broker(run)], "key.pem");
    // Values of `--var NAME`.
    pod["containers"][0]["envFrom"] = json!([{ "secretRef": { "name": run.secret } }]);
    pod["containers"][0]["resources"] = json!({
        "requests": { "cpu": "250m", "memory": run.memory.0.to_string() },
        "limits": { "memory": run.memory.0.to_string() },
    });
    if !run.files.is_empty() {
        push(
            &mut pod["volumes"],
            json!({
                "name": "files",
                "configMap": { "name": format!("{}-files", run.name) },
            }),
        );
        push(
            &mut pod["containers"][0]["volumeMounts"],
            json!({
                "name": "files",
                "mountPath": FILES,
                "readOnly": true,
            }),
        );
    }
    job(run, &run.name, "coordinator", &pod, |spec| {
        // The exit code is that of the run: another one would be another run.
        spec["backoffLimit"] = json!(0);
    })
}

fn push(list: &mut Value, item: Value) {
    list.as_array_mut().expect("it is a list").push(item);
}

fn job(
    run: &ClusterRun,
    name: &str,
    component: &str,
    pod: &Value,
    set: impl FnOnce(&mut Value),
) -> Value {
    let mut spec = json!({});
    set(&mut spec);
    let mut of_pod = metadata(run, name, component);
    of_pod.as_object_mut().expect("it is one").remove("name");
    spec["template"] = json!({ "metadata": of_pod, "spec": pod });
    json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata(run, name, component),
        "spec": spec,
    })
}

/// - `key`: the file of the Secret that the pod has, beside those for the broker.
fn pod(run: &ClusterRun, name: &str, arguments: &[String], env: &[Value], key: &str) -> Value {
    let keys = run.broker_files.iter().map(|file| file.key);
    let items: Vec<Value> = std::iter::once(key)
        .chain(keys)
        .map(|key| json!({ "key": key, "path": key }))
        .collect();
    json!({
        "restartPolicy": "Never",
        "automountServiceAccountToken": false,
        "enableServiceLinks": false,
        "securityContext": {
            "runAsNonRoot": true,
            "runAsUser": USER,
            "runAsGroup": USER,
            "fsGroup": USER,
            "seccompProfile": { "type": "RuntimeDefault" },
        },
        "containers": [{
            "name": name,
            "image": run.image,
            "args": arguments,
            "env": env,
            "securityContext": {
                "allowPrivilegeEscalation": false,
                "readOnlyRootFilesystem": true,
                "capabilities": { "drop": ["ALL"] },
            },
            "volumeMounts": [
                { "name": "tmp", "mountPath": "/tmp" },
                { "name": "keys", "mountPath": KEYS, "readOnly": true },
            ],
        }],
        "volumes": [
            { "name": "tmp", "emptyDir": {} },
            {
                "name": "keys",
                "secret": {
                    "secretName": run.secret,
                    "defaultMode": 0o440,
                    "items": items,
                },
            },
        ],
    })
}

fn broker(run: &ClusterRun) -> Value {
    match &run.broker {
        Some(url) => json!({ "name": "PLIMSOLL_NATS", "value": literal(url) }),
        None => json!({
            "name": "PLIMSOLL_NATS",
            "valueFrom": { "secretKeyRef": { "name": run.secret, "key": "nats" } },
        }),
    }
}

fn metadata(run: &ClusterRun, name: &str, component: &str) -> Value {
    let mut labels = own_labels(run, component);
    // Pods are found by their own labels, which no flag changes.
    for (key, value) in &run.labels {
        if labels.get(key).is_none() {
            labels[key.as_str()] = json!(value);
        }
    }
    let mut metadata = json!({ "name": name, "labels": labels });
    for (key, value) in &run.annotations {
        metadata["annotations"][key.as_str()] = json!(value);
    }
    metadata
}

/// Labels by which pods are found.
fn own_labels(run: &ClusterRun, component: &str) -> Value {
    json!({
        "app.kubernetes.io/name": "plimsoll",
        "app.kubernetes.io/instance": run.name,
        "app.kubernetes.io/component": component,
    })
}

/// A text in which no variable of the environment is put. Source: kubernetes.io, "Define a Command and Arguments".
fn literal(text: &str) -> String {
    text.replace("$(", "$$(")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run() -> ClusterRun {
        ClusterRun {
            name: "shop".to_owned(),
            image: "example.org/plimsoll:1".to_owned(),
            agents: 3,
            cores: 2,
            memory: ByteSize(512 << 20),
            secret: "fleet".to_owned(),
            labels: vec![("team".to_owned(), "shop".to_owned())],
            annotations: vec![("note".to_owned(), "a: b".to_owned())],
            broker: Some("nats://nats:4222".to_owned()),
            broker_files: Vec::new(),
            allow: vec!["shop.example.org".to_owned()],
            command: vec![
                Argument::Text("--rate=300".to_owned()),
                Argument::Text("--data={\"a\": \"$(x)\"}".to_owned()),
                Argument::Text("--feeder".to_owned()),
                Argument::File("0-users.csv".to_owned()),
                Argument::Text("http://shop.example.org/".to_owned()),
            ],
            files: vec![
                OrderFile {
                    name: "0-users.csv".to_owned(),
                    content: b"name\nann\n".to_vec(),
                },
                OrderFile {
                    name: "1-body.bin".to_owned(),
                    content: vec![0xff, 0xfe],
                },
            ],
            folder: None,
        }
    }

    #[test]
    fn a_run_has_agents_a_coordinator_and_its_files() {
        insta::assert_snapshot!(text(&run()));
    }

    #[test]
    fn a_broker_with_a_password_is_in_the_secret_and_files_may_be_in_the_image() {
        let run = ClusterRun {
            broker: None,
            folder: Some("/scenario/".to_owned()),
            files: Vec::new(),
            ..run()
        };
        let text = text(&run);
        assert!(text.contains("key: \"nats\""), "{text}");
        assert!(text.contains("\"/scenario/users.csv\""), "{text}");
        assert!(
            !text.contains("ConfigMap") && !text.contains("configMap"),
            "{text}"
        );
    }

    #[test]
    fn both_ends_have_what_the_broker_demands() {
        let file = |of_load, of_agent, key| BrokerFile {
            of_load,
            of_agent,
            key,
        };
        let run = ClusterRun {
            broker_files: vec![
                file("--fleet-creds", "--creds", "broker.creds"),
                file("--fleet-cacert", "--cacert", "broker-ca.pem"),
            ],
            ..run()
        };
        let text = text(&run);
        for (words, times) in [
            ("\"--creds=/keys/broker.creds\"", 1),
            ("\"--cacert=/keys/broker-ca.pem\"", 1),
            ("\"--fleet-creds=/keys/broker.creds\"", 1),
            ("\"--fleet-cacert=/keys/broker-ca.pem\"", 1),
            ("key: \"broker.creds\"", 2),
            ("key: \"trust.pem\"", 1),
            ("key: \"key.pem\"", 1),
        ] {
            assert_eq!(text.matches(words).count(), times, "{words}: {text}");
        }
    }
}
