//! The directory for traces. What is wrong with it is found before a run, not at its end.

use std::ffi::OsStr;
use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use super::environment::invalid;
use crate::error::{Result, os_words};

/// Makes the directory, if only that is missing, and tries whether files can be made in it; its absolute path, since
/// the program may go elsewhere. `name` is the setting's.
pub fn prepare(path: &OsStr, name: &str) -> Result<PathBuf> {
    if path.is_empty() {
        return Err(invalid(format!("{name} is empty; it must be the path of a directory")));
    }
    let absolute = std::path::absolute(path);
    let ready = absolute.and_then(|path| try_out(&path).map(|()| path));
    ready.map_err(|error| invalid(format!("{name} {}: {}", Path::new(path).display(), os_words(&error))))
}

fn try_out(path: &Path) -> io::Result<()> {
    match fs::create_dir(path) {
        Err(error) if !path.is_dir() => {
            let is_file = error.kind() == io::ErrorKind::AlreadyExists;
            return Err(if is_file { io::ErrorKind::NotADirectory.into() } else { error });
        }
        _ => {}
    }
    // Ranks may try at the same time, and be threads of one process.
    static TRIES: AtomicU32 = AtomicU32::new(0);
    let number = TRIES.fetch_add(1, Ordering::Relaxed);
    // A name that is as long as any trace's: its path may be too long.
    let file = path.join(format!(".ring-{}-{number:050}", std::process::id()));
    OpenOptions::new().write(true).create_new(true).open(&file)?;
    fs::remove_file(&file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Status;

    #[test]
    fn a_directory_is_made_and_tried_out() {
        let folder = std::env::temp_dir().join(format!("ring-traces-{}", std::process::id()));
        for _ in 0..2 {
            assert_eq!(prepare(folder.as_os_str(), "trace_dir").unwrap(), folder);
            assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
        }
        // Names of 255 bytes, and a last one that leaves less than a trace's name of Linux's 4096.
        let mut deep = folder.clone();
        while deep.as_os_str().len() < 4050 {
            deep.push("d".repeat(255.min(4050 - deep.as_os_str().len())));
            if deep.as_os_str().len() < 4050 {
                fs::create_dir(&deep).unwrap();
            }
        }
        let file = folder.join("file");
        fs::write(&file, "").unwrap();
        for (path, why) in [
            (folder.join("a/b").into_os_string(), "No such file or directory"),
            (file.into_os_string(), "not a directory"),
            (deep.into_os_string(), "File name too long"),
            ("/proc".into(), "No such file or directory"),
            ("".into(), "RING_TRACE is empty; it must be the path of a directory"),
        ] {
            let error = prepare(&path, "RING_TRACE").unwrap_err();
            assert_eq!(error.status, Status::InvalidConfig);
            assert!(error.text.starts_with("RING_TRACE ") && error.text.ends_with(why), "{error}");
        }
        assert!(prepare("target".as_ref(), "trace_dir").unwrap().is_absolute());
        fs::remove_dir_all(&folder).unwrap();
    }
}
