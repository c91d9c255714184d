//! The shared library exports what ring.h declares and nothing else, and knows what it is called.
#![cfg(target_os = "linux")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// Cargo builds the library in every form, beside this test's program.
fn library() -> PathBuf {
    env::current_exe().unwrap().with_file_name("libring.so")
}

fn output(program: &str, options: &[&str]) -> String {
    let run = Command::new(program).args(options).arg(library()).output();
    let run = run.unwrap_or_else(|error| panic!("{program}, which comes with the linker: {error}"));
    assert!(run.status.success(), "{program}: {}", String::from_utf8_lossy(&run.stderr));
    String::from_utf8(run.stdout).unwrap()
}

/// The names before a parenthesis, outside comments.
fn declared() -> BTreeSet<String> {
    let header = Path::new(env!("CARGO_MANIFEST_DIR")).join("include/ring.h");
    let header = fs::read_to_string(header).unwrap();
    let code = header.lines().filter(|line| !line.trim_start().starts_with(['*', '/', '#']));
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let names = code.filter_map(|line| line.split_once('(').map(|(before, _)| before));
    let names = names.map(|before| before.rsplit(|c| !is_name(c)).next().unwrap_or(""));
    names.filter(|name| name.starts_with("ring_")).map(str::to_owned).collect()
}

#[test]
fn exports_are_the_headers_functions() {
    let table = output("nm", &["-D", "--defined-only"]);
    let exported: BTreeSet<_> =
        table.lines().map(|line| line.rsplit(' ').next().unwrap().to_owned()).collect();
    assert!(exported.contains("ring_all_reduce"), "{table}");
    assert_eq!(exported, declared());
}

#[test]
fn the_library_has_a_name_and_stays_loaded() {
    let dynamic = output("readelf", &["-d"]);
    let soname = format!("Library soname: [libring.so.{}]", env!("CARGO_PKG_VERSION_MAJOR"));
    assert!(dynamic.contains(&soname), "{dynamic}");
    assert!(dynamic.contains("NODELETE"), "{dynamic}");
}
