//! Images: the whole state as bytes, suspended invocations included, and back.
//!
//! An image holds journals, no stacks; bodies are rebuilt when they are resumed. It is taken
//! between entries of the log. It is a magic number, the hash of the rest, and the encoded state.
//! Invariants: a machine made from an image has the same hash and the same future as the one it
//! was taken of; an image that is damaged, of another version or of another engine is refused.
//! Not here: files of images, and what makes a state sound (`check.rs`).

use crate::{
    check,
    encoding::{self, DecodeError},
    engine::Engine,
    machine::{Machine, Settings},
    state::{ClassStatus, State},
    sum::{Kind, Sum},
};

/// Says what the bytes are, and their format.
const MAGIC: [u8; 8] = *b"gesmas\x00\x02";

/// Bytes of the hash after it.
const HASH: usize = 32;

/// Why an image is refused.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// It is no image, or one of another format.
    #[error("this is no image of this format")]
    Format,
    /// It does not decode.
    #[error("the image is malformed: {0}")]
    Malformed(#[from] DecodeError),
    /// Its bytes do not have the hash that stands before them.
    #[error("the image is damaged: its bytes have another hash")]
    Torn,
    /// Its records contradict each other, or do not have the sum that they claim.
    #[error("the state is damaged: {what}")]
    Damaged {
        /// What is wrong.
        what: String,
    },
    /// Another engine or version made it.
    #[error("the image is of another engine or version: {0}")]
    Incompatible(String),
}

impl<E: Engine> Machine<E> {
    /// The state as bytes.
    ///
    /// # Panics
    /// In the middle of an entry: [`Machine::run`] returned [`crate::Progress::More`] or `Paused`.
    #[must_use]
    pub fn encode_image(&self) -> Vec<u8> {
        assert!(self.is_between_entries(), "an image is taken between entries");
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&[0; HASH]);
        encoding::encode_into(&self.world.state, &mut bytes);
        let (head, body) = bytes.split_at_mut(MAGIC.len() + HASH);
        head[MAGIC.len()..].copy_from_slice(blake3::hash(body).as_bytes());
        bytes
    }

    /// A machine with the state of an image.
    ///
    /// # Errors
    /// [`ImageError`] when the image cannot be trusted or cannot be run here.
    pub fn from_image(image: &[u8], engine: E, settings: Settings) -> Result<Self, ImageError> {
        let rest = image.strip_prefix(&MAGIC).ok_or(ImageError::Format)?;
        let (hash, body) = rest.split_first_chunk::<HASH>().ok_or(ImageError::Format)?;
        if blake3::hash(body) != *hash {
            return Err(ImageError::Torn);
        }
        let mut state: State = encoding::decode(body)?;
        if !state.runs_on(&engine.identity()) {
            let engine = state.genesis().engine.description.clone();
            return Err(ImageError::Incompatible(engine));
        }
        check::check(&state)?;
        for invocation in state.invocations.values_mut() {
            invocation.running.has_blocked = true;
        }
        let mut machine = Self::with_state(state, engine, settings);
        let ready = machine.world.state.classes.values().filter(|class| {
            class.status == ClassStatus::Ready && !machine.engine.is_compiled(class.code)
        });
        machine.paused = ready.map(|class| class.code).collect();
        Ok(machine)
    }

    /// Hash of the whole state: equal on replicas that are at the same step.
    #[must_use]
    pub fn state_hash(&self) -> Sum {
        let state = &self.world.state;
        let classes: Vec<_> =
            state.classes.iter().map(|(name, class)| (name, class.code, &class.status)).collect();
        Sum::of(
            Kind::State,
            &(
                (state.total, state.epoch, state.step, state.now, state.ballot),
                (&state.genesis, classes, state.next, state.state_bytes),
            ),
        )
    }
}
