//! The listening sockets of a rank whose ring has formed: ranks of its groups that open links are let in, and whoever
//! comes too late is told so.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use crate::bootstrap::Connection;
use crate::bootstrap::reach::Reach;
use crate::bootstrap::switchboard::Switchboard;
use crate::bootstrap::visitors::Visitors;
use crate::error::Error;
use crate::sys::{PollEntry, Wake};

/// A formed ring's listener, for one thread that polls it.
pub struct Door {
    listeners: Vec<Connection>,
    visitors: Visitors,
}

impl Door {
    pub(super) fn new(listeners: Vec<Connection>, visitors: Visitors) -> Door {
        Door { listeners, visitors }
    }

    /// Lets this rank and those of the group that has formed, `group`, reach each other by the addresses at which they
    /// were reached; `bell` wakes the thread that polls this door.
    pub fn reach(&mut self, group: [u8; 16], addresses: Vec<Option<SocketAddr>>, bell: Arc<Wake>) -> Reach {
        let board = self.visitors.board.insert(Arc::new(Switchboard::new(bell))).clone();
        let claims = &self.visitors.claims;
        let claims = claims.of_group(group, claims.rank(), addresses.len());
        Reach::new(board, claims, addresses)
    }

    /// Adds what is to be polled; when to call [`Door::progress`] at the latest, though nothing of it is ready.
    pub fn waits(&self, entries: &mut Vec<PollEntry>) -> Option<Instant> {
        let mut add = |connection: &Connection, interest| {
            entries.push(PollEntry::new(connection.descriptor(), interest));
        };
        self.visitors.waits(self.listeners.iter(), &mut add);
        let dials = self.visitors.board.as_ref().and_then(|board| board.waits(&mut add));
        dials.into_iter().chain(self.visitors.next_wake()).min()
    }

    /// Lets visitors in and answers them. An error is a second process of this rank, which has shown
    /// itself so soon that the ring may be made of two jobs: the group fails with it.
    pub fn progress(&mut self, now: Instant) -> Option<Error> {
        let taken = self.listeners.iter().try_for_each(|listener| self.visitors.accept(listener, now));
        let error = taken.and_then(|()| self.visitors.progress(now)).err();
        if let Some(board) = self.visitors.board.clone() {
            board.progress(now, || self.visitors.shed());
        }
        error
    }

    /// Whether no group of the family is left that whoever comes could belong to.
    pub fn is_deserted(&self) -> bool {
        self.visitors.board.as_ref().is_none_or(|board| board.is_deserted())
    }

    /// Connections so far that were no peer's.
    pub fn strangers(&self) -> u64 {
        self.visitors.strangers()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bootstrap::claims::Claims;
    use crate::bootstrap::config::{Config, Settings};
    use crate::bootstrap::{Ring, form};
    use crate::error::Status;
    use crate::wire::{Answer, Hello, LinkKind};
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::time::Duration;

    fn ports() -> Vec<u16> {
        let listeners: Vec<_> = (0..2).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
        listeners.iter().map(|listener| listener.local_addr().unwrap().port()).collect()
    }

    fn config(rank: i32, ports: &[u16], job_id: &str) -> Config {
        let hosts = format!("[\"127.0.0.1:{}\",\"127.0.0.1:{}\"]", ports[0], ports[1]);
        let settings =
            Settings { rank, hosts: Some(hosts.into()), job_id: job_id.into(), ..Settings::default() };
        settings.check().unwrap()
    }

    /// Rank 1 of two, whose ring has formed, with rank 0 beside it.
    fn formed(ports: &[u16]) -> [Ring; 2] {
        std::thread::scope(|scope| {
            let other = scope.spawn(|| form(&config(0, ports, "job")).unwrap());
            let own = form(&config(1, ports, "job")).unwrap();
            [other.join().unwrap(), own]
        })
    }

    /// Says something at the door; the answer, and what the door makes of it.
    fn say(ring: &mut Ring, port: u16, words: &[u8]) -> (Option<Hello>, Option<Error>) {
        let mut visitor = TcpStream::connect(("127.0.0.1", port)).unwrap();
        visitor.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        visitor.write_all(words).unwrap();
        let end = Instant::now() + Duration::from_secs(5);
        let before = ring.door.strangers();
        let mut error = None;
        while error.is_none() && ring.door.strangers() == before && Instant::now() < end {
            let mut entries = Vec::new();
            ring.door.waits(&mut entries);
            crate::sys::poll(&mut entries, Some(Duration::from_millis(50))).unwrap();
            error = ring.door.progress(Instant::now());
        }
        let mut answer = Vec::new();
        let _ = visitor.read_to_end(&mut answer);
        (Hello::decode(&answer).ok().flatten(), error)
    }

    #[test]
    fn who_comes_too_late_is_told_so() {
        let ports = ports();
        let [other, mut ring] = formed(&ports);
        assert_eq!((ring.group, &ring.members), (other.group, &other.members));
        assert_eq!(ring.members[0].right_address.unwrap().port(), ports[1]);
        let claims = Claims::new(&config(0, &ports, "job"), [7; 16]);
        let own = Claims::new(&config(1, &ports, "job"), [8; 16]);
        let foreign = Claims::new(&config(1, &ports, "other"), [9; 16]);
        let dials = claims.hello(1, (LinkKind::Control, 0), Answer::None);
        let rival = own.hello(1, (LinkKind::Rival, 0), Answer::None);
        let elsewhere = Hello { from: 0, ..rival.clone() };
        let other_job = foreign.hello(1, (LinkKind::Rival, 0), Answer::None);
        for (hello, expected) in
            [(&dials, Answer::Formed), (&elsewhere, Answer::Differs), (&other_job, Answer::OtherJob)]
        {
            let (answer, error) = say(&mut ring, ports[1], &hello.encode());
            assert_eq!((answer.unwrap().answer, error), (expected, None));
        }
        assert_eq!(say(&mut ring, ports[1], b"GET / HTTP/1.1\r\n\r\n"), (None, None));
        assert_eq!(ring.door.strangers(), 4);
        let told = ring.door.visitors.strangers_text();
        assert!(told[0].starts_with("rank 1 of another ring or run connected from 127.0.0.1:"), "{told:?}");
        assert!(told[1].contains("protocol: 1, from 127.0.0.1 ("), "one said GET: {told:?}");

        let (answer, error) = say(&mut ring, ports[1], &rival.encode());
        let error = error.expect("a second self fails a ring that has just formed");
        assert_eq!((answer.unwrap().answer, error.status), (Answer::Taken, Status::ConnectFailed));
        assert!(error.text.contains("two processes claim to be rank 1"), "{}", error.text);

        ring.door.visitors.close(Instant::now().checked_sub(Duration::from_secs(6)).unwrap());
        let (answer, error) = say(&mut ring, ports[1], &rival.encode());
        assert_eq!((answer.unwrap().answer, error), (Answer::Formed, None));
    }

    #[test]
    fn a_newcomer_waits_for_the_old_run_to_end() {
        let ports = ports();
        let [_other, mut ring] = formed(&ports);
        ring.door.visitors.close(Instant::now().checked_sub(Duration::from_secs(6)).unwrap());
        std::thread::scope(|scope| {
            let newcomer =
                scope.spawn(|| form(&Config { connect_timeout: None, ..config(1, &ports, "job") }));
            let start = Instant::now();
            while start.elapsed() < Duration::from_millis(900) {
                assert_eq!(ring.door.progress(Instant::now()), None);
                std::thread::sleep(Duration::from_millis(5));
            }
            let error = newcomer.join().unwrap().map(drop).unwrap_err();
            assert!(
                error.text.contains("in use by rank 1 of a ring that has formed already"),
                "{}",
                error.text
            );
        });
    }
}
