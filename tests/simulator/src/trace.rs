//! What happened: a digest of everything, and the last events in words if somebody wants them.
//!
//! Invariant: the digest takes in every event, so that two runs with equal digests did the same.
//! Words are made only on demand; a failing seed is run again for them.

use std::collections::VecDeque;

use crate::prng::mix;

/// Events that are kept in words.
const KEPT: usize = 40_000;

/// The trace of one run.
#[derive(Debug)]
pub(crate) struct Trace {
    digest: u64,
    words: Option<VecDeque<String>>,
}

impl Trace {
    /// An empty trace, with words or without.
    pub(crate) fn new(in_words: bool) -> Self {
        Self { digest: 0, words: in_words.then(VecDeque::new) }
    }

    /// Takes in numbers that describe an event.
    pub(crate) fn digest(&mut self, parts: &[u64]) {
        for part in parts {
            self.digest = mix(self.digest ^ *part);
        }
    }

    /// Takes in bytes.
    pub(crate) fn digest_bytes(&mut self, bytes: &[u8]) {
        self.digest(&[hash(bytes)]);
    }

    /// Tells an event in words.
    pub(crate) fn tell(&mut self, now: u64, words: impl FnOnce() -> String) {
        if let Some(kept) = &mut self.words {
            if kept.len() == KEPT {
                kept.pop_front();
            }
            kept.push_back(format!("{:>10}.{:06} {}", now / 1_000_000, now % 1_000_000, words()));
        }
    }

    /// The digest so far.
    pub(crate) fn value(&self) -> u64 {
        self.digest
    }

    /// The last events in words.
    pub(crate) fn words(&self) -> Vec<String> {
        self.words.iter().flatten().cloned().collect()
    }
}

/// A hash of bytes that means the same for ever.
pub(crate) fn hash(bytes: &[u8]) -> u64 {
    let mut state = bytes.len() as u64;
    for chunk in bytes.chunks(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        state = mix(state ^ u64::from_le_bytes(word));
    }
    state
}
