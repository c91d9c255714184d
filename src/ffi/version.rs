//! The library's version.

use std::ffi::{CStr, c_char};

/// As build.rs writes it into the header's RING_VERSION.
const fn part(text: &str) -> u32 {
    let bytes = text.as_bytes();
    let (mut number, mut i) = (0, 0);
    while i < bytes.len() {
        number = number * 10 + (bytes[i] - b'0') as u32;
        i += 1;
    }
    number
}

const VERSION: u32 = (part(env!("CARGO_PKG_VERSION_MAJOR")) << 16)
    | (part(env!("CARGO_PKG_VERSION_MINOR")) << 8)
    | part(env!("CARGO_PKG_VERSION_PATCH"));

const VERSION_TEXT: &CStr =
    match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
        Ok(text) => text,
        Err(_) => c"",
    };

/// The ABI that ring.h describes; build.rs writes the same number into the header.
pub(super) const ABI_VERSION: u32 = 1;

/// The version of the library that is loaded, as RING_VERSION gives that of the header:
/// (major << 16) | (minor << 8) | patch. Never blocks, never fails.
#[unsafe(no_mangle)]
pub extern "C" fn ring_version() -> u32 {
    VERSION
}

/// The version of the library that is loaded as text, such as "0.1.0". The text is static. Never blocks, never
/// fails.
#[unsafe(no_mangle)]
pub extern "C" fn ring_version_string() -> *const c_char {
    VERSION_TEXT.as_ptr()
}

/// The ABI of the library that is loaded: RING_ABI_VERSION of the header it was built with. Never blocks, never
/// fails.
#[unsafe(no_mangle)]
pub extern "C" fn ring_abi_version() -> u32 {
    ABI_VERSION
}
