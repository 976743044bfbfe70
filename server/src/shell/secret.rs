//! What the replicas of a cluster prove to each other, and how.
//!
//! ```text
//! dialler ──► greeting with a nonce          acceptor
//!         ◄── greeting with a nonce
//!         ──► proof: keyed hash of both greetings
//!         ◄── proof: the same, for the other role
//!         ──► frames, each with a tag: keyed hash of its number, its length and its body
//! ```
//!
//! The key comes from a secret that the replicas share, and each connection has a key of its own, of both
//! nonces. So who does not know the secret can neither begin a connection, nor repeat, reflect, leave out
//! or reorder what was said on one. Nothing is encrypted: who can listen reads along. The dialler proves first,
//! so that a stranger at the peers' port gets nothing to guess the secret with.
//! Without a secret all this goes on with a key that everybody has: that keeps accidents out, nobody else.
//! Invariant: proofs and tags are compared in a time that does not depend on them.
//! Not here: the connections (`peers.rs`), and when a secret is needed (`config.rs`).

use std::{
    fs,
    io::{self, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
};

use blake3::{Hash, Hasher};

use super::config::{ConfigError, setting};

/// Format of greetings, proofs and frames.
const FORMAT: u32 = 2;
const MAGIC: [u8; 8] = *b"gesmaspr";
pub(super) const NONCE_BYTES: usize = 32;
/// Magic, format, cluster, sender, receiver, nonce.
pub(super) const GREETING_BYTES: usize = 8 + 4 + 16 + 8 + 8 + NONCE_BYTES;
pub(super) const PROOF_BYTES: usize = 32;
/// Length and tag of a frame.
pub(super) const FRAME_HEADER_BYTES: usize = 4 + PROOF_BYTES;

/// Fewest bytes of a secret.
const LEAST_BYTES: usize = 16;
/// Most bytes of its file.
const MOST_BYTES: u64 = 4_096;
/// What the key is for; a secret that is used for something else as well makes another key there.
const PURPOSE: &str = "gesmas 2026-11 connections between replicas";

/// A nonce.
pub(super) type Nonce = [u8; NONCE_BYTES];

/// The key that the replicas share.
#[derive(Clone)]
pub(crate) struct Secret([u8; 32]);

impl Secret {
    /// What replicas have that share no secret.
    pub(super) fn none() -> Self {
        Self(blake3::derive_key(PURPOSE, b""))
    }

    /// Reads the secret in a file; white space around it does not count.
    pub(super) fn read(path: &Path) -> Result<Self, ConfigError> {
        let bad =
            |problem: String| setting("peer_secret_file", format!("{}: {problem}", path.display()));
        let length = fs::metadata(path).map_err(|error| bad(error.to_string()))?.len();
        if length > MOST_BYTES {
            return Err(bad(format!(
                "a secret has at most {MOST_BYTES} bytes, this file {length}"
            )));
        }
        let bytes = fs::read(path).map_err(|error| bad(error.to_string()))?;
        let secret = bytes.trim_ascii();
        if secret.len() < LEAST_BYTES {
            let problem = format!(
                "a secret has at least {LEAST_BYTES} bytes, this one {}; `openssl rand -hex 32` makes a \
                 good one",
                secret.len()
            );
            return Err(bad(problem));
        }
        Ok(Self(blake3::derive_key(PURPOSE, secret)))
    }

    /// Makes a file with a new secret that only its owner can read, unless it is there.
    ///
    /// # Errors
    /// What the system says.
    pub(crate) fn make(path: &Path) -> io::Result<()> {
        if path.exists() {
            return Ok(());
        }
        let mut secret = [0; 32];
        getrandom::fill(&mut secret).map_err(|error| io::Error::other(error.to_string()))?;
        // Written aside and renamed: a crash leaves no half of a secret.
        let aside = path.with_extension("new");
        let mut options = fs::OpenOptions::new();
        let mut file = options.create(true).write(true).truncate(true).mode(0o600).open(&aside)?;
        writeln!(file, "{}", Hash::from_bytes(secret).to_hex())?;
        file.sync_all()?;
        fs::rename(&aside, path)
    }

    /// What both ends of a connection have said to begin it: who dialled comes first.
    pub(super) fn link(&self, dialler: &Greeting, acceptor: &Greeting) -> Link {
        let hash = |purpose: &[u8; 8]| {
            let mut hasher = Hasher::new_keyed(&self.0);
            hasher.update(purpose).update(&dialler.encode()).update(&acceptor.encode());
            hasher.finalize()
        };
        Link { dialler: hash(b"dialler "), acceptor: hash(b"acceptor"), frames: hash(b"frames  ") }
    }
}

/// Who wants to talk to whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Greeting {
    pub(super) cluster: u128,
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) nonce: Nonce,
}

impl Greeting {
    pub(super) fn encode(&self) -> [u8; GREETING_BYTES] {
        let mut bytes = Vec::with_capacity(GREETING_BYTES);
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&FORMAT.to_le_bytes());
        bytes.extend_from_slice(&self.cluster.to_le_bytes());
        bytes.extend_from_slice(&self.from.to_le_bytes());
        bytes.extend_from_slice(&self.to.to_le_bytes());
        bytes.extend_from_slice(&self.nonce);
        bytes.try_into().expect("the parts have this length")
    }

    /// None if it is no greeting of this format.
    pub(super) fn decode(bytes: &[u8; GREETING_BYTES]) -> Option<Self> {
        if bytes[..8] != MAGIC || u32::from_le_bytes(*part(bytes, 8)) != FORMAT {
            return None;
        }
        Some(Self {
            cluster: u128::from_le_bytes(*part(bytes, 12)),
            from: u64::from_le_bytes(*part(bytes, 28)),
            to: u64::from_le_bytes(*part(bytes, 36)),
            nonce: *part(bytes, 44),
        })
    }
}

fn part<const N: usize>(bytes: &[u8; GREETING_BYTES], at: usize) -> &[u8; N] {
    bytes[at..].first_chunk().expect("a greeting is that long")
}

/// What follows from two greetings for who knows the secret.
pub(super) struct Link {
    /// What the dialler proves with.
    pub(super) dialler: Hash,
    /// What the acceptor proves with.
    pub(super) acceptor: Hash,
    frames: Hash,
}

impl Link {
    /// What puts tags on the frames of the connection, or compares them: one of either for each end.
    pub(super) const fn tags(&self) -> Tags {
        Tags { key: *self.frames.as_bytes(), next: 0 }
    }
}

/// Whether somebody's proof is the one that it has to be.
pub(super) fn proves(proof: [u8; PROOF_BYTES], expected: Hash) -> bool {
    // Hashes are compared in constant time.
    Hash::from_bytes(proof) == expected
}

/// The tags of the frames of one connection, in their order.
pub(super) struct Tags {
    key: [u8; 32],
    next: u64,
}

impl Tags {
    /// Appends the next frame.
    pub(super) fn append(&mut self, body: &[u8], bytes: &mut Vec<u8>) {
        let length = u32::try_from(body.len()).expect("frames are smaller than their limit");
        bytes.extend_from_slice(&length.to_le_bytes());
        bytes.extend_from_slice(self.next(body).as_bytes());
        bytes.extend_from_slice(body);
    }

    /// Whether a body is the next one, by its tag.
    pub(super) fn fits(&mut self, tag: [u8; PROOF_BYTES], body: &[u8]) -> bool {
        proves(tag, self.next(body))
    }

    fn next(&mut self, body: &[u8]) -> Hash {
        let mut hasher = Hasher::new_keyed(&self.key);
        hasher.update(&self.next.to_le_bytes());
        hasher.update(&(body.len() as u64).to_le_bytes());
        hasher.update(body);
        self.next += 1;
        hasher.finalize()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn greeting(from: u64, to: u64, nonce: u8) -> Greeting {
        Greeting { cluster: 7, from, to, nonce: [nonce; NONCE_BYTES] }
    }

    fn secret(text: &str) -> Secret {
        Secret(blake3::derive_key(PURPOSE, text.as_bytes()))
    }

    #[test]
    fn greetings_are_what_they_were_and_others_are_none() {
        let greeting = greeting(1, 2, 3);
        let bytes = greeting.encode();
        assert_eq!(Greeting::decode(&bytes), Some(greeting));
        for at in 0..12 {
            let mut other = bytes;
            other[at] ^= 1;
            assert_eq!(Greeting::decode(&other), None, "byte {at}");
        }
    }

    /// Whatever differs on the two sides, and whatever is said a second time or sent back, proves
    /// nothing.
    #[test]
    fn a_proof_holds_for_one_connection_one_role_and_one_secret() {
        let (one, two) = (greeting(1, 2, 3), greeting(2, 1, 4));
        let right = secret("right").link(&one, &two);
        let hashes = |link: &Link| [link.dialler, link.acceptor, link.frames];
        let mut all = hashes(&right).to_vec();
        for (secret, one, two) in [
            (secret("wrong"), one, two),
            (Secret::none(), one, two),
            // Sent back to its sender.
            (secret("right"), two, one),
            // Repeated on another connection.
            (secret("right"), one, greeting(2, 1, 5)),
            (secret("right"), greeting(1, 2, 5), two),
            // Of another replica or cluster.
            (secret("right"), greeting(3, 2, 3), two),
            (secret("right"), Greeting { cluster: 8, ..one }, two),
        ] {
            all.extend(hashes(&secret.link(&one, &two)));
        }
        let count = all.len();
        all.sort_unstable_by_key(|hash| *hash.as_bytes());
        all.dedup();
        assert_eq!(all.len(), count, "no two are equal");
        assert!(proves(*right.dialler.as_bytes(), right.dialler));
        assert!(!proves(*right.dialler.as_bytes(), right.acceptor));
    }

    #[test]
    fn frames_count_once_in_their_order_and_as_they_were() {
        let link = secret("right").link(&greeting(1, 2, 3), &greeting(2, 1, 4));
        let mut sender = link.tags();
        let frames: Vec<_> = [&b"first"[..], b"", b"first"]
            .map(|body| {
                let mut bytes = Vec::new();
                sender.append(body, &mut bytes);
                let tag = *bytes[4..].first_chunk().expect("there is a tag");
                (tag, bytes[FRAME_HEADER_BYTES..].to_vec())
            })
            .into();
        let mut receiver = link.tags();
        assert!(frames.iter().all(|(tag, body)| receiver.fits(*tag, body)));
        assert!(!receiver.fits(frames[2].0, &frames[2].1), "it comes a second time");
        assert!(!link.tags().fits(frames[1].0, &frames[1].1), "the first is missing");
        assert!(!link.tags().fits(frames[0].0, b"fourth"), "the body is another");
        let other = secret("right").link(&greeting(1, 2, 9), &greeting(2, 1, 4));
        assert!(!other.tags().fits(frames[0].0, &frames[0].1), "the connection is another");
    }

    #[test]
    fn a_secret_that_was_made_is_good_and_stays() {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let path = folder.path().join("secret");
        let read = || {
            Secret::make(&path).expect("it is made, or there");
            Secret::read(&path).expect("it is good").0
        };
        assert_eq!(read(), read());
    }

    #[test]
    fn a_file_has_a_secret_that_is_long_enough() {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let path = folder.path().join("secret");
        let problem = |text: &[u8]| {
            fs::write(&path, text).expect("it can be written");
            Secret::read(&path).err().map(|error| error.to_string())
        };
        assert_eq!(problem(b" 0123456789abcdef\n"), None);
        let short = problem(b"  0123456789abcde \n").expect("one byte is missing");
        assert!(short.starts_with("peer_secret_file: ") && short.contains("16 bytes"), "{short}");
        assert!(problem(&[b'x'; 5_000]).is_some_and(|problem| problem.contains("at most")));
        assert!(Secret::read(&folder.path().join("none")).is_err());
    }
}
