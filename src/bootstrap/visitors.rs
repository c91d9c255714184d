//! The accepting side: connections whose hello is awaited, the left neighbour's links, and
//! strangers.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::net::SocketAddr;

use crate::bootstrap::claims::{Claims, LinkName};
use crate::bootstrap::handshake::{Acceptor, Heard, Unproved};
use crate::bootstrap::{Connection, printed};
use crate::error::{Error, Result, Status, os_words};
use crate::link::close_at_once;
use crate::log;
use crate::wire::{Answer, Hello, LinkKind};

/// Handshakes that may be open at once; a newcomer evicts the oldest one that has said nothing.
const MAX_OPEN: usize = 128;
/// Connections accepted from one listener in one turn, so that strangers can't hold the turn.
const MAX_ACCEPTS: usize = 256;

struct Visitor {
    connection: Connection,
    handshake: Acceptor,
}

/// Whoever has connected to this rank while the ring forms.
pub struct Visitors {
    claims: Claims,
    left: usize,
    open: Vec<Visitor>,
    joined: HashMap<LinkName, Connection>,
    /// Which process the joined links lead to.
    nonce: Option<[u8; 16]>,
    strangers: u64,
    /// Whoever claimed last to be the left neighbour, and didn't prove it.
    impostor: Option<(SocketAddr, Unproved)>,
    /// Given up to accept, and so get rid of, a connection when descriptors have run out.
    reserve: Option<File>,
}

/// What has become of a visitor.
enum Fate {
    Waits,
    Gone,
    Unproved(Unproved),
    Peer(Hello),
}

impl Visitors {
    pub fn new(claims: Claims, left: usize) -> Visitors {
        let reserve = File::open("/dev/null").ok();
        Visitors {
            claims,
            left,
            open: vec![],
            joined: HashMap::new(),
            nonce: None,
            strangers: 0,
            impostor: None,
            reserve,
        }
    }

    /// Accepts what waits at a listener.
    pub fn accept(&mut self, listener: &Connection) -> Result<()> {
        for _ in 0..MAX_ACCEPTS {
            match listener.socket.accept() {
                Ok((socket, address)) => {
                    let address = address.as_socket().unwrap_or(listener.address);
                    // Fails if the visitor has gone already.
                    if let Ok(connection) = Connection::new(socket, address) {
                        self.admit(connection)?;
                    }
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => break,
                Err(e) if matches!(e.raw_os_error(), Some(libc::EMFILE | libc::ENFILE)) => {
                    self.reserve = None;
                    let dropped = listener.socket.accept();
                    self.reserve = File::open("/dev/null").ok();
                    if dropped.is_err() {
                        let text = format!("accepting connections: {}", os_words(&e));
                        return Err(Error::new(Status::System, text).with_os(&e));
                    }
                    self.strangers += 1;
                }
                // The visitor has gone already, or its network has failed: nothing of ours.
                Err(_) => {}
            }
        }
        Ok(())
    }

    fn admit(&mut self, connection: Connection) -> Result<()> {
        if self.open.len() == MAX_OPEN {
            let silent = self.open.iter().position(|v| v.handshake.is_silent()).unwrap_or(0);
            let evicted = self.open.remove(silent);
            self.refuse(evicted.connection);
        }
        self.open.push(Visitor { connection, handshake: self.claims.acceptor()? });
        Ok(())
    }

    /// Counts a stranger and closes its connection.
    fn refuse(&mut self, connection: Connection) {
        self.strangers += 1;
        log::line!(Info, "a connection from {} is no peer's and was closed", printed(&connection.address));
        close_at_once(connection.socket);
    }

    /// Reads what visitors have said, and lets the left neighbour's links in.
    pub fn progress(&mut self) -> Result<()> {
        let mut i = 0;
        while i < self.open.len() {
            match listen(&mut self.open[i]) {
                Ok(Fate::Waits) => i += 1,
                Ok(Fate::Gone) | Err(_) => {
                    let visitor = self.open.swap_remove(i);
                    self.refuse(visitor.connection);
                }
                Ok(Fate::Unproved(why)) => {
                    let visitor = self.open.swap_remove(i);
                    self.expose(visitor, why);
                }
                Ok(Fate::Peer(hello)) => {
                    let visitor = self.open.swap_remove(i);
                    self.judge(visitor, hello)?;
                }
            }
        }
        Ok(())
    }

    /// Counts a stranger that spoke as a peer does, but didn't prove itself.
    fn expose(&mut self, visitor: Visitor, why: Unproved) {
        let Visitor { connection, handshake } = visitor;
        let (claimed, from) = (handshake.claimed(), connection.address);
        let _ = connection.send(handshake.refusal(why));
        self.strangers += 1;
        log::line!(Warn, "a connection from {} was closed: {why}", printed(&from));
        if claimed == Some(self.left) {
            self.impostor = Some((from, why));
        }
    }

    fn judge(&mut self, visitor: Visitor, hello: Hello) -> Result<()> {
        let Visitor { connection, handshake } = visitor;
        let name = (hello.kind, hello.lane);
        let own = self.claims.hello(hello.from as usize, name, Answer::None);
        let answer = |answer| connection.send(handshake.answer(&Hello { answer, ..own }));
        let from = printed(&connection.address);
        if hello.nonce == self.claims.nonce {
            let _ = answer(Answer::Myself);
            return Ok(());
        }
        if !self.claims.same_job(&hello) {
            let _ = answer(Answer::OtherJob);
            self.strangers += 1;
            log::line!(Warn, "rank {} of another job has connected from {from}", hello.from);
            return Ok(());
        }
        if let Some(differences) = self.claims.differences(self.left, &hello) {
            let _ = answer(Answer::Differs);
            let text = format!("a rank that connected from {from} disagrees: {differences}");
            return Err(Error::new(Status::ConnectFailed, text));
        }
        self.forget_ended();
        if self.nonce.is_some_and(|nonce| nonce != hello.nonce) {
            let _ = answer(Answer::Taken);
            let text =
                format!("two processes claim to be rank {}; the second connected from {from}", self.left);
            return Err(Error::new(Status::ConnectFailed, text).at_rank(self.left));
        }
        // Where this fails the peer has gone, and will come again.
        if answer(Answer::Accepted).is_ok() {
            self.nonce = Some(hello.nonce);
            self.joined.insert(name, connection);
        }
        Ok(())
    }

    /// A left neighbour that has ended may come again, as another process too. Its control link,
    /// which comes first, tells: on lanes bytes may already follow.
    pub fn forget_ended(&mut self) {
        let control = self.joined.get(&(LinkKind::Control, 0));
        if control.is_none_or(Connection::is_abandoned) {
            self.joined.clear();
            self.nonce = None;
        }
    }

    pub fn is_complete(&self) -> bool {
        self.claims.links().all(|link| self.joined.contains_key(&link))
    }

    /// The links, once complete.
    pub fn take(&mut self, link: LinkName) -> Option<Connection> {
        self.joined.remove(&link)
    }

    pub fn strangers(&self) -> u64 {
        self.strangers
    }

    /// Whoever claimed last to be the left neighbour and didn't prove it, in words; None if nobody did, or
    /// if the neighbour has come.
    pub fn impostor(&self) -> Option<String> {
        let (from, why) = self.impostor.as_ref().filter(|_| self.nonce.is_none())?;
        Some(format!("a connection from {} claimed to be rank {}: {why}", printed(from), self.left))
    }

    /// What to poll for reading.
    pub fn connections(&self) -> impl Iterator<Item = &Connection> {
        self.open.iter().map(|visitor| &visitor.connection)
    }
}

/// Carries the handshake as far as the visitor's words go.
fn listen(visitor: &mut Visitor) -> io::Result<Fate> {
    loop {
        let words = visitor.connection.receive(visitor.handshake.wanted())?;
        if words.is_empty() {
            return Ok(Fate::Waits);
        }
        match visitor.handshake.take(&words) {
            Heard::More => {}
            Heard::Send(bytes) => visitor.connection.send(bytes)?,
            Heard::Peer(hello) => return Ok(Fate::Peer(hello)),
            Heard::NotAPeer => return Ok(Fate::Gone),
            Heard::Unproved(why) => return Ok(Fate::Unproved(why)),
        }
    }
}
