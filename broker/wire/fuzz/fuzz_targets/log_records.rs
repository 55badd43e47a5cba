//! Fuzz target: Records of the metadata log.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| acked_wire_fuzz::log_records(input));
