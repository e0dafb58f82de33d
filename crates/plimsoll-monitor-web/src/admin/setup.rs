//! Changes of a store by commands, also while a monitor uses it: the first user, a forgotten password, tokens.

use std::time::Duration;

use plimsoll_model::Clock;
use plimsoll_monitor::config::{ApiToken, StorePlan};
use plimsoll_monitor::store::{
    NewAudit, NewToken, OrgId, Role, Scope, Store, StoreError, UserEdit,
};
use plimsoll_monitor::time::Timestamp;
use plimsoll_wire::SystemClock;

use crate::admin::password;
use crate::api::is_name;

pub use crate::admin::password::HashFailure;

/// Actor of these changes in the audit log.
const ACTOR: &str = "command line";

/// Why nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// The store cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// There is a user already.
    #[error("the store has users already")]
    HasUsers,
    /// There is no such user.
    #[error("the store has no user of this name")]
    NoUser,
    /// The name cannot be one.
    #[error("a name has 1 to 100 characters, without control characters")]
    Name,
    /// The password is too short or too long.
    #[error("{0}")]
    Password(String),
    /// There is no hash.
    #[error(transparent)]
    Hash(#[from] HashFailure),
    /// The system has no random numbers or threads.
    #[error("the system has no random numbers or threads")]
    System,
}

/// Makes the first user. Returns the password if one was made, which the user must change.
pub fn add_owner(
    store: &StorePlan,
    organisation: &str,
    name: &str,
    given: Option<String>,
) -> Result<Option<String>, SetupError> {
    if !is_name(name) {
        return Err(SetupError::Name);
    }
    let (password, made) = chosen(given)?;
    let hash = password::hash(&password)?;
    run(store, organisation, async |store, org, now| {
        let secret = (hash, made.is_some());
        let added = store
            .add_user(org, name, Role::Owner, secret, true, now)
            .await;
        match added {
            Ok(_) => {}
            Err(StoreError::Conflict) => return Err(SetupError::HasUsers),
            Err(error) => return Err(error.into()),
        }
        note(store, org, "member.add", name, now).await?;
        Ok(())
    })?;
    Ok(made)
}

/// Gives a user a new password, and ends one-time codes and sessions.
pub fn reset_password(
    store: &StorePlan,
    organisation: &str,
    name: &str,
    given: Option<String>,
) -> Result<Option<String>, SetupError> {
    let (password, made) = chosen(given)?;
    let hash = password::hash(&password)?;
    run(store, organisation, async |store, org, now| {
        let users = store.users(org).await?;
        let user = users.iter().find(|user| user.name == name);
        let user = user.ok_or(SetupError::NoUser)?;
        let edit = UserEdit {
            password: Some((hash, made.is_some())),
            totp: Some(None),
            ends_sessions: true,
            ..UserEdit::default()
        };
        store.edit_user(org, user.id, edit).await?;
        note(store, org, "member.reset", name, now).await?;
        Ok(())
    })?;
    Ok(made)
}

/// Adds a token to the store and returns it.
pub fn add_token(
    store: &StorePlan,
    organisation: &str,
    name: &str,
    scope: Scope,
    expires: Option<Duration>,
) -> Result<String, SetupError> {
    if !is_name(name) {
        return Err(SetupError::Name);
    }
    let token = ApiToken::generate().map_err(|_| SetupError::System)?;
    run(store, organisation, async |store, org, now| {
        let new = NewToken {
            name: name.to_owned(),
            hash: ApiToken::hash_of(&token),
            scope,
            until: expires.map(|expires| now.plus(expires)),
            creator: ACTOR.to_owned(),
        };
        store.add_token(org, new, now).await?;
        note(store, org, "token.create", name, now).await?;
        Ok(())
    })?;
    Ok(token)
}

/// The password, and the same if it was made here.
fn chosen(given: Option<String>) -> Result<(String, Option<String>), SetupError> {
    if let Some(password) = given {
        return match password::problem(&password) {
            Some(problem) => Err(SetupError::Password(problem)),
            None => Ok((password, None)),
        };
    }
    let made = password::generate()?;
    Ok((made.clone(), Some(made)))
}

async fn note(
    store: &dyn Store,
    org: OrgId,
    action: &str,
    object: &str,
    now: Timestamp,
) -> Result<(), StoreError> {
    let entry = NewAudit {
        actor: ACTOR.to_owned(),
        action: action.to_owned(),
        object: object.to_owned(),
        ..NewAudit::default()
    };
    store.record_audit(org, entry, now).await
}

fn run(
    plan: &StorePlan,
    organisation: &str,
    change: impl AsyncFnOnce(&dyn Store, OrgId, Timestamp) -> Result<(), SetupError>,
) -> Result<(), SetupError> {
    let store = plan.open_beside()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .map_err(|_| SetupError::System)?;
    runtime.block_on(async {
        let org = store.org(organisation).await?;
        change(&*store, org, Timestamp::from_system(SystemClock.wall())).await
    })
}
