//! The account that certificates are ordered by: opened once, kept with its key.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use instant_acme::{Account, AccountBuilder, AccountCredentials, ExternalAccountKey, NewAccount};
use plimsoll_server::AcmeAccount;

use crate::acme::OrderError;
use crate::store::{TemporaryFile, read};
use crate::transport::Transport;

/// The account that is kept, or a new one, which is kept from now on.
pub(super) async fn open(plan: &AcmeAccount, transport: Transport) -> Result<Account, OrderError> {
    let builder = Account::builder_with_http(Box::new(transport));
    let Some(kept) = read(&plan.file)? else {
        return create(plan, builder).await;
    };
    let credentials: AccountCredentials = serde_json::from_str(&kept)
        .map_err(|error| OrderError::Account(plan.file.display().to_string(), error))?;
    Ok(builder.from_credentials(credentials).await?)
}

/// A new account, which is kept from now on.
pub(super) async fn open_anew(
    plan: &AcmeAccount,
    transport: Transport,
) -> Result<Account, OrderError> {
    create(plan, Account::builder_with_http(Box::new(transport))).await
}

async fn create(plan: &AcmeAccount, builder: AccountBuilder) -> Result<Account, OrderError> {
    let contacts: Vec<&str> = plan.contacts.iter().map(String::as_str).collect();
    let new = NewAccount {
        contact: &contacts,
        // The configuration says so, or there would be no plan.
        terms_of_service_agreed: true,
        only_return_existing: false,
    };
    let external = plan.external.as_ref().map(|external| {
        let key = BASE64_URL_SAFE_NO_PAD.decode(external.key.expose());
        ExternalAccountKey::new(external.id.clone(), &key.unwrap_or_default())
    });
    let creating = builder.create(&new, plan.directory.clone(), external.as_ref());
    let (account, credentials) = creating.await?;
    let text = serde_json::to_string(&credentials)
        .map_err(|error| OrderError::Account(plan.file.display().to_string(), error))?;
    TemporaryFile::new(&plan.file, &text)?.keep()?;
    Ok(account)
}
