//! The judge itself: takes every event of a run in order, hands it to the partition concerned, and gives its
//! judgement at the end.

use std::collections::{BTreeMap, BTreeSet};

use acked_core::observation::Fetcher;
use acked_core::{NodeId, Observation, Time, TopicPartition};
use acked_reports::History;
use acked_reports::anomalies::Seen;
use acked_reports::history::Partition;

use super::acks::SentAck;
use super::case::{Court, PartitionCase, Role};
use super::checks::Comparisons;
use super::clients::Clients;
use super::contracts::Contracts;
use super::fencing::Fencing;
use super::finding::{Finding, Licence, LostRecord};
use super::frames::Frames;
use super::input::{ClientEvent, FaultEvent, FinalState, JudgeConfig};
use super::last_replicas::Starts;
use super::ledger::Ledger;
use super::liveness;
use super::mirror::{LogMirror, Mirror};
use super::quorum::Quorum;
use super::quorum_log::QuorumLogs;
use super::reporter::{Place, Reporter};
use super::second_opinion;
use super::unclean_elections;
use super::validation::{self, Ended};
use super::watermark_bound::Advance;
use crate::world::tap::{ConnectionId, DiskChange};

/// Everything that a run's judgement says.
#[derive(Debug, Default)]
pub struct Judgement {
    /// One a cause, in the order of first occurrence. Empty: no contract was broken.
    pub findings: Vec<Finding>,
    /// Acknowledged records that are not in the final leaders' logs, by partition and offset.
    pub lost: Vec<LostRecord>,
    /// Every licence given, whether or not the record was acknowledged.
    pub licences: Vec<Licence>,
    pub comparisons: BTreeMap<&'static str, u64>,
    pub sent: u64,
    /// Sends told ok, at any acks level.
    pub acked: u64,
    pub indeterminate: u64,
    pub refused: u64,
    /// Acknowledged records that the final read gave back.
    pub read_back: u64,
    /// Acknowledged records neither read back nor lost: nobody read that far, or there is no leader to ask.
    pub unread: u64,
    /// Acknowledged records that were removed on purpose (DeleteRecords, retention, deletion of the topic), and that
    /// the final read did not give back.
    pub removed: u64,
    /// Records that were committed, over all partitions.
    pub committed: u64,
    /// Logs of replicas that were compared at the end.
    pub replicas_compared: u64,
    /// Names of the topics that findings and losses speak of.
    pub topics: BTreeMap<acked_wire::Uuid, String>,
    pub history: History,
}

/// Judges one run. Feed it synchronously and in order; it never asks for anything.
#[derive(Debug)]
pub struct Judge {
    contracts: Contracts,
    mirror: Mirror,
    cases: Vec<PartitionCase>,
    numbers: BTreeMap<TopicPartition, usize>,
    deleted_topics: BTreeSet<acked_wire::Uuid>,
    quorum: Quorum,
    quorum_logs: QuorumLogs,
    fencing: Fencing,
    frames: Frames,
    clients: Clients,
    ledger: Ledger,
    starts: Starts,
    /// Nodes that lost power and have not begun anew.
    without_power: BTreeSet<NodeId>,
    reporter: Reporter,
}

impl Judge {
    pub fn new(config: JudgeConfig) -> Judge {
        assert!(config.default_topic.replication_factor >= 1, "a topic has a replica");
        let reporter = Reporter::new(config.checks);
        Judge {
            quorum_logs: QuorumLogs::new(&config.controllers),
            contracts: Contracts::new(config),
            mirror: Mirror::default(),
            cases: Vec::new(),
            numbers: BTreeMap::new(),
            deleted_topics: BTreeSet::new(),
            quorum: Quorum::default(),
            fencing: Fencing::default(),
            frames: Frames::default(),
            clients: Clients::default(),
            ledger: Ledger::default(),
            starts: Starts::default(),
            without_power: BTreeSet::new(),
            reporter,
        }
    }

    /// What is wrong so far, in the order of first occurrence. What only the end can show is not in it.
    pub fn findings(&self) -> impl Iterator<Item = &Finding> {
        self.reporter.findings.iter()
    }

    /// Comparisons so far.
    pub fn comparisons(&self) -> &Comparisons {
        &self.reporter.comparisons
    }

    /// The calls of one client that have not ended, with their names: `send`, `poll`, or the call's own.
    pub fn open_calls(&self, client: u32) -> Vec<(u64, &'static str)> {
        self.clients.open_calls(client)
    }

    /// This client call has not ended.
    pub fn has_open_call(&self, operation: u64) -> bool {
        self.clients.is_open(operation)
    }

    /// The log of a replica as its disk really holds it.
    pub fn replica_log(&self, partition: TopicPartition, node: NodeId) -> Option<&LogMirror> {
        self.mirror.log(partition, node)
    }

    /// The id of a topic that was seen to be created.
    pub fn topic_id(&self, name: &str) -> Option<acked_wire::Uuid> {
        self.mirror.topic_id(name)
    }

    /// A fault began or was healed.
    pub fn on_fault(&mut self, now: Time, event: &FaultEvent<'_>) {
        self.reporter.now = now;
        self.ledger.fault(now, event);
        if event.injected && (event.loses_power || event.wipes_disk) {
            self.without_power.extend(event.nodes);
            for node in event.nodes.iter().filter(|_| event.wipes_disk) {
                self.quorum_logs.disk_wiped(*node);
            }
            self.for_each_case(|case, court| {
                for node in event.nodes {
                    case.loses_power(*node, court);
                }
            });
        }
    }

    /// The process of a node is about to begin: nothing of it has looked at its disk yet.
    pub fn on_start(&mut self, now: Time, node: NodeId) {
        self.reporter.now = now;
        self.without_power.remove(&node);
        self.for_each_case(|case, court| case.node_begins(node, court));
    }

    /// A client began or ended something.
    pub fn on_client(&mut self, now: Time, event: &ClientEvent<'_>) {
        self.reporter.now = now;
        let Some(told) = self.clients.take(now, event) else { return };
        let name = self.clients.history.topic_name(told.key.partition.topic);
        let Some(topic) = self.mirror.topic_id(name) else { return };
        let partition = TopicPartition { topic, index: told.key.partition.index };
        // The answer may still be about a deleted topic of that name.
        let spoke_of_deleted = self.cases.iter().any(|case| {
            case.deleted
                && case.id.index == partition.index
                && self.mirror.topic_name(case.id.topic) == Some(name)
                && case.was_acknowledged(told.key.offset, told.key.content)
        });
        if spoke_of_deleted {
            return;
        }
        self.with_case(partition, |case, court| {
            case.client_was_told(told.key.offset, told.key.content, told.acks, court);
        });
    }

    /// A process wrote bytes to a connection.
    pub fn on_network(&mut self, now: Time, connection: ConnectionId, by_client: bool, bytes: &[u8]) {
        self.reporter.now = now;
        self.frames.written(connection, by_client, bytes, &mut self.reporter);
    }

    /// A file of `node` changed.
    pub fn on_disk(&mut self, node: NodeId, now: Time, change: &DiskChange<'_>) {
        self.reporter.now = now;
        if let DiskChange::Replaced { first_difference: Some(_), .. } = change
            && !self.without_power.contains(&node)
        {
            for case in &mut self.cases {
                case.damaged(node);
            }
        }
        self.quorum_logs.on_disk(node, change, &mut self.reporter);
        let Some(change) = self.mirror.changed(node, change) else { return };
        let number = self.case_number(change.partition);
        let topic = self.mirror.topic_name(change.partition.topic);
        let client_partition = topic
            .and_then(|name| self.clients.history.known_topic(name))
            .map(|topic| Partition { topic, index: change.partition.index });
        let (cases, clients, mut court) = self.session();
        let case = &mut cases[number];
        if !change.removed.is_empty() {
            case.discarded(node, &change.removed, &mut court);
        }
        let log = court.mirror.log_at(change.log);
        if change.appended_from < log.entries().len() {
            let attempts = clients.attempts(client_partition);
            case.appended(node, log, change.appended_from, attempts, &mut court);
        }
    }

    /// A machine of `node` stated a fact. `now` is the time of the run.
    pub fn on_observation(&mut self, node: NodeId, now: Time, observation: &Observation) {
        self.reporter.now = now;
        match observation {
            Observation::NodeStarted { .. } | Observation::NodeStopped => {
                match observation {
                    Observation::NodeStopped => self.starts.stopped(node),
                    _ => self.starts.started(node, now),
                }
                self.quorum_logs.node_started(node);
                self.fencing.begin_anew(node);
                for case in &mut self.cases {
                    case.forgot_role(node);
                }
            }
            Observation::BecameLeader { partition, leader_epoch, log_end_offset, high_watermark } => {
                self.with_case(*partition, |case, court| {
                    case.took_role(node, Role::Leader(*leader_epoch));
                    case.follower_went_on(node, None, court);
                    case.watermarks.became_leader(node, *leader_epoch, *log_end_offset, *high_watermark);
                    case.match_below(node, *leader_epoch, *high_watermark, court);
                });
            }
            Observation::BecameFollower { partition, leader_epoch, leader, .. } => {
                self.with_case(*partition, |case, court| {
                    case.took_role(node, Role::Follower(*leader_epoch));
                    case.follower_took_role(node, *leader_epoch, *leader, court);
                });
            }
            Observation::LogRecovered { partition, log_end_offset, .. } => {
                self.with_case(*partition, |case, court| case.recovered(node, *log_end_offset, court));
            }
            Observation::FollowerHighWatermark { partition, from, to, .. } => {
                self.with_case(*partition, |case, court| case.follower_watermark(node, *from, *to, court));
            }
            Observation::Truncated { partition, to_log_end_offset, .. } => {
                self.with_case(*partition, |case, court| {
                    case.follower_went_on(node, Some(*to_log_end_offset), court);
                });
            }
            Observation::IsrAdopted { partition, leader_epoch, partition_epoch, isr } => {
                self.with_case(*partition, |case, court| {
                    case.adopted(node, *leader_epoch, *partition_epoch, isr, court);
                });
            }
            Observation::AppendedAsLeader { partition, leader_epoch, .. } => {
                self.with_case(*partition, |case, court| {
                    case.appended_as_leader(node, *leader_epoch, court);
                });
            }
            Observation::FetchServed { partition, leader_epoch, fetcher, high_watermark, .. } => {
                self.with_case(*partition, |case, court| {
                    case.acted_as_leader(node, *leader_epoch, court);
                    if *fetcher == Fetcher::Consumer {
                        case.exposed(node, *leader_epoch, *high_watermark, court);
                    }
                });
            }
            Observation::HighWatermarkAdvanced {
                partition,
                leader_epoch,
                from,
                to,
                isr,
                maximal_isr,
                min_insync,
            } => {
                let advance = Advance {
                    leader: node,
                    leader_epoch: *leader_epoch,
                    from: *from,
                    to: *to,
                    isr,
                    maximal_isr,
                    min_insync: *min_insync,
                };
                self.with_case(*partition, |case, court| case.high_watermark_advanced(&advance, court));
            }
            Observation::AckSent {
                partition,
                leader_epoch,
                acks,
                base_offset,
                last_offset,
                producer_id,
                producer_epoch,
                base_sequence,
                maximal_isr,
                ..
            } => {
                let ack = SentAck {
                    leader: node,
                    leader_epoch: *leader_epoch,
                    acks: *acks,
                    base_offset: *base_offset,
                    last_offset: *last_offset,
                    producer_id: *producer_id,
                    producer_epoch: *producer_epoch,
                    base_sequence: *base_sequence,
                    maximal_isr,
                };
                self.with_case(*partition, |case, court| {
                    case.acted_as_leader(node, *leader_epoch, court);
                    case.ack_sent(&ack, court);
                });
            }
            Observation::LogStartAdvanced { partition, leader_epoch, from, to } => {
                assert!(from <= to, "a log start that advances does not fall");
                self.with_case(*partition, |case, court| {
                    case.log_start_advanced(node, *leader_epoch, *to, court);
                });
            }
            Observation::ConfigChanged { metadata_offset, topic, name, value } => {
                self.config_changed(*metadata_offset, topic.as_deref(), name, value.as_deref());
            }
            Observation::TopicCreated { name, topic } => self.topic_created(name, *topic),
            Observation::TopicDeleted { topic } => {
                self.fencing.deleted(node, *topic);
                self.topic_deleted(*topic);
            }
            Observation::PartitionDecided {
                controller_epoch,
                state,
                election,
                acceptable,
                unclean_allowed,
            } => self.with_case(state.partition, |case, _| {
                case.elections.decided(*controller_epoch, state, *election, acceptable, *unclean_allowed);
            }),
            Observation::PartitionCommitted { state, .. } => {
                self.fencing.committed(node, state, self.contracts.config().elr, &mut self.reporter);
                self.with_case(state.partition, |case, court| case.state_committed(state, court));
            }
            Observation::BrokerRegistered { broker, incarnation, .. } => {
                let (elr, reporter) = (self.contracts.config().elr, &mut self.reporter);
                self.fencing.registered(node, *broker, *incarnation, elr, reporter);
            }
            Observation::BrokerFenced { broker } => {
                self.fencing.fenced(node, *broker, true, self.contracts.config().elr, &mut self.reporter);
            }
            Observation::BrokerUnfenced { broker } => {
                self.fencing.fenced(node, *broker, false, self.contracts.config().elr, &mut self.reporter);
            }
            Observation::BrokerInControlledShutdown { broker } => self.fencing.shuts_down(node, *broker),
            Observation::QuorumSnapshotLoaded { .. } => self.fencing.begin_anew(node),
            Observation::VoteGranted { epoch, candidate } => {
                self.quorum.vote(node, *epoch, *candidate, &mut self.reporter);
            }
            Observation::BecameCandidate { epoch } => {
                self.quorum.vote(node, *epoch, node, &mut self.reporter);
            }
            Observation::QuorumLeaderElected { epoch, .. } => {
                self.quorum.leader_elected(node, *epoch, &mut self.reporter);
                self.quorum_logs.leader_elected(node, *epoch, &mut self.reporter);
            }
            Observation::QuorumEpochReached { epoch } => {
                self.quorum_logs.epoch_reached(node, *epoch, &mut self.reporter);
            }
            Observation::QuorumHighWatermark { epoch, to } => {
                self.quorum_logs.high_watermark(node, *epoch, *to, &mut self.reporter);
            }
            Observation::QuorumVoters { voters, .. } => {
                let voters: Vec<NodeId> = voters.iter().map(|(voter, _)| *voter).collect();
                self.quorum_logs.voters(&voters);
            }
            _ => {}
        }
    }

    /// Validates logs, histories and liveness, and ends.
    pub fn finish(mut self, now: Time, state: &FinalState) -> Judgement {
        self.reporter.now = now;
        let mut names: BTreeMap<TopicPartition, Partition> = BTreeMap::new();
        for number in 0..self.cases.len() {
            let id = self.cases[number].id;
            if let Some(name) = self.mirror.topic_name(id.topic) {
                let topic = self.clients.history.topic(name);
                names.insert(id, Partition { topic, index: id.index });
            }
        }
        // Of the topics that had one name, findings speak of the one that is left.
        let is_left = |id: &TopicPartition| !self.deleted_topics.contains(&id.topic);
        let (left, deleted): (Vec<_>, Vec<_>) =
            names.iter().map(|(id, partition)| (*partition, *id)).partition(|(_, id)| is_left(id));
        let ids: BTreeMap<Partition, TopicPartition> = deleted.into_iter().chain(left).collect();
        let mut ended = Vec::new();
        for partition in &state.partitions {
            let id = self
                .mirror
                .topic_id(&partition.topic)
                .map(|topic| TopicPartition { topic, index: partition.index });
            let place = Place { partition: id, ..Place::default() };
            liveness::leader_exists(partition, place, state.elect_bound, &mut self.reporter);
            liveness::writes_resume(partition, place, state.write_bound, &mut self.reporter);
            if let Some(id) = id
                && let Some(number) = self.numbers.get(&id)
                && let Some(name) = names.get(&id)
            {
                ended.push(Ended {
                    case: &self.cases[*number],
                    partition: *name,
                    leader: partition.leader,
                    read_to: partition.read_to,
                });
            }
        }
        liveness::operations_terminate(&self.clients.calls(), state.call_bound, &mut self.reporter);
        liveness::quorum_elects(state, &mut self.reporter);

        let seen = Seen::of(&self.clients.history);
        let removed = validation::removed_keys(&self.cases, &names);
        let returned = validation::returned_keys(&self.ledger, &ended, &self.mirror, &names);
        let licences = validation::client_licences(&self.ledger, &names, &removed, &returned);
        validation::history_anomalies(&self.clients, &seen, &licences, &ids, &mut self.reporter);
        unclean_elections::consumers_are_told(
            &self.clients.history,
            &self.cases,
            &self.ledger,
            &names,
            &returned,
            &mut self.reporter,
        );
        let mut replicas_compared = 0;
        for partition in &ended {
            validation::committed_durability(partition, &seen, &self.mirror, &mut self.reporter);
            replicas_compared += validation::log_matching(partition, &self.mirror, &mut self.reporter);
        }
        let balance = validation::balance(
            &self.clients,
            &seen,
            &ended,
            &self.ledger,
            &self.mirror,
            &removed,
            &mut self.reporter,
        );
        if balance.unread == 0 && state.partitions.iter().all(|partition| partition.read_to.is_some()) {
            let history = &self.clients.history;
            second_opinion::oracles_agree(history, &balance.lost, &names, &removed, &mut self.reporter);
        }
        let mut findings = self.reporter.findings.into_vec();
        for finding in &mut findings {
            finding.topic = finding
                .partition
                .and_then(|partition| self.mirror.topic_name(partition.topic))
                .map(str::to_owned);
        }
        let committed = self.cases.iter().map(|case| case.committed.len() as u64).sum();
        Judgement {
            findings,
            lost: balance.lost,
            licences: self.ledger.licences,
            comparisons: self.reporter.comparisons.iter().collect(),
            sent: balance.sent,
            acked: balance.acked,
            indeterminate: balance.indeterminate,
            refused: balance.refused,
            read_back: balance.read_back,
            unread: balance.unread,
            removed: balance.removed,
            committed,
            replicas_compared,
            topics: self.mirror.names().clone(),
            history: self.clients.history,
        }
    }

    fn topic_created(&mut self, name: &str, topic: acked_wire::Uuid) {
        self.mirror.topic_created(name, topic);
        let contract = self.contracts.of(name);
        for case in self.cases.iter_mut().filter(|case| case.id.topic == topic) {
            case.contract_known(contract);
        }
    }

    fn config_changed(&mut self, metadata_offset: i64, topic: Option<&str>, name: &str, value: Option<&str>) {
        if !self.contracts.changed(metadata_offset, topic, name, value) {
            return;
        }
        for case in &mut self.cases {
            let named = self.mirror.topic_name(case.id.topic);
            if let Some(named) = named.filter(|named| topic.is_none_or(|topic| topic == *named)) {
                case.contract_changed(self.contracts.of(named));
            }
        }
    }

    fn topic_deleted(&mut self, topic: acked_wire::Uuid) {
        if !self.deleted_topics.insert(topic) {
            return;
        }
        for case in self.cases.iter_mut().filter(|case| case.id.topic == topic) {
            case.topic_deleted();
        }
    }

    fn for_each_case(&mut self, mut judge: impl FnMut(&mut PartitionCase, &mut Court<'_>)) {
        let (cases, _, mut court) = self.session();
        for case in cases {
            judge(case, &mut court);
        }
    }

    fn with_case(&mut self, id: TopicPartition, judge: impl FnOnce(&mut PartitionCase, &mut Court<'_>)) {
        let number = self.case_number(id);
        let (cases, _, mut court) = self.session();
        judge(&mut cases[number], &mut court);
    }

    /// All cases, what clients did, and everything that a case is judged by.
    fn session(&mut self) -> (&mut [PartitionCase], &Clients, Court<'_>) {
        let court = Court {
            mirror: &self.mirror,
            ledger: &mut self.ledger,
            starts: &self.starts,
            reporter: &mut self.reporter,
            elr: self.contracts.config().elr,
        };
        (&mut self.cases, &self.clients, court)
    }

    fn case_number(&mut self, id: TopicPartition) -> usize {
        if let Some(number) = self.numbers.get(&id) {
            return *number;
        }
        let contract = match self.mirror.topic_name(id.topic) {
            Some(name) => self.contracts.of(name),
            None => self.contracts.config().default_topic,
        };
        let number = self.cases.len();
        let mut case = PartitionCase::new(id, contract);
        case.deleted = self.deleted_topics.contains(&id.topic);
        self.cases.push(case);
        self.numbers.insert(id, number);
        number
    }
}
