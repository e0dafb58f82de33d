//! The work of an agent: the monitors that it checks, as a configuration.

use std::fmt::Write as _;

use ring::digest::{SHA256, digest};

use crate::config::ApiToken;
use crate::engine::Board;
use crate::engine::mates::Mates;
use crate::time::Timestamp;

/// The configuration of an agent, in an order that stays: its share of the monitors of its region.
pub fn work(board: &Board, agent: &str, now: Timestamp) -> String {
    let agents = board.agents();
    let region = agents.iter().find(|plan| plan.name == agent);
    let region = region.map_or("", |plan| plan.region.as_str());
    let mates = Mates::of_region(board, region, Some(agent), now);
    let is_public_only = board.grounds().is_public_only();
    let mut text = format!("allow_private = {}\n", !is_public_only);
    for view in board.views() {
        let plan = &view.plan;
        let is_of_region = plan.from.iter().any(|from| from == region);
        let is_mine = is_of_region && mates.checker_of(&plan.key) == Some(agent);
        let Some(work) = plan.work.as_ref().filter(|_| is_mine && !view.is_paused) else {
            continue;
        };
        // Keys of subtables would otherwise be those of the root.
        let table: toml::Table = toml::from_str(work).unwrap_or_default();
        let mut root = toml::Table::new();
        let monitors = vec![toml::Value::Table(table)];
        root.insert("monitor".to_owned(), toml::Value::Array(monitors));
        write!(text, "\n{root}").ok();
    }
    text
}

/// The entity tag of such a configuration.
pub fn tag(text: &str) -> String {
    let mut hash = [0; 32];
    hash.copy_from_slice(digest(&SHA256, text.as_bytes()).as_ref());
    format!("\"{}\"", ApiToken::written(&hash))
}
