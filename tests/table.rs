//! The header's table has a slot for each of its functions, declared in the same words.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// From a declaration's name to the rest of it: what it returns and takes.
type Declared = BTreeMap<String, String>;

/// The header without comments and preprocessor lines, spaces made alike.
fn code() -> String {
    let header = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("include/ring.h")).unwrap();
    let lines = header.lines().map(str::trim).filter(|line| !line.starts_with(['*', '/', '#']));
    lines.flat_map(str::split_whitespace).collect::<Vec<_>>().join(" ").replace("( ", "(")
}

/// The statements of a part of the header that declare a function, or a pointer to one where the name stands in
/// `before` and `after`.
fn declared(code: &str, before: &str, after: &str) -> Declared {
    let statements =
        code.split([';', '{']).map(|statement| statement.trim().trim_start_matches("RING_NODISCARD "));
    let parts = statements.filter(|statement| !statement.starts_with("typedef")).filter_map(|statement| {
        let (head, parameters) = statement.split_once(after)?;
        let start = head.rfind(before)?;
        Some((head[start + before.len()..].to_owned(), format!("{}({parameters}", head[..start].trim_end())))
    });
    parts.collect()
}

fn slots() -> Declared {
    let code = code();
    let (_, rest) = code.split_once("typedef struct ring_api_v1 {").unwrap();
    declared(rest.split_once('}').unwrap().0, "(*", ")(")
}

/// All but the one that gives the table.
fn functions() -> Declared {
    let code = code();
    let (_, rest) = code.split_once("ring_api_v1_t;").unwrap();
    let mut functions = declared(rest, "ring_", "(");
    assert!(functions.remove("get_api_v1").is_some(), "{functions:?}");
    functions
}

#[test]
fn each_function_has_a_slot_of_its_type() {
    let mut slots = slots();
    // The field of this name, which has the same number, stands at the table's head.
    let abi_version = slots.remove("ring_abi_version").unwrap();
    slots.insert("abi_version".to_owned(), abi_version);
    assert!(slots.contains_key("all_reduce"), "{slots:?}");
    let functions = functions();
    for name in slots.keys().chain(functions.keys()) {
        assert_eq!(slots.get(name), functions.get(name), "{name}: the slot and the function");
    }
}
