//! Which crates the packaged programs have for speed, and which for size.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::cannot;
use crate::Failure;

/// The crates that requests, iterations of scripts, checks and status pages run through. They are as fast as in `dist`; all
/// others are made small. That takes 2 % off the program: most of it is generic code within these, and its tables for unwinding.
const FAST: [&str; 65] = [
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
    "libmimalloc-sys",
    "libsqlite3-sys",
    "linux-raw-sys",
    "memchr",
    "mimalloc",
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
    "postcard",
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

/// Those that requests for packed sites run through. Each site carries its program, so all others are small.
const FAST_IN_PACKED: [&str; 16] = [
    "bytes",
    "h2",
    "hashbrown",
    "http",
    "httparse",
    "libmimalloc-sys",
    "memchr",
    "mimalloc",
    "mio",
    "plimsoll-server",
    "plimsoll-site",
    "plimsoll-wire",
    "ring",
    "rustls",
    "tokio",
    "tokio-rustls",
];

/// How Cargo compiles the crates of `plimsoll`, as values of its `--config`.
pub(super) fn of_plimsoll(root: &Path) -> Result<Vec<String>, Failure> {
    settings(root, "dist", &FAST)
}

/// Those of `plimsoll-packed`.
pub(super) fn of_packed(root: &Path) -> Result<Vec<String>, Failure> {
    settings(root, "packed", &FAST_IN_PACKED)
}

fn settings(root: &Path, profile: &str, fast: &[&str]) -> Result<Vec<String>, Failure> {
    let file = root.join("Cargo.toml");
    let text = fs::read_to_string(&file).map_err(|error| cannot("read", &file, &error))?;
    let manifest: toml::Table = toml::from_str(&text).map_err(|error| error.to_string())?;
    // `packed` inherits from `dist`, and that from `release`. A level that the manifest gives to a crate would go before the
    // one for all.
    let named: BTreeSet<_> = ["release", "dist", "packed"]
        .into_iter()
        .filter_map(|profile| manifest["profile"][profile].get("package")?.as_table())
        .flat_map(toml::Table::keys)
        .map(String::as_str)
        .collect();
    let level =
        |name: &str, level: &str| format!("profile.{profile}.package.\"{name}\".opt-level={level}");
    let small = named.into_iter().filter(|name| !fast.contains(name));
    let small = small.map(|name| level(name, "\"s\""));
    let fast = fast.iter().map(|name| level(name, "3"));
    let all = format!("profile.{profile}.opt-level=\"s\"");
    Ok(std::iter::once(all).chain(small).chain(fast).collect())
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
            .chain(FAST_IN_PACKED)
            .filter(|name| !lock.contains(&format!("\nname = \"{name}\"\n")))
            .collect();
        assert_eq!(missing, Vec::<&str>::new());
    }

    #[test]
    fn a_level_of_the_manifest_gives_way() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let plimsoll = of_plimsoll(&root).expect("settings");
        let packed = of_packed(&root).expect("settings");
        let level_in = |settings: &[String], profile: &str, name: &str| {
            let start = format!("profile.{profile}.package.\"{name}\".opt-level=");
            let mut found = settings.iter().filter_map(|it| it.strip_prefix(&start));
            (found.next().map(str::to_owned), found.next().is_some())
        };
        let level_of = |name: &str| level_in(&plimsoll, "dist", name);
        let level_of_packed = |name: &str| level_in(&packed, "packed", name);
        let small = (Some("\"s\"".to_owned()), false);
        let fast = (Some("3".to_owned()), false);
        assert_eq!(level_of("plimsoll-report"), small);
        assert_eq!(level_of("libsqlite3-sys"), fast);
        assert_eq!(level_of_packed("plimsoll"), small);
        assert_eq!(level_of_packed("tokio"), fast);
    }
}
