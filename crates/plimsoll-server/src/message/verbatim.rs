//! Fields of a response that are sent as they are.

use std::sync::Arc;

use plimsoll_wire::h1::ResponseWriter;
use plimsoll_wire::http::FieldList;

/// Fields that stand before those of the map: what many responses have in common, then a list of this one.
#[derive(Debug, Clone, Default)]
pub(crate) struct Verbatim {
    shared: Option<Arc<FieldList>>,
    own: FieldList,
}

impl From<FieldList> for Verbatim {
    fn from(own: FieldList) -> Self {
        Self { shared: None, own }
    }
}

impl Verbatim {
    pub(crate) fn new(shared: Arc<FieldList>, own: FieldList) -> Self {
        Self {
            shared: Some(shared),
            own,
        }
    }

    fn lists(&self) -> impl Iterator<Item = &FieldList> {
        self.shared.as_deref().into_iter().chain([&self.own])
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lists().all(FieldList::is_empty)
    }

    /// Whether there is a field of that name, whatever its case.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.lists().any(|list| list.get(name).is_some())
    }

    /// All of them as one list.
    pub(crate) fn into_list(self) -> FieldList {
        let Some(shared) = self.shared else {
            return self.own;
        };
        let mut list = Arc::unwrap_or_clone(shared);
        for (name, value) in &self.own {
            list.push(name, value);
        }
        list
    }

    /// Appends them to a head of HTTP/1, without those that are not valid.
    pub(crate) fn write(&self, head: &mut ResponseWriter<'_>) {
        for list in self.lists() {
            if let Some(lines) = list.lines() {
                head.lines(lines);
                continue;
            }
            for (name, value) in list {
                head.field(name, value).ok();
            }
        }
    }
}
