//! Hand-made good and bad histories, and random histories of a small correct log.

use proptest::prelude::*;

use super::*;
use crate::history::{Completion, Operation, Read, ReadPurpose, Reset, ResetReason, Send, TopicNumber};

const PARTITION: Partition = Partition { topic: TopicNumber(0), index: 0 };
const OTHER: Partition = Partition { topic: TopicNumber(0), index: 1 };

fn key(offset: i64, content: u64) -> Key {
    Key { partition: PARTITION, offset, content }
}

fn sent(content: u64, offset: Option<i64>) -> Send {
    Send {
        client: 1,
        partition: PARTITION,
        content,
        acks: -1,
        idempotent: true,
        ordered: true,
        offset,
        completion: if offset.is_some() { Completion::Ok } else { Completion::Info },
        invoked_us: content,
        completed_us: content + 1,
    }
}

fn read(purpose: ReadPurpose, records: &[(i64, u64)], position: i64) -> Operation {
    Operation::Read(Read {
        client: 2,
        partition: PARTITION,
        purpose,
        records: records.to_vec(),
        position,
        at_us: 100,
    })
}

fn history(operations: Vec<Operation>) -> History {
    History::from_operations(["orders".to_owned()], operations)
}

fn acked(pairs: &[(u64, i64)]) -> Vec<Operation> {
    pairs.iter().map(|(content, offset)| Operation::Send(sent(*content, Some(*offset)))).collect()
}

/// Identifier and count of everything found.
fn found(history: &History, licences: &Licences) -> Vec<(&'static str, u64)> {
    all(history, licences)
        .iter()
        .flat_map(|(_, report)| report.anomalies.iter().map(|anomaly| (anomaly.invariant, anomaly.count)))
        .collect()
}

#[test]
fn everything_read_back_is_clean_and_every_check_compared_something() {
    let mut operations = acked(&[(10, 0), (11, 1), (12, 2)]);
    operations.push(read(ReadPurpose::Workload, &[(0, 10), (1, 11)], 2));
    operations.push(read(ReadPurpose::ReadBack, &[(0, 10), (1, 11), (2, 12)], 3));
    let history = history(operations);
    for (id, report) in all(&history, &Licences::none()) {
        assert!(report.anomalies.is_empty(), "{id}");
        assert!(report.comparisons > 0, "{id} compared nothing");
    }
}

#[test]
fn acknowledged_record_that_readers_passed_is_lost() {
    let mut operations = acked(&[(10, 0), (11, 1), (12, 2)]);
    operations.push(read(ReadPurpose::Workload, &[(0, 10), (2, 12)], 3));
    let history = history(operations);
    assert_eq!(found(&history, &Licences::none()), [("V1", 1)]);
    assert_eq!(found(&history, &Licences::new([key(1, 11)])), []);
    assert_eq!(found(&history, &Licences::new([key(1, 99)])), [("V1", 1)], "a licence is for a key");
}

#[test]
fn record_read_once_and_gone_at_the_end_is_lost_and_phantom() {
    let mut operations = acked(&[(10, 0), (11, 1)]);
    operations.push(read(ReadPurpose::Workload, &[(0, 10), (1, 11)], 2));
    operations.push(read(ReadPurpose::ReadBack, &[(0, 10)], 2));
    assert_eq!(found(&history(operations), &Licences::none()), [("V1", 1), ("V17", 1)]);
}

#[test]
fn record_beyond_every_reader_is_unread_not_lost() {
    let mut operations = acked(&[(10, 0), (11, 1)]);
    operations.push(read(ReadPurpose::Workload, &[(0, 10)], 1));
    let history = history(operations);
    assert_eq!(found(&history, &Licences::none()), []);
    let counts = unseen(&history, &Seen::of(&history), &Licences::none());
    assert_eq!(counts, Unseen { seen: 1, unread: vec![key(1, 11)], ..Unseen::default() });
}

#[test]
fn indeterminate_record_may_appear_or_not() {
    let mut operations = acked(&[(10, 0), (12, 2)]);
    operations.push(Operation::Send(sent(11, None)));
    operations.push(Operation::Send(sent(13, None)));
    operations.push(read(ReadPurpose::ReadBack, &[(0, 10), (1, 11), (2, 12)], 3));
    assert_eq!(found(&history(operations), &Licences::none()), []);
}

#[test]
fn second_copy_of_an_idempotent_value_is_a_duplicate() {
    let mut operations = acked(&[(10, 0), (11, 1)]);
    operations.push(read(ReadPurpose::ReadBack, &[(0, 10), (1, 11), (2, 11)], 3));
    let history = history(operations.clone());
    assert_eq!(found(&history, &Licences::none()), [("V3", 1)]);
    assert_eq!(found(&history, &Licences::new([key(5, 11)])), [], "its sequence was licensed away once");
    assert_eq!(
        found(&history, &Licences::new([key(5, 10)])),
        [("V3", 1)],
        "an unrelated licence does not help"
    );
}

#[test]
fn retry_without_idempotence_licenses_a_duplicate() {
    let mut plain = sent(11, Some(1));
    plain.idempotent = false;
    let operations = vec![Operation::Send(plain), read(ReadPurpose::ReadBack, &[(1, 11), (2, 11)], 3)];
    assert_eq!(found(&history(operations), &Licences::none()), []);
}

#[test]
fn value_sent_twice_by_the_application_may_have_two_offsets() {
    let mut operations = acked(&[(11, 1), (11, 2)]);
    operations.push(read(ReadPurpose::ReadBack, &[(1, 11), (2, 11)], 3));
    assert_eq!(found(&history(operations), &Licences::none()), []);
}

#[test]
fn two_protected_values_at_one_offset_are_inconsistent() {
    let mut operations = acked(&[(10, 0)]);
    operations.push(Operation::Send(sent(11, None)));
    operations.push(read(ReadPurpose::Workload, &[(0, 10)], 1));
    let Operation::Read(mut other) = read(ReadPurpose::Workload, &[(0, 11)], 1) else {
        unreachable!("a read")
    };
    other.client = 3;
    operations.push(Operation::Read(other));
    let history = history(operations);
    assert_eq!(found(&history, &Licences::none()), [("V4", 1)]);
    assert_eq!(found(&history, &Licences::new([key(0, 10)])), []);
}

#[test]
fn ack_that_names_the_offset_of_another_record_is_inconsistent() {
    let mut operations = acked(&[(10, 0), (11, 0)]);
    operations[1] = Operation::Send(Send { client: 2, ..sent(11, Some(0)) });
    operations.push(read(ReadPurpose::ReadBack, &[(0, 10)], 1));
    assert_eq!(found(&history(operations), &Licences::none()), [("V1", 1), ("V4", 1)]);
}

#[test]
fn removed_record_may_be_absent_and_may_not_come_twice() {
    let mut operations = acked(&[(10, 0), (11, 1), (12, 2)]);
    operations.push(read(ReadPurpose::Workload, &[(0, 10), (1, 11)], 2));
    operations.push(read(ReadPurpose::ReadBack, &[(2, 12)], 3));
    let removed = |keys: &[Key]| Licences::none().with_removed(keys.iter().copied());
    let history_of = |operations: &[Operation]| history(operations.to_vec());
    assert_eq!(found(&history_of(&operations), &removed(&[key(0, 10), key(1, 11)])), []);
    assert_eq!(found(&history_of(&operations), &removed(&[key(0, 10)])), [("V1", 1), ("V17", 1)]);
    operations.push(read(ReadPurpose::ReadBack, &[(3, 10)], 4));
    assert_eq!(found(&history_of(&operations), &removed(&[key(0, 10), key(1, 11)])), [("V3", 1)]);
}

#[test]
fn later_success_with_lower_offset_is_a_reordering() {
    let operations = acked(&[(10, 5), (11, 3), (12, 4)]);
    let history = history(operations);
    assert_eq!(found(&history, &Licences::none()), [("V13", 1)]);
    assert_eq!(found(&history, &Licences::new([key(5, 10)])), [], "the log went back over a licensed record");
    assert_eq!(found(&history, &Licences::new([key(6, 10)])), [("V13", 1)]);
}

#[test]
fn order_is_not_promised_with_many_in_flight_and_no_idempotence() {
    let mut operations = acked(&[(10, 5), (11, 3)]);
    for operation in &mut operations {
        let Operation::Send(send) = operation else { unreachable!("only sends") };
        send.ordered = false;
    }
    assert_eq!(found(&history(operations), &Licences::none()), []);
}

#[test]
fn value_nobody_sent_there_is_a_phantom() {
    let mut elsewhere = sent(12, Some(0));
    elsewhere.partition = OTHER;
    let operations = vec![Operation::Send(elsewhere), read(ReadPurpose::ReadBack, &[(0, 12), (1, 77)], 2)];
    let report = phantom(&history(operations.clone()), &Seen::of(&history(operations)), &Licences::none());
    assert_eq!(report.anomalies.len(), 1);
    assert_eq!((report.anomalies[0].count, report.anomalies[0].offsets), (2, (0, 1)));
}

fn reset(from: i64, to: i64) -> Operation {
    Operation::Reset(Reset {
        client: 2,
        partition: PARTITION,
        reason: ResetReason::Truncation,
        from,
        to: Some(to),
        reads_before: 0,
        at_us: 100,
    })
}

#[test]
fn poll_that_jumps_over_what_is_there_is_a_skip() {
    let jump = |between: Option<Operation>| {
        let mut operations = acked(&[(10, 0), (11, 1), (12, 2)]);
        operations.push(read(ReadPurpose::Workload, &[(0, 10)], 1));
        operations.extend(between);
        operations.push(read(ReadPurpose::Workload, &[(2, 12)], 3));
        operations.push(read(ReadPurpose::ReadBack, &[(0, 10), (1, 11), (2, 12)], 3));
        history(operations)
    };
    assert_eq!(found(&jump(None), &Licences::none()), [("V9", 1)]);
    assert_eq!(found(&jump(Some(reset(1, 2))), &Licences::none()), [], "it was told to go there");
    assert_eq!(found(&jump(None), &Licences::none().with_removed([key(1, 11)])), []);
}

#[test]
fn skip_inside_one_poll_counts_and_a_gap_that_holds_nothing_does_not() {
    let mut operations = acked(&[(10, 0), (11, 1), (12, 2), (14, 4)]);
    operations.push(read(ReadPurpose::Workload, &[(0, 10), (2, 12), (4, 14)], 5));
    operations.push(read(ReadPurpose::ReadBack, &[(0, 10), (1, 11), (2, 12), (4, 14)], 5));
    assert_eq!(found(&history(operations), &Licences::none()), [("V9", 1)]);
}

#[test]
fn poll_that_goes_back_untold_is_nonmonotonic() {
    let back = |between: Option<Operation>| {
        let mut operations = acked(&[(10, 0), (11, 1)]);
        operations.push(read(ReadPurpose::Workload, &[(0, 10), (1, 11)], 2));
        operations.extend(between);
        operations.push(read(ReadPurpose::Workload, &[(1, 11)], 2));
        history(operations)
    };
    assert_eq!(found(&back(None), &Licences::none()), [("V11", 1)]);
    assert_eq!(found(&back(Some(reset(2, 1))), &Licences::none()), []);
    assert_eq!(found(&back(None), &Licences::new([key(1, 99)])), [], "a licence lies between");
}

#[test]
fn consumers_do_not_disturb_each_other() {
    let mut operations = acked(&[(10, 0), (11, 1)]);
    operations.push(read(ReadPurpose::Workload, &[(0, 10), (1, 11)], 2));
    let Operation::Read(mut other) = read(ReadPurpose::Workload, &[(0, 10)], 1) else {
        unreachable!("a read")
    };
    other.client = 3;
    operations.push(Operation::Read(other));
    operations.push(read(ReadPurpose::ReadBack, &[(0, 10), (1, 11)], 2));
    assert_eq!(found(&history(operations), &Licences::none()), []);
}

#[test]
fn reader_of_a_branch_that_is_gone_must_be_told_before_it_reads_another() {
    let switch = |between: Option<Operation>| {
        let mut operations = acked(&[(10, 0), (11, 1), (20, 1), (21, 2)]);
        operations.push(read(ReadPurpose::Workload, &[(0, 10), (1, 11)], 2));
        operations.extend(between);
        operations.push(read(ReadPurpose::Workload, &[(2, 21)], 3));
        operations.push(read(ReadPurpose::ReadBack, &[(0, 10), (1, 20), (2, 21)], 3));
        history(operations)
    };
    let gone = || Licences::new([key(1, 11)]);
    assert_eq!(found(&switch(None), &gone()), [("V20", 1)]);
    assert_eq!(found(&switch(Some(reset(2, 2))), &gone()), []);
    assert_eq!(
        found(&switch(None), &gone().with_returned([key(1, 11)])),
        [],
        "it came back, and was read on"
    );
    let deleted = Licences::none().with_deleted([key(1, 11)]);
    assert_eq!(found(&switch(None), &deleted), [], "the topic was created again");
}

/// A history of a single log that appends in order: what is acknowledged stands at its offset, some answers are
/// lost, and one reader and a final pass see a prefix and everything.
fn correct_history() -> impl Strategy<Value = History> {
    (proptest::collection::vec((any::<bool>(), any::<bool>()), 1..40), 0usize..40).prop_map(
        |(attempts, prefix)| {
            let mut operations = Vec::new();
            let mut log: Vec<(i64, u64)> = Vec::new();
            for (number, (appended, answered)) in attempts.into_iter().enumerate() {
                let content = number as u64;
                let offset = log.len() as i64;
                if appended {
                    log.push((offset, content));
                }
                operations.push(Operation::Send(sent(content, (appended && answered).then_some(offset))));
            }
            let prefix = prefix.min(log.len());
            operations.push(read(ReadPurpose::Workload, &log[..prefix], prefix as i64));
            operations.push(read(ReadPurpose::ReadBack, &log, log.len() as i64));
            history(operations)
        },
    )
}

proptest! {
    #[test]
    fn correct_histories_raise_nothing(history in correct_history()) {
        prop_assert_eq!(found(&history, &Licences::none()), []);
        let counts = unseen(&history, &Seen::of(&history), &Licences::none());
        prop_assert_eq!(counts.seen, history.acknowledged().count() as u64);
    }

    #[test]
    fn removing_one_acknowledged_record_from_the_final_read_is_found(history in correct_history(), pick: prop::sample::Index) {
        let keys: Vec<Key> = history.acknowledged().map(|(_, key)| key).collect();
        prop_assume!(!keys.is_empty());
        let gone = keys[pick.index(keys.len())];
        let mut damaged = history.clone();
        for read in &mut damaged.reads {
            read.records.retain(|record| *record != (gone.offset, gone.content));
        }
        prop_assert_eq!(found(&damaged, &Licences::none()), [("V1", 1)]);
        prop_assert_eq!(found(&damaged, &Licences::new([gone])), []);
    }

    #[test]
    fn appending_a_copy_of_a_record_is_found(history in correct_history(), pick: prop::sample::Index) {
        let last = history.reads.last().expect("the final pass").clone();
        prop_assume!(!last.records.is_empty());
        let copied = last.records[pick.index(last.records.len())].1;
        let mut damaged = history.clone();
        let end = last.position;
        let final_pass = damaged.reads.last_mut().expect("the final pass");
        final_pass.records.push((end, copied));
        final_pass.position = end + 1;
        prop_assert_eq!(found(&damaged, &Licences::none()), [("V3", 1)]);
    }
}
