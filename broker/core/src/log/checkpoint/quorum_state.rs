//! `quorum-state` (the election state of a KRaft node, version 0: static voters) and `.kafka_cleanshutdown`.

use super::CheckpointError;
use super::json::{Json, quote};

/// What `quorum-state` holds, in Kafka's words; −1 means none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuorumStateFile {
    pub cluster_id: String,
    pub leader_id: i32,
    pub leader_epoch: i32,
    pub voted_id: i32,
    /// Always 0: Kafka kept the field only for the format's sake.
    pub applied_offset: i64,
    pub current_voters: Vec<i32>,
}

impl QuorumStateFile {
    const VERSION: i32 = 0;

    pub fn parse(text: &str) -> Result<QuorumStateFile, CheckpointError> {
        let expected = "the JSON of a quorum state";
        let malformed = CheckpointError::Malformed { line: 1, expected };
        let json = Json::parse(text).ok_or(malformed.clone())?;
        let version = json.number("data_version").ok_or(malformed.clone())?;
        if version != i64::from(Self::VERSION) {
            return Err(CheckpointError::UnknownVersion { found: version.to_string(), known: Self::VERSION });
        }
        Self::from_json(&json).filter(|state| state.leader_epoch >= 0).ok_or(malformed)
    }

    fn from_json(json: &Json) -> Option<QuorumStateFile> {
        let id = |value: &Json, name| i32::try_from(value.number(name)?).ok();
        let Some(Json::Array(voters)) = json.field("currentVoters") else { return None };
        Some(QuorumStateFile {
            cluster_id: json.text("clusterId")?.to_string(),
            leader_id: id(json, "leaderId")?,
            leader_epoch: id(json, "leaderEpoch")?,
            voted_id: id(json, "votedId")?,
            applied_offset: json.number("appliedOffset")?,
            current_voters: voters.iter().map(|voter| id(voter, "voterId")).collect::<Option<_>>()?,
        })
    }

    /// One line without a newline at the end, as Kafka writes it.
    pub fn render(&self) -> String {
        let voters: Vec<String> =
            self.current_voters.iter().map(|voter| format!("{{\"voterId\":{voter}}}")).collect();
        format!(
            "{{\"clusterId\":{},\"leaderId\":{},\"leaderEpoch\":{},\"votedId\":{},\"appliedOffset\":{},\
             \"currentVoters\":[{}],\"data_version\":{}}}",
            quote(&self.cluster_id),
            self.leader_id,
            self.leader_epoch,
            self.voted_id,
            self.applied_offset,
            voters.join(","),
            Self::VERSION
        )
    }
}

/// `.kafka_cleanshutdown` of version 0: the last thing a broker writes, the first thing it removes (KIP-966).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CleanShutdown {
    /// Of the registration that ended; −1 when it never registered.
    pub broker_epoch: i64,
}

impl CleanShutdown {
    const VERSION: i32 = 0;

    /// An empty file, as older Kafka wrote it, carries no broker epoch.
    pub fn parse(text: &str) -> Result<CleanShutdown, CheckpointError> {
        if text.trim().is_empty() {
            return Ok(CleanShutdown { broker_epoch: -1 });
        }
        let malformed = CheckpointError::Malformed { line: 1, expected: "the JSON of a clean shutdown" };
        let json = Json::parse(text).ok_or(malformed.clone())?;
        let version = json.number("version").ok_or(malformed.clone())?;
        if version != i64::from(Self::VERSION) {
            return Err(CheckpointError::UnknownVersion { found: version.to_string(), known: Self::VERSION });
        }
        Ok(CleanShutdown { broker_epoch: json.number("brokerEpoch").ok_or(malformed)? })
    }

    pub fn render(&self) -> String {
        format!("{{\"version\":{},\"brokerEpoch\":{}}}", Self::VERSION, self.broker_epoch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn golden_quorum_state_comes_back_byte_for_byte() {
        let golden = include_str!("../../../tests/golden/__cluster_metadata-0/quorum-state");
        let state = QuorumStateFile::parse(golden).expect("Kafka wrote it");
        assert_eq!((state.leader_id, state.leader_epoch, state.voted_id), (100, 1, -1));
        assert_eq!(state.current_voters, vec![100]);
        assert_eq!(state.render(), golden);
    }

    #[test]
    fn wrong_quorum_states_are_refused() {
        assert!(QuorumStateFile::parse("").is_err());
        assert!(matches!(
            QuorumStateFile::parse(r#"{"leaderId":1,"leaderEpoch":3,"votedId":-1,"data_version":1}"#),
            Err(CheckpointError::UnknownVersion { .. })
        ));
        let golden = include_str!("../../../tests/golden/__cluster_metadata-0/quorum-state");
        assert!(QuorumStateFile::parse(&golden.replace("\"leaderEpoch\":1", "\"leaderEpoch\":-1")).is_err());
        assert!(
            QuorumStateFile::parse(&golden.replace("\"leaderId\":100", "\"leaderId\":4294967296")).is_err()
        );
    }

    #[test]
    fn clean_shutdown_comes_back() {
        let marker = CleanShutdown { broker_epoch: 38 };
        assert_eq!(marker.render(), r#"{"version":0,"brokerEpoch":38}"#);
        assert_eq!(CleanShutdown::parse(&marker.render()), Ok(marker));
        assert_eq!(CleanShutdown::parse(""), Ok(CleanShutdown { broker_epoch: -1 }));
        assert!(CleanShutdown::parse("{}").is_err());
    }
}
