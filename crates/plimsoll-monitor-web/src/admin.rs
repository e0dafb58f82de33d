//! The admin pages at `/admin`: rendered on the server, usable without JavaScript.
//!
//! Each route names the least role that may use it. Its guard finds the session, checks the role and, for a form, its CSRF
//! token, so that no handler can forget it. Users of all organisations of the store sign in here;
//! what they see is their organisation's.

pub mod setup;

mod form;

mod choice;

mod date_time;

pub(crate) mod password;

mod totp;

mod qr_code;

mod recovery;

mod device;

mod agent;

mod guard;

mod shell;

mod removal;

mod outgoing;

mod form_error;

mod faults;

mod sign_in;

mod oidc;

mod bars;

mod overview;

mod monitors;

mod wall;

mod editor;

mod incidents;

mod notices;

mod channels;

mod acknowledge;

mod escalations;

mod rotations;

mod pages;

mod readers;

mod maintenance;

mod members;

mod tokens;

mod account;

mod audit;

mod reports;

use plimsoll_monitor::store::Role;

use crate::access::Audience;
use crate::access::routes::Routes;
use crate::state::Api;

pub(crate) use crate::admin::guard::admit;
#[cfg(test)]
pub(crate) use crate::admin::guard::csrf_of;
pub(crate) use crate::admin::shell::no_status_page;

/// Routes of everyone who is signed in.
fn of_viewers(api: &Api) -> Routes {
    let role = Audience::Session(Role::Viewer);
    Routes::new(api)
        .get(role, "/admin", overview::show)
        .post(role, "/admin/sign-out", sign_in::sign_out)
        .get(role, "/admin/monitors", monitors::list)
        .get(role, "/admin/wall", wall::show)
        .get(role, "/admin/monitors/{key}", monitors::one)
        .get(role, "/admin/incidents", incidents::list)
        .get(role, "/admin/incidents/{id}", incidents::declared)
        .get(role, "/admin/outages/{id}", incidents::outage)
        .get(role, "/admin/notices", notices::list)
        .get(role, "/admin/pages", pages::list)
        .get(role, "/admin/maintenance", maintenance::list)
        .get(role, "/admin/reports", reports::show)
        .get(role, "/admin/reports.csv", reports::csv)
        .get(role, "/admin/account", account::show)
        .post(role, "/admin/account/password", account::password)
        .post(role, "/admin/account/totp", account::totp)
        .post(role, "/admin/account/recovery", account::renew_codes)
        .post(role, "/admin/account/sessions", account::sessions)
        .post(role, "/admin/account/unlink", oidc::unlink)
}

/// Routes of editors.
fn of_editors(api: &Api) -> Routes {
    let role = Audience::Session(Role::Editor);
    Routes::new(api)
        .get(role, "/admin/new-monitor", editor::new)
        .post(role, "/admin/new-monitor", editor::create)
        .get(role, "/admin/monitors/{key}/edit", editor::edit)
        .post(role, "/admin/monitors/{key}/edit", editor::update)
        .post(role, "/admin/monitors/bulk", monitors::bulk)
        .post(role, "/admin/monitors/{key}/act", monitors::act)
        .get(role, "/admin/new-incident", incidents::new)
        .post(role, "/admin/new-incident", incidents::declare)
        .post(role, "/admin/incidents/{id}/update", incidents::update)
        .post(role, "/admin/notices/test", notices::test)
        .get(role, "/admin/new-page", pages::new)
        .post(role, "/admin/new-page", pages::create)
        .get(role, "/admin/pages/{slug}/edit", pages::edit)
        .post(role, "/admin/pages/{slug}/edit", pages::update)
        .get(role, "/admin/pages/{slug}/readers", readers::show)
        .post(role, "/admin/pages/{slug}/readers", readers::change)
        .post(role, "/admin/maintenance/add", maintenance::add)
        .post(role, "/admin/maintenance/remove", maintenance::remove)
}

/// Routes of admins.
fn of_admins(api: &Api) -> Routes {
    let role = Audience::Session(Role::Admin);
    Routes::new(api)
        .get(role, "/admin/members", members::list)
        .post(role, "/admin/members/add", members::add)
        .post(role, "/admin/members/change", members::change)
        .get(role, "/admin/tokens", tokens::list)
        .post(role, "/admin/tokens/add", tokens::add)
        .post(role, "/admin/tokens/revoke", tokens::revoke)
        .get(role, "/admin/new-channel", channels::new)
        .post(role, "/admin/new-channel", channels::create)
        .get(role, "/admin/channels/{name}/edit", channels::edit)
        .post(role, "/admin/channels/{name}/edit", channels::update)
        .get(role, "/admin/new-rotation", rotations::new)
        .post(role, "/admin/new-rotation", rotations::create)
        .get(role, "/admin/rotations/{name}/edit", rotations::edit)
        .post(role, "/admin/rotations/{name}/edit", rotations::update)
        .get(role, "/admin/new-escalation", escalations::new)
        .post(role, "/admin/new-escalation", escalations::create)
        .get(role, "/admin/escalations/{name}/edit", escalations::edit)
        .post(role, "/admin/escalations/{name}/edit", escalations::update)
        .get(role, "/admin/audit", audit::list)
}

/// All routes below `/admin`.
pub(crate) fn routes(api: &Api) -> Routes {
    let everyone = Audience::Everyone;
    Routes::new(api)
        .merge(of_viewers(api))
        .merge(of_editors(api))
        .merge(of_admins(api))
        .get(everyone, "/admin/sign-in", sign_in::show)
        .post(everyone, "/admin/sign-in", sign_in::sign_in)
        .get(everyone, "/admin/oidc/start", oidc::start)
        .get(everyone, "/admin/oidc/callback", oidc::callback)
        .get(everyone, "/admin/assets/{name}", shell::asset)
        .get(
            Audience::OwnSecret,
            "/acknowledge/{token}",
            acknowledge::show,
        )
        .post(
            Audience::OwnSecret,
            "/acknowledge/{token}",
            acknowledge::act,
        )
        .get(everyone, "/admin/", shell::elsewhere)
        .get(everyone, "/admin/{*rest}", shell::elsewhere)
        .layer(guard::protect)
}
