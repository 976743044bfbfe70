//! Compiles the hostile class, and the codes of the one that is replaced.

fn main() {
    gesmas_build::embed(&[
        "classes/hostile",
        "classes/ledger/first",
        "classes/ledger/next",
        "classes/ledger/wide",
        "classes/ledger/mended",
    ]);
}
