//! Fuzz target: Batches as a client or a leader sends them.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| acked_wire_fuzz::batches(input));
