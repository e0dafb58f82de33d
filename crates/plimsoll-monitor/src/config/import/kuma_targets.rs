//! Monitors of Uptime Kuma whose targets are machines and services with protocols of their own.

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use plimsoll_model::document::toml_string;
use serde_json::Value;

use crate::config::import::{table, text_of};

/// A kind with its target and conditions, and remarks on what is other here; or why there is none.
pub(super) type Target = Result<(Vec<(&'static str, String)>, Vec<&'static str>), NoTarget>;

/// Why a monitor is not carried over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum NoTarget {
    #[error("it has no container")]
    Container,
    #[error("it has no hostname or no OID")]
    ObjectId,
    #[error("only version 2c of SNMP is supported")]
    SnmpVersion,
    #[error("it has no grpcUrl")]
    GrpcUrl,
    #[error("it has no brokers")]
    Brokers,
    #[error("it has no nodes")]
    Nodes,
}

/// - `hosts`: the container engines that the monitors name by their numbers.
pub(super) fn docker(monitor: &Value, hosts: &[Value]) -> Target {
    let of = |camel, snake| text_of(monitor, camel).or_else(|| text_of(monitor, snake));
    let Some(container) = of("dockerContainer", "docker_container") else {
        return Err(NoTarget::Container);
    };
    let number = ["dockerHost", "docker_host"];
    let number = number.iter().find_map(|key| monitor.get(*key));
    let host = hosts.iter().find(|host| host.get("id") == number);
    let daemon = host.and_then(|host| text_of(host, "dockerDaemon"));
    let Some(daemon) = daemon else {
        let remark = "its container engine is not in the file; add `host` unless that is /var/run/docker.sock";
        return Ok((vec![("docker", toml_string(container))], vec![remark]));
    };
    let daemon = match daemon.strip_prefix('/') {
        Some(_) => format!("unix://{daemon}"),
        None => daemon.to_owned(),
    };
    let pairs = [
        ("container", toml_string(container)),
        ("host", toml_string(&daemon)),
    ];
    Ok((vec![("docker", table(&pairs))], Vec::new()))
}

pub(super) fn snmp(monitor: &Value) -> Target {
    let (Some(host), Some(object)) = (text_of(monitor, "hostname"), text_of(monitor, "snmpOid"))
    else {
        return Err(NoTarget::ObjectId);
    };
    if text_of(monitor, "snmpVersion").is_some_and(|version| version != "2c") {
        return Err(NoTarget::SnmpVersion);
    }
    let port = monitor.get("port").and_then(Value::as_u64);
    let to = port.map_or(host.to_owned(), |port| format!("{host}:{port}"));
    let mut pairs = vec![("to", toml_string(&to)), ("oid", toml_string(object))];
    // The column of another type has it.
    let community = text_of(monitor, "radiusPassword");
    pairs.extend(community.map(|community| ("community", toml_string(community))));
    let mut kind = vec![("snmp", table(&pairs))];
    let mut remarks = Vec::new();
    if let Some(wanted) = text_of(monitor, "expectedValue") {
        let operator = text_of(monitor, "jsonPathOperator").unwrap_or("==");
        let is_plain = text_of(monitor, "jsonPath").is_none_or(|path| path == "$");
        let is_known = ["==", "!=", "<", "<=", ">", ">=", "contains"].contains(&operator);
        if is_plain && is_known {
            let value = match wanted.parse::<f64>() {
                Ok(_) => wanted.to_owned(),
                Err(_) if wanted.contains('\'') => format!("\"{wanted}\""),
                Err(_) => format!("'{wanted}'"),
            };
            let condition = format!("body.json($[0].value) {operator} {value}");
            kind.push(("expect", format!("[{}]", toml_string(&condition))));
        } else {
            remarks.push("its JSON query is left out; write it as `body.json(PATH)` in `expect`");
        }
    }
    Ok((kind, remarks))
}

/// A call with the keyword that its answer must have.
///
/// - `keyword`: the condition.
pub(super) fn grpc(monitor: &Value, is_tls: bool, keyword: Option<String>) -> Target {
    let Some(url) = text_of(monitor, "grpcUrl") else {
        return Err(NoTarget::GrpcUrl);
    };
    let scheme = if is_tls { "grpcs" } else { "grpc" };
    let url = toml_string(&format!("{scheme}://{url}"));
    let given = ["grpcServiceName", "grpcMethod", "grpcProtobuf"].map(|key| text_of(monitor, key));
    let [Some(service), Some(method), Some(proto)] = given else {
        let remark = "calls the health service instead of its own method";
        return Ok((vec![("grpc", url)], vec![remark]));
    };
    let mut pairs = vec![
        ("url", url),
        ("method", toml_string(&full_name(service, method, proto))),
    ];
    let body = text_of(monitor, "grpcBody");
    pairs.extend(body.map(|body| ("body", toml_string(body))));
    pairs.push(("proto", toml_string(proto)));
    let mut kind = vec![("grpc", table(&pairs))];
    kind.extend(keyword.map(|it| ("expect", format!("[{}]", toml_string(&it)))));
    let mut remarks = Vec::new();
    if text_of(monitor, "grpcMetadata").is_some_and(|text| text.trim() != "{}") {
        remarks.push("sends metadata there, and none here; write them as `headers`");
    }
    Ok((kind, remarks))
}

/// `package.Service/Method`, of names as a library for JavaScript has them: without the package, and methods in camel case.
fn full_name(service: &str, method: &str, proto: &str) -> String {
    let words: Vec<&str> = proto
        .split(|c: char| c.is_whitespace() || c == '(' || c == ';')
        .filter(|word| !word.is_empty())
        .collect();
    let after = |keyword| {
        words
            .windows(2)
            .filter(move |pair| pair[0] == keyword)
            .map(|pair| pair[1])
    };
    let service = match after("package").next() {
        Some(package) if !service.contains('.') => format!("{package}.{service}"),
        _ => service.to_owned(),
    };
    let is_method = |known: &&str| known.eq_ignore_ascii_case(method);
    let method = after("rpc").find(is_method).unwrap_or(method);
    format!("{}/{method}", service.trim_start_matches('.'))
}

/// Who signs in, as a URL has it.
pub(super) fn login(user: Option<&str>, password: Option<&str>) -> String {
    let encoded = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
    match (user.map(encoded), password.map(encoded)) {
        (Some(user), Some(password)) => format!("{user}:{password}@"),
        (Some(user), None) => format!("{user}@"),
        _ => String::new(),
    }
}

/// A list or an object, which a backup has as such and the store as a text.
fn json_of(monitor: &Value, key: &str) -> Value {
    match &monitor[key] {
        Value::String(text) => serde_json::from_str(text).unwrap_or_default(),
        value => value.clone(),
    }
}

/// A topic, whose leaders are looked at in place of a message that is written.
pub(super) fn kafka(monitor: &Value, is_tls: bool) -> Target {
    let brokers = json_of(monitor, "kafkaProducerBrokers");
    let Some(first) = brokers[0].as_str() else {
        return Err(NoTarget::Brokers);
    };
    let mut remarks = vec![
        "writes a message there; here the topic has to be there, with a leader for each partition",
    ];
    if brokers[1].is_string() {
        remarks.push("has several brokers there; here the first of them is asked");
    }
    let sasl = json_of(monitor, "kafkaProducerSaslOptions");
    let mechanism = sasl["mechanism"].as_str().unwrap_or_default();
    let mechanism = mechanism.to_ascii_uppercase();
    let is_known = ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"].contains(&&*mechanism);
    let [user, password] = ["username", "password"].map(|key| sasl[key].as_str());
    let login = login(user.filter(|_| is_known), password);
    if !is_known && !["", "NONE"].contains(&&*mechanism) {
        remarks.push("signs in there by a way that is not known here");
    }
    let scheme = if is_tls { "kafkas" } else { "kafka" };
    let mut pairs = vec![("url", toml_string(&format!("{scheme}://{login}{first}")))];
    let topic = text_of(monitor, "kafkaProducerTopic");
    pairs.extend(topic.map(|topic| ("topic", toml_string(topic))));
    if !login.is_empty() && mechanism != "PLAIN" {
        pairs.push(("mechanism", toml_string(&mechanism)));
    }
    Ok((vec![("kafka", table(&pairs))], remarks))
}

/// The API of `RabbitMQ`'s management, which reports alarms of the whole cluster.
pub(super) fn rabbitmq(monitor: &Value) -> Target {
    let nodes = text_of(monitor, "rabbitmqNodes");
    let nodes: Option<Vec<String>> = nodes.and_then(|text| serde_json::from_str(text).ok());
    let nodes = nodes.unwrap_or_default();
    let Some(first) = nodes.first() else {
        return Err(NoTarget::Nodes);
    };
    let url = format!("{}/api/health/checks/alarms", first.trim_end_matches('/'));
    let mut pairs = vec![("url", toml_string(&url))];
    let login = ["rabbitmqUsername", "rabbitmqPassword"].map(|key| text_of(monitor, key));
    if let [Some(user), Some(password)] = login {
        pairs.push(("basic", toml_string(&format!("{user}:{password}"))));
    }
    let kind = vec![
        ("http", table(&pairs)),
        ("expect", "[\"status == 200\"]".to_owned()),
    ];
    let several =
        (nodes.len() > 1).then_some("has several nodes there; here the first of them is called");
    Ok((kind, several.into_iter().collect()))
}
