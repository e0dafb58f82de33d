//! The memory mappings of a process: `/proc/PID/maps`, as proc(5) describes it.

use std::path::{Path, PathBuf};

/// A stretch of executable memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mapping {
    pub(super) from: u64,
    pub(super) to: u64,
    /// Offset in the file.
    pub(super) offset: u64,
    /// The file, or a name in brackets such as `[vdso]`; empty for anonymous memory.
    pub(super) path: PathBuf,
}

impl Mapping {
    /// The file as process `pid` sees it, which may have another root; as it is called here, if that
    /// process has ended. None for memory that is no file.
    pub(super) fn file(&self, pid: u32) -> Option<PathBuf> {
        let relative = self.path.strip_prefix("/").ok()?;
        let root = Path::new("/proc").join(pid.to_string()).join("root");
        let seen = root.join(relative);
        Some(if seen.exists() {
            seen
        } else {
            self.path.clone()
        })
    }
}

/// The executable mappings that a file of `/proc/PID/maps` lists; lines of another shape are skipped.
pub(super) fn parse(maps: &str) -> Vec<Mapping> {
    maps.lines().filter_map(line).collect()
}

fn line(line: &str) -> Option<Mapping> {
    let mut fields = line.splitn(6, ' ');
    let (from, to) = fields.next()?.split_once('-')?;
    let permissions = fields.next()?;
    let offset = fields.next()?;
    let path = fields.nth(2).unwrap_or_default().trim_start();
    // The kernel says so of files that are replaced while they run.
    let path = path.strip_suffix(" (deleted)").unwrap_or(path);
    let hex = |text: &str| u64::from_str_radix(text, 16).ok();
    permissions.contains('x').then_some(Mapping {
        from: hex(from)?,
        to: hex(to)?,
        offset: hex(offset)?,
        path: PathBuf::from(path),
    })
}

/// Adds what is new in `found`; what was mapped once may still be in samples.
pub(super) fn merge(known: &mut Vec<Mapping>, found: Vec<Mapping>) {
    for mapping in found {
        if !known.contains(&mapping) {
            known.push(mapping);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn executable_mappings_are_read() {
        let maps = "\
55d0c0000000-55d0c0010000 r--p 00000000 fe:00 123                        /usr/sbin/nginx
55d0c0010000-55d0c00f0000 r-xp 00010000 fe:00 123                        /usr/sbin/nginx
7f0000000000-7f0000001000 r-xp 00000000 fe:00 9                          /opt/a b/lib.so (deleted)
7f0000002000-7f0000003000 rwxp 00000000 00:00 0
7ffc00000000-7ffc00002000 r-xp 00000000 00:00 0                          [vdso]
nonsense
";
        let found: Vec<_> = parse(maps)
            .into_iter()
            .map(|mapping| (mapping.from, mapping.offset, mapping.path))
            .collect();
        let expected = [
            (0x55d0_c001_0000, 0x10000, PathBuf::from("/usr/sbin/nginx")),
            (0x7f00_0000_0000, 0, PathBuf::from("/opt/a b/lib.so")),
            (0x7f00_0000_2000, 0, PathBuf::new()),
            (0x7ffc_0000_0000, 0, PathBuf::from("[vdso]")),
        ];
        assert_eq!(found, expected);
    }
}
