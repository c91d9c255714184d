//! What an operation works with, and where that is between operations.

use std::sync::{Mutex, MutexGuard};

use super::lock;
use super::pairs::Pairs;
use crate::engine::Engine;
use crate::link::Link;
use crate::plan::Plan;
use crate::wire::CallHeader;

/// Links, and what is kept from operation to operation on them.
#[derive(Default)]
pub struct Machine {
    pub links: Vec<Box<dyn Link>>,
    pub engine: Engine,
    pub plan: Plan,
    pub scratch: Vec<u8>,
    /// Of collectives: the lanes to each neighbour, which are the first links.
    pub lanes: usize,
    /// Of collectives: whether direct links to other ranks lie behind them.
    pub pairs: Pairs,
    /// Of messages: what the link is known to bring next, where the messages before it could not be sent.
    pub ahead: Option<CallHeader>,
}

/// The place of a machine. Whoever has the turn takes it from there and puts it back.
pub struct Home(Mutex<Option<Box<Machine>>>);

impl Home {
    /// A machine with these links.
    pub fn new(links: Vec<Box<dyn Link>>) -> Home {
        let lanes = links.len() / 2;
        Home(Mutex::new(Some(Box::new(Machine { links, lanes, ..Machine::default() }))))
    }

    fn place(&self) -> MutexGuard<'_, Option<Box<Machine>>> {
        lock(&self.0)
    }

    /// The machine; None where an operation has panicked with it.
    pub fn take(&self) -> Option<Box<Machine>> {
        self.place().take()
    }

    pub fn put(&self, machine: Box<Machine>) {
        *self.place() = Some(machine);
    }

    /// The links, unless an operation has them.
    pub fn take_links(&self) -> Vec<Box<dyn Link>> {
        self.place().as_mut().map_or(Vec::new(), |machine| std::mem::take(&mut machine.links))
    }

    /// Whether the machine is here and as is asked.
    pub fn is(&self, such: impl FnOnce(&Machine) -> bool) -> bool {
        self.place().as_deref().is_some_and(such)
    }
}

impl Default for Home {
    fn default() -> Home {
        Home::new(Vec::new())
    }
}
