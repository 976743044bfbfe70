//! The allocator of a WebAssembly module.
//!
//! An instance lives for one call, so it pays to be small and to start at once: memory is handed
//! out from the end of the static data, also within the first page, which the allocator of the
//! standard library would leave unused and grow the memory instead.
//! Invariants: a block has the size of its class, a power of two, and is aligned to it up to 16;
//! freed blocks wait in the list of their class and never change it.
#![allow(unsafe_code, reason = "an allocator deals in raw memory")]

use std::{
    alloc::{GlobalAlloc, Layout},
    cell::UnsafeCell,
    ptr::null_mut,
};

unsafe extern "C" {
    static __heap_base: u8;
}

#[global_allocator]
static ALLOCATOR: Allocator =
    Allocator(UnsafeCell::new(Heap { next: 0, end: 0, free: [null_mut(); CLASSES] }));

const PAGE: usize = 65_536;
/// Blocks are 2^4 to 2^31 bytes.
const SMALLEST: u32 = 4;
const CLASSES: usize = 28;

struct Allocator(UnsafeCell<Heap>);

// SAFETY: a module is instantiated without threads.
unsafe impl Sync for Allocator {}

struct Heap {
    next: usize,
    end: usize,
    free: [*mut u8; CLASSES],
}

/// Class of blocks that hold `layout`, and their size.
fn class_of(layout: Layout) -> Option<(usize, usize)> {
    let size = layout.size().max(layout.align()).max(1 << SMALLEST).checked_next_power_of_two()?;
    let class = (size.trailing_zeros() - SMALLEST) as usize;
    (class < CLASSES).then_some((class, size))
}

impl Heap {
    fn take(&mut self, layout: Layout) -> Option<*mut u8> {
        let (class, size) = class_of(layout)?;
        let head = self.free[class];
        if !head.is_null() {
            // SAFETY: a free block holds the address of the next one in its first bytes.
            self.free[class] = unsafe { head.cast::<*mut u8>().read() };
            return Some(head);
        }
        if self.end == 0 {
            // Only the address is taken; the linker defines the symbol behind the static data.
            self.next = (&raw const __heap_base) as usize;
            self.end = core::arch::wasm32::memory_size(0) * PAGE;
        }
        let align = layout.align().max(16);
        let start = self.next.checked_next_multiple_of(align)?;
        let next = start.checked_add(size)?;
        if next > self.end {
            let pages = (next - self.end).div_ceil(PAGE);
            if core::arch::wasm32::memory_grow(0, pages) == usize::MAX {
                return None;
            }
            self.end += pages * PAGE;
        }
        self.next = next;
        Some(start as *mut u8)
    }

    fn give(&mut self, block: *mut u8, layout: Layout) {
        if let Some((class, _)) = class_of(layout) {
            // SAFETY: the block is at least 16 bytes and 16-aligned, and its owner is done with it.
            unsafe { block.cast::<*mut u8>().write(self.free[class]) };
            self.free[class] = block;
        }
    }
}

// SAFETY: blocks do not overlap, are large and aligned enough for their layout, and are handed out
// again only after they were given back.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: without threads, nothing else refers to the heap meanwhile.
        unsafe { &mut *self.0.get() }.take(layout).unwrap_or(null_mut())
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: as in `alloc`.
        unsafe { &mut *self.0.get() }.give(block, layout);
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: the caller keeps the alignment and a size that does not overflow with it.
        let new_layout = unsafe { Layout::from_size_align_unchecked(new_size, layout.align()) };
        if class_of(layout) == class_of(new_layout) {
            return block;
        }
        // SAFETY: the new block does not overlap the old one, which holds `layout.size()` bytes.
        unsafe {
            let new_block = self.alloc(new_layout);
            if !new_block.is_null() {
                new_block.copy_from_nonoverlapping(block, layout.size().min(new_size));
                self.dealloc(block, layout);
            }
            new_block
        }
    }
}
