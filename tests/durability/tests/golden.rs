//! What the first version of the binary interface left behind goes on as it would have then.
//!
//! Modules, entries of the log, images and journals in them are those of that time; the files are never
//! written anew (`cargo run --release -p gesmas-durability` adds those of new classes).

use std::path::Path;

use gesmas_durability::{Golden, scripts::ALL};

#[test]
fn logs_and_images_of_this_version_go_on() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden/abi1");
    for standard in &ALL {
        eprintln!("class {}:", standard.name);
        let golden = Golden::read(&folder, standard.name).expect("each class has its files");
        let rebuilt = golden.check();
        eprintln!("{rebuilt} bodies were rebuilt");
        assert_eq!(rebuilt > 0, !standard.points.is_empty(), "whether bodies are rebuilt");
    }
}
