//! From addresses to the names of functions, inlined ones included.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use addr2line::gimli::DW_LANG_Rust;
use addr2line::{Loader, demangle_auto};
use object::{Object as _, ObjectSegment as _, ReadCache};

use super::kernel::KernelSymbols;
use super::mappings::Mapping;
use super::result::{Frame, Origin};

/// Names what was sampled; each file is opened once.
#[derive(Default)]
pub(super) struct Symbols {
    files: HashMap<PathBuf, Option<Binary>>,
    kernel: Option<KernelSymbols>,
    /// Code that was made at run time, by process.
    compiled: HashMap<u32, Compiled>,
    known: HashMap<(PathBuf, u64), Rc<[Frame]>>,
}

struct Binary {
    loader: Loader,
    /// Offset in the file, length, and address as the file means it.
    segments: Vec<(u64, u64, u64)>,
}

impl Symbols {
    /// The kernel's function at `address`.
    pub(super) fn kernel(&mut self, address: u64) -> Frame {
        let symbols = self.kernel.get_or_insert_with(KernelSymbols::load);
        Frame {
            name: symbols.name(address).unwrap_or("[kernel]").to_owned(),
            origin: Origin::Kernel,
        }
    }

    /// The functions at `address` of process `pid`, the innermost first.
    pub(super) fn user(&mut self, pid: u32, mappings: &[Mapping], address: u64) -> Rc<[Frame]> {
        let of = |mapping: &&Mapping| (mapping.from..mapping.to).contains(&address);
        let Some(mapping) = mappings.iter().rfind(of) else {
            return Rc::new([self.compiled(pid, address)]);
        };
        if !mapping.path.is_absolute() {
            let path = mapping.path.to_string_lossy();
            return match path.strip_prefix('[') {
                Some(_) => Rc::new([Frame::user(&path)]),
                None => Rc::new([self.compiled(pid, address)]),
            };
        }
        let offset = address - mapping.from + mapping.offset;
        let key = (mapping.path.clone(), offset);
        if let Some(known) = self.known.get(&key) {
            return Rc::clone(known);
        }
        let binary = self
            .files
            .entry(mapping.path.clone())
            .or_insert_with(|| Binary::read(&mapping.file(pid)?));
        let frames = binary
            .as_ref()
            .and_then(|binary| binary.frames(offset))
            .unwrap_or_else(|| {
                let file = mapping.path.file_name().unwrap_or_default();
                vec![Frame::user(&format!("[{}]", file.to_string_lossy()))]
            });
        let frames: Rc<[Frame]> = frames.into();
        self.known.insert(key, Rc::clone(&frames));
        frames
    }

    fn compiled(&mut self, pid: u32, address: u64) -> Frame {
        let compiled = self
            .compiled
            .entry(pid)
            .or_insert_with(|| Compiled::load(pid));
        Frame::user(compiled.name(address).unwrap_or("[unknown]"))
    }
}

impl Binary {
    fn read(path: &Path) -> Option<Self> {
        let cache = ReadCache::new(File::open(path).ok()?);
        let object = object::File::parse(&cache).ok()?;
        let segments = object.segments().map(|segment| {
            let (offset, length) = segment.file_range();
            (offset, length, segment.address())
        });
        let separate = object.build_id().ok().flatten().and_then(debug_file);
        let separate = separate.and_then(|path| Loader::new(path).ok());
        Some(Self {
            segments: segments.collect(),
            loader: match separate {
                Some(loader) => loader,
                None => Loader::new(path).ok()?,
            },
        })
    }

    /// The functions at an offset of the file, the innermost first.
    fn frames(&self, offset: u64) -> Option<Vec<Frame>> {
        let (from, _, address) = self
            .segments
            .iter()
            .find(|(from, length, _)| (*from..from + length).contains(&offset))?;
        let address = offset - from + address;
        let mut frames = Vec::new();
        if let Ok(mut found) = self.loader.find_frames(address) {
            while let Ok(Some(frame)) = found.next() {
                if let Some(function) = frame.function
                    && let Ok(name) = function.demangle()
                {
                    let is_rust = function.language == Some(DW_LANG_Rust);
                    let name = if is_rust { without_types(&name) } else { &name };
                    frames.push(Frame::user(name));
                }
            }
        }
        let symbol = self.loader.find_symbol(address);
        let symbol = symbol.map(|name| demangle_auto(name.into(), None));
        match (frames.last_mut(), symbol) {
            // Line tables alone may leave out the path.
            (Some(frame), Some(symbol)) if symbol.ends_with(&frame.name) => {
                frame.name = symbol.into_owned();
            }
            (None, Some(symbol)) => frames.push(Frame::user(&symbol)),
            (None, None) => return None,
            _ => {}
        }
        Some(frames)
    }
}

/// `poll` of `poll<Future, Arc<Handle>>`: the name of an inlined Rust function lists the types that it was
/// made for, which may take a thousand characters.
fn without_types(name: &str) -> &str {
    match name.split_once('<') {
        Some((name, _)) if !name.is_empty() => name,
        _ => name,
    }
}

/// Folder of the symbols that distributions strip from programs.
fn debug_file(build_id: &[u8]) -> Option<PathBuf> {
    let (first, rest) = build_id.split_first()?;
    let mut path = format!("/usr/lib/debug/.build-id/{first:02x}/");
    for byte in rest {
        write!(path, "{byte:02x}").ok()?;
    }
    path.push_str(".debug");
    Some(PathBuf::from(path))
}

/// The file in which a runtime writes the functions that it compiles in process `pid`: in a container it has another folder
/// `/tmp`, and another number for itself.
pub(super) fn jit_map(pid: u32) -> PathBuf {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"));
    let own = status.ok().and_then(|status| innermost_pid(&status));
    let own = own.map(|own| PathBuf::from(format!("/proc/{pid}/root/tmp/perf-{own}.map")));
    // A link in a container would lead to a file of this machine.
    own.filter(|map| std::fs::symlink_metadata(map).is_ok_and(|found| found.is_file()))
        .unwrap_or_else(|| PathBuf::from(format!("/tmp/perf-{pid}.map")))
}

/// The number that a process has for itself, by its file `status` (proc(5), "`NSpid`").
fn innermost_pid(status: &str) -> Option<u32> {
    let numbers = status
        .lines()
        .find_map(|line| line.strip_prefix("NSpid:"))?;
    numbers.split_whitespace().last()?.parse().ok()
}

/// Bytes of a map that are read: a program writes it, and may go on for ever.
const MOST_OF_MAP: u64 = 64 << 20;

/// The symbols that a just-in-time compiler writes into its [map](jit_map): lines of `START LENGTH NAME` in
/// hexadecimal numbers (Linux, tools/perf/Documentation/jit-interface.txt).
#[derive(Debug, Default)]
struct Compiled(Vec<(u64, u64, String)>);

impl Compiled {
    fn load(pid: u32) -> Self {
        let mut map = String::new();
        if let Ok(file) = File::open(jit_map(pid)) {
            // Entries before the first invalid line still name functions.
            file.take(MOST_OF_MAP).read_to_string(&mut map).ok();
        }
        Self::parse(&map)
    }

    fn parse(map: &str) -> Self {
        let function = |line: &str| {
            let mut fields = line.splitn(3, ' ');
            let from = u64::from_str_radix(fields.next()?, 16).ok()?;
            let length = u64::from_str_radix(fields.next()?, 16).ok()?;
            Some((from, from.checked_add(length)?, fields.next()?.to_owned()))
        };
        Self(map.lines().filter_map(function).collect())
    }

    /// The last one written for it: code is replaced.
    fn name(&self, address: u64) -> Option<&str> {
        let of = |(from, to, _): &&(u64, u64, String)| (*from..*to).contains(&address);
        let (_, _, name) = self.0.iter().rfind(of)?;
        Some(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_in_the_innermost_namespace_names_the_map() {
        let status = "Name:\tnode\nNSpid:\t4711\t23\t1\nNSpgid:\t4711\t23\t1\n";
        assert_eq!(innermost_pid(status), Some(1));
        assert_eq!(innermost_pid("Name:\tnode\nNSpid:\t4711\n"), Some(4711));
        assert_eq!(innermost_pid("Name:\tnode\n"), None);
        let own = std::process::id();
        assert_eq!(jit_map(own), PathBuf::from(format!("/tmp/perf-{own}.map")));
        let map = PathBuf::from(format!("/tmp/perf-{own}.map"));
        std::fs::write(&map, "1000 100 name\n").expect("a file in /tmp");
        let found = jit_map(own);
        let functions = Compiled::load(own);
        std::fs::remove_file(map).expect("the file is there");
        assert!(found.starts_with(format!("/proc/{own}/root")), "{found:?}");
        assert_eq!(functions.name(0x1010), Some("name"));
    }

    #[test]
    fn code_made_at_run_time_has_the_name_given_last() {
        let compiled = Compiled::parse("1000 100 first one\n1000 80 second\nx\n");
        assert_eq!(compiled.name(0x1010), Some("second"));
        assert_eq!(compiled.name(0x1090), Some("first one"));
        assert_eq!(compiled.name(0x1100), None);
    }

    #[inline(never)]
    fn a_function_with_a_name() -> u64 {
        std::hint::black_box(42)
    }

    #[test]
    fn a_function_of_this_program_is_named() {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let mappings = super::super::mappings::parse(&maps);
        let address = a_function_with_a_name as fn() -> u64 as usize as u64;
        assert_eq!(a_function_with_a_name(), 42);
        let frames = Symbols::default().user(std::process::id(), &mappings, address + 1);
        let name = &frames.last().unwrap().name;
        assert!(name.contains("a_function_with_a_name"), "{name}");
    }

    #[test]
    fn inlined_functions_are_named_without_the_types_they_are_made_for() {
        assert_eq!(without_types("poll<a::B, alloc::sync::Arc<C>>"), "poll");
        assert_eq!(without_types("{closure#0}<()>"), "{closure#0}");
        assert_eq!(without_types("<a::B as c::D>::e"), "<a::B as c::D>::e");
        assert_eq!(without_types("main"), "main");
    }

    #[test]
    fn stripped_symbols_are_looked_up_by_build_id() {
        let path = debug_file(&[0xab, 0x0c, 0xde]).unwrap();
        assert_eq!(path, Path::new("/usr/lib/debug/.build-id/ab/0cde.debug"));
        assert_eq!(debug_file(&[]), None);
    }

    #[test]
    fn what_is_unknown_is_marked_so() {
        let frames = Symbols::default().user(std::process::id(), &[], 0x10);
        assert_eq!(frames[0].name, "[unknown]");
    }
}
