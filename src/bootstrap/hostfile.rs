//! The hostfile: a JSON array with one entry a rank, each an array of `"host:port"` strings (one
//! connection lane per address) or one such string.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::net::{Ipv4Addr, Ipv6Addr};

use serde_json::Value;

use crate::bootstrap::config::{Address, Host};
use crate::error::{Error, Result, Status, os_words};

/// No ring's hostfile comes near this; a file that does is another kind of file.
const MAX_BYTES: u64 = 16 << 20;
/// Ranks are told apart by 16 bits in ports and lanes by 16 bits on the wire.
const MAX_RANKS: usize = 65_535;
const MAX_ADDRESSES: usize = 64;

fn invalid(text: String) -> Error {
    Error::new(Status::InvalidConfig, text)
}

/// Reads a hostfile; `name` is the setting that gave its path.
pub fn read(path: &OsStr, name: &str) -> Result<Vec<Vec<Address>>> {
    if path.is_empty() {
        return Err(invalid(format!("{name} is empty; it must be the path of a hostfile")));
    }
    let source = format!("{name} {}", path.display());
    let failed = |error| invalid(format!("{source}: {}", os_words(&error))).with_os(&error);
    // A FIFO would block the open for ever.
    if !std::fs::metadata(path).map_err(failed)?.is_file() {
        return Err(invalid(format!("{source}: it is no regular file")));
    }
    let mut text = Vec::new();
    File::open(path).map_err(failed)?.take(MAX_BYTES + 1).read_to_end(&mut text).map_err(failed)?;
    if text.len() as u64 > MAX_BYTES {
        return Err(invalid(format!("{source}: it is larger than {MAX_BYTES} bytes")));
    }
    parse(&text, &source)
}

/// Parses a hostfile's text; `source` says where it comes from.
pub fn parse(text: &[u8], source: &str) -> Result<Vec<Vec<Address>>> {
    if text.iter().all(u8::is_ascii_whitespace) {
        return Err(invalid(format!("{source} is empty")));
    }
    let value: Value =
        serde_json::from_slice(text).map_err(|e| invalid(format!("{source} is not JSON: {e}")))?;
    let Value::Array(entries) = value else {
        return Err(invalid(format!("{source} is {}, not an array with one entry a rank", kind(&value))));
    };
    if entries.is_empty() {
        return Err(invalid(format!("{source} is an empty array; it needs one entry a rank")));
    }
    if entries.len() > MAX_RANKS {
        return Err(invalid(format!(
            "{source} has {} entries; at most {MAX_RANKS} are possible",
            entries.len()
        )));
    }
    let parsed: Result<Vec<_>> = entries.iter().enumerate().map(|(rank, e)| entry(e, rank, source)).collect();
    let parsed = parsed?;
    check_distinct(&parsed, source)?;
    Ok(parsed)
}

fn entry(value: &Value, rank: usize, source: &str) -> Result<Vec<Address>> {
    let wrong = |why: String| invalid(format!("{source}, entry {rank}: {why}"));
    let texts: Vec<&Value> = match value {
        Value::String(_) => vec![value],
        Value::Array(texts) => texts.iter().collect(),
        Value::Object(fields) if fields.contains_key("ssh") || fields.contains_key("ips") => {
            return Err(wrong(
                "it is an object of mlx.launch's own host list; a hostfile's entry is an array of \"host:port\" strings".into(),
            ));
        }
        other => return Err(wrong(format!("it is {}, not an array of \"host:port\" strings", kind(other)))),
    };
    if texts.is_empty() {
        return Err(wrong("it is an empty array; it needs at least one address".into()));
    }
    if texts.len() > MAX_ADDRESSES {
        return Err(wrong(format!("it has {} addresses; at most {MAX_ADDRESSES} are possible", texts.len())));
    }
    let parse = |text: &Value| match text {
        Value::String(text) => {
            address(text).map_err(|why| wrong(format!("\"{}\": {why}", text.escape_debug())))
        }
        other => Err(wrong(format!("it holds {} where a \"host:port\" string belongs", kind(other)))),
    };
    texts.into_iter().map(parse).collect()
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// Reads `host:port`.
fn address(text: &str) -> std::result::Result<Address, String> {
    let Some((host, port)) = text.rsplit_once(':') else {
        return Err("it has no port; an address is \"host:port\"".into());
    };
    if !host.starts_with('[') && host.contains(':') {
        return Err(format!("an IPv6 address needs brackets, as in \"[{host}]:{port}\""));
    }
    if text.ends_with(']') {
        return Err("it has no port; an address is \"[address]:port\"".into());
    }
    let digits = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    let port = match port.parse::<u16>() {
        Ok(port) if digits => port,
        _ => return Err(format!("its port is \"{port}\", not a number from 1 to 65535")),
    };
    Ok(Address { host: host_of(host)?, port })
}

fn host_of(text: &str) -> std::result::Result<Host, String> {
    if let Some(inner) = text.strip_prefix('[') {
        let Some(inner) = inner.strip_suffix(']') else { return Err("its bracket is not closed".into()) };
        let (ip, interface) = match inner.split_once('%') {
            Some((ip, interface)) => (ip, Some(interface)),
            None => (inner, None),
        };
        let Ok(ip) = ip.parse::<Ipv6Addr>() else { return Err(format!("\"{ip}\" is no IPv6 address")) };
        return match interface {
            Some("") => Err("it names no interface after the %".into()),
            Some(interface) if interface.contains(|c: char| c.is_whitespace() || c.is_control()) => {
                Err("its interface's name holds a space".into())
            }
            Some(interface) => Ok(Host::Scoped(ip, interface.to_owned())),
            None => Ok(Host::Ip(ip.into())),
        };
    }
    if text.is_empty() {
        return Err("it has no host before the port".into());
    }
    if let Ok(ip) = text.parse::<Ipv4Addr>() {
        return Ok(Host::Ip(ip.into()));
    }
    if text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
        return Err(format!("\"{text}\" is no IPv4 address"));
    }
    let in_name = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    if let Some(wrong) = text.chars().find(|c| !in_name(*c)) {
        return Err(format!("its host holds '{}', which no name has", wrong.escape_debug()));
    }
    Ok(Host::Name(text.to_lowercase()))
}

/// An address with a port may stand in the file once: two ranks can't listen on it.
fn check_distinct(entries: &[Vec<Address>], source: &str) -> Result<()> {
    let mut seen = HashMap::new();
    for (rank, entry) in entries.iter().enumerate() {
        for address in entry.iter().filter(|address| address.port != 0) {
            if let Some(before) = seen.insert(address, rank) {
                return Err(invalid(format!(
                    "{source}: {address} stands in entry {before} and again in entry {rank}"
                )));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shown(text: &str) -> Vec<Vec<String>> {
        let entries = parse(text.as_bytes(), "hosts").unwrap();
        entries.iter().map(|entry| entry.iter().map(Address::to_string).collect()).collect()
    }

    #[test]
    fn good_files() {
        let text =
            r#" [["10.0.0.1:5000", "Host-B.example:1"], "[::1]:65535", ["[FE80::1%eth0]:7"], "x:0", "x:0"] "#;
        let right: [&[&str]; 5] = [
            &["10.0.0.1:5000", "host-b.example:1"],
            &["[::1]:65535"],
            &["[fe80::1%eth0]:7"],
            &["x:0"],
            &["x:0"],
        ];
        assert_eq!(shown(text), right);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let bad = [
            ("", "hosts is empty"),
            (" \n", "hosts is empty"),
            ("[[\"a:1\"]", "hosts is not JSON: EOF"),
            ("nonsense", "hosts is not JSON: expected ident at line 1 column 2"),
            ("{}", "hosts is an object"),
            ("[]", "hosts is an empty array"),
            ("[[]]", "entry 0: it is an empty array"),
            ("[\"a:1\", 5]", "entry 1: it is a number"),
            ("[[[\"a:1\"]]]", "entry 0: it holds an array"),
            ("[[\"a:1\", null]]", "entry 0: it holds null"),
            ("[\"a\"]", "entry 0: \"a\": it has no port"),
            ("[\"a:\"]", "its port is \"\""),
            ("[\"a:99999\"]", "its port is \"99999\""),
            ("[\"a:-1\"]", "its port is \"-1\""),
            ("[\"a:+1\"]", "its port is \"+1\""),
            ("[\"a: 1\"]", "its port is \" 1\""),
            ("[\":5\"]", "it has no host"),
            ("[\"::1:5000\"]", "needs brackets, as in \"[::1]:5000\""),
            ("[\"[::1]\"]", "it has no port"),
            ("[\"[::1:5\"]", "its bracket is not closed"),
            ("[\"[x]:5\"]", "\"x\" is no IPv6 address"),
            ("[\"[::1%]:5\"]", "no interface"),
            ("[\"256.0.0.1:5\"]", "\"256.0.0.1\" is no IPv4 address"),
            ("[\"a b:5\"]", "its host holds ' '"),
            ("[\"a%eth0:5\"]", "its host holds '%'"),
            ("[{\"ssh\": \"a\", \"ips\": [\"10.0.0.1\"]}]", "mlx.launch's own host list"),
            ("[\"a:1\", [\"b:1\", \"A:1\"]]", "a:1 stands in entry 0 and again in entry 1"),
            ("[\"[::1]:1\", \"[0:0::1]:1\"]", "[::1]:1 stands in entry 0 and again in entry 1"),
        ];
        for (text, part) in bad {
            let error = parse(text.as_bytes(), "hosts").unwrap_err();
            assert_eq!(error.status, Status::InvalidConfig);
            assert!(error.text.contains(part), "{text}: {} lacks {part}", error.text);
            assert!(!error.text.contains('\n'));
        }
    }

    #[test]
    fn files_that_are_none() {
        let of = |path: &str| read(OsStr::new(path), "RING_HOSTFILE").unwrap_err().text;
        assert_eq!(of(""), "RING_HOSTFILE is empty; it must be the path of a hostfile");
        assert_eq!(of("/no/such/file"), "RING_HOSTFILE /no/such/file: No such file or directory");
        assert!(of("/").contains("no regular file"));
        assert!(of("/dev/zero").contains("no regular file"));
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..64), text in ".{0,40}") {
            let _ = parse(&bytes, "hosts");
            let _ = parse(format!("[{}]", serde_json::Value::from(text.as_str())).as_bytes(), "hosts");
            let _ = address(&text);
        }

        #[test]
        fn a_printed_address_reads_back(ip: u128, port: u16, name in "[a-z][a-z0-9.-]{0,20}") {
            let hosts = [
                Host::Ip(Ipv6Addr::from_bits(ip).into()),
                Host::Ip(Ipv4Addr::from_bits(ip as u32).into()),
                Host::Scoped(Ipv6Addr::from_bits(ip), "eth0".into()),
                Host::Name(name),
            ];
            for host in hosts {
                let printed = Address { host, port };
                prop_assert_eq!(address(&printed.to_string()), Ok(printed));
            }
        }
    }
}
