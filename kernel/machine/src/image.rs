//! Images: the whole state as bytes, suspended invocations included, and back.
//!
//! An image holds journals, no stacks; bodies are rebuilt when they are resumed. It is taken
//! between entries of the log. It is a magic number, the encoded state, and the hash of that.
//! A [`Snapshot`] is the state of one moment, to be written at leisure: it shares everything with
//! the machine, which copies what it changes from then on. So taking one costs no pause.
//! Invariants: a machine made from an image has the same hash and the same future as the one it
//! was taken of; an image that is damaged, of another version or of another engine is refused.
//! Not here: files of images, and what makes a state sound (`check.rs`).

use crate::{
    check,
    encoding::{self, DecodeError},
    engine::Engine,
    machine::{Machine, Settings},
    names::Step,
    planted::PlantedBug,
    state::{Origin, State, Status},
    sum::{Kind, Sum},
    world::World,
};

/// Says what the bytes are, and their format.
const MAGIC: [u8; 8] = *b"gesmas\x00\x06";

/// Bytes of the hash at the end.
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
    /// The state as it is now.
    ///
    /// # Panics
    /// In the middle of an entry: see [`Machine::is_between_entries`].
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        assert!(self.is_between_entries(), "a snapshot is taken between entries");
        if self.world.planted.has(PlantedBug::SnapshotMissesWaiter) {
            return Snapshot { state: without_a_waiter(&self.world) };
        }
        Snapshot { state: self.world.state.clone() }
    }

    /// The state as bytes.
    ///
    /// # Panics
    /// Like [`Machine::snapshot`].
    #[must_use]
    pub fn encode_image(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let written: Result<(), std::convert::Infallible> = self.snapshot().write(&mut |piece| {
            bytes.extend_from_slice(piece);
            Ok(())
        });
        written.expect("memory takes everything");
        bytes
    }

    /// A machine with the state of an image.
    ///
    /// # Errors
    /// [`ImageError`] when the image cannot be trusted or cannot be run here.
    pub fn from_image(image: &[u8], engine: E, settings: Settings) -> Result<Self, ImageError> {
        Self::from_snapshot(Snapshot::read(image)?, engine, settings)
    }

    /// A machine with the state of a snapshot.
    ///
    /// # Errors
    /// When it cannot be run here.
    pub fn from_snapshot(
        snapshot: Snapshot,
        engine: E,
        settings: Settings,
    ) -> Result<Self, ImageError> {
        let state = snapshot.state;
        if !state.runs_on(&engine.identity()) {
            let engine = state.genesis().engine.description.clone();
            return Err(ImageError::Incompatible(engine));
        }
        let mut machine = Self::with_state(state, engine, settings);
        machine.pause_until_compiled();
        Ok(machine)
    }

    /// Goes on with another state, later in the same history: what was left to do is forgotten, and
    /// effects that were not taken are kept.
    ///
    /// # Errors
    /// When it cannot be run here; nothing changes then.
    pub fn replace(&mut self, snapshot: Snapshot) -> Result<(), ImageError> {
        let state = snapshot.state;
        if !state.runs_on(&self.engine.identity()) {
            let engine = state.genesis().engine.description.clone();
            return Err(ImageError::Incompatible(engine));
        }
        assert!(state.step >= self.world.state.step, "a history goes forward");
        while let Some(oldest) = self.live.oldest() {
            self.drop_activation(oldest);
        }
        self.forget_work();
        let planted = self.world.planted;
        self.world = World::new(state);
        self.world.planted = planted;
        self.pause_until_compiled();
        Ok(())
    }

    /// Code that can be called is compiled before anything goes on.
    fn pause_until_compiled(&mut self) {
        let runnable = self.world.state.classes.values().flat_map(crate::state::Class::runnable);
        self.paused = runnable.filter(|code| !self.engine.is_compiled(*code)).collect();
    }

    /// Hash of the whole state: equal on replicas that are at the same step.
    #[must_use]
    pub fn state_hash(&self) -> Sum {
        state_hash(&self.world.state)
    }
}

/// The state of one moment. See the file's head.
#[derive(Clone, Debug)]
pub struct Snapshot {
    pub(crate) state: State,
}

impl Snapshot {
    /// The state as it is now, in the middle of an entry or not.
    pub(crate) fn of(state: &State) -> Self {
        Self { state: state.clone() }
    }

    /// Reads an image and checks all of it; where it can be run is another matter.
    ///
    /// # Errors
    /// [`ImageError`] when it cannot be trusted.
    pub fn read(image: &[u8]) -> Result<Self, ImageError> {
        let snapshot = Self::read_unsound(image)?;
        check::check(&snapshot.state)?;
        Ok(snapshot)
    }

    /// Reads an image to look at it, whether or not its records fit together.
    ///
    /// # Errors
    /// When its bytes are not those that were written.
    pub fn read_unsound(image: &[u8]) -> Result<Self, ImageError> {
        let rest = image.strip_prefix(&MAGIC).ok_or(ImageError::Format)?;
        let (body, hash) = rest.split_last_chunk::<HASH>().ok_or(ImageError::Format)?;
        if blake3::hash(body) != *hash {
            return Err(ImageError::Torn);
        }
        let mut state: State = encoding::decode(body)?;
        state.share_names();
        state.faulty = state.find_faulty();
        state.sum_replies();
        Ok(Self { state })
    }

    /// Whether its records fit together, as [`Snapshot::read`] demands.
    ///
    /// # Errors
    /// Names the first that does not.
    pub fn check(&self) -> Result<(), ImageError> {
        check::check(&self.state)
    }

    /// The same state at the beginning of another history, in which the log is empty: everything that
    /// comes is later than all that the old history may have given out after this moment. Numbers
    /// go on from far beyond it, and the epoch says which of two positions is the later one. `replicas`
    /// are those of the group from now on: majorities are theirs.
    #[must_use]
    pub fn restored(mut self, replicas: Vec<u64>) -> Self {
        let state = &mut self.state;
        if let Some(genesis) = &mut state.genesis {
            genesis.replicas = replicas;
        }
        state.epoch += 1;
        state.ballot = crate::command::Ballot::default();
        state.checkpoints = imbl::OrdMap::new();
        state.dispute = None;
        state.next.leap(u64::from(state.epoch));
        self
    }

    /// Gives the image to `sink`, in pieces of any size.
    ///
    /// # Errors
    /// The first of the sink, after which it gets nothing more.
    pub fn write<E>(&self, sink: &mut dyn FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        sink(&MAGIC)?;
        let mut hasher = blake3::Hasher::new();
        encoding::encode_to(&self.state, &mut |piece| {
            hasher.update(piece);
            sink(piece)
        })?;
        sink(hasher.finalize().as_bytes())
    }

    /// Steps so far.
    #[must_use]
    pub fn step(&self) -> Step {
        self.state.step
    }

    /// How many invocations are suspended in it.
    #[must_use]
    pub fn blocked(&self) -> u64 {
        self.state.invocations.len() as u64
    }

    /// Raised by a restore.
    #[must_use]
    pub fn epoch(&self) -> u32 {
        self.state.epoch
    }

    /// Hash of the whole state: equal on replicas that are at the same step.
    #[must_use]
    pub fn state_hash(&self) -> Sum {
        state_hash(&self.state)
    }
}

/// The state as if one of those who wait had never come: a planted bug.
fn without_a_waiter(world: &World) -> State {
    let mut world = World::new(world.state.clone());
    let mut requests =
        world.state.invocations.iter().filter_map(|(id, found)| match found.origin {
            Origin::Request { session, number } => Some((*id, session, number)),
            Origin::Alarm(_) => None,
        });
    let Some((id, session, number)) = requests.next_back() else { return world.state };
    let invocation = world.take_invocation(id).expect("it was just found");
    let Status::Blocked(blocked) = &invocation.status else { return world.state };
    world.leave_queue(&invocation.frame.object, &blocked.semaphore, blocked.ticket);
    for alarm in invocation.deadline.into_iter().chain(blocked.timeout) {
        world.drop_alarm(alarm);
    }
    for permit in invocation.permits {
        if world.state.permits.contains_key(&permit) {
            world.drop_permit(permit);
        }
    }
    if let Some(session) = world.state.session_mut(&session) {
        session.open.remove(&number);
    }
    world.state
}

fn state_hash(state: &State) -> Sum {
    let classes: Vec<_> =
        state.classes.iter().map(|(name, class)| (name, class.digest())).collect();
    Sum::of(
        Kind::State,
        &(
            (state.total, state.epoch, state.step, state.now, state.ballot),
            (&state.genesis, classes, state.next, state.state_bytes),
            (&state.checkpoints, state.dispute),
        ),
    )
}
