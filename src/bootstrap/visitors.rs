//! The accepting side: connections whose hello is awaited, and the left neighbour's links.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::bootstrap::claims::{Claims, LinkName};
use crate::bootstrap::control::Control;
use crate::bootstrap::dial::is_out_of_descriptors;
use crate::bootstrap::handshake::{Acceptor, Heard, Unproved};
use crate::bootstrap::rendezvous::Guests;
use crate::bootstrap::strangers::Strangers;
use crate::bootstrap::switchboard::Switchboard;
use crate::bootstrap::{Connection, printed};
use crate::error::{Error, Result, Status};
use crate::link::close_at_once;
use crate::log;
use crate::sys::{Interest, fork};
use crate::wire::{Answer, Hello, LinkKind};

/// Handshakes that may be open at once; a newcomer evicts the oldest one that has said nothing.
const MAX_OPEN: usize = 128;
/// Connections accepted between two readings of what visitors say: fewer than may be open, so that
/// nobody who speaks at once is evicted unread.
const BATCH: usize = 64;
/// Connections accepted from one listener in one turn, so that strangers can't hold the turn.
const MAX_ACCEPTS: usize = 1024;
/// A turn that has lasted so long ends with the visitor it is at: each may cost a call of the host's log, and
/// the watcher, whose turn it is, has the other ranks to answer.
const LONG_TURN: Duration = Duration::from_millis(20);
/// A peer's hello follows its connection at once, also over a slow network.
const MAX_SILENCE: Duration = Duration::from_secs(10);
/// With no descriptor left, not even to accept and close, the listener is left alone for this long.
const DEAF: Duration = Duration::from_millis(50);

/// A descriptor that is given up to accept, and so get rid of, a connection when all are used up.
struct Reserve {
    #[allow(dead_code, reason = "unregisters the descriptor before it closes")]
    registered: fork::Registered,
    #[allow(dead_code, reason = "held, never read")]
    file: File,
}

impl Reserve {
    fn new() -> Option<Reserve> {
        let file = File::open("/dev/null").ok()?;
        Some(Reserve { registered: fork::Registered::new(file.as_raw_fd()), file })
    }
}

struct Visitor {
    connection: Connection,
    handshake: Acceptor,
    since: Instant,
}

/// Whoever has connected to this rank.
pub struct Visitors {
    pub(super) claims: Claims,
    left: usize,
    /// In the order in which they came.
    open: Vec<Visitor>,
    joined: HashMap<LinkName, Connection>,
    /// The control link of the joined ones.
    pub control: Option<Control>,
    /// Which process the joined links lead to.
    nonce: Option<[u8; 16]>,
    strangers: Strangers,
    refused_left: bool,
    /// Whoever claimed last to be the left neighbour and didn't prove it, in words.
    impostor: Option<String>,
    reserve: Option<Reserve>,
    deaf_until: Option<Instant>,
    /// The last error for want of descriptors.
    exhausted: Option<io::Error>,
    /// When the ring had formed: from then on nobody is let in.
    pub(super) formed: Option<Instant>,
    /// Who takes the links of groups that stand.
    pub(super) board: Option<Arc<Switchboard>>,
    /// At rank 0 of a ring with a rendezvous: who has come to it.
    pub(super) guests: Option<Guests>,
}

/// Whether a turn that began then has lasted long enough.
fn is_long(began: Instant) -> bool {
    began.elapsed() > LONG_TURN
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
        Visitors {
            claims,
            left,
            open: Vec::new(),
            joined: HashMap::new(),
            control: None,
            nonce: None,
            strangers: Strangers::default(),
            refused_left: false,
            impostor: None,
            reserve: Reserve::new(),
            deaf_until: None,
            exhausted: None,
            formed: None,
            board: None,
            guests: None,
        }
    }

    /// Accepts what waits at a listener.
    pub fn accept(&mut self, listener: &Connection, now: Instant) -> Result<()> {
        if self.is_deaf(now) {
            return Ok(());
        }
        for accepted in 1..=MAX_ACCEPTS {
            match listener.socket.accept() {
                Ok((socket, address)) => {
                    self.exhausted = None;
                    let address = address.as_socket().unwrap_or(listener.address);
                    // Fails if the visitor has gone already.
                    if let Ok(connection) = Connection::new(socket, address) {
                        self.admit(connection, now)?;
                    }
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => break,
                Err(e) if is_out_of_descriptors(&e) => {
                    if !self.shed() && !self.turn_away(listener) {
                        self.deaf_until = Some(now + DEAF);
                        self.exhausted = Some(e);
                        break;
                    }
                    self.exhausted = Some(e);
                }
                // The visitor has gone already, or its network has failed: nothing of ours.
                Err(_) => {}
            }
            if accepted % BATCH == 0 {
                self.progress(now)?;
            }
            if is_long(now) {
                break;
            }
        }
        Ok(())
    }

    fn is_deaf(&self, now: Instant) -> bool {
        self.deaf_until.is_some_and(|until| now < until)
    }

    fn admit(&mut self, connection: Connection, now: Instant) -> Result<()> {
        if self.open.len() == MAX_OPEN {
            self.evict();
        }
        self.open.push(Visitor { connection, handshake: self.claims.acceptor()?, since: now });
        Ok(())
    }

    /// Closes the oldest handshake, of those that have said nothing if there are any.
    fn evict(&mut self) {
        let silent = self.open.iter().position(|visitor| visitor.handshake.is_silent()).unwrap_or(0);
        let evicted = self.open.remove(silent);
        self.refuse(evicted.connection);
    }

    /// Frees a visitor's descriptor, if there is one.
    pub fn shed(&mut self) -> bool {
        let has_any = !self.open.is_empty();
        if has_any {
            self.evict();
        }
        has_any
    }

    /// Accepts and closes a connection with the descriptor that was kept for this.
    fn turn_away(&mut self, listener: &Connection) -> bool {
        if self.reserve.take().is_none() {
            self.reserve = Reserve::new();
            return false;
        }
        if let Ok((socket, _)) = listener.socket.accept() {
            self.strangers.count_unheard();
            close_at_once(socket);
        }
        self.reserve = Reserve::new();
        self.reserve.is_some()
    }

    /// Counts a stranger and closes its connection.
    fn refuse(&mut self, connection: Connection) {
        self.strangers.count_unknown(connection.address.ip());
        let from = printed(&connection.address);
        log::line!(Info, "a connection from {from} did not speak this library's protocol and was closed");
        close_at_once(connection.socket);
    }

    /// Counts a stranger that spoke this protocol, and keeps what is to be told of it.
    pub(super) fn count_outsider(&mut self, told: String) {
        log::line!(Warn, "{told}");
        self.strangers.count_outsider(told);
    }

    /// Reads what visitors have said, and lets the left neighbour's links in.
    pub fn progress(&mut self, now: Instant) -> Result<()> {
        let mut i = 0;
        while i < self.open.len() {
            let before = self.open.len();
            match hear(&mut self.open[i]) {
                Ok(Fate::Waits) if now < self.open[i].since + MAX_SILENCE => i += 1,
                Ok(Fate::Waits | Fate::Gone) | Err(_) => {
                    let visitor = self.open.remove(i);
                    self.refuse(visitor.connection);
                }
                Ok(Fate::Unproved(why)) => {
                    let visitor = self.open.remove(i);
                    self.expose(visitor, why);
                }
                Ok(Fate::Peer(hello)) => {
                    let visitor = self.open.remove(i);
                    self.judge(visitor, hello)?;
                }
            }
            if self.open.len() < before && is_long(now) {
                break;
            }
        }
        Ok(())
    }

    /// Counts a stranger that spoke as a peer does, but didn't prove itself.
    fn expose(&mut self, visitor: Visitor, why: Unproved) {
        let Visitor { connection, handshake, .. } = visitor;
        let (claimed, from) = (handshake.claimed(), connection.address);
        let _ = connection.send(handshake.refusal(why));
        let who = claimed.map_or("a rank".to_owned(), |rank| format!("rank {rank}"));
        let told = format!("a connection from {} claimed to be {who}, but {why}", printed(&from));
        if let (Some(guests), Some(rank)) = (&mut self.guests, claimed) {
            guests.suspect(rank, &told);
        }
        if claimed == Some(self.left) {
            self.strangers.count_impostor();
            log::line!(Warn, "{told}");
            self.impostor = Some(told);
        } else {
            self.count_outsider(told);
        }
    }

    fn judge(&mut self, visitor: Visitor, hello: Hello) -> Result<()> {
        let Visitor { connection, handshake, .. } = visitor;
        let name = (hello.kind, hello.lane);
        let own = self.claims.hello(hello.from as usize, name, Answer::None);
        let is_own = hello.nonce == self.claims.nonce;
        if !is_own && hello.group != [0; 16] {
            self.answer_member(connection, handshake, &hello);
            return Ok(());
        }
        if !is_own && (hello.kind == LinkKind::Rival || self.formed.is_some()) {
            return self.answer_outsider(connection, handshake, &hello);
        }
        if hello.kind == LinkKind::Rendezvous && !is_own && self.claims.same_job(&hello) {
            return self.receive_guest(connection, handshake, &hello);
        }
        let answer = |answer| connection.send(handshake.answer(&Hello { answer, ..own }));
        let from = printed(&connection.address);
        if is_own {
            let _ = answer(Answer::Myself);
            return Ok(());
        }
        if !self.claims.same_job(&hello) {
            let _ = answer(Answer::OtherJob);
            let job = self.claims.job_text(&hello.job_id);
            self.count_outsider(format!("rank {} of another job ({job}) connected from {from}", hello.from));
            return Ok(());
        }
        if let Some(differences) = self.claims.differences(self.left, &hello) {
            let _ = answer(Answer::Differs);
            self.refused_left = true;
            let text = format!(
                "the process that connected from {from} as rank {} disagrees: {differences}",
                hello.from
            );
            return Err(Error::new(Status::ConnectFailed, text));
        }
        if let Some(control) = &mut self.control {
            control.look_for_end();
            if control.has_ended() && control.has_unread() {
                // What it said decides: the ring may have formed, and the visitor be its next run.
                let _ = answer(Answer::Formed);
                return Ok(());
            }
        }
        self.forget_ended();
        if self.nonce.is_some_and(|nonce| nonce != hello.nonce) {
            let _ = answer(Answer::Taken);
            self.refused_left = true;
            let text =
                format!("two processes claim to be rank {}; the second connected from {from}", self.left);
            return Err(Error::new(Status::ConnectFailed, text).at_rank(self.left));
        }
        // Where this fails the peer has gone, and will come again.
        if answer(Answer::Accepted).is_ok() {
            self.join(name, hello.nonce, connection);
        }
        Ok(())
    }

    fn join(&mut self, name: LinkName, nonce: [u8; 16], connection: Connection) {
        self.nonce = Some(nonce);
        if name.0 == LinkKind::Control {
            self.control = Control::new(connection, nonce).ok();
        } else {
            self.joined.insert(name, connection);
        }
    }

    /// A left neighbour that has ended may come again, as another process too. Its control link,
    /// which comes first, tells: on lanes bytes may already follow.
    pub fn forget_ended(&mut self) {
        if self.control.as_ref().is_none_or(Control::has_ended) {
            self.control = None;
            self.joined.clear();
            self.nonce = None;
        }
    }

    /// Whether all of the left neighbour's links stand.
    pub fn is_complete(&self) -> bool {
        let data = |(kind, _): &LinkName| *kind != LinkKind::Control;
        self.control.is_some() && self.claims.links().filter(data).all(|link| self.joined.contains_key(&link))
    }

    /// Lanes that the left neighbour has not made.
    pub fn missing_lanes(&self) -> impl Iterator<Item = u16> {
        let missing = |link: &LinkName| link.0 == LinkKind::Lane && !self.joined.contains_key(link);
        self.claims.links().filter(missing).map(|(_, lane)| lane)
    }

    /// A link other than control, once complete.
    pub fn take(&mut self, link: LinkName) -> Option<Connection> {
        self.joined.remove(&link)
    }

    /// The ring has formed: whoever comes from now on is told so.
    pub fn close(&mut self, now: Instant) {
        self.joined.clear();
        self.formed = Some(now);
    }

    /// Whether somebody has been answered that the two claims differ.
    pub fn has_refused_left(&self) -> bool {
        self.refused_left
    }

    /// Connections so far that were no peer's.
    pub fn strangers(&self) -> u64 {
        self.strangers.count()
    }

    /// Whoever claimed last to be the left neighbour and didn't prove it, in words; None if nobody did, or
    /// if the neighbour has come.
    pub fn impostor(&self) -> Option<String> {
        self.impostor.clone().filter(|_| self.nonce.is_none())
    }

    /// Strangers, for the text of a ring that did not form.
    pub fn strangers_text(&self) -> Vec<String> {
        self.strangers.in_words(self.open.iter().map(|visitor| visitor.connection.address.ip()))
    }

    /// The last error for want of descriptors.
    pub fn exhausted(&self) -> Option<&io::Error> {
        self.exhausted.as_ref()
    }

    /// What to poll beside the listeners.
    pub fn waits<'c>(
        &self,
        listeners: impl Iterator<Item = &'c Connection>,
        add: &mut dyn FnMut(&Connection, Interest),
    ) {
        let read = Interest { read: true, write: false };
        if !self.is_deaf(Instant::now()) {
            listeners.for_each(|listener| add(listener, read));
        }
        self.open.iter().for_each(|visitor| add(&visitor.connection, read));
    }

    /// When something is due though nobody speaks.
    pub fn next_wake(&self) -> Option<Instant> {
        let silence = self.open.first().map(|visitor| visitor.since + MAX_SILENCE);
        let deaf = self.deaf_until.filter(|until| *until > Instant::now());
        silence.into_iter().chain(deaf).min()
    }
}

/// Carries the handshake as far as the visitor's words go.
fn hear(visitor: &mut Visitor) -> io::Result<Fate> {
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
