use acked_wire::batch::{BatchBuilder, BatchView, Compression, batches, parse_header};
use acked_wire::error_code;
use bytes::{Bytes, BytesMut};

use super::{NOW_MS, client_batch, idempotent_batch, stored_batch};
use crate::log::{AppendError, AppendLimits, Appended, Log, Prepared, Slice, Truncation};
use crate::rules::DedupeWindow;
use crate::settings::{TimestampType, TopicCompression};

fn prepare(log: &Log, records: &Bytes) -> Result<Prepared, AppendError> {
    log.prepare_append(records, 3, &AppendLimits::default(), DedupeWindow::InFlight, NOW_MS)
}

fn append(log: &mut Log, records: &Bytes) -> Appended {
    match prepare(log, records).expect("a good batch") {
        Prepared::Append(prepared) => log.commit_append(prepared),
        Prepared::Duplicate { .. } => panic!("a new batch"),
    }
}

fn refused(records: &[u8]) -> i16 {
    prepare(&Log::empty(), &Bytes::copy_from_slice(records)).expect_err("refused").code()
}

#[test]
fn leader_sets_offset_and_epoch_and_places_batches_one_behind_the_other() {
    let mut log = Log::empty();
    let first = append(&mut log, &client_batch(2).build().freeze());
    let second = append(&mut log, &client_batch(3).build().freeze());
    assert_eq!((first.base_offset, first.last_offset, first.position), (0, 1, 0));
    assert_eq!((second.base_offset, second.last_offset, second.position), (2, 4, first.bytes.len() as u64));
    assert!(first.epochs_changed && !second.epochs_changed);
    assert_eq!((log.log_end_offset(), log.latest_epoch()), (5, Some(3)));
    let stored = BatchView::only(&second.bytes).expect("one batch");
    assert_eq!((stored.header.base_offset, stored.header.partition_leader_epoch), (2, 3));
    assert_eq!(stored.validate(), Ok(()));
}

#[test]
fn preparing_changes_nothing() {
    let log = Log::empty();
    prepare(&log, &idempotent_batch(1, 0, 0, 1)).expect("a good batch");
    assert_eq!(log, Log::empty());
}

#[test]
fn records_that_are_not_exactly_one_batch_are_invalid() {
    let batch = client_batch(1).build();
    assert_eq!(refused(&[]), error_code::INVALID_RECORD);
    assert_eq!(refused(&[batch.to_vec(), batch.to_vec()].concat()), error_code::INVALID_RECORD);
    assert_eq!(refused(&[batch.to_vec(), vec![0]].concat()), error_code::INVALID_RECORD);
    assert_eq!(refused(&batch[..batch.len() - 1]), error_code::INVALID_RECORD);
}

#[test]
fn other_format_version_is_invalid() {
    let mut batch = client_batch(1).build();
    batch[16] = 1;
    assert_eq!(refused(&batch), error_code::INVALID_RECORD);
}

#[test]
fn flipped_bit_under_the_checksum_is_corrupt() {
    for position in 21..client_batch(1).build().len() {
        let mut batch = client_batch(1).build();
        batch[position] ^= 4;
        assert_eq!(refused(&batch), error_code::CORRUPT_MESSAGE, "byte {position}");
    }
}

#[test]
fn larger_batch_than_allowed_is_refused_by_its_size() {
    let limits = AppendLimits { max_message_bytes: 80, ..AppendLimits::default() };
    let records = client_batch(5).build().freeze();
    let error = Log::empty()
        .prepare_append(&records, 0, &limits, DedupeWindow::InFlight, NOW_MS)
        .expect_err("too large");
    assert_eq!(error.code(), error_code::MESSAGE_TOO_LARGE);
}

#[test]
fn what_only_a_broker_writes_is_invalid_from_a_client() {
    assert_eq!(refused(&client_batch(1).control().build()), error_code::INVALID_RECORD);
    assert_eq!(refused(&client_batch(1).base_offset(7).build()), error_code::INVALID_RECORD);
    assert_eq!(refused(&client_batch(1).producer(5, 0, -1).build()), error_code::INVALID_RECORD);
    assert_eq!(refused(&client_batch(1).producer(5, -1, 0).build()), error_code::INVALID_RECORD);
    assert_eq!(
        refused(&client_batch(1).producer(5, 0, 0).transactional().build()),
        error_code::INVALID_TXN_STATE
    );
}

const CODECS: [Compression; 4] =
    [Compression::Gzip, Compression::Snappy, Compression::Lz4, Compression::Zstd];

/// What is stored of a batch, with its values.
fn stored(records: &Bytes, limits: &AppendLimits) -> (Bytes, Vec<Bytes>) {
    let prepared = Log::empty()
        .prepare_append(records, 3, limits, DedupeWindow::InFlight, NOW_MS)
        .expect("a good batch");
    let Prepared::Append(prepared) = prepared else { panic!("a new batch") };
    let batch = BatchView::only(&prepared.bytes).expect("one batch");
    assert_eq!(batch.validate(), Ok(()));
    let open = batch.open().expect("it can be opened");
    let values = open.records().map(|record| record.expect("well formed").value.expect("a value"));
    let values = values.map(Bytes::copy_from_slice).collect();
    (prepared.bytes.clone(), values)
}

#[test]
fn batch_is_kept_as_the_producer_compressed_it() {
    let (_, values) = stored(&client_batch(5).build().freeze(), &AppendLimits::default());
    for codec in CODECS {
        let sent = client_batch(5).codec(codec.into()).build().freeze();
        let kept = stored(&sent, &AppendLimits::default());
        // Base offset and leader epoch lie before.
        assert_eq!((kept.0.slice(16..), &kept.1), (sent.slice(16..), &values), "{codec:?}");
    }
}

#[test]
fn batch_is_compressed_as_the_topic_asks_and_keeps_its_producer_and_times() {
    let codecs = || [Compression::None].into_iter().chain(CODECS);
    let (_, values) = stored(&client_batch(5).build().freeze(), &AppendLimits::default());
    for (sent, asked) in codecs().flat_map(|sent| codecs().map(move |asked| (sent, asked))) {
        let batch = client_batch(5).producer(9, 2, 40).codec(sent.into()).build().freeze();
        let compression = TopicCompression::Fixed(asked.into());
        let limits = AppendLimits { compression, ..AppendLimits::default() };
        let (bytes, found) = stored(&batch, &limits);
        assert_eq!(found, values, "{sent:?} as {asked:?}");
        let header = parse_header(&bytes).expect("a batch");
        assert_eq!(header.compression(), asked);
        assert_eq!((header.producer_id, header.producer_epoch, header.base_sequence), (9, 2, 40));
        assert_eq!((header.base_timestamp, header.max_timestamp), (NOW_MS, NOW_MS + 4));
        if sent == asked {
            assert_eq!(bytes.slice(16..), batch.slice(16..), "{sent:?} is kept");
        }
        let limits = AppendLimits { timestamp_type: TimestampType::LogAppendTime, ..limits };
        let header = parse_header(&stored(&batch, &limits).0).expect("a batch");
        assert!(header.is_log_append_time() && header.compression() == asked);
        assert_eq!((header.base_timestamp, header.max_timestamp), (NOW_MS, NOW_MS));
    }
}

#[test]
fn batch_that_is_too_large_before_or_after_it_is_compressed_anew_is_refused() {
    let refused = |sent: Compression, asked: Compression, max_message_bytes| {
        let batch = client_batch(50).codec(sent.into()).build().freeze();
        let compression = TopicCompression::Fixed(asked.into());
        let limits = AppendLimits { compression, max_message_bytes, ..AppendLimits::default() };
        Log::empty()
            .prepare_append(&batch, 0, &limits, DedupeWindow::InFlight, NOW_MS)
            .map_err(|error| error.code())
    };
    let (plain, zstd) = (client_batch(50), client_batch(50).codec(Compression::Zstd.into()));
    let between = plain.size_in_bytes() - 1;
    assert!(zstd.build().len() < between);
    let too_large = Err(error_code::MESSAGE_TOO_LARGE);
    assert_eq!(refused(Compression::Zstd, Compression::None, between), too_large);
    assert_eq!(refused(Compression::None, Compression::Zstd, between), too_large);
    assert!(refused(Compression::Zstd, Compression::Zstd, between).is_ok());
}

#[test]
fn records_inside_a_compressed_batch_are_checked_like_others() {
    // The records of a batch of two in one that states three, and the other way round.
    for codec in CODECS {
        for (stated, there) in [(3i64, 2i64), (2, 3)] {
            let mut batch = client_batch(there).codec(codec.into()).build();
            batch[57..61].copy_from_slice(&(stated as i32).to_be_bytes());
            batch[23..27].copy_from_slice(&(stated as i32 - 1).to_be_bytes());
            assert_eq!(refused(&with_checksum(batch)), error_code::INVALID_RECORD, "{codec:?}");
        }
        let mut late = BatchBuilder::new(NOW_MS).codec(codec.into());
        late.push(NOW_MS, None, Some(b"now"), &[]);
        late.push(NOW_MS + 3_600_001, None, Some(b"an hour and more ahead"), &[]);
        assert_eq!(refused(&late.build()), error_code::INVALID_TIMESTAMP, "{codec:?}");
    }
}

#[test]
fn stream_that_its_codec_refuses_and_unknown_codecs_are_answered_as_measured() {
    for codec in CODECS {
        let mut batch = client_batch(5).codec(codec.into()).build();
        batch.truncate(batch.len() - 9);
        let length = batch.len() as i32 - 12;
        batch[8..12].copy_from_slice(&length.to_be_bytes());
        let batch = with_checksum(batch);
        assert_eq!(refused(&batch), error_code::UNKNOWN_SERVER_ERROR, "{codec:?}");
        let error = prepare(&Log::empty(), &batch.into()).expect_err("refused");
        assert!(error.tells_log_start_offset());
    }
    let mut batch = client_batch(1).build();
    batch[22] |= 5;
    assert_eq!(refused(&with_checksum(batch)), error_code::UNKNOWN_SERVER_ERROR);
}

#[test]
fn largest_time_that_a_client_states_is_corrected_and_its_claim_to_be_the_broker_ignored() {
    for codec in [Compression::None, Compression::Lz4] {
        let mut lying = client_batch(3).codec(codec.into()).build();
        lying[35..43].copy_from_slice(&(NOW_MS + 77).to_be_bytes());
        let (bytes, _) = stored(&with_checksum(lying.clone()).into(), &AppendLimits::default());
        let header = parse_header(&bytes).expect("a batch");
        assert_eq!((header.max_timestamp, header.is_log_append_time()), (NOW_MS + 2, false));
        lying[22] |= 8;
        let (bytes, _) = stored(&with_checksum(lying).into(), &AppendLimits::default());
        let header = parse_header(&bytes).expect("a batch");
        assert_eq!((header.max_timestamp, header.is_log_append_time()), (NOW_MS + 77, false));
    }
}

fn with_checksum(mut batch: BytesMut) -> BytesMut {
    let crc = crc32c_of(&batch);
    batch[17..21].copy_from_slice(&crc.to_be_bytes());
    batch
}

/// Bit by bit: independent of the crate that the product uses.
fn crc32c_of(batch: &[u8]) -> u32 {
    !batch[21..].iter().fold(!0u32, |crc, byte| {
        (0..8).fold(
            crc ^ u32::from(*byte),
            |crc, _| if crc & 1 == 1 { (crc >> 1) ^ 0x82F6_3B78 } else { crc >> 1 },
        )
    })
}

#[test]
fn timestamp_far_in_the_future_is_refused_by_default() {
    let hour = 3_600_000;
    let log = Log::empty();
    let limits = AppendLimits::default();
    let records = client_batch(1).build().freeze();
    assert!(log.prepare_append(&records, 0, &limits, DedupeWindow::InFlight, NOW_MS - hour).is_ok());
    let error = log
        .prepare_append(&records, 0, &limits, DedupeWindow::InFlight, NOW_MS - hour - 1)
        .expect_err("an hour and more ahead");
    assert_eq!(error.code(), error_code::INVALID_TIMESTAMP);
    assert!(
        log.prepare_append(&records, 0, &limits, DedupeWindow::InFlight, i64::MAX).is_ok(),
        "the past is open by default"
    );
}

#[test]
fn log_append_time_is_the_brokers_and_the_checksum_follows() {
    let limits = AppendLimits { timestamp_type: TimestampType::LogAppendTime, ..AppendLimits::default() };
    let records = client_batch(2).build().freeze();
    let prepared = Log::empty()
        .prepare_append(&records, 0, &limits, DedupeWindow::InFlight, 5_000)
        .expect("a good batch");
    let Prepared::Append(prepared) = prepared else { panic!("a new batch") };
    assert_eq!(prepared.max_timestamp, 5_000);
    let stored = BatchView::only(&prepared.bytes).expect("one batch");
    assert!(stored.header.is_log_append_time() && stored.verify_crc());
    assert_eq!(stored.header.max_timestamp, 5_000);
}

#[test]
fn repeated_batch_is_answered_with_where_it_lies() {
    let mut log = Log::empty();
    append(&mut log, &client_batch(1).build().freeze());
    append(&mut log, &idempotent_batch(9, 0, 0, 2));
    let before = log.clone();
    let duplicate = Prepared::Duplicate { base_offset: 1, last_offset: 2, timestamp_ms: NOW_MS + 1 };
    assert_eq!(prepare(&log, &idempotent_batch(9, 0, 0, 2)), Ok(duplicate));
    assert_eq!(log, before);
}

#[test]
fn sequence_errors_have_kafkas_codes_and_tell_the_log_start() {
    let mut log = Log::empty();
    append(&mut log, &idempotent_batch(9, 1, 0, 2));
    let gap = prepare(&log, &idempotent_batch(9, 1, 5, 1)).expect_err("a gap");
    assert_eq!((gap.code(), gap.tells_log_start_offset()), (error_code::OUT_OF_ORDER_SEQUENCE_NUMBER, true));
    let stale = prepare(&log, &idempotent_batch(9, 0, 0, 2)).expect_err("an old epoch");
    assert_eq!((stale.code(), stale.tells_log_start_offset()), (error_code::INVALID_PRODUCER_EPOCH, true));
    let corrupt = prepare(&log, &Bytes::new()).expect_err("nothing");
    assert!(!corrupt.tells_log_start_offset());
}

#[test]
fn follower_takes_batches_over_byte_for_byte() {
    let mut log = Log::empty();
    let records = Bytes::from([stored_batch(0, 1, 2), stored_batch(2, 4, 1)].concat());
    let appended = log.append_as_follower(&records, 4).expect("good").expect("not empty");
    assert_eq!(appended.bytes, records);
    assert_eq!((appended.base_offset, appended.last_offset, appended.position), (0, 2, 0));
    assert!(appended.epochs_changed);
    assert_eq!(log.epochs().pairs(), vec![(1, 0), (4, 2)]);
}

#[test]
fn follower_leaves_out_newer_epochs_and_a_cut_batch() {
    let old = stored_batch(0, 1, 2);
    let newer = stored_batch(2, 5, 1);
    let records = Bytes::from([old.clone(), newer.clone(), stored_batch(3, 1, 1)].concat());
    let appended = Log::empty().append_as_follower(&records, 4).expect("good").expect("the first");
    assert_eq!(appended.bytes, old);
    let cut = Bytes::from([old.as_ref(), &newer[..40]].concat());
    let appended = Log::empty().append_as_follower(&cut, 9).expect("good").expect("the first");
    assert_eq!(appended.bytes, old);
    assert_eq!(Log::empty().append_as_follower(&newer, 4), Ok(None));
    assert_eq!(Log::empty().append_as_follower(&Bytes::new(), 4), Ok(None));
}

#[test]
fn follower_refuses_everything_when_one_batch_is_bad() {
    let mut log = Log::empty();
    log.append_as_follower(&stored_batch(0, 1, 3), 1).expect("good");
    let before = log.clone();
    let mut corrupt = BytesMut::from(&stored_batch(5, 1, 1)[..]);
    corrupt[70] ^= 1;
    for bad in [
        stored_batch(2, 1, 1),
        Bytes::from([stored_batch(3, 1, 2), stored_batch(4, 1, 1)].concat()),
        Bytes::from([stored_batch(3, 1, 2), corrupt.freeze()].concat()),
        stored_batch(3, -1, 1),
        stored_batch(i64::MAX - 1, 1, 3),
    ] {
        assert!(log.append_as_follower(&bad, 1).is_err());
        assert_eq!(log, before);
    }
}

#[test]
fn truncation_inside_a_batch_cuts_the_whole_batch() {
    let mut log = Log::empty();
    let first = append(&mut log, &client_batch(2).build().freeze());
    append(&mut log, &client_batch(3).build().freeze());
    let truncation = log.truncate_to(4);
    let size = first.bytes.len() as u64;
    assert_eq!(truncation, Truncation { size, log_end_offset: 2, epochs_changed: false });
}

#[test]
fn truncation_forgets_producers_and_epochs_of_what_it_cuts() {
    let mut log = Log::empty();
    append(&mut log, &idempotent_batch(9, 0, 0, 1));
    assert!(log.assign_epoch_start(7));
    log.append_as_follower(&stored_batch(1, 7, 1), 7).expect("good");
    log.truncate_to(1);
    assert_eq!(log.epochs().pairs(), vec![(3, 0)]);
    assert!(prepare(&log, &idempotent_batch(9, 0, 1, 1)).is_ok());
    log.truncate_to(0);
    assert!(log.producers().is_empty() && log.epochs().entries().is_empty());
    assert!(prepare(&log, &idempotent_batch(9, 0, 41, 1)).is_ok(), "a forgotten producer starts anywhere");
}

#[test]
fn truncation_at_the_end_still_cuts_the_epoch_of_a_leader_that_wrote_nothing() {
    let mut log = Log::empty();
    append(&mut log, &client_batch(1).build().freeze());
    assert!(log.assign_epoch_start(8));
    assert!(log.truncate_to(100).epochs_changed);
    assert_eq!((log.latest_epoch(), log.log_end_offset()), (Some(3), 1));
}

#[test]
fn reset_starts_anew_at_the_leaders_log_start() {
    let mut log = Log::empty();
    append(&mut log, &idempotent_batch(9, 0, 0, 1));
    assert_eq!(log.reset_to(500), Truncation { size: 0, log_end_offset: 500, epochs_changed: true });
    assert_eq!((log.log_start_offset(), log.log_end_offset(), log.size()), (500, 500, 0));
    log.append_as_follower(&stored_batch(500, 4, 1), 4).expect("good");
    assert_eq!(log.epochs().pairs(), vec![(4, 500)]);
}

#[test]
fn first_batch_is_located_whole_even_above_the_limit() {
    let mut log = Log::empty();
    let first = append(&mut log, &client_batch(2).build().freeze()).bytes.len();
    let second = append(&mut log, &client_batch(3).build().freeze()).bytes.len();
    let slice = |length, end_offset| Some(Slice { position: 0, length, end_offset });
    assert_eq!(log.locate(1, 5, 1, true), slice(first, 2));
    assert_eq!(log.locate(1, 5, 1, false), None);
    assert_eq!(log.locate(0, 5, first + second - 1, true), slice(first, 2));
    assert_eq!(log.locate(0, 5, first + second, false), slice(first + second, 5));
    assert_eq!(
        log.locate(0, 4, usize::MAX, true),
        slice(first, 2),
        "a batch that reaches `below` is not readable"
    );
    assert_eq!(log.locate(5, 5, usize::MAX, true), None);
}

#[test]
fn time_leads_to_the_first_batch_that_is_late_enough() {
    let mut log = Log::empty();
    append(&mut log, &client_batch(2).build().freeze());
    append(&mut log, &client_batch(4).build().freeze());
    assert_eq!(log.offset_for_timestamp(NOW_MS + 1), Some((0, NOW_MS + 1, 3)));
    assert_eq!(log.offset_for_timestamp(NOW_MS + 2), Some((2, NOW_MS + 3, 3)));
    assert_eq!(log.offset_for_timestamp(NOW_MS + 4), None);
    assert_eq!(log.offset_of_max_timestamp(), Some((5, NOW_MS + 3, 3)));
}

#[test]
fn bytes_handed_out_are_whole_batches() {
    let mut log = Log::empty();
    let file = [
        append(&mut log, &client_batch(2).build().freeze()),
        append(&mut log, &client_batch(1).build().freeze()),
    ]
    .map(|appended| appended.bytes)
    .concat();
    let slice = log.locate(2, 3, usize::MAX, true).expect("the second batch");
    let read = &file[slice.position as usize..][..slice.length];
    assert!(batches(read).all(|batch| batch.is_ok_and(|batch| batch.header.base_offset == 2)));
}
