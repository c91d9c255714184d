//! What holds for each decoder, whatever the bytes.

use ring::bootstrap::config::Address;
use ring::bootstrap::hostfile;
use ring::error::Status;
use ring::wire::{
    CALL_HEADER, CallHeader, Frame, Guarded, Hello, MAX_FRAME, MAX_HELLO, MAX_MESSAGES, Message, NotAHello,
    Opening,
};

use super::allocations::at_most;

/// Small vectors are larger than what is in them.
const SLACK: usize = 64;
/// A record's text is copied, and once more without control characters, into a string that grows by
/// doubling.
const TEXT_COPIES: usize = 5;
/// A short vector of messages has room for as many as there may be.
const MESSAGES: usize = MAX_MESSAGES * size_of::<Message>();
/// An address of a few bytes is kept twice, in tables that grow by doubling.
const PARSED: usize = 64;
/// The form of a hostfile, the places and quotations of an error's text.
const TEXTS: usize = 8192;
/// Bytes of the longest error text.
const ERROR_TEXT: usize = 2000;

/// Bytes arrive in pieces: the first prefix that isn't too short decides, and more bytes change nothing.
/// Returns that prefix's length, and the verdict.
fn judged<T: PartialEq + std::fmt::Debug>(
    bytes: &[u8],
    decode: impl Fn(&[u8]) -> Option<T>,
) -> Option<(usize, T)> {
    let (used, verdict) = (0..=bytes.len()).find_map(|end| Some((end, decode(&bytes[..end])?)))?;
    assert_eq!(decode(bytes).as_ref(), Some(&verdict), "after {used} bytes and after {}", bytes.len());
    Some((used, verdict))
}

/// A message of the handshake, and its bytes; None if there is none or not yet all of it.
fn handshake_message<T: PartialEq + std::fmt::Debug>(
    bytes: &[u8],
    decode: impl Fn(&[u8]) -> Result<Option<T>, NotAHello>,
    wanted: impl Fn(&[u8]) -> usize,
) -> Option<(T, &[u8])> {
    let decode = |bytes: &[u8]| at_most(bytes.len() + SLACK, || decode(bytes)).transpose();
    let Some((used, verdict)) = judged(bytes, decode) else {
        assert!(bytes.len() < MAX_HELLO && wanted(bytes) > 0);
        return None;
    };
    assert!(used <= MAX_HELLO);
    // A reader that takes what is wanted ends where the message does.
    let mut read = 0;
    while read < used && decode(&bytes[..read]).is_none() {
        let wanted = wanted(&bytes[..read]);
        assert!(wanted > 0, "nothing is wanted after {read} bytes of {used}");
        read += wanted;
    }
    let message = verdict.ok()?;
    assert_eq!((read, wanted(&bytes[..used])), (used, 0));
    Some((message, &bytes[..used]))
}

pub fn hello(bytes: &[u8]) {
    if let Some((hello, bytes)) = handshake_message(bytes, Hello::decode, Hello::wanted) {
        assert_eq!(hello.encode(), bytes);
    }
}

/// An acceptor's first message.
pub fn opening(bytes: &[u8]) {
    match handshake_message(bytes, Opening::decode, Opening::wanted) {
        None => {}
        // Whoever reads a hello alone reads the same.
        Some((Opening::Hello(hello), bytes)) => {
            assert_eq!(hello.encode(), bytes);
            assert_eq!(Hello::decode(bytes), Ok(Some(hello)));
        }
        Some((Opening::Guarded(word), bytes)) => {
            let again = word.encode();
            // The versions between are this one's, whatever the sender's.
            assert_eq!((&again[..8], &again[12..]), (&bytes[..8], &bytes[12..]));
            assert_eq!(Opening::decode(&again), Ok(Some(Opening::Guarded(word))));
            assert_eq!(Hello::decode(bytes), Err(NotAHello));
            assert_eq!(matches!(word, Guarded::Challenge(_)), bytes[14] == 0x80);
        }
    }
}

pub fn call_header(bytes: &[u8]) {
    let Some(bytes) = bytes.first_chunk::<CALL_HEADER>() else { return };
    let Some(header) = at_most(0, || CallHeader::decode(bytes)) else { return };
    assert_eq!(header.encode(), *bytes);
    assert!(header.matches(&header));
    let text = header.to_string();
    assert!(!text.is_empty() && !text.contains(char::is_control), "{text:?}");
}

/// A control link: one frame after the other.
pub fn control_frame(mut bytes: &[u8]) {
    let decode = |bytes: &[u8]| {
        at_most(TEXT_COPIES * bytes.len() + MESSAGES + SLACK, || Frame::decode(bytes)).transpose()
    };
    loop {
        let Some((used, verdict)) = judged(bytes, decode) else {
            return assert!(bytes.len() < MAX_FRAME, "{} bytes are not enough", bytes.len());
        };
        let Ok((frame, told)) = verdict else { return };
        assert_eq!(told, used, "a frame is told when its last byte is there");
        assert!(0 < used && used <= MAX_FRAME);
        let again = frame.encode();
        let (second, length) = Frame::decode(&again).unwrap().expect("a frame encodes as a whole one");
        assert_eq!((length, second.encode()), (again.len(), again.clone()));
        assert_eq!((&second, &again[2..4]), (&frame, &bytes[2..4]));
        // Numbers and control characters that no rank would send are replaced by others.
        assert!(again.len() <= used);
        bytes = &bytes[used..];
    }
}

pub fn hostfile(bytes: &[u8]) {
    match at_most(PARSED * bytes.len() + TEXTS, || hostfile::parse(bytes, "hosts")) {
        Ok(entries) => {
            assert!(!entries.is_empty() && entries.iter().all(|entry| !entry.is_empty()));
            // An interface's name may need escapes.
            let text = |address: &Address| address.to_string().replace('\\', r"\\").replace('"', "\\\"");
            let list = |entry: &Vec<Address>| {
                let texts: Vec<_> = entry.iter().map(|address| format!("\"{}\"", text(address))).collect();
                format!("[{}]", texts.join(","))
            };
            let printed: Vec<_> = entries.iter().map(list).collect();
            let printed = format!("[{}]", printed.join(","));
            assert_eq!(hostfile::parse(printed.as_bytes(), "hosts"), Ok(entries), "{printed}");
        }
        Err(error) => {
            assert_eq!(error.status, Status::InvalidConfig);
            let text = error.text;
            assert!(text.starts_with("hosts: ") && text.len() <= ERROR_TEXT, "{text}");
            assert!(!text.contains(char::is_control), "{text:?}");
        }
    }
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(address) = text.parse::<Address>() {
        assert_eq!(address.to_string().parse(), Ok(address));
    }
}
