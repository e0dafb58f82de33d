//! `/openapi.json`: the description of the API (OpenAPI 3.1), with the schemas of `schemas/observe.v1.json`.

use std::sync::OnceLock;

use serde_json::{Value, json};

use crate::server::SCHEMA;
use crate::target_name::TargetKind;

/// The document, made once.
pub(super) fn document() -> &'static Value {
    static DOCUMENT: OnceLock<Value> = OnceLock::new();

    DOCUMENT.get_or_init(make)
}

fn make() -> Value {
    let targets: Vec<Value> = TargetKind::ALL.map(target).into();
    let mut of_stream = targets.clone();
    of_stream.push(json!({
        "name": "every",
        "in": "query",
        "description": "interval of samples: 10ms to 1m",
        "schema": {"type": "string", "default": "100ms"},
    }));
    let paths = json!({
        "/v1/targets": {"get": operation(
            "List the targets that may be sampled", &[], "Targets", "application/json",
        )},
        "/v1/sample": {"get": operation(
            "Sample targets once", &targets, "Sample", "application/json",
        )},
        "/v1/samples": {"get": operation(
            "Sample targets at an interval, as server-sent events named `sample` whose data is a Sample",
            &of_stream, "Sample", "text/event-stream",
        )},
    });
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "plimsoll observe",
            "version": "1",
            "description": "Resources that targets on this machine use. The API only reads, and serves allowed targets alone. \
                            A target without figures has a problem: a gap is never reported as zeros.",
        },
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": schemas(),
        },
    })
}

/// The definitions of the schema, which refer to one another as components do here.
fn schemas() -> Value {
    let text = SCHEMA.replace("#/$defs/", "#/components/schemas/");
    let schema: Value = serde_json::from_str(&text).expect("the schema is a file of this program");
    schema["$defs"].clone()
}

/// The parameter of a kind of target.
fn target(kind: TargetKind) -> Value {
    let description = match kind {
        TargetKind::Pid => "process with its descendants, by id or name",
        TargetKind::Unit => "unit of systemd; without a suffix a service",
        TargetKind::Cgroup => "control group by its path",
        TargetKind::Container => "container of Podman or Docker by name or id",
        TargetKind::Pod => "pod of Kubernetes by its UID or as NAMESPACE/NAME",
    };
    json!({
        "name": kind.name(),
        "in": "query",
        "description": format!("{description}; repeatable, and with other kinds up to 16 targets"),
        "schema": {"type": "array", "items": {"type": "string", "minLength": 1, "maxLength": 1024}},
        "explode": true,
    })
}

fn operation(summary: &str, parameters: &[Value], schema: &str, kind: &str) -> Value {
    let problem = |description: &str| {
        json!({
            "description": description,
            "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
        })
    };
    let content = match kind {
        // Each event has the schema, not the stream.
        "text/event-stream" => json!({"schema": {"type": "string"}}),
        _ => json!({"schema": {"$ref": format!("#/components/schemas/{schema}")}}),
    };
    let mut responses = json!({
        "200": {"description": summary, "content": {kind: content}},
        "401": problem("the token is missing or another one"),
        "429": problem("too many requests of this address, event streams or targets"),
    });
    if !parameters.is_empty() {
        responses["400"] = problem("a parameter is not valid");
        responses["403"] = problem("a target is not allowed");
    }
    if kind == "application/json" && !parameters.is_empty() {
        responses["404"] = problem("the only target is not there");
    }
    json!({"summary": summary, "parameters": parameters, "responses": responses})
}
