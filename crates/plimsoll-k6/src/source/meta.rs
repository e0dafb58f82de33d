//! `import.meta.resolve()`, for modules that call it.
//!
//! It is added before the first line, so that lines in errors stay what they are.

use std::path::Path;
use std::sync::Arc;

/// The function; `BASE` stands for the URL of the module. Other specifiers than paths stay as they are.
const RESOLVE: &str = "import.meta.resolve = (name) => { \
    if (!/^\\.{0,2}\\//.test(name)) return String(name); \
    const [, root, path] = /^(\\w+:\\/\\/[^/]*)(.*)$/.exec(BASE); \
    const parts = []; \
    for (const part of (name.startsWith('/') ? name : path.replace(/[^/]*$/, name)).split('/')) { \
    if (part === '..') parts.pop(); else if (part !== '' && part !== '.') parts.push(part); } \
    return `${root}/${parts.join('/')}`; }; ";

/// The text of the module `name` with the function, if it needs that.
pub(crate) fn with_resolve(name: &str, text: Arc<str>) -> Arc<str> {
    let is_json = Path::new(name).extension().is_some_and(|it| it == "json");
    if is_json || !text.contains("import.meta.resolve") {
        return text;
    }
    let url = if name.contains("://") {
        name.to_owned()
    } else {
        format!("file://{name}")
    };
    let base = serde_json::Value::from(url).to_string();
    Arc::from(format!("{}{text}", RESOLVE.replace("BASE", &base)))
}
