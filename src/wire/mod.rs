//! Every byte layout that crosses a native link, without I/O: a handshake of [`Hello`]s opens a link,
//! [`CallHeader`] opens a call on a lane or a message link, a [`Frame`] is what a control link
//! carries.
//!
//! Numbers of hellos and frames are little-endian. A call header and the data behind it are in the
//! sender's own order, which the handshake has compared.
//!
//! | hello: offset | bytes | |
//! | --- | --- | --- |
//! | 0 | 8 | magic |
//! | 8 | 2, 2 | lowest and highest protocol version |
//! | 12 | 2 | bytes of the whole hello |
//! | 14 | 1 | link kind |
//! | 15 | 1 | byte order of data: 1 little, 2 big |
//! | 16 | 1 | answer (0 in the connector's hello); of one to a group that isn't known here the rest counts for nothing |
//! | 17 | 1 | bytes of the job id |
//! | 18 | 2, 2 | lane, number of lanes |
//! | 22 | 2 | reserved, 0 |
//! | 24 | 4, 4, 4 | ring size, own rank, the other's rank |
//! | 36 | 4 | flags: bit 0, the sender keeps sums of 16-bit floats in f32; bit 31, it has a shared secret |
//! | 40 | 16 | group id; 0 on the links that form a group out of processes |
//! | 56 | 16 | nonce, fresh at each create |
//! | 72 | 0 to 255 | job id |
//!
//! Where neither side has a secret a handshake is the connector's hello and the acceptor's. Otherwise the
//! acceptor reveals nothing of itself before the connector has proved that it knows the secret, and the
//! connector believes nothing before the acceptor has:
//!
//! | | from | message | bytes |
//! | --- | --- | --- | --- |
//! | 1 | connector | its hello | 72 to 327 |
//! | 2 | acceptor | a challenge: a nonce that is fresh for each connection | 32 |
//! | 3 | connector | a nonce, as fresh; HMAC(secret, 1, messages 1 and 2, this nonce) | 16 + 32 |
//! | 4 | acceptor | its hello, with the answer; HMAC(secret, 2, messages 1 to 3, this hello) | 72 to 327, + 32 |
//!
//! HMAC is HMAC-SHA256; the 1 and the 2 are the roles, one byte. Each proof covers every byte that both have said
//! before it, so what the link is for as well: a proof is good for one link alone, on one connection. Where
//! only one side has a secret message 2 ends the handshake: a challenge to a connector that has none, or the
//! word that the acceptor has none. A wrong proof is refused in place of message 4.
//!
//! | challenge, no secret, refused: offset | bytes | |
//! | --- | --- | --- |
//! | 0 | 8 | magic |
//! | 8 | 2, 2 | lowest and highest protocol version |
//! | 12 | 2 | bytes of the message, 32 |
//! | 14 | 1 | 0x80 challenge, 0x81 the acceptor has no secret, 0x82 the proof is refused |
//! | 15 | 1 | reserved, 0 |
//! | 16 | 16 | the challenge's nonce; 0 in the others |
//!
//! | call header: offset | bytes | |
//! | --- | --- | --- |
//! | 0 | 4 | magic |
//! | 4 | 1, 1, 1, 1 | collective, algorithm, dtype, op |
//! | 8 | 8 | sequence |
//! | 16 | 8 | count |
//! | 24 | 8 | digest of the counts array, 0 where there is none; in an all_to_all_v the count of the block that comes back |
//! | 32 | 4 | root, -1 where there is none; in a custom reduction the bytes of an element |
//! | 36 | 4 | status of the last refused call |
//! | 40 | 8 | sequence of the last refused call, 0 if there was none |
//!
//! A control frame begins with its length (2 bytes), its kind (1) and a reserved byte, 0; the rest is
//! the kind's own: see `control.rs` and, for what is told while the ring forms, `gossip.rs` and, at a
//! rendezvous, `meeting.rs`.

mod call;
mod control;
mod gossip;
mod hello;
mod meeting;
mod opening;

pub use call::{CALL_HEADER, CallHeader, Kind, Refused, digest};
pub use control::{
    EVERYBODY, Frame, MAX_FRAME, MAX_MESSAGES, Message, NotAFrame, Presence, Traffic, Unreached,
};
pub use gossip::{Member, child_id, group_id};
pub use hello::{
    Answer, HAS_SECRET, HELLO_MAGIC, Hello, IS_WIDE, LinkKind, MAX_HELLO, MAX_JOB_ID, NotAHello,
    begins_native,
};
pub use meeting::{MAX_ABSENT, MAX_PLACES, Meeting, Place};
pub use opening::{Guarded, MAC, NONCE, Opening, PROOF};

/// The protocol's version: the rules of what goes where, in which order, in which bytes.
pub const VERSION: u16 = 1;

fn array_at<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    std::array::from_fn(|i| bytes[at + i])
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(array_at(bytes, at))
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(array_at(bytes, at))
}
