//! What the macros and types refuse, and what they say: one mistake a file in `refused/`, with the
//! compiler's words beside it. After a deliberate change, `TRYBUILD=overwrite` writes them anew;
//! read them before you keep them.

#[test]
fn mistakes_are_refused_with_what_to_do() {
    trybuild::TestCases::new().compile_fail("tests/refused/*.rs");
}
