//! The list of monitors, in pages, filtered here: it takes as long to show with ten thousand as with a hundred.

use std::collections::BTreeSet;
use std::sync::Arc;

use askama::Template;
use axum::extract::{Extension, RawQuery, State};
use axum::response::Response;
use plimsoll_monitor::DiscoveryView;
use plimsoll_monitor::detect::status::Health;
use plimsoll_monitor::engine::View;
use url::form_urlencoded::Serializer;

use crate::admin::bars::{Recent, recent};
use crate::admin::guard::Me;
use crate::admin::monitors::Row;
use crate::admin::shell::{Shell, When, page, state};
use crate::request::parameter;
use crate::state::Api;

/// Monitors of one page.
const MOST: usize = 100;

/// Which monitors a page of the list has, as its address says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::admin) struct Selection {
    /// Words, each of which occurs in the name, group, state, kind, target, key or a tag.
    search: String,
    /// A group; empty for any.
    group: String,
    /// The name of a health; empty for any.
    health: String,
    /// A tag; empty for any.
    tag: String,
    /// From 1.
    page: usize,
}

impl Selection {
    pub(in crate::admin) fn from_query(query: Option<&str>) -> Self {
        let given = |name| parameter(query, name).unwrap_or_default();
        Self {
            search: given("q").trim().to_owned(),
            group: given("group"),
            health: given("health"),
            tag: given("tag"),
            page: given("page").parse().unwrap_or(1).max(1),
        }
    }

    /// The path of this page with a message of `DONE`.
    pub(super) fn path_with_message(&self, done: &str) -> String {
        let query = self.query();
        let and = if query.is_empty() { "" } else { "&" };
        format!("/admin/monitors?{query}{and}done={done}")
    }

    /// Without a question mark; empty for the first page of all.
    fn query(&self) -> String {
        let mut query = Serializer::new(String::new());
        for (name, value) in [
            ("q", &self.search),
            ("group", &self.group),
            ("health", &self.health),
            ("tag", &self.tag),
        ] {
            if !value.is_empty() {
                query.append_pair(name, value);
            }
        }
        if self.page > 1 {
            query.append_pair("page", &self.page.to_string());
        }
        query.finish()
    }

    fn path_of_page(&self, page: usize) -> String {
        let query = Self {
            page,
            ..self.clone()
        }
        .query();
        let question = if query.is_empty() { "" } else { "?" };
        format!("/admin/monitors{question}{query}")
    }

    fn has_filter(&self) -> bool {
        [&self.search, &self.group, &self.health, &self.tag]
            .iter()
            .any(|text| !text.is_empty())
    }

    /// The words of the search, in lower case.
    pub(in crate::admin) fn words(&self) -> Vec<String> {
        let words = self.search.split_whitespace();
        words.map(str::to_lowercase).collect()
    }

    /// - `words`: those of this selection.
    pub(in crate::admin) fn matches(&self, view: &View, words: &[String]) -> bool {
        let plan = &view.plan;
        (self.health.is_empty() || view.health.name() == self.health)
            && (self.group.is_empty() || plan.group == self.group)
            && (self.tag.is_empty() || plan.tags.contains(&self.tag))
            && (words.is_empty() || {
                let haystack = haystack(view);
                words.iter().all(|word| haystack.contains(word.as_str()))
            })
    }
}

/// The text that a search matches.
fn haystack(view: &View) -> String {
    let plan = &view.plan;
    let (_, state) = state(view.health, view.in_maintenance);
    let target = plan.what.target().unwrap_or_default();
    let tags = plan.tags.join(" ");
    let (name, group, kind, key) = (&plan.name, &plan.group, &plan.kind, &plan.key);
    format!("{name} {group} {state} {kind} {target} {key} {tags}").to_lowercase()
}

#[derive(Template)]
#[template(path = "admin/monitors.html")]
struct ListPage {
    s: Shell,
    /// Each with its last 24 hours.
    rows: Vec<(Row, Recent)>,
    /// All that match.
    matching: usize,
    /// All.
    total: usize,
    selection: Selection,
    /// Number of the first row, from 1.
    first: usize,
    /// Number of the last row.
    last: usize,
    pages: usize,
    previous: Option<String>,
    next: Option<String>,
    groups: Vec<String>,
    tags: Vec<String>,
    healths: [&'static str; 6],
    sources: Vec<SourceLine>,
}

/// A source of monitors.
#[derive(Debug)]
struct SourceLine {
    name: String,
    place: String,
    count: usize,
    listed: Option<When>,
    error: Option<String>,
    problems: Vec<String>,
}

pub(in crate::admin) async fn list(
    State(api): State<Api>,
    Extension(me): Extension<Me>,
    RawQuery(query): RawQuery,
) -> Response {
    let mut selection = Selection::from_query(query.as_deref());
    let words = selection.words();
    let shell = Shell::new(&me, "/admin/monitors", "Monitors").done(query.as_deref());
    let sources = api.handle.board.discovery();
    let found_by = |key: &String| {
        let source = sources.iter().find(|source| source.keys.contains(key));
        source.map(|source| source.name.clone())
    };
    let (mut list, monitors) = api.handle.board.with_views(|views| {
        let views: Vec<_> = views.collect();
        let matching = views.iter().filter(|view| selection.matches(view, &words));
        let matching: Vec<_> = matching.collect();
        let pages = matching.len().div_ceil(MOST).max(1);
        // Monitors may have gone since the link was made.
        selection.page = selection.page.min(pages);
        let skipped = (selection.page - 1) * MOST;
        let rows = matching.iter().skip(skipped).take(MOST);
        let rows = rows.map(|view| {
            let row = Row {
                found_by: found_by(&view.plan.key),
                ..Row::from_view(view)
            };
            ((row, Recent::default()), (view.id, Arc::clone(&view.plan)))
        });
        let (rows, monitors): (Vec<_>, Vec<_>) = rows.unzip();
        let groups = views.iter().map(|view| view.plan.group.as_str());
        let groups: BTreeSet<_> = groups.filter(|group| !group.is_empty()).collect();
        let tags = views.iter().flat_map(|view| &view.plan.tags);
        let tags: BTreeSet<_> = tags.map(String::as_str).collect();
        let page = selection.page;
        let list = ListPage {
            s: shell,
            matching: matching.len(),
            total: views.len(),
            first: (skipped + 1).min(matching.len()),
            last: skipped + rows.len(),
            rows,
            pages,
            previous: (page > 1).then(|| selection.path_of_page(page - 1)),
            next: (page < pages).then(|| selection.path_of_page(page + 1)),
            groups: groups.into_iter().map(str::to_owned).collect(),
            tags: tags.into_iter().map(str::to_owned).collect(),
            healths: Health::ALL.map(Health::name),
            sources: sources.iter().map(source_line).collect(),
            selection: selection.clone(),
        };
        (list, monitors)
    });
    let mut all = recent(&api.handle, &monitors, me.now).await;
    for ((_, shown), (id, _)) in list.rows.iter_mut().zip(&monitors) {
        *shown = all.remove(id).unwrap_or_default();
    }
    page(&list)
}

fn source_line(source: &DiscoveryView) -> SourceLine {
    SourceLine {
        name: source.name.clone(),
        place: format!("{} {}", source.kind, source.place),
        count: source.keys.len(),
        listed: source.listed.map(When::from_timestamp),
        error: source.error.clone(),
        problems: source.problems.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_and_its_selection_are_the_same() {
        let selection = Selection {
            search: "a b&c".to_owned(),
            group: "x/y".to_owned(),
            health: "down".to_owned(),
            tag: "t+1".to_owned(),
            page: 3,
        };
        let again = Selection::from_query(Some(&selection.query()));
        assert_eq!(again, selection);
        let path = selection.path_with_message("paused");
        assert_eq!(
            path,
            "/admin/monitors?q=a+b%26c&group=x%2Fy&health=down&tag=t%2B1&page=3&done=paused"
        );
        for query in [
            None,
            Some(""),
            Some("page=0"),
            Some("page=-1"),
            Some("page=x&q=+"),
        ] {
            let selection = Selection::from_query(query);
            assert_eq!(selection.page, 1);
            assert!(!selection.has_filter());
            assert_eq!(
                selection.path_with_message("done"),
                "/admin/monitors?done=done"
            );
            assert_eq!(selection.path_of_page(1), "/admin/monitors");
        }
    }
}
