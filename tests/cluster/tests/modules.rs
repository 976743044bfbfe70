//! Modules that break a rule: each is refused with the rule's own error, before and after shipping.

use gesmas_client::{CallFailure, Session, protocol::CallError};
use gesmas_cluster_tests::{
    Bystander, Class, Cluster, arguments, hostile_class, interface_with, wait, with_interface,
};
use gesmas_counter::CounterStub;
use gesmas_lock::LockStub;

const MEMORY: &str = r#"(memory (export "memory") 1)"#;
const RUN: &str = r#"(func (export "m_run") (param i32))"#;

fn text(module: &str) -> Vec<u8> {
    wat::parse_str(module).expect("the text of the test is WebAssembly")
}

/// A class `Test` from the parts of a module.
fn module(parts: &str) -> Vec<u8> {
    with_interface(text(&format!("(module {parts})")), &interface_with("Test"))
}

/// What it is, the name to put it under, the module, the code of the error.
fn bad_modules() -> Vec<(&'static str, &'static str, Vec<u8>, &'static str)> {
    let good = hostile_class().module;
    let half = good[..good.len() / 2].to_vec();
    let import = |import: &str| module(&format!("{import} {MEMORY} {RUN}"));
    let wide = format!("{MEMORY} {RUN} (func (local {}))", "i64 ".repeat(3_000));
    let padded = with_interface(
        [text("(module)"), vec![0, 0x81, 0x80, 0x80, 1, 0], vec![0; 1 << 21]].concat(),
        &interface_with("Test"),
    );
    vec![
        ("a text", "Test", b"not a module at all".to_vec(), "module-invalid"),
        ("nothing", "Test", Vec::new(), "module-invalid"),
        ("half a module", "Hostile", half, "module-invalid"),
        (
            "a forbidden import",
            "Test",
            import(r#"(import "env" "now" (func (result i64)))"#),
            "module-import",
        ),
        (
            "WASI",
            "Test",
            import(r#"(import "wasi_snapshot_preview1" "proc_exit" (func (param i32)))"#),
            "module-import",
        ),
        (
            "an import of another type",
            "Test",
            import(r#"(import "gesmas1" "call" (func (param f64)))"#),
            "module-import",
        ),
        (
            "a start function",
            "Test",
            module(&format!("{MEMORY} {RUN} (func $go) (start $go)")),
            "module-start-function",
        ),
        ("no memory", "Test", module(RUN), "module-export-missing"),
        ("no method", "Test", module(MEMORY), "module-export-missing"),
        (
            "SIMD",
            "Test",
            module(&format!("{MEMORY} {RUN} (func (drop (v128.const i64x2 1 2)))")),
            "module-feature",
        ),
        ("too many locals", "Test", module(&wide), "module-limit"),
        (
            "no interface",
            "Test",
            text(&format!("(module {MEMORY} {RUN})")),
            "module-interface-missing",
        ),
        (
            "an interface that does not decode",
            "Test",
            with_interface(text(&format!("(module {MEMORY} {RUN})")), &[1, 0, 0, 0, 9]),
            "module-interface-malformed",
        ),
        (
            "the interface of another class",
            "Other",
            module(&format!("{MEMORY} {RUN}")),
            "module-other-class",
        ),
        ("too many bytes", "Test", padded, "limit"),
        ("a name that is none", "no name", good, "invalid"),
    ]
}

async fn put(session: &Session, class: &str, module: Vec<u8>) -> CallFailure {
    let put = wait::bounded("a put", session.put_class(class, module).into_future()).await;
    put.expect_err("the module is refused")
}

use std::future::IntoFuture as _;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bad_module_is_refused_by_the_rule_that_it_breaks() {
    let cluster = Cluster::start().await;
    let mut bystander = Bystander::start(&cluster).await;
    let session = cluster.session().await;
    for (what, class, module, code) in bad_modules() {
        let failure = put(&session, class, module).await;
        assert_eq!(failure.code(), code, "{what}: {failure}");
        assert!(failure.to_string().len() > 10, "{what}: {failure}");
        bystander.check().await;
    }
    let loaded = cluster.client().await.list_classes().await.expect("classes are listed");
    let loaded: Vec<_> = loaded.into_iter().map(|class| class.class).collect();
    assert_eq!(loaded, ["Counter", "Queue"], "nothing bad was loaded");
    bystander.finish(&cluster).await;
}

/// The client has no code of any of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_standard_class_is_loaded_when_it_is_needed_and_after_its_removal_again() {
    let cluster = Cluster::start().await;
    let session = cluster.session().await;
    let client = cluster.client().await;
    assert_eq!(client.list_classes().await.expect("classes are listed"), []);
    let count = || {
        let counter = CounterStub::new(session.clone(), "one");
        async move { wait::bounded("a call", counter.increment()).await.expect("it counts") }
    };
    assert_eq!((count().await, count().await), (1, 2));
    session.remove_object("Counter", "one").await.expect("it is removed");
    session.remove_class("Counter").await.expect("nothing needs it");
    assert_eq!(count().await, 1);
    // A read needs it as well.
    let lock = LockStub::new(session.clone(), "free");
    assert_eq!(wait::bounded("a read", lock.holder()).await.expect("it is read"), None);
    let classes = client.list_classes().await.expect("classes are listed");
    let names: Vec<_> = classes.iter().map(|class| class.class.as_str()).collect();
    assert_eq!(names, ["Counter", "Lock"]);
}

/// What keeps a standard class from being loaded does not leave its callers waiting.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn callers_of_a_standard_class_that_cannot_be_loaded_are_told() {
    let cluster = Cluster::start().await;
    let session = cluster.session().await;
    CounterStub::new(session.clone(), "one").increment().await.expect("it counts");
    session.set_limit("classes", 1).await.expect("the limit is changed");
    let lock = Class::standard("Lock");
    let call = lock.call(&session, "one", "lock", arguments((1_u64,))).without_deadline().send();
    let failure = wait::bounded("a call", call).await.expect_err("there is no room for its class");
    assert_eq!(failure.code(), "class-unknown", "{failure}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_name_keeps_its_code() {
    let cluster = Cluster::start().await;
    let mut bystander = Bystander::start(&cluster).await;
    let session = cluster.session().await;
    let is_taken = |failure: &CallFailure| {
        matches!(failure, CallFailure::Failed(CallError::ClassExists { .. }, _))
    };
    // Standard names are reserved, loaded or not.
    for name in ["Queue", "Lock"] {
        let other =
            with_interface(text(&format!("(module {MEMORY} {RUN})")), &interface_with(name));
        let failure = put(&session, name, other).await;
        assert!(is_taken(&failure), "{name}: {failure}");
        let own = Class::standard(name).module;
        session.put_class(name, own).await.expect("the standard code may have its name");
    }
    // The first put has the name; the same code again is welcome; other code is not.
    let first = module(&format!("{MEMORY} {RUN}"));
    let other = module(&format!("{MEMORY} {RUN} (func)"));
    let code = session.put_class("Test", first.clone()).await.expect("the class is put");
    let again = session.put_class("Test", first).await.expect("it is put again");
    assert_eq!(code, again);
    let failure = put(&session, "Test", other).await;
    assert!(is_taken(&failure), "{failure}");
    assert_eq!(failure.code(), "class-exists");
    bystander.check().await;
    bystander.finish(&cluster).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bad_module_that_a_client_ships_by_itself_fails_its_call() {
    let cluster = Cluster::start().await;
    let bystander = Bystander::start(&cluster).await;
    let session = cluster.session().await;
    session.add_class("Test", module(&format!("{MEMORY} {RUN} (func $go) (start $go)")));
    let call = session.call("Test", "one", "run", 0, arguments(()));
    let failure =
        wait::bounded("a call", call.into_future()).await.expect_err("it cannot be shipped");
    let CallFailure::Shipping { class, error } = &failure else { panic!("{failure}") };
    assert_eq!((class.as_str(), error.code()), ("Test", "module-start-function"));
    bystander.finish(&cluster).await;
}
