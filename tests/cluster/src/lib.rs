//! Tests of real gesmas processes on loopback.
