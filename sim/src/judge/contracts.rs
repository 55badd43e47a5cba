//! What topics promise while settings change: the run's own configuration, and on top of it what the committed metadata
//! says. Decides nothing of the broker's: it reads the same records.

use super::input::{JudgeConfig, TopicContract};

/// The contracts of all topics as of the newest committed setting.
#[derive(Debug)]
pub struct Contracts {
    config: JudgeConfig,
    /// Every controller states every committed setting, and again when it restarts: the newest counts, once.
    newest_offset: i64,
}

const MIN_INSYNC: &str = "min.insync.replicas";
const UNCLEAN: &str = "unclean.leader.election.enable";

impl Contracts {
    pub fn new(config: JudgeConfig) -> Contracts {
        Contracts { config, newest_offset: -1 }
    }

    pub fn config(&self) -> &JudgeConfig {
        &self.config
    }

    pub fn of(&self, topic: &str) -> TopicContract {
        self.config.contract(topic)
    }

    /// A setting is committed. Whether a topic's contract may have changed: of this topic, or of all when it is `None`.
    pub fn changed(
        &mut self,
        metadata_offset: i64,
        topic: Option<&str>,
        name: &str,
        value: Option<&str>,
    ) -> bool {
        if metadata_offset <= self.newest_offset {
            return false;
        }
        self.newest_offset = metadata_offset;
        if name != MIN_INSYNC && name != UNCLEAN {
            return false;
        }
        let fallback = self.config.default_topic;
        // A topic that the run configures has values of its own; the default of all brokers is part of them already.
        let contract = match topic {
            Some(topic) => self.config.topics.entry(topic.to_owned()).or_insert(fallback),
            None => &mut self.config.default_topic,
        };
        match (name, value) {
            (MIN_INSYNC, Some(value)) => {
                contract.min_insync = value.trim().parse().unwrap_or(contract.min_insync);
            }
            (MIN_INSYNC, None) => contract.min_insync = fallback.min_insync,
            (_, Some(value)) => contract.unclean = value.trim().eq_ignore_ascii_case("true"),
            (_, None) => contract.unclean = fallback.unclean,
        }
        true
    }
}

impl super::case::PartitionCase {
    /// The contract is another one from now on. A leader that has not heard of it may still go by the laxest
    /// `min.insync.replicas` so far.
    pub fn contract_changed(&mut self, contract: TopicContract) {
        self.contract = contract;
        self.laxest_min_insync = self.laxest_min_insync.min(contract.effective_min_insync());
    }

    /// The topic of this partition is known only now.
    pub fn contract_known(&mut self, contract: TopicContract) {
        self.contract = contract;
        self.laxest_min_insync = contract.effective_min_insync();
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::checks::Checks;
    use super::*;

    fn contracts() -> Contracts {
        let default_topic = TopicContract { replication_factor: 3, min_insync: 1, unclean: false };
        Contracts::new(JudgeConfig {
            brokers: Vec::new(),
            controllers: Vec::new(),
            topics: BTreeMap::from([("orders".to_owned(), default_topic)]),
            default_topic,
            elr: true,
            checks: Checks::ALL,
        })
    }

    #[test]
    fn newest_setting_counts_however_often_it_is_stated() {
        let mut contracts = contracts();
        assert!(contracts.changed(7, Some("orders"), MIN_INSYNC, Some("2")));
        assert!(contracts.changed(9, Some("orders"), UNCLEAN, Some("true")));
        assert!(!contracts.changed(7, Some("orders"), MIN_INSYNC, Some("2")), "a controller restates it");
        assert!(!contracts.changed(10, Some("orders"), "retention.ms", Some("2")));
        assert_eq!((contracts.of("orders").min_insync, contracts.of("orders").unclean), (2, true));
        assert!(contracts.changed(11, Some("orders"), MIN_INSYNC, None));
        assert_eq!(contracts.of("orders").min_insync, 1);
    }
}
