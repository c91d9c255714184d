//! nuvec-distributed's ring, in place on bytes: below its lazy arrays, which would add a copy. The type is
//! private, so that build.sh puts the crate's own file where it can be included.
#![allow(dead_code)]

mod ring {
    include!(concat!(env!("PEERS_BUILD"), "/nuvec_ring.rs"));
}

use std::time::Duration;

use nuvec_core::DType;
use nuvec_core::distributed::{AllReduce, Communicator};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

fn main() {
    let (rank, world) = (peers::number("RANK"), peers::number("WORLD"));
    let hosts: Vec<String> = peers::variable("HOSTS").split(',').map(str::to_owned).collect();
    let connections = hosts.len() / world;
    let nodes: Vec<Vec<String>> = hosts.chunks(connections).map(<[String]>::to_vec).collect();
    let ring = ring::Ring::connect(&nodes, rank, CONNECT_TIMEOUT).unwrap_or_else(|e| peers::fail(e));
    peers::work(rank, world, &mut |data| {
        // SAFETY: floats are bytes without padding, and any bytes are floats.
        let bytes = unsafe { std::slice::from_raw_parts_mut(data.as_mut_ptr().cast(), size_of_val(data)) };
        ring.all_reduce(AllReduce::Sum, DType::F32, bytes).map_err(|e| e.to_string())
    });
}
