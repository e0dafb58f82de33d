//! `[[openapi]]`: a document whose operations are answered.

use plimsoll_model::document::{Table, as_text};

use super::set::Context;
use crate::openapi::{CallbackHosts, DocumentSettings, OpenApi, OpenApiOptions};

pub(super) fn compile(mut table: Table<'_>, context: &Context) -> Option<OpenApi> {
    let options = OpenApiOptions {
        validates: table.boolean("validate").unwrap_or(true),
        is_dynamic: table.boolean("dynamic").unwrap_or(false),
        seed: table
            .integer("seed", 0..=i64::MAX)
            .map_or(0, i64::cast_unsigned),
    };
    let hosts = callback_hosts(&mut table);
    let file = table.take_value("file");
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
        Ok((mut openapi, _)) => {
            openapi.override_settings(&DocumentSettings {
                validates: None,
                callbacks: hosts,
            });
            Some(openapi)
        }
        Err(remarks) => {
            for remark in remarks {
                let message = format!("{}{}: {}", path.display(), remark.place, remark.message);
                value.wrong::<()>(message);
            }
            None
        }
    }
}

/// `callbacks`: the hosts that callbacks may be sent to.
pub(super) fn callback_hosts(table: &mut Table<'_>) -> Option<CallbackHosts> {
    let value = table.take_value("callbacks")?;
    let names = value.texts_with(|name| {
        let hosts = CallbackHosts::new(&[name.to_owned()]);
        hosts.err().map(|error| error.to_string())
    })?;
    CallbackHosts::new(&names).ok()
}
