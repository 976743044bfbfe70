//! Folders whose place survives a power cut.
//!
//! A new folder is an entry in the folder above it, and what is in it is durable only once that entry
//! is: whoever keeps files that must last makes the folder here.
//! Not here: the files.

use std::{fs::File, io, path::Path};

/// Makes a folder, and those above it that are not there, and has the entry of each made durable. An
/// earlier life may have made it and lost power before that, so the entry of one that is there is made
/// durable, too.
///
/// # Errors
/// What the system says.
pub(crate) fn make(folder: &Path) -> io::Result<()> {
    let above = match folder.parent() {
        None => return Ok(()),
        Some(above) if above.as_os_str().is_empty() => Path::new("."),
        Some(above) => above,
    };
    match std::fs::create_dir(folder) {
        Ok(()) => sync(above),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            make(above)?;
            std::fs::create_dir(folder)?;
            sync(above)
        }
        Err(_) if folder.is_dir() => match sync(above) {
            // It was made by somebody who may; there is nothing that we could do about it.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
            synced => synced,
        },
        Err(error) => Err(error),
    }
}

/// Makes durable which files a folder has.
///
/// # Errors
/// What the system says.
pub(crate) fn sync(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_made_and_what_is_there_stays() {
        let above = tempfile::tempdir().expect("a folder can be made");
        let folder = above.path().join("a/b/c");
        make(&folder).expect("nothing stands in the way");
        std::fs::write(folder.join("file"), b"kept").expect("it can be written to");
        make(&folder).expect("it is there");
        assert_eq!(std::fs::read(folder.join("file")).expect("it is there"), b"kept");
        make(&folder.join("file")).expect_err("it is a file");
        make(&folder.join("file/d")).expect_err("there is a file above it");
    }
}
