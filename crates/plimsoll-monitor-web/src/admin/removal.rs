//! Deleting what was added in the admin pages or by the API.

use axum::response::Response;
use plimsoll_monitor::manage::ChangeError;
use plimsoll_monitor::store::{DefinitionKind, StoreError};

use crate::admin::guard::Me;
use crate::admin::monitors::failed;
use crate::admin::shell::missing;
use crate::answer::ApiError;
use crate::state::Api;

/// Deletes a definition.
///
/// # Errors
///
/// The page that says that it is not there, which it may have been when the form was shown, or why it cannot be deleted.
pub(super) async fn remove(
    api: &Api,
    me: &Me,
    kind: DefinitionKind,
    name: &str,
) -> Result<(), Response> {
    let removed = api
        .handle
        .remove_other(&me.actor, kind, (name, None), me.now);
    match removed.await {
        Ok(()) => Ok(()),
        Err(ChangeError::Store(StoreError::NotFound(_))) => Err(missing().await),
        Err(error) => Err(failed(me, ApiError::from(error).message())),
    }
}
