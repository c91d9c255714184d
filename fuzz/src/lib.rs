//! What the fuzz targets check. `tests/decoders.rs` checks the same with proptest.

pub mod allocations;
pub mod properties;
