//! Changes of a configuration at run time, kept apart from its file.
//!
//! Each change remembers which part of the file it takes the place of. Whenever the file is loaded it is made again, unless the
//! file has another text there now: then the file counts, and the change is refused.

mod edit;

mod text;

use std::fmt;
use std::fmt::Write as _;
use std::path::PathBuf;

use ring::digest::{SHA256, digest as sha256};
use serde_json::{Map, Value};

pub use self::edit::{Edit, EditError, RoutePlace};
pub use self::text::NotChanges;
use super::{ConfigContent, inline};

/// The changes since the file, in the order in which they are made.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Changes(Vec<Change>);

/// One change.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    place: ChangePlace,
    /// Absent to remove what is there.
    value: Option<Value>,
}

/// What a change takes the place of.
#[derive(Debug, Clone, PartialEq, Eq)]
enum ChangePlace {
    /// An upstream as a whole.
    Upstream {
        name: String,
        /// That of the file; absent if it has none.
        base: Option<Digest>,
    },
    /// The servers of an upstream, whose other settings stay those of the file.
    Servers {
        upstream: String,
        base: Option<Digest>,
    },
    /// A route.
    Route { base: Digest },
    /// No route: it comes behind this one, or before all.
    NewRoute { after: Option<Digest> },
}

/// Names a value by its content.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Digest(String);

/// A change that does not fit a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedChange {
    /// What it was about, such as `upstream api`.
    pub change: String,
    /// The reason.
    pub misfit: Misfit,
}

/// Why a change is not made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Misfit {
    /// The file has another text there than when the change was made.
    Changed,
    /// The file has no such upstream, or no such route, any more.
    Gone,
    /// The file says the same: there is nothing to do.
    Present,
    /// The configuration with the change has this error.
    Invalid(String),
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Changed => f.write_str("the file has changed it too: the file counts"),
            Self::Gone => f.write_str("the file does not have what it was made for any more"),
            Self::Present => f.write_str("the file says the same"),
            Self::Invalid(error) => write!(f, "with it the configuration has an error: {error}"),
        }
    }
}

/// What becomes of changes that are made at run time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChangesPlan {
    /// They end with the process.
    Memory,
    /// They are kept in this file.
    File(PathBuf),
}

/// Changes that are kept, at most: each is made whenever the file is loaded.
pub(crate) const MOST_CHANGES: usize = 1000;

impl Changes {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The file with the changes that fit it, these changes, and those that do not fit.
    pub fn made_on(&self, file: &ConfigContent) -> (ConfigContent, Self, Vec<RefusedChange>) {
        let mut content = file.clone();
        let (mut kept, mut refused) = (Self::default(), Vec::new());
        for change in &self.0 {
            match change.make(&mut content) {
                Ok(()) => kept.0.push(change.clone()),
                Err(misfit) => refused.push(change.refused(misfit)),
            }
        }
        (content, kept, refused)
    }

    /// Those of which `is_valid` says nothing against the configuration that they lead to, one after the other.
    ///
    /// - `error`: the error of a configuration, if it has one.
    pub fn valid_on(
        &self,
        file: &ConfigContent,
        error: impl Fn(&ConfigContent) -> Option<String>,
    ) -> (Self, Vec<RefusedChange>) {
        let mut content = file.clone();
        let (mut kept, mut refused) = (Self::default(), Vec::new());
        for change in &self.0 {
            let mut next = content.clone();
            let made = change.make(&mut next);
            match made.and_then(|()| error(&next).map_or(Ok(()), |it| Err(Misfit::Invalid(it)))) {
                Ok(()) => {
                    content = next;
                    kept.0.push(change.clone());
                }
                Err(misfit) => refused.push(change.refused(misfit)),
            }
        }
        (kept, refused)
    }

    /// What each is about and its value as TOML, secrets masked; no value if something is removed.
    pub fn shown(&self) -> Vec<(String, Option<String>)> {
        let shown = self.0.iter().map(|change| {
            let value = change.value.as_ref();
            let value = value.map(|it| inline(&ConfigContent::masked_value("", it)));
            (change.to_string(), value)
        });
        shown.collect()
    }

    /// Adds a change of what is served with the changes so far.
    ///
    /// What was changed before and is changed again is one change.
    fn add(&mut self, change: Change, file: &ConfigContent) {
        let Change { place, value } = change;
        match place {
            ChangePlace::Upstream { name, .. } => self.set_upstream(name, value, file),
            ChangePlace::Servers { upstream, .. } => self.set_servers(upstream, value, file),
            ChangePlace::Route { base } => self.set_route(base, value),
            place @ ChangePlace::NewRoute { .. } => self.0.push(Change { place, value }),
        }
    }

    fn set_upstream(&mut self, name: String, value: Option<Value>, file: &ConfigContent) {
        let known = |change: &Change| match &change.place {
            ChangePlace::Upstream { name: known, .. }
            | ChangePlace::Servers {
                upstream: known, ..
            } => *known == name,
            _ => false,
        };
        self.0.retain(|change| !known(change));
        let of_file = file.upstream(&name);
        if of_file != value.as_ref() {
            let base = of_file.map(Digest::new);
            let place = ChangePlace::Upstream { name, base };
            self.0.push(Change { place, value });
        }
    }

    fn set_servers(&mut self, upstream: String, value: Option<Value>, file: &ConfigContent) {
        for change in &mut self.0 {
            if let ChangePlace::Upstream { name, .. } = &change.place
                && *name == upstream
                && let (Some(Value::Object(table)), Some(value)) = (&mut change.value, &value)
            {
                table.insert(SERVERS.to_owned(), value.clone());
                return;
            }
        }
        self.0.retain(|change| {
            !matches!(&change.place, ChangePlace::Servers { upstream: known, .. } if *known == upstream)
        });
        let of_file = file.upstream(&upstream).and_then(|it| it.get(SERVERS));
        if of_file != value.as_ref() {
            let base = of_file.map(Digest::new);
            let place = ChangePlace::Servers { upstream, base };
            self.0.push(Change { place, value });
        }
    }

    fn set_route(&mut self, base: Digest, value: Option<Value>) {
        // The last one that made it: another one like it may have been removed before.
        let made = self.0.iter().rposition(|change| {
            let is_route = matches!(
                change.place,
                ChangePlace::Route { .. } | ChangePlace::NewRoute { .. }
            );
            is_route
                && change
                    .value
                    .as_ref()
                    .is_some_and(|it| Digest::new(it) == base)
        });
        let Some(made) = made else {
            let place = ChangePlace::Route { base };
            self.0.push(Change { place, value });
            return;
        };
        // Routes that were added behind it keep their places.
        let is_anchor = |change: &Change| matches!(&change.place, ChangePlace::NewRoute { after: Some(after) } if *after == base);
        match (self.0[made].place.clone(), value) {
            (ChangePlace::NewRoute { after }, None) => {
                for change in self.0[made..].iter_mut().filter(|it| is_anchor(it)) {
                    change.place = ChangePlace::NewRoute {
                        after: after.clone(),
                    };
                }
                self.0.remove(made);
            }
            (_, None) if self.0[made..].iter().any(is_anchor) => {
                let place = ChangePlace::Route { base };
                self.0.push(Change { place, value: None });
            }
            (_, value) => {
                let renamed = value.as_ref().map(Digest::new);
                for change in self.0[made..].iter_mut().filter(|it| is_anchor(it)) {
                    change.place = ChangePlace::NewRoute {
                        after: renamed.clone(),
                    };
                }
                self.0[made].value = value;
                // It may be as the file has it again.
                let is_undone = matches!(&self.0[made].place, ChangePlace::Route { base } if Some(base) == renamed.as_ref());
                if is_undone {
                    self.0.remove(made);
                }
            }
        }
    }
}

/// The key of an upstream's servers.
const SERVERS: &str = "servers";

/// The key of the upstreams.
const UPSTREAM: &str = "upstream";

/// The key of the routes.
const ROUTE: &str = "route";

impl Change {
    /// Makes the change.
    fn make(&self, content: &mut ConfigContent) -> Result<(), Misfit> {
        match &self.place {
            ChangePlace::Upstream { name, base } => {
                let upstreams = content.upstreams_mut().ok_or(Misfit::Gone)?;
                self.set(upstreams, name, base.as_ref())
            }
            ChangePlace::Servers { upstream, base } => {
                let upstreams = content.upstreams_mut().ok_or(Misfit::Gone)?;
                let upstream = upstreams.get_mut(upstream).and_then(Value::as_object_mut);
                self.set(upstream.ok_or(Misfit::Gone)?, SERVERS, base.as_ref())
            }
            ChangePlace::Route { base } => {
                let routes = content.routes_mut().ok_or(Misfit::Gone)?;
                let found = routes.iter().position(|route| Digest::new(route) == *base);
                match (found, &self.value) {
                    (Some(found), Some(value)) if routes[found] == *value => {
                        return Err(Misfit::Present);
                    }
                    (Some(found), Some(value)) => routes[found] = value.clone(),
                    (Some(found), None) => drop(routes.remove(found)),
                    (None, None) => return Err(Misfit::Present),
                    (None, Some(value)) if routes.contains(value) => return Err(Misfit::Present),
                    (None, Some(_)) => return Err(Misfit::Gone),
                }
                Ok(())
            }
            ChangePlace::NewRoute { after } => {
                let routes = content.routes_mut().ok_or(Misfit::Gone)?;
                let Some(value) = &self.value else {
                    return Err(Misfit::Present);
                };
                if routes.contains(value) {
                    return Err(Misfit::Present);
                }
                let index = match after {
                    None => 0,
                    Some(after) => {
                        let found = routes.iter().position(|route| Digest::new(route) == *after);
                        found.ok_or(Misfit::Gone)? + 1
                    }
                };
                routes.insert(index, value.clone());
                Ok(())
            }
        }
    }

    /// Sets or removes the value of a key that has to be as it was.
    fn set(
        &self,
        table: &mut Map<String, Value>,
        key: &str,
        base: Option<&Digest>,
    ) -> Result<(), Misfit> {
        let current = table.get(key);
        if current == self.value.as_ref() {
            return Err(Misfit::Present);
        }
        if current.map(Digest::new).as_ref() != base {
            return Err(Misfit::Changed);
        }
        match &self.value {
            Some(value) => drop(table.insert(key.to_owned(), value.clone())),
            None => drop(table.shift_remove(key)),
        }
        Ok(())
    }

    fn refused(&self, misfit: Misfit) -> RefusedChange {
        RefusedChange {
            change: self.to_string(),
            misfit,
        }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verb = match (&self.place, &self.value) {
            (_, None) => "remove",
            (ChangePlace::Upstream { base: None, .. } | ChangePlace::NewRoute { .. }, _) => "add",
            _ => "change",
        };
        match &self.place {
            ChangePlace::Upstream { name, .. } => write!(f, "{verb} upstream {name}"),
            ChangePlace::Servers { upstream, .. } => {
                write!(f, "{verb} the servers of upstream {upstream}")
            }
            ChangePlace::Route { .. } | ChangePlace::NewRoute { .. } => {
                write!(f, "{verb} a route")?;
                let mut keys = ["name", "path", "prefix", "regex", "host"].iter();
                let known = keys.find_map(|key| Some((*key, self.value.as_ref()?.get(*key)?)));
                match known {
                    Some((key, value)) => write!(f, " ({key} = {})", inline(value)),
                    None => Ok(()),
                }
            }
        }
    }
}

impl Digest {
    fn new(value: &Value) -> Self {
        let hash = sha256(&SHA256, inline(value).as_bytes());
        let mut text = String::new();
        for byte in hash.as_ref().iter().take(16) {
            write!(text, "{byte:02x}").ok();
        }
        Self(text)
    }
}

impl ConfigContent {
    /// The table of an upstream.
    pub(crate) fn upstream(&self, name: &str) -> Option<&Value> {
        self.0.get(UPSTREAM)?.get(name)
    }

    /// The routes in their order.
    pub(crate) fn routes(&self) -> &[Value] {
        let routes = self.0.get(ROUTE).and_then(Value::as_array);
        routes.map_or(&[], Vec::as_slice)
    }

    fn upstreams_mut(&mut self) -> Option<&mut Map<String, Value>> {
        let upstreams = self
            .0
            .entry(UPSTREAM)
            .or_insert_with(|| Value::Object(Map::new()));
        upstreams.as_object_mut()
    }

    fn routes_mut(&mut self) -> Option<&mut Vec<Value>> {
        let routes = self
            .0
            .entry(ROUTE)
            .or_insert_with(|| Value::Array(Vec::new()));
        routes.as_array_mut()
    }
}

#[cfg(test)]
mod tests;
