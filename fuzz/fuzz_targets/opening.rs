#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| ring_fuzz::properties::opening(bytes));
