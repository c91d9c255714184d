//! What an acceptor says first: its hello, or, where a secret is in play, no more than may be known to
//! a connector that hasn't proved itself.

use super::hello::HELLO_MAGIC;
use super::{Hello, NotAHello, VERSION, array_at, u16_at};

/// Bytes of a nonce, and of a proof (HMAC-SHA256).
pub const NONCE: usize = 16;
pub const MAC: usize = 32;
/// What the connector answers to a challenge: a nonce of its own, and its proof.
pub const PROOF: usize = NONCE + MAC;

/// Bytes of a [`Guarded`].
const GUARDED: usize = 32;
/// Bytes from which it is known whether a hello or a [`Guarded`] has begun.
const HEAD: usize = 16;
/// Where a hello has its link's kind.
const KIND: usize = 14;

/// Kinds, beside those of links.
const CHALLENGE: u8 = 0x80;
const NO_SECRET: u8 = 0x81;
const REFUSED: u8 = 0x82;

/// An acceptor's word that reveals nothing of it but the protocol and a nonce.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guarded {
    /// Prove that you know the secret.
    Challenge([u8; NONCE]),
    /// The connector has a secret, and the acceptor has none.
    NoSecret,
    /// The proof is wrong.
    Refused,
}

impl Guarded {
    pub fn encode(&self) -> Vec<u8> {
        let (kind, nonce) = match self {
            Guarded::Challenge(nonce) => (CHALLENGE, *nonce),
            Guarded::NoSecret => (NO_SECRET, [0; NONCE]),
            Guarded::Refused => (REFUSED, [0; NONCE]),
        };
        let mut out = Vec::with_capacity(GUARDED);
        out.extend_from_slice(&HELLO_MAGIC);
        for number in [VERSION, VERSION, GUARDED as u16] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        out.extend_from_slice(&[kind, 0]);
        out.extend_from_slice(&nonce);
        out
    }

    /// Of bytes that have a kind behind the magic.
    fn decode(bytes: &[u8]) -> Result<Option<Guarded>, NotAHello> {
        let kind = bytes[KIND];
        // A challenge has its nonce behind the reserved byte, the others nothing.
        let zeros = if kind == CHALLENGE { KIND + 1..HEAD } else { KIND + 1..GUARDED };
        let is_guarded = usize::from(u16_at(bytes, 12)) == GUARDED
            && (CHALLENGE..=REFUSED).contains(&kind)
            && zeros.into_iter().all(|at| bytes.get(at).is_none_or(|byte| *byte == 0));
        if !is_guarded {
            return Err(NotAHello);
        }
        if bytes.len() < GUARDED {
            return Ok(None);
        }
        Ok(Some(match kind {
            CHALLENGE => Guarded::Challenge(array_at(bytes, HEAD)),
            NO_SECRET => Guarded::NoSecret,
            _ => Guarded::Refused,
        }))
    }
}

/// An acceptor's message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Opening {
    Hello(Hello),
    Guarded(Guarded),
}

impl Opening {
    /// How many bytes to read next, after these: never past the message's end.
    pub fn wanted(bytes: &[u8]) -> usize {
        match bytes.get(KIND) {
            _ if bytes.len() < HEAD => HEAD - bytes.len(),
            Some(CHALLENGE..) => GUARDED.saturating_sub(bytes.len()),
            _ => Hello::wanted(bytes),
        }
    }

    /// Reads a message from the first bytes of a stream; None while more are needed. A wrong byte is
    /// told as soon as it is there.
    pub fn decode(bytes: &[u8]) -> Result<Option<Opening>, NotAHello> {
        match bytes.get(KIND) {
            Some(CHALLENGE..) if bytes.starts_with(&HELLO_MAGIC) => {
                Ok(Guarded::decode(bytes)?.map(Opening::Guarded))
            }
            _ => Ok(Hello::decode(bytes)?.map(Opening::Hello)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn guarded_words_go_both_ways_in_pieces() {
        for word in [Guarded::Challenge([7; NONCE]), Guarded::NoSecret, Guarded::Refused] {
            let bytes = word.encode();
            assert_eq!(bytes.len(), GUARDED);
            for cut in 0..bytes.len() {
                assert_eq!(Opening::decode(&bytes[..cut]), Ok(None));
                let wanted = Opening::wanted(&bytes[..cut]);
                assert!(wanted > 0 && cut + wanted <= bytes.len());
            }
            assert_eq!(Opening::wanted(&bytes), 0);
            assert_eq!(Opening::decode(&bytes), Ok(Some(Opening::Guarded(word))));
            let of_challenge = [(0, 0), (12, 33), (14, 0x83), (14, 0xff), (15, 1)];
            let of_others = [(16, 1), (31, 1)];
            let others = if matches!(word, Guarded::Challenge(_)) { &[][..] } else { &of_others };
            for (at, wrong) in of_challenge.iter().chain(others) {
                let mut bytes = bytes.clone();
                bytes[*at] = *wrong;
                // The length is told with the kind.
                assert_eq!(Opening::decode(&bytes[..(*at).max(14) + 1]), Err(NotAHello), "byte {at}");
                assert_eq!(Opening::decode(&bytes), Err(NotAHello), "byte {at}");
            }
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_decoder_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            let _ = (Opening::decode(&bytes), Opening::wanted(&bytes));
            let magic = bytes.len().min(8);
            bytes[..magic].copy_from_slice(&HELLO_MAGIC[..magic]);
            let _ = (Opening::decode(&bytes), Opening::wanted(&bytes));
        }
    }
}
