//! `[[collections]]`: the objects of a JSON file under a path.

use plimsoll_formats::json5_to_json;
use plimsoll_model::document::{Table, as_text};

use super::set::Context;
use crate::collection::Collection;
use crate::path::normalized;

pub(super) fn compile(mut table: Table<'_>, context: &Context) -> Option<Collection> {
    let path = table.text("path").map(|path| {
        let prefix = context.prefix.as_deref().unwrap_or_default();
        normalized(&format!("{prefix}{}", normalized(&path)))
    });
    let id = table.text("id").unwrap_or_else(|| "id".to_owned());
    let persists = table.boolean("persist").unwrap_or(false);
    let file = table.take("file");
    for (key, hint) in [
        ("path", "such as path = \"/users\""),
        ("file", "a file that holds an array of objects"),
    ] {
        if !table.was_given(key) {
            table.missing(key, hint);
        }
    }
    table.finish();
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
    let kept = persists.then(|| found.clone());
    let collection = value.check(Collection::new(path?, id, &json, kept))?;
    Some(collection.of_file(found))
}
