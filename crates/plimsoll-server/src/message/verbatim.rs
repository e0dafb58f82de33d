//! Fields of a response that are sent as they are.

use std::sync::Arc;

use plimsoll_wire::h1::{FieldLines, ResponseWriter};
use plimsoll_wire::http::FieldList;

/// Fields that stand before those of the map: what many responses have in common, then a list of this one.
#[derive(Debug, Clone, Default)]
pub(crate) struct Verbatim {
    shared: Option<Arc<FieldLines>>,
    own: FieldList,
}

impl From<FieldList> for Verbatim {
    fn from(own: FieldList) -> Self {
        Self { shared: None, own }
    }
}

impl Verbatim {
    pub(crate) fn new(shared: Arc<FieldLines>, own: FieldList) -> Self {
        Self {
            shared: Some(shared),
            own,
        }
    }

    fn shared(&self) -> Option<&FieldList> {
        self.shared.as_ref().map(|shared| shared.list())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.own.is_empty() && self.shared().is_none_or(FieldList::is_empty)
    }

    /// Whether there is a field of that name, whatever its case.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.own.get(name).is_some() || self.shared().is_some_and(|it| it.get(name).is_some())
    }

    /// All of them as one list.
    pub(crate) fn into_list(self) -> FieldList {
        let Some(shared) = self.shared else {
            return self.own;
        };
        let mut list = shared.list().clone();
        for (name, value) in &self.own {
            list.push(name, value);
        }
        list
    }

    /// Appends them to a head of HTTP/1, without those that are not valid.
    pub(crate) fn write(&self, head: &mut ResponseWriter<'_>) {
        if let Some(shared) = &self.shared {
            head.lines(shared.lines());
        }
        for (name, value) in &self.own {
            head.field(name, value).ok();
        }
    }
}
