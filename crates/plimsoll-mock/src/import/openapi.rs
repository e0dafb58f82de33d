//! OpenAPI documents: they answer as they are.

use std::path::Path;

use super::entry::Table;
use super::{FileRemark, Importer, about};
use crate::openapi::{OpenApi, OpenApiOptions};

impl Importer {
    /// The operations of a document.
    pub(super) fn openapi(&mut self, path: &Path) -> Result<(), Vec<FileRemark>> {
        let text = self.text_of(path)?;
        let options = OpenApiOptions {
            validates: true,
            is_dynamic: false,
            seed: 0,
        };
        let (openapi, left_out) = OpenApi::new(path, &text, "", options).map_err(|reported| {
            reported
                .into_iter()
                .map(|it| about(path, it))
                .collect::<Vec<_>>()
        })?;
        for remark in left_out {
            self.note(path, remark);
        }
        let mut table = Table::new();
        let name = path.file_name().unwrap_or_default();
        table.push("file", name.to_string_lossy().into_owned());
        self.imported.rules = openapi.operations();
        self.imported.draft.names_files = true;
        self.imported.draft.more.push(("[[openapi]]", table));
        Ok(())
    }
}
