//! The part of a program's file that it needs to run.

/// Bytes of an ELF file of 64 bits that are loaded when it runs, its headers among them; what follows are tables for
/// debuggers and linkers. All of it, for a file of another kind.
pub fn program_length(program: &[u8]) -> usize {
    loaded_end(program).unwrap_or(program.len())
}

fn loaded_end(program: &[u8]) -> Option<usize> {
    let (segments, mut end) = segments(program)?;
    for segment in &segments {
        end = end.max(segment.offset.checked_add(segment.length)?);
    }
    (end <= program.len() && !segments.is_empty()).then_some(end)
}

/// True if a program needs a loader and libraries of the system to run (it has a segment `PT_INTERP`), so that it does not
/// in an empty root.
pub(super) fn is_dynamic(program: &[u8]) -> bool {
    const INTERPRETER: usize = 3;
    let segments = segments(program);
    segments.is_some_and(|(all, _)| all.iter().any(|segment| segment.kind == INTERPRETER))
}

/// A part of a program that is loaded, or says how it is.
struct Segment {
    kind: usize,
    offset: usize,
    length: usize,
}

/// The segments of an ELF file of 64 bits, and the end of their table.
fn segments(program: &[u8]) -> Option<(Vec<Segment>, usize)> {
    // Magic, 64 bits, little endian.
    if !program.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let number = |at: usize, bytes: usize| -> Option<usize> {
        let field = program.get(at..at.checked_add(bytes)?)?;
        let value = field
            .iter()
            .rev()
            .fold(0_u64, |value, byte| (value << 8) | u64::from(*byte));
        usize::try_from(value).ok()
    };
    let headers = number(0x20, 8)?;
    let size = number(0x36, 2)?;
    let count = number(0x38, 2)?;
    let segments = (0..count).map(|header| {
        let at = headers.checked_add(header.checked_mul(size)?)?;
        Some(Segment {
            kind: number(at, 4)?,
            offset: number(at.checked_add(0x08)?, 8)?,
            length: number(at.checked_add(0x20)?, 8)?,
        })
    });
    let end = headers.checked_add(size.checked_mul(count)?)?;
    Some((segments.collect::<Option<_>>()?, end))
}

/// Whether a program is one that was packed, by its header: its table of sections was cut off.
///
/// - `head`: its first 64 bytes.
pub(super) fn is_cut(head: &[u8]) -> bool {
    head.starts_with(b"\x7fELF\x02\x01")
        && head
            .get(0x28..0x30)
            .is_some_and(|at| at.iter().all(|byte| *byte == 0))
}

/// Marks in the header of a program which was cut to [`program_length`] that it has no table of sections.
pub(super) fn without_sections(program: &mut [u8]) {
    if program.starts_with(b"\x7fELF\x02\x01") && program.len() >= 0x40 {
        program[0x28..0x30].fill(0);
        program[0x3a..0x40].fill(0);
    }
}
