//! A file that is whole whenever somebody reads it.

use std::fs::{self, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// Writes beside the file, and then puts that in its place.
pub fn replace(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let beside = path.with_extension("json.part");
    let written = fill(&beside, write).and_then(|()| fs::rename(&beside, path));
    if written.is_err() {
        let _ = fs::remove_file(&beside);
    }
    written
}

fn fill(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    // What was left there, be it a link to elsewhere, is not written to.
    let _ = fs::remove_file(path);
    let mut out = BufWriter::new(OpenOptions::new().write(true).create_new(true).open(path)?);
    write(&mut out)?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_there_stays_until_the_new_one_is_whole() {
        let folder = std::env::temp_dir().join(format!("ring-file-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("a.json");
        fs::write(folder.join("a.json.part"), "left over").unwrap();
        replace(&path, |out| out.write_all(b"one")).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"one");
        let half = |out: &mut dyn Write| {
            out.write_all(&[b'x'; 100_000])?;
            assert_eq!(fs::read(&path)?, b"one");
            Err(io::ErrorKind::StorageFull.into())
        };
        assert!(replace(&path, half).is_err());
        assert_eq!(fs::read(&path).unwrap(), b"one");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        fs::remove_dir_all(&folder).unwrap();
    }
}
