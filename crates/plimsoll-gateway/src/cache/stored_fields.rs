//! The fields of a stored response: as they are sent, and to be looked at.

use std::sync::{Arc, OnceLock};

use http::HeaderMap;
use http::header::{AGE, CONTENT_LENGTH, HeaderName, UPGRADE};
use plimsoll_model::FieldClass;
use plimsoll_wire::http::FieldList;

use super::entry::CACHE_STATUS;

/// Fields of a response. Most hits send them and look at none.
#[derive(Debug)]
pub(super) struct StoredFields {
    sent: Arc<FieldList>,
    others: FieldList,
    map: OnceLock<HeaderMap>,
}

impl StoredFields {
    pub(super) fn new(fields: &HeaderMap) -> Self {
        let (mut sent, mut others) = (FieldList::new(), FieldList::new());
        for (name, value) in fields {
            let list = if is_sent(name) {
                &mut sent
            } else {
                &mut others
            };
            list.push_valid(name.as_str().as_bytes(), value.as_bytes());
        }
        Self::restored(sent.into_valid(), others)
    }

    /// Those of a response that was kept.
    pub(super) fn restored(sent: FieldList, others: FieldList) -> Self {
        Self {
            sent: Arc::new(sent),
            others,
            map: OnceLock::new(),
        }
    }

    /// Those that clients get, but for those that are other ones for each of them: `Age`, `Cache-Status` and those of
    /// connections.
    pub(super) fn sent(&self) -> &Arc<FieldList> {
        &self.sent
    }

    /// The rest of what the server sent.
    pub(super) fn others(&self) -> &FieldList {
        &self.others
    }

    /// All of them.
    pub(super) fn map(&self) -> &HeaderMap {
        self.map.get_or_init(|| {
            let mut all = FieldList::clone(&self.sent);
            for (name, value) in &self.others {
                all.push(name, value);
            }
            all.into_map()
        })
    }

    /// Bytes that they take.
    pub(super) fn size(&self) -> usize {
        const FIELD: usize = 64;
        let fields = self.sent.iter().chain(&self.others);
        fields
            .map(|(name, value)| name.len() + value.len() + FIELD)
            .sum()
    }
}

fn is_sent(name: &HeaderName) -> bool {
    let class = FieldClass::from_name(name.as_str().as_bytes());
    let is_of_connection = class.is_connection_specific() && name != UPGRADE;
    !is_of_connection && ![AGE, CACHE_STATUS, CONTENT_LENGTH].contains(name)
}
