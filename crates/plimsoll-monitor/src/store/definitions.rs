//! Definitions of operators beside the configuration file, in its syntax.

use crate::store::StoreFuture;
use crate::store::accounts::NewAudit;
use crate::store::types::{NewMonitor, OrgId};
use crate::time::Timestamp;

/// Source of a definition: file or store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The configuration file, by which alone it is changed.
    File,
    /// The store: the API and the admin pages change it.
    Store,
}

impl Source {
    /// The name in stores and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Store => "store",
        }
    }
}

/// The kinds of definitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DefinitionKind {
    /// A monitor.
    Monitor,
    /// A maintenance window.
    Maintenance,
    /// A status page.
    Page,
    /// The number of a region, under which results are stored.
    Region,
    /// A subscriber of a page.
    Subscriber,
    /// The hashes of a user's recovery codes.
    Recovery,
    /// The user of a provider of `OpenID` Connect who signs a member in.
    Identity,
    /// A link that opens a page with a password.
    Share,
    /// A channel of notices.
    Channel,
    /// A rotation of people on call.
    OnCall,
    /// An escalation.
    Escalation,
    /// The key that signs links in notices.
    LinkKey,
    /// The monitors that a source listed last.
    Discovered,
}

impl DefinitionKind {
    /// The kinds whose text may hold credentials or addresses of people.
    pub(crate) const SECRET: [Self; 8] = [
        Self::Monitor,
        Self::Page,
        Self::Subscriber,
        Self::Identity,
        Self::Channel,
        Self::OnCall,
        Self::LinkKey,
        Self::Discovered,
    ];

    /// Whether its text may hold credentials or addresses of people.
    pub(crate) fn is_secret(self) -> bool {
        Self::SECRET.contains(&self)
    }

    /// The name in stores; the one of its table in the configuration file.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Monitor => "monitor",
            Self::Maintenance => "maintenance",
            Self::Page => "page",
            Self::Region => "region",
            Self::Subscriber => "subscriber",
            Self::Recovery => "recovery",
            Self::Identity => "identity",
            Self::Share => "share",
            Self::Channel => "notify",
            Self::OnCall => "on_call",
            Self::Escalation => "escalation",
            Self::LinkKey => "link_key",
            Self::Discovered => "discover",
        }
    }
}

/// A definition as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Definition {
    /// Unique among those of its kind and organisation, and the same for ever: chosen by the client that made it, or else
    /// the key that it had then.
    pub id: String,
    /// Unique among those of its kind and organisation.
    pub key: String,
    /// One more with every change, from 1 on.
    pub version: i64,
    /// The keys of its table, in TOML.
    pub text: String,
    /// When it was made.
    pub created: Timestamp,
    /// When it last changed.
    pub changed: Timestamp,
    /// Who changed it last.
    pub actor: Option<String>,
}

/// A definition to be added or changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PutDefinition {
    /// The id of a new one; absent for that of its key. One that is there keeps its own.
    pub id: Option<String>,
    /// Its key from now on.
    pub key: String,
    /// The key that it has now; absent if it is new.
    pub was: Option<String>,
    /// The version that the client has seen; another one is an error.
    pub version: Option<i64>,
    /// The keys of its table, in TOML.
    pub text: String,
    /// The monitor that it defines, if it is of one.
    pub monitor: Option<NewMonitor>,
}

/// Changes of definitions of one kind that are made together or not at all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DefinitionChanges {
    /// Added or changed.
    pub puts: Vec<PutDefinition>,
    /// Removed, with the version that the client has seen.
    pub removals: Vec<(String, Option<i64>)>,
    /// The response if the client repeats its request.
    pub replay: Option<Replay>,
    /// For the audit log.
    pub audit: Vec<NewAudit>,
}

/// The response to a request that may be repeated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replay {
    /// The key that the client chose.
    pub key: String,
    /// The hash of the request.
    pub request: [u8; 32],
    /// The response.
    pub answer: String,
}

/// The ids for a definition to which no client gave one, by preference: its key, unless one has it that had this key before.
pub(crate) fn ids_of(key: &str) -> impl Iterator<Item = String> + use<> {
    let key = key.to_owned();
    let others = (2_u64..).map({
        let key = key.clone();
        move |number| format!("{key}-{number}")
    });
    std::iter::once(key).chain(others)
}

/// Keeps definitions.
pub trait Definitions {
    /// All of a kind, by key.
    fn definitions(
        &self,
        org: OrgId,
        kind: DefinitionKind,
    ) -> StoreFuture<'_, Vec<(Definition, Option<i64>)>>;

    /// One of a kind.
    fn definition(
        &self,
        org: OrgId,
        kind: DefinitionKind,
        key: &str,
    ) -> StoreFuture<'_, Option<Definition>>;

    /// The one of a kind with that id.
    fn definition_by_id(
        &self,
        org: OrgId,
        kind: DefinitionKind,
        id: &str,
    ) -> StoreFuture<'_, Option<Definition>>;

    /// Makes changes, durably; the results are in the order of `puts`, with the numbers of monitors.
    ///
    /// Fails with [`StoreError::Conflict`](crate::store::StoreError::Conflict) for another version than the present one
    /// or a key or an id that is in use, and [`StoreError::NotFound`](crate::store::StoreError::NotFound) for a key that is not.
    fn change_definitions(
        &self,
        org: OrgId,
        kind: DefinitionKind,
        changes: DefinitionChanges,
        now: Timestamp,
    ) -> StoreFuture<'_, Vec<(Definition, Option<i64>)>>;

    /// The response that a key of a request was used for.
    fn replay(&self, org: OrgId, key: &str) -> StoreFuture<'_, Option<Replay>>;
}
