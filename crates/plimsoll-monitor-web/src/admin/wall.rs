//! All monitors as tiles that fill a screen, the worst first.

use std::cmp::Reverse;

use askama::Template;
use axum::extract::{Extension, RawQuery, State};
use axum::response::Response;
use plimsoll_monitor::detect::status::Health;
use plimsoll_monitor::engine::View;

use crate::admin::guard::Me;
use crate::admin::monitors::Selection;
use crate::admin::shell::{When, duration, page, state};
use crate::api::encoded;
use crate::page::icon;
use crate::page::snapshot::State as Sign;
use crate::request::parameter;
use crate::state::Api;

/// Tiles of a wall.
const MOST: usize = 500;

/// Columns for which the style sheet has a rule.
const MOST_COLUMNS: usize = 24;

/// With more columns there is no room for a reason.
const MOST_WITH_REASON: usize = 7;

/// Width of a screen by its height, and of a tile.
const SCREEN: f64 = 16.0 / 9.0;
const TILE: f64 = 2.2;

/// A monitor on the wall.
#[derive(Debug)]
struct Tile {
    path: String,
    key: String,
    name: String,
    group: String,
    class: &'static str,
    /// Its state apart from the colour.
    icon: &'static str,
    state: &'static str,
    /// How long it has been so; of maintenance, whose begin is not that of its health, nothing.
    lasts: Option<String>,
    is_acknowledged: bool,
    reason: Option<String>,
}

#[derive(Template)]
#[template(path = "admin/wall.html")]
struct WallPage {
    /// Number and word of each state that occurs, the worst first.
    counts: Vec<(&'static str, usize, &'static str)>,
    title: String,
    tiles: Vec<Tile>,
    columns: usize,
    shows_reasons: bool,
    /// Monitors for which there is no tile.
    more: usize,
    is_light: bool,
    updated: When,
}

pub(super) async fn show(
    State(api): State<Api>,
    Extension(me): Extension<Me>,
    RawQuery(query): RawQuery,
) -> Response {
    let query = query.as_deref();
    let selection = Selection::from_query(query);
    let words = selection.words();
    let wall = api.handle.board.with_views(|views| {
        let mut views: Vec<_> = views
            .filter(|view| selection.matches(view, &words))
            .collect();
        views.sort_by_key(|view| {
            let place = Reverse(badness(view));
            (place, &view.plan.group, &view.plan.name)
        });
        let counts = counts(&views);
        let tiles: Vec<_> = views
            .iter()
            .take(MOST)
            .map(|view| tile(view, me.now))
            .collect();
        let columns = columns(tiles.len());
        WallPage {
            title: counts.first().map_or_else(
                || "No monitors".to_owned(),
                |(_, count, word)| format!("{count} {}", word.to_lowercase()),
            ),
            counts,
            columns,
            shows_reasons: columns <= MOST_WITH_REASON,
            more: views.len().saturating_sub(MOST),
            tiles,
            is_light: parameter(query, "theme").as_deref() == Some("light"),
            updated: When::from_timestamp(me.now),
        }
    });
    page(&wall)
}

/// What stands first: the larger the earlier.
fn badness(view: &View) -> u8 {
    let is_acknowledged = view.incident.is_some_and(|(_, acknowledged)| acknowledged);
    match view.health {
        _ if view.in_maintenance => 3,
        Health::Down if is_acknowledged => 6,
        Health::Down => 7,
        Health::NoData => 5,
        Health::Degraded => 4,
        Health::Pending => 2,
        Health::Paused => 1,
        Health::Up => 0,
    }
}

/// States with their numbers, in the order of `views`.
fn counts(views: &[&View]) -> Vec<(&'static str, usize, &'static str)> {
    let mut counts: Vec<(&'static str, usize, &'static str)> = Vec::new();
    for view in views {
        let (class, word) = state(view.health, view.in_maintenance);
        match counts.iter_mut().find(|(.., known)| *known == word) {
            Some((_, count, _)) => *count += 1,
            None => counts.push((class, 1, word)),
        }
    }
    counts
}

/// As many columns as let tiles fill a screen.
fn columns(tiles: usize) -> usize {
    let wanted = (tiles as f64 * SCREEN / TILE).sqrt().ceil();
    let fits = |columns: &usize| *columns as f64 >= wanted;
    (1..MOST_COLUMNS).find(fits).unwrap_or(MOST_COLUMNS)
}

fn tile(view: &View, now: plimsoll_monitor::time::Timestamp) -> Tile {
    let plan = &view.plan;
    let (class, word) = state(view.health, view.in_maintenance);
    let sign = match class {
        "operational" => Sign::Operational,
        "maintenance" => Sign::Maintenance,
        "degraded" => Sign::Degraded,
        "partial" => Sign::Partial,
        "major" => Sign::Major,
        _ => Sign::Unknown,
    };
    Tile {
        path: format!("/admin/monitors/{}", encoded(&plan.key)),
        key: plan.key.clone(),
        name: plan.name.clone(),
        group: plan.group.clone(),
        class,
        icon: icon(sign),
        state: word,
        lasts: (!view.in_maintenance).then(|| duration(now.since(view.since))),
        is_acknowledged: view.incident.is_some_and(|(_, acknowledged)| acknowledged),
        reason: (view.health != Health::Up)
            .then(|| view.last.as_ref()?.reason.clone())
            .flatten(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_fill_a_screen() {
        for (tiles, expected) in [
            (0, 1),
            (1, 1),
            (4, 2),
            (12, 4),
            (50, 7),
            (100, 9),
            (250, 15),
            (500, 21),
            (5_000, MOST_COLUMNS),
        ] {
            assert_eq!(columns(tiles), expected, "{tiles} tiles");
        }
    }
}
