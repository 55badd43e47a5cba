//! `meta.properties` (whose disk this is) and `partition.metadata` (whose partition a directory holds).

use std::str::FromStr;

use acked_wire::Uuid;

use super::CheckpointError;

/// `meta.properties` of version 1: which node of which cluster owns a log directory (KIP-631, KIP-858).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetaProperties {
    pub cluster_id: String,
    pub node_id: i32,
    pub directory_id: Uuid,
}

impl MetaProperties {
    const VERSION: i32 = 1;

    /// Reads Java properties; unknown names are ignored, as Kafka does.
    pub fn parse(text: &str) -> Result<MetaProperties, CheckpointError> {
        let value = |name: &'static str| property(text, name).ok_or(CheckpointError::Missing { name });
        let (_, version) = value("version")?;
        if version.parse() != Ok(Self::VERSION) {
            return Err(CheckpointError::UnknownVersion { found: version, known: Self::VERSION });
        }
        let (_, cluster_id) = value("cluster.id")?;
        let (line, node_id) = value("node.id")?;
        let node_id = node_id.parse().ok().filter(|id| *id >= 0);
        let node_id = node_id.ok_or(CheckpointError::Malformed { line, expected: "a node id" })?;
        let (line, directory_id) = value("directory.id")?;
        let directory_id = parse_uuid(&directory_id, line)?;
        Ok(MetaProperties { cluster_id, node_id, directory_id })
    }

    /// The lines in the order in which Kafka writes them.
    pub fn render(&self) -> String {
        format!(
            "node.id={}\ndirectory.id={}\nversion={}\ncluster.id={}\n",
            self.node_id,
            self.directory_id,
            Self::VERSION,
            escape(&self.cluster_id)
        )
    }
}

/// `partition.metadata` of version 0: the topic id (KIP-516).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartitionMetadata {
    pub topic: Uuid,
}

impl PartitionMetadata {
    const VERSION: i32 = 0;

    pub fn parse(text: &str) -> Result<PartitionMetadata, CheckpointError> {
        let mut lines = text.lines();
        let version = lines.next().and_then(|line| line.strip_prefix("version: "));
        let version = version.ok_or(CheckpointError::Missing { name: "version" })?;
        if version.trim().parse() != Ok(Self::VERSION) {
            let found = version.chars().take(20).collect();
            return Err(CheckpointError::UnknownVersion { found, known: Self::VERSION });
        }
        let topic = lines.next().and_then(|line| line.strip_prefix("topic_id: "));
        let topic = parse_uuid(topic.ok_or(CheckpointError::Missing { name: "topic_id" })?.trim(), 2)?;
        if topic == Uuid::ZERO {
            return Err(CheckpointError::Malformed { line: 2, expected: "a topic id other than zero" });
        }
        Ok(PartitionMetadata { topic })
    }

    /// Without a newline at the end, as Kafka writes it.
    pub fn render(&self) -> String {
        format!("version: {}\ntopic_id: {}", Self::VERSION, self.topic)
    }
}

fn parse_uuid(text: &str, line: usize) -> Result<Uuid, CheckpointError> {
    let expected = "an id of 22 characters of URL-safe base64";
    Uuid::from_str(text).map_err(|_| CheckpointError::Malformed { line, expected })
}

/// The value of the last line that gives `name`, and the number of that line. Reads what `java.util.Properties`
/// writes: `#` and `!` start comments, `=` or `:` separates, a backslash takes the next character as it is.
fn property(text: &str, name: &str) -> Option<(usize, String)> {
    let mut found = None;
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.starts_with(['#', '!']) {
            continue;
        }
        let Some((key, value)) = line.split_once(['=', ':']) else { continue };
        if key.trim_end() == name {
            found = Some((index + 1, unescape(value.trim_start())));
        }
    }
    found
}

fn unescape(text: &str) -> String {
    let mut characters = text.chars();
    let mut plain = String::new();
    while let Some(character) = characters.next() {
        plain.extend(if character == '\\' { characters.next() } else { Some(character) });
    }
    plain
}

fn escape(text: &str) -> String {
    let mut escaped = String::new();
    for character in text.chars() {
        if matches!(character, '\\' | '=' | ':' | '#' | '!' | ' ') {
            escaped.push('\\');
        }
        escaped.push(character);
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn golden_meta_properties_come_back_byte_for_byte() {
        let golden = include_str!("../../../tests/golden/meta.properties");
        let properties = MetaProperties::parse(golden).expect("Kafka wrote it");
        assert_eq!(properties.node_id, 1);
        assert_eq!(properties.cluster_id, "Fgh6YCwuQiatdhDzd4FAeA");
        assert_eq!(properties.render(), golden);
    }

    #[test]
    fn golden_partition_metadata_come_back_byte_for_byte() {
        for golden in [
            include_str!("../../../tests/golden/codecs-0/partition.metadata"),
            include_str!("../../../tests/golden/txn-0/partition.metadata"),
            include_str!("../../../tests/golden/__cluster_metadata-0/partition.metadata"),
        ] {
            assert_eq!(PartitionMetadata::parse(golden).expect("Kafka wrote it").render(), golden);
        }
    }

    #[test]
    fn comments_and_escapes_of_java_are_read() {
        let text = "#\n#Mon Nov 30\ncluster.id=a\\=b\\\\c\nversion = 1\nnode.id: 3\n\
                    directory.id=YsVhr_t2zyCRrzdSoVoeHA\nelse=1\n";
        let properties = MetaProperties::parse(text).expect("good");
        assert_eq!((properties.node_id, properties.cluster_id.as_str()), (3, "a=b\\c"));
        assert_eq!(MetaProperties::parse(&properties.render()), Ok(properties));
    }

    #[test]
    fn wrong_files_are_refused() {
        assert_eq!(MetaProperties::parse(""), Err(CheckpointError::Missing { name: "version" }));
        assert!(matches!(
            MetaProperties::parse("version=0\nbroker.id=1\n"),
            Err(CheckpointError::UnknownVersion { .. })
        ));
        let text = "version=1\ncluster.id=a\nnode.id=-1\ndirectory.id=YsVhr_t2zyCRrzdSoVoeHA\n";
        assert!(matches!(MetaProperties::parse(text), Err(CheckpointError::Malformed { line: 3, .. })));
        assert!(matches!(PartitionMetadata::parse("version: 0\n"), Err(CheckpointError::Missing { .. })));
        assert!(PartitionMetadata::parse("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA").is_err());
        assert!(PartitionMetadata::parse("version: 0\ntopic_id: short").is_err());
    }
}
