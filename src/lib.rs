//! libring: a ring of processes that reduce and exchange arrays over TCP.
//!
//! Rust programs have [`Group`], over slices of typed [`Element`]s:
//!
//! ```no_run
//! use ring::{Group, Op};
//!
//! fn main() -> ring::Result<()> {
//!     // RING_RANK, and RING_HOSTFILE or RING_RENDEZVOUS, or what a launcher has set.
//!     let group = Group::create_from_env()?;
//!     let mut gradient = vec![group.rank() as f32; 1000];
//!     group.all_reduce(&mut gradient, Op::Mean)?;
//!     Ok(())
//! }
//! ```
//!
//! Bindings of other languages have [`untyped`]: the same calls over memory that isn't Rust's, with numbers for types.
//! Typed calls are made of it, and so is the C boundary (`ffi`), from which the header `ring.h` is generated: that has
//! nothing that isn't public here. ring.h's documentation and the README say more of what the calls promise.
//!
//! The modules that aren't shown are public for this project's own tests and promise nothing; ARCHITECTURE.md says how
//! they fit together.

#[doc(hidden)]
pub mod bootstrap;
#[doc(hidden)]
pub mod dtype;
#[doc(hidden)]
pub mod engine;
#[doc(hidden)]
pub mod error;
#[doc(hidden)]
pub mod ffi;
#[doc(hidden)]
pub mod frames;
#[doc(hidden)]
pub mod group;
#[doc(hidden)]
pub mod kernels;
#[doc(hidden)]
pub mod link;
pub mod log;
#[doc(hidden)]
pub mod memory;
#[doc(hidden)]
pub mod panics;
#[doc(hidden)]
pub mod plan;
#[doc(hidden)]
pub mod sys;
#[doc(hidden)]
pub mod trace;
#[doc(hidden)]
pub mod typed;
pub mod untyped;
#[doc(hidden)]
pub mod watcher;
#[doc(hidden)]
pub mod wire;

pub use dtype::{Dtype, Op};
pub use error::{Error, Result, Status};
pub use group::Stats;
pub use memory::Plain;
pub use typed::{Bool, Buffers, Complex64, Config, Element, Group, Request, Wire, bf16, f16};
