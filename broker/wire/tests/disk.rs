//! Log segments that a real Apache Kafka 4.3.1 wrote hold what its own DumpLogSegments says of them, and
//! every record of its metadata log is encoded again to the same bytes.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use acked_wire::MetadataRecord;
use acked_wire::batch::{BatchBuilder, BatchError, BatchView, Compression, RecordView, batches};
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

fn all_records<'a>(batch: &BatchView<'a>) -> Vec<RecordView<'a>> {
    let records = batch.records().expect("not compressed");
    records.collect::<Result<_, _>>().expect("no record is malformed")
}

/// The line that DumpLogSegments prints of a batch.
fn batch_line(batch: &BatchView<'_>) -> String {
    let header = &batch.header;
    let codec = match header.compression() {
        Compression::None => "none",
        Compression::Gzip => "gzip",
        Compression::Snappy => "snappy",
        Compression::Lz4 => "lz4",
        Compression::Zstd => "zstd",
        Compression::Unknown => "unknown",
    };
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

/// The beginning of the line that DumpLogSegments prints of a record.
fn record_line(batch: &BatchView<'_>, index: i32, record: &RecordView<'_>) -> String {
    let length = |bytes: Option<&[u8]>| bytes.map_or(-1, |bytes| bytes.len() as i64);
    let keys: Vec<_> = record.headers().map(|header| String::from_utf8_lossy(header.key)).collect();
    let sequence = if batch.header.base_sequence < 0 { -1 } else { batch.header.base_sequence + index };
    format!(
        "| offset: {} {}: {} keySize: {} valueSize: {} sequence: {sequence} headerKeys: [{}]",
        record.offset,
        if batch.header.is_log_append_time() { "LogAppendTime" } else { "CreateTime" },
        record.timestamp,
        length(record.key),
        length(record.value),
        keys.join(","),
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
    ];
    let mut seen = 0;
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
            assert_eq!(batch.validate_stored(), Ok(()), "{segment}");
            if batch.header.compression() != Compression::None {
                assert_eq!(batch.validate(), Err(BatchError::Compressed), "{segment}");
                continue;
            }
            for (index, record) in all_records(&batch).iter().enumerate() {
                let expected = record_lines[&record.offset];
                let line = record_line(&batch, index as i32, record);
                assert!(expected.starts_with(&line), "{segment}:\n{line}\n{expected}");
                seen += 1;
            }
        }
    }
    assert_eq!(seen, 47, "only {seen} records were compared");
}

#[test]
fn uncompressed_batches_of_a_producer_are_valid_and_written_again_to_the_same_bytes() {
    let bytes = fs::read(golden("codecs-0/00000000000000000000.log")).expect("a segment");
    let mut seen = 0;
    for batch in all_batches(&bytes) {
        if batch.header.compression() != Compression::None {
            continue;
        }
        assert_eq!(batch.validate(), Ok(()));
        let header = &batch.header;
        let mut builder = BatchBuilder::new(header.base_timestamp)
            .base_offset(header.base_offset)
            .leader_epoch(header.partition_leader_epoch)
            .producer(header.producer_id, header.producer_epoch, header.base_sequence);
        for record in all_records(&batch) {
            let headers: Vec<_> = record.headers().map(|header| (header.key, header.value)).collect();
            builder.push(record.timestamp, record.key, record.value, &headers);
        }
        assert_eq!(builder.build(), batch.bytes);
        seen += 1;
    }
    assert!(seen >= 4, "only {seen} batches were compared");
}

/// Encodes every record of a metadata log again, and returns how many of each type there were.
fn encode_again(name: &str) -> BTreeMap<&'static str, usize> {
    let bytes = fs::read(golden(name)).expect("a log");
    let mut types: BTreeMap<&'static str, usize> = BTreeMap::new();
    for batch in all_batches(&bytes) {
        assert_eq!(batch.validate(), Ok(()));
        for record in all_records(&batch) {
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
                *types.entry(metadata.name()).or_default() += 1;
            }
        }
    }
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
