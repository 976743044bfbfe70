//! A deterministic simulator of the replica core.
