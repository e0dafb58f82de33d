//! Users, their sessions, tokens of the API, and the audit log.

use plimsoll_model::Secret;

use crate::store::StoreFuture;
use crate::store::types::OrgId;
use crate::time::Timestamp;

/// The number of a user, unique in a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UserId(pub i64);

/// The roles of users; each includes the ones before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// May look.
    Viewer,
    /// May change monitors, incidents, maintenance and pages.
    Editor,
    /// May manage tokens and members below an owner.
    Admin,
    /// May do everything. There is always one.
    Owner,
}

impl Role {
    /// Every role, from the least to the most.
    pub const ALL: [Self; 4] = [Self::Viewer, Self::Editor, Self::Admin, Self::Owner];

    /// The name in stores and forms.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Editor => "editor",
            Self::Admin => "admin",
            Self::Owner => "owner",
        }
    }

    /// The role of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.name() == name)
    }
}

/// The scopes of API tokens; each includes the ones before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// Reads.
    Read,
    /// Changes monitors and incidents.
    Write,
    /// Manages tokens and reads the audit log.
    Admin,
}

impl Scope {
    /// Every scope, from the least to the most.
    pub const ALL: [Self; 3] = [Self::Read, Self::Write, Self::Admin];

    /// The name in stores, files and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Admin => "admin",
        }
    }

    /// The scope of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scope| scope.name() == name)
    }
}

/// A user.
#[derive(Debug, Clone)]
pub struct User {
    /// Its number.
    pub id: UserId,
    /// The name for signing in, or an e-mail address.
    pub name: String,
    /// The role.
    pub role: Role,
    /// The hash of the password, as a PHC string.
    pub password: Secret,
    /// Whether the password must be changed before anything else, since another person has seen it.
    pub must_change: bool,
    /// The secret of one-time codes (RFC 6238), if they are required.
    pub totp: Option<TotpSecret>,
    /// When the user was added.
    pub created: Timestamp,
    /// When the user last signed in.
    pub seen: Option<Timestamp>,
}

/// The secret of one-time codes.
#[derive(Clone, PartialEq, Eq)]
pub struct TotpSecret(pub Vec<u8>);

impl std::fmt::Debug for TotpSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TotpSecret")
    }
}

/// A change of a user; what is absent stays.
#[derive(Debug, Clone, Default)]
pub struct UserEdit {
    /// The role.
    pub role: Option<Role>,
    /// The hash of a new password, and whether it must be changed again.
    pub password: Option<(String, bool)>,
    /// The secret of one-time codes, or none.
    pub totp: Option<Option<TotpSecret>>,
    /// The date of a sign-in.
    pub seen: Option<Timestamp>,
    /// Whether all sessions of the user end.
    pub ends_sessions: bool,
}

/// A session to be opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSession {
    /// Of which user.
    pub user: UserId,
    /// The SHA-256 of its cookie.
    pub hash: [u8; 32],
    /// Until when.
    pub until: Timestamp,
    /// Where the user signed in.
    pub address: String,
    /// With which browser.
    pub agent: String,
}

/// A session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// Its number.
    pub id: i64,
    /// Of which user.
    pub user: UserId,
    /// When the user signed in.
    pub created: Timestamp,
    /// When it was last used, to the minute.
    pub seen: Timestamp,
    /// Until when.
    pub until: Timestamp,
    /// Where the user signed in.
    pub address: String,
    /// With which browser.
    pub agent: String,
}

/// The date of the last use of a session is written this often.
const SEEN_EVERY: i64 = 60_000;

impl Session {
    /// Whether the date of the last use is old enough to be written again.
    pub(crate) fn is_to_touch(&self, now: Timestamp) -> bool {
        now.0 - self.seen.0 >= SEEN_EVERY
    }
}

/// A token to be added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewToken {
    /// Who or what uses it.
    pub name: String,
    /// The SHA-256 of the token.
    pub hash: [u8; 32],
    /// The scope.
    pub scope: Scope,
    /// Until when, if not for ever.
    pub until: Option<Timestamp>,
    /// Who made it.
    pub creator: String,
}

/// A token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredToken {
    /// Its number.
    pub id: i64,
    /// The token.
    pub token: NewToken,
    /// When it was made.
    pub created: Timestamp,
    /// When it was revoked.
    pub revoked: Option<Timestamp>,
}

impl StoredToken {
    /// Whether it may be used.
    pub fn is_valid(&self, now: Timestamp) -> bool {
        self.revoked.is_none() && self.token.until.is_none_or(|until| now < until)
    }
}

/// A line of the audit log to be written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NewAudit {
    /// Who did it.
    pub actor: String,
    /// From which address.
    pub address: String,
    /// The action, such as `monitor.update`.
    pub action: String,
    /// To what.
    pub object: String,
    /// More about it.
    pub detail: Option<String>,
}

/// A line of the audit log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditEntry {
    /// Its number; later ones have higher numbers.
    pub id: i64,
    /// When.
    pub at: Timestamp,
    /// The entry.
    pub entry: NewAudit,
}

/// Keeps users, sessions, tokens and the audit log.
pub trait Accounts {
    /// Adds a user; fails with [`StoreError::Conflict`](crate::store::StoreError::Conflict) if the name is in use.
    ///
    /// - `only_first`: fails the same way if there is any user.
    fn add_user(
        &self,
        org: OrgId,
        name: &str,
        role: Role,
        password: (String, bool),
        only_first: bool,
        now: Timestamp,
    ) -> StoreFuture<'_, UserId>;

    /// All users, by name.
    fn users(&self, org: OrgId) -> StoreFuture<'_, Vec<User>>;

    /// Changes a user; false if there is none. The role of the last owner stays: that fails with
    /// [`StoreError::Conflict`](crate::store::StoreError::Conflict).
    fn edit_user(&self, org: OrgId, user: UserId, edit: UserEdit) -> StoreFuture<'_, bool>;

    /// Removes a user with all sessions; the last owner stays, as with [`edit_user`](Self::edit_user).
    fn remove_user(&self, org: OrgId, user: UserId) -> StoreFuture<'_, bool>;

    /// Uses up a time step of one-time codes; false if it, or a later one, was used before.
    fn use_totp_step(&self, org: OrgId, user: UserId, step: i64) -> StoreFuture<'_, bool>;

    /// Opens a session.
    fn open_session(&self, org: OrgId, session: NewSession, now: Timestamp) -> StoreFuture<'_, ()>;

    /// The session of a cookie that has not ended, with its user; notes that it is used.
    fn session(
        &self,
        org: OrgId,
        hash: [u8; 32],
        now: Timestamp,
    ) -> StoreFuture<'_, Option<(Session, User)>>;

    /// The sessions of a user, the newest first.
    fn sessions(&self, org: OrgId, user: UserId, now: Timestamp) -> StoreFuture<'_, Vec<Session>>;

    /// Ends one session of a user, or all but one.
    fn end_sessions(
        &self,
        org: OrgId,
        user: UserId,
        which: SessionChoice,
    ) -> StoreFuture<'_, usize>;

    /// Adds a token.
    fn add_token(&self, org: OrgId, token: NewToken, now: Timestamp) -> StoreFuture<'_, i64>;

    /// All tokens, the newest first.
    fn tokens(&self, org: OrgId) -> StoreFuture<'_, Vec<StoredToken>>;

    /// Revokes a token; false if there is none that is not revoked.
    fn revoke_token(&self, org: OrgId, token: i64, now: Timestamp) -> StoreFuture<'_, bool>;

    /// Writes a line of the audit log.
    fn record_audit(&self, org: OrgId, entry: NewAudit, now: Timestamp) -> StoreFuture<'_, ()>;

    /// The audit log before a line, the newest first.
    fn audit(
        &self,
        org: OrgId,
        before: Option<i64>,
        limit: usize,
    ) -> StoreFuture<'_, Vec<AuditEntry>>;
}

/// Which sessions of a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionChoice {
    /// One.
    One(i64),
    /// All but one.
    AllBut(i64),
}
