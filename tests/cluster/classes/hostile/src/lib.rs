//! `Hostile`: a class that does what no class should, one offence a method.
//!
//! Invariant: every method that fails writes a mark before it does, so that a test can see whether
//! its segment was undone.
//! Not here: what Rust does not let a class do (imports of its own, a start function); tests write
//! those modules as text.

use std::hint::black_box;

use gesmas_sdk::prelude::*;

/// A class that does what no class should.
#[class]
pub struct Hostile {
    mark: Value<u64>,
    heap: Deque<Bytes>,
    ping: Semaphore,
    pong: Semaphore,
    never: Semaphore,
}

#[methods]
impl Hostile {
    /// Takes an argument, so that no call creates an object by itself.
    #[init]
    fn init(&mut self, mark: u64) {
        assert!(mark < 1_000, "a mark of {mark} is refused");
        self.mark.set(mark);
    }

    /// The mark that the last method which ended well has left.
    #[read]
    pub fn mark(&self) -> Result<u64> {
        Ok(self.mark.get())
    }

    /// Behaves.
    pub fn leave_mark(&mut self, mark: u64) -> Result<u64> {
        self.mark.set(mark);
        Ok(mark)
    }

    /// Panics.
    pub fn panic_now(&mut self) -> Result<()> {
        self.mark.set(101);
        panic!("on purpose")
    }

    /// Loops for ever.
    pub fn spin(&mut self) -> Result<()> {
        self.mark.set(102);
        let mut count = 0_u64;
        loop {
            count = black_box(count).wrapping_add(1);
        }
    }

    /// Recurses for ever.
    pub fn recurse(&mut self) -> Result<u64> {
        self.mark.set(103);
        Ok(deeper(1, black_box(0)))
    }

    /// Recurses for ever, with local variables that lie in memory.
    pub fn recurse_with_locals(&mut self) -> Result<u64> {
        self.mark.set(103);
        Ok(deeper_with_locals(black_box(1)))
    }

    /// Allocates for ever.
    pub fn allocate(&mut self) -> Result<()> {
        self.mark.set(104);
        let mut all = Vec::new();
        loop {
            all.push(black_box(vec![1_u8; 10_000]));
        }
    }

    /// Writes for ever.
    pub fn write_forever(&mut self) -> Result<()> {
        self.mark.set(105);
        loop {
            self.heap.push_back(Bytes(vec![7_u8; 200_000]));
        }
    }

    /// Writes as much as a call can, so that many calls fill the object.
    pub fn fill(&mut self) -> Result<u64> {
        for _ in 0..4 {
            self.heap.push_back(Bytes(vec![7_u8; 200_000]));
        }
        Ok(self.heap.len())
    }

    /// Removes one value.
    pub fn empty(&mut self) -> Result<u64> {
        self.heap.pop_front();
        Ok(self.heap.len())
    }

    /// Writes one value that is too large.
    pub fn write_too_much(&mut self) -> Result<()> {
        self.mark.set(106);
        self.heap.push_back(Bytes(vec![7_u8; (1 << 20) + (64 << 10) + 1]));
        Ok(())
    }

    /// Returns too much.
    pub fn return_too_much(&mut self) -> Result<Bytes> {
        self.mark.set(107);
        Ok(Bytes(vec![7_u8; (1 << 20) + (64 << 10) + 1]))
    }

    /// One of two that wake each other for ever: waits for `wake_back`.
    pub fn wake_forever(&mut self) -> Result<()> {
        loop {
            self.ping.v();
            self.pong.p()?;
        }
    }

    /// The other one.
    pub fn wake_back(&mut self) -> Result<()> {
        loop {
            self.ping.p()?;
            self.pong.v();
        }
    }

    /// Starts over for ever.
    pub fn continue_forever(&mut self) -> Result<()> {
        self.mark.set(108);
        ctx::continue_with(Self::CONTINUE_FOREVER, ())
    }

    /// Waits until it is cancelled, and then panics instead of cleaning up.
    pub fn panic_in_cleanup(&mut self) -> Result<()> {
        if self.never.p().is_err() {
            self.mark.set(109);
            panic!("instead of cleaning up");
        }
        Ok(())
    }

    /// Waits until it is cancelled, and then loops for ever.
    pub fn spin_in_cleanup(&mut self) -> Result<()> {
        if self.never.p().is_err() {
            return self.spin();
        }
        Ok(())
    }

    /// A read that blocks.
    #[read]
    pub fn block_in_read(&self) -> Result<()> {
        self.never.clone().p()
    }

    /// A read that writes.
    #[read]
    pub fn write_in_read(&self) -> Result<()> {
        self.never.clone().v();
        Ok(())
    }

    /// A read that draws a token.
    #[read]
    pub fn draw_in_read(&self) -> Result<u64> {
        Ok(ctx::fencing_token())
    }

    /// A read that loops for ever.
    #[read]
    pub fn spin_in_read(&self) -> Result<()> {
        let mut count = 0_u64;
        loop {
            count = black_box(count).wrapping_add(1);
        }
    }

    /// A read that panics.
    #[read]
    pub fn panic_in_read(&self) -> Result<()> {
        panic!("in a read")
    }

    /// What clients must not call.
    #[handler]
    fn alarm(&mut self) {
        self.mark.set(110);
    }

    /// Panics unless the mark is this one.
    #[handler]
    fn check_mark(&mut self, expected: u64) {
        let mark = self.mark.get();
        self.mark.set(111);
        assert!(mark == expected, "the mark is {mark}");
    }

    /// Has the mark checked by a handler, soon.
    pub fn check_soon(&mut self, expected: u64) -> Result<()> {
        ctx::after(std::time::Duration::from_millis(1), Self::CHECK_MARK, (expected,));
        Ok(())
    }

    /// Makes a timer of the handler, so that there is one.
    pub fn arm(&mut self) -> Result<()> {
        ctx::after(std::time::Duration::from_secs(3_600), Self::ALARM, ());
        Ok(())
    }
}

/// Two operations that do not commute, so that no compiler makes it a loop.
#[inline(never)]
fn deeper(depth: u64, end: u64) -> u64 {
    if depth == end {
        return 0;
    }
    deeper(depth.wrapping_add(1), end).wrapping_mul(3) ^ depth
}

#[allow(unconditional_recursion, reason = "this is what the method is for")]
fn deeper_with_locals(depth: u64) -> u64 {
    black_box(deeper_with_locals(black_box(depth.wrapping_add(1)))).wrapping_add(1)
}
