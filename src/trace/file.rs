//! A file that is whole whenever somebody reads it.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

/// Writes beside the file, and then puts that in its place.
pub fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let beside = path.with_extension("json.part");
    let written = fill(&beside, content).and_then(|()| fs::rename(&beside, path));
    if written.is_err() {
        let _ = fs::remove_file(&beside);
    }
    written
}

fn fill(path: &Path, content: &[u8]) -> io::Result<()> {
    // What was left there, be it a link to elsewhere, is not written to.
    let _ = fs::remove_file(path);
    OpenOptions::new().write(true).create_new(true).open(path)?.write_all(content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_and_nothing_left_beside_it() {
        let folder = std::env::temp_dir().join(format!("ring-file-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("a.json");
        fs::write(folder.join("a.json.part"), "left over").unwrap();
        replace(&path, b"one").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"one");
        // What can't be put in the other's place leaves nothing.
        fs::create_dir(folder.join("b")).unwrap();
        assert!(replace(&folder.join("b"), b"two").is_err());
        assert!(replace(&folder.join("missing/c.json"), b"two").is_err());
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 2);
        fs::remove_dir_all(&folder).unwrap();
    }
}
