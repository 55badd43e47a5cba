//! Log segments that a real Apache Kafka 4.3.1 wrote hold what its own DumpLogSegments says of them, and
//! every record of its metadata log is encoded again to the same bytes.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use acked_wire::MetadataRecord;
use acked_wire::batch::{BatchBuilder, BatchView, Compression, OpenBatch, RecordView, batches};
use acked_wire::control::ControlRecord;
use bytes::Bytes;

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/disk").join(name)
}

fn all_batches(bytes: &[u8]) -> Vec<BatchView<'_>> {
    let mut walk = batches(bytes);
    let found = (&mut walk).collect::<Result<Vec<_>, _>>().expect("no batch is malformed");
    assert_eq!(walk.incomplete_tail(), 0);
    found
}

fn open<'a>(batch: &BatchView<'a>) -> OpenBatch<'a> {
    batch.open().expect("what Kafka compressed can be opened")
}

fn all_records<'a>(batch: &'a OpenBatch<'_>) -> Vec<RecordView<'a>> {
    batch.records().collect::<Result<_, _>>().expect("no record is malformed")
}

fn batch_codec(batch: &BatchView<'_>) -> &'static str {
    match batch.header.compression() {
        Compression::None => "none",
        Compression::Gzip => "gzip",
        Compression::Snappy => "snappy",
        Compression::Lz4 => "lz4",
        Compression::Zstd => "zstd",
        Compression::Unknown => "unknown",
    }
}

/// The line that DumpLogSegments prints of a batch.
fn batch_line(batch: &BatchView<'_>) -> String {
    let header = &batch.header;
    let codec = batch_codec(batch);
    let horizon = if header.has_delete_horizon() {
        format!("OptionalLong[{}]", header.base_timestamp)
    } else {
        "OptionalLong.empty".to_owned()
    };
    format!(
        "baseOffset: {} lastOffset: {} count: {} baseSequence: {} lastSequence: {} producerId: {} producerEpoch: {} \
         partitionLeaderEpoch: {} isTransactional: {} isControl: {} deleteHorizonMs: {horizon} position: {} {}: {} \
         size: {} magic: {} compresscodec: {codec} crc: {} isvalid: {}",
        header.base_offset,
        header.last_offset(),
        header.record_count,
        header.base_sequence,
        header.last_sequence(),
        header.producer_id,
        header.producer_epoch,
        header.partition_leader_epoch,
        header.is_transactional(),
        header.is_control(),
        batch.position,
        if header.is_log_append_time() { "LogAppendTime" } else { "CreateTime" },
        header.max_timestamp,
        header.size_in_bytes(),
        header.magic,
        header.crc,
        batch.verify_crc(),
    )
}

/// The line that DumpLogSegments prints of a record; its beginning, when it shows key and value decoded.
fn record_line(batch: &BatchView<'_>, index: i32, record: &RecordView<'_>, decoded: bool) -> String {
    let length = |bytes: Option<&[u8]>| bytes.map_or(-1, |bytes| bytes.len() as i64);
    let keys: Vec<_> = record.headers().map(|header| String::from_utf8_lossy(header.key)).collect();
    let sequence = if batch.header.base_sequence < 0 { -1 } else { batch.header.base_sequence + index };
    let said = |name: &str, bytes: Option<&[u8]>| match bytes {
        Some(bytes) if !decoded => format!(" {name}: {}", String::from_utf8_lossy(bytes)),
        _ => String::new(),
    };
    format!(
        "| offset: {} {}: {} keySize: {} valueSize: {} sequence: {sequence} headerKeys: [{}]{}{}",
        record.offset,
        if batch.header.is_log_append_time() { "LogAppendTime" } else { "CreateTime" },
        record.timestamp,
        length(record.key),
        length(record.value),
        keys.join(","),
        said("key", record.key),
        said("payload", record.value),
    )
}

#[test]
fn segments_hold_what_kafka_dumps_of_them() {
    let segments = [
        "codecs-0/00000000000000000000",
        "txn-0/00000000000000000000",
        "txn-0/00000000000000000003",
        "appendtime-0/00000000000000000000",
        "compacted-0/00000000000000000000",
        "compacted-0/00000000000000000072",
        "__consumer_offsets-2/00000000000000000000",
        "__transaction_state-0/00000000000000000000",
        "__transaction_state-2/00000000000000000000",
        "__cluster_metadata-0/00000000000000000000",
    ];
    let mut seen = 0;
    let mut codecs = BTreeSet::new();
    for segment in segments {
        let bytes = fs::read(golden(&format!("{segment}.log"))).expect("a segment");
        let dump = fs::read_to_string(golden(&format!("{segment}.log.dump"))).expect("its dump");
        let (mut batch_lines, mut record_lines) = (Vec::new(), BTreeMap::new());
        for line in dump.lines() {
            if line.starts_with("baseOffset: ") {
                batch_lines.push(line);
            } else if let Some(rest) = line.strip_prefix("| offset: ") {
                let offset: i64 =
                    rest.split(' ').next().and_then(|text| text.parse().ok()).expect("an offset");
                record_lines.insert(offset, line);
            }
        }
        let found = all_batches(&bytes);
        assert_eq!(found.iter().map(batch_line).collect::<Vec<_>>(), batch_lines, "{segment}");
        for batch in found {
            assert_eq!(batch.validate_stored_records(), Ok(()), "{segment}");
            codecs.insert(batch_codec(&batch));
            for (index, record) in all_records(&open(&batch)).iter().enumerate() {
                let expected = record_lines.remove(&record.offset).expect("a record that Kafka sees");
                let decoded = batch.header.is_control() || segment.starts_with("__");
                let line = record_line(&batch, index as i32, record, decoded);
                if decoded {
                    assert!(expected.starts_with(&line), "{segment}:\n{line}\n{expected}");
                } else {
                    assert_eq!(line, expected, "{segment}");
                }
                seen += 1;
            }
        }
        assert_eq!(record_lines, BTreeMap::new(), "{segment}: records that only Kafka sees");
    }
    assert_eq!(codecs, BTreeSet::from(["none", "gzip", "snappy", "lz4", "zstd"]));
    assert_eq!(seen, 462, "only {seen} records were compared");
}

#[test]
fn batches_of_a_producer_are_valid_and_written_again() {
    let bytes = fs::read(golden("codecs-0/00000000000000000000.log")).expect("a segment");
    let mut seen = BTreeSet::new();
    for batch in all_batches(&bytes) {
        assert_eq!(batch.validate(), Ok(()));
        let header = &batch.header;
        let mut builder = BatchBuilder::new(header.base_timestamp)
            .base_offset(header.base_offset)
            .leader_epoch(header.partition_leader_epoch)
            .producer(header.producer_id, header.producer_epoch, header.base_sequence)
            .codec(header.compression().into());
        for record in all_records(&open(&batch)) {
            let headers: Vec<_> = record.headers().map(|header| (header.key, header.value)).collect();
            builder.push(record.timestamp, record.key, record.value, &headers);
        }
        let written = builder.build();
        if header.compression() == Compression::None {
            assert_eq!(written, batch.bytes);
        }
        let written = BatchView::only(&written).expect("one batch");
        assert_eq!(written.validate(), Ok(()));
        // Two implementations of a codec need not write the same bytes, but the same records.
        assert_eq!(open(&written).record_bytes(), open(&batch).record_bytes());
        assert_eq!(written.header.attributes, header.attributes);
        seen.insert(batch_codec(&batch));
    }
    assert_eq!(seen, BTreeSet::from(["none", "gzip", "snappy", "lz4", "zstd"]));
}

/// What DumpLogSegments says of each metadata record: its type, and the version it is written in.
fn dumped_types(name: &str) -> Vec<(String, i16)> {
    let dump = fs::read_to_string(golden(&format!("{name}.dump"))).expect("its dump");
    let payloads = dump.lines().filter_map(|line| line.split_once(" payload: "));
    let json = payloads.map(|(_, json)| serde_json::from_str(json).expect("a payload is JSON"));
    json.map(|json: serde_json::Value| {
        let version = json["version"].as_i64().expect("a version");
        (json["type"].as_str().expect("a type").to_owned(), version as i16)
    })
    .collect()
}

/// `TopicRecord` as `TOPIC_RECORD`.
fn in_capitals(name: &str) -> String {
    let mut out = String::new();
    for letter in name.chars() {
        if letter.is_ascii_uppercase() && !out.is_empty() {
            out.push('_');
        }
        out.push(letter.to_ascii_uppercase());
    }
    out
}

/// Encodes every record of a metadata log again, and returns how many of each type there were.
fn encode_again(name: &str) -> BTreeMap<&'static str, usize> {
    let bytes = fs::read(golden(name)).expect("a log");
    let mut types: BTreeMap<&'static str, usize> = BTreeMap::new();
    let mut dumped = dumped_types(name).into_iter();
    for batch in all_batches(&bytes) {
        assert_eq!(batch.validate(), Ok(()));
        for record in all_records(&open(&batch)) {
            let value = Bytes::copy_from_slice(record.value.expect("a record of this log has a value"));
            let key = record.key.unwrap_or_default();
            if batch.header.is_control() {
                let control = ControlRecord::decode(key, &value).expect("a declared control record");
                assert!(!matches!(control, ControlRecord::Other { .. }), "{control:?}");
                assert_eq!(control.key(), key);
                assert_eq!(control.value().expect("it can be encoded"), value);
                *types.entry("control").or_default() += 1;
            } else {
                let (metadata, version) =
                    MetadataRecord::decode_versioned(&value).expect("a declared record");
                assert_eq!(
                    metadata.encode_version(version).expect("it can be encoded"),
                    value,
                    "{metadata:?}"
                );
                assert_eq!(dumped.next(), Some((in_capitals(metadata.name()), version)));
                *types.entry(metadata.name()).or_default() += 1;
            }
        }
    }
    assert_eq!(dumped.next(), None);
    types
}

#[test]
fn every_record_of_the_metadata_log_is_encoded_to_the_same_bytes() {
    let types = encode_again("__cluster_metadata-0/00000000000000000000.log");
    println!("{types:?}");
    assert_eq!(types.values().sum::<usize>(), 341);
    assert_eq!(types.len(), 14, "13 record types and the control records");
    let types = encode_again("__cluster_metadata-0/bootstrap.checkpoint");
    assert_eq!(types["control"], 2, "head and foot of the snapshot");
}
