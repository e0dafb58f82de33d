//! The overview: what is down, open incidents, figures.

use askama::Template;
use axum::extract::{Extension, RawQuery, State};
use axum::response::{IntoResponse, Response};
use plimsoll_monitor::detect::status::Health;
use plimsoll_monitor::engine::View;
use plimsoll_monitor::store::IncidentFilter;

use crate::admin::guard::Me;
use crate::admin::incidents::{Outage, outages};
use crate::admin::monitors::Row;
use crate::admin::shell::{Shell, page};
use crate::answer::ApiError;
use crate::state::Api;

/// Open incidents that are shown.
const MOST: usize = 20;

#[derive(Template)]
#[template(path = "admin/overview.html")]
struct OverviewPage {
    s: Shell,
    counts: [(&'static str, &'static str, usize); 5],
    total: usize,
    in_maintenance: usize,
    troubled: Vec<Row>,
    outages: Vec<Outage>,
}

pub(super) async fn show(
    State(api): State<Api>,
    Extension(me): Extension<Me>,
    RawQuery(query): RawQuery,
) -> Result<Response, Response> {
    let views = api.handle.board.views();
    let count = |wanted: &[Health]| {
        let of = views.iter().filter(|view| wanted.contains(&view.health));
        of.count()
    };
    let handle = &api.handle;
    let filter = IncidentFilter {
        open: Some(true),
        ..IncidentFilter::default()
    };
    let open = handle
        .store
        .incidents(handle.org, filter, None, MOST)
        .await
        .map_err(refused)?;
    // Those with an open incident are in the list of these already.
    let is_listed = |view: &View| open.iter().any(|incident| incident.monitor == view.id);
    let troubled = views.iter().filter(|view| {
        matches!(
            view.health,
            Health::Down | Health::Degraded | Health::NoData
        ) && !is_listed(view)
    });
    Ok(page(&OverviewPage {
        s: Shell::new(&me, "/admin", "Overview").done(query.as_deref()),
        counts: [
            ("operational", "up", count(&[Health::Up])),
            ("degraded", "degraded", count(&[Health::Degraded])),
            ("major", "down", count(&[Health::Down])),
            ("partial", "no_data", count(&[Health::NoData])),
            (
                "unknown",
                "paused",
                count(&[Health::Paused, Health::Pending]),
            ),
        ],
        total: views.len(),
        in_maintenance: views.iter().filter(|view| view.in_maintenance).count(),
        troubled: troubled.take(100).map(Row::from_view).collect(),
        outages: outages(&api, &open, me.now),
    }))
}

/// The response to a failure of the store.
pub(super) fn refused(error: plimsoll_monitor::store::StoreError) -> Response {
    ApiError::from(error).into_response()
}
