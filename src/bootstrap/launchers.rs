//! What launchers tell their processes: rank, number of ranks, and where to meet.

use std::ffi::OsString;

use crate::bootstrap::environment::{Lookup, invalid, number};
use crate::error::Result;

/// Variables that give a process its rank, the first that is set first; and beside those of a launcher, the one
/// by which it gives the number of ranks.
const RANKS: [(&str, Option<&str>); 6] = [
    ("RING_RANK", None),
    ("MLX_RANK", None),
    ("OMPI_COMM_WORLD_RANK", Some("OMPI_COMM_WORLD_SIZE")),
    ("PMI_RANK", Some("PMI_SIZE")),
    ("SLURM_PROCID", Some("SLURM_NTASKS")),
    ("RANK", Some("WORLD_SIZE")),
];

/// A value, and the variable that it came from, as errors call it.
#[derive(Debug)]
pub struct Named<T> {
    pub name: &'static str,
    pub value: T,
}

/// Where a process finds the others.
#[derive(Debug)]
pub enum Place {
    /// Path of a hostfile.
    Hostfile(OsString),
    /// `host:port` where rank 0 listens.
    Rendezvous(Vec<u8>),
}

/// This process's rank.
pub fn rank(lookup: Lookup<'_>) -> Result<Named<i32>> {
    let set = RANKS.iter().find_map(|(name, _)| Some((*name, lookup(name)?)));
    let Some((name, value)) = set else {
        let names: Vec<_> = RANKS.iter().map(|(name, _)| *name).collect();
        return Err(invalid(format!("no rank is set: none of {} is", list(&names))));
    };
    Ok(Named { name, value: number(name, value, i32::MAX as u32)? as i32 })
}

/// Where the others are. What the user says by one of the library's own variables goes before what a
/// launcher says, and a hostfile before a rendezvous.
pub fn place(lookup: Lookup<'_>) -> Result<Named<Place>> {
    let hostfile = |name| Some(Named { name, value: Place::Hostfile(lookup(name)?) });
    if let Some(place) = hostfile("RING_HOSTFILE") {
        return Ok(place);
    }
    if let Some(value) = lookup("RING_RENDEZVOUS") {
        return Ok(Named { name: "RING_RENDEZVOUS", value: Place::Rendezvous(value.into_encoded_bytes()) });
    }
    if let Some(place) = hostfile("MLX_HOSTFILE") {
        return Ok(place);
    }
    match (lookup("MASTER_ADDR"), lookup("MASTER_PORT")) {
        (Some(host), Some(port)) => {
            let rendezvous = master(lookup, host, port)?;
            Ok(Named { name: "MASTER_ADDR:MASTER_PORT", value: Place::Rendezvous(rendezvous) })
        }
        (Some(_), None) => Err(invalid("MASTER_ADDR is set, but MASTER_PORT is not".to_owned())),
        (None, Some(_)) => Err(invalid("MASTER_PORT is set, but MASTER_ADDR is not".to_owned())),
        (None, None) => Err(invalid(
            "neither hosts nor a rendezvous are set: none of RING_HOSTFILE, RING_RENDEZVOUS, MLX_HOSTFILE and \
             MASTER_ADDR is"
                .to_owned(),
        )),
    }
}

/// The rendezvous of a program that torchrun or the like has started.
fn master(lookup: Lookup<'_>, host: OsString, port: OsString) -> Result<Vec<u8>> {
    let host = host.into_encoded_bytes();
    if host.is_empty() {
        return Err(invalid("MASTER_ADDR is empty".to_owned()));
    }
    let mut port = number("MASTER_PORT", port, u16::MAX.into())?;
    // The launcher's own store listens at the port itself.
    if lookup("TORCHELASTIC_USE_AGENT_STORE").is_some_and(|value| value == "True") {
        port += 1;
    }
    if !(1..=u32::from(u16::MAX)).contains(&port) {
        return Err(invalid(format!(
            "MASTER_PORT makes the port {port}, which is none; it is one more than the variable where \
             TORCHELASTIC_USE_AGENT_STORE is True"
        )));
    }
    let is_bare_ipv6 = host.contains(&b':') && !host.starts_with(b"[");
    let (open, close): (&[u8], &[u8]) = if is_bare_ipv6 { (b"[", b"]") } else { (b"", b"") };
    Ok([open, &host, close, b":", port.to_string().as_bytes()].concat())
}

/// The number of ranks; 0 if it isn't set. That of a launcher goes with the rank that it gave: another
/// launcher, in whose shell or allocation this one runs, may count otherwise.
pub fn size(lookup: Lookup<'_>, rank: &'static str, place: &Named<Place>) -> Result<Named<i32>> {
    let read = |name: &'static str| {
        let value = lookup(name).map(|value| number(name, value, i32::MAX as u32)).transpose()?;
        Ok(value.map(|value| Named { name, value: value as i32 }))
    };
    if let Some(size) = read("RING_SIZE")? {
        return Ok(size);
    }
    let of_rank = RANKS.iter().find(|(name, _)| *name == rank).and_then(|(_, size)| *size);
    if let Some(name) = of_rank {
        return match read(name)? {
            Some(size) => Ok(size),
            None if matches!(place.value, Place::Hostfile(_)) => Ok(Named { name, value: 0 }),
            None => {
                let place = place.name;
                Err(invalid(format!(
                    "neither RING_SIZE nor {name}, which goes with {rank}, is set, and {place} needs the number of \
                     ranks"
                )))
            }
        };
    }
    // A hostfile tells by itself, and a launcher that gave no rank has no say.
    if matches!(place.value, Place::Hostfile(_)) {
        return Ok(Named { name: "RING_SIZE", value: 0 });
    }
    let launchers: Vec<_> = RANKS.iter().filter_map(|(_, size)| *size).collect();
    for name in &launchers {
        let Some(size) = read(name)? else { continue };
        // Such as that of an interactive shell on a cluster.
        if size.value == 1 {
            return Err(invalid(format!(
                "RING_SIZE is not set, and {name} is 1, which need not go with {rank}: a group of one must be \
                 asked for by RING_SIZE"
            )));
        }
        return Ok(size);
    }
    let place = place.name;
    Err(invalid(format!(
        "RING_SIZE is not set, nor is {}, and {place} needs the number of ranks",
        launchers.join(", ")
    )))
}

fn list(names: &[&str]) -> String {
    match names.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} and {last}", others.join(", ")),
        _ => names.concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Status;

    type Variables = &'static [(&'static str, &'static str)];

    /// Rank, place and size as they are read, in words.
    fn read(variables: &[(&str, &str)]) -> Result<String> {
        let lookup = |name: &str| -> Option<OsString> {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into())
        };
        let rank = rank(&lookup)?;
        let place = place(&lookup)?;
        let size = size(&lookup, rank.name, &place)?;
        let at = match place.value {
            Place::Hostfile(path) => path.into_string().unwrap(),
            Place::Rendezvous(text) => String::from_utf8(text).unwrap(),
        };
        Ok(format!("{} {} {} {at} {} {}", rank.name, rank.value, place.name, size.name, size.value))
    }

    const TORCHRUN: Variables =
        &[("RANK", "3"), ("WORLD_SIZE", "8"), ("MASTER_ADDR", "node-0"), ("MASTER_PORT", "29500")];

    fn with(first: Variables, then: Variables) -> Vec<(&'static str, &'static str)> {
        first.iter().chain(then).copied().collect()
    }

    #[test]
    fn each_launcher_is_understood() {
        let torchrun = "RANK 3 MASTER_ADDR:MASTER_PORT node-0";
        let good: [(Variables, Variables, String); 14] = [
            (&[], TORCHRUN, format!("{torchrun}:29500 WORLD_SIZE 8")),
            (&[("TORCHELASTIC_USE_AGENT_STORE", "True")], TORCHRUN, format!("{torchrun}:29501 WORLD_SIZE 8")),
            (
                &[("TORCHELASTIC_USE_AGENT_STORE", "False")],
                TORCHRUN,
                format!("{torchrun}:29500 WORLD_SIZE 8"),
            ),
            (
                &[("MASTER_ADDR", "::1")],
                TORCHRUN,
                "RANK 3 MASTER_ADDR:MASTER_PORT [::1]:29500 WORLD_SIZE 8".into(),
            ),
            (
                &[("MASTER_ADDR", "[::1]")],
                TORCHRUN,
                "RANK 3 MASTER_ADDR:MASTER_PORT [::1]:29500 WORLD_SIZE 8".into(),
            ),
            (
                &[("RING_RENDEZVOUS", "a:1"), ("OMPI_COMM_WORLD_RANK", "1"), ("OMPI_COMM_WORLD_SIZE", "4")],
                &[("PMI_RANK", "7"), ("PMI_SIZE", "9"), ("SLURM_NTASKS", "1"), ("SLURM_PROCID", "0")],
                "OMPI_COMM_WORLD_RANK 1 RING_RENDEZVOUS a:1 OMPI_COMM_WORLD_SIZE 4".into(),
            ),
            (
                &[("RING_RENDEZVOUS", "a:1"), ("PMI_RANK", "1"), ("PMI_SIZE", "4")],
                &[("SLURM_PROCID", "0"), ("SLURM_NTASKS", "1")],
                "PMI_RANK 1 RING_RENDEZVOUS a:1 PMI_SIZE 4".into(),
            ),
            (
                &[("RING_RENDEZVOUS", "a:1"), ("SLURM_PROCID", "2"), ("SLURM_NTASKS", "4")],
                TORCHRUN,
                "SLURM_PROCID 2 RING_RENDEZVOUS a:1 SLURM_NTASKS 4".into(),
            ),
            (
                &[("MLX_RANK", "2"), ("MLX_HOSTFILE", "h")],
                TORCHRUN,
                "MLX_RANK 2 MLX_HOSTFILE h RING_SIZE 0".into(),
            ),
            (
                &[("RING_RANK", "2"), ("RING_SIZE", "4"), ("MLX_RANK", "x"), ("RING_HOSTFILE", "h")],
                &[("RING_RENDEZVOUS", "a:1"), ("MLX_HOSTFILE", "i"), ("WORLD_SIZE", "x")],
                "RING_RANK 2 RING_HOSTFILE h RING_SIZE 4".into(),
            ),
            (
                &[("MLX_RANK", "2"), ("MLX_HOSTFILE", "h"), ("RING_RENDEZVOUS", "a:1"), ("RING_SIZE", "4")],
                &[],
                "MLX_RANK 2 RING_RENDEZVOUS a:1 RING_SIZE 4".into(),
            ),
            // A launcher's number of ranks with a rank that the user has set.
            (
                &[("RING_RANK", "5")],
                TORCHRUN,
                "RING_RANK 5 MASTER_ADDR:MASTER_PORT node-0:29500 WORLD_SIZE 8".into(),
            ),
            // A hostfile, and a launcher that has given no rank: only the hostfile has a say.
            (
                &[("RING_RANK", "1"), ("RING_HOSTFILE", "h"), ("SLURM_PROCID", "0"), ("SLURM_NTASKS", "1")],
                &[],
                "RING_RANK 1 RING_HOSTFILE h RING_SIZE 0".into(),
            ),
            (
                &[("SLURM_PROCID", "1"), ("SLURM_NTASKS", "2"), ("RING_HOSTFILE", "h")],
                &[],
                "SLURM_PROCID 1 RING_HOSTFILE h SLURM_NTASKS 2".into(),
            ),
        ];
        for (first, then, expected) in good {
            assert_eq!(read(&with(first, then)), Ok(expected), "{first:?} {then:?}");
        }
    }

    #[test]
    fn what_is_missing_or_wrong_is_named() {
        let bad: [(Variables, Variables, &str); 17] = [
            (
                &[],
                &[],
                "none of RING_RANK, MLX_RANK, OMPI_COMM_WORLD_RANK, PMI_RANK, SLURM_PROCID and RANK is",
            ),
            (&[("RANK", "")], TORCHRUN, "RANK is \"\", not a number"),
            (&[("WORLD_SIZE", "eight")], TORCHRUN, "WORLD_SIZE is \"eight\""),
            (&[("MASTER_PORT", "")], TORCHRUN, "MASTER_PORT is \"\""),
            (&[("MASTER_PORT", "0")], TORCHRUN, "MASTER_PORT makes the port 0"),
            (&[("MASTER_PORT", "65536")], TORCHRUN, "MASTER_PORT is \"65536\", not a number from 0 to 65535"),
            (
                &[("MASTER_PORT", "65535"), ("TORCHELASTIC_USE_AGENT_STORE", "True")],
                TORCHRUN,
                "MASTER_PORT makes the port 65536",
            ),
            (&[("MASTER_ADDR", "")], TORCHRUN, "MASTER_ADDR is empty"),
            (&[("RANK", "1"), ("MASTER_ADDR", "a")], &[], "MASTER_ADDR is set, but MASTER_PORT is not"),
            (&[("RANK", "1"), ("MASTER_PORT", "5")], &[], "MASTER_PORT is set, but MASTER_ADDR is not"),
            (
                &[("RANK", "1"), ("WORLD_SIZE", "2")],
                &[],
                "none of RING_HOSTFILE, RING_RENDEZVOUS, MLX_HOSTFILE and",
            ),
            (
                &[("RANK", "1"), ("RING_RENDEZVOUS", "a:1"), ("SLURM_NTASKS", "4")],
                &[],
                "neither RING_SIZE nor WORLD_SIZE, which goes with RANK, is set, and RING_RENDEZVOUS needs",
            ),
            (
                &[("RING_RANK", "1"), ("RING_RENDEZVOUS", "a:1")],
                &[],
                "RING_SIZE is not set, nor is OMPI_COMM_WORLD_SIZE",
            ),
            (
                &[("RING_RANK", "0"), ("RING_RENDEZVOUS", "a:1"), ("SLURM_NTASKS", "1")],
                &[],
                "RING_SIZE is not set, and SLURM_NTASKS is 1, which need not go with RING_RANK",
            ),
            (&[("RING_SIZE", "")], TORCHRUN, "RING_SIZE is \"\""),
            (&[("OMPI_COMM_WORLD_RANK", "x")], TORCHRUN, "OMPI_COMM_WORLD_RANK is \"x\""),
            (&[("RING_SIZE", "-4")], TORCHRUN, "RING_SIZE is \"-4\""),
        ];
        for (first, then, text) in bad {
            let error = read(&with(first, then)).unwrap_err();
            assert_eq!(error.status, Status::InvalidConfig);
            assert!(error.text.contains(text), "{} lacks {text}", error.text);
        }
    }
}
