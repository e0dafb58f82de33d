//! Actions of other crates in `[[route]]`.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use http::header::HeaderName;
use plimsoll_wire::tls::OnDemandCertificates;

use crate::action::MakeAction;
use crate::config::document::Value;
use crate::config::paths::NamedPaths;
use crate::counters::Counters;
use crate::engine::Serves;
use crate::middleware::{OwnFields, RequestGuard};
use crate::observe::access_log::AccessLog;
use crate::observe::admin::AdminApis;
use crate::observe::notice::Notices;
use crate::place::Maps;
use crate::worker::states::SharedStates;

/// An action that another crate brings, known by its key in a `[[route]]`.
#[derive(Debug, Clone, Copy)]
pub struct ActionKind {
    /// The key, such as `files`.
    pub key: &'static str,
    /// Compiles what it is given.
    pub compile: CompileAction,
}

/// Compiles the value of an action's key, a table if it is like the others, noting what is wrong in it; yields nothing if anything is.
pub type CompileAction = fn(Value<'_>, &Mounted<'_>) -> Option<Arc<MakeAction>>;

/// A table at the top of the file that another crate brings, such as `[upstream.NAME]`; compiled before the routes,
/// whose actions find it by [`Mounted::section`].
#[derive(Debug, Clone, Copy)]
pub struct SectionKind {
    /// The key, such as `upstream`.
    pub key: &'static str,
    /// Compiles its value.
    pub compile: CompileSection,
}

/// Compiles the value of a section, noting what is wrong in it; called with nothing if the file does not have it.
pub type CompileSection = fn(Option<Value<'_>>, &SectionContext<'_>) -> Arc<dyn Any + Send + Sync>;

/// The surroundings of compiling a section.
#[derive(Debug, Clone, Copy)]
pub struct SectionContext<'a> {
    /// Makes paths of the texts of the file.
    pub paths: &'a NamedPaths<'a>,
    /// The counters of the server.
    pub counters: &'a Arc<Counters>,
    /// Takes the admin endpoints of the section; absent if there is no admin port.
    pub apis: Option<&'a AdminApis>,
    /// Receives what happens while it is served.
    pub notices: &'a Notices,
}

/// A guard that another crate brings, known by its key in a `[[listen]]` or a `[[route]]`.
#[derive(Debug, Clone, Copy)]
pub struct GuardKind {
    /// The key, such as `jwt`.
    pub key: &'static str,
    /// Compiles what it is given.
    pub compile: CompileGuard,
}

/// Compiles the value of a guard's key, noting what is wrong in it; yields nothing if anything is.
pub type CompileGuard = fn(Value<'_>, &GuardContext<'_>) -> Option<Arc<dyn RequestGuard>>;

/// Where a guard has its place.
#[derive(Debug, Clone, Copy)]
pub struct GuardContext<'a> {
    /// Makes paths of the texts of the file.
    pub paths: &'a NamedPaths<'a>,
    /// The prefix of the route's paths; `/` if it has none, and for listeners.
    pub prefix: &'a str,
    /// The name of the route or listener in metrics and logs.
    pub name: &'a str,
    /// The same with what makes it unique.
    pub identity: &'a str,
    /// State that survives a reload.
    pub states: &'a SharedStates,
    /// The maps of the file, for texts with places.
    pub maps: &'a Maps,
    /// The counters of the server.
    pub counters: &'a Arc<Counters>,
    /// Receives notices while it is served.
    pub notices: &'a Notices,
    pub(super) sections: &'a Sections,
}

impl GuardContext<'_> {
    /// The compiled section of that key, if it is of this type.
    pub fn section<T: Any + Send + Sync>(&self, key: &str) -> Option<Arc<T>> {
        section(self.sections, key)
    }
}

/// A protocol other than HTTP for a `[[listen]]`, of another crate, by its key there.
#[derive(Debug, Clone, Copy)]
pub struct ListenKind {
    /// The key, such as `tcp`.
    pub key: &'static str,
    /// Compiles its value.
    pub compile: CompileListen,
}

/// Compiles what a listener serves, noting what is wrong; yields nothing if anything is.
pub type CompileListen = fn(Value<'_>, &Listened<'_>) -> Option<Serves>;

/// The listener that a [`ListenKind`] is compiled for.
#[derive(Debug, Clone)]
pub struct Listened<'a> {
    /// Makes paths of the texts of the file.
    pub paths: &'a NamedPaths<'a>,
    /// The address as it is written: the same in every compilation, and what figures are labelled with.
    pub identity: &'a str,
    /// State that survives a reload.
    pub states: &'a SharedStates,
    /// The counters of the server.
    pub counters: &'a Arc<Counters>,
    /// Takes a line for each connection, if there is a log.
    pub log: Option<&'a AccessLog>,
    /// Receives notices while it is served.
    pub notices: &'a Notices,
    /// The maps of the file.
    pub maps: &'a Maps,
    /// The TLS configuration, if the listener has `tls`; only for `tcp` and `quic`.
    pub tls: Option<Arc<rustls::ServerConfig>>,
    pub(super) sections: &'a Sections,
}

impl Listened<'_> {
    /// The compiled section of that key, if it is of this type.
    pub fn section<T: Any + Send + Sync>(&self, key: &str) -> Option<Arc<T>> {
        section(self.sections, key)
    }
}

fn section<T: Any + Send + Sync>(sections: &Sections, key: &str) -> Option<Arc<T>> {
    Arc::clone(sections.get(key)?).downcast().ok()
}

/// The compiled sections of a file, by key.
pub(super) type Sections = HashMap<&'static str, Arc<dyn Any + Send + Sync>>;

/// Where an action has its place.
#[derive(Debug, Clone, Copy)]
pub struct Mounted<'a> {
    /// Makes paths of the texts of the file.
    pub paths: &'a NamedPaths<'a>,
    /// The prefix of the route's paths; `/` if it has none.
    pub prefix: &'a str,
    /// The methods that the route takes; empty for any.
    pub methods: &'a [String],
    /// The name of the route in metrics and logs, or else its path.
    pub name: &'a str,
    /// The same with what makes it unique: the same in every compilation, and no other route has it. State that
    /// is to survive a reload is found by it.
    pub identity: &'a str,
    /// State that survives a reload.
    pub states: &'a SharedStates,
    /// The maps of the file, for texts with places.
    pub maps: &'a Maps,
    /// The counters of the server.
    pub counters: &'a Arc<Counters>,
    /// Takes its admin endpoints; absent if there is no admin port.
    pub apis: Option<&'a AdminApis>,
    /// Figures can be read, so they are worth counting.
    pub is_measured: bool,
    /// Receives notices while it is served.
    pub notices: &'a Notices,
    /// Permits the host names of the action, so that their certificates are ordered on demand.
    pub on_demand: &'a OnDemandCertificates,
    pub(super) sections: &'a Sections,
    /// Other routes take over from the route by the status of a response.
    pub leads_on: bool,
    pub(super) wants: &'a Wants,
}

/// What an action wants of its route.
#[derive(Debug, Default)]
pub(super) struct Wants {
    /// Fields of requests that the action sets, removes or trusts.
    pub(super) own_fields: RefCell<OwnFields>,
    /// Its responses may name another path that is to respond.
    pub(super) hands_over: Cell<bool>,
    /// Other routes take over from its route by the status of a response.
    pub(super) leads_on: bool,
}

impl Mounted<'_> {
    /// Notes that the action sets, removes or trusts this field of requests: clients cannot send it in another spelling
    /// ([`Underscores`](crate::Underscores)).
    pub fn owns(&self, name: &HeaderName) {
        self.wants.own_fields.borrow_mut().push(name);
    }

    /// Notes that responses of the action may [hand over](crate::Response::handing_over) to another path.
    pub fn hands_over(&self) {
        self.wants.hands_over.set(true);
    }

    /// The compiled section of that key, if it is of this type.
    pub fn section<T: Any + Send + Sync>(&self, key: &str) -> Option<Arc<T>> {
        section(self.sections, key)
    }

    /// The same place for a part of the action that guards have too.
    pub fn as_guard(&self) -> GuardContext<'_> {
        GuardContext {
            paths: self.paths,
            prefix: self.prefix,
            name: self.name,
            identity: self.identity,
            states: self.states,
            maps: self.maps,
            counters: self.counters,
            notices: self.notices,
            sections: self.sections,
        }
    }
}

/// Makes the action of each worker.
#[derive(Clone)]
pub(super) struct MadeAction(pub(super) Arc<MakeAction>);

impl fmt::Debug for MadeAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Made")
    }
}
