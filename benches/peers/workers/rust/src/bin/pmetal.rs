//! pmetal-distributed's RingBackend; its links are encrypted unless $PLAIN is set.

use pmetal_distributed::{ClusterSecret, DistributedBackend, DistributedConfig, ReduceOp, RingBackend};

fn main() {
    let (rank, world) = (peers::number("RANK"), peers::number("WORLD"));
    let nodes = peers::variable("HOSTS")
        .split(',')
        .map(|host| host.parse().unwrap_or_else(|e| peers::fail(e)))
        .collect();
    let config = DistributedConfig::new(nodes, rank);
    let config = match std::env::var("PLAIN") {
        Ok(_) => config.with_plaintext_allowed(),
        Err(_) => config.with_secret(ClusterSecret::from_bytes([7; 32])),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let ring = runtime.block_on(RingBackend::new(config)).unwrap_or_else(|e| peers::fail(format!("{e:#}")));
    peers::work(rank, world, &mut |data| {
        runtime.block_on(ring.all_reduce_f32(data, ReduceOp::Sum)).map_err(|e| format!("{e:#}"))
    });
}
