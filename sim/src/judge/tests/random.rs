//! Random streams of a tiny correct cluster raise nothing; the same streams with one planted wrong raise it. The
//! cluster replicates one record at a time, fails over only to in-sync replicas, and loses power only where that is
//! licensed: the last in-sync replica, or under an allowed unclean election.

use proptest::prelude::*;
use proptest::sample::Index;

use super::*;

#[derive(Clone, Debug)]
enum Step {
    Write,
    Replicate(Index),
    Commit,
    Acknowledge,
    /// A follower leaves the in-sync set.
    Shrink(Index),
    /// A follower catches up and joins.
    Expand(Index),
    /// The leader is fenced; the next in-sync replica leads.
    FailOver,
    /// The last in-sync replica loses power and comes back short.
    PowerLossOfLast(Index),
    /// The in-sync set is dead; an outsider leads.
    Unclean(Index),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => Just(Step::Write),
        8 => any::<Index>().prop_map(Step::Replicate),
        6 => Just(Step::Commit),
        6 => Just(Step::Acknowledge),
        1 => any::<Index>().prop_map(Step::Shrink),
        2 => any::<Index>().prop_map(Step::Expand),
        2 => Just(Step::FailOver),
        1 => any::<Index>().prop_map(Step::PowerLossOfLast),
        1 => any::<Index>().prop_map(Step::Unclean),
    ]
}

/// The cluster, and what it knows of its own promises.
struct Cluster {
    stage: Stage,
    leader: NodeId,
    /// Value and offset of what is in the leader's log, and whether it was acknowledged.
    values: Vec<(String, bool)>,
    written: usize,
}

const ALL: [NodeId; 3] = [B1, B2, B3];

impl Cluster {
    fn new(acks: i16) -> Cluster {
        let stage = Stage::new(&Setting { unclean: true, acks, ..Setting::default() });
        Cluster { stage, leader: B1, values: Vec::new(), written: 0 }
    }

    fn epoch(&self) -> i32 {
        self.stage.state.leader_epoch
    }

    fn followers(&self) -> Vec<NodeId> {
        ALL.into_iter().filter(|node| *node != self.leader).collect()
    }

    /// A follower cuts what is not the leader's, and fetches the rest.
    fn catch_up(&mut self, follower: NodeId) {
        let epoch = self.epoch();
        self.stage.act(self.leader, epoch);
        let shared = {
            let logs = &self.stage.logs;
            let pairs = logs[&self.leader].iter().zip(&logs[&follower]);
            pairs.take_while(|(left, right)| left.bytes == right.bytes).count() as i64
        };
        if shared < self.stage.end(follower) {
            self.stage.cut(follower, shared);
        }
        self.stage.replicate(self.leader, epoch, follower);
    }

    fn committable(&self) -> i64 {
        let leader = &self.stage.logs[&self.leader];
        let shared = |node: &NodeId| {
            let other = &self.stage.logs[node];
            leader.iter().zip(other).take_while(|(left, right)| left.bytes == right.bytes).count() as i64
        };
        self.stage.state.isr.iter().map(shared).min().unwrap_or(0)
    }

    fn lead(&mut self, leader: NodeId) {
        self.leader = leader;
        self.stage.leads(leader);
        for follower in self.followers() {
            self.stage.follows(follower);
        }
        self.values.truncate(self.stage.end(leader) as usize);
        // What the new leader holds of the old branch is what it fetched: nothing else is in its log.
        let known: Vec<String> = self.stage.values_of(leader);
        let acknowledged: BTreeMap<String, bool> = self.values.drain(..).collect();
        self.values = known
            .into_iter()
            .map(|value| {
                let is_acknowledged = acknowledged.get(&value).copied().unwrap_or(true);
                (value, is_acknowledged)
            })
            .collect();
        let epoch = self.epoch();
        self.stage.act(leader, epoch);
    }

    fn run(&mut self, step: &Step) {
        let epoch = self.epoch();
        match step {
            Step::Write => {
                let value = format!("m-{}", self.written);
                self.written += 1;
                self.stage.append(self.leader, epoch, &value);
                self.values.push((value, false));
                if self.stage.acks == 1 {
                    self.acknowledge(self.values.len() - 1);
                }
            }
            Step::Replicate(index) => {
                let follower = *index.get(&self.followers());
                self.catch_up(follower);
            }
            Step::Commit => {
                let to = self.committable();
                if to > self.stage.high_watermark(self.leader) {
                    let isr = self.stage.state.isr.clone();
                    self.stage.commit(self.leader, epoch, to, &isr);
                }
            }
            Step::Acknowledge => {
                let committed = self.stage.high_watermark(self.leader) as usize;
                let open = (0..committed.min(self.values.len())).find(|offset| !self.values[*offset].1);
                if let Some(offset) = open
                    && self.stage.acks == -1
                {
                    self.acknowledge(offset);
                }
            }
            Step::Shrink(index) => {
                let out = *index.get(&self.followers());
                let isr: Vec<NodeId> =
                    self.stage.state.isr.iter().copied().filter(|node| *node != out).collect();
                self.stage.set_isr(&isr);
            }
            Step::Expand(index) => {
                let joins = *index.get(&self.followers());
                if !self.stage.state.isr.contains(&joins) {
                    self.catch_up(joins);
                    let mut isr = self.stage.state.isr.clone();
                    isr.push(joins);
                    self.stage.set_isr(&isr);
                }
            }
            Step::FailOver => {
                let isr: Vec<NodeId> =
                    self.stage.state.isr.iter().copied().filter(|node| *node != self.leader).collect();
                if let Some(next) = isr.first().copied() {
                    self.stage.elect(next, &isr, Claim::Clean);
                    self.lead(next);
                }
            }
            Step::PowerLossOfLast(index) => {
                if self.stage.state.isr == [self.leader] {
                    let leader = self.leader;
                    let kept = index.index(self.stage.end(leader) as usize + 1);
                    self.stage.power_loss(leader, kept as i64);
                    self.stage.leaderless(&[leader]);
                    self.stage.elect(leader, &[leader], Claim::Clean);
                    self.lead(leader);
                }
            }
            Step::Unclean(index) => {
                let outsiders: Vec<NodeId> =
                    ALL.into_iter().filter(|node| !self.stage.state.isr.contains(node)).collect();
                if !outsiders.is_empty() {
                    let outsider = *index.get(&outsiders);
                    self.stage.elect(outsider, &[outsider], Claim::Unclean { asked_by_administrator: false });
                    self.lead(outsider);
                }
            }
        }
    }

    fn acknowledge(&mut self, offset: usize) {
        let (epoch, isr) = (self.epoch(), self.stage.state.isr.clone());
        let value = self.values[offset].0.clone();
        self.values[offset].1 = true;
        self.stage.ack(self.leader, epoch, offset as i64, &value, &isr);
    }
}

fn play(acks: i16, steps: &[Step]) -> Cluster {
    let mut cluster = Cluster::new(acks);
    for step in steps {
        cluster.run(step);
    }
    cluster
}

/// A committed, acknowledged record on every replica, for something to be planted on.
fn settle(cluster: &mut Cluster) {
    cluster.run(&Step::Write);
    for follower in cluster.followers() {
        cluster.catch_up(follower);
    }
    cluster.stage.set_isr(&ALL);
    cluster.run(&Step::Commit);
    let last = cluster.values.len() - 1;
    if !cluster.values[last].1 {
        cluster.acknowledge(last);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, ..ProptestConfig::default() })]

    #[test]
    fn correct_cluster_raises_nothing(acks in prop_oneof![Just(-1i16), Just(1)], steps in prop::collection::vec(step(), 0..80)) {
        let mut cluster = play(acks, &steps);
        settle(&mut cluster);
        let leader = cluster.leader;
        let judgement = cluster.stage.end_with(Some(leader));
        prop_assert_eq!(&judgement.findings, &[]);
        prop_assert!(judgement.lost.iter().all(|lost| lost.licensed_by.is_some()));
        prop_assert_eq!(judgement.acked, judgement.read_back + judgement.lost.len() as u64);
    }

    #[test]
    fn leader_without_a_committed_record_is_found(steps in prop::collection::vec(step(), 0..60)) {
        let mut cluster = play(-1, &steps);
        settle(&mut cluster);
        let next = cluster.followers()[0];
        let short = cluster.stage.end(next) - 1;
        cluster.stage.cut(next, short);
        cluster.stage.elect(next, &[next], Claim::Clean);
        cluster.lead(next);
        cluster.run(&Step::Write);
        prop_assert_eq!(cluster.stage.found(), ["S14", "S10", "S9"]);
        let judgement = cluster.stage.end_with(Some(next));
        prop_assert!(identifiers(&judgement.findings).contains(&"V1"));
        prop_assert_eq!(judgement.lost.iter().filter(|lost| lost.licensed_by.is_none()).count(), 1);
    }

    #[test]
    fn high_watermark_over_what_a_member_lacks_is_found(steps in prop::collection::vec(step(), 0..60)) {
        let mut cluster = play(-1, &steps);
        settle(&mut cluster);
        cluster.run(&Step::Write);
        let (leader, epoch, end) = (cluster.leader, cluster.epoch(), cluster.stage.end(cluster.leader));
        cluster.stage.commit(leader, epoch, end, &ALL);
        prop_assert_eq!(cluster.stage.found(), ["S7"]);
    }

    #[test]
    fn ack_before_commit_is_found(steps in prop::collection::vec(step(), 0..60)) {
        let mut cluster = play(-1, &steps);
        settle(&mut cluster);
        cluster.run(&Step::Write);
        cluster.acknowledge(cluster.values.len() - 1);
        prop_assert_eq!(cluster.stage.found(), ["S2"]);
    }

    #[test]
    fn second_copy_is_found(steps in prop::collection::vec(step(), 0..60)) {
        let mut cluster = play(-1, &steps);
        settle(&mut cluster);
        let (leader, epoch) = (cluster.leader, cluster.epoch());
        let value = cluster.values.last().expect("settled").0.clone();
        cluster.stage.append(leader, epoch, &value);
        for follower in cluster.followers() {
            cluster.catch_up(follower);
        }
        let end = cluster.stage.end(leader);
        cluster.stage.commit(leader, epoch, end, &ALL);
        prop_assert_eq!(cluster.stage.found(), ["S19"]);
    }
}
