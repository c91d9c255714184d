//! Modules depend downwards only.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Everyone may know these, and they know only each other.
const LEAVES: [&str; 5] = ["dtype", "error", "log", "memory", "panics"];

/// What each module may know besides the leaves.
const ARROWS: [(&str, &[&str]); 14] = [
    ("ffi", &["untyped"]),
    ("typed", &["untyped", "group", "bootstrap", "kernels"]),
    ("untyped", &["group", "bootstrap", "kernels"]),
    ("group", &["bootstrap", "watcher", "engine", "plan", "kernels", "wire", "link", "sys", "trace"]),
    ("engine", &["plan", "kernels", "wire", "link", "sys"]),
    ("bootstrap", &["frames", "wire", "link", "sys"]),
    ("watcher", &["frames", "wire", "link", "sys"]),
    ("frames", &["wire", "link", "sys"]),
    ("trace", &["wire", "sys"]),
    ("plan", &[]),
    ("kernels", &[]),
    ("link", &["sys"]),
    ("wire", &[]),
    ("sys", &[]),
];

/// Where unsafe code is allowed.
const UNSAFE: [&str; 5] = ["ffi", "kernels", "memory", "sys", "typed"];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The files of src by module: its first folder or its name.
fn modules() -> BTreeMap<String, Vec<(PathBuf, String)>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    sources(&root, &mut files);
    let mut modules: BTreeMap<String, Vec<_>> = BTreeMap::new();
    for file in files {
        let inside = file.strip_prefix(&root).unwrap();
        let first = Path::new(inside.components().next().unwrap().as_os_str());
        let module = first.file_stem().unwrap().to_str().unwrap().to_owned();
        let text = fs::read_to_string(&file).unwrap();
        modules.entry(module).or_default().push((file, text));
    }
    modules
}

/// The modules that a text names after `crate::`, in braces too.
fn named(text: &str) -> Vec<String> {
    let word = |text: &str| text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>();
    let mut names = Vec::new();
    for (at, start) in text.match_indices("crate::") {
        let rest = &text[at + start.len()..];
        match rest.strip_prefix('{').and_then(|list| list.split('}').next()) {
            Some(list) => names.extend(list.split(',').map(|item| word(item.trim()))),
            None => names.push(word(rest)),
        }
    }
    names
}

#[test]
fn modules_know_only_what_lies_below_them() {
    let modules = modules();
    for (module, files) in modules.iter().filter(|(module, _)| *module != "lib") {
        let allowed = match ARROWS.iter().find(|(name, _)| name == module) {
            Some((_, allowed)) => *allowed,
            None => {
                assert!(LEAVES.contains(&module.as_str()), "{module} stands in no table of this test");
                &[]
            }
        };
        for (file, text) in files {
            for name in named(text) {
                let known =
                    name == *module || LEAVES.contains(&name.as_str()) || allowed.contains(&name.as_str());
                let is_module = modules.contains_key(&name);
                assert!(known || !is_module, "{} knows {name}, which {module} may not", file.display());
            }
        }
    }
}

#[test]
fn the_c_boundary_has_only_what_the_crate_shows() {
    let modules = modules();
    let root = &modules["lib"][0].1;
    let hidden = |name: &str| root.contains(&format!("#[doc(hidden)]\npub mod {name};"));
    let shown: Vec<_> =
        modules.keys().filter(|name| root.contains(&format!("pub mod {name};")) && !hidden(name)).collect();
    assert_eq!(shown, ["log", "untyped"]);
    for (file, text) in modules["ffi"].iter().filter(|(file, _)| !file.ends_with("tests.rs")) {
        for name in named(text).into_iter().filter(|name| modules.contains_key(name)) {
            assert!(shown.contains(&&name), "{} takes {name}, which the crate hides", file.display());
        }
    }
}

#[test]
fn unsafe_code_is_where_it_may_be() {
    for (module, files) in modules() {
        for (file, text) in files {
            let allows = text.contains("allow(unsafe_code");
            assert!(!allows || UNSAFE.contains(&module.as_str()), "{} allows unsafe code", file.display());
        }
    }
}
