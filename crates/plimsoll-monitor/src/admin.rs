//! The admin pages at `/admin`: rendered on the server, usable without JavaScript.
//!
//! Each route names the least role that may use it. The guard before all of them finds the session, checks the role and,
//! for a form, its CSRF token, so that no handler can forget it. Users of all organisations of the store sign in here;
//! what they see is their organisation's.

pub mod setup;

mod form;

pub(crate) mod password;

mod totp;

mod recovery;

mod limits;

mod agent;

mod guard;

mod shell;

mod outgoing;

mod sign_in;

mod oidc;

mod overview;

mod monitors;

mod editor;

mod incidents;

mod notices;

mod channels;

mod pages;

mod readers;

mod maintenance;

mod members;

mod tokens;

mod account;

mod audit;

mod reports;

use axum::Router;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::{MethodRouter, get, post};

use crate::api::Api;
use crate::store::Role;

pub(crate) use crate::admin::guard::is_tls;
pub(crate) use crate::admin::limits::SignInLimits;

/// A path, and what makes its handlers.
type Routed = (&'static str, fn() -> MethodRouter<Api>);

/// Routes that a role may use.
fn of_role(api: &Api, role: Role, routes: &[Routed]) -> Router<Api> {
    let mut merged = Router::new();
    for (path, make) in routes {
        merged = merged.route(path, make());
    }
    let guard = guard::Guarded {
        api: api.clone(),
        role,
    };
    merged.route_layer(from_fn_with_state(guard, guard::guard))
}

/// Routes of everyone who is signed in.
const VIEWER: &[Routed] = &[
    ("/admin", || get(overview::show)),
    ("/admin/sign-out", || post(sign_in::sign_out)),
    ("/admin/monitors", || get(monitors::list)),
    ("/admin/monitors/{key}", || get(monitors::one)),
    ("/admin/incidents", || get(incidents::list)),
    ("/admin/incidents/{id}", || get(incidents::declared)),
    ("/admin/outages/{id}", || get(incidents::outage)),
    ("/admin/notices", || get(notices::list)),
    ("/admin/pages", || get(pages::list)),
    ("/admin/maintenance", || get(maintenance::list)),
    ("/admin/reports", || get(reports::show)),
    ("/admin/reports.csv", || get(reports::csv)),
    ("/admin/account", || get(account::show)),
    ("/admin/account/password", || post(account::password)),
    ("/admin/account/totp", || post(account::totp)),
    ("/admin/account/recovery", || post(account::renew_codes)),
    ("/admin/account/sessions", || post(account::sessions)),
    ("/admin/account/unlink", || post(oidc::unlink)),
];

/// Routes of editors.
const EDITOR: &[Routed] = &[
    ("/admin/new-monitor", || {
        get(editor::new).post(editor::create)
    }),
    ("/admin/monitors/{key}/edit", || {
        get(editor::edit).post(editor::update)
    }),
    ("/admin/monitors/bulk", || post(monitors::bulk)),
    ("/admin/monitors/{key}/act", || post(monitors::act)),
    ("/admin/new-incident", || {
        get(incidents::new).post(incidents::declare)
    }),
    ("/admin/incidents/{id}/update", || post(incidents::update)),
    ("/admin/notices/test", || post(notices::test)),
    ("/admin/new-page", || get(pages::new).post(pages::create)),
    ("/admin/pages/{slug}/edit", || {
        get(pages::edit).post(pages::update)
    }),
    ("/admin/pages/{slug}/readers", || {
        get(readers::show).post(readers::change)
    }),
    ("/admin/maintenance/add", || post(maintenance::add)),
    ("/admin/maintenance/remove", || post(maintenance::remove)),
];

/// Routes of admins.
const ADMIN: &[Routed] = &[
    ("/admin/members", || get(members::list)),
    ("/admin/members/add", || post(members::add)),
    ("/admin/members/change", || post(members::change)),
    ("/admin/tokens", || get(tokens::list)),
    ("/admin/tokens/add", || post(tokens::add)),
    ("/admin/tokens/revoke", || post(tokens::revoke)),
    ("/admin/new-channel", || {
        get(channels::new).post(channels::create)
    }),
    ("/admin/channels/{name}/edit", || {
        get(channels::edit).post(channels::update)
    }),
    ("/admin/audit", || get(audit::list)),
];

/// All routes below `/admin`.
pub(crate) fn router(api: &Api) -> Router<Api> {
    Router::new()
        .merge(of_role(api, Role::Viewer, VIEWER))
        .merge(of_role(api, Role::Editor, EDITOR))
        .merge(of_role(api, Role::Admin, ADMIN))
        .route("/admin/sign-in", get(sign_in::show).post(sign_in::sign_in))
        .route("/admin/oidc/start", get(oidc::start))
        .route("/admin/oidc/callback", get(oidc::callback))
        .route("/admin/assets/{name}", get(shell::asset))
        .route("/admin/{*rest}", get(shell::missing))
        .layer(from_fn(guard::protect))
}
