//! How one rank of a group reaches the others, and is reached.

use std::net::SocketAddr;
use std::sync::Arc;

use crate::bootstrap::claims::{Claims, LinkName};
use crate::bootstrap::far_dial::Deadline;
use crate::bootstrap::switchboard::Switchboard;
use crate::error::{Error, Result, Status};
use crate::link::Arrival;

/// A group's part of its family's switchboard. The group is unknown there once this is closed or dropped.
pub struct Reach {
    board: Arc<Switchboard>,
    claims: Claims,
    /// Where each rank was reached by its left neighbour.
    addresses: Vec<Option<SocketAddr>>,
}

impl Reach {
    pub(super) fn new(
        board: Arc<Switchboard>,
        claims: Claims,
        mut addresses: Vec<Option<SocketAddr>>,
    ) -> Reach {
        let own_scope = addresses.get((claims.rank() + 1) % addresses.len().max(1)).copied().flatten();
        addresses.iter_mut().for_each(|address| rescope(address, own_scope));
        board.open(claims.clone());
        Reach { board, claims, addresses }
    }

    /// Of these ranks of the group, in the order of their ranks in a new one, of which this is `rank`.
    pub fn child(&self, group: [u8; 16], rank: usize, members: &[usize]) -> Reach {
        let addresses = members.iter().map(|member| self.addresses[*member]).collect();
        let claims = self.claims.of_group(group, rank, members.len());
        self.board.open(claims.clone());
        Reach { board: self.board.clone(), claims, addresses }
    }

    /// The group's id.
    pub fn group(&self) -> [u8; 16] {
        self.claims.group()
    }

    /// The links of an edge of the ring, which its left rank opens.
    pub fn links(&self) -> impl Iterator<Item = LinkName> + use<> {
        self.claims.links()
    }

    /// Where a link arrives that `peer` opens; it is waited for as long as the peer doesn't come.
    pub fn await_link(&self, link: LinkName, peer: usize) -> Result<Arc<Arrival>> {
        self.board.await_link(&self.claims.group(), link, peer)
    }

    /// Where a link to `peer` arrives. It is tried until the deadline, where the peer's host refuses for a second.
    pub fn dial(&self, link: LinkName, peer: usize, deadline: Deadline) -> Result<Arc<Arrival>> {
        let Some(address) = self.addresses.get(peer).copied().flatten() else {
            let text = format!("nobody has told where rank {peer} listens");
            return Err(Error::new(Status::Internal, text).at_rank(peer));
        };
        self.board.dial(&self.claims.group(), link, (peer, address), deadline)
    }

    /// Makes no more links.
    pub fn close(&self) {
        self.board.close(&self.claims.group());
    }
}

impl Drop for Reach {
    fn drop(&mut self) {
        self.close();
    }
}

/// The interface of a link-local address is a number of the host that told it; here it is the one that leads to the
/// right neighbour.
fn rescope(address: &mut Option<SocketAddr>, own: Option<SocketAddr>) {
    if let (Some(SocketAddr::V6(address)), Some(SocketAddr::V6(own))) = (address, own)
        && address.ip().is_unicast_link_local()
        && own.ip().is_unicast_link_local()
    {
        address.set_scope_id(own.scope_id());
    }
}
