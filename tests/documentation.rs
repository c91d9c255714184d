//! ring.h says of each function what its caller must know: whether it blocks, what each parameter is, who owns what,
//! and which statuses come why. A function may say so by naming another that does.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Words by which a function takes over what another's documentation says, and its statuses alone.
const AS: [&str; 4] = ["As ", "Blocks as ", "Starts ", "See "];
const STATUSES_AS: [&str; 7] = ["As ", "Blocks as ", "Starts ", "See ", "as in ", "statuses of ", "what "];

/// Parameters that every function with a group or a request has.
const HANDLES: [&str; 2] = ["group", "request"];

struct Function {
    doc: String,
    returns: String,
    /// From name to type.
    parameters: Vec<(String, String)>,
}

fn read(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

/// A comment's text, with its lines joined but for lists and paragraphs.
fn text_of(comment: &str) -> String {
    let lines = comment.lines().map(|line| line.trim().trim_start_matches(['/', '*']).trim());
    let mut text = String::new();
    for line in lines {
        let begins = line.is_empty() || line.starts_with("- ");
        text.push(if begins { '\n' } else { ' ' });
        text.push_str(line);
    }
    text.trim().to_owned()
}

/// Comments of the header, each with the code up to the next one.
fn documented(header: &str) -> Vec<(String, String)> {
    header
        .split("/**")
        .skip(1)
        .map(|part| {
            let (comment, code) = part.split_once("*/").unwrap();
            (text_of(comment), code.split_whitespace().collect::<Vec<_>>().join(" "))
        })
        .collect()
}

/// A declaration's last word, and what stands before it.
fn split_name(declaration: &str) -> (String, String) {
    let at = declaration.rfind(|c: char| !is_word(c)).map_or(0, |at| at + 1);
    (declaration[at..].to_owned(), declaration[..at].trim().to_owned())
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn words(text: &str) -> BTreeSet<&str> {
    text.split(|c| !is_word(c)).collect()
}

fn functions() -> BTreeMap<String, Function> {
    let header = read("include/ring.h");
    let (_, header) = header.split_once("extern \"C\" {\n#endif").unwrap();
    let mut functions = BTreeMap::new();
    for (doc, code) in documented(header) {
        let code = code.split(';').next().unwrap().trim_start_matches("RING_NODISCARD ");
        let (head, parameters) = code.split_once('(').unwrap_or_else(|| panic!("no function: {code}"));
        let parameters = parameters.trim_end_matches(')').split(',').map(str::trim);
        let parameters = parameters.filter(|parameter| *parameter != "void").map(split_name).collect();
        let (name, returns) = split_name(head);
        functions.insert(name, Function { doc, returns, parameters });
    }
    assert!(functions.contains_key("ring_get_api_v1") && functions.contains_key("ring_version"));
    functions
}

/// A function's documentation with that of those on which it calls.
fn whole(functions: &BTreeMap<String, Function>, name: &str, taken_over: &[&str]) -> String {
    let mut names = vec![name.to_owned()];
    let mut text = String::new();
    let mut next = 0;
    while next < names.len() {
        let Some(function) = functions.get(&names[next]) else { panic!("{name} refers to {}", names[next]) };
        text.push_str(&function.doc);
        text.push('\n');
        for (at, _) in function.doc.match_indices("ring_") {
            let called: String = function.doc[at..].chars().take_while(|c| is_word(*c)).collect();
            let before = &function.doc[..at];
            let is_taken_over = taken_over.iter().any(|words| before.ends_with(words));
            if is_taken_over && functions.contains_key(&called) && !names.contains(&called) {
                names.push(called);
            }
        }
        next += 1;
    }
    text
}

#[test]
fn every_function_says_what_its_parameters_are() {
    let functions = functions();
    for (name, function) in &functions {
        let doc = whole(&functions, name, &AS);
        for (parameter, _) in &function.parameters {
            let is_handle = HANDLES.contains(&parameter.as_str());
            assert!(
                is_handle || words(&doc).contains(parameter.as_str()),
                "{name} doesn't say what {parameter} is"
            );
            let unit = match parameter.rsplit('_').next() {
                Some("ms") => "milliseconds",
                Some("bytes" | "size" | "len") => "bytes",
                Some("count" | "counts") => "elements",
                _ => "",
            };
            assert!(doc.contains(unit), "{name} doesn't say that {parameter} is in {unit}");
        }
    }
}

#[test]
fn every_function_says_whether_it_blocks() {
    let functions = functions();
    for name in functions.keys() {
        let doc = whole(&functions, name, &AS);
        let says = ["Blocks", "blocks", "returns at once"].iter().any(|word| doc.contains(word));
        assert!(says, "{name} doesn't say whether it blocks");
    }
}

#[test]
fn every_function_says_who_owns_what() {
    let functions = functions();
    for (name, function) in &functions {
        let doc = whole(&functions, name, &AS);
        if function.returns.ends_with('*') {
            assert!(
                doc.contains("static") || doc.contains("lives as long as"),
                "{name}: how long its result lives"
            );
        }
        for (parameter, kind) in &function.parameters {
            let owned = match kind.as_str() {
                "ring_group_t **" => "owns",
                "ring_request_t **" => "ring_request_destroy",
                _ => "",
            };
            assert!(doc.contains(owned), "{name}: who ends what comes in {parameter}");
        }
    }
}

/// In a list, its own or that of the function whose statuses it has.
#[test]
fn every_status_has_its_cause() {
    let functions = functions();
    for (name, function) in functions.iter().filter(|(_, function)| function.returns == "ring_status_t") {
        let doc = whole(&functions, name, &STATUSES_AS);
        let listed: BTreeSet<_> = doc
            .lines()
            .filter_map(|line| {
                let (status, cause) = line.strip_prefix("- RING_STATUS_")?.split_once(": ")?;
                assert!(cause.len() > 10, "{name}: why {status}?");
                Some(status)
            })
            .collect();
        for line in function.doc.lines().filter(|line| line.starts_with("- RING_STATUS_")) {
            assert!(line.contains(": "), "{name}: \"{line}\" gives no cause");
        }
        let mut must = vec!["INVALID_ARGUMENT", "INVALID_STATE"];
        // What waits for other ranks may fail as all that does.
        let moves = function.parameters.first().is_some_and(|(_, kind)| kind == "ring_group_t *")
            && !["set_timeout", "abort"].iter().any(|end| name.ends_with(end));
        if moves {
            must.extend([
                "UNSUPPORTED",
                "MISMATCH",
                "PEER_LOST",
                "TIMEOUT",
                "ABORTED",
                "SYSTEM",
                "OUT_OF_MEMORY",
            ]);
            must.extend(["CONNECT_FAILED", "INTERNAL"]);
        }
        for status in must {
            assert!(listed.contains(status), "{name} doesn't say when it is RING_STATUS_{status}");
        }
    }
}

/// All that the header's comments name is there: as a declaration, or as a variable of the environment.
#[test]
fn what_is_named_exists() {
    let header = read("include/ring.h");
    let code = header.lines().filter(|line| !line.trim_start().starts_with(['*', '/']));
    let code = code.collect::<Vec<_>>().join("\n");
    let mut known = words(&code);
    let environment = read("src/bootstrap/environment.rs");
    known.extend(words(&environment));
    for (doc, _) in documented(&header) {
        // In quotation marks are texts that functions give.
        let said: String = doc.split('"').step_by(2).collect();
        for word in words(&said) {
            let is_ours = word.starts_with("ring_") || word.starts_with("RING_");
            assert!(!is_ours || word == "ring_" || known.contains(word), "{word} is named and isn't there");
        }
    }
}

/// As Doxygen finds of everything (`make docs`), without it.
#[test]
fn every_field_and_constant_is_documented() {
    let header = read("include/ring.h");
    let lines: Vec<_> = header.lines().map(str::trim).collect();
    let mut found = 0;
    for (i, line) in lines.iter().enumerate() {
        let is_constant = line.starts_with("RING_") && line.contains(" = ");
        let is_field = header.lines().nth(i).is_some_and(|line| line.starts_with("  "))
            && line.ends_with(';')
            && !line.contains(['(', ')', ','])
            && line.contains(' ');
        if is_constant || is_field {
            found += 1;
            assert!(lines[i - 1] == "*/", "{line} has no documentation");
        }
    }
    assert!(found > 80, "{found}");
}
