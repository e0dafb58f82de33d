//! `/api/v1/openapi.json`: the description of `/api/v1` (OpenAPI 3.1).

use std::sync::OnceLock;

use plimsoll_monitor::store::Scope;
use serde_json::{Map, Value, json};

use crate::answer::{Answer, json_of};

/// One route, as the document describes it.
struct Described {
    method: &'static str,
    path: &'static str,
    /// The scope that a token needs; none for open routes.
    scope: Option<Scope>,
    summary: &'static str,
    /// Parameters of the query.
    query: &'static [&'static str],
    /// The schema of the body.
    body: Option<&'static str>,
    /// The status and the schema of the response; no schema for what is not JSON.
    answer: (u16, Option<&'static str>),
}

const fn route(
    method: &'static str,
    path: &'static str,
    scope: Scope,
    summary: &'static str,
) -> Described {
    Described {
        method,
        path,
        scope: Some(scope),
        summary,
        query: &[],
        body: None,
        answer: (200, Some("Object")),
    }
}

impl Described {
    const fn open(self) -> Self {
        Self {
            scope: None,
            ..self
        }
    }

    const fn query(self, query: &'static [&'static str]) -> Self {
        Self { query, ..self }
    }

    const fn body(self, schema: &'static str) -> Self {
        Self {
            body: Some(schema),
            ..self
        }
    }

    const fn answers(self, status: u16, schema: Option<&'static str>) -> Self {
        Self {
            answer: (status, schema),
            ..self
        }
    }
}

const DEFINITIONS: &str = "/api/v1/definitions/";

/// Every route of ours below `/api/v1`.
#[rustfmt::skip]
const ROUTES: &[Described] = &[
    route("get", "/api/v1/monitors", Scope::Read, "List monitors by key")
        .query(&["limit", "cursor", "group", "health", "tag"]).answers(200, Some("Monitors")),
    route("post", "/api/v1/monitors", Scope::Write, "Add a monitor to the store")
        .body("Definition").answers(201, Some("Monitor")),
    route("post", "/api/v1/monitors/bulk", Scope::Write, "Add, replace and delete up to 10,000 monitors together")
        .body("Bulk").answers(200, Some("BulkResult")),
    route("get", "/api/v1/monitors/export", Scope::Write, "Export the monitors of the store as TOML").answers(200, None),
    route("get", "/api/v1/monitors/{key}", Scope::Read, "Get a monitor with its last result").answers(200, Some("Monitor")),
    route("put", "/api/v1/monitors/{key}", Scope::Write, "Replace the definition of a monitor")
        .body("Definition").answers(200, Some("Monitor")),
    route("patch", "/api/v1/monitors/{key}", Scope::Write, "Change the definition of a monitor by a JSON merge patch")
        .body("Definition").answers(200, Some("Monitor")),
    route("delete", "/api/v1/monitors/{key}", Scope::Write, "Remove a monitor").answers(204, None),
    route("get", "/api/v1/monitors/{key}/results", Scope::Read, "List results, the newest first").query(&["limit", "before"]),
    route("get", "/api/v1/monitors/{key}/uptime", Scope::Read, "Get the uptime within a window").query(&["window"]),
    route("get", "/api/v1/monitors/{key}/latency", Scope::Read, "Get percentiles of latency").query(&["window"]),
    route("get", "/api/v1/monitors/{key}/badge.svg", Scope::Read, "Get a badge of health or uptime").open()
        .query(&["uptime", "style", "label", "color", "labelColor"]).answers(200, None),
    route("get", "/api/v1/tags/{tag}/badge.svg", Scope::Read, "Get a badge of all monitors with a tag").open()
        .query(&["uptime", "style", "label", "color", "labelColor"]).answers(200, None),
    route("post", "/api/v1/monitors/{key}/check-now", Scope::Write, "Check at once and return the result"),
    route("post", "/api/v1/monitors/{key}/pause", Scope::Write, "Stop checks").answers(200, Some("Monitor")),
    route("post", "/api/v1/monitors/{key}/resume", Scope::Write, "Resume checks").answers(200, Some("Monitor")),
    route("post", "/api/v1/monitors/{key}/acknowledge", Scope::Write, "Acknowledge the open incident").answers(200, Some("Monitor")),
    route("post", "/api/v1/monitors/{key}/resolve", Scope::Write, "Resolve the open incident").answers(200, Some("Monitor")),
    route("post", "/api/v1/monitors/{key}/status", Scope::Write, "Set the status of a manual monitor")
        .body("ManualStatus").answers(200, Some("Monitor")),
    route("get", "/api/v1/incidents", Scope::Read, "List incidents, the newest first").query(&["state", "monitor", "limit", "cursor"]),
    route("get", "/api/v1/incidents/{id}", Scope::Read, "Get an incident with its timeline"),
    route("get", "/api/v1/notices", Scope::Read, "List notices of the outbox").query(&["limit", "state"]),
    route("get", "/api/v1/declared-incidents", Scope::Read, "List declared incidents").query(&["limit", "state", "cursor"]),
    route("post", "/api/v1/declared-incidents", Scope::Write, "Declare an incident").body("Declared").answers(201, Some("Object")),
    route("get", "/api/v1/declared-incidents/{id}", Scope::Read, "Get a declared incident"),
    route("patch", "/api/v1/declared-incidents/{id}", Scope::Write, "Update a declared incident").body("Declared"),
    route("get", "/api/v1/tokens", Scope::Admin, "List tokens"),
    route("post", "/api/v1/tokens", Scope::Admin, "Make a token").body("Token").answers(201, Some("Object")),
    route("delete", "/api/v1/tokens/{id}", Scope::Admin, "Revoke a token").answers(204, None),
    route("get", "/api/v1/audit", Scope::Admin, "Read the audit log").query(&["limit", "cursor"]),
    route("get", "/api/v1/agent/work", Scope::Read, "Fetch what an agent checks, as TOML; needs the token of the agent")
        .answers(200, None),
    route("post", "/api/v1/agent/results", Scope::Read, "Send results of an agent; needs the token of the agent").body("Report"),
    route("get", "/api/v1/on-call", Scope::Read, "List rotations: who is on call, and the shifts of 30 days"),
    route("get", "/api/v1/subscribers", Scope::Admin, "List subscribers of status pages").query(&["limit", "cursor", "page"]),
    route("delete", "/api/v1/subscribers/{id}", Scope::Admin, "Remove a subscriber").answers(204, None),
    route("get", "/api/v1/discovery", Scope::Read, "List sources of monitors, with the age of their lists"),
    route("get", "/api/v1/regions", Scope::Read, "List regions, with what their agents last sent"),
    route("get", "/api/v1/processes", Scope::Read, "List processes that share the checks, with the shards and monitors of each"),
    route("get", "/api/v1/definitions/monitor", Scope::Write, "List monitors of the store by id, as PUT takes them")
        .query(&["limit", "cursor"]).answers(200, Some("StoredDefinitions")),
    route("get", "/api/v1/definitions/monitor/{id}", Scope::Write, "Get a monitor of the store by id").answers(200, Some("StoredDefinition")),
    route("put", "/api/v1/definitions/monitor/{id}", Scope::Write, "Add a monitor with this id, or replace it")
        .body("Definition").answers(200, Some("StoredDefinition")),
    route("delete", "/api/v1/definitions/monitor/{id}", Scope::Write, "Remove a monitor of the store by id").answers(204, None),
    route("get", "/api/v1/definitions/maintenance", Scope::Write, "List maintenance windows of the store by id, as PUT takes them")
        .query(&["limit", "cursor"]).answers(200, Some("StoredDefinitions")),
    route("get", "/api/v1/definitions/maintenance/{id}", Scope::Write, "Get a maintenance window of the store by id").answers(200, Some("StoredDefinition")),
    route("put", "/api/v1/definitions/maintenance/{id}", Scope::Write, "Add a maintenance window with this id, or replace it")
        .body("MaintenanceDefinition").answers(200, Some("StoredDefinition")),
    route("delete", "/api/v1/definitions/maintenance/{id}", Scope::Write, "Remove a maintenance window of the store by id").answers(204, None),
    route("get", "/api/v1/definitions/page", Scope::Write, "List status pages of the store by id, as PUT takes them")
        .query(&["limit", "cursor"]).answers(200, Some("StoredDefinitions")),
    route("get", "/api/v1/definitions/page/{id}", Scope::Write, "Get a status page of the store by id").answers(200, Some("StoredDefinition")),
    route("put", "/api/v1/definitions/page/{id}", Scope::Write, "Add a status page with this id, or replace it")
        .body("PageDefinition").answers(200, Some("StoredDefinition")),
    route("delete", "/api/v1/definitions/page/{id}", Scope::Write, "Remove a status page of the store by id").answers(204, None),
    route("get", "/api/v1/definitions/notify", Scope::Admin, "List channels of notices of the store by id, as PUT takes them")
        .query(&["limit", "cursor"]).answers(200, Some("StoredDefinitions")),
    route("get", "/api/v1/definitions/notify/{id}", Scope::Admin, "Get a channel of notices of the store by id").answers(200, Some("StoredDefinition")),
    route("put", "/api/v1/definitions/notify/{id}", Scope::Admin, "Add a channel of notices with this id, or replace it")
        .body("ChannelDefinition").answers(200, Some("StoredDefinition")),
    route("delete", "/api/v1/definitions/notify/{id}", Scope::Admin, "Remove a channel of notices of the store by id").answers(204, None),
    route("get", "/api/v1/definitions/on_call", Scope::Admin, "List on-call rotations of the store by id, as PUT takes them")
        .query(&["limit", "cursor"]).answers(200, Some("StoredDefinitions")),
    route("get", "/api/v1/definitions/on_call/{id}", Scope::Admin, "Get an on-call rotation of the store by id").answers(200, Some("StoredDefinition")),
    route("put", "/api/v1/definitions/on_call/{id}", Scope::Admin, "Add an on-call rotation with this id, or replace it")
        .body("RotationDefinition").answers(200, Some("StoredDefinition")),
    route("delete", "/api/v1/definitions/on_call/{id}", Scope::Admin, "Remove an on-call rotation of the store by id").answers(204, None),
    route("get", "/api/v1/definitions/escalation", Scope::Admin, "List escalations of the store by id, as PUT takes them")
        .query(&["limit", "cursor"]).answers(200, Some("StoredDefinitions")),
    route("get", "/api/v1/definitions/escalation/{id}", Scope::Admin, "Get an escalation of the store by id").answers(200, Some("StoredDefinition")),
    route("put", "/api/v1/definitions/escalation/{id}", Scope::Admin, "Add an escalation with this id, or replace it")
        .body("EscalationDefinition").answers(200, Some("StoredDefinition")),
    route("delete", "/api/v1/definitions/escalation/{id}", Scope::Admin, "Remove an escalation of the store by id").answers(204, None),
    route("get", "/api/v1/openapi.json", Scope::Read, "Get this document").open(),
];

pub(super) async fn document() -> Answer {
    static DOCUMENT: OnceLock<Value> = OnceLock::new();

    Ok(json_of(DOCUMENT.get_or_init(build)))
}

fn build() -> Value {
    let mut paths = Map::new();
    for described in ROUTES {
        let item = paths
            .entry(described.path)
            .or_insert_with(|| Value::Object(Map::new()));
        item[described.method] = operation(described);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "plimsoll monitor",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Monitors, incidents and their management. Unknown keys and parameters are refused.",
        },
        "paths": paths,
        "components": {
            "schemas": schemas(),
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } },
        },
    })
}

fn operation(described: &Described) -> Value {
    let in_path = described.path.split('{').skip(1).filter_map(|part| {
        let name = part.split('}').next()?;
        Some(
            json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } }),
        )
    });
    let in_query = described
        .query
        .iter()
        .map(|name| json!({ "name": name, "in": "query", "schema": { "type": "string" } }));
    let is_replayed = matches!(
        described.path,
        "/api/v1/monitors" | "/api/v1/monitors/bulk" | "/api/v1/declared-incidents"
    );
    let replay = (is_replayed && described.method == "post").then(|| {
        json!({
            "name": "Idempotency-Key", "in": "header", "schema": { "type": "string", "maxLength": 200 },
            "description": "A repeated request with this key gets the first response. Keys are kept for a day.",
        })
    });
    let is_definition = described.path.starts_with(DEFINITIONS);
    let is_conditional = (is_definition
        || matches!(
            described.path,
            "/api/v1/monitors/{key}" | "/api/v1/declared-incidents/{id}"
        ))
        && described.method != "get";
    let condition = is_conditional.then(|| {
        json!({
            "name": "If-Match", "in": "header", "schema": { "type": "string" },
            "description": "Make the change only to this version, its ETag; otherwise 412.",
        })
    });
    let may_add = is_definition && described.method == "put";
    let absence = may_add.then(|| {
        json!({
            "name": "If-None-Match", "in": "header", "schema": { "const": "*" },
            "description": "Add it only if the id is not in use; otherwise 412.",
        })
    });
    let parameters: Vec<_> = in_path
        .chain(in_query)
        .chain(replay)
        .chain(condition)
        .chain(absence)
        .collect();
    let (status, schema) = described.answer;
    let mut success = json!({ "description": "Success" });
    if let Some(schema) = schema {
        success["content"] = content(schema);
    }
    let mut responses = json!({
        status.to_string(): success,
        "default": { "description": "An error", "content": content("Error") },
    });
    if may_add {
        responses["201"] = responses["200"].clone();
    }
    let mut operation = json!({
        "summary": described.summary,
        "operationId": id(described),
        "parameters": parameters,
        "responses": responses,
    });
    if let Some(schema) = described.body {
        operation["requestBody"] = json!({ "required": true, "content": content(schema) });
    }
    if let Some(scope) = described.scope {
        operation["security"] = json!([{ "token": [scope.name()] }]);
    }
    operation
}

fn content(schema: &str) -> Value {
    json!({ "application/json": { "schema": { "$ref": format!("#/components/schemas/{schema}") } } })
}

/// `post_monitors_key_pause`.
fn id(described: &Described) -> String {
    let rest = described.path.trim_start_matches("/api/v1/");
    let rest: String = rest
        .chars()
        .filter(|c| !matches!(c, '{' | '}'))
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
        .collect();
    format!("{}_{rest}", described.method)
}

fn schemas() -> Value {
    let file: Value = serde_json::from_str(plimsoll_monitor::config::SCHEMA).unwrap_or_default();
    let mut all = json!({
        "Object": { "type": "object" },
        "Error": {
            "type": "object",
            "required": ["error"],
            "properties": { "error": {
                "type": "object",
                "required": ["code", "message"],
                "properties": {
                    "code": { "type": "string" },
                    "message": { "type": "string" },
                    "field": { "type": "string" },
                    "problems": { "type": "array", "items": {
                        "type": "object",
                        "properties": {
                            "number": { "type": "integer" },
                            "field": { "type": "string" },
                            "message": { "type": "string" },
                        },
                    } },
                },
            } },
        },
        "Monitor": {
            "type": "object",
            "required": ["key", "name", "group", "kind", "source", "health", "paused"],
            "properties": {
                "key": { "type": "string" },
                "name": { "type": "string" },
                "group": { "type": "string" },
                "kind": { "type": "string" },
                "source": { "enum": ["file", "store"] },
                "tags": { "type": "array", "items": { "type": "string" } },
                "health": { "enum": ["pending", "up", "degraded", "down", "no_data", "paused"] },
                "paused": { "type": "boolean" },
                "id": { "type": "string" },
                "version": { "type": "integer" },
                "definition": { "$ref": "#/components/schemas/Definition" },
            },
        },
        "Monitors": {
            "type": "object",
            "required": ["monitors", "has_more", "next_cursor"],
            "properties": {
                "monitors": { "type": "array", "items": { "$ref": "#/components/schemas/Monitor" } },
                "has_more": { "type": "boolean" },
                "next_cursor": { "type": ["string", "null"] },
            },
        },
        "StoredDefinition": {
            "type": "object",
            "required": [
                "id", "kind", "key", "version", "created_at", "changed_at", "in_force", "problems", "definition",
            ],
            "properties": {
                "id": { "type": "string", "description": "Stays when the key changes" },
                "kind": { "enum": ["monitor", "maintenance", "page", "notify", "on_call", "escalation"] },
                "key": { "type": "string", "description": "The key of a monitor, the slug of a page, the name of another one" },
                "version": { "type": "integer", "description": "One more with every change; the ETag" },
                "created_at": { "type": "string", "format": "date-time" },
                "changed_at": { "type": "string", "format": "date-time" },
                "in_force": { "type": "boolean", "description": "False if it does not fit the configuration file" },
                "problems": { "type": "array", "items": { "type": "string" } },
                "definition": { "type": "object", "description": "What PUT takes, with masks in place of credentials" },
            },
        },
        "StoredDefinitions": {
            "type": "object",
            "required": ["definitions", "has_more", "next_cursor"],
            "properties": {
                "definitions": { "type": "array", "items": { "$ref": "#/components/schemas/StoredDefinition" } },
                "has_more": { "type": "boolean" },
                "next_cursor": { "type": ["string", "null"] },
            },
        },
        "Bulk": {
            "type": "object",
            "additionalProperties": false,
            "properties": {
                "put": { "type": "array", "items": { "$ref": "#/components/schemas/Definition" } },
                "delete": { "type": "array", "items": { "type": "string" } },
            },
        },
        "BulkResult": {
            "type": "object",
            "required": ["created", "updated", "deleted"],
            "properties": {
                "created": { "type": "integer" },
                "updated": { "type": "integer" },
                "deleted": { "type": "integer" },
            },
        },
        "Report": {
            "type": "object",
            "required": ["run", "version", "now", "waiting", "lost", "results"],
            "additionalProperties": false,
            "properties": {
                "run": { "type": "integer", "description": "Differs with every start of the agent" },
                "version": { "type": "string" },
                "now": { "type": "integer", "description": "Milliseconds since 1970 by the clock of the agent" },
                "waiting": { "type": "integer" },
                "lost": { "type": "integer" },
                "results": { "type": "array", "maxItems": 1000, "items": { "type": "object" } },
            },
        },
        "ManualStatus": {
            "type": "object",
            "required": ["up"],
            "additionalProperties": false,
            "properties": { "up": { "type": "boolean" }, "reason": { "type": "string", "maxLength": 200 } },
        },
        "Declared": {
            "type": "object",
            "additionalProperties": false,
            "properties": {
                "title": { "type": "string", "maxLength": 200 },
                "body": { "type": "string", "maxLength": 5000 },
                "phase": { "enum": ["investigating", "identified", "monitoring", "resolved", "postmortem"] },
                "impact": { "enum": ["none", "minor", "major", "critical"] },
                "counts_as_downtime": { "type": "boolean" },
                "started_at": { "type": "string", "format": "date-time" },
                "monitors": { "type": "array", "items": { "type": "string" } },
            },
        },
        "Token": {
            "type": "object",
            "required": ["name"],
            "additionalProperties": false,
            "properties": {
                "name": { "type": "string", "maxLength": 100 },
                "scope": { "enum": ["read", "write", "admin"] },
                "expires_at": { "type": "string", "format": "date-time" },
            },
        },
    });
    // The same keys as in the tables of the file, from its schema.
    for (table, name) in [
        ("monitor", "Definition"),
        ("maintenance", "MaintenanceDefinition"),
        ("page", "PageDefinition"),
        ("notify", "ChannelDefinition"),
        ("on_call", "RotationDefinition"),
        ("escalation", "EscalationDefinition"),
    ] {
        all[name] = relocated(&file["properties"][table]["items"]);
    }
    if let Some(shared) = file["$defs"].as_object() {
        for (name, schema) in shared {
            all[format!("file_{name}")] = relocated(schema);
        }
    }
    all
}

/// References into the file's schema lead to the document's.
fn relocated(schema: &Value) -> Value {
    match schema {
        Value::Object(entries) => entries
            .iter()
            .map(|(key, value)| {
                let reference = value
                    .as_str()
                    .filter(|_| key == "$ref")
                    .and_then(|text| text.strip_prefix("#/$defs/"));
                let value = match reference {
                    Some(name) => format!("#/components/schemas/file_{name}").into(),
                    None => relocated(value),
                };
                (key.clone(), value)
            })
            .collect(),
        Value::Array(all) => all.iter().map(relocated).collect(),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The router and the document have the same routes: each route of the document is called, and each path of the
    /// router's source is in the document.
    #[test]
    fn references_lead_somewhere() {
        let document = build();
        let text = document.to_string();
        for reference in text.split("\"$ref\":\"#").skip(1) {
            let pointer = reference.split('"').next().unwrap_or_default();
            assert!(document.pointer(pointer).is_some(), "{pointer}");
        }
    }

    #[test]
    fn names_of_operations_are_unique() {
        let ids: std::collections::HashSet<_> = ROUTES.iter().map(id).collect();
        assert_eq!(ids.len(), ROUTES.len());
    }
}
