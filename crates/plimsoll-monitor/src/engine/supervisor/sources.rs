//! Sources of monitors: their lists go to the store, and become a part of the configuration from there.

use std::sync::Arc;

use crate::discovery::{DiscoveryView, Found, Listed, stored_text};
use crate::engine::composition::Placed;
use crate::engine::supervisor::Supervisor;
use crate::store::{Definition, DefinitionChanges, DefinitionKind, PutDefinition, StoreError};

const KIND: DefinitionKind = DefinitionKind::Discovered;

/// What is known of a source.
pub(super) struct SourceState {
    view: DiscoveryView,
    /// Its list as it is in the store and in force.
    in_force: Option<String>,
    /// Parts of its list that are no definitions.
    unlisted: Vec<String>,
    /// Definitions that do not fit the configuration.
    unplaced: Vec<String>,
}

impl Supervisor {
    /// Reads the sources of the present configuration from now on.
    pub(super) fn expect_sources(&mut self) {
        self.discovery.follow(&self.base.discover);
        let mut known = std::mem::take(&mut self.sources);
        let states = self.base.discover.iter().map(|plan| {
            let (kind, place) = (plan.source.kind(), plan.source.place());
            let is_same = |one: &SourceState| {
                one.view.name == plan.name && one.view.kind == kind && one.view.place == place
            };
            if let Some(same) = known.iter().position(is_same) {
                return known.swap_remove(same);
            }
            let view = DiscoveryView {
                name: plan.name.clone(),
                kind,
                place,
                keys: Arc::default(),
                listed: None,
                error: None,
                problems: Vec::new(),
            };
            SourceState {
                view,
                in_force: None,
                unlisted: Vec::new(),
                unplaced: Vec::new(),
            }
        });
        self.sources = states.collect();
    }

    /// Notes which monitors the lists of the store have become.
    pub(super) fn note_placed(&mut self, placed: Vec<Placed>, stored: &[Definition]) {
        for (state, placed) in self.sources.iter_mut().zip(placed) {
            state.view.keys = placed.keys.into();
            let list = stored.iter().find(|one| one.key == state.view.name);
            // After a restart it is not known for how long the list went on to hold.
            state.view.listed = state.view.listed.or(list.map(|one| one.changed));
            report_new(
                &*self.notice,
                &state.view.name,
                &state.unplaced,
                &placed.problems,
            );
            state.unplaced = placed.problems;
        }
        self.show_sources();
    }

    /// Applies a list, or records the error; after an error the last list stays in force.
    pub(super) async fn place_list(&mut self, found: Found) {
        let is_it = |state: &SourceState| state.view.name == found.plan.name;
        let Some(index) = self.sources.iter().position(is_it) else {
            return;
        };
        let outcome = match found.outcome {
            Ok(listed) => {
                let stored = self.put_in_force(index, listed).await;
                stored.map_err(|error| error.to_string())
            }
            Err(reason) => Err(reason),
        };
        let now = self.moment().wall;
        let notice = Arc::clone(&self.notice);
        let Some(SourceState { view, .. }) = self.sources.get_mut(index) else {
            return;
        };
        let name = &view.name;
        match outcome {
            Ok(()) => {
                view.listed = Some(now);
                if view.error.take().is_some() {
                    notice(&format!("the source `{name}` can be read again"));
                }
            }
            Err(reason) => {
                if view.error.as_ref() != Some(&reason) {
                    let count = view.keys.len();
                    notice(&format!(
                        "the source `{name}` cannot be read, and the {count} monitors that it listed last stay: {reason}"
                    ));
                }
                view.error = Some(reason);
            }
        }
        self.show_sources();
    }

    /// Puts a list into the store, and its monitors in force, if it is another one.
    async fn put_in_force(&mut self, index: usize, listed: Listed) -> Result<(), StoreError> {
        let text = stored_text(&listed.definitions);
        let Some(state) = self.sources.get_mut(index) else {
            return Ok(());
        };
        let name = state.view.name.clone();
        report_new(&*self.notice, &name, &state.unlisted, &listed.problems);
        state.unlisted = listed.problems;
        if state.in_force.as_ref() == Some(&text) {
            return Ok(());
        }
        let stored = async {
            let present = self.store.definition(self.org, KIND, &name).await?;
            if present.as_ref().is_some_and(|present| present.text == text) {
                // After a restart, or a failure behind it.
                return self.rebuild().await;
            }
            let put = PutDefinition {
                id: None,
                key: name.clone(),
                was: present.map(|present| present.key),
                version: None,
                text: text.clone(),
                monitor: None,
            };
            let changes = DefinitionChanges {
                puts: vec![put],
                ..DefinitionChanges::default()
            };
            let now = self.moment().wall;
            let changing = self.store.change_definitions(self.org, KIND, changes, now);
            changing.await?;
            self.rebuild().await
        };
        let stored: Result<(), StoreError> = stored.await;
        stored?;
        if let Some(state) = self.sources.get_mut(index) {
            state.in_force = Some(text);
        }
        Ok(())
    }

    fn show_sources(&self) {
        let views = self.sources.iter().map(|state| DiscoveryView {
            problems: [&state.unlisted[..], &state.unplaced].concat(),
            ..state.view.clone()
        });
        self.board.set_discovery(views.collect());
    }
}

/// Reports parts of a list that are left out, and were not left out of the last one.
fn report_new(notice: &dyn Fn(&str), name: &str, before: &[String], now: &[String]) {
    for problem in now.iter().filter(|problem| !before.contains(problem)) {
        notice(&format!("the source `{name}`: {problem}"));
    }
}
