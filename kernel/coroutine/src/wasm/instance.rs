//! Instances: made, or kept from a body that has returned and made like new.
//!
//! Invariants: an instance is kept only if its body returned by itself and its memory did not grow,
//! and only of code that can be renewed (`renewal.rs`); what is kept is bounded. So a body runs in an
//! instance in which, for all it can tell, nothing ever ran.

use std::collections::BTreeMap;

use gesmas_machine::CodeHash;
use wasmtime::{Engine, Extern, Global, Instance, Memory, Store, TypedFunc, Val};

use super::{
    Compiled,
    host::Guest,
    pages::{MOST, PAGE, Pages},
};

/// The largest memory that is renewed, bytes: comparing more costs more than a new instance.
pub(super) const RENEWED_BYTES: usize = 128 << 10;

/// Instances that are kept in all, each with [`RENEWED_BYTES`] at most: as many as a crowd leaves that
/// was blocked and is let go at once, since the next crowd needs as many.
const KEPT: usize = 256;

const _: () = assert!(RENEWED_BYTES <= MOST * PAGE, "each page has a bit");

/// Renewals of an instance before its pages are protected, which costs some system calls: many live
/// only for the body after the first.
const SETTLED: u32 = 4;

/// Renewals after which pages that were written on once are protected again.
const FORGET: u32 = 1_000;

/// A page on which nothing was written.
static ZEROS: [u8; PAGE] = [0; PAGE];

/// A memory as it is at first, page by page; none for zeros.
pub(super) struct Image(Vec<Option<Box<[u8]>>>);

impl Image {
    fn of(memory: &[u8]) -> Self {
        let pages = memory.chunks(PAGE).map(|page| (page != ZEROS).then(|| page.into()));
        Self(pages.collect())
    }

    fn len(&self) -> usize {
        self.0.len() * PAGE
    }

    /// Makes a memory of this length like it; returns the pages that were so already, each by its
    /// bit. Pages that were not written on are not looked at, the others are compared: to copy all
    /// of them would write to more of the processor's cache.
    fn restore(&self, memory: &mut [u8], pages: Option<&Pages>) -> u64 {
        let mut same = 0;
        for (at, (page, first)) in memory.chunks_mut(PAGE).zip(&self.0).enumerate() {
            if pages.is_some_and(|pages| !pages.is_noted(at)) {
                continue;
            }
            let first = first.as_deref().unwrap_or(&ZEROS);
            if page == first {
                same |= 1 << at;
            } else {
                page.copy_from_slice(first);
            }
        }
        same
    }
}

/// An instance without a body.
pub(super) struct Idle {
    /// Once it is settled. Before the store, so that it is dropped before it.
    pages: Option<Pages>,
    /// How often it was renewed.
    renewals: u32,
    pub(super) store: Store<Guest>,
    pub(super) instance: Instance,
    memory: Memory,
    /// What the mutable globals are at first.
    globals: Vec<(Global, Val)>,
    /// Methods that were called in it, by their position.
    methods: Vec<Option<TypedFunc<u32, ()>>>,
}

impl Idle {
    /// Makes one.
    pub(super) async fn new(engine: &Engine, guest: Guest, code: &Compiled) -> NewInstance {
        let mut store = Store::new(engine, guest);
        store.limiter(|guest| guest);
        let unmetered = store.set_fuel(u64::MAX);
        unmetered.expect("fuel is configured");
        let instance = code.pre.instantiate_async(&mut store).await?;
        let memory = instance
            .get_module_export(&mut store, &code.memory)
            .and_then(Extern::into_memory)
            .expect("validation demands a memory");
        store.data_mut().set_memory(memory);
        let exports = code.renewed.iter();
        let globals = exports.map(|export| {
            let global = instance.get_module_export(&mut store, export);
            let global = global.and_then(Extern::into_global).expect("it is one of ours");
            (global, global.get(&mut store))
        });
        let globals = globals.collect();
        if code.is_renewable() {
            code.image.get_or_init(|| Image::of(memory.data(&store)));
        }
        let methods = vec![None; code.methods.len()];
        let (pages, renewals) = (None, 0);
        Ok(Self { pages, renewals, store, instance, memory, globals, methods })
    }

    /// The function of a method.
    pub(super) fn method(&mut self, code: &Compiled, position: usize) -> TypedFunc<u32, ()> {
        let Self { store, instance, methods, .. } = self;
        let found = methods[position].get_or_insert_with(|| {
            instance
                .get_module_export(&mut *store, &code.methods[position].1)
                .and_then(Extern::into_func)
                .and_then(|function| function.typed::<u32, ()>(&*store).ok())
                .expect("validation demands the type of methods")
        });
        found.clone()
    }

    /// Whether it can be renewed, after a body that has returned.
    pub(super) fn is_renewable(&self, code: &Compiled) -> bool {
        let image = code.image.get();
        image.is_some_and(|image| self.memory.data_size(&self.store) == image.len())
    }

    /// Makes it like new.
    fn renew(&mut self, code: &Compiled) {
        let image = code.image.get().expect("it was kept, so it can be renewed");
        if self.renewals == SETTLED {
            self.pages = Pages::watch(&mut self.store, self.memory);
        }
        let memory = self.memory.data_mut(&mut self.store);
        let same = image.restore(memory, self.pages.as_ref());
        if let (SETTLED, Some(pages)) = (self.renewals % FORGET, &self.pages) {
            pages.protect(same);
        }
        self.renewals = self.renewals.wrapping_add(1);
        for (global, value) in &self.globals {
            global.set(&mut self.store, *value).expect("it had this value before");
        }
    }
}

/// A new instance, or why there is none.
pub(super) type NewInstance = wasmtime::Result<Idle>;

/// Instances that are kept.
#[derive(Default)]
pub(super) struct Kept {
    by_code: BTreeMap<CodeHash, Vec<Idle>>,
    count: usize,
}

impl Kept {
    /// One that is like new, with this limit on its memory.
    pub(super) fn take(&mut self, hash: CodeHash, code: &Compiled, limit: u64) -> Option<Idle> {
        let mut idle = self.by_code.get_mut(&hash)?.pop()?;
        self.count -= 1;
        if idle.store.data().memory_limit() != limit {
            return None;
        }
        idle.renew(code);
        Some(idle)
    }

    /// Keeps one, unless there are enough, some of them of its code.
    pub(super) fn add(&mut self, hash: CodeHash, idle: Idle) {
        if self.count == KEPT {
            if self.by_code.get(&hash).is_some_and(|of_code| !of_code.is_empty()) {
                return;
            }
            // Of which code some will be wanted next, nobody knows.
            self.clear();
        }
        self.by_code.entry(hash).or_default().push(idle);
        self.count += 1;
    }

    /// How many there are; each has a slot of the pool.
    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// Lets go of all of them.
    pub(super) fn clear(&mut self) {
        self.by_code.clear();
        self.count = 0;
    }
}
