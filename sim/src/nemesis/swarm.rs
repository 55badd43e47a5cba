//! `swarm`: for every seed another mixture of faults. Each class is on or off by itself, fires one to four times, and
//! lasts from a tenth of a second to half a minute, shorter times as likely as longer ones by their order of magnitude.
//! It is turned into single faults before the run begins; nothing is left of it but their common name.
//!
//! Machines of brokers lose power only one at a time, and only while everybody is in sync (`alone`); a seed in which any do has
//! no other end of a broker's process. So never more than one replica of a partition has lost what it had not written,
//! and min.insync.replicas=2 with eligible leader replicas protects everything that was acknowledged.

use std::time::Duration;

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::{Class, FaultKind, only_arguments};
use crate::plan::{FaultPlan, Plan, TimeRange};
use crate::world::streams;

/// Faults begin this much before the phase ends, at the latest.
const QUIET_END: Duration = Duration::from_secs(10);
/// The shortest and the longest fault.
const LASTS_MS: (u64, u64) = (100, 32_000);
/// How often one class fires at most.
const TIMES_MAX: u64 = 4;
/// Fewer classes than this make a dull seed: `FALLBACK` come in then.
const CLASSES_MIN: usize = 2;
const FALLBACK: [&str; 2] = ["crash", "isolate"];
/// Requests of Kafka's protocol of which losing or holding up one kind has been known to hurt.
const APIS: [&str; 8] = [
    "Produce",
    "Fetch",
    "AlterPartition",
    "BrokerHeartbeat",
    "BrokerRegistration",
    "Vote",
    "InitProducerId",
    "Metadata",
];

pub const SWARM: FaultKind = FaultKind {
    name: "swarm",
    text: "another mixture of the faults above and below for every seed, over the whole of the run; at most one broker's \
           machine at a time loses power",
    may_lose: "what was not synced on one machine at a time",
    class: Class::AsksWhatTravels,
    check: |plan| {
        if !plan.nodes.is_empty() || plan.sides.is_some() {
            return Err("swarm chooses its nodes itself".into());
        }
        only_arguments(plan, &[])
    },
    fire: |_| unreachable!("a swarm is turned into single faults before the run begins"),
};

/// One class: its name, and what it makes of its own draws.
type Make = fn(&mut Draws<'_>) -> FaultPlan;

const CLASSES: [(&str, Make); 18] = [
    ("isolate", |draws| draws.on_nodes("isolated-leader", Draws::node)),
    ("halves", |draws| draws.bipartition()),
    ("one-way", |draws| draws.on_nodes("one-way", Draws::node)),
    ("ring", |draws| {
        let group = ["brokers", "controllers"][draws.below(2)].to_string();
        draws.fault("overlapping-majorities", vec![group], &[])
    }),
    ("cut-from-controllers", |draws| draws.on_nodes("leader-cut-from-controllers", Draws::broker)),
    ("cut-from-clients", |draws| {
        let nodes = vec![draws.broker(), draws.client()];
        draws.fault("client-cut-from-leader", nodes, &[])
    }),
    ("pause", |draws| draws.on_nodes("pause", Draws::node)),
    ("freeze", |draws| draws.on_nodes("freeze", Draws::node)),
    ("crash", |draws| draws.on_nodes("crash", Draws::node)),
    ("stop", |draws| draws.on_nodes("stop", Draws::node)),
    ("disconnect", |draws| {
        let how = ["reset", "close"][draws.below(2)];
        let client = vec![draws.client()];
        draws.fault("client-disconnect", client, &[("how", how), ("times", "1..5")])
    }),
    ("delay", |draws| draws.on_messages("delay", &[])),
    ("drop", |draws| draws.on_messages("drop", &[("times", "1..5")])),
    ("clocks", |draws| {
        let all = ["brokers", "controllers", "clients"].map(str::to_string).to_vec();
        match draws.below(3) {
            0 => draws.fault("clock-drift", all, &[("ppm", "-500..500")]),
            1 => draws.fault("clock-offset", all, &[("by", "-1h..1h")]),
            _ => draws.fault("clock-step", all, &[("by", "-1m..1m"), ("times", "1..8")]),
        }
    }),
    ("clients", |draws| {
        let clean = ["true", "false"][draws.below(2)];
        let client = vec![draws.client()];
        draws.fault("rolling-restart", client, &[("clean", clean)])
    }),
    ("move", |draws| {
        let partition = draws.partition();
        match draws.below(2) {
            0 => draws.fault("move-leader", vec![partition], &[]),
            _ => draws.fault("reassign", vec![partition], &[("order", "rotate")]),
        }
    }),
    ("power", |draws| draws.power("power-loss")),
    ("power-again", |draws| draws.power("power-loss-in-recovery")),
];

/// Classes that take a broker's process down without its power; they keep away from those that take the power.
const ENDS_OF_PROCESSES: [&str; 2] = ["crash", "stop"];
const POWER: [&str; 2] = ["power", "power-again"];

/// The plan with every swarm turned into single faults.
pub fn expand(plan: &Plan, seed: u64) -> Plan {
    let mut expanded = plan.clone();
    expanded.faults = plan
        .faults
        .iter()
        .flat_map(
            |fault| if fault.kind == SWARM.name { swarm(plan, fault, seed) } else { vec![fault.clone()] },
        )
        .collect();
    expanded
}

fn swarm(plan: &Plan, swarm: &FaultPlan, seed: u64) -> Vec<FaultPlan> {
    let stream = |class: &str| streams::stream(seed, &format!("world/fault {}/{class}", swarm.id));
    let mut on: Vec<&str> =
        CLASSES.iter().map(|(class, _)| *class).filter(|class| is_on(&mut stream(class))).collect();
    if on.iter().any(|class| POWER.contains(class)) {
        on.retain(|class| !ENDS_OF_PROCESSES.contains(class));
    }
    if on.len() < CLASSES_MIN {
        on = FALLBACK.to_vec();
    }
    let mut faults = Vec::new();
    for (class, make) in CLASSES.iter().filter(|(class, _)| on.contains(class)) {
        // The first draw of the stream said that the class is on.
        let mut random = stream(class);
        let _ = is_on(&mut random);
        let mut draws = Draws { plan, random };
        let times = draws.magnitude(1, TIMES_MAX);
        for number in 1..=times {
            let mut fault = make(&mut draws);
            fault.id = format!("{}-{class}-{number}", swarm.id);
            fault.part_of = Some(swarm.id.clone());
            faults.push(fault);
        }
    }
    faults
}

fn is_on(random: &mut ChaCha8Rng) -> bool {
    streams::chance(random, 500_000)
}

/// What one class draws from its own stream.
struct Draws<'a> {
    plan: &'a Plan,
    random: ChaCha8Rng,
}

impl Draws<'_> {
    fn below(&mut self, count: usize) -> usize {
        self.random.random_range(0..count)
    }

    /// From `least` to `most`, every doubling as likely as the next: without logarithms, which builds compute
    /// differently.
    fn magnitude(&mut self, least: u64, most: u64) -> u64 {
        let bits = self.random.random_range(least.ilog2()..=most.ilog2());
        self.random.random_range(1 << bits..=(1 << (bits + 1)) - 1).clamp(least, most)
    }

    fn fault(&mut self, kind: &str, nodes: Vec<String>, arguments: &[(&str, &str)]) -> FaultPlan {
        let latest = self.plan.safety.saturating_sub(QUIET_END).as_millis() as u64;
        let moment = |ms: u64| {
            let at = Duration::from_millis(ms);
            TimeRange { from: at, to: at }
        };
        let at = moment(self.random.random_range(0..=latest));
        let lasts = moment(self.magnitude(LASTS_MS.0, LASTS_MS.1));
        let arguments =
            arguments.iter().map(|(name, value)| ((*name).to_string(), (*value).to_string())).collect();
        let (id, kind) = (String::new(), kind.to_string());
        FaultPlan { id, kind, at, when: None, lasts, nodes, sides: None, arguments, part_of: None }
    }

    fn on_nodes(&mut self, kind: &str, node: fn(&mut Self) -> String) -> FaultPlan {
        let node = node(self);
        self.fault(kind, vec![node], &[])
    }

    fn on_messages(&mut self, kind: &str, more: &[(&str, &str)]) -> FaultPlan {
        let speech = ["requests", "answers"][self.below(2)];
        let arguments = [&[("speech", speech), ("api", APIS[self.below(APIS.len())])], more].concat();
        let mut fault = self.fault(kind, Vec::new(), &arguments);
        let all = ["brokers", "controllers", "clients"].map(str::to_string).to_vec();
        fault.sides = Some((all.clone(), all));
        fault
    }

    fn power(&mut self, kind: &str) -> FaultPlan {
        // Controllers write what they promise before they promise it: any of them may lose power at any time.
        if self.below(3) == 0 {
            let controller = self.controller();
            return self.fault(kind, vec![controller], &[]);
        }
        let broker = self.broker();
        self.fault(kind, vec![broker], &[("alone", "true")])
    }

    /// Everybody on one of two sides.
    fn bipartition(&mut self) -> FaultPlan {
        let mut sides = (Vec::new(), Vec::new());
        let brokers = (1..=self.plan.brokers).map(|number| format!("b{number}"));
        let controllers = (1..=self.plan.controllers).map(|number| format!("c{number}"));
        let names: Vec<String> = brokers.chain(controllers).chain(self.clients()).collect();
        for name in names {
            if is_on(&mut self.random) { sides.0.push(name) } else { sides.1.push(name) }
        }
        // All on one side: the first one goes to the other.
        if sides.0.is_empty() {
            sides.0.push(sides.1.remove(0));
        } else if sides.1.is_empty() {
            sides.1.push(sides.0.remove(0));
        }
        let mut fault = self.fault("split", Vec::new(), &[]);
        fault.sides = Some(sides);
        fault
    }

    fn node(&mut self) -> String {
        if self.below(3) == 0 { self.controller() } else { self.broker() }
    }

    fn broker(&mut self) -> String {
        let partition = self.partition();
        match self.below(3) {
            0 => format!("leader({partition})"),
            1 => format!("follower({partition})"),
            _ => format!("b{}", 1 + self.below(usize::from(self.plan.brokers))),
        }
    }

    fn controller(&mut self) -> String {
        match self.below(2) {
            0 => "controller".to_string(),
            _ => format!("c{}", 1 + self.below(usize::from(self.plan.controllers))),
        }
    }

    fn clients(&self) -> Vec<String> {
        let producers = self.plan.producers.iter().map(|producer| producer.name.clone());
        producers.chain((1..=self.plan.tailing_consumers).map(|number| format!("k{number}"))).collect()
    }

    fn client(&mut self) -> String {
        let clients = self.clients();
        clients[self.below(clients.len())].clone()
    }

    fn partition(&mut self) -> String {
        let topic = &self.plan.topics[self.random.random_range(0..self.plan.topics.len())];
        format!("{}-{}", topic.name, self.random.random_range(0..topic.partitions))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;
    use crate::nemesis::{self, tests};

    fn planned() -> Plan {
        let mut plan = tests::plan();
        plan.faults = vec![FaultPlan { id: "mix".into(), ..tests::fault("swarm", &[]) }];
        plan
    }

    #[test]
    fn every_class_comes_up_alone_and_with_others_and_can_be_carried_out() {
        let plan = planned();
        let mut seen: BTreeMap<String, u64> = BTreeMap::new();
        for seed in 0..300 {
            let faults = expand(&plan, seed).faults;
            assert!(!faults.is_empty());
            let ids: BTreeSet<&String> = faults.iter().map(|fault| &fault.id).collect();
            assert_eq!(ids.len(), faults.len(), "ids are unique");
            for fault in &faults {
                assert_eq!(nemesis::check(fault), Ok(()), "{fault:?}");
                assert!(fault.at.to + QUIET_END <= plan.safety && fault.lasts.to <= Duration::from_secs(32));
                let class = fault.id.trim_start_matches("mix-").rsplit_once('-').expect("numbered").0;
                *seen.entry(class.to_string()).or_default() += 1;
            }
            let power = faults.iter().any(|fault| fault.kind.starts_with("power"));
            let ends = faults.iter().any(|fault| matches!(fault.kind.as_str(), "crash" | "stop"));
            assert!(!power || !ends, "one kind of end at a time");
        }
        assert_eq!(seen.len(), CLASSES.len(), "{seen:?}");
        assert!(seen.values().all(|count| *count >= 100), "{seen:?}");
    }

    #[test]
    fn magnitudes_stay_in_their_range_and_reach_both_ends() {
        let random = streams::stream(1, "test");
        let plan = planned();
        let mut draws = Draws { plan: &plan, random };
        let drawn: BTreeSet<u64> = (0..2000).map(|_| draws.magnitude(1, 4)).collect();
        assert_eq!(drawn, BTreeSet::from([1, 2, 3, 4]));
        let short = (0..2000).filter(|_| draws.magnitude(100, 32_000) < 1_000).count();
        assert!((500..1000).contains(&short), "{short} of 2000 last less than a second");
    }
}
