//! Files of json-server: their lists answer as collections.

use std::path::Path;

use plimsoll_formats::Remark;
use serde_json::Value;

use super::entry::Table;
use super::{FileRemark, Importer, about};

impl Importer {
    /// The lists of a `db.json`.
    pub(super) fn json_server(&mut self, path: &Path) -> Result<(), Vec<FileRemark>> {
        let text = self.text_of(path)?;
        let text = text.trim_start_matches('\u{feff}');
        let value: Value = serde_json::from_str(text).map_err(|error| {
            let remark = Remark::line(error.line(), format!("is not JSON: {error}"));
            vec![about(path, remark)]
        })?;
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
