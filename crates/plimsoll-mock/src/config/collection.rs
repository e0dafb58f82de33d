//! `[[collections]]`: the objects of a JSON file under a path, or several lists of them under their names.

use plimsoll_formats::json5_to_json;
use plimsoll_model::document::{Table, as_text};

use super::set::Context;
use crate::rules::path::normalized;
use crate::store::collection::{Collection, CollectionOptions, MOST_BYTES};

pub(super) fn compile(mut table: Table<'_>, context: &Context) -> Option<Vec<Collection>> {
    let path = table.text("path").map(|path| {
        let prefix = context.prefix.as_deref().unwrap_or_default();
        normalized(&format!("{prefix}{}", normalized(&path)))
    });
    let id = table.text("id").unwrap_or_else(|| "id".to_owned());
    let persists = table.boolean("persist").unwrap_or(false);
    let most_bytes = table.bytes("max_size").unwrap_or(MOST_BYTES);
    let file = table.take_value("file");
    let data = table.take_value("data");
    if !table.was_given("path") {
        table.missing("path", "such as path = \"/users\"");
    }
    match (&file, &data) {
        (None, None) => {
            let hint = "a file with an array of objects, or an object of such arrays";
            table.missing("file", hint);
        }
        (Some(_), Some(_)) => table.wrong("both `file` and `data` are given", None),
        _ => {}
    }
    if persists && data.is_some() {
        table.wrong("only a `file` persists", None);
    }
    table.finish();
    if let Some(value) = data {
        let json = json5_to_json(as_text(&value)?).map_err(|it| it.to_string());
        let json = value.check(json)?;
        let options = CollectionOptions {
            path: path?,
            id,
            most_bytes,
            kept: None,
            source: None,
        };
        return value.check(Collection::all_of(options, &json));
    }
    let value = file?;
    let name = as_text(&value)?;
    let root = context.root.clone()?;
    let place = root.join(name.trim_start_matches('/'));
    let Some(found) = place
        .canonicalize()
        .ok()
        .filter(|found| found.starts_with(&root))
    else {
        return value.wrong(format!(
            "there is no file {} in {}",
            place.display(),
            root.display()
        ));
    };
    let text = std::fs::read_to_string(&found)
        .map_err(|error| format!("cannot read {}: {error}", place.display()));
    let text = value.check(text)?;
    let is_json = found
        .extension()
        .is_some_and(|extension| extension.eq_ignore_ascii_case("json"));
    if persists && !is_json {
        return value.wrong("only a .json file can be written");
    }
    let json = if is_json {
        Ok(text)
    } else {
        json5_to_json(&text).map_err(|it| it.to_string())
    };
    let json = value.check(json)?;
    let options = CollectionOptions {
        path: path?,
        id,
        most_bytes,
        kept: persists.then(|| found.clone()),
        source: Some(found),
    };
    value.check(Collection::all_of(options, &json))
}
