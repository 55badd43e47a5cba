//! Reads the records of a fetch answer, from a position on. Skips control batches and, when reading committed records
//! only, those of aborted transactions. Copies no keys or values: they share the answer, or what its compressed
//! batch opened to.

use std::collections::BTreeSet;
use std::sync::Arc;

use acked_wire::api::fetch::AbortedTransaction;
use acked_wire::batch::{BatchError, BatchView, batches};
use acked_wire::error_code;
use bytes::Bytes;

use super::ConsumedRecord;

/// What an answer gave for one partition.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Read {
    pub records: Vec<ConsumedRecord>,
    /// Where to go on, and the epoch of the last batch before it; `None` when nothing was read.
    pub next: Option<(i64, i32)>,
    /// Why reading stopped early, as Kafka's error code.
    pub failure: Option<i16>,
}

/// What to read.
#[derive(Clone, Copy, Debug)]
pub struct Reading<'a> {
    pub topic: &'a Arc<str>,
    pub partition: i32,
    /// Records below are skipped: a batch is sent whole.
    pub from: i64,
    pub check_crcs: bool,
    /// `Some` when records of aborted transactions are to be left out.
    pub aborted: Option<&'a [AbortedTransaction]>,
}

/// Reads whole batches until the end, a cut batch, or one that cannot be read.
pub fn read(bytes: &Bytes, reading: Reading<'_>) -> Read {
    let mut read = Read::default();
    let mut aborted = Aborted::new(reading.aborted.unwrap_or(&[]));
    let mut walk = batches(bytes);
    let mut least = 0;
    for batch in &mut walk {
        let outcome = batch.map_err(code_of).and_then(|batch| {
            check(&batch, least, reading.check_crcs)?;
            least = batch.header.next_offset();
            if batch.header.next_offset() > reading.from {
                read_batch(bytes, &batch, reading, &mut aborted, &mut read.records)?;
                read.next = Some((batch.header.next_offset(), batch.header.partition_leader_epoch));
            }
            Ok(())
        });
        if let Err(code) = outcome {
            read.failure = Some(code);
            return read;
        }
    }
    if read.next.is_none() && walk.position() == 0 && walk.incomplete_tail() > 0 {
        // The first batch of an answer is whole, however large.
        read.failure = Some(error_code::CORRUPT_MESSAGE);
    }
    read
}

/// Offsets grow from batch to batch, and the end of each can be said.
fn check(batch: &BatchView<'_>, least: i64, check_crcs: bool) -> Result<(), i16> {
    let header = &batch.header;
    let ordered = header.base_offset >= least && header.last_offset_delta >= 0;
    if !ordered || header.base_offset.checked_add(i64::from(header.last_offset_delta) + 1).is_none() {
        return Err(error_code::CORRUPT_MESSAGE);
    }
    if check_crcs && !batch.verify_crc() {
        return Err(error_code::CORRUPT_MESSAGE);
    }
    Ok(())
}

fn read_batch(
    bytes: &Bytes,
    batch: &BatchView<'_>,
    reading: Reading<'_>,
    aborted: &mut Aborted<'_>,
    out: &mut Vec<ConsumedRecord>,
) -> Result<(), i16> {
    aborted.reach(batch.header.last_offset());
    if batch.header.is_control() {
        aborted.end(batch);
        return Ok(());
    }
    if aborted.covers(batch) {
        return Ok(());
    }
    let records_before = out.len();
    let open = batch.open().map_err(code_of)?;
    for record in open.records() {
        let record = record.map_err(|error| {
            out.truncate(records_before);
            code_of(error)
        })?;
        if record.offset < reading.from {
            continue;
        }
        out.push(ConsumedRecord {
            topic: reading.topic.clone(),
            partition: reading.partition,
            offset: record.offset,
            leader_epoch: batch.header.partition_leader_epoch,
            timestamp_ms: record.timestamp,
            key: record.key.map(|key| open.share(key, bytes)),
            value: record.value.map(|value| open.share(value, bytes)),
        });
    }
    Ok(())
}

fn code_of(error: BatchError) -> i16 {
    match error {
        BatchError::UnknownCodec => error_code::UNSUPPORTED_COMPRESSION_TYPE,
        _ => error_code::CORRUPT_MESSAGE,
    }
}

/// Which producers are inside an aborted transaction while the log is walked.
struct Aborted<'a> {
    /// By first offset, the next one last.
    upcoming: Vec<&'a AbortedTransaction>,
    producers: BTreeSet<i64>,
}

impl<'a> Aborted<'a> {
    fn new(transactions: &'a [AbortedTransaction]) -> Aborted<'a> {
        let mut upcoming: Vec<_> = transactions.iter().collect();
        upcoming.sort_by_key(|transaction| std::cmp::Reverse(transaction.first_offset));
        Aborted { upcoming, producers: BTreeSet::new() }
    }

    fn reach(&mut self, offset: i64) {
        while let Some(next) = self.upcoming.pop_if(|next| next.first_offset <= offset) {
            self.producers.insert(next.producer_id);
        }
    }

    /// A marker ends its producer's transaction.
    fn end(&mut self, marker: &BatchView<'_>) {
        self.producers.remove(&marker.header.producer_id);
    }

    fn covers(&self, batch: &BatchView<'_>) -> bool {
        batch.header.is_transactional() && self.producers.contains(&batch.header.producer_id)
    }
}

#[cfg(test)]
mod tests {
    use acked_wire::batch::{BatchBuilder, Compression};
    use bytes::BytesMut;

    use super::*;

    fn batch(base_offset: i64, epoch: i32, values: &[&'static str]) -> BatchBuilder {
        let mut builder = BatchBuilder::new(0).base_offset(base_offset).leader_epoch(epoch);
        for value in values {
            builder.push(0, None, Some(value.as_bytes()), &[]);
        }
        builder
    }

    fn log(batches: Vec<BatchBuilder>) -> Bytes {
        let mut log = BytesMut::new();
        for batch in batches {
            log.extend_from_slice(&batch.build());
        }
        log.freeze()
    }

    fn read_from(bytes: &Bytes, from: i64, aborted: Option<&[AbortedTransaction]>) -> (Vec<i64>, Read) {
        let topic = "t".into();
        let read = read(bytes, Reading { topic: &topic, partition: 0, from, check_crcs: true, aborted });
        (read.records.iter().map(|record| record.offset).collect(), read)
    }

    #[test]
    fn records_below_the_position_are_skipped_and_a_cut_batch_ends_the_reading() {
        let whole = log(vec![batch(10, 1, &["a", "b"]), batch(12, 2, &["c"]), batch(13, 2, &["d"])]);
        let cut = whole.slice(..whole.len() - 3);
        let (offsets, read) = read_from(&cut, 11, None);
        assert_eq!(offsets, [11, 12]);
        assert_eq!((read.next, read.failure), (Some((13, 2)), None));
    }

    #[test]
    fn compressed_batches_are_read_as_the_others() {
        let zstd = batch(1, 1, &["b", "c"]).codec(Compression::Zstd.into());
        let (offsets, read) = read_from(&log(vec![batch(0, 1, &["a"]), zstd, batch(3, 1, &["d"])]), 1, None);
        assert_eq!((offsets, read.next), (vec![1, 2, 3], Some((4, 1))));
        assert_eq!(read.records[1].value.as_deref(), Some(&b"c"[..]));
    }

    #[test]
    fn damaged_batch_stops_the_reading_before_it() {
        let mut bytes = BytesMut::from(&log(vec![batch(0, 1, &["a"]), batch(1, 1, &["b"])])[..]);
        let last = bytes.len() - 2;
        bytes[last] ^= 1;
        let (offsets, read) = read_from(&bytes.freeze(), 0, None);
        assert_eq!(offsets, [0]);
        assert_eq!((read.next, read.failure), (Some((1, 1)), Some(error_code::CORRUPT_MESSAGE)));
    }

    #[test]
    fn control_batches_move_the_position_and_give_no_records() {
        let mut marker = BatchBuilder::new(0).base_offset(1).leader_epoch(1).control();
        marker.push(0, Some(&[0, 0, 0, 1]), Some(&[0; 6]), &[]);
        let (offsets, read) = read_from(&log(vec![batch(0, 1, &["a"]), marker]), 0, None);
        assert_eq!((offsets, read.next), (vec![0], Some((2, 1))));
    }

    #[test]
    fn records_of_aborted_transactions_are_left_out_until_their_marker() {
        let inside = |offset, value| batch(offset, 1, &[value]).producer(7, 0, 0).transactional();
        let mut marker = BatchBuilder::new(0).base_offset(2).leader_epoch(1).producer(7, 0, -1);
        marker = marker.transactional().control();
        marker.push(0, Some(&[0, 0, 0, 0]), Some(&[0; 6]), &[]);
        let bytes = log(vec![inside(0, "a"), batch(1, 1, &["b"]), marker, inside(3, "c")]);
        let aborted = [AbortedTransaction { producer_id: 7, first_offset: 0, ..Default::default() }];
        assert_eq!(read_from(&bytes, 0, Some(&aborted)).0, [1, 3]);
        assert_eq!(read_from(&bytes, 0, None).0, [0, 1, 3]);
    }
}
