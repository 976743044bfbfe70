//! Writes the golden files of the standard classes.
//!
//! For the day on which a class is added: what is there already is kept, since a file that is written
//! anew says nothing about what older versions left. Whoever breaks with them removes them first: all
//! three of a class, or all but the log where hashes or images have changed and calls do what they did.

use std::{io, path::Path};

use gesmas_durability::{Golden, scripts::ALL};

fn main() -> io::Result<()> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden/abi1");
    for standard in &ALL {
        match Golden::read(&folder, standard.name) {
            Ok(_) => println!("{} is kept", standard.name),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let golden = match Golden::read_log(&folder, standard.name) {
                    Ok(log) => Golden::of_log(log),
                    Err(_) => Golden::record(standard),
                };
                golden.write(&folder, standard.name)?;
                println!("{} is written", standard.name);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
