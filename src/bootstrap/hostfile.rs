//! The hostfile: a JSON array with one entry per rank, each an array of `"host:port"` or one of them.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fmt;
use std::fs::OpenOptions;
use std::io::{self, Read};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::unix::fs::OpenOptionsExt;
use std::str::FromStr;

use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::bootstrap::config::{Address, Host};
use crate::error::{Error, Result, Status, os_words};

/// Most bytes of a hostfile: room for the most ranks with 64 bytes each, and even then no more than
/// a moment's parsing.
const MAX_BYTES: usize = 4 << 20;
/// Most ranks: far more than a ring is good for, as each adds a step to every collective.
pub const MAX_RANKS: usize = 65535;
/// Most addresses of a rank: more network interfaces than a host has.
const MAX_ADDRESSES: usize = 64;
/// Longest interface name in bytes: IFNAMSIZ less its NUL.
const MAX_INTERFACE_BYTES: usize = 15;
/// Longest host name in bytes, and longest part of it between dots (RFC 1035).
const MAX_NAME_BYTES: usize = 253;
const MAX_LABEL_BYTES: usize = 63;
/// Most characters of the file's text that an error repeats.
const QUOTED_CHARS: usize = 100;

const FORM: &str =
    r#"a hostfile is a JSON array of arrays of "host:port", such as [["10.0.0.1:5000"], ["10.0.0.2:5000"]]"#;

/// The hostfile's bytes. `name` is what errors call it.
pub fn read(path: &OsStr, name: &str) -> Result<Vec<u8>> {
    let failed = |error: io::Error| invalid(format!("{name}: {}", os_words(&error))).with_os(&error);
    // A FIFO without a writer would block in open.
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path).map_err(failed)?;
    let kind = file.metadata().map_err(failed)?.file_type();
    if kind.is_dir() {
        return Err(invalid(format!("{name}: it is a directory, not a file")));
    }
    if !kind.is_file() {
        return Err(invalid(format!("{name}: it is not a regular file")));
    }
    let mut text = Vec::new();
    // One byte more than allowed, for parse to see.
    file.take(MAX_BYTES as u64 + 1).read_to_end(&mut text).map_err(failed)?;
    Ok(text)
}

/// Every rank's addresses. `name` is what errors call the text. Checks what doesn't depend on who reads
/// it: form, addresses, and that none with a port stands there twice.
pub fn parse(text: &[u8], name: &str) -> Result<Vec<Vec<Address>>> {
    match entries(text) {
        Ok(entries) => Ok(entries),
        Err(problem) => Err(invalid(format!("{name}: {problem}"))),
    }
}

fn invalid(text: String) -> Error {
    Error::new(Status::InvalidConfig, text)
}

/// What is wrong, for a person.
type Problem = String;

fn entries(text: &[u8]) -> std::result::Result<Vec<Vec<Address>>, Problem> {
    if text.iter().all(u8::is_ascii_whitespace) {
        return Err(format!("it is empty; {FORM}"));
    }
    if text.len() > MAX_BYTES {
        return Err(format!("it is longer than {MAX_BYTES} bytes"));
    }
    let whole: &RawValue =
        serde_json::from_slice(text).map_err(|error| format!("it is not JSON: {error}; {FORM}"))?;
    let values = match Json::of(whole) {
        Json::Array(array) => elements(array, MAX_RANKS),
        Json::Object(object) if has_key(object, &["hosts"]) => return Err(launcher_input("it")),
        other => return Err(format!("it is {}, not an array; {FORM}", other.kind())),
    };
    if values.count == 0 {
        return Err(format!("it has no entry; {FORM}"));
    }
    if values.count > MAX_RANKS {
        return Err(format!("it has {} entries: {MAX_RANKS} are the most", values.count));
    }
    let mut seen = HashMap::new();
    let mut entries = Vec::new();
    for (rank, value) in values.first.iter().enumerate() {
        let entry = entry(rank, value)?;
        for address in entry.iter().filter(|address| address.port != 0) {
            if let Some(first) = seen.insert(canonical(address), rank) {
                return Err(format!(
                    "entry {rank} (rank {rank}), address \"{address}\": it stands in entry {first} (rank {first}) \
                     already, and may stand in a hostfile only once"
                ));
            }
        }
        entries.push(entry);
    }
    Ok(entries)
}

fn entry(rank: usize, value: &RawValue) -> std::result::Result<Vec<Address>, Problem> {
    let place = format!("entry {rank} (rank {rank})");
    let values = match Json::of(value) {
        Json::Array(array) => elements(array, MAX_ADDRESSES),
        Json::String(_) => Elements { first: vec![value], count: 1 },
        Json::Object(object) if has_key(object, &["ssh", "ips"]) => return Err(launcher_input(&place)),
        other => return Err(format!("{place} is {}, not an array of \"host:port\"; {FORM}", other.kind())),
    };
    if values.count == 0 {
        return Err(format!("{place} is empty: it needs at least one \"host:port\""));
    }
    if values.count > MAX_ADDRESSES {
        return Err(format!("{place} has {} addresses: {MAX_ADDRESSES} are the most", values.count));
    }
    values.first.iter().map(|value| address(&place, value)).collect()
}

fn address(place: &str, value: &RawValue) -> std::result::Result<Address, Problem> {
    let Json::String(string) = Json::of(value) else {
        return Err(format!(
            "{place}: an address is a string \"host:port\", and {} is {}",
            on_one_line(value.get()),
            Json::of(value).kind()
        ));
    };
    // Half of a surrogate pair is all that can still be wrong with it.
    let Ok(text) = serde_json::from_str::<String>(string) else {
        return Err(format!("{place}, address {}: an escape in it is no character", on_one_line(string)));
    };
    text.parse().map_err(|problem| format!("{place}, address {}: {problem}", quoted(&text)))
}

fn launcher_input(what: &str) -> Problem {
    format!("{what} is an object of mlx.launch's own host list, which only mlx.launch reads; {FORM}")
}

/// The text of a JSON value, which is known to be one. No tree of it is made: that of a wrong file could
/// take a hundred times its bytes.
enum Json<'t> {
    Null,
    Bool,
    Number,
    String(&'t str),
    Array(&'t str),
    Object(&'t str),
}

impl<'t> Json<'t> {
    fn of(value: &'t RawValue) -> Json<'t> {
        let text = value.get();
        match text.as_bytes()[0] {
            b'n' => Json::Null,
            b't' | b'f' => Json::Bool,
            b'"' => Json::String(text),
            b'[' => Json::Array(text),
            b'{' => Json::Object(text),
            _ => Json::Number,
        }
    }

    fn kind(&self) -> &'static str {
        match self {
            Json::Null => "null",
            Json::Bool => "a boolean",
            Json::Number => "a number",
            Json::String(_) => "a string",
            Json::Array(_) => "an array",
            Json::Object(_) => "an object",
        }
    }
}

/// What an array has.
#[derive(Default)]
struct Elements<'t> {
    /// As many as were asked for at most.
    first: Vec<&'t RawValue>,
    /// Of all.
    count: usize,
}

/// At most so many elements of an array's text, and how many it has.
fn elements(array: &str, most: usize) -> Elements<'_> {
    struct Take(usize);
    impl<'t> Visitor<'t> for Take {
        type Value = Elements<'t>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an array")
        }

        fn visit_seq<S: SeqAccess<'t>>(self, mut array: S) -> std::result::Result<Elements<'t>, S::Error> {
            let mut first = Vec::new();
            while first.len() < self.0
                && let Some(element) = array.next_element()?
            {
                first.push(element);
            }
            let mut count = first.len();
            while array.next_element::<IgnoredAny>()?.is_some() {
                count += 1;
            }
            Ok(Elements { first, count })
        }
    }
    serde_json::Deserializer::from_str(array).deserialize_seq(Take(most)).unwrap_or_default()
}

/// Whether an object's text has one of these keys.
fn has_key(object: &str, keys: &[&str]) -> bool {
    struct Find<'k>(&'k [&'k str]);
    impl<'t> Visitor<'t> for Find<'_> {
        type Value = bool;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<M: MapAccess<'t>>(self, mut object: M) -> std::result::Result<bool, M::Error> {
            let mut found = false;
            while let Some((key, IgnoredAny)) = object.next_entry::<String, _>()? {
                found |= self.0.contains(&key.as_str());
            }
            Ok(found)
        }
    }
    serde_json::Deserializer::from_str(object).deserialize_map(Find(keys)).unwrap_or(false)
}

/// In quotes and on one line, whatever it is.
fn quoted(text: &str) -> String {
    format!("{:?}", shortened(text))
}

/// JSON as it stands there.
fn on_one_line(json: &str) -> String {
    shortened(json).replace(char::is_control, "?")
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(QUOTED_CHARS) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

/// The address by which two spellings of one are equal.
fn canonical(address: &Address) -> Address {
    let host = match &address.host {
        Host::Ip(ip) => Host::Ip(ip.to_canonical()),
        other => other.clone(),
    };
    Address { host, port: address.port }
}

impl FromStr for Address {
    type Err = Problem;

    fn from_str(text: &str) -> std::result::Result<Address, Problem> {
        if text.is_empty() {
            return Err("it is empty, and should be \"host:port\"".to_owned());
        }
        if text.contains(|c: char| c.is_whitespace() || c.is_control()) {
            return Err("it has a space or a control character".to_owned());
        }
        if let Some(rest) = text.strip_prefix('[') {
            let (inside, after) = rest.split_once(']').ok_or("the [ has no ]")?;
            let host = bracketed(inside)?;
            let port = match after.strip_prefix(':') {
                Some(digits) => port(digits)?,
                None if after.is_empty() => return Err(format!("it has no port; write \"{text}:5000\"")),
                None => return Err(format!("after the ] comes {}, not a colon and a port", quoted(after))),
            };
            return Ok(Address { host, port });
        }
        let Some((host, digits)) = text.rsplit_once(':') else {
            return Err(format!("it has no port; write {}", quoted(&format!("{text}:5000"))));
        };
        if host.contains(':') {
            return Err(bare_ipv6(text, host, digits));
        }
        Ok(Address { host: unbracketed(host)?, port: port(digits)? })
    }
}

fn port(digits: &str) -> std::result::Result<u16, Problem> {
    if digits.is_empty() {
        return Err("it has no port after the colon".to_owned());
    }
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(format!("the port {} is not a number", quoted(digits)));
    }
    digits.parse().map_err(|_| format!("the port {} is above {}", shortened(digits), u16::MAX))
}

/// What stands between the brackets.
fn bracketed(inside: &str) -> std::result::Result<Host, Problem> {
    let (digits, interface) = match inside.split_once('%') {
        Some((digits, interface)) => (digits, Some(interface)),
        None => (inside, None),
    };
    let ip: Ipv6Addr = match digits.parse() {
        Ok(ip) => ip,
        Err(_) if digits.is_empty() => return Err("there is no address in the brackets".to_owned()),
        Err(_) if digits.parse::<Ipv4Addr>().is_ok() => {
            return Err(format!("brackets are for IPv6; write \"{digits}:port\""));
        }
        Err(_) => return Err(format!("{} is not an IPv6 address", quoted(digits))),
    };
    let Some(interface) = interface else { return Ok(Host::Ip(ip.into())) };
    if interface.is_empty() {
        return Err("there is no interface after the %".to_owned());
    }
    if interface.len() > MAX_INTERFACE_BYTES || interface.contains(['%', '/', '[', ':']) {
        return Err(format!("{} can't be a network interface", quoted(interface)));
    }
    Ok(Host::Scoped(ip, interface.to_owned()))
}

/// The problem with an unbracketed address of several colons.
fn bare_ipv6(text: &str, host: &str, digits: &str) -> Problem {
    let is_ipv6 = |text: &str| text.split_once('%').map_or(text, |(ip, _)| ip).parse::<Ipv6Addr>().is_ok();
    if is_ipv6(host) {
        format!("IPv6 needs brackets; write {}", quoted(&format!("[{host}]:{digits}")))
    } else if is_ipv6(text) {
        format!("IPv6 needs brackets and a port; write {}", quoted(&format!("[{text}]:5000")))
    } else {
        "it has more than one colon, and should be \"host:port\"".to_owned()
    }
}

fn unbracketed(host: &str) -> std::result::Result<Host, Problem> {
    if let Ok(ip) = host.parse::<Ipv4Addr>() {
        return Ok(Host::Ip(IpAddr::V4(ip)));
    }
    if host.is_empty() {
        return Err("it has no host before the colon".to_owned());
    }
    // The system's resolver takes 1.2.3 for 1.2.0.3, and 010.0.0.1 for 8.0.0.1.
    if host.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
        return Err(format!(
            "{} is not an IPv4 address: it needs four numbers of 0 to 255 without leading zeros",
            quoted(host)
        ));
    }
    if host.contains('%') {
        return Err("only IPv6 takes an interface, as in \"[fe80::1%eth0]:5000\"".to_owned());
    }
    if let Some(odd) = host.chars().find(|c| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))) {
        return Err(format!("{odd:?} can't be in a host name"));
    }
    // One dot at the end makes a name absolute.
    let labels = host.strip_suffix('.').unwrap_or(host);
    if labels.len() > MAX_NAME_BYTES || labels.split('.').any(|l| l.is_empty() || l.len() > MAX_LABEL_BYTES) {
        return Err(format!("{} is not a host name: a part is empty or too long", quoted(host)));
    }
    Ok(Host::Name(host.to_ascii_lowercase()))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use proptest::prelude::*;

    use super::*;

    fn printed(text: &str) -> Vec<Vec<String>> {
        let entries =
            parse(text.as_bytes(), "hosts").unwrap_or_else(|error| panic!("{text}: {}", error.text));
        entries.iter().map(|entry| entry.iter().map(Address::to_string).collect()).collect()
    }

    #[track_caller]
    fn assert_invalid(result: Result<Vec<Vec<Address>>>, fragments: &[&str]) {
        let error = result.expect_err("this hostfile is wrong");
        assert_eq!(error.status, Status::InvalidConfig);
        for fragment in fragments {
            assert!(error.text.contains(fragment), "no {fragment:?} in {:?}", error.text);
        }
        assert!(!error.text.contains(char::is_control), "{:?}", error.text);
    }

    #[test]
    fn good_hostfiles() {
        assert_eq!(printed(r#"["a:1"]"#), [["a:1"]]);
        assert_eq!(printed(r#"[["a:1"], "b:2"]"#), [["a:1"], ["b:2"]]);
        assert_eq!(printed(" \n[ [\"a:1\", \"b:2\"],\t[\"c:3\"] ]\r\n"), [vec!["a:1", "b:2"], vec!["c:3"]]);
        // Dummies may be alike.
        assert_eq!(printed(r#"["198.51.100.1:0", "198.51.100.1:0"]"#).len(), 2);
        // One host, many ports; one port, many hosts.
        assert_eq!(printed(r#"["a:1", "a:2", "b:1", "[::1]:1", "127.0.0.1:1"]"#).len(), 5);
        assert_eq!(printed(r#"["[fe80::1%eth0]:1", "[fe80::1%eth1]:1", "[fe80::1]:1"]"#).len(), 3);
    }

    #[test]
    fn good_addresses() {
        for same in [
            "127.0.0.1:5000",
            "0.0.0.0:65535",
            "[::]:1",
            "[2001:db8::1]:5000",
            "[fe80::1%eth0]:5000",
            "[fe80::1%2]:5000",
            "[fe80::1%wg-0.7]:5000",
            "localhost:0",
            "node-1.cluster_a.example.:80",
            "1and1.com:80",
            "3com:80",
        ] {
            assert_eq!(same.parse::<Address>().unwrap().to_string(), same);
        }
        let becomes = [
            ("Node-A.Example:080", "node-a.example:80"),
            ("[2001:DB8:0:0::0001]:1", "[2001:db8::1]:1"),
            ("[::ffff:10.0.0.1]:1", "[::ffff:10.0.0.1]:1"),
        ];
        for (text, expected) in becomes {
            assert_eq!(text.parse::<Address>().unwrap().to_string(), expected);
        }
        let scoped = Host::Scoped("fe80::1".parse().unwrap(), "eth0".to_owned());
        assert_eq!("[fe80::1%eth0]:5000".parse(), Ok(Address { host: scoped, port: 5000 }));
    }

    #[test]
    fn bad_addresses() {
        let cases = [
            ("", "empty"),
            ("node", "no port; write \"node:5000\""),
            ("127.0.0.1", "no port"),
            ("node:", "no port after the colon"),
            (":5000", "no host"),
            (":", "no host"),
            ("node:http", "\"http\" is not a number"),
            ("node:-1", "\"-1\" is not a number"),
            ("node:+1", "\"+1\" is not a number"),
            ("node:65536", "65536 is above 65535"),
            ("node:99999999999999999999", "above 65535"),
            ("::1:5000", "brackets; write \"[::1]:5000\""),
            ("fe80::1%eth0:5000", "brackets; write \"[fe80::1%eth0]:5000\""),
            ("2001:db8::1", "brackets"),
            ("::1", "brackets and a port; write \"[::1]:5000\""),
            ("a:1:2", "more than one colon"),
            ("http://a:1", "more than one colon"),
            ("[::1:5000", "[ has no ]"),
            ("[::1]", "no port; write \"[::1]:5000\""),
            ("[::1]5000", "after the ] comes \"5000\""),
            ("[::1]]:5000", "after the ] comes"),
            ("[[::1]]:5000", "not an IPv6 address"),
            ("[]:5000", "no address in the brackets"),
            ("[node]:5000", "\"node\" is not an IPv6 address"),
            ("[10.0.0.1]:5000", "brackets are for IPv6; write \"10.0.0.1:port\""),
            ("[::1]:", "no port after the colon"),
            ("[::1]:x", "\"x\" is not a number"),
            ("[fe80::1%]:5000", "no interface"),
            ("[%eth0]:5000", "no address"),
            ("[fe80::1%eth0%1]:5000", "interface"),
            ("[fe80::1%a-name-too-long-]:5000", "interface"),
            ("x[::1]:5000", "more than one colon"),
            ("::1]:5000", "more than one colon"),
            ("node]:5000", "']' can't be in a host name"),
            ("10.0.0.1%eth0:5000", "only IPv6 takes an interface"),
            ("node%eth0:5000", "only IPv6 takes an interface"),
            ("my node:5000", "space"),
            (" node:5000", "space"),
            ("node:5000\n", "control character"),
            ("no\0de:5000", "control character"),
            ("1.2.3:5000", "not an IPv4 address"),
            ("256.1.1.1:5000", "not an IPv4 address"),
            ("1.2.3.4.5:5000", "not an IPv4 address"),
            ("010.0.0.1:5000", "not an IPv4 address"),
            ("1234:5000", "not an IPv4 address"),
            (".:5000", "not an IPv4 address"),
            ("a..b:5000", "not a host name"),
            (".a:5000", "not a host name"),
            ("a..:5000", "not a host name"),
            ("a/b:5000", "'/' can't be in a host name"),
            ("user@node:5000", "'@' can't be"),
            ("knoten-ä:5000", "'ä' can't be"),
        ];
        for (text, fragment) in cases {
            let problem = text.parse::<Address>().expect_err(text);
            assert!(problem.contains(fragment), "{text}: no {fragment:?} in {problem:?}");
            let file = serde_json::to_string(&[["good:1"], [text]]).unwrap();
            assert_invalid(
                parse(file.as_bytes(), "hosts"),
                &["hosts: entry 1 (rank 1), address \"", fragment],
            );
        }
        assert!(format!("{}:1", "a".repeat(64)).parse::<Address>().is_err());
        assert!(format!("{}a:1", "a.".repeat(127)).parse::<Address>().is_err());
    }

    #[test]
    fn bad_hostfiles() {
        let cases: &[(&str, &[&str])] = &[
            ("", &["empty"]),
            (" \n\t ", &["empty"]),
            ("node:1", &["not JSON", "line 1 column"]),
            ("[[\"a:1\"],\n [\"b:2\"]", &["not JSON", "line 2 column"]),
            ("[[\"a:1\"],]", &["not JSON", "line 1 column 10"]),
            ("[\"a:1\"] x", &["not JSON", "trailing characters"]),
            ("{}", &["an object, not an array"]),
            ("{\"hosts\": []}", &["mlx.launch"]),
            ("\"a:1\"", &["a string, not an array"]),
            ("null", &["null, not an array"]),
            ("5000", &["a number, not an array"]),
            ("[]", &["no entry"]),
            ("[[]]", &["entry 0 (rank 0) is empty"]),
            ("[\"a:1\", []]", &["entry 1 (rank 1) is empty"]),
            ("[\"a:1\", 5000]", &["entry 1 (rank 1) is a number"]),
            ("[[\"a:1\"], null]", &["entry 1 (rank 1) is null"]),
            ("[[\"a:1\"], true]", &["entry 1 (rank 1) is a boolean"]),
            ("[[\"a:1\", 5000]]", &["entry 0 (rank 0)", "5000 is a number"]),
            ("[[\"a\", 5000]]", &["entry 0 (rank 0), address \"a\"", "no port"]),
            ("[[[\"a:1\"]]]", &["entry 0 (rank 0)", "[\"a:1\"] is an array"]),
            ("[[{\"a\": \"x\\ny\"}]]", &["entry 0 (rank 0)", "is an object"]),
            (
                r#"[{"ssh": "a", "ips": ["10.0.0.1"]}, {"ssh": "b", "ips": ["10.0.0.2"]}]"#,
                &["entry 0 (rank 0)", "mlx.launch", "array of arrays of \"host:port\""],
            ),
            ("[{\"host\": \"a\"}]", &["entry 0 (rank 0) is an object, not"]),
            ("[{\"a\": 1, \"ip\\u0073\": 2}]", &["entry 0 (rank 0)", "mlx.launch"]),
            ("[{\"\\ud800\": 1}]", &["entry 0 (rank 0) is an object, not"]),
            ("[\"a:1\", \"\\ud800:2\"]", &["entry 1 (rank 1), address \"\\ud800:2\"", "no character"]),
            ("[[[\n1e999]]]", &["entry 0 (rank 0)", "[?1e999] is an array"]),
            // What isn't JSON is told before what no hostfile has.
            ("[5, \"a:1\"", &["not JSON", "line 1 column 9"]),
        ];
        for (text, fragments) in cases {
            assert_invalid(parse(text.as_bytes(), "hosts"), &[&["hosts: "], *fragments].concat());
        }
        assert_invalid(parse(b"[\"\xff:1\"]", "hosts"), &["not JSON", "line 1"]);
        assert_invalid(parse(b"[\"\xff\"", "hosts"), &["not JSON"]);
    }

    #[test]
    fn an_address_stands_there_once() {
        for (first, second) in [
            ("a:1", "a:1"),
            ("Node.Example:7", "node.EXAMPLE:7"),
            ("10.0.0.1:7", "10.0.0.1:07"),
            ("[2001:db8::1]:7", "[2001:DB8:0::0:1]:7"),
            ("[fe80::1%eth0]:7", "[fe80:0::1%eth0]:7"),
            ("[::ffff:10.0.0.1]:7", "10.0.0.1:7"),
        ] {
            let file = format!("[\"x:1\", [\"y:1\", \"{first}\"], \"z:1\", [\"{second}\"]]");
            assert_invalid(
                parse(file.as_bytes(), "hosts"),
                &["entry 3 (rank 3), address", "entry 1 (rank 1) already", "once"],
            );
        }
        assert_invalid(parse(br#"[["a:1", "a:1"]]"#, "hosts"), &["entry 0 (rank 0)"]);
    }

    #[test]
    fn sizes_have_bounds() {
        let lanes =
            |count| format!("[{}]", (1..=count).map(|p| format!("\"a:{p}\"")).collect::<Vec<_>>().join(","));
        assert_eq!(printed(&format!("[{}]", lanes(64)))[0].len(), 64);
        assert_invalid(parse(format!("[{}]", lanes(65)).as_bytes(), "hosts"), &["entry 0", "65 addresses"]);
        assert_eq!(printed(&lanes(65535)).len(), 65535);
        let more = lanes(65535).replacen('[', "[\"a:0\",", 1);
        assert_invalid(parse(more.as_bytes(), "hosts"), &["65536 entries"]);
        assert_invalid(parse(&vec![b'['; MAX_BYTES], "hosts"), &["not JSON"]);
        assert_invalid(parse(&vec![b'['; MAX_BYTES + 1], "hosts"), &["longer than"]);
        let long = format!("[\"{}\"]", "é".repeat(100_000));
        let text = parse(long.as_bytes(), "hosts").unwrap_err().text;
        assert!(text.len() < 1000, "{} bytes", text.len());
    }

    #[test]
    fn files() {
        let directory = std::env::temp_dir().join(format!("libring-hostfile-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let read_here = |name: &str| read(directory.join(name).as_os_str(), "hostfile \"x\"");
        let failure = |name: &str| {
            let error = read_here(name).unwrap_err();
            assert_eq!(error.status, Status::InvalidConfig);
            assert!(error.text.starts_with("hostfile \"x\": "), "{}", error.text);
            (error.text, error.os_error)
        };

        fs::write(directory.join("good"), "[\"a:1\"]").unwrap();
        assert_eq!(read_here("good").unwrap(), b"[\"a:1\"]");
        fs::write(directory.join("long"), vec![b' '; MAX_BYTES + 9]).unwrap();
        assert_eq!(read_here("long").unwrap().len(), MAX_BYTES + 1);

        let (text, os_error) = failure("missing");
        assert!(text.ends_with(": No such file or directory"), "{text}");
        assert_eq!(os_error, libc::ENOENT);
        assert!(failure("good/x").0.ends_with(": Not a directory"));
        assert!(failure(".").0.contains("directory, not a file"));
        assert!(failure("nul\0").0.len() > "hostfile \"x\": ".len());
        let made = std::process::Command::new("mkfifo").arg(directory.join("fifo")).status().unwrap();
        assert!(made.success());
        assert!(failure("fifo").0.contains("not a regular file"));
        let device = read(OsStr::new("/dev/null"), "hostfile \"x\"").unwrap_err();
        assert!(device.text.contains("not a regular file"));

        fs::remove_dir_all(&directory).unwrap();
    }

    fn any_address() -> impl Strategy<Value = Address> {
        let host = prop_oneof![
            any::<[u8; 4]>().prop_map(|ip| Host::Ip(ip.into())),
            any::<[u16; 8]>().prop_map(|ip| Host::Ip(ip.into())),
            (0u16..3).prop_map(|last| Host::Ip([0, 0, 0, 0, 0, 0xffff, last, last].into())),
            (any::<[u16; 8]>(), "[a-z0-9@._-]{1,15}").prop_map(|(ip, scope)| Host::Scoped(ip.into(), scope)),
            "[a-z][a-z0-9_-]{0,20}(\\.[a-z0-9_-]{1,20}){0,3}\\.?".prop_map(Host::Name),
        ];
        (host, any::<u16>()).prop_map(|(host, port)| Address { host, port })
    }

    fn any_json() -> impl Strategy<Value = serde_json::Value> {
        use serde_json::Value;

        let text = prop_oneof![
            ".{0,20}",
            "[\\[\\]%:.0-9a-f]{0,24}",
            any_address().prop_map(|address| address.to_string()),
        ];
        let leaf = prop_oneof![
            1 => Just(Value::Null),
            1 => any::<bool>().prop_map(Value::from),
            1 => any::<f64>().prop_map(Value::from),
            4 => text.clone().prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 64, 8, move |inner| {
            prop_oneof![
                4 => prop::collection::vec(inner.clone(), 0..8).prop_map(Value::Array),
                1 => prop::collection::vec((text.clone(), inner), 0..4)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    /// Neither a panic nor a text of more than one line, and what is accepted is within bounds.
    fn is_judged(text: &[u8]) {
        match parse(text, "hosts") {
            Ok(entries) => assert!(!entries.is_empty() && entries.iter().all(|entry| !entry.is_empty())),
            Err(error) => assert!(!error.text.contains(char::is_control), "{:?}", error.text),
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_judged(text in prop::collection::vec(any::<u8>(), 0..200)) {
            is_judged(&text);
        }

        #[test]
        fn any_json_is_judged(value in any_json()) {
            is_judged(value.to_string().as_bytes());
        }

        #[test]
        fn any_list_of_addresses_is_taken(mut list in prop::collection::vec(any_address(), 1..9)) {
            // No two alike.
            for (address, port) in list.iter_mut().zip(1..) {
                address.port = port;
            }
            let text = serde_json::to_string(&list.iter().map(Address::to_string).collect::<Vec<_>>()).unwrap();
            let parsed = parse(text.as_bytes(), "hosts").unwrap();
            prop_assert_eq!(parsed.concat(), list);
        }

        #[test]
        fn a_printed_address_parses_back(address in any_address()) {
            prop_assert_eq!(address.to_string().parse(), Ok(address));
        }

        #[test]
        fn any_text_is_an_address_or_not(text in "[\\[\\]%:.0-9a-fA-FxG-]{0,24}") {
            if let Ok(address) = text.parse::<Address>() {
                prop_assert_eq!(address.to_string().parse(), Ok(address));
            }
        }
    }
}
