//! `store`: a file, `memory`, or PostgreSQL with ClickHouse.

use std::path::Path;
use std::sync::Arc;

use plimsoll_model::Secret;
use plimsoll_model::document::{Table, as_text};

use crate::config::plan::{Plan, StorePlan};
use crate::notify::Settings;
use crate::store::{
    ServerOptions, ServerStore, ServerUrls, SqliteOptions, SqlitePath, SqliteStore, Store,
    StoreError, Vault,
};

/// The organisation of a file that names none.
pub const DEFAULT_ORGANISATION: &str = "default";

/// Folder of results that wait while ClickHouse is away, unless the file names one.
const SPILL: &str = "monitor.spill";

impl Plan {
    /// Opens the store, with the keys that seal its secrets.
    ///
    /// Fails if the store cannot be opened or another process has it.
    pub fn open_store(&self) -> Result<Arc<dyn Store>, StoreError> {
        let store = self.store.open()?;
        store.use_vault(Arc::new(Vault::new(&self.keys)));
        Ok(store)
    }
}

impl StorePlan {
    /// Opens the store, without the keys that seal its secrets.
    ///
    /// Fails if the store cannot be opened or another process has it.
    pub fn open(&self) -> Result<Arc<dyn Store>, StoreError> {
        let sqlite = |path| {
            let store = SqliteStore::open(&path, SqliteOptions::default())?;
            Ok(Arc::new(store) as Arc<dyn Store>)
        };
        match self {
            Self::Memory => sqlite(SqlitePath::Memory),
            Self::Sqlite(path) => sqlite(SqlitePath::File(path.clone())),
            Self::Servers(urls, options) => {
                Ok(Arc::new(ServerStore::open(urls.clone(), *options)?))
            }
        }
    }

    /// Opens the store for a few changes, also while a monitor uses it.
    ///
    /// Fails if the store cannot be opened.
    pub fn open_beside(&self) -> Result<Arc<dyn Store>, StoreError> {
        match self {
            Self::Sqlite(path) => Ok(Arc::new(SqliteStore::open_beside(path)?)),
            Self::Servers(urls, options) => {
                let urls = ServerUrls {
                    spill: None,
                    ..urls.clone()
                };
                Ok(Arc::new(ServerStore::open(urls, *options)?))
            }
            Self::Memory => self.open(),
        }
    }
}

pub(super) fn compile<'t>(
    root: &mut Table<'t>,
    directory: &Path,
    environment: &'t dyn Fn(&str) -> Option<String>,
) -> Option<StorePlan> {
    let value = root.take_value("store")?;
    if value.is_table() {
        return servers(value.table()?, directory, environment);
    }
    let text = as_text(&value)?;
    if is_postgres(text) {
        let urls = ServerUrls {
            postgres: Secret::new(text),
            clickhouse: None,
            ca: None,
            spill: Some(directory.join(SPILL)),
        };
        return Some(StorePlan::Servers(urls, ServerOptions::default()));
    }
    if text == "memory" {
        return Some(StorePlan::Memory);
    }
    let path = text.strip_prefix("sqlite:").unwrap_or(text);
    Some(StorePlan::Sqlite(directory.join(path)))
}

/// `[secrets]`: what seals secrets of the store, the present key first.
pub(super) fn keys<'t>(
    root: &mut Table<'t>,
    environment: &'t dyn Fn(&str) -> Option<String>,
) -> Vec<Secret> {
    /// Characters of a key; shorter ones can be guessed.
    const SHORTEST: usize = 32;

    let Some(table) = root.table("secrets") else {
        return Vec::new();
    };
    let mut settings = Settings::new(table, environment);
    let mut keys: Vec<_> = settings.secret("key").into_iter().collect();
    keys.extend(settings.secrets("old_keys"));
    if keys.iter().any(|key| key.expose().len() < SHORTEST) {
        let hint = "make one with `openssl rand -base64 32`, and keep it outside of the store";
        let message = format!("a key has {SHORTEST} characters or more");
        settings.table.wrong(message, Some(hint.to_owned()));
    }
    settings.table.finish();
    keys
}

/// `organisation`: whose monitors, incidents, users and tokens the file is about.
pub(super) fn organisation(root: &mut Table<'_>) -> Option<String> {
    /// Characters of a name, which stands in every lease and log.
    const MOST: usize = 64;

    let value = root.take_value("organisation")?;
    let text = as_text(&value)?;
    let is_name = text
        .bytes()
        .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
    if !is_name || text.is_empty() || text.len() > MOST {
        let message = format!(
            "`{text}` is no name of an organisation: use up to {MOST} lower-case letters, digits and hyphens"
        );
        return value.wrong(message);
    }
    Some(text.to_owned())
}

fn servers<'t>(
    table: Table<'t>,
    directory: &Path,
    environment: &'t dyn Fn(&str) -> Option<String>,
) -> Option<StorePlan> {
    let mut settings = Settings::new(table, environment);
    let postgres = url(
        &mut settings,
        "postgres",
        is_postgres,
        "`postgres://user:password@host/database`",
    );
    let is_web = |text: &str| text.starts_with("http://") || text.starts_with("https://");
    let has_clickhouse = settings.table.has("clickhouse");
    let clickhouse = has_clickhouse.then(|| {
        url(
            &mut settings,
            "clickhouse",
            is_web,
            "`http://user:password@host:8123/database`",
        )
    });
    let mut table = settings.table;
    let ca = table.text("ca").map(|path| directory.join(path));
    let spill = table.text("spill").unwrap_or_else(|| SPILL.to_owned());
    let most_spilled = table.bytes("spill_limit");
    let shares_checks = table.boolean("share_checks");
    table.finish();
    let urls = ServerUrls {
        postgres: postgres?,
        clickhouse: match clickhouse {
            Some(found) => Some(found?),
            None => None,
        },
        ca,
        spill: Some(directory.join(spill)),
    };
    let default = ServerOptions::default();
    Some(StorePlan::Servers(
        urls,
        ServerOptions {
            most_spilled: most_spilled.unwrap_or(default.most_spilled),
            shares_checks: shares_checks.unwrap_or(default.shares_checks),
            ..default
        },
    ))
}

/// A URL that must be there, and that may hold a password: a text, or `{ env = "NAME" }`.
fn url(
    settings: &mut Settings<'_>,
    key: &'static str,
    is_one: impl Fn(&str) -> bool,
    form: &str,
) -> Option<Secret> {
    if !settings.table.has(key) {
        settings.table.missing(key, &format!("write {form}"));
        return None;
    }
    let found = settings.optional_secret(key)?;
    if !is_one(found.expose()) {
        let message = format!("`{key}` must be a URL of the form {form}");
        settings.table.wrong(message, None);
        return None;
    }
    Some(found)
}

fn is_postgres(text: &str) -> bool {
    text.starts_with("postgres://") || text.starts_with("postgresql://")
}
