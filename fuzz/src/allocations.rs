//! How much a function allocates: by this, no peer's word may be the size of an allocation.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Counting;

#[global_allocator]
static COUNTING: Counting = Counting;

thread_local! {
    /// Bytes that this thread has asked for in all. Neither set up at run time nor dropped, so that an
    /// allocator may use it.
    static ASKED: Cell<u64> = const { Cell::new(0) };
}

fn count(bytes: usize) {
    ASKED.set(ASKED.get() + bytes as u64);
}

// SAFETY: System does the work; counting neither allocates nor panics.
#[allow(unsafe_code)]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller's promises are System's conditions, here and below.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size);
        // SAFETY: as above.
        unsafe { System.realloc(memory, layout, size) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(memory, layout) }
    }
}

/// Runs a function that may ask for at most `most` bytes, freed ones included.
#[track_caller]
pub fn at_most<T>(most: usize, function: impl FnOnce() -> T) -> T {
    let before = ASKED.get();
    let result = function();
    let asked = ASKED.get() - before;
    assert!(asked <= most as u64, "{asked} bytes were allocated, {most} are the most");
    result
}
