//! Maintenance windows: which are active, and when the next one begins or ends.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use crate::config::overlay::PlacedWindow;
use crate::detect::window::Window;
use crate::time::Moment;

/// Windows are looked at this often at least, since the date may step.
const LOOK: Duration = Duration::from_secs(30);

/// The windows of the monitors that there are.
#[derive(Default)]
pub(super) struct Windows {
    /// Those of the file and of the store, with what they are for.
    placed: Vec<PlacedWindow>,
    /// Those of monitors, and whether each is active.
    watched: Vec<(Arc<Window>, bool)>,
    /// When to look again.
    due: Duration,
}

impl Windows {
    pub(super) fn place(&mut self, placed: Vec<PlacedWindow>) {
        self.placed = placed;
    }

    pub(super) fn placed(&self) -> &[PlacedWindow] {
        &self.placed
    }

    /// The windows of monitors, of which none counts as active before the next look.
    pub(super) fn watch<'w>(&mut self, windows: impl Iterator<Item = &'w Arc<Window>>) {
        let mut known = HashSet::new();
        let windows = windows.filter(|window| known.insert(Arc::as_ptr(window)));
        self.watched = windows.map(|window| (Arc::clone(window), false)).collect();
    }

    /// When to look again, on the clock of moments.
    pub(super) fn due(&self) -> Duration {
        self.due
    }

    /// Has the next look be at once, since the date was set.
    pub(super) fn expect_change(&mut self) {
        self.due = Duration::ZERO;
    }

    /// Looks at the date; the windows that began or ended since the last look.
    pub(super) fn look(&mut self, now: Moment) -> Vec<Arc<Window>> {
        let mut next = LOOK;
        let mut changed = Vec::new();
        for (window, is_active) in &mut self.watched {
            let active = window.is_active(now.wall);
            if active != *is_active {
                *is_active = active;
                changed.push(Arc::clone(window));
            }
            if let Some(change) = window.next_change(now.wall) {
                next = next.min(change.since(now.wall).max(Duration::from_millis(10)));
            }
        }
        self.due = now.elapsed + next;
        changed
    }

    /// The windows that were active at the last look.
    pub(super) fn active(&self) -> Vec<Arc<Window>> {
        let active = self.watched.iter().filter(|(_, is_active)| *is_active);
        active.map(|(window, _)| Arc::clone(window)).collect()
    }
}
