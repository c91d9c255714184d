//! The C boundary and nothing else: check, convert, call, map the result. `ring.h` is generated
//! from these files, in this order; their documentation is the header's.
#![allow(unsafe_code, non_camel_case_types)]
// A heading for Rust callers would stand in the C header.
#![allow(clippy::missing_safety_doc)]
// What stands in brackets is for readers of the C header.
#![allow(rustdoc::broken_intra_doc_links)]
#![warn(missing_docs)]

mod boundary;
mod pointers;
mod sized;
pub mod version;
// In the header's order, which is this one's.
pub mod types;
// Errors.
pub mod errors;
// Configuration.
pub mod config;
// Groups.
pub mod group;
// Collectives.
pub mod collectives;
pub mod collectives_v;
// Messages.
pub mod messages;
// Collectives by a function of the host program.
pub mod custom;
// Requests.
pub mod requests;
// Log.
pub mod log;
// Statistics.
pub mod stats;
// All of them in a table.
pub mod table;

#[cfg(test)]
mod tests;
