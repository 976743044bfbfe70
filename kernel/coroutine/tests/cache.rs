//! The cache of compiled code: what it keeps, and what it does not trust.

mod driver;

use std::{fs, os::unix::fs::PermissionsExt};

use driver::{body, engine, run};
use gesmas_coroutine::{Cache, CacheError};
use gesmas_machine::{Answer, CodeHash, End};

/// The one file of code in a cache.
fn stored(folder: &std::path::Path) -> std::path::PathBuf {
    let mut files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    files.find(|path| path.extension().is_some_and(|end| end == "code")).expect("one is stored")
}

#[test]
fn code_comes_back_from_the_cache() {
    let folder = tempfile::tempdir().unwrap();
    let module = body("(call $return_number (i64.const 9))");
    let code = CodeHash::of(&module);
    let compiler = engine().compiler();
    let cache = Cache::open(folder.path()).unwrap();
    assert!(cache.load(code).unwrap().is_none());
    cache.store(code, &compiler.artifact(&module).unwrap()).unwrap();

    let mut engine = engine();
    let again = Cache::open(folder.path()).unwrap();
    let artifact = again.load(code).unwrap().expect("it was stored");
    engine.install(code, engine.compiler().load(&artifact).unwrap());
    let end = run(&mut engine, code, "run", &[], |_| Answer::Unit).end;
    assert_eq!(end, End::Returned(9u64.to_le_bytes().to_vec()));
}

#[test]
fn code_that_was_touched_or_moved_is_not_trusted() {
    let folder = tempfile::tempdir().unwrap();
    let module = body("(call $return_number (i64.const 9))");
    let code = CodeHash::of(&module);
    let artifact = engine().compiler().artifact(&module).unwrap();
    let cache = Cache::open(folder.path()).unwrap();
    cache.store(code, &artifact).unwrap();
    let path = stored(folder.path());
    let whole = fs::read(&path).unwrap();

    for place in [0, 31, 32, whole.len() / 2, whole.len() - 1] {
        let mut touched = whole.clone();
        touched[place] ^= 1;
        fs::write(&path, touched).unwrap();
        assert!(matches!(cache.load(code), Err(CacheError::NotOurs(_))));
    }
    for length in [0, 10, 32, whole.len() - 1] {
        fs::write(&path, &whole[..length]).unwrap();
        assert!(matches!(cache.load(code), Err(CacheError::NotOurs(_))));
    }

    // The same file under the name of other code, and in the cache of another server.
    let other = CodeHash::of(b"other");
    let moved = path.to_str().unwrap().replace(&code.to_string(), &other.to_string());
    fs::write(moved, &whole).unwrap();
    assert!(matches!(cache.load(other), Err(CacheError::NotOurs(_))));
    let elsewhere = tempfile::tempdir().unwrap();
    let foreign = Cache::open(elsewhere.path()).unwrap();
    fs::write(elsewhere.path().join(path.file_name().unwrap()), &whole).unwrap();
    assert!(matches!(foreign.load(code), Err(CacheError::NotOurs(_))));

    cache.store(code, &artifact).unwrap();
    assert!(cache.load(code).unwrap().is_some(), "storing again replaces what is not trusted");
}

#[test]
fn the_secret_is_its_owners_alone() {
    let folder = tempfile::tempdir().unwrap();
    Cache::open(folder.path()).unwrap();
    let secret = folder.path().join("secret");
    let mode = fs::metadata(&secret).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o640)).unwrap();
    assert!(matches!(Cache::open(folder.path()), Err(CacheError::SecretExposed(_))));
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).unwrap();
    fs::write(&secret, "short").unwrap();
    assert!(matches!(Cache::open(folder.path()), Err(CacheError::SecretDamaged(_))));
}
