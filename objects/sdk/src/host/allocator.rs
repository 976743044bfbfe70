//! The allocator of a WebAssembly module.
//!
//! An instance lives for one call, so it pays to be small and to start at once: memory is handed
//! out from the end of the static data, also within the first page, which the allocator of the
//! standard library would leave unused and grow the memory instead.
//! Small blocks have the size of their class, a power of two, and wait in the list of their class once
//! they are freed. Large blocks have the size that was asked for, up to a few kilobytes more: a memory
//! is a few megabytes, an argument can be one, and a power of two would be up to twice that. They grow
//! where they lie if there is room behind them, and what is freed of them is joined with what is free
//! beside it.
//! Invariants: small blocks are aligned to 16 and never change their class; holes are whole units, lie in
//! the order of their addresses, and none touches another or the end of what was handed out.
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
static ALLOCATOR: Allocator = Allocator(UnsafeCell::new(Heap {
    next: 0,
    end: 0,
    free: [null_mut(); CLASSES],
    holes: null_mut(),
}));

const PAGE: usize = 65_536;
/// Small blocks are 2^4 to 2^14 bytes.
const SMALLEST: u32 = 4;
const CLASSES: usize = 11;
/// Blocks of more than this are large.
const SMALL_MAX: usize = 1 << 14;
/// Large blocks are multiples of this.
const UNIT: usize = 1 << 12;

struct Allocator(UnsafeCell<Heap>);

// SAFETY: a module is instantiated without threads.
unsafe impl Sync for Allocator {}

struct Heap {
    /// Where what was not handed out begins.
    next: usize,
    /// End of the memory.
    end: usize,
    /// Freed small blocks, by class.
    free: [*mut u8; CLASSES],
    /// Freed large blocks.
    holes: *mut Hole,
}

/// What a freed large block holds.
struct Hole {
    size: usize,
    next: *mut Hole,
}

/// What a block needs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// A small block of this class.
    Small(usize),
    /// A large one of this many bytes.
    Large(usize),
}

fn form(layout: Layout) -> Option<Form> {
    let size = layout.size().max(layout.align()).max(1 << SMALLEST);
    if size > SMALL_MAX {
        return size.checked_next_multiple_of(UNIT).map(Form::Large);
    }
    let class = size.next_power_of_two().trailing_zeros() - SMALLEST;
    Some(Form::Small(class as usize))
}

impl Heap {
    fn take(&mut self, layout: Layout) -> Option<*mut u8> {
        match form(layout)? {
            Form::Small(class) => {
                let head = self.free[class];
                if head.is_null() {
                    return self.hand_out(1 << (class as u32 + SMALLEST), layout.align());
                }
                // SAFETY: a free block holds the address of the next one in its first bytes.
                self.free[class] = unsafe { head.cast::<*mut u8>().read() };
                Some(head)
            }
            Form::Large(size) if layout.align() <= 16 => match self.fill_hole(size) {
                Some(block) => Some(block),
                None => self.hand_out(size, 16),
            },
            Form::Large(size) => self.hand_out(size, layout.align()),
        }
    }

    /// Hands out memory that nobody has had.
    fn hand_out(&mut self, size: usize, align: usize) -> Option<*mut u8> {
        if self.end == 0 {
            // Only the address is taken; the linker defines the symbol behind the static data.
            self.next = (&raw const __heap_base) as usize;
            self.end = core::arch::wasm32::memory_size(0) * PAGE;
        }
        let start = self.next.checked_next_multiple_of(align.max(16))?;
        let next = start.checked_add(size)?;
        self.reach(next)?;
        self.next = next;
        Some(start as *mut u8)
    }

    /// Grows the memory to this address, unless it is as large.
    fn reach(&mut self, end: usize) -> Option<()> {
        if end > self.end {
            let pages = (end - self.end).div_ceil(PAGE);
            if core::arch::wasm32::memory_grow(0, pages) == usize::MAX {
                return None;
            }
            self.end += pages * PAGE;
        }
        Some(())
    }

    /// Takes the beginning of the first hole that is large enough.
    fn fill_hole(&mut self, size: usize) -> Option<*mut u8> {
        let mut link = &raw mut self.holes;
        // SAFETY: links lead from hole to hole, and a hole holds its size and the next one.
        unsafe {
            while !(*link).is_null() {
                let hole = *link;
                if (*hole).size >= size {
                    *link = Self::rest_of(hole, size);
                    return Some(hole.cast());
                }
                link = &raw mut (*hole).next;
            }
        }
        None
    }

    /// What stands in the place of a hole when this much of it is taken from its beginning.
    ///
    /// # Safety
    /// It is a hole, of at least so many bytes.
    unsafe fn rest_of(hole: *mut Hole, size: usize) -> *mut Hole {
        // SAFETY: sizes are whole units, so that a rest has room for a hole.
        unsafe {
            let Hole { size: whole, next } = hole.read();
            if whole == size {
                return next;
            }
            let rest = hole.byte_add(size);
            rest.write(Hole { size: whole - size, next });
            rest
        }
    }

    fn give(&mut self, block: *mut u8, layout: Layout) {
        match form(layout) {
            Some(Form::Small(class)) => {
                // SAFETY: the block is at least 16 bytes and 16-aligned, and its owner is done with it.
                unsafe { block.cast::<*mut u8>().write(self.free[class]) };
                self.free[class] = block;
            }
            Some(Form::Large(size)) => self.dig_hole(block.cast(), size),
            None => {}
        }
    }

    /// Adds a hole in its place, and joins it with its neighbours.
    fn dig_hole(&mut self, hole: *mut Hole, size: usize) {
        let mut before: *mut Hole = null_mut();
        let mut link = &raw mut self.holes;
        // SAFETY: links lead from hole to hole; the new one is a block whose owner is done with it.
        unsafe {
            while !(*link).is_null() && *link < hole {
                before = *link;
                link = &raw mut (*before).next;
            }
            hole.write(Hole { size, next: *link });
            *link = hole;
            Self::join(hole);
            if !before.is_null() {
                Self::join(before);
            }
            // The last hole, if it reaches to the end, is as good as never handed out.
            let last = if !before.is_null() && (*before).next.is_null() { before } else { hole };
            if last.addr() + (*last).size == self.next && (*last).next.is_null() {
                self.next = last.addr();
                self.cut_off(last);
            }
        }
    }

    /// Joins a hole with the next one, if that begins where it ends.
    ///
    /// # Safety
    /// It is a hole of the list.
    unsafe fn join(hole: *mut Hole) {
        // SAFETY: so is the next.
        unsafe {
            let next = (*hole).next;
            if !next.is_null() && hole.addr() + (*hole).size == next.addr() {
                (*hole).size += (*next).size;
                (*hole).next = (*next).next;
            }
        }
    }

    /// Takes the last hole out of the list.
    ///
    /// # Safety
    /// It is the last hole of the list.
    unsafe fn cut_off(&mut self, last: *mut Hole) {
        let mut link = &raw mut self.holes;
        // SAFETY: links lead from hole to hole, and end at the last.
        unsafe {
            while *link != last {
                link = &raw mut (**link).next;
            }
            *link = null_mut();
        }
    }

    /// Makes a large block larger where it lies, if what is behind it is free.
    fn extend(&mut self, block: *mut u8, old: usize, new: usize) -> bool {
        let behind = block.addr() + old;
        if behind == self.next {
            let Some(next) = block.addr().checked_add(new) else { return false };
            if self.reach(next).is_none() {
                return false;
            }
            self.next = next;
            return true;
        }
        let mut link = &raw mut self.holes;
        // SAFETY: links lead from hole to hole, and a hole holds its size and the next one.
        unsafe {
            while !(*link).is_null() && (*link).addr() < behind {
                link = &raw mut (**link).next;
            }
            let hole = *link;
            if hole.is_null() || hole.addr() != behind || (*hole).size < new - old {
                return false;
            }
            *link = Self::rest_of(hole, new - old);
        }
        true
    }

    /// Changes the size of a block where it lies, if that is possible.
    fn resize(&mut self, block: *mut u8, old: Form, new: Form) -> bool {
        match (old, new) {
            (Form::Large(old), Form::Large(new)) if new > old => self.extend(block, old, new),
            (Form::Large(old), Form::Large(new)) if new < old => {
                self.dig_hole(block.wrapping_add(new).cast(), old - new);
                true
            }
            (old, new) => old == new,
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
        if let (Some(old), Some(new)) = (form(layout), form(new_layout)) {
            // SAFETY: as in `alloc`.
            if unsafe { &mut *self.0.get() }.resize(block, old, new) {
                return block;
            }
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
