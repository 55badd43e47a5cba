use bytes::Bytes;
use proptest::prelude::*;

use super::{NOW_MS, client_batch, idempotent_batch};
use crate::log::{AppendLimits, Appended, EpochCache, FoundLog, Log, Prepared, RecoveryPlan, Slice, recover};
use crate::rules::DedupeWindow;

#[derive(Clone, Debug)]
enum Step {
    /// A newer epoch, led from the end of the log on.
    Lead {
        later_by: i32,
    },
    Append {
        producer: Option<i64>,
        count: i64,
    },
    /// The producer's last batch once more.
    Repeat {
        producer: i64,
    },
    /// Batches of a leader, each so many epochs later than the one before.
    Follow {
        batches: Vec<(i32, i64)>,
    },
    Truncate {
        per_mille: i64,
    },
    Restart,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        2 => (1i32..3).prop_map(|later_by| Step::Lead { later_by }),
        6 => (prop::option::of(0i64..3), 1i64..4).prop_map(|(producer, count)| Step::Append { producer, count }),
        1 => (0i64..3).prop_map(|producer| Step::Repeat { producer }),
        2 => prop::collection::vec((0i32..2, 1i64..3), 0..3).prop_map(|batches| Step::Follow { batches }),
        2 => (0i64..1100).prop_map(|per_mille| Step::Truncate { per_mille }),
        1 => Just(Step::Restart),
    ]
}

/// The obviously right log: a list of batches, and the file they make.
#[derive(Default)]
struct Model {
    batches: Vec<ModelBatch>,
    epoch: i32,
    file: Vec<u8>,
}

struct ModelBatch {
    base_offset: i64,
    count: i64,
    epoch: i32,
    producer: Option<(i64, i32)>,
    size: usize,
}

impl Model {
    fn end(&self) -> i64 {
        self.batches.last().map_or(0, |batch| batch.base_offset + batch.count)
    }

    fn add(&mut self, count: i64, epoch: i32, producer: Option<(i64, i32)>, bytes: &[u8]) {
        self.batches.push(ModelBatch { base_offset: self.end(), count, epoch, producer, size: bytes.len() });
        self.file.extend_from_slice(bytes);
    }

    fn last_of(&self, producer: i64) -> Option<(&ModelBatch, i32)> {
        self.batches.iter().rev().find_map(|batch| match batch.producer {
            Some((id, sequence)) if id == producer => Some((batch, sequence)),
            _ => None,
        })
    }

    fn next_sequence(&self, producer: i64) -> i32 {
        self.last_of(producer).map_or(0, |(batch, sequence)| sequence + batch.count as i32)
    }

    /// Epochs of the records, each with its first offset: what R6 asks the cache to be.
    fn epochs(&self) -> Vec<(i32, i64)> {
        let mut epochs: Vec<(i32, i64)> = Vec::new();
        for batch in &self.batches {
            if epochs.last().is_none_or(|(last, _)| *last != batch.epoch) {
                epochs.push((batch.epoch, batch.base_offset));
            }
        }
        epochs
    }

    fn locate(&self, from: i64, below: i64, max_bytes: usize, first_whole: bool) -> Option<Slice> {
        let mut position = 0;
        let mut slice: Option<Slice> = None;
        for batch in &self.batches {
            let end = batch.base_offset + batch.count;
            if end > from {
                let start = slice.map_or(position, |slice| slice.position);
                let length = slice.map_or(0, |slice| slice.length) + batch.size;
                let fits = length <= max_bytes || (first_whole && slice.is_none());
                if end > below || !fits {
                    break;
                }
                slice = Some(Slice { position: start, length, end_offset: end });
            }
            position += batch.size as u64;
        }
        slice
    }
}

fn take_in(model: &mut Model, appended: &Appended) {
    assert_eq!(appended.position, model.file.len() as u64, "written right behind the file's end");
    assert_eq!(appended.base_offset, model.end());
}

fn apply(step: &Step, log: &mut Log, model: &mut Model) {
    match step {
        Step::Lead { later_by } => {
            model.epoch += later_by;
            assert!(log.assign_epoch_start(model.epoch));
        }
        Step::Append { producer, count } => {
            let producer = producer.map(|id| (id, model.next_sequence(id)));
            let records = match producer {
                Some((id, sequence)) => idempotent_batch(id, 0, sequence, *count),
                None => client_batch(*count).build().freeze(),
            };
            let prepared = log.prepare_append(
                &records,
                model.epoch,
                &AppendLimits::default(),
                DedupeWindow::InFlight,
                NOW_MS,
            );
            let Ok(Prepared::Append(prepared)) = prepared else { panic!("{prepared:?}") };
            let appended = log.commit_append(prepared);
            take_in(model, &appended);
            model.add(*count, model.epoch, producer, &appended.bytes);
        }
        Step::Repeat { producer } => {
            let Some((batch, sequence)) = model.last_of(*producer) else { return };
            let records = idempotent_batch(*producer, 0, sequence, batch.count);
            let prepared = log.prepare_append(
                &records,
                model.epoch,
                &AppendLimits::default(),
                DedupeWindow::InFlight,
                NOW_MS,
            );
            let expected = Prepared::Duplicate {
                base_offset: batch.base_offset,
                last_offset: batch.base_offset + batch.count - 1,
                timestamp_ms: NOW_MS + batch.count - 1,
            };
            assert_eq!(prepared, Ok(expected));
        }
        Step::Follow { batches } => {
            let mut sent = Vec::new();
            let mut offset = model.end();
            for (later_by, count) in batches {
                model.epoch += later_by;
                sent.push((model.epoch, *count, super::stored_batch(offset, model.epoch, *count)));
                offset += count;
            }
            let records =
                Bytes::from(sent.iter().map(|(_, _, bytes)| bytes.to_vec()).collect::<Vec<_>>().concat());
            let appended = log.append_as_follower(&records, model.epoch).expect("good batches");
            assert_eq!(appended.is_some(), !sent.is_empty());
            if let Some(appended) = appended {
                take_in(model, &appended);
                assert_eq!(appended.bytes, records);
            }
            for (epoch, count, bytes) in sent {
                model.add(count, epoch, None, &bytes);
            }
        }
        Step::Truncate { per_mille } => {
            let offset = model.end() * per_mille / 1000;
            let truncation = log.truncate_to(offset);
            while model.batches.last().is_some_and(|batch| batch.base_offset + batch.count > offset) {
                let cut = model.batches.pop().expect("there is a last batch");
                model.file.truncate(model.file.len() - cut.size);
            }
            assert_eq!((truncation.size, truncation.log_end_offset), (model.file.len() as u64, model.end()));
        }
        Step::Restart => *log = restarted(log, model),
    }
}

/// What recovery makes of the model's file.
fn restarted(log: &Log, model: &Model) -> Log {
    let found = FoundLog {
        bytes: Bytes::copy_from_slice(&model.file),
        epochs: Some(log.epochs().pairs()),
        recovery_point: Some(model.end()),
        ..FoundLog::default()
    };
    match recover(found) {
        RecoveryPlan::Serve { truncate_to: None, log, .. } => Log::from_recovered(log),
        other => panic!("a whole file is kept whole: {other:?}"),
    }
}

fn check(log: &Log, model: &Model) {
    assert_eq!((log.log_end_offset(), log.size()), (model.end(), model.file.len() as u64));
    assert_eq!(log.batch_count(), model.batches.len());
    let mut written = log.epochs().clone();
    written.truncate_from(model.end());
    assert_eq!(written.pairs(), model.epochs(), "R6: the cache is a function of the log");
    assert!(
        log.epochs().entries().len() <= written.entries().len() + 1,
        "but for one leader that wrote nothing"
    );
    let mut cut = log.clone();
    cut.truncate_to(model.end());
    assert_eq!(restarted(log, model), cut, "R8: replay gives what was kept step by step");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn log_agrees_with_a_list_of_batches(
        steps in prop::collection::vec(step(), 1..40),
        looks in prop::collection::vec((0i64..60, 0i64..70, 0usize..600, any::<bool>()), 8),
    ) {
        let (mut log, mut model) = (Log::empty(), Model::default());
        for step in &steps {
            apply(step, &mut log, &mut model);
            check(&log, &model);
        }
        for (from, below, max_bytes, first_whole) in looks {
            prop_assert_eq!(
                log.locate(from, below, max_bytes, first_whole),
                model.locate(from, below, max_bytes, first_whole)
            );
        }
    }

    #[test]
    fn no_bytes_make_an_append_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), flips in any::<[u16; 3]>()) {
        let mut batch = idempotent_batch(1, 0, 0, 2).to_vec();
        for flip in flips {
            let position = usize::from(flip >> 3) % batch.len();
            batch[position] ^= 1 << (flip & 7);
        }
        for records in [Bytes::from(bytes), Bytes::from(batch)] {
            let mut log = Log::empty();
            let _ = log.prepare_append(&records, 0, &AppendLimits::default(), DedupeWindow::InFlight, NOW_MS);
            let _ = log.append_as_follower(&records, 5);
            let _ = recover(FoundLog { bytes: records, ..FoundLog::default() });
        }
    }
}

#[test]
fn epoch_cache_of_an_empty_log_is_empty() {
    assert_eq!(Log::empty().epochs(), &EpochCache::default());
}
