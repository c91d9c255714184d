//! From configuration to a connected ring.

pub mod config;
