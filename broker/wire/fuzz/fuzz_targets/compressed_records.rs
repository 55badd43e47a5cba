//! Fuzz target: Records inside compressed batches.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| acked_wire_fuzz::compressed_records(input));
