//! Compiles the class that gives back what it is given.

fn main() {
    gesmas_build::embed(&["classes/echo"]);
}
