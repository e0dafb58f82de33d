//! Received fields whose names servers read as those of other fields.
//!
//! CGI, WSGI and Rack turn `X-User` and `X_User` into one variable, so a client that sends the one spelling can replace
//! or double what a gateway says in the other.

use std::rc::Rc;
use std::sync::Arc;

use http::header::HeaderName;
use plimsoll_wire::http::{FieldClass, is_proxy_field};

use crate::action::{Action, Answer, Refusal};
use crate::counters::WorkerCounters;
use crate::message::body::TrailerNames;
use crate::message::fields::FieldEdits;
use crate::message::request::Request;

/// Which received fields with underscores in their names are dropped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Underscores {
    /// Those whose name is that of a field which the server sets, removes or trusts, once `_` is read as `-`.
    #[default]
    Collisions,
    /// All of them, as nginx does by default.
    Drop,
    /// None.
    Allow,
}

impl Underscores {
    /// The setting of that name.
    pub fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "collisions" => Self::Collisions,
            "drop" => Self::Drop,
            "allow" => Self::Allow,
            _ => return None,
        })
    }
}

/// The names of the fields that what is served sets, removes or trusts, besides those that every server has.
#[derive(Debug, Clone, Default)]
pub struct OwnFields(Vec<OwnField>);

#[derive(Debug, Clone)]
struct OwnField {
    name: HeaderName,
    /// With `-` for `_`.
    folded: String,
}

impl OwnFields {
    /// Adds a name.
    pub fn push(&mut self, name: &HeaderName) {
        if !self.0.iter().any(|own| own.name == *name) {
            self.0.push(OwnField {
                name: name.clone(),
                folded: name.as_str().replace('_', "-"),
            });
        }
    }

    /// Adds the names of others.
    pub(crate) fn extend(&mut self, others: &Self) {
        for own in &others.0 {
            self.push(&own.name);
        }
    }

    /// Whether `name` is another spelling of one of these, or of a field of proxies, connections or framing.
    fn is_collision(&self, name: &str) -> bool {
        let folded = name.to_ascii_lowercase().replace('_', "-");
        let class = FieldClass::from_name(folded.as_bytes());
        let is_respelled = name.contains('_');
        let is_of_every_server =
            class.is_hop_by_hop() || class.is_framing() || is_proxy_field(folded.as_bytes());
        let mut collisions = self.0.iter().filter(|own| own.folded == folded);
        (is_respelled && is_of_every_server)
            || collisions.any(|own| !name.eq_ignore_ascii_case(own.name.as_str()))
    }

    /// Whether one of them has an underscore, so that names without one collide too.
    fn has_underscores(&self) -> bool {
        self.0.iter().any(|own| own.name.as_str().contains('_'))
    }
}

/// Drops received fields, and trailers, by the spelling of their names.
pub(crate) struct Spelling {
    is_dropped: Rc<TrailerNames>,
    /// The same for trailers, which are counted as they are dropped.
    is_dropped_trailer: Rc<TrailerNames>,
    counters: Arc<WorkerCounters>,
    inner: Rc<dyn Action>,
}

impl Spelling {
    /// `inner` behind the setting.
    pub(crate) fn over(
        underscores: Underscores,
        own: &Arc<OwnFields>,
        counters: &Arc<WorkerCounters>,
        inner: Rc<dyn Action>,
    ) -> Rc<dyn Action> {
        let own = match underscores {
            Underscores::Allow => return inner,
            Underscores::Drop => None,
            Underscores::Collisions => Some(Arc::clone(own)),
        };
        let looks_at_all = own.as_ref().is_some_and(|own| own.has_underscores());
        let is_dropped: Rc<TrailerNames> = Rc::new(move |name| {
            (looks_at_all || name.as_bytes().contains(&b'_'))
                && own.as_ref().is_none_or(|own| own.is_collision(name))
        });
        let (rule, counted) = (Rc::clone(&is_dropped), Arc::clone(counters));
        Rc::new(Self {
            is_dropped,
            is_dropped_trailer: Rc::new(move |name| {
                let is_dropped = rule(name);
                if is_dropped {
                    counted.field_dropped();
                }
                is_dropped
            }),
            counters: Arc::clone(counters),
            inner,
        })
    }
}

impl Action for Spelling {
    fn handle(&self, request: &Request<'_>) -> Answer {
        request.withhold_trailers(&self.is_dropped_trailer);
        let mut edits: Option<FieldEdits> = None;
        for (name, _) in request.headers() {
            if (self.is_dropped)(name)
                && let Ok(name) = HeaderName::from_bytes(name.as_bytes())
            {
                self.counters.field_dropped();
                edits = Some(edits.unwrap_or_default().remove(name));
            }
        }
        match edits {
            None => self.inner.handle(request),
            Some(edits) => request.edited(&edits, |request| self.inner.handle(request)),
        }
    }

    fn refused(&self, refusal: &Refusal) {
        self.inner.refused(refusal);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_spellings_of_own_fields_collide() {
        let mut own = OwnFields::default();
        for name in ["x-user", "x_team", "x-user"] {
            own.push(&HeaderName::from_static(name));
        }
        assert_eq!(own.0.len(), 2);
        for name in [
            "X_User",
            "x_uSER",
            "X-Team",
            "X_Forwarded_For",
            "x-forwarded_prefix",
            "X_Real_IP",
            "Transfer_Encoding",
            "CONTENT_LENGTH",
            "keep_alive",
        ] {
            assert!(own.is_collision(name), "{name}");
        }
        for name in [
            "X-User",
            "X_Team",
            "x_other",
            "_",
            "X-Forwarded-For",
            "x-userr",
        ] {
            assert!(!own.is_collision(name), "{name}");
        }
    }
}
