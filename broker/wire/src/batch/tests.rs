use bytes::Bytes;
use proptest::prelude::*;

use super::*;

/// What a record says, owned.
#[derive(Clone, Debug, PartialEq)]
struct Said {
    timestamp: i64,
    key: Option<Vec<u8>>,
    value: Option<Vec<u8>>,
    headers: Vec<(Vec<u8>, Option<Vec<u8>>)>,
}

impl Said {
    fn headers(&self) -> Vec<(&[u8], Option<&[u8]>)> {
        self.headers.iter().map(|(key, value)| (&key[..], value.as_deref())).collect()
    }

    fn of(record: &RecordView<'_>) -> Said {
        Said {
            timestamp: record.timestamp,
            key: record.key.map(<[u8]>::to_vec),
            value: record.value.map(<[u8]>::to_vec),
            headers: record
                .headers()
                .map(|header| (header.key.to_vec(), header.value.map(<[u8]>::to_vec)))
                .collect(),
        }
    }
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(any::<u8>(), 0..80)
}

fn said() -> impl Strategy<Value = Said> {
    let headers = proptest::collection::vec((bytes(), proptest::option::of(bytes())), 0..4);
    (any::<i64>(), proptest::option::of(bytes()), proptest::option::of(bytes()), headers)
        .prop_map(|(timestamp, key, value, headers)| Said { timestamp, key, value, headers })
}

fn written(records: &[Said], builder: BatchBuilder) -> Vec<u8> {
    let mut builder = builder;
    for record in records {
        let (key, value) = (record.key.as_deref(), record.value.as_deref());
        let expected = builder.size_with(record.timestamp, key, value, &record.headers());
        builder.push(record.timestamp, key, value, &record.headers());
        assert_eq!(builder.size_in_bytes(), expected);
    }
    builder.build().to_vec()
}

fn read(batch: &BatchView<'_>) -> Vec<Said> {
    let open = batch.open().expect("its codec is known and its stream whole");
    open.records().map(|record| Said::of(&record.expect("well formed"))).collect()
}

/// A batch of three small records.
fn sample() -> Vec<u8> {
    let record = |timestamp| Said { timestamp, key: None, value: Some(vec![1, 2, 3]), headers: Vec::new() };
    written(&[record(1_000), record(1_001), record(1_002)], BatchBuilder::new(1_000).producer(7, 0, 0))
}

/// Changes a batch and makes its length and checksum right again: what a hostile producer can do.
fn forged(change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut batch = sample();
    change(&mut batch);
    made_right(batch)
}

fn made_right(mut batch: Vec<u8>) -> Vec<u8> {
    let length = (batch.len() - 12) as i32;
    batch[8..12].copy_from_slice(&length.to_be_bytes());
    let crc = crc32c::crc32c(&batch[21..]);
    batch[17..21].copy_from_slice(&crc.to_be_bytes());
    batch
}

const CODECS: [Compression; 4] =
    [Compression::Gzip, Compression::Snappy, Compression::Lz4, Compression::Zstd];

/// An uncompressed batch with its records compressed, whatever they are.
fn compressed(batch: &[u8], codec: Compression) -> Vec<u8> {
    let mut batch = batch.to_vec();
    let records = codec::compress(codec.into(), &batch.split_off(HEADER_SIZE));
    batch[22] |= codec.number().expect("a known codec") as u8;
    batch.extend(records);
    made_right(batch)
}

/// What validation says of an uncompressed batch, and of the same records compressed in every way.
fn verdict(batch: &[u8]) -> Result<(), BatchError> {
    let view = BatchView::only(batch)?;
    let verdict = view.validate();
    if !matches!(verdict, Err(BatchError::Checksum { .. })) {
        for codec in CODECS {
            let batch = compressed(batch, codec);
            let view = BatchView::only(&batch).expect("one batch");
            assert_eq!(view.validate(), verdict, "{codec:?}");
            let well_formed = matches!(verdict, Ok(()) | Err(BatchError::LastOffsetDelta { .. }));
            assert_eq!(view.validate_stored_records().is_ok(), well_formed, "{codec:?}");
        }
    }
    verdict
}

fn codec() -> impl Strategy<Value = Codec> {
    prop_oneof![
        Just(Codec::NONE),
        proptest::sample::select(&CODECS[..]).prop_map(Codec::from),
        (1..=9).prop_map(|level| Codec { compression: Compression::Gzip, level: Some(level) }),
        (-5..=5).prop_map(|level| Codec { compression: Compression::Zstd, level: Some(level) }),
    ]
}

proptest! {
    #[test]
    fn a_written_batch_is_valid_and_says_what_was_pushed(
        records in proptest::collection::vec(said(), 1..8),
        base_offset in 0..i64::MAX / 2,
        epoch: i32,
        producer: (i64, i16, i32),
        codec in codec(),
    ) {
        let builder = BatchBuilder::new(records[0].timestamp).codec(codec);
        let builder = builder.producer(producer.0, producer.1, producer.2);
        let mut batch = written(&records, builder);
        patch(&mut batch, base_offset, epoch);
        let view = BatchView::only(&batch).expect("one batch");
        prop_assert_eq!(view.validate(), Ok(()));
        prop_assert_eq!(view.validate_stored(), Ok(()));
        prop_assert_eq!(view.validate_stored_records(), Ok(()));
        prop_assert_eq!(read(&view), &records[..]);
        let header = view.header;
        prop_assert_eq!(header.compression(), codec.compression);
        prop_assert_eq!(header.base_offset, base_offset);
        prop_assert_eq!(header.next_offset(), base_offset + records.len() as i64);
        prop_assert_eq!(header.partition_leader_epoch, epoch);
        prop_assert_eq!((header.producer_id, header.producer_epoch, header.base_sequence), producer);
        prop_assert_eq!(Some(header.max_timestamp), records.iter().map(|record| record.timestamp).max());
    }

    #[test]
    fn a_changed_byte_under_the_checksum_is_found(at in 16usize..86, change in 1u8..) {
        let mut batch = sample();
        prop_assume!(at < batch.len());
        batch[at] ^= change;
        prop_assert!(BatchView::only(&batch).and_then(|view| view.validate()).is_err());
    }

    #[test]
    fn no_forged_byte_makes_the_walk_disagree_with_the_count(at in 21usize..86, value: u8) {
        let batch = forged(|batch| {
            let at = at.min(batch.len() - 1);
            batch[at] = value;
        });
        let view = BatchView::only(&batch).expect("the length is right");
        if view.validate().is_ok() {
            prop_assert_eq!(read(&view).len(), 3);
            prop_assert_eq!(view.header.last_offset_delta, 2);
        }
        let _ = view.validate_stored();
    }

    #[test]
    fn any_bytes_are_walked_to_an_end(bytes in proptest::collection::vec(any::<u8>(), 0..300), forge: bool) {
        let mut bytes = bytes;
        if forge && bytes.len() > 70 {
            // Believable enough to get past the header.
            bytes[8..17].copy_from_slice(&[0, 0, 0, 50, 0, 0, 0, 0, 2]);
            bytes[21..23].copy_from_slice(&[0, 0]);
        }
        let mut walk = batches(&bytes);
        for batch in &mut walk {
            let Ok(batch) = batch else { continue };
            let _ = batch.validate();
            let _ = batch.validate_stored();
            let headers = |record: RecordView<'_>| record.headers().count();
            let _ = batch.open().map(|open| open.records().flatten().map(headers).sum::<usize>());
        }
        prop_assert!(walk.position() + walk.incomplete_tail() == bytes.len());
    }
}

#[test]
fn a_last_offset_that_contradicts_the_count_is_refused() {
    let batch = forged(|batch| batch[23..27].copy_from_slice(&9i32.to_be_bytes()));
    assert_eq!(verdict(&batch), Err(BatchError::LastOffsetDelta { last_offset_delta: 9, count: 3 }));
    // In a log it can be what compaction left.
    assert_eq!(BatchView::only(&batch).expect("one batch").validate_stored(), Ok(()));
}

#[test]
fn a_count_that_contradicts_the_records_is_refused() {
    let with_count = |count: i32| {
        forged(|batch| {
            batch[57..61].copy_from_slice(&count.to_be_bytes());
            batch[23..27].copy_from_slice(&(count - 1).to_be_bytes());
        })
    };
    assert_eq!(verdict(&with_count(4)), Err(BatchError::MalformedRecord { index: 3 }));
    assert_eq!(verdict(&with_count(2)), Err(BatchError::BytesBehindRecords { left: 10 }));
    assert_eq!(verdict(&with_count(0)), Err(BatchError::RecordCount { count: 0 }));
    assert_eq!(verdict(&with_count(i32::MIN + 1)), Err(BatchError::RecordCount { count: i32::MIN + 1 }));
    assert_eq!(verdict(&with_count(i32::MAX)), Err(BatchError::MalformedRecord { index: 3 }));
}

#[test]
fn bytes_behind_the_last_record_are_refused() {
    assert_eq!(verdict(&forged(|batch| batch.push(0))), Err(BatchError::BytesBehindRecords { left: 1 }));
    let mut two = sample();
    two.push(0);
    assert_eq!(verdict(&two), Err(BatchError::TrailingBytes { left: 1 }));
}

#[test]
fn an_offset_out_of_its_place_is_refused() {
    // Each record is ten bytes: length, attributes, timestamp delta, offset delta, key, value and its length,
    // headers.
    let batch = forged(|batch| batch[HEADER_SIZE + 10 + 3] = 2 << 1);
    assert_eq!(verdict(&batch), Err(BatchError::OffsetDelta { index: 1, offset_delta: 2 }));
}

#[test]
fn older_formats_are_refused_by_name_even_when_short() {
    for (magic, length) in [(0i8, 17), (1, 30), (1, 100), (3, 61)] {
        let mut batch = vec![0; length];
        batch[16] = magic as u8;
        assert_eq!(parse_header(&batch), Err(BatchError::UnsupportedMagic { magic }));
    }
}

#[test]
fn a_cut_last_batch_ends_the_walk_and_is_reported() {
    let batch = sample();
    let whole = [&batch[..], &batch[..]].concat();
    for cut in 0..batch.len() {
        let mut walk = batches(&whole[..batch.len() + cut]);
        assert_eq!(walk.next().map(|batch| batch.map(|batch| batch.position)), Some(Ok(0)));
        assert!(walk.next().is_none(), "{cut} bytes of a second batch");
        assert_eq!(walk.incomplete_tail(), cut);
    }
    assert_eq!(batches(&whole).map(|batch| batch.map(|batch| batch.position)).last(), Some(Ok(batch.len())));
}

#[test]
fn headers_with_the_same_key_are_kept_in_order() {
    let mut builder = BatchBuilder::new(0);
    let headers: [(&[u8], Option<&[u8]>); 4] =
        [(b"h", Some(b"1")), (b"h", Some(b"2")), (b"", None), (b"h", Some(b"1"))];
    builder.push(0, None, None, &headers);
    let batch = builder.build();
    let view = BatchView::only(&batch).expect("one batch");
    let record = view.records().expect("not compressed").next().expect("one record").expect("well formed");
    assert!(record.headers().map(|header| (header.key, header.value)).eq(headers));
}

#[test]
fn append_time_replaces_the_time_of_every_record() {
    let mut batch = sample();
    patch_append_time(&mut batch, 5_000);
    let view = BatchView::only(&batch).expect("one batch");
    assert_eq!(view.validate(), Ok(()));
    assert!(view.header.is_log_append_time());
    assert!(read(&view).iter().all(|record| record.timestamp == 5_000));
}

#[test]
fn sequences_wrap_to_zero() {
    let record = Said { timestamp: 0, key: None, value: None, headers: Vec::new() };
    let batch = written(&[record.clone(), record], BatchBuilder::new(0).producer(1, 0, i32::MAX));
    assert_eq!(parse_header(&batch).map(|header| header.last_sequence()), Ok(0));
}

#[test]
fn keys_and_values_share_the_memory_they_lie_in() {
    for codec in [Compression::None, Compression::Zstd] {
        let plain = Bytes::from(sample());
        let whole = if codec == Compression::None { plain } else { compressed(&plain, codec).into() };
        let view = BatchView::only(&whole).expect("one batch");
        let open = view.open().expect("its codec is known");
        let record = open.records().next().expect("one record").expect("well formed");
        let value = open.share(record.value.expect("it has a value"), &whole);
        drop(open);
        assert_eq!(value, [1, 2, 3].as_slice());
    }
}

#[test]
fn records_that_open_to_more_than_allowed_are_refused() {
    let mut builder = BatchBuilder::new(0);
    builder.push(0, None, Some(&[0; 100_000]), &[]);
    let plain = builder.build();
    let records = plain.len() - HEADER_SIZE;
    for codec in CODECS {
        let batch = compressed(&plain, codec);
        let view = BatchView::only(&batch).expect("one batch");
        assert!(view.open_within(records).is_ok(), "{codec:?}");
        let refused = view.open_within(records - 1).map(|_| ());
        assert_eq!(refused, Err(BatchError::TooLarge { max: records - 1 }), "{codec:?}");
    }
}

#[test]
fn a_codec_that_kafka_does_not_define_is_refused_and_walked_over() {
    let batch = forged(|batch| batch[22] = 5);
    let view = BatchView::only(&batch).expect("one batch");
    assert_eq!(view.validate(), Err(BatchError::UnknownCodec));
    assert_eq!(view.validate_stored(), Ok(()));
}
