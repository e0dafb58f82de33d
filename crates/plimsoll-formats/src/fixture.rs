//! For tests: what was understood of a file, as text.

use crate::{Remark, RequestFile};

/// A request a paragraph and what was left out, or what is wrong.
pub(crate) fn report(parsed: Result<RequestFile, Vec<Remark>>) -> String {
    let mut lines = Vec::new();
    let remarks = match parsed {
        Err(problems) => problems,
        Ok(file) => {
            for (name, value) in &file.variables {
                lines.push(format!("@{name} = {value}"));
            }
            for request in &file.requests {
                let method = request.method.as_deref().unwrap_or("-");
                let mut line = format!("{method} {}{}", request.url, request.place);
                if let Some(name) = &request.name {
                    line = format!("{line} ({name})");
                }
                if !request.tags.is_empty() {
                    line = format!("{line} [{}]", request.tags.join(" "));
                }
                if request.weight != 1 {
                    line = format!("{line} × {}", request.weight);
                }
                lines.push(line);
                for (name, value) in &request.headers {
                    lines.push(format!("  {name}: {value}"));
                }
                if let Some(body) = &request.body {
                    lines.push(format!("  {:?}", body.to_string()));
                }
            }
            file.left_out
        }
    };
    for remark in remarks {
        lines.push(format!("{} {}", remark.place, remark.message));
        lines.extend(remark.hint.map(|hint| format!("   hint: {hint}")));
    }
    lines.join("\n")
}
