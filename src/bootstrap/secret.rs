//! The shared secret, and proofs that one knows it.

use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::wire::MAC;

/// A shorter secret could be guessed.
const MIN_SECRET: usize = 16;
/// A secret may be any bytes, but nobody's has more.
pub const MAX_SECRET: usize = 4096;

/// Which side of a link proves. Part of what is proved, so that a proof can't be returned to the
/// side that made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Role {
    Connector = 1,
    Acceptor = 2,
}

/// What the ranks of a job know and strangers don't.
#[derive(Clone)]
pub struct Secret(Vec<u8>);

impl Secret {
    pub fn new(bytes: Vec<u8>) -> Secret {
        Secret(bytes)
    }

    /// What makes these bytes no secret, if anything does.
    pub fn problem(&self) -> Option<String> {
        match self.0.len() {
            ..MIN_SECRET => Some(format!("has fewer than {MIN_SECRET} bytes")),
            MIN_SECRET..=MAX_SECRET => None,
            _ => Some(format!("has more than {MAX_SECRET} bytes")),
        }
    }

    #[cfg(test)]
    pub fn is(&self, bytes: &str) -> bool {
        self.0 == bytes.as_bytes()
    }

    /// The proof of all that both sides have said.
    pub fn prove(&self, role: Role, said: &[u8]) -> [u8; MAC] {
        self.mac(role, said).finalize().into_bytes().into()
    }

    /// Whether `proof` is the other side's of the same; takes as long whichever byte is wrong.
    pub fn is_proved(&self, role: Role, said: &[u8], proof: &[u8]) -> bool {
        self.mac(role, said).verify_slice(proof).is_ok()
    }

    fn mac(&self, role: Role, said: &[u8]) -> Hmac<Sha256> {
        let Ok(mac) = Hmac::new_from_slice(&self.0) else {
            unreachable!("a key of HMAC may have any length")
        };
        mac.chain_update([role as u8]).chain_update(said)
    }
}

/// Settings are shown in tests and logs; a secret never is.
impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proof_is_hmac_sha256_of_role_and_words() {
        // Computed apart: printf '\1what both have said' | openssl dgst -sha256 -hmac 0123456789abcdef
        let secret = Secret::new(b"0123456789abcdef".to_vec());
        let proof = secret.prove(Role::Connector, b"what both have said");
        let hex: String = proof.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, "492ba2d9fbec1593694eeb209396890f517e85ec5066f2d1e2886d46b4e1e85f");
        assert!(secret.is_proved(Role::Connector, b"what both have said", &proof));
        assert!(!secret.is_proved(Role::Acceptor, b"what both have said", &proof));
        assert!(!secret.is_proved(Role::Connector, b"what both have saie", &proof));
        assert!(!secret.is_proved(Role::Connector, b"what both have said", &proof[..MAC - 1]));
        assert!(!secret.is_proved(Role::Connector, b"what both have said", &[]));
        assert!(!Secret::new(vec![7; 16]).is_proved(Role::Connector, b"what both have said", &proof));
    }

    #[test]
    fn a_secret_is_not_shown() {
        let shown = format!("{:?}", Secret::new(b"0123456789abcdef".to_vec()));
        assert_eq!(shown, "Secret");
    }
}
