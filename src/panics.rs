//! Panics are faults of the library's own: they stop at the boundary, go to the log, and don't print.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind, resume_unwind, set_hook, take_hook};
use std::sync::Once;

use crate::log;

thread_local! {
    /// How many [`caught`] this thread is in.
    static INSIDE: Cell<u32> = const { Cell::new(0) };
    /// What the panic that is being caught said.
    static TEXT: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Runs `body`; a panic in it goes to the log, and its text, one line, is the error.
pub fn caught<T>(body: impl FnOnce() -> T) -> Result<T, String> {
    install_hook();
    INSIDE.set(INSIDE.get() + 1);
    let result = catch_unwind(AssertUnwindSafe(body));
    INSIDE.set(INSIDE.get() - 1);
    result.map_err(|_| {
        let text = TEXT.try_with(RefCell::take).unwrap_or_default();
        log::line!(Error, "a fault of the library's own: {text}");
        text
    })
}

/// What a thread of the library runs: a panic in it is for whoever joins the thread.
pub fn passed_on<T>(body: impl FnOnce() -> T) -> T {
    caught(body).unwrap_or_else(|text| resume_unwind(Box::new(text)))
}

/// The standard hook prints, and nothing may print: panics inside [`caught`] only leave their
/// text. Others, of a Rust program that links this crate, go the way they went before.
fn install_hook() {
    static INSTALL: Once = Once::new();
    INSTALL.call_once(|| {
        let before = take_hook();
        set_hook(Box::new(move |info| match INSIDE.get() {
            0 => before(info),
            // Where a thread is so near its end that its locals are gone, the text is lost.
            _ => drop(TEXT.try_with(|text| text.replace(line(info)))),
        }));
    });
}

fn line(info: &PanicHookInfo<'_>) -> String {
    let text = info.payload_as_str().unwrap_or("a panic");
    let text = text.lines().map(str::trim).collect::<Vec<_>>().join("; ");
    match info.location() {
        Some(place) => format!("{text} ({}:{})", place.file(), place.line()),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_one_line() {
        assert_eq!(caught(|| 5), Ok(5));
        let text = caught(|| assert_eq!(1, 2, "not\nequal")).unwrap_err();
        assert!(text.contains("not; equal; left: 1; right: 2 (src/panics.rs:"), "{text}");
        let nested = caught(|| caught(|| panic!("inner")).is_err() && caught(|| panic!("{}", 7)).is_err());
        assert_eq!(nested, Ok(true));
    }

    #[test]
    fn a_panic_reaches_whoever_joins() {
        let thread = std::thread::spawn(|| passed_on(|| panic!("on a thread")));
        let payload = thread.join().unwrap_err();
        assert!(payload.downcast_ref::<String>().unwrap().starts_with("on a thread ("));
    }
}
