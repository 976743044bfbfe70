//! Compiles the standard classes.

fn main() {
    gesmas_build::embed(&[
        "../barrier",
        "../counter",
        "../election",
        "../lock",
        "../queue",
        "../register",
    ]);
}
