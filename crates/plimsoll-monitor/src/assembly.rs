//! The parts put together. Lower parts do not know upper ones: what pages have run beside the checks is given to the engine here.

use std::sync::Arc;

use crate::config::Plan;
use crate::engine::{Monitor, StartError};
use crate::page::subscribe;
use crate::store::Store;

impl Monitor {
    /// Starts to monitor what the plan says; returns once the state of the last run is restored.
    ///
    /// - `notice`: receives what an operator should see, such as a store that does not take data.
    pub fn start(
        plan: Plan,
        store: Arc<dyn Store>,
        notice: Arc<dyn Fn(&str) + Send + Sync>,
    ) -> Result<Self, StartError> {
        Self::start_with(plan, store, notice, &subscribe::TASKS)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};

    /// What serves readers and operators; everything else is below it.
    const UPPER: [&str; 3] = ["admin", "api", "page"];

    fn files(folder: &Path) -> Vec<PathBuf> {
        let entries = fs::read_dir(folder).unwrap();
        let paths = entries.map(|entry| entry.unwrap().path());
        let of_path = |path: PathBuf| {
            if path.is_dir() {
                files(&path)
            } else {
                vec![path]
            }
        };
        paths.flat_map(of_path).collect()
    }

    #[test]
    fn lower_parts_import_no_upper_ones() {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let mut looked_at = 0;
        for path in files(&source) {
            let place = path.strip_prefix(&source).unwrap();
            let part = place.iter().next().unwrap().to_str().unwrap();
            let part = part.trim_end_matches(".rs");
            if UPPER.contains(&part) || ["assembly", "lib"].contains(&part) {
                continue;
            }
            looked_at += 1;
            let text = fs::read_to_string(&path).unwrap_or_default();
            for upper in UPPER {
                assert!(
                    !text.contains(&format!("crate::{upper}")),
                    "{} is below `{upper}`, and imports it",
                    place.display()
                );
            }
        }
        assert!(looked_at > 100, "{looked_at} files");
    }
}
