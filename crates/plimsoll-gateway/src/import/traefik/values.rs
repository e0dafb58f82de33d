//! Values of Traefik as those of `plimsoll up`.

use plimsoll_formats::yaml::{Content, Node};
use plimsoll_model::document::toml_string;
use plimsoll_model::{parse_byte_size, parse_duration};

/// A duration of Go, or a number of seconds, as a TOML text.
pub(super) fn duration(text: &str) -> Option<String> {
    let text = text.trim();
    let text = match text.parse::<u64>() {
        Ok(seconds) => format!("{seconds}s"),
        Err(_) => text.to_owned(),
    };
    parse_duration(&text).ok()?;
    Some(toml_string(&text))
}

/// A number of bytes as a TOML text; `None` for none or no limit.
pub(super) fn size(text: &str) -> Option<String> {
    let bytes = text.trim().parse::<u64>().ok().filter(|it| *it > 0)?;
    let text = format!("{bytes}B");
    parse_byte_size(&text).ok()?;
    Some(toml_string(&text))
}

/// The texts of a list; of labels also with commas between them, or with a number for each.
pub(super) fn list(node: &Node) -> Vec<String> {
    match &node.content {
        Content::Map(entries) => {
            let texts = entries.iter().filter_map(|(_, it)| it.text());
            texts.map(str::to_owned).collect()
        }
        _ => node.texts(),
    }
}
