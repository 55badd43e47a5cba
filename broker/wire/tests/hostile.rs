//! Bytes of an enemy: no decoder panics, and none takes more memory than 64 times its input and 64 KiB.

use std::fs;
use std::path::Path;

use acked_wire::batch::batches;
use acked_wire::control::{ControlRecord, DefaultPrincipalData};
use acked_wire::{
    ApiKey, MetadataRecord, api, decode_request_body, decode_request_header, decode_response_body,
    decode_response_header,
};
use bytes::Bytes;
use proptest::prelude::*;

/// Runs a decoder and checks the most memory it held at once.
fn bounded<T>(input: &Bytes, what: &str, decode: impl FnOnce(&mut Bytes) -> T) {
    let mut input = input.clone();
    let bound = 64 * input.len() as u64 + 64 * 1024;
    let used = allocation_counter::measure(|| {
        decode(&mut input);
    });
    assert!(
        used.bytes_max <= bound,
        "{what}: {} bytes of memory for {} of input",
        used.bytes_max,
        input.len()
    );
}

fn every_body(input: &Bytes) {
    for (key, versions) in api::DECLARED {
        for version in versions.clone() {
            bounded(input, key.name(), |input| decode_request_body(*key, version, input));
            bounded(input, key.name(), |input| decode_response_body(*key, version, input));
            bounded(input, key.name(), |input| decode_response_header(*key, version, input));
        }
    }
}

fn every_record(input: &Bytes) {
    bounded(input, "metadata record", |input| MetadataRecord::decode(input));
    bounded(input, "principal", |input| DefaultPrincipalData::decode_prefixed(input));
    for kind in 0..8 {
        bounded(input, "control record", |input| ControlRecord::decode(&[0, 0, 0, kind], input));
    }
    // Walking batches takes no memory at all.
    let used = allocation_counter::measure(|| {
        for batch in batches(input).flatten() {
            let _ = (batch.validate(), batch.validate_stored());
        }
    });
    assert_eq!(used.count_total, 0);
}

/// A recorded frame with its key and version, without its length.
#[derive(Clone, Debug)]
struct Frame {
    key: ApiKey,
    version: i16,
    request: bool,
    bytes: Bytes,
}

impl Frame {
    fn decode(&self, bytes: &[u8]) {
        let bytes = Bytes::copy_from_slice(bytes);
        let Frame { key, version, .. } = *self;
        if self.request {
            bounded(&bytes, key.name(), |input| {
                decode_request_header(input).map(|_| decode_request_body(key, version, input))
            });
        } else {
            bounded(&bytes, key.name(), |input| {
                decode_response_header(key, version, input).map(|_| decode_response_body(key, version, input))
            });
        }
    }
}

fn frames() -> Vec<Frame> {
    let digit = |byte: u8| (byte as char).to_digit(16).expect("frames are in hex") as u8;
    let from_hex = |text: &str| {
        text.as_bytes().chunks_exact(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
    };
    let mut frames = Vec::new();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/frames");
    for file in fs::read_dir(folder).expect("golden frames are there") {
        let path = file.expect("the folder is readable").path();
        let text = fs::read_to_string(path).expect("a golden file is text");
        for line in text.lines() {
            let pair: serde_json::Value = serde_json::from_str(line).expect("a line is JSON");
            let number = |field: &str| pair[field].as_i64().expect("a number") as i16;
            for (field, request) in [("request", true), ("response", false)] {
                let Some(hex) = pair[field].as_str() else { continue };
                frames.push(Frame {
                    key: ApiKey::try_from(number("api_key")).expect("a declared key"),
                    version: number("api_version"),
                    request,
                    bytes: from_hex(hex),
                });
            }
        }
    }
    frames.sort_by(|a, b| (a.key, a.version, &a.bytes).cmp(&(b.key, b.version, &b.bytes)));
    frames
}

/// One thing done to a frame.
#[derive(Clone, Debug)]
enum Damage {
    Set {
        at: usize,
        value: u8,
    },
    /// A count or length of almost 2^31, in both encodings.
    Huge {
        at: usize,
        compact: bool,
    },
    Cut {
        at: usize,
    },
    Insert {
        at: usize,
        bytes: Vec<u8>,
    },
}

impl Damage {
    fn to(&self, bytes: &mut Vec<u8>) {
        let place = |at: usize| at % bytes.len().max(1);
        match self {
            _ if bytes.is_empty() => {}
            Damage::Set { at, value } => {
                let at = place(*at);
                bytes[at] = *value;
            }
            Damage::Huge { at, compact } => {
                let huge: &[u8] =
                    if *compact { &[0xff, 0xff, 0xff, 0xff, 0x07] } else { &[0x7f, 0xff, 0xff, 0xf0] };
                let at = place(*at);
                let end = bytes.len().min(at + huge.len());
                bytes.splice(at..end, huge.iter().copied());
            }
            Damage::Cut { at } => bytes.truncate(place(*at)),
            Damage::Insert { at, bytes: more } => {
                let at = place(*at);
                bytes.splice(at..at, more.iter().copied());
            }
        }
    }
}

fn damage() -> impl Strategy<Value = Damage> {
    prop_oneof![
        (any::<usize>(), any::<u8>()).prop_map(|(at, value)| Damage::Set { at, value }),
        (any::<usize>(), any::<bool>()).prop_map(|(at, compact)| Damage::Huge { at, compact }),
        any::<usize>().prop_map(|at| Damage::Cut { at }),
        (any::<usize>(), proptest::collection::vec(any::<u8>(), 1..9))
            .prop_map(|(at, bytes)| Damage::Insert { at, bytes }),
    ]
}

proptest! {
    #[test]
    fn random_bytes_are_decoded_or_refused_within_bounds(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let bytes = Bytes::from(bytes);
        bounded(&bytes, "request header", decode_request_header);
        every_body(&bytes);
        every_record(&bytes);
    }

    #[test]
    fn small_numbers_are_decoded_or_refused_within_bounds(bytes in proptest::collection::vec(0u8..4, 0..400)) {
        // Small counts and lengths lead deeper into the declarations than random bytes do.
        let bytes = Bytes::from(bytes);
        every_body(&bytes);
        every_record(&bytes);
    }

    #[test]
    fn damaged_frames_are_decoded_or_refused_within_bounds(
        damages in proptest::collection::vec(damage(), 1..4),
        start: usize,
    ) {
        thread_local!(static FRAMES: Vec<Frame> = frames());
        FRAMES.with(|frames| {
            for frame in frames.iter().cycle().skip(start % frames.len()).take(40) {
                let mut bytes = frame.bytes.to_vec();
                for damage in &damages {
                    damage.to(&mut bytes);
                }
                frame.decode(&bytes);
            }
        });
    }
}

#[test]
fn the_greatest_believable_counts_stay_within_bounds() {
    // An array that fills the rest of the frame with its smallest elements, at every place it can be.
    for length in [10usize, 100, 1_000, 20_000] {
        for filler in [0u8, 1, 2] {
            for lead in 0..24 {
                let mut bytes = vec![filler; length];
                let count = (length / 3) as u32;
                let compact = [count as u8 | 0x80, (count >> 7) as u8 | 0x80, (count >> 14) as u8];
                if let Some(place) = bytes.get_mut(lead..lead + 3) {
                    place.copy_from_slice(&compact);
                }
                every_body(&Bytes::from(bytes));
            }
        }
    }
}
