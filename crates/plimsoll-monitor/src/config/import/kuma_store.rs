//! The SQLite store of Uptime Kuma, `kuma.db`, of versions 1.18 to 2.5, as the JSON of its backup.
//!
//! Columns are read by the names that a table has, so that a column that another version added or lacks is no error.

use std::collections::HashMap;
use std::path::Path;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags};
use serde_json::{Map, Value, json};

/// Reads a store; the file stays as it is.
pub(super) fn read(path: &Path) -> rusqlite::Result<Value> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let store = Connection::open_with_flags(path, flags)?;
    let mut tags: HashMap<i64, Vec<Value>> = HashMap::new();
    for link in rows(&store, "monitor_tag")? {
        if let Some(monitor) = link["monitor_id"].as_i64() {
            tags.entry(monitor).or_default().push(link.into());
        }
    }
    let names = rows(&store, "tag")?;
    let name_of = |id: &Value| names.iter().find(|tag| tag["id"] == *id);
    for link in tags.values_mut().flatten() {
        let name = name_of(&link["tag_id"]).and_then(|tag| tag.get("name"));
        link["name"] = name.cloned().unwrap_or_default();
    }
    let mut channels: HashMap<i64, Map<String, Value>> = HashMap::new();
    for link in rows(&store, "monitor_notification")? {
        if let (Some(monitor), Some(channel)) = (
            link["monitor_id"].as_i64(),
            link["notification_id"].as_i64(),
        ) {
            let of_monitor = channels.entry(monitor).or_default();
            of_monitor.insert(channel.to_string(), Value::Bool(true));
        }
    }
    let mut monitors = Vec::new();
    for row in rows(&store, "monitor")? {
        let id = row["id"].as_i64().unwrap_or_default();
        let mut monitor = as_backup(row);
        monitor.insert(
            "tags".to_owned(),
            tags.remove(&id).unwrap_or_default().into(),
        );
        let of_monitor = channels.remove(&id).unwrap_or_default();
        monitor.insert("notificationIDList".to_owned(), of_monitor.into());
        monitors.push(monitor);
    }
    let notifications: Vec<_> = rows(&store, "notification")?
        .into_iter()
        .map(as_backup)
        .collect();
    let hosts: Vec<_> = rows(&store, "docker_host")?
        .into_iter()
        .map(as_backup)
        .collect();
    let count = |table| rows(&store, table).map_or(0, |rows| rows.len());
    Ok(json!({
        "monitorList": monitors,
        "notificationList": notifications,
        "dockerHosts": hosts,
        "maintenances": count("maintenance"),
        "statusPages": count("status_page"),
    }))
}

/// The rows of a table by their columns; none if there is no such table, but for that of monitors.
fn rows(store: &Connection, table: &str) -> rusqlite::Result<Vec<Map<String, Value>>> {
    let exists = store
        .prepare("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?1")?
        .exists([table])?;
    if !exists && table != "monitor" {
        return Ok(Vec::new());
    }
    let mut statement = store.prepare(&format!("SELECT * FROM {table} ORDER BY 1"))?;
    let columns: Vec<String> = statement.column_names().map(str::to_owned).collect();
    let mut found = statement.query([])?;
    let mut all = Vec::new();
    while let Some(row) = found.next()? {
        let mut values = Map::new();
        for (index, column) in columns.iter().enumerate() {
            let value = match row.get_ref(index)? {
                ValueRef::Null | ValueRef::Blob(_) => Value::Null,
                ValueRef::Integer(number) => number.into(),
                ValueRef::Real(number) => number.into(),
                ValueRef::Text(text) => String::from_utf8_lossy(text).into(),
            };
            values.insert(column.clone(), value);
        }
        all.push(values);
    }
    Ok(all)
}

/// A row with the names of the backup: most are the columns' in camel case.
fn as_backup(row: Map<String, Value>) -> Map<String, Value> {
    let renamed = row.into_iter().map(|(column, value)| {
        if column == "accepted_statuscodes_json" {
            let codes = value
                .as_str()
                .and_then(|text| serde_json::from_str(text).ok());
            return ("accepted_statuscodes".to_owned(), codes.unwrap_or_default());
        }
        let stays = ["dns_", "basic_auth_", "oauth_"]
            .iter()
            .any(|it| column.starts_with(it));
        if stays {
            return (column, value);
        }
        let mut name = String::new();
        let mut is_new_word = false;
        for character in column.chars() {
            if character == '_' {
                is_new_word = true;
            } else if std::mem::take(&mut is_new_word) {
                name.extend(character.to_uppercase());
            } else {
                name.push(character);
            }
        }
        (name, value)
    });
    renamed.collect()
}
