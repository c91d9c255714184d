//! What went wrong: a status from ring.h, the rank at fault, and a text for a person.

use std::ffi::CStr;
use std::io;

/// Status, its number, its name in ring.h and its sentence, in one table.
macro_rules! statuses {
    ($($variant:ident = $number:literal, $name:literal, $sentence:literal;)*) => {
        /// What a call returns. The numbers are those of ring.h.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(i32)]
        #[allow(missing_docs)]
        pub enum Status { $($variant = $number,)* }

        impl Status {
            /// Every status, by number.
            pub const ALL: &[Status] = &[$(Status::$variant,)*];

            /// The status with this number in ring.h.
            pub fn from_number(number: i32) -> Option<Status> {
                match number { $($number => Some(Status::$variant),)* _ => None }
            }

            /// The name of its constant in ring.h, NUL-terminated for C.
            pub fn c_name(self) -> &'static CStr {
                match self { $(Status::$variant => $name,)* }
            }

            /// The name of its constant in ring.h.
            pub fn name(self) -> &'static str {
                self.c_name().to_str().unwrap_or("")
            }

            /// One sentence for a person, NUL-terminated for C.
            pub fn sentence(self) -> &'static CStr {
                match self { $(Status::$variant => $sentence,)* }
            }
        }
    };
}

statuses! {
    Ok = 0, c"RING_STATUS_OK", c"The call succeeded.";
    InvalidArgument = 1, c"RING_STATUS_INVALID_ARGUMENT", c"An argument is not one that the function takes.";
    InvalidState = 2, c"RING_STATUS_INVALID_STATE", c"The function may not be called here or now.";
    Unsupported = 3, c"RING_STATUS_UNSUPPORTED", c"This build or this pair of type and operation cannot do that.";
    InvalidConfig = 4, c"RING_STATUS_INVALID_CONFIG", c"The configuration is incomplete or wrong.";
    ConnectFailed = 5, c"RING_STATUS_CONNECT_FAILED", c"The ring could not be formed.";
    AuthFailed = 6, c"RING_STATUS_AUTH_FAILED", c"A peer did not prove that it knows the shared secret.";
    Mismatch = 7, c"RING_STATUS_MISMATCH", c"Ranks made calls that do not match.";
    PeerLost = 8, c"RING_STATUS_PEER_LOST", c"A peer has died, left, or cannot be reached any more.";
    Timeout = 9, c"RING_STATUS_TIMEOUT", c"A call made no progress for as long as its timeout allows.";
    Aborted = 10, c"RING_STATUS_ABORTED", c"The group was aborted or destroyed while the call ran.";
    System = 11, c"RING_STATUS_SYSTEM", c"This host refused something that the library needs.";
    OutOfMemory = 12, c"RING_STATUS_OUT_OF_MEMORY", c"Memory could not be allocated.";
    Internal = 13, c"RING_STATUS_INTERNAL", c"The library has a fault of its own.";
    Pending = 14, c"RING_STATUS_PENDING", c"The operation is still running.";
}

/// A failed call: what ring.h reports through its status, its texts and `ring_failure_t`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct Error {
    /// What the call returns.
    pub status: Status,
    /// One line for a person: the operation, the peer, the OS error in words, the first cause.
    pub text: String,
    /// The rank at fault, where one is known.
    pub rank: Option<usize>,
    /// The rank that saw it first, where known.
    pub detected_by: Option<usize>,
    /// errno, 0 if none.
    pub os_error: i32,
    /// Number of the collective, or of the message in its pair; 0 between calls.
    pub sequence: u64,
}

/// What fallible functions of this crate return.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// An error that so far is only a status and a text, which is made one line: it may quote a path
    /// or a setting that holds anything.
    pub fn new(status: Status, text: impl Into<String>) -> Error {
        let text = text.into().replace(char::is_control, " ");
        Error { status, text, rank: None, detected_by: None, os_error: 0, sequence: 0 }
    }

    /// What this host refused, which isn't about a peer: such as descriptors or threads.
    pub fn system(what: &str, error: &io::Error) -> Error {
        Error::new(Status::System, format!("{what}: {}", os_words(error))).with_os(error)
    }

    /// Names the rank at fault.
    pub fn at_rank(mut self, rank: usize) -> Error {
        self.rank = Some(rank);
        self
    }

    /// Keeps the OS error's number beside the text.
    pub fn with_os(mut self, error: &io::Error) -> Error {
        self.os_error = error.raw_os_error().unwrap_or(0);
        self
    }
}

/// The OS error in words, without std's "(os error 111)".
pub fn os_words(error: &io::Error) -> String {
    let text = error.to_string();
    match text.find(" (os error ") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_whole() {
        for (number, &status) in Status::ALL.iter().enumerate() {
            assert_eq!(status as i32, number as i32);
            assert_eq!(Status::from_number(number as i32), Some(status));
            assert!(status.sentence().to_bytes().ends_with(b"."));
        }
        assert_eq!(Status::Timeout.name(), "RING_STATUS_TIMEOUT");
        assert_eq!(Status::from_number(15), None);
    }

    #[test]
    fn a_text_is_one_line() {
        assert_eq!(Error::new(Status::System, "a\nb\tc").text, "a b c");
    }

    #[test]
    fn os_errors_are_words() {
        let refused = io::Error::from_raw_os_error(libc::ECONNREFUSED);
        assert_eq!(os_words(&refused), "Connection refused");
    }
}
