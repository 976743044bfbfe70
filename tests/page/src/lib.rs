//! A browser for tests of the page that replicas serve.
//!
//! Chromium is driven through its own `chromedriver`, by the few commands of WebDriver that are
//! needed, over the HTTP client that the other tests have: no more crates for a page.
//! Invariants: browser and driver end with the values that stand for them, by their own ids, and
//! leave nothing behind; nothing waits without a bound.
//! Not here: what is tested (`tests/page.rs`).

mod browser;
mod driver;

pub use crate::{
    browser::{Browser, Scheme, Window},
    driver::Driver,
};
