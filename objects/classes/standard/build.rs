//! Compiles the standard classes.

fn main() {
    gesmas_build::embed(&[
        "../barrier",
        "../counter",
        "../delay-queue",
        "../election",
        "../latch",
        "../lease",
        "../lock",
        "../membership",
        "../priority-queue",
        "../queue",
        "../rate-limiter",
        "../register",
        "../rw-lock",
        "../semaphore",
        "../tuple-space",
        "../work-queue",
    ]);
}
