//! Groups of ranks for Rust programs: calls over slices of typed elements, whose lengths are checked, and
//! requests that own their buffers. Everything is what ring.h's functions of the same names do.
#![warn(missing_docs)]

mod collectives;
mod collectives_v;
mod config;
mod custom;
mod element;
mod group;
mod messages;
mod requests;

pub use config::{Config, Wire};
pub use element::{Bool, Complex64, Element, bf16, f16};
pub use group::Group;
pub use requests::{Buffers, Request};
