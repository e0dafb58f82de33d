//! Which member a user of the provider is.

use plimsoll_monitor::config::{ApiToken, OidcPlan};
use plimsoll_monitor::engine::Handle;
use plimsoll_monitor::manage::Actor;
use plimsoll_monitor::store::{
    Definition, DefinitionChanges, DefinitionKind, NewAudit, PutDefinition, StoreError, User,
    UserEdit, UserId,
};
use plimsoll_monitor::time::Timestamp;
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};

use crate::admin::password;
use crate::oidc::Claims;

const KIND: DefinitionKind = DefinitionKind::Identity;

/// Letters of a key that is made of a hash.
const KEY_LENGTH: usize = 24;

/// A user of a provider who signs a member in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::admin) struct Identity {
    user: i64,
    issuer: String,
    subject: String,
    /// The address at the time of linking, for people.
    #[serde(default)]
    email: String,
}

/// Why the user of a provider is not let in.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unknown {
    #[error("the provider names no verified e-mail address, and no member is linked to this user")]
    NoAddress,
    #[error("no member is named {0}; ask an admin to add one of this name")]
    NoMember(String),
    #[error("addresses of this domain may not sign in: {0}")]
    Domain(String),
    #[error("this user is linked to another member")]
    OfAnother,
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Identity {
    /// The address or the provider, for people.
    pub(in crate::admin) fn shown(self) -> String {
        if self.email.is_empty() {
            self.issuer
        } else {
            self.email
        }
    }
}

fn key(issuer: &str, subject: &str) -> String {
    let mut hash = [0; 32];
    hash.copy_from_slice(digest(&SHA256, format!("{issuer}\n{subject}").as_bytes()).as_ref());
    ApiToken::written(&hash).chars().take(KEY_LENGTH).collect()
}

async fn all(handle: &Handle) -> Result<Vec<(Definition, Identity)>, StoreError> {
    let all = handle.store.definitions(handle.org, KIND).await?;
    let read = all.into_iter().filter_map(|(definition, _)| {
        let identity = toml::from_str(&definition.text).ok()?;
        Some((definition, identity))
    });
    Ok(read.collect())
}

/// The identities of a member.
pub(in crate::admin) async fn identities(
    handle: &Handle,
    user: UserId,
) -> Result<Vec<Identity>, StoreError> {
    let all = all(handle).await?.into_iter();
    let own = all.filter(|(_, identity)| identity.user == user.0);
    Ok(own.map(|(_, identity)| identity).collect())
}

/// The member that a user of the provider is: the linked one, then the one with the name of the verified address, then a
/// new one if the plan allows that.
pub(super) async fn member(
    handle: &Handle,
    plan: &OidcPlan,
    claims: &Claims,
    actor: &Actor,
    now: Timestamp,
) -> Result<User, Unknown> {
    let email = claims.email.as_deref();
    if let Some(email) = email
        && !plan.admits(email)
    {
        return Err(Unknown::Domain(email.to_owned()));
    }
    let _changing = handle.changing.lock().await;
    let users = handle.store.users(handle.org).await?;
    let key = key(&plan.issuer, &claims.subject);
    let known = all(handle).await?;
    let known = known.iter().find(|(definition, _)| definition.key == key);
    if let Some((_, identity)) = known
        && let Some(user) = users.iter().find(|user| user.id.0 == identity.user)
    {
        return Ok(user.clone());
    }
    let email = email.ok_or(Unknown::NoAddress)?;
    let of_name = users
        .into_iter()
        .find(|user| user.name.eq_ignore_ascii_case(email));
    let user = match of_name {
        Some(user) => user,
        None => added(handle, plan, email, actor, now).await?,
    };
    // The password that an admin has seen is of no use any more.
    if user.must_change {
        forget_password(handle, &user).await?;
    }
    let was = known.map(|(definition, _)| definition);
    put(handle, plan, claims, &user, was, actor, now).await?;
    let users = handle.store.users(handle.org).await?;
    let found = users.into_iter().find(|one| one.id == user.id);
    Ok(found.unwrap_or(user))
}

/// A member with the role of the plan, whom only the provider signs in.
async fn added(
    handle: &Handle,
    plan: &OidcPlan,
    email: &str,
    actor: &Actor,
    now: Timestamp,
) -> Result<User, Unknown> {
    let Some(role) = plan.new_members else {
        return Err(Unknown::NoMember(email.to_owned()));
    };
    let name: String = email.to_lowercase();
    if !crate::api::is_name(&name) {
        return Err(Unknown::NoMember(name));
    }
    let hash = unusable().await?;
    let id = handle
        .store
        .add_user(handle.org, &name, role, (hash, false), false, now)
        .await?;
    handle.note(actor, "member.add", &name, now).await?;
    let users = handle.store.users(handle.org).await?;
    let found = users.into_iter().find(|user| user.id == id);
    Ok(found.ok_or(StoreError::NotFound("user"))?)
}

/// The hash of a password that is never shown.
async fn unusable() -> Result<String, StoreError> {
    let password = password::generate().map_err(|_| StoreError::Busy)?;
    password::hashed(password)
        .await
        .map_err(|_| StoreError::Busy)
}

async fn forget_password(handle: &Handle, user: &User) -> Result<(), StoreError> {
    let edit = UserEdit {
        password: Some((unusable().await?, false)),
        ..UserEdit::default()
    };
    handle.store.edit_user(handle.org, user.id, edit).await?;
    Ok(())
}

/// Links a user of the provider to the member who is signed in.
pub(super) async fn link(
    handle: &Handle,
    plan: &OidcPlan,
    claims: &Claims,
    (user, actor): (&User, &Actor),
    now: Timestamp,
) -> Result<(), Unknown> {
    if let Some(email) = &claims.email
        && !plan.admits(email)
    {
        return Err(Unknown::Domain(email.clone()));
    }
    let _changing = handle.changing.lock().await;
    let key = key(&plan.issuer, &claims.subject);
    let known = all(handle).await?;
    let known = known.iter().find(|(definition, _)| definition.key == key);
    if let Some((_, identity)) = known {
        if identity.user == user.id.0 {
            return Ok(());
        }
        let users = handle.store.users(handle.org).await?;
        if users.iter().any(|one| one.id.0 == identity.user) {
            return Err(Unknown::OfAnother);
        }
    }
    let was = known.map(|(definition, _)| definition);
    Ok(put(handle, plan, claims, user, was, actor, now).await?)
}

async fn put(
    handle: &Handle,
    plan: &OidcPlan,
    claims: &Claims,
    user: &User,
    was: Option<&Definition>,
    actor: &Actor,
    now: Timestamp,
) -> Result<(), StoreError> {
    let identity = Identity {
        user: user.id.0,
        issuer: plan.issuer.clone(),
        subject: claims.subject.clone(),
        email: claims.email.clone().unwrap_or_default(),
    };
    let changes = DefinitionChanges {
        puts: vec![PutDefinition {
            id: None,
            key: key(&plan.issuer, &claims.subject),
            was: was.map(|was| was.key.clone()),
            version: was.map(|was| was.version),
            text: toml::to_string(&identity).unwrap_or_default(),
            monitor: None,
        }],
        audit: vec![actor.audit("member.link", &user.name)],
        ..DefinitionChanges::default()
    };
    change(handle, changes, now).await
}

/// Ends all links of a member.
pub(in crate::admin) async fn unlink(
    handle: &Handle,
    user: UserId,
    audit: NewAudit,
    now: Timestamp,
) -> Result<(), StoreError> {
    let _changing = handle.changing.lock().await;
    let own = all(handle).await?.into_iter();
    let own = own.filter(|(_, identity)| identity.user == user.0);
    let changes = DefinitionChanges {
        removals: own
            .map(|(definition, _)| (definition.key, Some(definition.version)))
            .collect(),
        audit: vec![audit],
        ..DefinitionChanges::default()
    };
    change(handle, changes, now).await
}

async fn change(
    handle: &Handle,
    changes: DefinitionChanges,
    now: Timestamp,
) -> Result<(), StoreError> {
    handle
        .store
        .change_definitions(handle.org, KIND, changes, now)
        .await?;
    Ok(())
}
