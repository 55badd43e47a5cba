//! A short look without a fuzzing engine, on a stable compiler: golden frames and segments, and many damaged copies of
//! them, go through every target.

use std::fs;
use std::path::{Path, PathBuf};

use acked_wire::{ApiKey, api};

/// Damaged copies of each input.
const COPIES: u64 = 40;

/// Numbers that look random and are the same at every run (`SplitMix64`).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }
}

fn damaged(input: &[u8], numbers: &mut Numbers) -> Vec<u8> {
    let mut bytes = input.to_vec();
    for _ in 0..=numbers.below(3) {
        if bytes.is_empty() {
            break;
        }
        let at = numbers.below(bytes.len());
        match numbers.below(4) {
            0 => bytes[at] = numbers.next() as u8,
            1 => bytes[at] ^= 1 << numbers.below(8),
            2 => bytes.truncate(at),
            _ => {
                let huge: &[u8] = &[0xff, 0xff, 0xff, 0xff, 0x07];
                let end = bytes.len().min(at + huge.len());
                bytes.splice(at..end, huge.iter().copied());
            }
        }
    }
    bytes
}

fn through(target: fn(&[u8]), input: &[u8], numbers: &mut Numbers) {
    target(input);
    for _ in 0..COPIES {
        target(&damaged(input, numbers));
    }
}

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/golden").join(name)
}

/// Files below a folder, in the order of their names.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found: Vec<_> = fs::read_dir(folder)
        .expect("golden data is there")
        .map(|entry| entry.expect("readable").path())
        .collect();
    found.sort();
    found.into_iter().flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

fn from_hex(text: &str) -> Vec<u8> {
    let digit = |byte: u8| (byte as char).to_digit(16).expect("frames are in hex") as u8;
    text.as_bytes().chunks_exact(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
}

/// The body of a golden frame behind the two bytes that choose its API and version.
fn choosing(key: ApiKey, version: i16, body: &[u8]) -> Option<Vec<u8>> {
    let index =
        api::DECLARED.iter().position(|(other, versions)| *other == key && versions.contains(&version))?;
    let first = api::DECLARED[index].1.start();
    Some([&[index as u8, (version - first) as u8], body].concat())
}

#[test]
fn golden_frames_and_damaged_copies_keep_what_must_hold() {
    let mut numbers = Numbers(1);
    let mut seen = 0;
    for file in files(&golden("frames")) {
        for line in fs::read_to_string(file).expect("a golden file is text").lines() {
            let pair: serde_json::Value = serde_json::from_str(line).expect("a line is JSON");
            let number = |field: &str| pair[field].as_i64().expect("a number") as i16;
            let key = ApiKey::try_from(number("api_key")).expect("a declared key");
            let version = number("api_version");
            let mut request = from_hex(pair["request"].as_str().expect("a request")).into();
            acked_wire::decode_request_header(&mut request).expect("a golden header");
            let Some(request) = choosing(key, version, &request) else { continue };
            through(acked_wire_fuzz::requests, &request, &mut numbers);
            let Some(response) = pair["response"].as_str() else { continue };
            let mut response = from_hex(response).into();
            acked_wire::decode_response_header(key, version, &mut response).expect("a golden header");
            let response = choosing(key, version, &response).expect("chosen above");
            through(acked_wire_fuzz::responses, &response, &mut numbers);
            seen += 1;
        }
    }
    assert!(seen > 300, "only {seen} pairs");
}

#[test]
fn golden_segments_and_damaged_copies_keep_what_must_hold() {
    let mut numbers = Numbers(2);
    let mut seen = 0;
    for file in files(&golden("disk")).iter().filter(|file| file.extension().is_some_and(|end| end == "log"))
    {
        let bytes = fs::read(file).expect("a golden file");
        through(acked_wire_fuzz::batches, &bytes, &mut numbers);
        for batch in acked_wire::batch::batches(&bytes).flatten() {
            let codec = batch.bytes[22] & 7;
            let stream = [&[codec], &batch.bytes[61..]].concat();
            through(acked_wire_fuzz::compressed_records, &stream, &mut numbers);
            let open = batch.open().expect("what Kafka wrote can be opened");
            for record in open.records() {
                let record = record.expect("what Kafka wrote is well formed");
                through(acked_wire_fuzz::log_records, record.value.unwrap_or_default(), &mut numbers);
                seen += 1;
            }
        }
    }
    assert!(seen > 400, "only {seen} records");
}
