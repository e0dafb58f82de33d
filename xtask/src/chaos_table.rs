//! The table of hostile clients: what the tests of `plimsoll chaos` have found.

use std::fs;
use std::path::Path;

/// What a test writes, separated by tabs.
const COLUMNS: [&str; 7] = [
    "class",
    "refused by",
    "count",
    "MB before",
    "at most",
    "after",
    "healthy p99, ms",
];

/// Forgets what earlier tests found.
pub(crate) fn clear(folder: &Path) {
    // Where there is none, there is nothing to forget.
    fs::remove_dir_all(folder).ok();
}

/// The table of the rows in `folder`; empty if none were written.
pub(crate) fn table(folder: &Path) -> String {
    let Ok(entries) = fs::read_dir(folder) else {
        return String::new();
    };
    let mut rows: Vec<Vec<String>> = entries
        .filter_map(|entry| fs::read_to_string(entry.ok()?.path()).ok())
        .map(|row| row.trim_end().split('\t').map(str::to_owned).collect())
        .collect();
    rows.sort();
    rows.insert(0, COLUMNS.map(str::to_owned).into());
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(String::len).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..COLUMNS.len()).map(width).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).enumerate();
        let cells = cells.map(|(column, (cell, &width))| match column {
            0 | 1 => format!("{cell:<width$}"),
            _ => format!("{cell:>width$}"),
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_sorted_and_aligned() {
        let folder = std::env::temp_dir().join(format!("chaos-table-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        fs::write(
            folder.join("b"),
            "ping-flood\thttp2_pings\t47\t6.0\t7.0\t6.5\t12.1\n",
        )
        .unwrap();
        fs::write(folder.join("a"), "a\tb\t1\t6.0\t70.0\t6.5\t2.1\n").unwrap();
        let found = table(&folder);
        clear(&folder);
        assert_eq!(table(&folder), "");
        let lines: Vec<&str> = found.lines().collect();
        assert_eq!(lines.len(), 3);
        assert!(lines[1].starts_with("a           b            "), "{found}");
        assert!(lines[2].ends_with("  12.1"), "{found}");
        assert_eq!(lines[1].len(), lines[2].len());
    }
}
