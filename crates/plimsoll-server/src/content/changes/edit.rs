//! What a client wants to be different, and the change that it comes to.

use plimsoll_model::MASK;
use serde_json::Value;

use super::{Change, ChangePlace, Changes, Digest, MOST_CHANGES, ROUTE, SERVERS, UPSTREAM};
use crate::content::ConfigContent;

/// One change, by names, numbers and URLs.
#[derive(Debug, Clone, PartialEq)]
pub enum Edit {
    /// Defines an upstream, new or in place of the one of that name.
    PutUpstream {
        /// Its name.
        name: String,
        /// Its table.
        value: Value,
    },
    /// Removes an upstream.
    RemoveUpstream {
        /// Its name.
        name: String,
    },
    /// Replaces all servers of an upstream.
    PutServers {
        /// The name of the upstream.
        upstream: String,
        /// The list.
        value: Value,
    },
    /// Adds a server.
    AddServer {
        /// The name of the upstream.
        upstream: String,
        /// A URL, or a table with `url`.
        value: Value,
    },
    /// Replaces a server.
    PutServer {
        /// The name of the upstream.
        upstream: String,
        /// The URL of the server.
        url: String,
        /// A URL, or a table with `url`.
        value: Value,
    },
    /// Removes a server.
    RemoveServer {
        /// The name of the upstream.
        upstream: String,
        /// The URL of the server.
        url: String,
    },
    /// Adds a route.
    AddRoute {
        /// Where it comes.
        place: RoutePlace,
        /// Its table.
        value: Value,
    },
    /// Replaces a route.
    PutRoute {
        /// Its name, or its number from 1.
        route: String,
        /// Its table.
        value: Value,
    },
    /// Removes a route.
    RemoveRoute {
        /// Its name, or its number from 1.
        route: String,
    },
    /// Takes all changes back.
    Undo,
}

/// The place of a new route, by the name or number of another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RoutePlace {
    /// Behind all others.
    End,
    /// Before this one.
    Before(String),
    /// Behind this one.
    After(String),
}

/// Why there is nothing to change.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// There is no such upstream, server or route.
    #[error("{0}")]
    Missing(String),
    /// It is there already, equals another one, cannot be kept beside earlier changes, or there are too many changes.
    #[error("{0}")]
    Conflict(String),
    /// A value is none of a configuration.
    #[error("{path}: {message}")]
    Invalid {
        /// The path of its key.
        path: String,
        /// What is wrong with it.
        message: &'static str,
    },
}

impl Changes {
    /// The changes with one more, and what is served with them.
    ///
    /// - `file`: the configuration without changes.
    /// - `served`: the configuration with these.
    pub fn edited(
        &self,
        edit: &Edit,
        file: &ConfigContent,
        served: &ConfigContent,
    ) -> Result<(Self, ConfigContent), EditError> {
        let Some(change) = edit.change(served)? else {
            return Ok((Self::default(), file.clone()));
        };
        let mut expected = served.clone();
        if change.make(&mut expected).is_err() {
            // It is so already.
            return Ok((self.clone(), served.clone()));
        }
        let mut joined = self.clone();
        joined.add(change.clone(), file);
        let (mut content, mut changes, _) = joined.made_on(file);
        if content != expected {
            // Routes are not where they would be: the change comes behind all others instead.
            let mut apart = self.clone();
            apart.0.push(change);
            (content, changes, _) = apart.made_on(file);
        }
        if content != expected {
            let message = "this cannot be kept beside the changes before it: write those into the file and drop them by DELETE /config/changes";
            return Err(EditError::Conflict(message.to_owned()));
        }
        if changes.0.len() > MOST_CHANGES {
            let message = format!(
                "there are {MOST_CHANGES} changes already: write them into the file and drop them by DELETE /config/changes"
            );
            return Err(EditError::Conflict(message));
        }
        Ok((changes, content))
    }
}

impl Edit {
    /// The change; nothing for all of them to be taken back.
    pub(super) fn change(&self, served: &ConfigContent) -> Result<Option<Change>, EditError> {
        let change = match self {
            Self::PutUpstream { name, value } => {
                let path = format!("{UPSTREAM}.{name}");
                let value = given(value, served.upstream(name), &path)?;
                of_upstream(name, served, Some(value))
            }
            Self::RemoveUpstream { name } => {
                upstream(served, name)?;
                of_upstream(name, served, None)
            }
            Self::PutServers {
                upstream: name,
                value,
            } => {
                let old = upstream(served, name)?.get(SERVERS);
                of_servers(name, served, given(value, old, &servers_path(name))?)
            }
            Self::AddServer {
                upstream: name,
                value,
            } => {
                let mut servers = servers(served, name)?;
                if let Some(url) = url(value)
                    && index(&servers, url).is_some()
                {
                    let message = format!("upstream `{name}` has the server `{url}` already");
                    return Err(EditError::Conflict(message));
                }
                let path = format!("{}[{}]", servers_path(name), servers.len() + 1);
                servers.push(given(value, None, &path)?);
                of_servers(name, served, Value::Array(servers))
            }
            Self::PutServer {
                upstream: name,
                url,
                value,
            } => {
                let mut servers = servers(served, name)?;
                let found = server(&servers, name, url)?;
                let path = format!("{}[{}]", servers_path(name), found + 1);
                servers[found] = given(value, Some(&servers[found]), &path)?;
                of_servers(name, served, Value::Array(servers))
            }
            Self::RemoveServer {
                upstream: name,
                url,
            } => {
                let mut servers = servers(served, name)?;
                let found = server(&servers, name, url)?;
                servers.remove(found);
                of_servers(name, served, Value::Array(servers))
            }
            Self::AddRoute { place, value } => {
                let routes = served.routes();
                let index = match place {
                    RoutePlace::End => routes.len(),
                    RoutePlace::Before(route) => route_index(routes, route)?,
                    RoutePlace::After(route) => route_index(routes, route)? + 1,
                };
                let value = given(value, None, &format!("{ROUTE}[{}]", index + 1))?;
                if routes.contains(&value) {
                    let message = "there is the same route already".to_owned();
                    return Err(EditError::Conflict(message));
                }
                let after = match index.checked_sub(1) {
                    None => None,
                    Some(before) => Some(route_digest(routes, before)?),
                };
                Change {
                    place: ChangePlace::NewRoute { after },
                    value: Some(value),
                }
            }
            Self::PutRoute { route, value } => {
                let routes = served.routes();
                let index = route_index(routes, route)?;
                let value = given(value, routes.get(index), &format!("{ROUTE}[{}]", index + 1))?;
                let mut others = routes.iter().enumerate();
                if others.any(|(other, it)| other != index && *it == value) {
                    let message = "there is the same route already".to_owned();
                    return Err(EditError::Conflict(message));
                }
                let base = route_digest(routes, index)?;
                Change {
                    place: ChangePlace::Route { base },
                    value: Some(value),
                }
            }
            Self::RemoveRoute { route } => {
                let routes = served.routes();
                let base = route_digest(routes, route_index(routes, route)?)?;
                Change {
                    place: ChangePlace::Route { base },
                    value: None,
                }
            }
            Self::Undo => return Ok(None),
        };
        Ok(Some(change))
    }
}

impl ConfigContent {
    /// The index of a route, by its name or its number from 1.
    pub(crate) fn route_index(&self, route: &str) -> Option<usize> {
        route_index(self.routes(), route).ok()
    }
}

fn of_upstream(name: &str, served: &ConfigContent, value: Option<Value>) -> Change {
    let base = served.upstream(name).map(Digest::new);
    let name = name.to_owned();
    Change {
        place: ChangePlace::Upstream { name, base },
        value,
    }
}

fn of_servers(name: &str, served: &ConfigContent, value: Value) -> Change {
    let servers = served.upstream(name).and_then(|it| it.get(SERVERS));
    Change {
        place: ChangePlace::Servers {
            upstream: name.to_owned(),
            base: servers.map(Digest::new),
        },
        value: Some(value),
    }
}

fn servers_path(name: &str) -> String {
    format!("{UPSTREAM}.{name}.{SERVERS}")
}

fn upstream<'c>(served: &'c ConfigContent, name: &str) -> Result<&'c Value, EditError> {
    let missing = || EditError::Missing(format!("there is no upstream `{name}`"));
    served.upstream(name).ok_or_else(missing)
}

/// The servers of an upstream; it may have one without a list, or a source in place of them.
fn servers(served: &ConfigContent, name: &str) -> Result<Vec<Value>, EditError> {
    Ok(match upstream(served, name)?.get(SERVERS) {
        None => Vec::new(),
        Some(Value::Array(servers)) => servers.clone(),
        Some(one) => vec![one.clone()],
    })
}

fn url(server: &Value) -> Option<&str> {
    server.as_str().or_else(|| server.get("url")?.as_str())
}

fn index(servers: &[Value], wanted: &str) -> Option<usize> {
    let plain = |url: &str| url.trim_end_matches('/').to_owned();
    let mut servers = servers.iter();
    servers.position(|it| url(it).is_some_and(|it| plain(it) == plain(wanted)))
}

fn server(servers: &[Value], name: &str, url: &str) -> Result<usize, EditError> {
    let missing = || EditError::Missing(format!("upstream `{name}` has no server `{url}`"));
    index(servers, url).ok_or_else(missing)
}

fn route_index(routes: &[Value], route: &str) -> Result<usize, EditError> {
    let is_called = |it: &Value| it.get("name").and_then(Value::as_str) == Some(route);
    if let Some(index) = routes.iter().position(is_called) {
        return Ok(index);
    }
    let number = route.parse::<usize>().ok();
    let index = number.and_then(|number| number.checked_sub(1));
    let index = index.filter(|index| *index < routes.len());
    index.ok_or_else(|| {
        let known = routes.len();
        let message =
            format!("there is no route `{route}`; give a `name`, or a number from 1 to {known}");
        EditError::Missing(message)
    })
}

/// Names a route that is like no other.
fn route_digest(routes: &[Value], index: usize) -> Result<Digest, EditError> {
    let number = index + 1;
    let missing = || EditError::Missing(format!("there is no route {number}"));
    let route = routes.get(index).ok_or_else(missing)?;
    if routes.iter().filter(|it| *it == route).count() > 1 {
        let message = format!("route {number} is there twice: give both a `name` in the file");
        return Err(EditError::Conflict(message));
    }
    Ok(Digest::new(route))
}

/// A value that a client gave, with the secrets of the present one where it has masks.
fn given(value: &Value, present: Option<&Value>, path: &str) -> Result<Value, EditError> {
    let mut value = value.clone();
    // A mask stands for what was masked at the same place.
    let key = path.rsplit('.').next().unwrap_or_default();
    let key = key.split('[').next().unwrap_or_default();
    let masked = present.map(|it| ConfigContent::masked_value(key, it));
    unmask(&mut value, present, masked.as_ref(), path)?;
    Ok(value)
}

fn unmask(
    value: &mut Value,
    present: Option<&Value>,
    masked: Option<&Value>,
    path: &str,
) -> Result<(), EditError> {
    if let (Some(present), Some(masked)) = (present, masked)
        && value == masked
    {
        *value = present.clone();
        return Ok(());
    }
    let invalid = |message| {
        let path = path.to_owned();
        Err(EditError::Invalid { path, message })
    };
    match value {
        Value::Null => invalid("null is no value: leave the key out"),
        Value::String(text) if text == MASK || text.contains(&format!("://{MASK}")) => {
            invalid("`…` stands for a secret that is not known here: give it")
        }
        Value::Object(table) => {
            for (key, value) in table {
                let present = present.and_then(|it| it.get(key));
                let masked = masked.and_then(|it| it.get(key));
                unmask(value, present, masked, &format!("{path}.{key}"))?;
            }
            Ok(())
        }
        Value::Array(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                // By its content, not by its place: a secret goes to no other item.
                let masked_items = masked.and_then(Value::as_array);
                let same = masked_items.and_then(|it| it.iter().position(|it| it == item));
                let present = same.and_then(|at| present?.get(at));
                let masked = same.and_then(|at| masked?.get(at));
                unmask(item, present, masked, &format!("{path}[{}]", index + 1))?;
            }
            Ok(())
        }
        Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
    }
}
