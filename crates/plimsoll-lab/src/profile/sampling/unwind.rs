//! Stacks by the unwind tables of programs (`.eh_frame`), for those that have no frame pointers.
//!
//! With each sample the kernel copies registers and the top of the stack; framehop goes from there to the
//! callers. Code without tables is passed by its frame pointers.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{Read as _, Seek as _, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use framehop::{
    CacheNative, ExplicitModuleSectionInfo, MayAllocateDuringUnwind, Module, UnwindRegsNative,
    Unwinder as _, UnwinderNative,
};
use object::{Object as _, ObjectSection as _, ObjectSegment as _, ReadCache, ReadRef};

use super::super::mappings::{self, Mapping};

/// Bytes of a thread's stack in each sample; callers farther out are not seen.
pub(super) const STACK_BYTES: u32 = 16 * 1024;

/// A broken stack may go in circles.
const DEEPEST: usize = 1024;

/// The kernel's own code in every process, by its name among the mappings.
const VDSO: &str = "[vdso]";

/// The registers that [`start`] takes, as `perf_event_open(2)` numbers them: frame pointer, stack pointer,
/// instruction pointer (Linux, `arch/x86/include/uapi/asm/perf_regs.h`).
#[cfg(target_arch = "x86_64")]
pub(super) const REGISTERS: u64 = 1 << 6 | 1 << 7 | 1 << 8;

/// The registers that [`start`] takes, as `perf_event_open(2)` numbers them: frame pointer, link register,
/// stack pointer, program counter (Linux, `arch/arm64/include/uapi/asm/perf_regs.h`).
#[cfg(target_arch = "aarch64")]
pub(super) const REGISTERS: u64 = 1 << 29 | 1 << 30 | 1 << 31 | 1 << 32;

/// Registers, end of the stack and start state of the unwinder.
#[cfg(target_arch = "x86_64")]
fn start(registers: &[u64]) -> Option<(u64, u64, UnwindRegsNative)> {
    let &[frame, stack, instruction] = registers else {
        return None;
    };
    let begin = UnwindRegsNative::new(instruction, stack, frame);
    Some((instruction, stack, begin))
}

/// Registers, end of the stack and start state of the unwinder.
#[cfg(target_arch = "aarch64")]
fn start(registers: &[u64]) -> Option<(u64, u64, UnwindRegsNative)> {
    let &[frame, link, stack, instruction] = registers else {
        return None;
    };
    // Addresses have 48 bits; what is above may be their signature.
    let addresses = framehop::aarch64::PtrAuthMask(u64::MAX >> 16);
    let begin = UnwindRegsNative::new_with_ptr_auth_mask(addresses, link, stack, frame);
    Some((instruction, stack, begin))
}

/// Whether the program of process `pid` has unwind tables.
pub(super) fn has_tables(pid: u32) -> bool {
    Tables::of_file(Path::new(&format!("/proc/{pid}/exe"))).is_some()
}

/// Follows stacks; each file is read once.
#[derive(Default)]
pub(super) struct Unwinding {
    files: HashMap<PathBuf, Option<Rc<Tables>>>,
    processes: HashMap<u32, Process>,
    rules: CacheNative<MayAllocateDuringUnwind>,
}

#[derive(Default)]
struct Process {
    unwinder: UnwinderNative<Rc<[u8]>, MayAllocateDuringUnwind>,
    /// Mappings that the unwinder has seen.
    mappings_seen: usize,
}

impl Unwinding {
    /// The addresses of a stack, the innermost first, the others being those that it will return to.
    ///
    /// - `mappings`: those of the process; only ever appended to.
    /// - `registers`: those of [`REGISTERS`].
    /// - `stack`: what lies from the stack pointer on.
    pub(super) fn addresses(
        &mut self,
        pid: u32,
        mappings: &[Mapping],
        registers: &[u64],
        stack: &[u8],
    ) -> Vec<u64> {
        let Some((instruction, stack_pointer, begin)) = start(registers) else {
            return Vec::new();
        };
        let process = self.processes.entry(pid).or_default();
        for mapping in mappings.get(process.mappings_seen..).unwrap_or_default() {
            let tables = self
                .files
                .entry(mapping.path.clone())
                .or_insert_with(|| Tables::of_mapping(pid, mapping).map(Rc::new));
            if let Some(module) = tables.as_ref().and_then(|tables| tables.module(mapping)) {
                process.unwinder.remove_module(mapping.from);
                process.unwinder.add_module(module);
            }
        }
        process.mappings_seen = mappings.len();
        let mut read_stack = |address: u64| word(stack, stack_pointer, address).ok_or(());
        let mut frames =
            process
                .unwinder
                .iter_frames(instruction, begin, &mut self.rules, &mut read_stack);
        let mut addresses = Vec::new();
        // Where it cannot go on the stack ends: what is known so far is right.
        while let Ok(Some(frame)) = frames.next() {
            addresses.push(frame.address());
            if addresses.len() == DEEPEST {
                break;
            }
        }
        addresses
    }
}

/// The word at `address` of a stack that begins at `stack_pointer`.
fn word(stack: &[u8], stack_pointer: u64, address: u64) -> Option<u64> {
    let from = usize::try_from(address.checked_sub(stack_pointer)?).ok()?;
    let bytes = stack.get(from..from.checked_add(8)?)?;
    Some(u64::from_ne_bytes(bytes.try_into().ok()?))
}

/// Unwinding tables of a file.
struct Tables {
    sections: ExplicitModuleSectionInfo<Rc<[u8]>>,
    /// Of what can be executed: its place in the file, and its address as the file means it.
    segments: Vec<(Range<u64>, u64)>,
}

impl Tables {
    fn of_mapping(pid: u32, mapping: &Mapping) -> Option<Self> {
        if mapping.path == Path::new(VDSO) {
            return Self::from_data(&*own_vdso()?);
        }
        Self::of_file(&mapping.file(pid)?)
    }

    fn of_file(path: &Path) -> Option<Self> {
        Self::from_data(&ReadCache::new(File::open(path).ok()?))
    }

    fn from_data<'data>(data: impl ReadRef<'data>) -> Option<Self> {
        let object = object::File::parse(data).ok()?;
        let range = |name| {
            let section = object.section_by_name(name)?;
            Some(section.address()..section.address().checked_add(section.size())?)
        };
        let bytes = |name| -> Option<Rc<[u8]>> {
            let section = object.section_by_name(name)?;
            Some(section.data().ok()?.into())
        };
        let executable = object
            .segments()
            .filter(|segment| segment.permissions().executable());
        let segments = executable.filter_map(|segment| {
            let (offset, length) = segment.file_range();
            Some((offset..offset.checked_add(length)?, segment.address()))
        });
        Some(Self {
            segments: segments.collect(),
            sections: ExplicitModuleSectionInfo {
                text_svma: range(".text"),
                got_svma: range(".got"),
                eh_frame_svma: range(".eh_frame"),
                eh_frame: Some(bytes(".eh_frame").filter(|bytes| !bytes.is_empty())?),
                eh_frame_hdr_svma: range(".eh_frame_hdr"),
                eh_frame_hdr: bytes(".eh_frame_hdr"),
                ..ExplicitModuleSectionInfo::default()
            },
        })
    }

    /// The part that is mapped there.
    fn module(&self, mapping: &Mapping) -> Option<Module<Rc<[u8]>>> {
        let length = mapping.to.checked_sub(mapping.from)?;
        let mapped = mapping.offset..mapping.offset.checked_add(length)?;
        // Mappings begin and end with pages, segments where they want.
        let overlaps =
            |(file, _): &&(Range<u64>, u64)| file.start < mapped.end && mapped.start < file.end;
        let (file, address) = self.segments.iter().find(overlaps)?;
        // Where the address 0 of the file would be; differences may wrap around.
        let base = mapping
            .from
            .wrapping_sub(mapping.offset)
            .wrapping_add(file.start)
            .wrapping_sub(*address);
        Some(Module::new(
            mapping.path.to_string_lossy().into_owned(),
            mapping.from..mapping.to,
            base,
            self.sections.clone(),
        ))
    }
}

/// The kernel maps the same one into every process, so this one's will do.
fn own_vdso() -> Option<Vec<u8>> {
    let maps = fs::read_to_string("/proc/self/maps").ok()?;
    let found = mappings::parse(&maps);
    let vdso = found
        .iter()
        .find(|mapping| mapping.path == Path::new(VDSO))?;
    let mut memory = File::open("/proc/self/mem").ok()?;
    memory.seek(SeekFrom::Start(vdso.from)).ok()?;
    let mut bytes = vec![0; usize::try_from(vdso.to.checked_sub(vdso.from)?).ok()?];
    memory.read_exact(&mut bytes).ok()?;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_inside_the_stack_only() {
        let stack: Vec<u8> = (0..16).collect();
        let second = u64::from_ne_bytes([8, 9, 10, 11, 12, 13, 14, 15]);
        assert_eq!(word(&stack, 0x1000, 0x1008), Some(second));
        assert_eq!(word(&stack, 0x1000, 0x1009), None);
        assert_eq!(word(&stack, 0x1000, 0xfff), None);
        assert_eq!(word(&stack, 0x1000, u64::MAX), None);
    }

    #[test]
    fn this_program_and_the_kernels_part_of_it_have_tables() {
        assert!(has_tables(std::process::id()));
        assert!(Tables::from_data(&*own_vdso().unwrap()).is_some());
        assert!(Tables::from_data(&b"#!/bin/sh"[..]).is_none());
    }

    #[test]
    fn a_module_lies_where_its_segment_is_mapped() {
        let tables = Tables {
            sections: ExplicitModuleSectionInfo::default(),
            segments: vec![(0x1234..0x5000, 0x2234)],
        };
        let mapping = |offset| Mapping {
            from: 0x7f00_0000_2000,
            to: 0x7f00_0000_3000,
            offset,
            path: PathBuf::from("/lib/x.so"),
        };
        let module = tables.module(&mapping(0x1000)).unwrap();
        assert_eq!(module.base_avma(), 0x7f00_0000_0000);
        assert!(tables.module(&mapping(0x8000)).is_none());
    }

    #[test]
    fn registers_of_another_shape_have_no_stack() {
        let mut unwinding = Unwinding::default();
        assert!(unwinding.addresses(1, &[], &[1], &[]).is_empty());
    }
}
