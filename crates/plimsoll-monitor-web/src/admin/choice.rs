//! What a form lets its user choose from: options and checkboxes.

use plimsoll_monitor::engine::View;

use crate::state::Api;

/// An option or a checkbox of a form.
#[derive(Debug)]
pub(super) struct Choice {
    /// What the form sends.
    pub(super) value: String,
    /// What the user reads.
    pub(super) text: String,
    pub(super) is_chosen: bool,
}

impl Choice {
    /// The monitors of an organisation, the chosen ones first: a form sends their keys and shows their names.
    pub(super) fn monitors(api: &Api, is_chosen: impl Fn(&View) -> bool) -> Vec<Self> {
        let views = api.handle.board.views();
        let choices = views.into_iter().map(|view| Self {
            is_chosen: is_chosen(&view),
            value: view.plan.key.clone(),
            text: view.plan.name.clone(),
        });
        let mut choices: Vec<_> = choices.collect();
        // The list scrolls, and what is chosen must not be out of sight.
        choices.sort_by_key(|one| !one.is_chosen);
        choices
    }

    /// The monitors of an organisation; those whose key or name is in `chosen` are chosen.
    pub(super) fn monitors_named(api: &Api, chosen: &[String]) -> Vec<Self> {
        let is_chosen = |one: &String, view: &View| *one == view.plan.key || *one == view.plan.name;
        Self::monitors(api, |view| chosen.iter().any(|one| is_chosen(one, view)))
    }
}

/// How many are chosen.
pub(super) fn chosen(choices: &[Choice]) -> usize {
    choices.iter().filter(|one| one.is_chosen).count()
}
