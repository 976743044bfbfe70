//! Ports for servers.
//!
//! They lie below the range from which the system takes the ports of outgoing connections, so that a
//! replica that is down for a while finds its own free when it comes back.

use std::{
    net::{Ipv4Addr, SocketAddr, TcpListener},
    sync::atomic::{AtomicU32, Ordering},
};

const FIRST: u32 = 18_000;
const COUNT: u32 = 12_000;

/// An address on loopback that nobody listens on, and that this process gives out once.
///
/// # Panics
/// When there is none.
pub(crate) fn free_address() -> SocketAddr {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    // Processes that run at the same time begin apart.
    let start = std::process::id().wrapping_mul(613);
    for _ in 0..COUNT {
        let next = start.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed)) % COUNT + FIRST;
        let port = u16::try_from(next).expect("the range is one of ports");
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        if TcpListener::bind(address).is_ok() {
            return address;
        }
    }
    panic!("no port is free on loopback");
}
