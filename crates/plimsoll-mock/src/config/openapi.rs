//! `[[openapi]]`: a document whose operations are answered.

use plimsoll_model::document::{Table, as_text};

use super::set::Context;
use crate::openapi::{OpenApi, OpenApiOptions};

pub(super) fn compile(mut table: Table<'_>, context: &Context) -> Option<OpenApi> {
    let options = OpenApiOptions {
        validates: table.boolean("validate").unwrap_or(true),
        is_dynamic: table.boolean("dynamic").unwrap_or(false),
        seed: table
            .integer("seed", 0..=i64::MAX)
            .map_or(0, i64::cast_unsigned),
    };
    let file = table.take("file");
    if file.is_none() {
        table.missing("file", "an OpenAPI document");
    }
    table.finish();
    let value = file?;
    let path = context.root.clone()?.join(as_text(&value)?);
    let text = std::fs::read_to_string(&path)
        .map_err(|error| format!("cannot read {}: {error}", path.display()));
    let text = value.check(text)?;
    let prefix = context.prefix.as_deref().unwrap_or_default();
    match OpenApi::new(&path, &text, prefix, options) {
        // Ignored parts are reported by `mock import`.
        Ok((openapi, _)) => Some(openapi),
        Err(remarks) => {
            for remark in remarks {
                let message = format!("{}{}: {}", path.display(), remark.place, remark.message);
                value.wrong::<()>(message);
            }
            None
        }
    }
}
