//! Bytes of an enemy: no decoder panics, and none takes more memory than 64 times its input and 64 KiB.

use std::fs;
use std::path::Path;

use acked_wire::batch::{BatchBuilder, BatchError, BatchView, Compression, HEADER_SIZE, RecordView, batches};
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
    // Walking batches takes no memory at all, unless a compressed one is opened.
    let used = allocation_counter::measure(|| {
        for batch in batches(input).flatten() {
            let _ = batch.validate_stored();
            if batch.header.compression() == Compression::None {
                let _ = (batch.validate(), batch.validate_stored_records());
            }
        }
    });
    assert_eq!(used.count_total, 0);
    for batch in batches(input).flatten() {
        opened_within_bounds(&batch);
    }
}

/// Most bytes that a batch may open to here.
const INFLATED_MAX: usize = 100_000;
/// What the codecs take for themselves: two blocks of 8 MiB in lz4, a window of 32 KiB in gzip.
const CODEC_MEMORY: u64 = 17 << 20;

fn opened_within_bounds(batch: &BatchView<'_>) {
    let used = allocation_counter::measure(|| {
        if let Ok(open) = batch.open_within(INFLATED_MAX) {
            assert!(open.record_bytes().len() <= INFLATED_MAX.max(batch.bytes.len()));
            let headers = |record: RecordView<'_>| record.headers().count();
            open.records().flatten().map(headers).sum::<usize>();
        }
    });
    let own = if batch.header.compression() == Compression::Lz4 { CODEC_MEMORY } else { 64 << 10 };
    let bound = 3 * INFLATED_MAX as u64 + own;
    assert!(used.bytes_max <= bound, "{:?}: {} bytes of memory", batch.header.compression(), used.bytes_max);
}

/// A batch with these compressed records, whatever they are.
fn batch_of(codec: Compression, stream: &[u8]) -> Vec<u8> {
    let mut builder = BatchBuilder::new(0);
    builder.push(0, None, None, &[]);
    let mut batch = builder.build()[..HEADER_SIZE].to_vec();
    batch[22] = match codec {
        Compression::Gzip => 1,
        Compression::Snappy => 2,
        Compression::Lz4 => 3,
        Compression::Zstd => 4,
        Compression::None | Compression::Unknown => 0,
    };
    batch.extend(stream);
    let length = (batch.len() - 12) as i32;
    batch[8..12].copy_from_slice(&length.to_be_bytes());
    batch
}

/// The compressed records of a batch whose value is `size` bytes of one value.
fn stream(codec: Compression, size: usize) -> Vec<u8> {
    let mut builder = BatchBuilder::new(0).codec(codec.into());
    builder.push(0, Some(b"key"), Some(&vec![b'x'; size]), &[(b"h", None)]);
    builder.build()[HEADER_SIZE..].to_vec()
}

const CODECS: [Compression; 4] =
    [Compression::Gzip, Compression::Snappy, Compression::Lz4, Compression::Zstd];

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

proptest! {
    #[test]
    fn damaged_streams_are_opened_or_refused_within_bounds(
        damages in proptest::collection::vec(damage(), 1..5),
        size in 0usize..3_000,
    ) {
        for codec in CODECS {
            let mut stream = stream(codec, size);
            for damage in &damages {
                damage.to(&mut stream);
            }
            let batch = batch_of(codec, &stream);
            opened_within_bounds(&BatchView::only(&batch).expect("one batch"));
        }
    }

    #[test]
    fn random_streams_are_opened_or_refused_within_bounds(
        bytes in proptest::collection::vec(any::<u8>(), 0..300),
        keep in 0usize..24,
    ) {
        for codec in CODECS {
            // A true beginning, then anything.
            let mut stream = stream(codec, 100);
            stream.truncate(keep);
            stream.extend(&bytes);
            let batch = batch_of(codec, &stream);
            opened_within_bounds(&BatchView::only(&batch).expect("one batch"));
        }
    }
}

#[test]
fn a_stream_that_opens_to_a_thousand_times_its_size_is_refused_within_bounds() {
    for codec in CODECS {
        let batch = batch_of(codec, &stream(codec, 50 << 20));
        let view = BatchView::only(&batch).expect("one batch");
        opened_within_bounds(&view);
        let refused = view.open_within(INFLATED_MAX).map(|_| ());
        assert_eq!(refused, Err(BatchError::TooLarge { max: INFLATED_MAX }), "{codec:?}");
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
