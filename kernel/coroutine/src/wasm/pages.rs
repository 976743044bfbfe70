//! Which pages of a kept instance's memory may differ from what they were at first.
//!
//! To look at the whole memory of an instance before it is used again costs more than most bodies do,
//! which write on two or three of its pages. So the others are write-protected: the first write on one
//! is a fault, whose handler notes the page, makes it writable and lets the write happen. From then
//! on it is looked at each time.
//! Invariants: a page that is not noted has the bytes that it had when it was protected; whatever
//! writes on a memory does it while a body of its store runs, when wasmtime asks the handler about each
//! fault of the thread; before the memory goes back to wasmtime's pool all of it is writable again.
//! Not here: what pages have at first, and making them so (`instance.rs`).
#![allow(
    unsafe_code,
    reason = "memory is protected, and a signal's handler reads where it faulted"
)]

use std::{
    ffi::c_void,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use rustix::{
    mm::{MprotectFlags, mprotect},
    param::page_size,
};
use wasmtime::{Memory, Store, unix::StoreExt};

/// Bytes of a page, here and in the processor.
pub(super) const PAGE: usize = 4 << 10;

/// Pages that a memory has at most: each has a bit.
pub(super) const MOST: usize = u64::BITS as usize;

/// See the file's head.
pub(super) struct Pages {
    shared: Arc<Shared>,
}

/// What the handler of faults shares with the owner.
struct Shared {
    /// Address of the memory.
    start: usize,
    pages: usize,
    /// A bit for each page that is writable.
    noted: AtomicU64,
}

impl Pages {
    /// Watches the memory of a store from now on; every page is noted yet. None on hosts on which a
    /// write on a protected page is told otherwise or whose pages have another size, and where the
    /// memory has too many.
    pub(super) fn watch<T>(store: &mut Store<T>, memory: Memory) -> Option<Self> {
        let bytes = memory.data_size(&mut *store);
        let pages = bytes / PAGE;
        let usual = cfg!(target_os = "linux") && page_size() == PAGE;
        if !usual || pages == 0 || pages > MOST {
            return None;
        }
        let start = memory.data_ptr(&mut *store) as usize;
        let noted = AtomicU64::new(u64::MAX >> (MOST - pages));
        let shared = Arc::new(Shared { start, pages, noted });
        let handler = Arc::clone(&shared);
        // SAFETY: the handler is safe in a signal: it reads the address that the system has put into
        // `info`, loads and stores an atomic, and makes a system call. It changes nothing but the
        // protection of pages that this store alone uses.
        unsafe {
            store.set_signal_handler(move |signal, info, _| {
                signal == libc::SIGSEGV && handler.let_write((*info).si_addr())
            });
        }
        Some(Self { shared })
    }

    /// Whether a page may differ from what it was when it was protected.
    pub(super) fn is_noted(&self, page: usize) -> bool {
        self.shared.noted.load(Ordering::Relaxed) & (1 << page) != 0
    }

    /// Protects pages that are as they were at first, each given by its bit, and notes them no more.
    /// Only between two bodies.
    pub(super) fn protect(&self, pages: u64) {
        let shared = &self.shared;
        let wanted = pages & shared.noted.load(Ordering::Relaxed);
        let mut page = 0;
        while page < shared.pages {
            let run = (wanted >> page).trailing_ones() as usize;
            if run > 0 {
                shared.set(page, run, MprotectFlags::READ);
            }
            page += run.max(1);
        }
        shared.noted.fetch_and(!wanted, Ordering::Relaxed);
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        let shared = &self.shared;
        shared.set(0, shared.pages, MprotectFlags::READ | MprotectFlags::WRITE);
    }
}

impl Shared {
    /// Handles a fault: true if it was the first write on a protected page.
    fn let_write(&self, address: *mut c_void) -> bool {
        let page = (address as usize).wrapping_sub(self.start) / PAGE;
        if page >= self.pages || self.noted.load(Ordering::Relaxed) & (1 << page) != 0 {
            return false;
        }
        // Should the system refuse, the panic ends the process: it cannot leave a handler.
        self.set(page, 1, MprotectFlags::READ | MprotectFlags::WRITE);
        self.noted.fetch_or(1 << page, Ordering::Relaxed);
        true
    }

    fn set(&self, page: usize, count: usize, access: MprotectFlags) {
        let start = (self.start + page * PAGE) as *mut c_void;
        // SAFETY: the pages are within the memory of a store that is alive, whose first bytes do not
        // move; nobody holds a reference into it.
        let set = unsafe { mprotect(start, count * PAGE, access) };
        set.expect("the system protects pages that are mapped");
    }
}
