//! Targets of `blackbox_exporter`: lists of `targets` with `labels`, by service discovery from files.

use plimsoll_model::document::toml_string;
use serde_json::Value;

use crate::config::import::{Imported, text_of};

pub(super) fn import(groups: &[Value]) -> Imported {
    let mut imported = Imported::default();
    let mut taken = Vec::new();
    for entry in groups {
        let labels = entry.get("labels").unwrap_or(&Value::Null);
        let module = ["module", "__param_module"]
            .iter()
            .find_map(|name| text_of(labels, name));
        let group = text_of(labels, "job").unwrap_or_default();
        let targets = entry.get("targets").and_then(Value::as_array);
        for target in targets.into_iter().flatten().filter_map(Value::as_str) {
            let Some((kind, written)) = kind_of(module, target) else {
                let module = module.unwrap_or_default();
                imported.remark(
                    target,
                    format_args!("is left out: the module `{module}` is not supported"),
                );
                continue;
            };
            imported.begin(target, group, &mut taken);
            imported.pair(kind, &toml_string(&written));
            for (name, value) in labels.as_object().into_iter().flatten() {
                let is_plain =
                    !name.starts_with("__") && !["module", "job"].contains(&name.as_str());
                if let Some(value) = value.as_str().filter(|_| is_plain) {
                    imported.line(format_args!("labels.{name} = {}", toml_string(value)));
                }
            }
        }
    }
    imported
}

/// By the beginning of the module's name, as those of the example configuration are called.
fn kind_of(module: Option<&str>, target: &str) -> Option<(&'static str, String)> {
    let is_url = target.starts_with("http://") || target.starts_with("https://");
    match module.unwrap_or("http_2xx") {
        module if module.starts_with("http") => {
            let url = if is_url {
                target.to_owned()
            } else {
                format!("http://{target}")
            };
            Some(("http", url))
        }
        module if module.starts_with("tcp") => Some(("tcp", target.to_owned())),
        module if module.starts_with("icmp") => Some(("icmp", target.to_owned())),
        module if module.starts_with("ssh") => Some(("ssh", target.to_owned())),
        "grpc" => Some(("grpc", format!("grpcs://{target}"))),
        "grpc_plain" => Some(("grpc", format!("grpc://{target}"))),
        _ => None,
    }
}
