use bytes::Bytes;
use proptest::prelude::*;

use super::stored_batch;
use crate::log::{Damage, Defect, FoundLog, Log, RecoveryPlan, recover};

/// Six batches of epochs 1, 1, 2, 2, 2, 4 at offsets 0, 2, 3, 6, 7, 9; the log ends at 10.
fn parts() -> Vec<Bytes> {
    [(0, 1, 2), (2, 1, 1), (3, 2, 3), (6, 2, 1), (7, 2, 2), (9, 4, 1)]
        .map(|(base_offset, epoch, count)| stored_batch(base_offset, epoch, count))
        .to_vec()
}

const EPOCHS: [(i32, i64); 3] = [(1, 0), (2, 3), (4, 9)];
const BASE_OFFSETS: [i64; 7] = [0, 2, 3, 6, 7, 9, 10];

fn found(bytes: &[u8]) -> FoundLog {
    FoundLog { bytes: Bytes::copy_from_slice(bytes), epochs: Some(EPOCHS.to_vec()), ..FoundLog::default() }
}

/// `(bytes cut to, log end offset)` or the damage.
fn outcome(found: FoundLog) -> Result<(Option<u64>, i64), Damage> {
    match recover(found) {
        RecoveryPlan::Serve { truncate_to, log, .. } => Ok((truncate_to, log.log_end_offset())),
        RecoveryPlan::Refuse(damage) => Err(damage),
    }
}

fn flipped(position: usize) -> Vec<u8> {
    let mut file = parts().concat();
    file[position] ^= 0x10;
    file
}

#[test]
fn whole_file_is_kept_whole() {
    for clean_shutdown in [true, false] {
        let RecoveryPlan::Serve { truncate_to, sync, rewrite_epochs, log, cut, .. } =
            recover(FoundLog { clean_shutdown, recovery_point: Some(10), ..found(&parts().concat()) })
        else {
            panic!("a whole file is served");
        };
        assert_eq!((truncate_to, sync, rewrite_epochs, cut), (None, !clean_shutdown, None, None));
        assert_eq!(Log::from_recovered(log).epochs().pairs(), EPOCHS);
    }
}

#[test]
fn nothing_found_is_an_empty_log() {
    assert_eq!(outcome(FoundLog::default()), Ok((None, 0)));
    assert_eq!(outcome(FoundLog { log_start_offset: 40, ..FoundLog::default() }), Ok((None, 40)));
}

#[test]
fn torn_and_zeroed_tails_are_cut_after_an_unclean_stop() {
    let file = parts().concat();
    let kept = (file.len() - parts()[5].len()) as u64;
    assert_eq!(outcome(found(&file[..file.len() - 1])), Ok((Some(kept), 9)));
    let zeroed = [&file[..kept as usize], &[0u8; 300]].concat();
    assert_eq!(outcome(found(&zeroed)), Ok((Some(kept), 9)));
    let few_zeros = [&file[..kept as usize], &[0u8; 3]].concat();
    assert_eq!(outcome(FoundLog { recovery_point: Some(9), ..found(&few_zeros) }), Ok((Some(kept), 9)));
}

#[test]
fn good_batches_behind_a_bad_one_are_cut_too() {
    let kept = parts()[0].len() as u64;
    assert_eq!(outcome(found(&flipped(kept as usize + 70))), Ok((Some(kept), 2)));
}

#[test]
fn damage_below_the_recovery_point_is_refused() {
    let position = parts()[0].len();
    let damage = outcome(FoundLog { recovery_point: Some(3), ..found(&flipped(position + 70)) });
    let damage = damage.expect_err("offset 2 was synced");
    assert_eq!((damage.position, damage.offset), (position as u64, 2));
    assert!(matches!(damage.defect, Defect::Batch(_)));
    assert!(outcome(FoundLog { recovery_point: Some(2), ..found(&flipped(position + 70)) }).is_ok());
}

#[test]
fn file_that_ends_below_the_recovery_point_is_refused() {
    let shorter = parts()[..3].concat();
    for clean_shutdown in [true, false] {
        let damage = outcome(FoundLog { clean_shutdown, recovery_point: Some(7), ..found(&shorter) });
        assert_eq!(damage.expect_err("missing").defect, Defect::Missing { recovery_point: 7 });
    }
    assert_eq!(outcome(FoundLog { recovery_point: Some(6), ..found(&shorter) }), Ok((None, 6)));
}

#[test]
fn any_damage_after_a_clean_stop_is_refused() {
    let file = parts().concat();
    for bytes in [&file[..file.len() - 1], &[&file[..], &[0; 5]].concat(), &flipped(file.len() - 1)] {
        assert!(outcome(FoundLog { clean_shutdown: true, ..found(bytes) }).is_err());
    }
}

#[test]
fn offsets_with_a_gap_end_the_log_unless_it_may_have_gaps() {
    let gap = [stored_batch(0, 1, 1), stored_batch(5, 1, 1)].concat();
    let kept = stored_batch(0, 1, 1).len() as u64;
    let found = FoundLog { bytes: Bytes::from(gap), ..FoundLog::default() };
    assert_eq!(outcome(found.clone()), Ok((Some(kept), 1)));
    assert_eq!(outcome(FoundLog { has_gaps: true, ..found }), Ok((None, 6)));
}

#[test]
fn falling_epoch_ends_the_log() {
    let file = [stored_batch(0, 3, 1), stored_batch(1, 2, 1)].concat();
    let found = FoundLog { bytes: Bytes::from(file), ..FoundLog::default() };
    assert_eq!(outcome(found), Ok((Some(stored_batch(0, 3, 1).len() as u64), 1)));
}

#[test]
fn batch_of_a_branch_that_was_cut_ends_the_log() {
    // The file shows epoch 1 at offset 2; the checkpoint knows that epoch 3 began there.
    let file = [stored_batch(0, 1, 2), stored_batch(2, 1, 1)].concat();
    let found =
        FoundLog { bytes: Bytes::from(file), epochs: Some(vec![(1, 0), (3, 2)]), ..FoundLog::default() };
    let RecoveryPlan::Serve { log, rewrite_epochs, cut, .. } = recover(found) else { panic!("served") };
    assert_eq!(log.log_end_offset(), 2);
    assert_eq!(cut.expect("cut").defect, Defect::Stale { found: 1, checkpoint: 3 });
    assert_eq!(rewrite_epochs, Some(vec![(1, 0)]));
}

#[test]
fn epoch_checkpoint_is_written_anew_unless_it_says_what_the_batches_say() {
    let rewritten = |epochs: Option<Vec<(i32, i64)>>| {
        let plan = recover(FoundLog { epochs, ..found(&parts().concat()) });
        let RecoveryPlan::Serve { rewrite_epochs, truncate_to: None, .. } = plan else {
            panic!("kept whole")
        };
        rewrite_epochs
    };
    assert_eq!(rewritten(Some(EPOCHS.to_vec())), None);
    for other in [None, Some(vec![]), Some(vec![(1, 0), (2, 3)]), Some(vec![(1, 0), (2, 3), (4, 9), (6, 10)])]
    {
        assert_eq!(rewritten(other), Some(EPOCHS.to_vec()));
    }
}

#[test]
fn high_watermark_is_clamped_into_the_log() {
    let clamped = |high_watermark| {
        let RecoveryPlan::Serve { high_watermark, .. } =
            recover(FoundLog { high_watermark, ..found(&parts().concat()) })
        else {
            panic!("served");
        };
        high_watermark
    };
    assert_eq!([None, Some(4), Some(11), Some(-3)].map(clamped), [0, 4, 10, 0]);
}

#[test]
fn segment_of_a_real_broker_is_kept_whole() {
    let golden = include_bytes!("../../../tests/golden/codecs-0/00000000000000000000.log");
    let found = FoundLog {
        bytes: Bytes::from_static(golden),
        clean_shutdown: true,
        recovery_point: Some(58),
        epochs: Some(vec![(0, 0), (1, 54), (2, 56)]),
        high_watermark: Some(58),
        ..FoundLog::default()
    };
    let RecoveryPlan::Serve { truncate_to: None, rewrite_epochs: None, log, high_watermark: 58, .. } =
        recover(found)
    else {
        panic!("kept whole, with the epochs of its checkpoint");
    };
    let log = Log::from_recovered(log);
    assert_eq!((log.log_end_offset(), log.producers().len()), (58, 1));
}

/// What a fault does to a file.
#[derive(Clone, Debug)]
enum Fault {
    Cut { at: usize },
    Zero { from: usize, length: usize },
    Flip { at: usize, bit: u8 },
}

fn fault() -> impl Strategy<Value = Fault> {
    prop_oneof![
        any::<prop::sample::Index>().prop_map(|at| Fault::Cut { at: at.index(parts().concat().len()) }),
        (any::<prop::sample::Index>(), 1usize..200)
            .prop_map(|(from, length)| Fault::Zero { from: from.index(parts().concat().len()), length }),
        (any::<prop::sample::Index>(), 0u8..8)
            .prop_map(|(at, bit)| Fault::Flip { at: at.index(parts().concat().len()), bit }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// R3 and R10. The leader epoch of a batch is under no checksum: flips in it are left out, for one that raises
    /// an epoch cannot be told from a checkpoint that is behind.
    #[test]
    fn recovered_log_is_a_prefix_with_everything_below_the_recovery_point(
        fault in fault(),
        recovery_point in prop::sample::select(BASE_OFFSETS.to_vec()),
    ) {
        let whole = parts().concat();
        let mut file = whole.clone();
        match fault {
            Fault::Cut { at } => file.truncate(at),
            Fault::Zero { from, length } => {
                let end = (from + length).min(file.len());
                file[from..end].fill(0);
            }
            Fault::Flip { at, bit } => file[at] ^= 1 << bit,
        }
        let damaged_at = (0..whole.len()).find(|position| file.get(*position) != whole.get(*position));
        let mut intact = 0;
        let mut batch_start = 0;
        for part in parts() {
            if damaged_at.is_none_or(|position| position >= batch_start + part.len()) {
                intact += 1;
                batch_start += part.len();
            } else {
                break;
            }
        }
        if let (Fault::Flip { .. }, Some(position)) = (&fault, damaged_at) {
            prop_assume!(!(12..16).contains(&(position - batch_start)));
        }
        let plan = recover(FoundLog { recovery_point: Some(recovery_point), ..found(&file) });
        match plan {
            RecoveryPlan::Serve { truncate_to, log, .. } => {
                prop_assert!(BASE_OFFSETS[intact] >= recovery_point);
                prop_assert_eq!(log.log_end_offset(), BASE_OFFSETS[intact]);
                prop_assert_eq!(log.size(), batch_start as u64);
                file.truncate(truncate_to.map_or(file.len(), |size| size as usize));
                prop_assert_eq!(&file[..], &whole[..batch_start]);
                let again = recover(FoundLog { recovery_point: Some(recovery_point), ..found(&file) });
                let RecoveryPlan::Serve { truncate_to: None, log: same, .. } = again else {
                    panic!("R11: recovered once, it is whole");
                };
                prop_assert_eq!(same, log);
            }
            RecoveryPlan::Refuse(damage) => {
                prop_assert!(BASE_OFFSETS[intact] < recovery_point, "{}", damage);
                prop_assert_eq!(damage.position, batch_start as u64);
            }
        }
    }
}
