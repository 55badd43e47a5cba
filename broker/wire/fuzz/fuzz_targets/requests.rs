//! Fuzz target: Requests of every API and version.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| acked_wire_fuzz::requests(input));
