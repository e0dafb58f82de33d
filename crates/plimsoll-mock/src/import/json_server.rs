//! Files of json-server: their lists answer as collections.

use std::path::Path;

use plimsoll_formats::{Place, Remark};
use serde_json::Value;

use super::entry::Table;
use super::{FileRemark, Importer, about};
use crate::store::collection::nameless;

/// Rows that are named in a note.
const MOST_ROWS: usize = 5;

impl Importer {
    /// The lists of a `db.json`.
    pub(super) fn json_server(&mut self, path: &Path) -> Result<(), Vec<FileRemark>> {
        let text = self.text_of(path)?;
        let text = text.trim_start_matches('\u{feff}');
        let value: Value = serde_json::from_str(text).map_err(|error| {
            let remark = Remark::line(error.line(), format!("is not JSON: {error}"));
            vec![about(path, remark)]
        })?;
        for (name, table) in value.as_object().into_iter().flatten() {
            if let Some(message) = doubt(table) {
                self.note(path, Remark::new(Place::Key(name.clone()), message));
            }
        }
        self.imported.rules = value.as_object().map_or(0, serde_json::Map::len);
        let mut table = Table::new();
        table.push("path", "/");
        let name = path.file_name().unwrap_or_default();
        table.push("file", name.to_string_lossy().into_owned());
        self.imported.draft.names_files = true;
        self.imported.draft.more.push(("[[collections]]", table));
        Ok(())
    }
}

/// What of a list or a value does not answer as one would expect.
fn doubt(table: &Value) -> Option<String> {
    let Value::Array(rows) = table else {
        let is_other = !table.is_object();
        return is_other.then(|| "is neither a list nor an object: it is only read".to_owned());
    };
    let nameless = nameless(rows, "id");
    let shown = nameless.iter().take(MOST_ROWS).map(usize::to_string);
    let shown = shown.collect::<Vec<_>>().join(", ");
    let more = if nameless.len() > MOST_ROWS {
        ", …"
    } else {
        ""
    };
    let rows = if nameless.len() == 1 { "row" } else { "rows" };
    (!nameless.is_empty()).then(|| {
        format!("{rows} {shown}{more} without an `id` of their own: they are listed, but no path names them")
    })
}
