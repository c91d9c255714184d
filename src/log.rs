//! The log: lines for a person, handed to a callback or to stderr, off by default.

use std::cell::Cell;
use std::io::{self, Write};
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Mutex, PoisonError};

/// How much a line matters; the numbers are those of ring.h.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(i32)]
#[allow(missing_docs)]
pub enum Level {
    Error = 1,
    Warn = 2,
    Info = 3,
    Debug = 4,
}

impl Level {
    /// The level with this number in ring.h.
    pub fn from_number(number: i32) -> Option<Level> {
        [Level::Error, Level::Warn, Level::Info, Level::Debug].into_iter().find(|l| *l as i32 == number)
    }

    /// The level that `RING_LOG` calls by this name.
    pub fn from_name(name: &str) -> Option<Level> {
        [Level::Error, Level::Warn, Level::Info, Level::Debug].into_iter().find(|l| l.name() == name)
    }

    /// Its name in `RING_LOG` and on stderr.
    pub fn name(self) -> &'static str {
        match self {
            Level::Error => "error",
            Level::Warn => "warn",
            Level::Info => "info",
            Level::Debug => "debug",
        }
    }
}

/// Where lines go.
pub type Sink = Box<dyn Fn(Level, &str) + Send>;

/// The most verbose level that is wanted; 0 while the log is off. Read before a line is made.
static WANTED: AtomicI32 = AtomicI32::new(0);
static SINK: Mutex<Option<Sink>> = Mutex::new(None);

thread_local! {
    /// True while this thread runs the sink.
    static IN_SINK: Cell<bool> = const { Cell::new(false) };
}

/// Sends lines up to `level` to `sink` from now on. When this returns, the former sink isn't
/// running and won't be called again.
pub fn set(sink: Option<(Sink, Level)>) {
    let mut current = SINK.lock().unwrap_or_else(PoisonError::into_inner);
    WANTED.store(sink.as_ref().map_or(0, |(_, level)| *level as i32), Ordering::Relaxed);
    *current = sink.map(|(sink, _)| sink);
}

/// Like [`set`], unless lines go somewhere already.
pub fn set_if_off(sink: Sink, level: Level) {
    let mut current = SINK.lock().unwrap_or_else(PoisonError::into_inner);
    if current.is_none() {
        WANTED.store(level as i32, Ordering::Relaxed);
        *current = Some(sink);
    }
}

/// A sink that writes each line to stderr.
pub fn stderr_sink() -> Sink {
    // eprintln! panics where stderr is closed, and writes a line in pieces that ranks mix up.
    Box::new(|level, line| {
        let line = format!("libring {}: {line}\n", level.name());
        let _ = io::stderr().write_all(line.as_bytes());
    })
}

/// Whether anyone wants lines of this level.
pub fn wants(level: Level) -> bool {
    level as i32 <= WANTED.load(Ordering::Relaxed)
}

/// Whether this thread runs the sink.
pub fn is_writing() -> bool {
    IN_SINK.get()
}

/// Hands a line to the sink. One sink call runs at a time; a line that comes of the sink itself is
/// dropped.
pub fn write(level: Level, line: &str) {
    if IN_SINK.get() {
        return;
    }
    let sink = SINK.lock().unwrap_or_else(PoisonError::into_inner);
    if wants(level)
        && let Some(sink) = sink.as_ref()
    {
        IN_SINK.set(true);
        sink(level, line);
        IN_SINK.set(false);
    }
}

/// Formats and writes a line if its level is wanted.
macro_rules! line {
    ($level:ident, $($text:tt)*) => {
        if $crate::log::wants($crate::log::Level::$level) {
            $crate::log::write($crate::log::Level::$level, &format!($($text)*));
        }
    };
}
pub(crate) use line;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_go_by_number_and_name() {
        for number in 1..=4 {
            let level = Level::from_number(number).unwrap();
            assert_eq!(Level::from_name(level.name()), Some(level));
        }
        assert_eq!(Level::from_number(0), None);
        assert_eq!(Level::from_name("loud"), None);
    }
}
