//! Settings from environment variables.

use std::ffi::OsString;

use crate::bootstrap::config::{AUTO, Names, SHM, Settings, TCP, Wire};
use crate::bootstrap::hostfile;
use crate::bootstrap::launchers::{self, Place};
use crate::bootstrap::secret::Secret;
use crate::error::{Error, Result, Status};
use crate::log::Level;

/// What a variable says, if it is set.
pub type Lookup<'l> = &'l dyn Fn(&str) -> Option<OsString>;

pub(super) fn invalid(text: String) -> Error {
    Error::new(Status::InvalidConfig, text)
}

/// Reads the variables through `lookup`; the level is `RING_LOG`'s.
pub fn settings(lookup: impl Fn(&str) -> Option<OsString>) -> Result<(Settings, Option<Level>)> {
    let rank = launchers::rank(&lookup)?;
    let place = launchers::place(&lookup)?;
    let size = launchers::size(&lookup, rank.name, &place)?;
    let optional =
        |name: &str, largest: u32| lookup(name).map(|value| number(name, value, largest)).transpose();
    let level = lookup("RING_LOG").map(|value| {
        let level = value.to_str().and_then(Level::from_name);
        level.ok_or_else(|| {
            invalid(format!("RING_LOG is \"{}\", not error, warn, info or debug", value.display()))
        })
    });
    let name = place.name;
    let (hostfile, rendezvous) = match place.value {
        Place::Hostfile(path) => (Some(path), None),
        Place::Rendezvous(text) => (None, Some(text)),
    };
    let settings = Settings {
        names: Names {
            rank: rank.name,
            size: size.name,
            hostfile: name,
            rendezvous: name,
            job_id: "RING_JOB_ID",
            secret: "RING_SECRET",
            connections: "RING_CONNECTIONS",
            wire: "RING_WIRE",
            transport: "RING_TRANSPORT",
            trace_dir: "RING_TRACE",
        },
        rank: rank.value,
        size: size.value,
        hostfile,
        rendezvous,
        job_id: lookup("RING_JOB_ID").unwrap_or_default().into_encoded_bytes(),
        secret: secret(lookup("RING_SECRET"), lookup("RING_SECRET_FILE"))?,
        connect_timeout_ms: optional("RING_CONNECT_TIMEOUT_MS", u32::MAX)?.unwrap_or(0),
        timeout_ms: optional("RING_TIMEOUT_MS", u32::MAX)?.unwrap_or(0),
        stall_warning_ms: optional("RING_STALL_WARNING_MS", u32::MAX)?.unwrap_or(0),
        connections: optional("RING_CONNECTIONS", u32::MAX)?.unwrap_or(0),
        wire: lookup("RING_WIRE").map_or(Ok(Wire::Native as i32), wire)?,
        transport: lookup("RING_TRANSPORT").map_or(Ok(AUTO), transport)?,
        trace_dir: lookup("RING_TRACE"),
        ..Settings::default()
    };
    Ok((settings, level.transpose()?))
}

/// The number of a wire format.
fn wire(value: OsString) -> Result<i32> {
    match value.to_str() {
        Some("native") => Ok(Wire::Native as i32),
        Some("mlx") => Ok(Wire::Mlx as i32),
        _ => Err(invalid(format!("RING_WIRE is \"{}\", not native or mlx", value.display()))),
    }
}

/// The number of a transport.
fn transport(value: OsString) -> Result<i32> {
    match value.to_str() {
        Some("auto") => Ok(AUTO),
        Some("tcp") => Ok(TCP),
        Some("shm") => Ok(SHM),
        _ => Err(invalid(format!("RING_TRANSPORT is \"{}\", not auto, tcp or shm", value.display()))),
    }
}

/// The secret, from one of its two variables.
fn secret(value: Option<OsString>, file: Option<OsString>) -> Result<Option<Secret>> {
    let path = match (value, file) {
        (Some(_), Some(_)) => {
            return Err(invalid(
                "RING_SECRET and RING_SECRET_FILE are set, and only one of them may be".into(),
            ));
        }
        (Some(value), None) => return Ok(Some(Secret::new(value.into_encoded_bytes()))),
        (None, None) => return Ok(None),
        (None, Some(path)) if path.is_empty() => {
            return Err(invalid("RING_SECRET_FILE is empty; it must be the path of a file".into()));
        }
        (None, Some(path)) => path,
    };
    let source = format!("RING_SECRET_FILE {}", path.display());
    let mut bytes = hostfile::read(&path, &source)?;
    // Editors and echo end a file with one, which nobody means.
    if bytes.last() == Some(&b'\n') {
        bytes.pop();
    }
    if bytes.is_empty() {
        return Err(invalid(format!("{source}: it is empty")));
    }
    let secret = Secret::new(bytes);
    match secret.problem() {
        Some(problem) => Err(invalid(format!("{source}: it {problem}"))),
        None => Ok(Some(secret)),
    }
}

/// A decimal number, and nothing else.
pub(super) fn number(name: &str, value: OsString, largest: u32) -> Result<u32> {
    let digits =
        value.to_str().filter(|text| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()));
    let parsed = digits.and_then(|text| text.parse::<u32>().ok()).filter(|number| *number <= largest);
    parsed.ok_or_else(|| {
        invalid(format!("{name} is \"{}\", not a number from 0 to {largest}", value.display()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<(Settings, Option<Level>)> {
        settings(|name| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into()))
    }

    const GOOD: [(&str, &str); 2] = [("RING_RANK", "1"), ("MLX_HOSTFILE", "hosts.json")];

    fn with(name: &'static str, value: &'static str) -> Vec<(&'static str, &'static str)> {
        let mut variables = GOOD.to_vec();
        variables.insert(0, (name, value));
        variables
    }

    #[test]
    fn the_first_that_is_set_wins() {
        let (settings, level) = read(&GOOD).unwrap();
        assert_eq!((settings.rank, settings.hostfile), (1, Some("hosts.json".into())));
        assert_eq!(level, None);
        let (settings, _) = read(&with("MLX_RANK", "5")).unwrap();
        assert_eq!(settings.rank, 1);
        let all = [
            ("MLX_RANK", "2"),
            ("RING_HOSTFILE", "a"),
            ("MLX_HOSTFILE", "b"),
            ("RING_SIZE", "4"),
            ("RING_JOB_ID", "job"),
            ("RING_SECRET", "0123456789abcdef"),
            ("RING_CONNECT_TIMEOUT_MS", "5"),
            ("RING_TIMEOUT_MS", "4294967295"),
            ("RING_CONNECTIONS", "3"),
            ("RING_STALL_WARNING_MS", "30000"),
            ("RING_LOG", "warn"),
            ("RING_WIRE", "mlx"),
            ("RING_TRACE", "traces"),
        ];
        let (settings, level) = read(&all).unwrap();
        assert_eq!((settings.rank, settings.size, settings.connections), (2, 4, 3));
        assert_eq!((settings.connect_timeout_ms, settings.timeout_ms), (5, u32::MAX));
        assert_eq!(settings.stall_warning_ms, 30000);
        assert_eq!((settings.hostfile, settings.job_id), (Some("a".into()), b"job".to_vec()));
        assert_eq!((level, settings.wire), (Some(Level::Warn), Wire::Mlx as i32));
        assert_eq!(settings.trace_dir, Some("traces".into()));
        assert_eq!(read(&with("RING_WIRE", "native")).unwrap().0.wire, Wire::Native as i32);
        assert!(settings.secret.is_some_and(|secret| secret.is("0123456789abcdef")));
    }

    #[test]
    fn a_secret_may_come_from_a_file() {
        let path = std::env::temp_dir().join(format!("ring-secret-{}", std::process::id()));
        let read = || {
            read(&[("RING_RANK", "1"), ("RING_HOSTFILE", "h"), ("RING_SECRET_FILE", path.to_str().unwrap())])
        };
        let from = |bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            read().map(|(settings, _)| settings.secret.unwrap())
        };
        for (bytes, secret) in [
            ("0123456789abcdef", "0123456789abcdef"),
            ("0123456789abcdef\n", "0123456789abcdef"),
            ("0123456789abcdef\n\n", "0123456789abcdef\n"),
            ("0123456789abcdef ", "0123456789abcdef "),
        ] {
            assert!(from(bytes.as_bytes()).unwrap().is(secret), "{bytes:?}");
        }
        let long = vec![b'x'; 4097];
        let bad: [(&[u8], &str); 4] = [
            (b"", "it is empty"),
            (b"\n", "it is empty"),
            (b"0123456789abcde\n", "it has fewer than 16 bytes"),
            (&long, "it has more than 4096 bytes"),
        ];
        for (bytes, text) in bad {
            let error = from(bytes).unwrap_err();
            let text = format!("RING_SECRET_FILE {}: {text}", path.display());
            assert_eq!((error.status, error.text), (Status::InvalidConfig, text));
        }
        std::fs::remove_file(&path).unwrap();
        let error = read().unwrap_err();
        assert!(error.text.ends_with(": No such file or directory"), "{error}");
    }

    #[test]
    fn what_is_wrong_is_named() {
        let both = [with("RING_SECRET", "0123456789abcdef"), with("RING_SECRET_FILE", "x")].concat();
        let bad: [(&[(&str, &str)], &str); 20] = [
            (&[], "none of RING_RANK, MLX_RANK"),
            (&[("MLX_RANK", "0")], "none of RING_HOSTFILE, RING_RENDEZVOUS, MLX_HOSTFILE"),
            (&with("RING_RANK", ""), "RING_RANK is \"\""),
            (&with("RING_RANK", "abc"), "RING_RANK is \"abc\""),
            (&with("RING_RANK", "-1"), "RING_RANK is \"-1\""),
            (&with("RING_RANK", "+1"), "RING_RANK is \"+1\""),
            (&with("RING_RANK", " 1"), "RING_RANK is \" 1\""),
            (&with("RING_RANK", "4294967295"), "RING_RANK is \"4294967295\""),
            (&with("RING_CONNECTIONS", "many"), "RING_CONNECTIONS is \"many\""),
            (&with("RING_TIMEOUT_MS", "4294967296"), "RING_TIMEOUT_MS is \"4294967296\""),
            (&with("RING_STALL_WARNING_MS", ""), "RING_STALL_WARNING_MS is \"\""),
            (&with("RING_STALL_WARNING_MS", "5s"), "RING_STALL_WARNING_MS is \"5s\""),
            (&with("RING_TRANSPORT", ""), "RING_TRANSPORT is \"\", not auto, tcp or shm"),
            (&with("RING_TRANSPORT", "rdma"), "RING_TRANSPORT is \"rdma\""),
            (&with("RING_WIRE", ""), "RING_WIRE is \"\", not native or mlx"),
            (&with("RING_WIRE", "MLX"), "RING_WIRE is \"MLX\", not native or mlx"),
            (&with("RING_LOG", "loud"), "RING_LOG is \"loud\""),
            (&with("RING_SECRET_FILE", ""), "RING_SECRET_FILE is empty"),
            (&with("RING_SECRET_FILE", "/"), "RING_SECRET_FILE /: it is a directory"),
            (&both, "RING_SECRET and RING_SECRET_FILE are set"),
        ];
        for (variables, text) in bad {
            let error = read(variables).unwrap_err();
            assert_eq!(error.status, Status::InvalidConfig);
            assert!(error.text.contains(text), "{} lacks {text}", error.text);
        }
        let error = read(&with("RING_HOSTFILE", "")).unwrap().0.check().unwrap_err();
        assert!(error.text.contains("RING_HOSTFILE is empty"), "{error}");
        let torchrun = |host, size| {
            let given = [("RANK", "0"), ("WORLD_SIZE", size), ("MASTER_ADDR", host), ("MASTER_PORT", "5")];
            read(&given).unwrap().0.check().map(|config| config.rendezvous.unwrap().to_string())
        };
        assert_eq!(torchrun("fe80::1%eth0", "2").unwrap(), "[fe80::1%eth0]:5");
        for (host, size, text) in [
            ("a b", "2", "MASTER_ADDR:MASTER_PORT \"a b:5\": it has a space"),
            ("a", "0", "WORLD_SIZE is not set, or 0, and MASTER_ADDR:MASTER_PORT needs"),
        ] {
            assert!(torchrun(host, size).unwrap_err().text.contains(text), "{text}");
        }
        let short = Settings {
            hostfile: None,
            hosts: Some(b"[\"a:1\"]".to_vec()),
            rank: 0,
            ..read(&with("RING_SECRET", "")).unwrap().0
        };
        assert_eq!(short.check().unwrap_err().text, "RING_SECRET has fewer than 16 bytes");
    }

    #[test]
    fn a_transport_goes_by_its_name() {
        for (name, number) in [("auto", AUTO), ("tcp", TCP), ("shm", SHM)] {
            assert_eq!(read(&with("RING_TRANSPORT", name)).unwrap().0.transport, number);
        }
        let (settings, _) = read(&with("RING_TRANSPORT", "shm")).unwrap();
        let hosts = Some(b"[\"a:1\"]".to_vec());
        let lacking = Settings { hostfile: None, hosts, rank: 0, ..settings }.check().unwrap_err();
        assert_eq!(lacking.text, "RING_TRANSPORT is shm, which this build does not have");
    }
}
