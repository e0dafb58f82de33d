//! The stream of events that a page listens to: what the site is like now, and again whenever it is another.

use std::sync::Arc;
use std::time::Duration;

use plimsoll_server::{EventSource, EventStreamBody, NextEvent};

use crate::files::live::Live;

/// How often it is looked. A change is reported when it has been the same for as long: files are seldom written
/// alone.
const LOOK: Duration = Duration::from_millis(100);

/// Looks after which a comment is sent, for those on the way that close what is silent.
const SILENT: u32 = 150;

/// The content of the stream.
pub(super) fn events(live: Arc<Live>) -> EventStreamBody<StateChanges> {
    let changes = StateChanges {
        live,
        last_sent: None,
        last: None,
    };
    EventStreamBody::new(changes, LOOK, SILENT)
}

/// The state of the site, whenever it has changed and is the same for a look.
pub(super) struct StateChanges {
    live: Arc<Live>,
    last_sent: Option<String>,
    last: Option<String>,
}

impl EventSource for StateChanges {
    fn next_event(&mut self) -> NextEvent {
        if self.live.is_over() {
            return NextEvent::End;
        }
        let state = self.live.state();
        let last = self.last.replace(state.clone());
        if last.as_ref() != Some(&state) || self.last_sent.as_ref() == Some(&state) {
            return NextEvent::Pending;
        }
        self.last_sent = Some(state.clone());
        NextEvent::Data(state)
    }
}
