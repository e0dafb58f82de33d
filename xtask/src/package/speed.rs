//! Which crates the packaged program has for speed, and which for size.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::cannot;
use crate::Failure;

/// The crates that requests, iterations of scripts, checks and status pages run through. They are as fast as in `dist`; all
/// others are made small. That takes 2 % off the program: most of it is generic code within these, and its tables for unwinding.
const FAST: [&str; 62] = [
    "aho-corasick",
    "atomic-waker",
    "base64",
    "brotli",
    "bytes",
    "corosensei",
    "crc32fast",
    "crossbeam-channel",
    "flate2",
    "foldhash",
    "futures-channel",
    "futures-core",
    "futures-util",
    "h2",
    "h3",
    "h3-quinn",
    "hashbrown",
    "hdrhistogram",
    "http",
    "http-body",
    "http-body-util",
    "httparse",
    "indexmap",
    "itoa",
    "libsqlite3-sys",
    "linux-raw-sys",
    "memchr",
    "miniz_oxide",
    "mio",
    "parking_lot",
    "parking_lot_core",
    "percent-encoding",
    "plimsoll-client",
    "plimsoll-gateway",
    "plimsoll-k6",
    "plimsoll-load",
    "plimsoll-mock",
    "plimsoll-model",
    "plimsoll-monitor",
    "plimsoll-monitor-web",
    "plimsoll-script",
    "plimsoll-server",
    "plimsoll-site",
    "plimsoll-wire",
    "quinn",
    "quinn-proto",
    "quinn-udp",
    "regex-automata",
    "ring",
    "rquickjs-core",
    "rquickjs-sys",
    "rusqlite",
    "rustix",
    "rustls",
    "serde_json",
    "sha2",
    "slab",
    "smallvec",
    "socket2",
    "tokio",
    "tokio-rustls",
    "zstd-sys",
];

/// How Cargo compiles them, as values of its `--config`.
pub(super) fn settings(root: &Path) -> Result<Vec<String>, Failure> {
    let file = root.join("Cargo.toml");
    let text = fs::read_to_string(&file).map_err(|error| cannot("read", &file, &error))?;
    let manifest: toml::Table = toml::from_str(&text).map_err(|error| error.to_string())?;
    // `dist` inherits from `release`. A level that the manifest gives to a crate would go before the one for all.
    let named: BTreeSet<_> = ["release", "dist"]
        .into_iter()
        .filter_map(|profile| manifest["profile"][profile].get("package")?.as_table())
        .flat_map(toml::Table::keys)
        .map(String::as_str)
        .collect();
    let small = named.into_iter().filter(|name| !FAST.contains(name));
    let small = small.map(|name| level(name, "\"s\""));
    let fast = FAST.into_iter().map(|name| level(name, "3"));
    let all = "profile.dist.opt-level=\"s\"".to_owned();
    Ok(std::iter::once(all).chain(small).chain(fast).collect())
}

fn level(name: &str, level: &str) -> String {
    format!("profile.dist.package.\"{name}\".opt-level={level}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fast_crates_are_those_of_the_lock_file() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let lock = fs::read_to_string(root.join("Cargo.lock")).expect("the lock file");
        let missing: Vec<_> = FAST
            .into_iter()
            .filter(|name| !lock.contains(&format!("\nname = \"{name}\"\n")))
            .collect();
        assert_eq!(missing, Vec::<&str>::new());
    }

    #[test]
    fn a_level_of_the_manifest_gives_way() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let settings = settings(&root).expect("settings");
        let level_of = |name: &str| {
            let start = format!("profile.dist.package.\"{name}\".opt-level=");
            let mut found = settings.iter().filter_map(|it| it.strip_prefix(&start));
            (found.next(), found.next())
        };
        assert_eq!(level_of("plimsoll-report"), (Some("\"s\""), None));
        assert_eq!(level_of("libsqlite3-sys"), (Some("3"), None));
    }
}
