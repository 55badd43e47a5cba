//! What must hold of every decoder, whatever bytes it is given: no panic, memory of at most 64 times the input and
//! 64 KiB, and what was decoded is encoded to bytes that decode to the same again.
//!
//! One function a fuzz target. The first bytes of an input choose what the others are decoded as.

use acked_wire::batch::{self, BatchView, HEADER_SIZE, RecordView, parse_header, patch_create_time};
use acked_wire::control::{ControlRecord, DefaultPrincipalData};
use acked_wire::{
    ApiKey, MetadataRecord, api, decode_request_body, decode_request_header, decode_response_body,
    decode_response_header,
};
use bytes::{Bytes, BytesMut};

/// Runs a decoder and checks the most memory it held at once.
fn bounded<T>(input: &Bytes, decode: impl FnOnce(&mut Bytes) -> T) -> T {
    let mut rest = input.clone();
    let mut decoded = None;
    let used = allocation_counter::measure(|| decoded = Some(decode(&mut rest)));
    let bound = 64 * input.len() as u64 + 64 * 1024;
    assert!(used.bytes_max <= bound, "{} bytes of memory for {} of input", used.bytes_max, input.len());
    decoded.expect("it ran")
}

/// One of the declared APIs and versions, and what follows the two bytes that choose them.
fn chosen(input: &[u8]) -> Option<(ApiKey, i16, Bytes)> {
    let ([api, version], rest) = input.split_first_chunk()?;
    let (key, versions) = &api::DECLARED[usize::from(*api) % api::DECLARED.len()];
    let count = versions.end() - versions.start() + 1;
    Some((*key, versions.start() + i16::from(*version) % count, Bytes::copy_from_slice(rest)))
}

pub fn requests(input: &[u8]) {
    let _ = bounded(&Bytes::copy_from_slice(input), decode_request_header);
    let Some((key, version, input)) = chosen(input) else { return };
    let Ok(body) = bounded(&input, |input| decode_request_body(key, version, input)) else { return };
    let mut again = BytesMut::new();
    body.encode(version, &mut again).expect("what was decoded can be encoded");
    // Compared as bytes: a number that is none is not equal to itself.
    let decoded = decode_request_body(key, version, &mut again.clone().freeze());
    let mut twice = BytesMut::new();
    decoded.expect("what was encoded is decoded").encode(version, &mut twice).expect("as before");
    assert_eq!(twice, again, "{key:?} version {version}");
}

pub fn responses(input: &[u8]) {
    let Some((key, version, input)) = chosen(input) else { return };
    let _ = bounded(&input, |input| decode_response_header(key, version, input));
    let Ok(body) = bounded(&input, |input| decode_response_body(key, version, input)) else { return };
    let mut again = BytesMut::new();
    body.encode(version, &mut again).expect("what was decoded can be encoded");
    let decoded = decode_response_body(key, version, &mut again.clone().freeze());
    let mut twice = BytesMut::new();
    decoded.expect("what was encoded is decoded").encode(version, &mut twice).expect("as before");
    assert_eq!(twice, again, "{key:?} version {version}");
}

/// Most bytes that a batch may open to here.
const INFLATED_MAX: usize = 1 << 20;
/// What opening may hold: three times the result, and what a codec takes for itself.
const OPEN_MEMORY_MAX: u64 = 3 * INFLATED_MAX as u64 + (17 << 20);

fn open(batch: &BatchView<'_>) {
    let used = allocation_counter::measure(|| {
        let Ok(open) = batch.open_within(INFLATED_MAX) else { return };
        let headers = |record: RecordView<'_>| record.headers().count();
        open.records().flatten().map(headers).sum::<usize>();
    });
    assert!(used.bytes_max <= OPEN_MEMORY_MAX, "{} bytes of memory", used.bytes_max);
}

/// A range of batches, as it is and with its checksums made right: else nothing behind them is ever reached.
pub fn batches(input: &[u8]) {
    walk(input);
    walk(&with_checksums(input));
}

fn walk(input: &[u8]) {
    let mut walk = batch::batches(input);
    for batch in walk.by_ref().flatten() {
        let _ = batch.validate_stored();
        let verdict = batch.validate();
        if verdict.is_ok() {
            let open = batch.open().expect("a valid batch can be opened");
            let records = open.records().map(|record| record.expect("a valid batch has only good records"));
            let offsets: Vec<i32> = records.map(|record| record.offset_delta).collect();
            assert!(offsets.iter().copied().eq(0..=batch.header.last_offset_delta));
        }
        open(&batch);
    }
    assert_eq!(walk.position() + walk.incomplete_tail(), input.len());
}

fn with_checksums(input: &[u8]) -> Vec<u8> {
    let mut bytes = input.to_vec();
    let mut position = 0;
    while let Ok(header) = parse_header(&bytes[position..]) {
        let Some(end) = position.checked_add(header.size_in_bytes()).filter(|end| *end <= bytes.len()) else {
            break;
        };
        patch_create_time(&mut bytes[position..end], header.max_timestamp);
        position = end;
    }
    bytes
}

pub fn log_records(input: &[u8]) {
    let input = Bytes::copy_from_slice(input);
    if let Ok((record, version)) = bounded(&input, |input| MetadataRecord::decode_versioned(input)) {
        let again = record.encode_version(version).expect("what was decoded can be encoded");
        let (decoded, _) = MetadataRecord::decode_versioned(&again).expect("what was encoded is decoded");
        assert_eq!(decoded.encode_version(version), Ok(again));
    }
    let _ = bounded(&input, |input| DefaultPrincipalData::decode_prefixed(input));
    for kind in 0..8 {
        let record = bounded(&input, |input| ControlRecord::decode(&[0, 0, 0, kind], input));
        if let Ok(record) = record {
            let again = record.value().expect("what was decoded can be encoded");
            assert_eq!(ControlRecord::decode(&record.key(), &again), Ok(record));
        }
    }
}

/// The first byte is the codec, the rest its stream.
pub fn compressed_records(input: &[u8]) {
    let Some((codec, stream)) = input.split_first() else { return };
    let mut batch = vec![0; HEADER_SIZE];
    batch[8..12].copy_from_slice(&((HEADER_SIZE - 12 + stream.len()) as i32).to_be_bytes());
    batch[16] = 2;
    batch[22] = codec % 8;
    batch[57..61].copy_from_slice(&i32::MAX.to_be_bytes());
    batch.extend(stream);
    open(&BatchView::only(&batch).expect("the length is right"));
}
