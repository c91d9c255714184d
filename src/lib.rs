//! libring: a ring of processes that reduce and exchange arrays over TCP, behind a C ABI.
//!
//! Programs use the C header `ring.h`, which is generated from [`ffi`]; ARCHITECTURE.md says how
//! the modules fit together. The Rust items are public for this project's own tests and promise
//! no stability.

pub mod bootstrap;
pub mod dtype;
pub mod engine;
pub mod error;
pub mod ffi;
pub mod frames;
pub mod group;
pub mod kernels;
pub mod link;
pub mod log;
pub mod memory;
pub mod panics;
pub mod plan;
pub mod sys;
pub mod trace;
pub mod watcher;
pub mod wire;
