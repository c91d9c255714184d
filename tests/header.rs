//! The header that is committed is the one that the source makes.

use std::path::Path;
use std::process::Command;
use std::{env, fs};

#[test]
fn ring_h_is_fresh() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let generated = fs::read_to_string(env!("RING_GENERATED_HEADER")).unwrap();
    // The build has written the same text over the file: in a checkout git has what is committed.
    let git = Command::new("git").args(["show", ":include/ring.h"]).current_dir(root).output();
    let committed = match git {
        Ok(shown) if shown.status.success() => String::from_utf8(shown.stdout).unwrap(),
        _ => fs::read_to_string(root.join("include/ring.h")).unwrap(),
    };
    assert!(generated == committed, "include/ring.h is stale: commit the one that the build made");
}

#[test]
fn ring_h_has_the_version() {
    let header = fs::read_to_string(env!("RING_GENERATED_HEADER")).unwrap();
    for (part, value) in [
        ("MAJOR", env!("CARGO_PKG_VERSION_MAJOR")),
        ("MINOR", env!("CARGO_PKG_VERSION_MINOR")),
        ("PATCH", env!("CARGO_PKG_VERSION_PATCH")),
    ] {
        assert!(header.contains(&format!("#define RING_VERSION_{part} {value}\n")));
    }
}
