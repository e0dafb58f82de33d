//! Memory of the engines of one thread: small blocks come from chunks that all of its VMs share.
//!
//! An engine has some 700 objects of a few dozen sizes before a script runs. Chunks of its own for each size would be mostly
//! empty, and the system's allocator adds 8 to 16 bytes to each block and costs a tenth of the engine's instructions.
//!
//! The address of a block shows its kind: that of a large block is 8 bytes behind a multiple of 16, where its size stands; that of a small
//! one is a multiple of 16 in a chunk that begins at a multiple of its length. Limits are those of the engine, which counts
//! what [`Allocator::usable_size`] returns.

#![expect(
    clippy::cast_ptr_alignment,
    reason = "chunks, blocks and headers are aligned to 8 bytes at least"
)]

use std::alloc::{Layout, alloc, dealloc, realloc};
use std::cell::Cell;
use std::ptr::{self, NonNull};
use std::rc::Rc;

use rquickjs::allocator::Allocator;

/// The length of chunks, and what they are aligned to.
const CHUNK: usize = 64 * 1024;

/// Sizes of small blocks are multiples of it.
const STEP: usize = 16;

/// The largest small block.
const SMALL: usize = 512;

const CLASSES: usize = SMALL / STEP;

/// In front of a large block. With it, pointers to large blocks are not multiples of [`STEP`].
const HEADER: usize = 8;

/// The shared memory of a thread's engines. Clones are the same memory.
#[derive(Clone, Default)]
pub(crate) struct SharedMemory(Rc<Classes>);

/// For each size of small blocks, the first of its chunks that have a free block.
#[derive(Default)]
struct Classes {
    open: [Cell<Option<NonNull<Chunk>>>; CLASSES],
    chunks: Cell<usize>,
}

/// The head of a chunk, behind which are its blocks.
#[repr(C, align(16))]
struct Chunk {
    block: usize,
    used: usize,
    /// Blocks that were freed, each pointing at the next.
    freed: *mut u8,
    /// Where those blocks begin that were never used; they have no memory yet.
    fresh: usize,
    previous: Option<NonNull<Chunk>>,
    next: Option<NonNull<Chunk>>,
}

const CHUNK_LAYOUT: Layout = match Layout::from_size_align(CHUNK, CHUNK) {
    Ok(layout) => layout,
    Err(_) => panic!("a power of two"),
};

impl Chunk {
    fn is_full(&self) -> bool {
        self.freed.is_null() && self.fresh + self.block > CHUNK
    }

    fn class(&self) -> usize {
        self.block / STEP - 1
    }
}

impl Classes {
    /// A block of at least so many bytes, at most [`SMALL`]; null if there is no memory.
    fn allocate(&self, size: usize) -> *mut u8 {
        let class = size.div_ceil(STEP).max(1) - 1;
        let Some(mut chunk) = self.open[class].get().or_else(|| self.add(class)) else {
            return ptr::null_mut();
        };
        // SAFETY: chunks in the list are alive, and nothing else refers to one: this thread has no other reference while this
        // one lives. An open chunk has a free block: a freed one, which holds the pointer to the next, or one within its length.
        let (block, is_full) = unsafe {
            let start = chunk.as_ptr().cast::<u8>();
            let chunk = chunk.as_mut();
            chunk.used += 1;
            let block = if chunk.freed.is_null() {
                let block = start.add(chunk.fresh);
                chunk.fresh += chunk.block;
                block
            } else {
                let block = chunk.freed;
                chunk.freed = block.cast::<*mut u8>().read();
                block
            };
            (block, chunk.is_full())
        };
        if is_full {
            self.close(chunk);
        }
        block
    }

    /// Takes back a block.
    ///
    /// # Safety
    ///
    /// `take` of the same memory has returned it, and nothing uses it any more.
    unsafe fn give_back(&self, block: *mut u8) {
        // SAFETY: the block lies in a chunk, which is alive as long as one of its blocks is used, and this one is.
        let (chunk, was_full) = unsafe {
            let mut pointer = chunk_of(block);
            let chunk = pointer.as_mut();
            let was_full = chunk.is_full();
            block.cast::<*mut u8>().write(chunk.freed);
            chunk.freed = block;
            chunk.used -= 1;
            (pointer, was_full)
        };
        if was_full {
            self.open(chunk);
        }
        // SAFETY: the chunk is alive: only the next lines release it.
        let chunk_now = unsafe { chunk.as_ref() };
        // The last chunk of its class stays, as the next block of this size may come soon.
        if chunk_now.used == 0 && (chunk_now.previous.is_some() || chunk_now.next.is_some()) {
            self.close(chunk);
            self.release(chunk);
        }
    }

    fn add(&self, class: usize) -> Option<NonNull<Chunk>> {
        // SAFETY: the layout is not empty.
        let chunk = NonNull::new(unsafe { alloc(CHUNK_LAYOUT) }.cast::<Chunk>())?;
        let head = Chunk {
            block: (class + 1) * STEP,
            used: 0,
            freed: ptr::null_mut(),
            fresh: size_of::<Chunk>(),
            previous: None,
            next: None,
        };
        // SAFETY: the memory is long enough and aligned for the head, and nothing else refers to it.
        unsafe { chunk.write(head) };
        self.chunks.set(self.chunks.get() + 1);
        self.open(chunk);
        Some(chunk)
    }

    fn release(&self, chunk: NonNull<Chunk>) {
        self.chunks.set(self.chunks.get() - 1);
        // SAFETY: `add` has allocated it by this layout; none of its blocks is used, and it is in no list.
        unsafe { dealloc(chunk.as_ptr().cast(), CHUNK_LAYOUT) };
    }

    /// Adds a chunk to the list of its class.
    fn open(&self, mut chunk: NonNull<Chunk>) {
        // SAFETY: this chunk and those in lists are alive, and no reference to one of them lives here.
        unsafe {
            let class = &self.open[chunk.as_ref().class()];
            let next = class.replace(Some(chunk));
            chunk.as_mut().next = next;
            chunk.as_mut().previous = None;
            if let Some(mut next) = next {
                next.as_mut().previous = Some(chunk);
            }
        }
    }

    /// Removes a chunk from the list of its class.
    fn close(&self, chunk: NonNull<Chunk>) {
        // SAFETY: as in `open`.
        unsafe {
            let Chunk { previous, next, .. } = *chunk.as_ref();
            match previous {
                Some(mut previous) => previous.as_mut().next = next,
                None => self.open[chunk.as_ref().class()].set(next),
            }
            if let Some(mut next) = next {
                next.as_mut().previous = previous;
            }
        }
    }
}

impl Drop for Classes {
    fn drop(&mut self) {
        for class in &self.open {
            // SAFETY: chunks in lists are alive. One with a used block, which an engine has leaked, stays.
            while let Some(chunk) = class.get().filter(|it| unsafe { it.as_ref() }.used == 0) {
                self.close(chunk);
                self.release(chunk);
            }
        }
    }
}

fn chunk_of(block: *mut u8) -> NonNull<Chunk> {
    let chunk = block.map_addr(|address| address & !(CHUNK - 1));
    NonNull::new(chunk.cast()).expect("no block lies in the first chunk of the address space")
}

fn is_large(block: *mut u8) -> bool {
    block.addr() % STEP == HEADER
}

/// Of a large block with its header; `None` for a size that no memory has.
fn large_layout(size: usize) -> Option<Layout> {
    Layout::from_size_align(size.checked_add(HEADER)?, STEP).ok()
}

fn take_large(size: usize) -> *mut u8 {
    let Some(layout) = large_layout(size) else {
        return ptr::null_mut();
    };
    // SAFETY: the layout is not empty, and its first bytes are those of the size.
    unsafe { with_header(alloc(layout), size) }
}

/// # Safety
///
/// `start` is null or the start of memory of [`large_layout`] of this size.
unsafe fn with_header(start: *mut u8, size: usize) -> *mut u8 {
    if start.is_null() {
        return start;
    }
    // SAFETY: the header is within the memory, which is aligned for more.
    unsafe {
        start.cast::<usize>().write(size);
        start.add(HEADER)
    }
}

/// # Safety
///
/// The block is a large one that is in use.
unsafe fn large_size(block: *mut u8) -> usize {
    // SAFETY: its size stands in front of it.
    unsafe { block.sub(HEADER).cast::<usize>().read() }
}

// SAFETY: blocks are long enough, aligned to 8 bytes, and overlap no other; the size of each is stored.
unsafe impl Allocator for SharedMemory {
    fn alloc(&mut self, size: usize) -> *mut u8 {
        if size <= SMALL {
            self.0.allocate(size)
        } else {
            take_large(size)
        }
    }

    fn calloc(&mut self, count: usize, size: usize) -> *mut u8 {
        let Some(size) = count.checked_mul(size) else {
            return ptr::null_mut();
        };
        let block = self.alloc(size);
        if !block.is_null() {
            // SAFETY: the block has this size at least.
            unsafe { block.write_bytes(0, size) };
        }
        block
    }

    unsafe fn dealloc(&mut self, block: *mut u8) {
        if block.is_null() {
            return;
        }
        if !is_large(block) {
            // SAFETY: the caller has it from this memory and uses it no more.
            unsafe { self.0.give_back(block) };
            return;
        }
        // SAFETY: as above; large blocks are of this layout.
        unsafe {
            let layout = large_layout(large_size(block)).expect("it has been allocated");
            dealloc(block.sub(HEADER), layout);
        }
    }

    unsafe fn realloc(&mut self, block: *mut u8, size: usize) -> *mut u8 {
        if block.is_null() {
            return self.alloc(size);
        }
        // SAFETY: the caller has the block from this memory.
        let old = unsafe { Self::usable_size(block) };
        if is_large(block) && size > SMALL {
            let (Some(layout), Some(new)) = (large_layout(old), large_layout(size)) else {
                return ptr::null_mut();
            };
            // SAFETY: the block is of this layout, and the new one is not empty.
            return unsafe { with_header(realloc(block.sub(HEADER), layout, new.size()), size) };
        }
        // A block of the same size would take its place.
        if !is_large(block) && size <= old && size + STEP > old {
            return block;
        }
        let moved = self.alloc(size);
        if !moved.is_null() {
            // SAFETY: both blocks are long enough and do not overlap; the old one is not used any more.
            unsafe {
                moved.copy_from_nonoverlapping(block, old.min(size));
                self.dealloc(block);
            }
        }
        moved
    }

    unsafe fn usable_size(block: *mut u8) -> usize {
        if is_large(block) {
            // SAFETY: the caller has the block from this memory.
            unsafe { large_size(block) }
        } else {
            // SAFETY: the chunk of a block in use is alive.
            unsafe { chunk_of(block).as_ref().block }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A block in use: its pointer, the requested length and the byte that it is filled with.
    type Used = (*mut u8, usize, u8);

    fn allocate_filled(memory: &mut SharedMemory, size: usize, fill: u8) -> Used {
        let block = memory.alloc(size);
        assert!(!block.is_null() && block.addr().is_multiple_of(8), "{size}");
        // SAFETY: the block is in use.
        assert!(unsafe { SharedMemory::usable_size(block) } >= size);
        // SAFETY: the block has this size.
        unsafe { block.write_bytes(fill, size) };
        (block, size, fill)
    }

    fn check((block, size, fill): Used) {
        // SAFETY: the block is in use and was filled.
        let bytes = unsafe { std::slice::from_raw_parts(block, size) };
        assert!(bytes.iter().all(|byte| *byte == fill), "{size}");
    }

    #[test]
    fn blocks_keep_their_bytes_and_empty_chunks_are_released() {
        const STEPS: u32 = 100_000;
        let mut random = fastrand::Rng::with_seed(1);
        let mut memory = SharedMemory::default();
        let mut other = memory.clone();
        let mut used: Vec<Used> = Vec::new();
        let mut most = 0;
        for step in 0..STEPS {
            let size = match random.u8(..8) {
                0 => random.usize(SMALL - 40..SMALL + 40),
                1 => random.usize(1..3000),
                _ => random.usize(1..200),
            };
            let fill = step.to_le_bytes()[0];
            most = most.max(memory.0.chunks.get());
            let grows = step < STEPS / 2;
            match random.u8(..8) {
                0..=2 if !used.is_empty() => {
                    let (block, before, fill) = used.swap_remove(random.usize(..used.len()));
                    check((block, before, fill));
                    // SAFETY: the block is in use, and its new one takes its place.
                    let moved = unsafe { memory.realloc(block, size) };
                    check((moved, before.min(size), fill));
                    // SAFETY: the block has this size.
                    unsafe { moved.write_bytes(fill, size) };
                    used.push((moved, size, fill));
                }
                it if (it < 7) != grows && !used.is_empty() => {
                    let block = used.swap_remove(random.usize(..used.len()));
                    check(block);
                    // SAFETY: the block is in use, and is not any more.
                    unsafe { other.dealloc(block.0) };
                }
                _ => used.push(allocate_filled(&mut memory, size, fill)),
            }
        }
        assert!(most > CLASSES * 3 / 2, "{most} chunks");
        for block in used {
            check(block);
            // SAFETY: as above.
            unsafe { memory.dealloc(block.0) };
        }
        assert!(memory.0.chunks.get() <= CLASSES);
    }

    #[test]
    fn engines_share_chunks_and_give_them_back() {
        let limits = crate::Limits::default();
        let stacks = crate::Stacks::new(limits);
        let chunks = || stacks.memory().0.chunks.get();
        let vm = || {
            let clock = Rc::new(plimsoll_testkit::VirtualClock::new());
            crate::Vm::<crate::tests::TextHost>::lean(limits, clock, &stacks).unwrap()
        };
        let vms: Vec<_> = (0..50).map(|_| vm()).collect();
        let each = chunks() * CHUNK / vms.len();
        // An engine that kept small objects in blocks of its own would need more, or none of these chunks.
        assert!((30_000..80_000).contains(&each), "{each} bytes");
        drop(vms);
        assert!(chunks() <= CLASSES);
    }

    #[test]
    fn cleared_memory_is_zero_also_where_it_was_used() {
        let mut memory = SharedMemory::default();
        for size in [48, 4096] {
            let keep = allocate_filled(&mut memory, size, 1);
            let (block, ..) = allocate_filled(&mut memory, size, 7);
            // SAFETY: the block is in use, and is not any more.
            unsafe { memory.dealloc(block) };
            let block = memory.calloc(size / 8, 8);
            check((block, size, 0));
            // SAFETY: as above.
            unsafe { memory.dealloc(block) };
            // SAFETY: as above.
            unsafe { memory.dealloc(keep.0) };
        }
        assert!(memory.calloc(usize::MAX, 2).is_null());
        assert!(memory.alloc(usize::MAX).is_null());
    }
}
