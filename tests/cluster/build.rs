//! Compiles the hostile class.

fn main() {
    gesmas_build::embed(&["classes/hostile"]);
}
