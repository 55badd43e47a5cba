//! `*-offset-checkpoint` and `leader-epoch-checkpoint`: a line with version 0, a line with the number of entries, a
//! line per entry. An empty file has no entries, as in Kafka.

use std::fmt::Write;

use super::CheckpointError;

const VERSION: i32 = 0;

/// One line of an offset checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OffsetEntry {
    pub topic: String,
    pub partition: i32,
    pub offset: i64,
}

/// The entries of `replication-offset-checkpoint`, `recovery-point-offset-checkpoint` or
/// `log-start-offset-checkpoint`, in the order of the file.
pub fn parse_offsets(text: &str) -> Result<Vec<OffsetEntry>, CheckpointError> {
    parse(text, "a topic, a partition and an offset", |line| {
        let mut words = line.split_ascii_whitespace();
        let topic = words.next()?.to_string();
        let partition = words.next()?.parse().ok().filter(|partition: &i32| *partition >= 0)?;
        let offset = words.next()?.parse().ok().filter(|offset: &i64| *offset >= 0)?;
        words.next().is_none().then_some(OffsetEntry { topic, partition, offset })
    })
}

/// The file with these entries, in the order given.
pub fn render_offsets(entries: &[OffsetEntry]) -> String {
    render(entries, |text, OffsetEntry { topic, partition, offset }| {
        writeln!(text, "{topic} {partition} {offset}").expect("a String takes every text");
    })
}

/// `(epoch, start offset)` of `leader-epoch-checkpoint`; both increase, else the line is malformed.
pub fn parse_epochs(text: &str) -> Result<Vec<(i32, i64)>, CheckpointError> {
    let mut last = (-1, -1);
    parse(text, "an epoch and an offset, both above those before", |line| {
        let mut words = line.split_ascii_whitespace();
        let epoch: i32 = words.next()?.parse().ok()?;
        let start_offset: i64 = words.next()?.parse().ok()?;
        let good = words.next().is_none() && epoch > last.0 && start_offset > last.1;
        last = (epoch, start_offset);
        good.then_some(last)
    })
}

pub fn render_epochs(epochs: &[(i32, i64)]) -> String {
    render(epochs, |text, (epoch, start_offset)| {
        writeln!(text, "{epoch} {start_offset}").expect("a String takes every text");
    })
}

fn parse<T>(
    text: &str,
    expected: &'static str,
    mut entry: impl FnMut(&str) -> Option<T>,
) -> Result<Vec<T>, CheckpointError> {
    let mut lines = text.lines().enumerate().map(|(index, line)| (index + 1, line));
    let Some((_, version)) = lines.next() else { return Ok(Vec::new()) };
    if version.trim().parse() != Ok(VERSION) {
        let found = version.chars().take(20).collect();
        return Err(CheckpointError::UnknownVersion { found, known: VERSION });
    }
    let announced = lines.next().and_then(|(_, count)| count.trim().parse().ok());
    let announced: usize =
        announced.ok_or(CheckpointError::Malformed { line: 2, expected: "a number of entries" })?;
    let entries: Vec<T> = lines
        .map(|(line, text)| entry(text).ok_or(CheckpointError::Malformed { line, expected }))
        .collect::<Result<_, _>>()?;
    if entries.len() != announced {
        return Err(CheckpointError::WrongCount { announced, found: entries.len() });
    }
    Ok(entries)
}

fn render<T>(entries: &[T], mut line: impl FnMut(&mut String, &T)) -> String {
    let mut text = format!("{VERSION}\n{}\n", entries.len());
    entries.iter().for_each(|entry| line(&mut text, entry));
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn golden_offset_checkpoints_come_back_byte_for_byte() {
        for golden in [
            include_str!("../../../tests/golden/replication-offset-checkpoint"),
            include_str!("../../../tests/golden/recovery-point-offset-checkpoint"),
            include_str!("../../../tests/golden/log-start-offset-checkpoint"),
            include_str!("../../../tests/golden/cleaner-offset-checkpoint"),
        ] {
            assert_eq!(render_offsets(&parse_offsets(golden).expect("Kafka wrote it")), golden);
        }
        let marks =
            parse_offsets(include_str!("../../../tests/golden/replication-offset-checkpoint")).expect("good");
        assert!(marks.contains(&OffsetEntry { topic: "codecs".to_string(), partition: 0, offset: 58 }));
    }

    #[test]
    fn golden_epoch_checkpoints_come_back_byte_for_byte() {
        for golden in [
            include_str!("../../../tests/golden/codecs-0/leader-epoch-checkpoint"),
            include_str!("../../../tests/golden/txn-0/leader-epoch-checkpoint"),
            include_str!("../../../tests/golden/__cluster_metadata-0/leader-epoch-checkpoint"),
        ] {
            assert_eq!(render_epochs(&parse_epochs(golden).expect("Kafka wrote it")), golden);
        }
        let epochs = parse_epochs(include_str!("../../../tests/golden/codecs-0/leader-epoch-checkpoint"));
        assert_eq!(epochs, Ok(vec![(0, 0), (1, 54), (2, 56)]));
    }

    #[test]
    fn wrong_files_are_refused() {
        assert_eq!(parse_epochs(""), Ok(vec![]), "an empty file has no entries");
        assert!(matches!(parse_epochs("1\n0\n"), Err(CheckpointError::UnknownVersion { .. })));
        assert!(matches!(parse_epochs("0\n"), Err(CheckpointError::Malformed { line: 2, .. })));
        assert!(matches!(
            parse_epochs("0\n2\n1 1\n"),
            Err(CheckpointError::WrongCount { announced: 2, found: 1 })
        ));
        assert!(matches!(parse_epochs("0\n2\n1 1\n1 2\n"), Err(CheckpointError::Malformed { line: 4, .. })));
        assert!(matches!(parse_epochs("0\n1\n1 x\n"), Err(CheckpointError::Malformed { line: 3, .. })));
        assert!(matches!(parse_offsets("0\n1\na 0 1 2\n"), Err(CheckpointError::Malformed { line: 3, .. })));
        assert!(matches!(parse_offsets("0\n1\na 0 -1\n"), Err(CheckpointError::Malformed { line: 3, .. })));
        assert!(matches!(parse_offsets("0\n18446744073709551616\n"), Err(CheckpointError::Malformed { .. })));
    }

    proptest! {
        #[test]
        fn no_text_makes_the_readers_panic(text in "[0-9a-z \n.-]{0,80}") {
            let _ = parse_offsets(&text);
            let _ = parse_epochs(&text);
        }
    }
}
