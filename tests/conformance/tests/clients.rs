//! The clients of other languages do what the list of cases says, through three real replicas.
//!
//! `GESMAS_CASE=NAME` runs one case alone.

use gesmas_conformance::{Desk, PYTHON, PYTHON_ASYNCIO, TYPESCRIPT, prepare, run_unit_tests};

#[tokio::test]
async fn values_are_converted_as_they_should() {
    prepare().await;
    run_unit_tests().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn python_clients_conform() {
    prepare().await;
    Desk::open(TYPESCRIPT).await.run(PYTHON).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn asyncio_clients_conform() {
    prepare().await;
    Desk::open(TYPESCRIPT).await.run(PYTHON_ASYNCIO).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn typescript_clients_conform() {
    prepare().await;
    Desk::open(PYTHON).await.run(TYPESCRIPT).await;
}
