//! One own address of a rank in a stock MLX ring.

use std::time::Instant;

use super::{has_ended, watch};
use crate::bootstrap::Connection;
use crate::bootstrap::config::Address;
use crate::bootstrap::dial;
use crate::bootstrap::listen::Listening;
use crate::error::{Error, Result};
use crate::sys::{Interest, PollEntry};

/// It is listened on until the left neighbour has connected to it.
pub struct Accepting {
    pub address: Address,
    listening: Listening,
    pub came: Option<Connection>,
}

impl Accepting {
    pub fn new(address: &Address) -> Accepting {
        Accepting { address: address.clone(), listening: Listening::new(address), came: None }
    }

    pub fn is_done(&self) -> bool {
        self.came.is_some()
    }

    /// One connection is accepted and the listener closed. A visitor that leaves before the ring stands was no
    /// neighbour, or is one that comes again, unless it has sent something on another lane.
    pub fn progress(&mut self, now: Instant, has_sent: bool) -> Result<()> {
        self.came.take_if(|came| !has_sent && has_ended(came));
        if self.is_done() {
            return Ok(());
        }
        self.listening.progress(None, now)?;
        for listener in &self.listening.sockets {
            let (socket, address) = match listener.socket.accept() {
                Ok(accepted) => accepted,
                Err(error) if dial::is_out_of_descriptors(&error) => {
                    return Err(Error::system("accepting a connection", &error));
                }
                // Nobody is there, or whoever was has left.
                Err(_) => continue,
            };
            let address = address.as_socket().unwrap_or(listener.address);
            // Fails if the visitor has left already.
            if let Ok(connection) = Connection::new(socket, address) {
                self.came = Some(connection);
                break;
            }
        }
        if self.is_done() {
            self.listening.sockets.clear();
        }
        Ok(())
    }

    /// Whether nobody has come and nobody can.
    pub fn is_deaf(&self) -> bool {
        !self.is_done() && !self.listening.is_listening()
    }

    /// Why it is deaf.
    pub fn error(&self) -> Error {
        self.listening.error()
    }

    pub fn waits(&self, entries: &mut Vec<PollEntry>) {
        match &self.came {
            Some(came) => watch(came, entries),
            None => self.listening.sockets.iter().for_each(|listener| {
                entries.push(PollEntry::new(listener.descriptor(), Interest { read: true, write: false }));
            }),
        }
    }
}
