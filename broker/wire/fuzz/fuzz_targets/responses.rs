//! Fuzz target: Responses of every API and version.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| acked_wire_fuzz::responses(input));
