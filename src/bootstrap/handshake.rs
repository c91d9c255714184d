//! The handshake of a new link, for each side a machine without I/O: bytes in, bytes out, and what
//! came of it. The messages stand in a table of [`wire`](crate::wire).
//!
//! Both machines keep all that was said, since that is what each side proves; the last part of it may
//! be a message that is still coming in.

use std::fmt;

use crate::bootstrap::secret::{Role, Secret};
use crate::wire::{Answer, Guarded, HAS_SECRET, Hello, MAC, NONCE, Opening, PROOF};

/// What has come of some bytes from the peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heard {
    /// More must come.
    More,
    /// This goes to the peer, whose next message is then awaited.
    Send(Vec<u8>),
    /// The peer's hello; where there is a secret the peer has proved that it knows it.
    Peer(Hello),
    /// It is no peer of this protocol.
    NotAPeer,
    /// It is a peer that has not proved itself. Nothing that it claims counts.
    Unproved(Unproved),
}

/// Why a peer has not proved itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unproved {
    NoSecretThere,
    NoSecretHere,
    /// The peer's proof is wrong.
    Wrong,
    /// The peer says that this rank's proof is wrong.
    Refused,
}

impl fmt::Display for Unproved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Unproved::NoSecretThere => "has no secret, and this rank has one",
            Unproved::NoSecretHere => "has a secret, and this rank has none",
            Unproved::Wrong => "did not prove that it knows this rank's secret",
            Unproved::Refused => "has another secret than this rank",
        })
    }
}

/// The connector's side.
pub struct Connector {
    secret: Option<Secret>,
    nonce: [u8; NONCE],
    said: Vec<u8>,
    /// Where in `said` the message begins that comes in.
    start: usize,
    stage: Connecting,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Connecting {
    /// The acceptor's first message is awaited.
    Opening,
    /// This rank has proved itself; the acceptor's hello and proof are awaited.
    Proof,
    Over,
}

impl Connector {
    /// `hello` is what this side says first, [`Connector::hello`]; `nonce` is fresh for this connection,
    /// and of use only with a secret.
    pub fn new(secret: Option<&Secret>, hello: &Hello, nonce: [u8; NONCE]) -> Connector {
        let said = hello.encode();
        let start = said.len();
        Connector { secret: secret.cloned(), nonce, said, start, stage: Connecting::Opening }
    }

    /// What to send first.
    pub fn hello(&self) -> Vec<u8> {
        self.said[..self.start].to_vec()
    }

    /// How many bytes to read next: never past a message, since a call may follow at once. 0 once the
    /// handshake is over.
    pub fn wanted(&self) -> usize {
        let coming = &self.said[self.start..];
        match (self.stage, Opening::wanted(coming)) {
            (Connecting::Over, _) => 0,
            (Connecting::Proof, 0) => Hello::len(coming) + MAC - coming.len(),
            (_, wanted) => wanted,
        }
    }

    /// Takes what was read, at most [`Connector::wanted`].
    pub fn take(&mut self, bytes: &[u8]) -> Heard {
        let heard = match bytes.len() <= self.wanted() {
            true => {
                self.said.extend_from_slice(bytes);
                if self.stage == Connecting::Opening { self.opening() } else { self.proof() }
            }
            false => Heard::NotAPeer,
        };
        if !matches!(heard, Heard::More | Heard::Send(_)) {
            self.stage = Connecting::Over;
        }
        heard
    }

    fn opening(&mut self) -> Heard {
        let opening = match Opening::decode(&self.said[self.start..]) {
            Err(_) => return Heard::NotAPeer,
            Ok(None) => return Heard::More,
            Ok(Some(opening)) => opening,
        };
        match (&self.secret, opening) {
            (None, Opening::Hello(hello)) if hello.flags & HAS_SECRET == 0 => Heard::Peer(hello),
            (None, Opening::Hello(_) | Opening::Guarded(Guarded::Challenge(_))) => {
                Heard::Unproved(Unproved::NoSecretHere)
            }
            (Some(_), Opening::Hello(_) | Opening::Guarded(Guarded::NoSecret)) => {
                Heard::Unproved(Unproved::NoSecretThere)
            }
            (Some(secret), Opening::Guarded(Guarded::Challenge(_))) => {
                let before = self.said.len();
                self.said.extend_from_slice(&self.nonce);
                let proof = secret.prove(Role::Connector, &self.said);
                self.said.extend_from_slice(&proof);
                self.start = self.said.len();
                self.stage = Connecting::Proof;
                Heard::Send(self.said[before..].to_vec())
            }
            (_, Opening::Guarded(_)) => Heard::NotAPeer,
        }
    }

    fn proof(&self) -> Heard {
        let coming = &self.said[self.start..];
        match Opening::decode(coming) {
            Ok(None) => Heard::More,
            Ok(Some(Opening::Hello(_))) if coming.len() < Hello::len(coming) + MAC => Heard::More,
            Ok(Some(Opening::Hello(hello))) => {
                let (said, proof) = self.said.split_at(self.said.len() - MAC);
                let proved = |secret: &Secret| secret.is_proved(Role::Acceptor, said, proof);
                match self.secret.as_ref().is_some_and(proved) {
                    true => Heard::Peer(hello),
                    false => Heard::Unproved(Unproved::Wrong),
                }
            }
            Ok(Some(Opening::Guarded(Guarded::Refused))) => Heard::Unproved(Unproved::Refused),
            Ok(Some(Opening::Guarded(_))) | Err(_) => Heard::Unproved(Unproved::Wrong),
        }
    }
}

/// The acceptor's side.
pub struct Acceptor {
    secret: Option<Secret>,
    nonce: [u8; NONCE],
    said: Vec<u8>,
    stage: Accepting,
}

enum Accepting {
    Hello,
    /// The connector has said this hello and is challenged; its proof begins there.
    Proof(Hello, usize),
    /// All was heard that this side asks for: it may answer.
    Answer,
    Over,
}

impl Acceptor {
    /// `nonce` is fresh for this connection, and of use only with a secret.
    pub fn new(secret: Option<&Secret>, nonce: [u8; NONCE]) -> Acceptor {
        Acceptor { secret: secret.cloned(), nonce, said: Vec::new(), stage: Accepting::Hello }
    }

    /// Whether the connector has said nothing yet.
    pub fn is_silent(&self) -> bool {
        self.said.is_empty()
    }

    /// How many bytes to read next: never past a message. 0 once nothing more is asked for.
    pub fn wanted(&self) -> usize {
        match self.stage {
            Accepting::Hello => Hello::wanted(&self.said),
            Accepting::Proof(_, start) => start + PROOF - self.said.len(),
            Accepting::Answer | Accepting::Over => 0,
        }
    }

    /// Takes what was read, at most [`Acceptor::wanted`].
    pub fn take(&mut self, bytes: &[u8]) -> Heard {
        if bytes.len() > self.wanted() {
            self.stage = Accepting::Over;
            return Heard::NotAPeer;
        }
        self.said.extend_from_slice(bytes);
        match std::mem::replace(&mut self.stage, Accepting::Over) {
            Accepting::Hello => self.hello(),
            Accepting::Proof(hello, start) => self.proof(hello, start),
            done => {
                self.stage = done;
                Heard::More
            }
        }
    }

    fn hello(&mut self) -> Heard {
        let hello = match Hello::decode(&self.said) {
            Ok(None) => {
                self.stage = Accepting::Hello;
                return Heard::More;
            }
            Ok(Some(hello)) if hello.answer == Answer::None => hello,
            // Only an acceptor answers: one's own words, come back.
            Ok(Some(_)) | Err(_) => return Heard::NotAPeer,
        };
        match (self.secret.is_some(), hello.flags & HAS_SECRET != 0) {
            (false, false) => {
                self.stage = Accepting::Answer;
                Heard::Peer(hello)
            }
            (false, true) => Heard::Unproved(Unproved::NoSecretHere),
            (true, false) => Heard::Unproved(Unproved::NoSecretThere),
            (true, true) => {
                let challenge = Guarded::Challenge(self.nonce).encode();
                self.said.extend_from_slice(&challenge);
                self.stage = Accepting::Proof(hello, self.said.len());
                Heard::Send(challenge)
            }
        }
    }

    fn proof(&mut self, hello: Hello, start: usize) -> Heard {
        if self.said.len() < start + PROOF {
            self.stage = Accepting::Proof(hello, start);
            return Heard::More;
        }
        let (said, proof) = self.said.split_at(start + NONCE);
        if !self.secret.as_ref().is_some_and(|secret| secret.is_proved(Role::Connector, said, proof)) {
            return Heard::Unproved(Unproved::Wrong);
        }
        self.stage = Accepting::Answer;
        Heard::Peer(hello)
    }

    /// The answer to a peer that was heard; nothing to any other.
    pub fn answer(mut self, hello: &Hello) -> Vec<u8> {
        if !matches!(self.stage, Accepting::Answer) {
            return Vec::new();
        }
        let mut answer = hello.encode();
        if let Some(secret) = &self.secret {
            self.said.extend_from_slice(&answer);
            answer.extend_from_slice(&secret.prove(Role::Acceptor, &self.said));
        }
        answer
    }

    /// What to tell a peer that has not proved itself.
    pub fn refusal(&self, why: Unproved) -> Vec<u8> {
        match why {
            Unproved::NoSecretThere => Guarded::Challenge(self.nonce),
            Unproved::NoSecretHere => Guarded::NoSecret,
            Unproved::Wrong | Unproved::Refused => Guarded::Refused,
        }
        .encode()
    }

    /// The rank that a connector which has not proved itself claims to be.
    pub fn claimed(&self) -> Option<usize> {
        Hello::decode(&self.said).ok().flatten().map(|hello| hello.from as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::LinkKind;
    use proptest::prelude::*;

    fn secret(seed: u8) -> Option<Secret> {
        Some(Secret::new((0..20).map(|i| seed ^ i).collect()))
    }

    fn hello(from: u32, to: u32, answer: Answer, secret: &Option<Secret>) -> Hello {
        Hello {
            versions: (1, 1),
            kind: LinkKind::Lane,
            little_endian: true,
            answer,
            lane: 2,
            lanes: 3,
            size: 4,
            from,
            to,
            flags: if secret.is_some() { HAS_SECRET } else { 0 },
            group: [0; 16],
            nonce: [from as u8; 16],
            job_id: b"job".to_vec(),
        }
    }

    /// Rank 1 connects to rank 2.
    fn connector(secret: Option<Secret>, nonce: u8) -> Connector {
        Connector::new(secret.as_ref(), &hello(1, 2, Answer::None, &secret), [nonce; NONCE])
    }

    fn acceptor(secret: Option<Secret>, nonce: u8) -> Acceptor {
        Acceptor::new(secret.as_ref(), [nonce; NONCE])
    }

    fn answering(secret: &Option<Secret>) -> Hello {
        hello(2, 1, Answer::Accepted, secret)
    }

    /// Feeds a machine as a socket would: never more than it wants. Gives what it made of the words and
    /// how many it read.
    fn read(
        words: &[u8],
        piece: usize,
        mut wanted_and_take: impl FnMut(Option<&[u8]>) -> (usize, Heard),
    ) -> (Heard, usize) {
        let mut at = 0;
        loop {
            let wanted = wanted_and_take(None).0.min(piece).min(words.len() - at);
            if wanted == 0 {
                return (Heard::More, at);
            }
            let heard = wanted_and_take(Some(&words[at..at + wanted])).1;
            at += wanted;
            if heard != Heard::More {
                return (heard, at);
            }
        }
    }

    impl Connector {
        fn read(&mut self, words: &[u8], piece: usize) -> (Heard, usize) {
            read(words, piece, |words| (self.wanted(), words.map_or(Heard::More, |words| self.take(words))))
        }
    }

    impl Acceptor {
        fn read(&mut self, words: &[u8], piece: usize) -> (Heard, usize) {
            read(words, piece, |words| (self.wanted(), words.map_or(Heard::More, |words| self.take(words))))
        }
    }

    /// What came of a handshake on each side, and its messages.
    struct Outcome {
        at_acceptor: Heard,
        at_connector: Heard,
        messages: Vec<Vec<u8>>,
    }

    /// Lets both talk to each other; `tamper` may change each message on its way.
    fn talk(
        mut connector: Connector,
        mut acceptor: Acceptor,
        piece: usize,
        mut tamper: impl FnMut(usize, &mut Vec<u8>),
    ) -> Outcome {
        let own = answering(&acceptor.secret);
        let mut messages = Vec::new();
        let mut send = |mut message: Vec<u8>| {
            tamper(messages.len(), &mut message);
            messages.push(message.clone());
            message
        };
        let mut at_acceptor = acceptor.read(&send(connector.hello()), piece).0;
        if let Heard::Send(challenge) = &at_acceptor
            && let (Heard::Send(proof), _) = connector.read(&send(challenge.clone()), piece)
        {
            at_acceptor = acceptor.read(&send(proof), piece).0;
        }
        let last = match &at_acceptor {
            Heard::Unproved(why) => acceptor.refusal(*why),
            _ => acceptor.answer(&own),
        };
        let at_connector = connector.read(&send(last), piece).0;
        Outcome { at_acceptor, at_connector, messages }
    }

    fn untouched(_: usize, _: &mut Vec<u8>) {}

    #[test]
    fn both_sides_agree_whatever_the_pieces() {
        for (piece, secret) in [1, 7, 16, 500].into_iter().flat_map(|p| [(p, None), (p, secret(5))]) {
            let connecting = connector(secret.clone(), 1);
            let outcome = talk(connecting, acceptor(secret.clone(), 2), piece, untouched);
            assert_eq!(outcome.at_acceptor, Heard::Peer(hello(1, 2, Answer::None, &secret)));
            assert_eq!(outcome.at_connector, Heard::Peer(answering(&secret)));
            let sizes: Vec<_> = outcome.messages.iter().map(Vec::len).collect();
            assert_eq!(sizes, if secret.is_some() { vec![75, 32, 48, 107] } else { vec![75, 75] });
        }
    }

    #[test]
    fn no_message_is_long() {
        let secret = secret(1);
        let long = Hello { job_id: vec![b'x'; 255], ..hello(1, 2, Answer::None, &secret) };
        let mut connecting = Connector::new(secret.as_ref(), &long, [1; NONCE]);
        let mut accepting = acceptor(secret.clone(), 2);
        assert!(connecting.hello().len() <= 512);
        let (Heard::Send(challenge), _) = accepting.read(&connecting.hello(), 512) else { panic!() };
        let (Heard::Send(proof), _) = connecting.read(&challenge, 512) else { panic!() };
        assert_eq!(accepting.read(&proof, 512).0, Heard::Peer(long.clone()));
        let own = Hello { answer: Answer::Accepted, ..long };
        let answer = accepting.answer(&own);
        assert!(answer.len() <= 512);
        assert_eq!(connecting.read(&answer, 512).0, Heard::Peer(own));
    }

    #[test]
    fn nothing_is_revealed_before_the_proof() {
        let secret = secret(3);
        let mut accepting = acceptor(secret.clone(), 0xee);
        assert!(acceptor(secret.clone(), 0xee).answer(&answering(&secret)).is_empty());
        let (Heard::Send(challenge), _) = accepting.read(&connector(secret.clone(), 1).hello(), 512) else {
            panic!()
        };
        // Magic, versions, length, kind, nonce.
        assert_eq!(challenge, [&b"\x93LIBRING\x01\0\x01\0\x20\0\x80\0"[..], &[0xee; 16]].concat());
        assert!(accepting.answer(&answering(&secret)).is_empty());
    }

    #[test]
    fn a_wrong_or_missing_secret_is_told_on_both_sides() {
        let cases = [
            (secret(1), secret(2), Unproved::Wrong, Unproved::Refused),
            (secret(1), None, Unproved::NoSecretHere, Unproved::NoSecretThere),
            (None, secret(2), Unproved::NoSecretThere, Unproved::NoSecretHere),
        ];
        for (here, there, at_acceptor, at_connector) in cases {
            let outcome = talk(connector(here, 1), acceptor(there, 2), 512, untouched);
            assert_eq!(outcome.at_acceptor, Heard::Unproved(at_acceptor));
            assert_eq!(outcome.at_connector, Heard::Unproved(at_connector));
        }
        // An acceptor that doesn't say that it has none, or one that hides that it has.
        for (own, flag) in [(None, HAS_SECRET), (secret(1), 0)] {
            let reply = Hello { flags: flag, ..answering(&None) }.encode();
            let heard = connector(own.clone(), 1).read(&reply, 512).0;
            let why = if own.is_some() { Unproved::NoSecretThere } else { Unproved::NoSecretHere };
            assert_eq!(heard, Heard::Unproved(why));
        }
    }

    #[test]
    fn the_rank_that_was_claimed_is_known() {
        let mut accepting = acceptor(secret(1), 2);
        assert_eq!((accepting.claimed(), accepting.is_silent()), (None, true));
        accepting.read(&connector(secret(2), 1).hello(), 512);
        assert_eq!((accepting.claimed(), accepting.is_silent()), (Some(1), false));
    }

    #[test]
    fn every_bit_that_was_said_is_proved() {
        let whole = talk(connector(secret(4), 1), acceptor(secret(4), 2), 512, untouched);
        for (message, bytes) in whole.messages.iter().enumerate() {
            for bit in 0..bytes.len() * 8 {
                let outcome = talk(connector(secret(4), 1), acceptor(secret(4), 2), 512, |i, bytes| {
                    if i == message {
                        bytes[bit / 8] ^= 1 << (bit % 8);
                    }
                });
                // The acceptor has heard nobody out where the connector's words or its own were changed.
                let accepted = matches!(outcome.at_acceptor, Heard::Peer(_));
                assert_eq!(accepted, message == 3, "message {message}, bit {bit}: {:?}", outcome.at_acceptor);
                let believed = matches!(outcome.at_connector, Heard::Peer(_));
                assert!(!believed, "message {message}, bit {bit}");
            }
        }
    }

    #[test]
    fn ones_own_words_prove_nothing() {
        // An attacker without the secret gives each side back what it said, in whatever order.
        let secret = secret(6);
        let mut connecting = connector(secret.clone(), 1);
        assert_eq!(connecting.read(&connecting.hello(), 512).0, Heard::Unproved(Unproved::NoSecretThere));
        let mut connecting = connector(secret.clone(), 1);
        let challenge = Guarded::Challenge([9; NONCE]).encode();
        let (Heard::Send(proof), _) = connecting.read(&challenge, 512) else { panic!() };
        // The connector's proof isn't even the acceptor's of the very same bytes.
        let said = &connecting.said[..connecting.said.len() - MAC];
        let key = secret.clone().unwrap();
        assert!(key.is_proved(Role::Connector, said, &proof[NONCE..]));
        assert!(!key.is_proved(Role::Acceptor, said, &proof[NONCE..]));
        let own = [connecting.hello(), proof[NONCE..].to_vec()].concat();
        assert_eq!(connecting.read(&own, 512).0, Heard::Unproved(Unproved::Wrong));

        let mut accepting = acceptor(secret.clone(), 2);
        accepting.read(&connector(secret.clone(), 1).hello(), 512);
        assert_eq!(accepting.read(&[0; PROOF], 512).0, Heard::Unproved(Unproved::Wrong));
        let mut accepting = acceptor(secret.clone(), 2);
        assert_eq!(accepting.read(&answering(&secret).encode(), 512).0, Heard::NotAPeer);

        // A connector that is led to its own rank's acceptor proves itself, and learns whose it is.
        let outcome = talk(connector(secret.clone(), 1), acceptor(secret.clone(), 2), 512, untouched);
        assert!(matches!(outcome.at_acceptor, Heard::Peer(hello) if hello.nonce == [1; 16]));
    }

    #[test]
    fn a_recorded_handshake_is_good_once() {
        let key = secret(8);
        let recorded = talk(connector(key.clone(), 1), acceptor(key.clone(), 2), 512, untouched).messages;
        // To the same process and to another: what differs is the challenge.
        for nonce in [3, 4] {
            let mut accepting = acceptor(key.clone(), nonce);
            assert!(matches!(accepting.read(&recorded[0], 512).0, Heard::Send(_)));
            assert_eq!(accepting.read(&recorded[2], 512).0, Heard::Unproved(Unproved::Wrong));
            assert!(accepting.answer(&answering(&key)).is_empty());
        }
        // To the same connector, which says the same hello again, with a nonce of its own.
        let mut connecting = connector(key.clone(), 5);
        assert_eq!(connecting.hello(), recorded[0]);
        assert!(matches!(connecting.read(&recorded[1], 512).0, Heard::Send(_)));
        assert_eq!(connecting.read(&recorded[3], 512).0, Heard::Unproved(Unproved::Wrong));
    }

    #[test]
    fn a_proof_is_good_for_its_link_alone() {
        let key = secret(8);
        for change in [
            Hello { kind: LinkKind::Control, ..hello(1, 2, Answer::None, &key) },
            Hello { lane: 1, ..hello(1, 2, Answer::None, &key) },
            Hello { to: 3, ..hello(1, 2, Answer::None, &key) },
        ] {
            // Even where the challenge is the same.
            let recorded = talk(connector(key.clone(), 1), acceptor(key.clone(), 2), 512, untouched).messages;
            let mut accepting = acceptor(key.clone(), 2);
            assert!(matches!(accepting.read(&change.encode(), 512).0, Heard::Send(_)));
            assert_eq!(accepting.read(&recorded[2], 512).0, Heard::Unproved(Unproved::Wrong));
        }
    }

    #[test]
    fn cut_messages_are_waited_for_and_nothing_is_read_past_one() {
        for key in [None, secret(9)] {
            let said = talk(connector(key.clone(), 1), acceptor(key.clone(), 2), 512, untouched).messages;
            let (to_acceptor, to_connector): (Vec<_>, Vec<_>) =
                said.iter().enumerate().partition(|(i, _)| i % 2 == 0);
            for beyond in [0, 1, 600] {
                let mut accepting = acceptor(key.clone(), 2);
                let mut connecting = connector(key.clone(), 1);
                for (_, message) in &to_acceptor {
                    let cut = accepting.read(&message[..message.len() - 1], 512);
                    assert_eq!(cut, (Heard::More, message.len() - 1));
                    let rest = [&message[message.len() - 1..], &vec![0x55; beyond][..]].concat();
                    let (heard, read) = accepting.read(&rest, 512);
                    assert!(!matches!(heard, Heard::More) && read == 1, "{heard:?}");
                }
                assert_eq!(accepting.wanted(), 0);
                for (_, message) in &to_connector {
                    let cut = connecting.read(&message[..message.len() - 1], 512);
                    assert_eq!(cut, (Heard::More, message.len() - 1));
                    let rest = [&message[message.len() - 1..], &vec![0x55; beyond][..]].concat();
                    let (heard, read) = connecting.read(&rest, 512);
                    assert!(!matches!(heard, Heard::More) && read == 1, "{heard:?}");
                }
                assert_eq!(connecting.wanted(), 0);
            }
        }
    }

    #[test]
    fn more_than_was_wanted_is_no_peers() {
        let key = secret(9);
        let hello = connector(key.clone(), 1).hello();
        let mut accepting = acceptor(key.clone(), 2);
        assert_eq!(accepting.take(&[&hello[..], &[0; 100]].concat()), Heard::NotAPeer);
        assert_eq!((accepting.wanted(), accepting.take(&[])), (0, Heard::More));
        let mut connecting = connector(key, 1);
        assert_eq!(connecting.take(&[0x93; 600]), Heard::NotAPeer);
        assert_eq!(connecting.wanted(), 0);
    }

    /// Changes a byte, cuts the end, adds more.
    fn spoil(message: &mut Vec<u8>, change: (usize, u8), cut: usize, more: &[u8]) {
        let at = change.0 % message.len();
        message[at] ^= change.1;
        message.truncate(message.len().saturating_sub(cut));
        message.extend_from_slice(more);
    }

    proptest! {
        #[test]
        fn spoilt_words_are_never_believed(
            which in 0..4_usize,
            (change, cut) in ((any::<usize>(), any::<u8>()), 0..200_usize),
            more in proptest::collection::vec(any::<u8>(), 0..600),
            pieces in proptest::collection::vec(1..150_usize, 1..4),
        ) {
            let key = secret(7);
            let said = talk(connector(key.clone(), 1), acceptor(key.clone(), 2), 512, untouched).messages;
            // The acceptor is sent messages 0 and 2, the connector 1 and 3.
            let to_acceptor = which % 2 == 0;
            let mut message = said[which].clone();
            spoil(&mut message, change, cut, &more);
            let is_whole = message.starts_with(&said[which]);
            let (mut accepting, mut connecting) = (acceptor(key.clone(), 2), connector(key.clone(), 1));
            if which >= 2 {
                let before = &said[which - 2];
                if to_acceptor { accepting.read(before, 512) } else { connecting.read(before, 512) };
            }
            // Pieces that may be larger than what is wanted, which a socket never gives.
            let mut rest = &message[..];
            for piece in pieces.iter().cycle() {
                let (now, later) = rest.split_at((*piece).min(rest.len()));
                let heard = if to_acceptor { accepting.take(now) } else { connecting.take(now) };
                let is_proof = which >= 2 && is_whole;
                prop_assert!(is_proof || !matches!(heard, Heard::Peer(_)), "{heard:?}");
                prop_assert!(accepting.wanted() <= 512 && connecting.wanted() <= 512);
                rest = later;
                if rest.is_empty() {
                    break;
                }
            }
            prop_assert!(is_whole || accepting.answer(&answering(&key)).is_empty());
        }

        #[test]
        fn random_words_are_never_believed(
            words in proptest::collection::vec(any::<u8>(), 0..700),
            prefix in 0..3_usize,
            piece in 1..200_usize,
        ) {
            let key = secret(7);
            // Behind a good beginning as well, which gets further.
            let mut accepting = acceptor(key.clone(), 2);
            if prefix > 0 {
                accepting.read(&connector(key.clone(), 1).hello(), 512);
            }
            let (heard, _) = accepting.read(&words, piece);
            prop_assert!(!matches!(heard, Heard::Peer(_)));
            prop_assert!(accepting.answer(&answering(&key)).is_empty());

            let mut connecting = connector(key.clone(), 1);
            if prefix > 0 {
                connecting.read(&Guarded::Challenge([4; NONCE]).encode(), 512);
            }
            let hello = answering(&key).encode();
            let words = if prefix > 1 { [hello, words].concat() } else { words };
            let (heard, _) = connecting.read(&words, piece);
            prop_assert!(!matches!(heard, Heard::Peer(_)));
            // Without a secret: never a panic.
            acceptor(None, 0).read(&words, piece);
            connector(None, 0).read(&words, piece);
        }
    }
}
