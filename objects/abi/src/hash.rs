//! FNV-1a over 64 bits: the hash of signatures and layouts.
//!
//! It has to run in a constant, in a guest and in any other language; it need not withstand an
//! adversary, since a signature guards against mistakes, and code is named by a real hash.

/// State of the hash before the first byte.
pub(crate) const FNV_START: u64 = 0xcbf2_9ce4_8422_2325;

/// The hash after one more byte.
pub(crate) const fn fnv_step(hash: u64, byte: u8) -> u64 {
    (hash ^ byte as u64).wrapping_mul(0x0000_0100_0000_01b3)
}

/// FNV-1a-64 of these bytes.
#[must_use]
pub const fn fnv1a64(bytes: &[u8]) -> u64 {
    let mut hash = FNV_START;
    let mut index = 0;
    while index < bytes.len() {
        hash = fnv_step(hash, bytes[index]);
        index += 1;
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hash_agrees_with_the_published_vectors() {
        assert_eq!(fnv1a64(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a64(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv1a64(b"foobar"), 0x8594_4171_f739_67e8);
    }
}
