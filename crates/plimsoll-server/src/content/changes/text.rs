//! The file that changes are kept in.

use serde_json::{Map, Value};

use super::{Change, ChangePlace, Changes, Digest, MOST_CHANGES};
use crate::content::{ConfigContent, NotToml};

/// A file that does not have changes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotChanges {
    /// It is not TOML.
    #[error(transparent)]
    NotToml(#[from] NotToml),
    /// It is of another version.
    #[error(
        "`version = 1` is missing: it is no file of changes, or one of another version of plimsoll"
    )]
    Version,
    /// One of them is none.
    #[error("change[{0}] has not the keys of a change")]
    Change(usize),
    /// There are more than a server keeps.
    #[error("it has more than {} changes", MOST_CHANGES)]
    Many,
}

const HEAD: &str = "# Changes of the configuration that were made while it was served. plimsoll writes this file: write what is to stay into the\n\
                    # configuration itself, and drop the changes by DELETE /config/changes of the admin port.\nversion = 1\n";

impl Changes {
    /// The text of the file. It has the secrets of the changes.
    pub fn to_text(&self) -> String {
        let changes = self.0.iter().map(|change| Value::Object(change.to_table()));
        let mut content = ConfigContent::default();
        if !self.0.is_empty() {
            content.0.insert("change".to_owned(), changes.collect());
        }
        format!(
            "{HEAD}{}{}",
            if self.0.is_empty() { "" } else { "\n" },
            content.to_toml()
        )
    }

    /// The changes of a file.
    pub fn parse(text: &str) -> Result<Self, NotChanges> {
        let content = ConfigContent::try_parse(text)?;
        if content.get("version") != Some(&Value::from(1)) {
            return Err(NotChanges::Version);
        }
        let changes: &[Value] = match content.get("change") {
            None => &[],
            Some(Value::Array(changes)) => changes.as_slice(),
            Some(_) => return Err(NotChanges::Change(1)),
        };
        if changes.len() > MOST_CHANGES {
            return Err(NotChanges::Many);
        }
        let changes = changes.iter().zip(1..).map(|(change, number)| {
            let change = change.as_object().and_then(Change::from_table);
            change.ok_or(NotChanges::Change(number))
        });
        Ok(Self(changes.collect::<Result<_, _>>()?))
    }
}

impl Change {
    fn to_table(&self) -> Map<String, Value> {
        let mut entries = Map::new();
        let mut put = |key: &str, text: &str| entries.insert(key.to_owned(), Value::from(text));
        let base = match &self.place {
            ChangePlace::Upstream { name, base } => {
                put("upstream", name);
                base.as_ref()
            }
            ChangePlace::Servers { upstream, base } => {
                put("servers_of", upstream);
                base.as_ref()
            }
            ChangePlace::Route { base } => {
                put("route", &base.0);
                None
            }
            ChangePlace::NewRoute { after } => {
                put("after", after.as_ref().map_or("", |it| &it.0));
                None
            }
        };
        if let Some(base) = base {
            put("base", &base.0);
        }
        if let Some(value) = &self.value {
            entries.insert("value".to_owned(), value.clone());
        }
        entries
    }

    fn from_table(entries: &Map<String, Value>) -> Option<Self> {
        let text = |key: &str| entries.get(key).map(|it| it.as_str().map(str::to_owned));
        let base = match text("base") {
            None => None,
            Some(base) => Some(Digest(base?)),
        };
        let keys = ["upstream", "servers_of", "route", "after"].map(text);
        let place = match keys {
            [Some(name), None, None, None] => ChangePlace::Upstream { name: name?, base },
            [None, Some(name), None, None] => ChangePlace::Servers {
                upstream: name?,
                base,
            },
            [None, None, Some(route), None] => ChangePlace::Route {
                base: Digest(route?),
            },
            [None, None, None, Some(after)] => ChangePlace::NewRoute {
                after: Some(Digest(after?)).filter(|it| !it.0.is_empty()),
            },
            _ => return None,
        };
        let known = ["upstream", "servers_of", "route", "after", "base", "value"];
        let is_known = entries.keys().all(|key| known.contains(&key.as_str()));
        let value = entries.get("value").cloned();
        is_known.then_some(Self { place, value })
    }
}
