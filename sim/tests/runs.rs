//! Whole runs: what every fault kind, the judge and determinism promise, on plans small enough for a debug build.

use std::collections::BTreeMap;
use std::time::Duration;

use acked_core::Rules;
use acked_core::rules::ProduceReply;
use acked_core::settings::{Scope, Settings};
use acked_reports::{Contract, Outcome, SeedResult, Verdict};
use acked_sim::nemesis::{self, FAULTS};
use acked_sim::plan::{
    Expectation, FaultPlan, NetworkPlan, Plan, ProducerPlan, TimeRange, TopicPlan, Trigger,
};
use acked_sim::runner;

fn settings(scope: Scope, given: &[(&str, &str)]) -> Settings {
    let mut settings = Settings::default_for(scope);
    for (name, value) in given {
        let _ = settings.set(name, value).expect("Kafka has it");
    }
    settings
}

/// Three and three, short time-outs, one partition, one producer of 20 records a second.
fn plan(records: u64, safety_s: u64) -> Plan {
    Plan {
        scenario: "test".into(),
        configuration: "default".into(),
        expect: Expectation::Never,
        gate: Vec::new(),
        rules: Rules::KAFKA,
        brokers: 3,
        controllers: 3,
        topics: vec![TopicPlan {
            name: "orders".into(),
            partitions: 1,
            replication_factor: 3,
            settings: settings(Scope::Topic, &[("min.insync.replicas", "2")]),
        }],
        broker: settings(
            Scope::Broker,
            &[
                ("replica.lag.time.max.ms", "2000"),
                ("broker.session.timeout.ms", "3000"),
                ("broker.heartbeat.interval.ms", "500"),
                ("controller.quorum.fetch.timeout.ms", "1000"),
                ("controller.quorum.election.timeout.ms", "500"),
            ],
        ),
        consumer: settings(Scope::Consumer, &[]),
        producers: vec![ProducerPlan {
            name: "p1".into(),
            topic: "orders".into(),
            records,
            rate: 20,
            value_bytes: 100,
            keys: 0,
            settings: settings(
                Scope::Producer,
                &[("request.timeout.ms", "3000"), ("delivery.timeout.ms", "30000")],
            ),
        }],
        tailing_consumers: 1,
        faults: Vec::new(),
        safety: Duration::from_secs(safety_s),
        acked_min: 20,
        network: NetworkPlan::SameZone,
    }
}

fn at(seconds: u64) -> TimeRange {
    TimeRange { from: Duration::from_secs(seconds), to: Duration::from_secs(seconds) }
}

fn fault(id: &str, kind: &str, nodes: &[&str], at_s: u64, lasts_s: u64) -> FaultPlan {
    FaultPlan {
        id: id.into(),
        kind: kind.into(),
        at: at(at_s),
        when: None,
        lasts: at(lasts_s),
        nodes: nodes.iter().map(|node| (*node).to_string()).collect(),
        sides: None,
        arguments: BTreeMap::new(),
        part_of: None,
    }
}

fn run(plan: &Plan, seed: u64) -> SeedResult {
    for fault in &plan.faults {
        nemesis::check(fault).expect("the plan is one that a scenario could ask for");
    }
    runner::run(plan, seed, "token", false).result
}

#[test]
fn run_without_faults_passes_and_every_check_that_it_can_reach_compares() {
    let result = run(&plan(100, 6), 1);
    assert_eq!((result.verdict, result.outcome), (Verdict::Pass, Outcome::None), "{result:#?}");
    assert_eq!(result.acked, result.sent);
    assert_eq!(result.read_back, result.acked);
    for check in
        ["L1", "L2", "L5", "L7", "Q1", "Q2", "S1", "S16", "S19", "S2", "S4", "S7", "S9", "V1", "V3", "V17"]
    {
        assert!(result.comparisons[check] > 0, "{check} compared nothing");
    }
}

/// One fault of each kind; `move-leader` needs leadership to be elsewhere first, and an unclean election a partition
/// without anybody in sync.
fn provoke(kind: &str) -> Plan {
    let mut plan = plan(300, 12);
    let mut faults = vec![fault("one", kind, &["leader(orders-0)"], 1, 5)];
    match kind {
        "split" => {
            faults[0].nodes.clear();
            faults[0].sides = Some((vec!["leader(orders-0)".into()], vec!["followers(orders-0)".into()]));
        }
        "alter-config" => {
            faults[0].nodes.clear();
            for (name, value) in
                [("topic", "orders"), ("set", "min.insync.replicas=1"), ("then", "min.insync.replicas=2")]
            {
                faults[0].arguments.insert(name.into(), value.into());
            }
        }
        "delay" | "drop" => {
            faults[0].nodes.clear();
            faults[0].sides = Some((vec!["followers(orders-0)".into()], vec!["leader(orders-0)".into()]));
            faults[0].arguments.insert("api".into(), "Fetch".into());
        }
        "client-disconnect" => {
            faults[0].nodes.clear();
            faults[0].arguments.insert("times".into(), "3".into());
        }
        "clock-drift" => {
            faults[0].nodes = vec!["brokers".into(), "controllers".into(), "clients".into()];
            faults[0].arguments.insert("ppm".into(), "-50000..50000".into());
        }
        "clock-offset" | "clock-step" => {
            faults[0].nodes = vec!["brokers".into(), "controllers".into(), "clients".into()];
            faults[0].arguments.insert("by".into(), "-1h..1h".into());
        }
        "overlapping-majorities" => faults[0].nodes = vec!["brokers".into()],
        "halves" => faults[0].nodes.clear(),
        "rolling-restart" => {
            faults[0].nodes = vec!["brokers".into()];
            faults[0].lasts = at(1);
            faults[0].arguments.insert("clean".into(), "true".into());
        }
        "reassign" => faults[0].nodes = vec!["orders-0".into()],
        "move-leader" => {
            faults[0] = fault("one", kind, &["orders-0"], 9, 0);
            faults.insert(0, fault("away", "stop", &["replica(orders-0,0)"], 1, 2));
        }
        "unclean-election" => {
            faults[0] = fault("one", kind, &["orders-0"], 14, 0);
            // The followers fall behind and out, the leader dies for good, they come back.
            faults.insert(0, fault("stale", "crash", &["followers(orders-0)"], 1, 8));
            faults.insert(0, fault("dark", "crash", &["leader(orders-0)"], 7, 20));
            plan.topics[0].settings = settings(Scope::Topic, &[("min.insync.replicas", "1")]);
            plan.safety = Duration::from_secs(30);
        }
        _ => {}
    }
    plan.faults = faults;
    plan
}

#[test]
fn every_fault_kind_changes_something_and_loses_nothing_that_was_promised() {
    for kind in FAULTS.iter().filter(|kind| kind.is_listed() && kind.name != "swarm") {
        let result = run(&provoke(kind.name), 2);
        let count = result.faults.iter().find(|count| count.kind == kind.name).expect("it was planned");
        assert_eq!(count.fired, count.armed, "{} changed nothing", kind.name);
        assert_eq!(result.verdict, Verdict::Pass, "{}: {result:#?}", kind.name);
    }
}

#[test]
fn compressed_records_are_judged_and_read_back_as_others() {
    for (producer, topic) in [("zstd", "producer"), ("gzip", "lz4"), ("none", "snappy")] {
        let mut plan = provoke("crash");
        let _ = plan.producers[0].settings.set("compression.type", producer).expect("a codec");
        let _ = plan.topics[0].settings.set("compression.type", topic).expect("a codec");
        let result = run(&plan, 8);
        assert_eq!(result.verdict, Verdict::Pass, "{producer} as {topic}: {result:#?}");
        assert_eq!(result.outcome, Outcome::None, "{producer} as {topic}");
        assert!(result.acked >= plan.acked_min && result.read_back >= result.acked, "{producer} as {topic}");
    }
}

#[test]
fn loss_by_an_unclean_election_is_licensed_and_named() {
    let result = run(&provoke("unclean-election"), 3);
    assert_eq!(
        (result.verdict, result.outcome, result.contract),
        (Verdict::Pass, Outcome::Lost, Contract::Kept)
    );
    assert!(result.lost.iter().all(|range| range.rule.starts_with("rule 3i:")), "{:#?}", result.lost);
}

#[test]
fn fault_whose_state_never_comes_makes_the_seed_vacuous() {
    let mut plan = plan(100, 6);
    let mut never = fault("never", "crash", &["leader(orders-0)"], 0, 1);
    never.when = Some((Trigger::IsrSize { topic: "orders".into(), index: 0, size: 7 }, at(0)));
    plan.faults.push(never);
    let result = run(&plan, 4);
    assert_eq!(result.verdict, Verdict::Vacuous);
    assert_eq!(result.reason.as_deref(), Some("fault never (crash) changed nothing"));
}

#[test]
fn broker_that_answers_before_it_appends_breaks_the_contract() {
    let mut plan = provoke("crash");
    plan.rules.produce_reply = ProduceReply::OnReceipt;
    let result = run(&plan, 5);
    assert_eq!((result.verdict, result.contract), (Verdict::Violation, Contract::Broken));
    assert!(result.findings.iter().any(|finding| finding.invariant == "S2"));
}

#[test]
fn same_seed_gives_the_same_result_on_threads_side_by_side_and_another_seed_another() {
    let plan = provoke("power-loss");
    let results: Vec<SeedResult> = std::thread::scope(|scope| {
        let running: Vec<_> = [6, 6, 7]
            .map(|seed| {
                scope.spawn({
                    let plan = &plan;
                    move || run(plan, seed)
                })
            })
            .into();
        running.into_iter().map(|run| run.join().expect("a run does not panic")).collect()
    });
    assert_eq!(results[0], results[1]);
    assert_ne!(results[0].hash, results[2].hash);
}

/// The only fault of a plan, with other nodes and arguments.
fn provoke_with(kind: &str, nodes: &[&str], arguments: &[(&str, &str)]) -> Plan {
    let mut plan = provoke(kind);
    plan.faults[0].nodes = nodes.iter().map(|node| (*node).to_string()).collect();
    for (name, value) in arguments {
        plan.faults[0].arguments.insert((*name).to_string(), (*value).to_string());
    }
    plan
}

#[test]
fn clients_that_are_restarted_go_on_and_lose_nothing() {
    for clean in ["true", "false"] {
        let plan =
            provoke_with("rolling-restart", &["clients", "clients"], &[("clean", clean), ("overlap", "50")]);
        let result = run(&plan, 8);
        assert_eq!(result.verdict, Verdict::Pass, "{result:#?}");
        assert!(result.sent > 200, "the producer went on: {} sent", result.sent);
    }
}

#[test]
fn controllers_and_brokers_that_restart_with_overlap_lose_nothing() {
    let plan = provoke_with(
        "rolling-restart",
        &["brokers", "controllers"],
        &[("clean", "false"), ("overlap", "10..50")],
    );
    let result = run(&plan, 9);
    assert_eq!(result.verdict, Verdict::Pass, "{result:#?}");
}

#[test]
fn answers_that_are_lost_leave_no_record_twice() {
    for how in ["reset", "close"] {
        let mut plan = provoke_with("client-disconnect", &["p1"], &[("how", how), ("times", "5")]);
        plan.tailing_consumers = 0;
        let result = run(&plan, 10);
        assert_eq!((result.verdict, result.outcome), (Verdict::Pass, Outcome::None), "{result:#?}");
        assert!(result.comparisons["V3"] > 0);
    }
}

#[test]
fn panic_and_endless_loop_of_a_task_are_findings_on_their_node() {
    for (kind, id) in [("panic", "PANIC"), ("spin", "SPIN")] {
        let result = run(&provoke(kind), 11);
        assert_eq!((result.verdict, result.contract), (Verdict::Violation, Contract::Broken));
        let finding = result.findings.iter().find(|finding| finding.invariant == id).expect("it is found");
        assert!(finding.node.as_deref().is_some_and(|node| node.starts_with('b')), "{finding:?}");
        assert!(finding.text.contains("task planted defect"), "{finding:?}");
        assert!(finding.time_us > 0);
        assert!(result.read_back > 0, "the run went on");
    }
}

#[test]
fn same_seed_gives_the_same_result_under_faults_of_clients_and_messages() {
    for kind in ["client-disconnect", "delay", "freeze", "power-loss-in-recovery"] {
        assert_eq!(run(&provoke(kind), 12), run(&provoke(kind), 12), "{kind}");
    }
}

#[test]
fn swarm_is_another_mixture_for_every_seed_and_loses_nothing_that_was_promised() {
    let mut plan = plan(900, 30);
    plan.faults = vec![fault("mix", "swarm", &[], 0, 0)];
    plan.producers[0].settings =
        settings(Scope::Producer, &[("request.timeout.ms", "3000"), ("delivery.timeout.ms", "60000")]);
    let results: Vec<SeedResult> = (13..17).map(|seed| run(&plan, seed)).collect();
    for result in &results {
        assert_eq!((result.verdict, result.contract), (Verdict::Pass, Contract::Kept), "{result:#?}");
        assert!(result.faults.iter().any(|count| count.fired > 0));
    }
    assert_ne!(results[0].faults, results[1].faults);
    assert_eq!(results[0], run(&plan, 13));
}

#[test]
fn machines_that_lose_power_alone_do_so_one_after_the_other() {
    let mut plan = plan(600, 20);
    let mut faults = [fault("one", "power-loss", &["b1"], 1, 3), fault("two", "power-loss", &["b2"], 1, 3)];
    for fault in &mut faults {
        fault.arguments.insert("alone".into(), "true".into());
    }
    plan.faults = faults.to_vec();
    let output = runner::run(&plan, 18, "token", true);
    assert_eq!(output.result.verdict, Verdict::Pass, "{:#?}", output.result);
    let story: Vec<(&str, bool)> = output
        .timeline
        .iter()
        .filter(|moment| moment.kind == "fault" && moment.text.contains(": b"))
        .map(|moment| (moment.who.as_str(), moment.text.starts_with("power-loss:")))
        .collect();
    assert!(
        matches!(story[..], [(one, true), (same, false), (other, true), (last, false)]
            if one == same && other == last && one != other),
        "{story:?}"
    );
}
