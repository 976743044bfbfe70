//! Waiting for conditions, with a bound.

use std::{
    future::Future,
    time::{Duration, Instant},
};

/// How long anything may take that a cluster does by itself: an election, catching up, a compilation.
pub const PATIENCE: Duration = Duration::from_secs(40);
/// Between two looks at a condition.
const LOOK: Duration = Duration::from_millis(10);

/// Looks until `look` gives something.
///
/// # Panics
/// When it gives nothing for [`PATIENCE`].
pub async fn until_some<T, F: Future<Output = Option<T>>>(
    what: &str,
    mut look: impl FnMut() -> F,
) -> T {
    let start = Instant::now();
    while start.elapsed() < PATIENCE {
        if let Some(found) = look().await {
            return found;
        }
        tokio::time::sleep(LOOK).await;
    }
    panic!("{what} did not happen within {PATIENCE:?}");
}

/// Looks until `look` is true.
///
/// # Panics
/// When it is not for [`PATIENCE`].
pub async fn until<F: Future<Output = bool>>(what: &str, mut look: impl FnMut() -> F) {
    until_some(what, || {
        let looked = look();
        async { looked.await.then_some(()) }
    })
    .await;
}

/// Waits for something that ends by itself.
///
/// # Panics
/// When it takes longer than [`PATIENCE`].
pub async fn bounded<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(PATIENCE, future).await {
        Ok(result) => result,
        Err(_) => panic!("{what} took longer than {PATIENCE:?}"),
    }
}
