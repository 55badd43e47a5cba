use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::history::{Completion, History, Operation, Partition, ReadPurpose, Send, TopicNumber};

const GOLDEN: [(&str, [u64; 6], [u64; 2]); 8] = [
    // acked, read, acked and never read, twice in the log, read and never acked, offsets acked twice; inversions,
    // and those of originals
    ("clean", [200, 200, 0, 0, 0, 0], [0, 0]),
    ("crash", [1600, 1600, 0, 0, 0, 0], [0, 0]),
    ("group", [1600, 1600, 0, 0, 0, 0], [0, 0]),
    // Not idempotent and five in flight: 105 came before 103 and 104.
    ("dup", [200, 200, 0, 3, 0, 0], [4, 1]),
    ("reorder", [900, 900, 0, 1, 0, 0], [4, 3]),
    ("notenough", [256, 286, 0, 0, 30, 0], [2, 2]),
    ("acks1", [299, 225, 74, 0, 0, 50], [0, 0]),
    ("unclean", [1200, 560, 640, 0, 0, 422], [0, 0]),
];

fn golden(name: &str) -> Lines {
    let path = format!("{}/tests/histories/{name}.jsonl.gz", env!("CARGO_MANIFEST_DIR"));
    let file = std::fs::File::open(&path).unwrap_or_else(|error| panic!("open {path}: {error}"));
    read(std::io::BufReader::new(flate2::read::GzDecoder::new(file))).expect(name)
}

#[test]
fn histories_of_a_real_kafka_get_the_verdicts_that_were_counted_by_hand() {
    for (name, counts, inversions) in GOLDEN {
        let producer = golden(&format!("{name}.producer"));
        let consumers: Vec<Lines> = match name {
            "group" => vec![golden("group.consumer-1"), golden("group.consumer-2")],
            _ => vec![golden(&format!("{name}.consumer"))],
        };
        let judged = |read_to| {
            let consumers = consumers.iter().map(|lines| lines.lines.as_slice());
            judge([producer.lines.as_slice()], consumers, read_to)
        };
        let facts = judged(ReadTo::Anywhere);
        let found = [
            facts.acked,
            facts.read,
            facts.acked_never_read,
            facts.twice_in_log,
            facts.read_never_acked,
            facts.offsets_acked_twice,
        ];
        assert_eq!(found, counts, "{name}");
        assert_eq!([facts.inversions, facts.inversions_of_originals], inversions, "{name}");
        // What lies behind the last record that was read is lost only if that was the end.
        let missing = facts.lost.len() as u64 + facts.unread;
        assert_eq!((missing, facts.lost.is_empty()), (counts[2], counts[2] == 0), "{name}");
        if consumers.len() == 1 {
            assert_eq!(judged(ReadTo::TheEnd).lost.len() as u64, counts[2], "{name}");
        }
        assert_eq!((facts.below_start, facts.diverged), (0, 0), "{name}");
    }
    assert_eq!(golden("notenough.producer").lines.iter().filter(|line| is_error(line)).count(), 144);
}

fn is_error(line: &Line) -> bool {
    matches!(line.tool, Tool::ProducerSendError { .. })
}

#[test]
fn every_line_of_a_real_kafka_is_understood_and_printed_again() {
    for name in ["dup.producer", "dup.consumer", "notenough.producer", "group.consumer-2"] {
        let lines = golden(name);
        assert_eq!(lines.skipped, 0, "{name}");
        for line in &lines.lines {
            assert_ne!(line.tool, Tool::Other, "{name}");
            let text = serde_json::to_string(line).expect("a line has only string keys");
            assert!(text.starts_with("{\"timestamp\":"), "{text}");
            assert_eq!(&serde_json::from_str::<Line>(&text).expect("just printed"), line);
        }
    }
}

fn success(value: &str, offset: i64) -> Line {
    let (topic, key) = (Arc::from("t"), None);
    let tool = Tool::ProducerSendSuccess { key, value: value.into(), topic, partition: 0, offset };
    Line { timestamp: 0, tool }
}

fn record(value: &str, offset: i64) -> Line {
    let (topic, key) = (Arc::from("t"), None);
    let tool = Tool::RecordData { key, value: Some(value.into()), topic, partition: 0, offset };
    Line { timestamp: 0, tool }
}

fn assigned() -> Line {
    let partitions = vec![TopicPartition { topic: "t".into(), partition: 0 }];
    Line { timestamp: 0, tool: Tool::PartitionsAssigned { partitions } }
}

fn lost(facts: &Facts) -> Vec<(i64, &str)> {
    facts.lost.iter().map(|position| (position.offset, position.value.as_str())).collect()
}

#[test]
fn record_is_lost_only_where_somebody_passed_over_its_place() {
    let producer = [success("0", 0), success("1", 1), success("2", 2), success("3", 3)];
    let consumer = [record("0", 0), record("2", 2)];
    let facts = judge([&producer[..]], [&consumer[..]], ReadTo::Anywhere);
    assert_eq!((lost(&facts), facts.unread), (vec![(1, "1")], 1));
    let facts = judge([&producer[..]], [&consumer[..]], ReadTo::TheEnd);
    assert_eq!((lost(&facts), facts.unread), (vec![(1, "1"), (3, "3")], 0));
}

#[test]
fn assignment_between_two_reads_is_no_passing_over() {
    let producer = [success("0", 0), success("1", 1), success("2", 2)];
    let consumer = [record("0", 0), assigned(), record("2", 2)];
    let facts = judge([&producer[..]], [&consumer[..]], ReadTo::Anywhere);
    assert_eq!((lost(&facts), facts.unread), (vec![], 1));
}

#[test]
fn last_consumer_speaks_for_an_offset_that_changed() {
    let producer = [success("old", 1), success("new", 1)];
    let (early, late) = ([record("a", 0), record("old", 1)], [record("a", 0), record("new", 1)]);
    let facts = judge([&producer[..]], [&early[..], &late[..]], ReadTo::TheEnd);
    assert_eq!(lost(&facts), [(1, "old")]);
    assert_eq!((facts.offsets_acked_twice, facts.diverged), (1, 1));
}

#[test]
fn error_proves_nothing_and_success_without_a_place_is_not_missed() {
    let error = Tool::ProducerSendError {
        key: None,
        value: "1".into(),
        topic: "t".into(),
        exception: "class TimeoutException".into(),
        message: None,
    };
    let producer = [success("0", -1), Line { timestamp: 0, tool: error }];
    let consumer = [record("1", 0)];
    let facts = judge([&producer[..]], [&consumer[..]], ReadTo::TheEnd);
    assert_eq!((facts.acked, facts.errors, facts.read_never_acked), (1, 1, 1));
    assert!(facts.lost.is_empty());
}

#[test]
fn what_lies_below_the_first_record_left_is_not_lost() {
    let producer = [success("0", 0), success("5", 5)];
    let consumer = [record("5", 5)];
    let facts = judge([&producer[..]], [&consumer[..]], ReadTo::TheEnd);
    assert_eq!((facts.lost.len(), facts.below_start), (0, 1));
}

#[test]
fn hostile_lines_have_typed_errors() {
    let read = |text: &str| read(text.as_bytes());
    assert_eq!(read("SLF4J: no providers\n\n").expect("logging is skipped").skipped, 1);
    for text in ["{}", "{\"timestamp\":1,\"name\":7}", "{\"name\":\"startup_complete\"}", "{\"a\":}"] {
        assert!(matches!(read(text), Err(LineError::Malformed { number: 1, .. })), "{text}");
    }
    let text = "{\"timestamp\":1,\"name\":\"record_data\",\"offset\":\"x\"}";
    assert!(matches!(read(text), Err(LineError::Malformed { .. })));
    let unknown = read("{\"timestamp\":1,\"name\":\"offset_reset_strategy_set\",\"x\":1}").expect("skipped");
    assert_eq!(unknown.lines[0].tool, Tool::Other);
}

#[test]
fn transcript_of_a_run_says_what_its_history_says() {
    let partition = Partition { topic: TopicNumber(0), index: 0 };
    let send = |content, offset, completion| {
        Operation::Send(Send {
            client: 3,
            partition,
            content,
            acks: -1,
            idempotent: true,
            ordered: true,
            offset,
            completion,
            invoked_us: 0,
            completed_us: 5_000,
        })
    };
    let read = |records: Vec<(i64, u64)>| {
        let position = records.last().map_or(0, |(offset, _)| offset + 1);
        Operation::Read(crate::history::Read {
            client: 4,
            partition,
            purpose: ReadPurpose::ReadBack,
            records,
            position,
            at_us: 9_000,
        })
    };
    let history = History::from_operations(
        ["orders".to_owned()],
        [
            send(70, Some(0), Completion::Ok),
            send(71, Some(1), Completion::Ok),
            send(72, None, Completion::Info),
            send(73, None, Completion::Open),
            read(vec![(0, 70), (2, 72)]),
        ],
    );
    let transcript = Transcript::of(&history);
    let facts = judge(
        transcript.producers.values().map(Vec::as_slice),
        transcript.consumers.values().map(Vec::as_slice),
        ReadTo::TheEnd,
    );
    assert_eq!(lost(&facts), [(1, "3.1")]);
    assert_eq!((facts.acked, facts.errors, facts.read, facts.read_never_acked), (2, 1, 2, 1));
    let last = transcript.producers[&3].last().expect("it has lines");
    assert!(matches!(last.tool, Tool::ToolData { sent: 4, acked: 2, .. }));
}

/// Obviously right: the log is a list, cut and written again; the last reader reads all of it.
#[derive(Clone, Debug)]
enum Step {
    Write(u8),
    Cut(u8),
    Read(u8, u8),
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]
    #[test]
    fn oracle_finds_exactly_what_was_cut_and_not_written_back(
        steps in proptest::collection::vec(
            prop_oneof![
                4 => (1_u8..5).prop_map(Step::Write),
                1 => any::<u8>().prop_map(Step::Cut),
                1 => (any::<u8>(), any::<u8>()).prop_map(|(from, count)| Step::Read(from, count)),
            ],
            1..40,
        )
    ) {
        let mut log: Vec<String> = Vec::new();
        let mut acked: Vec<(i64, String)> = Vec::new();
        let mut consumers: Vec<Vec<Line>> = Vec::new();
        let mut next = 0;
        for step in steps {
            match step {
                Step::Write(count) => for _ in 0..count {
                    acked.push((log.len() as i64, next.to_string()));
                    log.push(next.to_string());
                    next += 1;
                },
                Step::Cut(to) => log.truncate(usize::from(to) % (log.len() + 1)),
                Step::Read(from, count) => {
                    let from = usize::from(from) % (log.len() + 1);
                    let read = log.iter().enumerate().skip(from).take(usize::from(count));
                    consumers.push(read.map(|(offset, value)| record(value, offset as i64)).collect());
                }
            }
        }
        // A log that was cut to nothing has no start to speak of: the last reader finds one record at least.
        if log.is_empty() {
            log.push("end".to_owned());
        }
        consumers.push(log.iter().enumerate().map(|(offset, value)| record(value, offset as i64)).collect());
        let producer: Vec<Line> = acked.iter().map(|(offset, value)| success(value, *offset)).collect();
        let facts = judge([producer.as_slice()], consumers.iter().map(Vec::as_slice), ReadTo::TheEnd);
        let mut gone: Vec<(i64, &str)> = acked
            .iter()
            .filter(|(offset, value)| log.get(*offset as usize) != Some(value))
            .map(|(offset, value)| (*offset, value.as_str()))
            .collect();
        gone.sort_unstable();
        prop_assert_eq!(lost(&facts), gone);
    }
}
