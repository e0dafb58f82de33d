//! Resources: the schemas of what plimsoll reads and prints, and the pages of its documentation.

use rmcp::model::{Resource, ResourceContents};

use super::pages::PAGES;

/// A JSON Schema of schemas/.
#[derive(Debug)]
struct Schema {
    /// Its name without `.json`.
    name: &'static str,
    text: &'static str,
}

macro_rules! schema {
    ($name:literal) => {
        Schema {
            name: $name,
            text: include_str!(concat!("../../../../../schemas/", $name, ".json")),
        }
    };
}

const SCHEMAS: &[Schema] = &[
    schema!("chaos.v1"),
    schema!("check.v1"),
    schema!("compare-rates.v1"),
    schema!("compare.v1"),
    schema!("cost.v1"),
    schema!("lab.v1"),
    schema!("line.v1"),
    schema!("load-plan.v1"),
    schema!("load-summary.v1"),
    schema!("loadtest.v1"),
    schema!("mock-admin.v1"),
    schema!("mock-match.v1"),
    schema!("monitor.v1"),
    schema!("observe.v1"),
    schema!("server.v1"),
    schema!("soak.v1"),
    schema!("trend.v1"),
];

const SCHEMA_URI: &str = "plimsoll://schemas/";
const PAGE_URI: &str = "plimsoll://docs/";

/// All of them.
pub(super) fn list() -> Vec<Resource> {
    let schemas = SCHEMAS.iter().map(|schema| {
        let title = format!("JSON Schema {}", schema.name);
        Resource::new(format!("{SCHEMA_URI}{}", schema.name), schema.name)
            .with_title(title)
            .with_mime_type("application/schema+json")
            .with_size(schema.text.len() as u64)
    });
    let pages = PAGES.iter().map(|page| {
        let heading = page.text.lines().next().unwrap_or_default();
        Resource::new(format!("{PAGE_URI}{}", page.name), page.name)
            .with_title(heading.trim_start_matches("# "))
            .with_mime_type("text/markdown")
            .with_size(page.text.len() as u64)
    });
    schemas.chain(pages).collect()
}

/// The content of one; absent if there is none.
pub(super) fn read(uri: &str) -> Option<ResourceContents> {
    let (text, kind) = if let Some(name) = uri.strip_prefix(SCHEMA_URI) {
        let schema = SCHEMAS.iter().find(|schema| schema.name == name)?;
        (schema.text, "application/schema+json")
    } else {
        let name = uri.strip_prefix(PAGE_URI)?;
        let page = PAGES.iter().find(|page| page.name == name)?;
        (page.text, "text/markdown")
    };
    Some(ResourceContents::text(text, uri).with_mime_type(kind))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    #[test]
    fn every_schema_is_a_resource() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schemas");
        let mut names: Vec<_> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter_map(|name| name.strip_suffix(".json").map(str::to_owned))
            .collect();
        names.sort();
        let known: Vec<_> = SCHEMAS.iter().map(|schema| schema.name).collect();
        assert_eq!(known, names);
    }

    #[test]
    fn every_listed_resource_can_be_read_and_no_other() {
        let listed = list();
        assert!(listed.len() > 40, "{}", listed.len());
        for resource in listed {
            assert!(read(&resource.uri).is_some(), "{}", resource.uri);
        }
        for uri in [
            "plimsoll://docs/../secret",
            "plimsoll://docs/",
            "plimsoll://schemas/server.v1.json",
            "file:///etc/passwd",
            "",
        ] {
            assert!(read(uri).is_none(), "{uri}");
        }
    }
}
