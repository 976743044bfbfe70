//! Compiles classes of other languages, and attaches their interfaces.
//!
//! Invariants: sources are copied into `target/languages/LANGUAGE` and compiled there by the script of
//! their folder, as its README tells authors to; only one test at a time does so in a language.

use std::{
    env,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use gesmas_cluster_tests::{gesmas_binary, with_interface};

/// A language with a library in `objects/languages`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// AssemblyScript.
    AssemblyScript,
    /// C.
    C,
    /// Zig.
    Zig,
}

impl Language {
    /// The name of its folder in `objects/languages`.
    #[must_use]
    pub const fn folder(self) -> &'static str {
        match self {
            Self::AssemblyScript => "assemblyscript",
            Self::C => "c",
            Self::Zig => "zig",
        }
    }

    /// How the names of its sources end.
    const fn extension(self) -> &'static str {
        match self {
            Self::AssemblyScript => "ts",
            Self::C => "c",
            Self::Zig => "zig",
        }
    }

    /// Whether `GESMAS_LANGUAGES` wants it, a list set apart by commas; without one all are wanted.
    #[must_use]
    pub fn is_wanted(self) -> bool {
        let Ok(listed) = env::var("GESMAS_LANGUAGES") else { return true };
        let wanted = listed.split(',').any(|name| name.trim() == self.folder());
        if !wanted {
            println!("{self:?} is not tested: GESMAS_LANGUAGES is {listed:?}");
        }
        wanted
    }

    /// The queue as it would be shipped: compiled, and with its interface attached by the command line.
    ///
    /// # Panics
    /// When it cannot be compiled, with what to do about it.
    #[must_use]
    pub fn queue(self) -> Vec<u8> {
        read(&self.shipped_queue("BoundedQueue"))
    }

    /// The file of the queue under another name, so that a cluster can have it in several languages.
    ///
    /// # Panics
    /// As [`queue`](Self::queue).
    #[must_use]
    pub fn shipped_queue(self, class: &str) -> PathBuf {
        let _locked = self.lock();
        let folder = self.work(&format!("queue-{class}"));
        self.compile("queue", &folder);
        let interface = String::from_utf8(read(&languages().join("queue.json")));
        let interface = interface.expect("it is a text").replace("BoundedQueue", class);
        write(&folder.join("queue.json"), interface.as_bytes());
        let shipped = folder.join(format!("{class}.wasm"));
        let mut build = Command::new(gesmas_binary());
        build.args(["class", "build"]).arg(folder.join("queue.wasm"));
        build.arg("--interface").arg(folder.join("queue.json")).arg("-o").arg(&shipped);
        run(&mut build);
        shipped
    }

    /// The queue with a mistake in it: `good`, which is in its source, is replaced.
    ///
    /// # Panics
    /// As [`queue`](Self::queue), and when `good` is not in the source.
    #[must_use]
    pub fn wrong_queue(self, good: &str, bad: &str, interface: &[u8]) -> Vec<u8> {
        let _locked = self.lock();
        let folder = self.work("wrong");
        let source =
            String::from_utf8(read(&folder.join(self.source("queue")))).expect("it is a text");
        assert!(source.contains(good), "the queue in {self:?} has no {good:?}");
        write(&folder.join(self.source("wrong")), source.replace(good, bad).as_bytes());
        self.compile("wrong", &folder);
        with_interface(read(&folder.join("wrong.wasm")), interface)
    }

    /// A class of this crate's specimens, with its interface attached.
    ///
    /// # Panics
    /// As [`queue`](Self::queue).
    #[must_use]
    pub fn specimen(self, name: &str, interface: &[u8]) -> Vec<u8> {
        let _locked = self.lock();
        let folder = self.work(name);
        let source = self.source(name);
        let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("specimen");
        write(&folder.join(&source), &read(&own.join(&source)));
        self.compile(name, &folder);
        with_interface(read(&folder.join(format!("{name}.wasm"))), interface)
    }

    fn source(self, name: &str) -> String {
        format!("{name}.{}", self.extension())
    }

    /// Keeps other tests, of other processes too, out of the cache until it is dropped.
    fn lock(self) -> fs::File {
        let path = cache(self).join("lock");
        let locked = fs::File::create(&path).and_then(|file| file.lock().map(|()| file));
        locked.unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// A folder to compile in, with the library of the language, and nothing of an earlier run.
    fn work(self, name: &str) -> PathBuf {
        let folder = cache(self).join(format!("work-{name}"));
        if folder.exists() {
            fs::remove_dir_all(&folder).expect("a folder of ours can be removed");
        }
        fs::create_dir_all(&folder).expect("the target folder can be written");
        let sources = languages().join(self.folder());
        for entry in fs::read_dir(&sources).expect("every language has a folder") {
            let path = entry.expect("the folder can be read").path();
            if path.is_file() {
                let copy = folder.join(path.file_name().expect("it has a name"));
                fs::copy(&path, copy).expect("a source can be copied");
            }
        }
        folder
    }

    /// Runs the script of the folder, with the compiler found. The shell is what is started: another
    /// thread that starts a process may still have a copy open, and what is open is not executed.
    fn compile(self, name: &str, folder: &Path) {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("prepare");
        let found = run(Command::new(script).arg(self.folder()).arg(cache(self)));
        let mut path = OsString::from(found.trim());
        if let Some(more) = env::var_os("PATH") {
            path.push(":");
            path.push(more);
        }
        run(Command::new("sh").arg(folder.join("build")).arg(name).env("PATH", path));
    }
}

/// The folder of all languages.
fn languages() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../objects/languages")
}

/// Where the compiler of a language and what it makes are kept. Test executables lie in
/// `TARGET/PROFILE/deps`.
fn cache(language: Language) -> PathBuf {
    let test = env::current_exe().expect("a process knows its executable");
    let target = test.ancestors().nth(3).expect("it lies in a target folder");
    let folder = target.join("languages").join(language.folder());
    fs::create_dir_all(&folder).expect("the target folder can be written");
    folder
}

/// Runs a program, and gives what it printed.
fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?} fails:\n{complaint}{printed}");
    printed
}

fn read(path: &Path) -> Vec<u8> {
    fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn write(path: &Path, bytes: &[u8]) {
    fs::write(path, bytes).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}
