//! The phases of one run, in order. Everything that acts lives on hosts of the simulated world; this drives them from
//! the nemesis's host and hands the end state to the judge.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use acked_client::{Admin, NewTopic};
use acked_core::consumer::Start;
use acked_core::settings::{AdminSettings, BrokerSettings, ConsumerSettings, ProducerSettings, Settings};
use acked_core::{NodeId, Time};
use acked_env::Env;
use acked_node::{NodeConfig, Role};
use acked_reports::SeedResult;
use rand::RngExt;

use super::cluster::{ClientMain, Cluster, Member, Program};
use super::recorder::Recorder;
use super::result::{self, WorldEnd};
use super::timeline::{Moment, Timeline};
use crate::judge::{
    Checks, ClientEvent, FinalPartition, FinalState, Judge, JudgeConfig, Probe, TopicContract,
};
use crate::names::{CONTROLLER_BASE, node_name};
use crate::nemesis::{self, Occasion};
use crate::plan::{FaultPlan, NetworkPlan, Plan, TimeRange};
use crate::workload::{self, Memory, ReadTo};
use crate::world::{Host, Latency, NetworkSettings, SimEnv, World, WorldSettings, run_in_fresh_thread};

const CLUSTER_ID: &str = "acked-simulated-cluster";
const BROKER_PORT: u16 = 9092;
const CONTROLLER_PORT: u16 = 9093;

/// How long the cluster may take to come up before the run is given up: many election and session time-outs.
const BOOT_MAX: Duration = Duration::from_secs(60);
/// Acknowledgements that end the warm-up, and the time that ends it anyway.
const WARM_UP_ACKED: u64 = 5;
const WARM_UP_MAX: Duration = Duration::from_secs(15);
/// How long the final read may take.
const READ_BACK_MAX: Duration = Duration::from_secs(120);
/// Slack on every bound, as Δ_elect has it.
const SLACK: Duration = Duration::from_secs(2);
/// A run that is not over by then has a bug that time does not heal.
const VIRTUAL_MAX: Duration = Duration::from_secs(3600);

/// What a run leaves behind.
pub struct RunOutput {
    pub result: SeedResult,
    /// Empty unless a timeline was asked for.
    pub timeline: Vec<Moment>,
}

/// Runs one seed on a thread of its own, with every check on. `token` is copied into the result.
pub fn run(plan: &Plan, seed: u64, token: &str, keep_timeline: bool) -> RunOutput {
    run_checked(plan, seed, token, keep_timeline, Checks::ALL)
}

/// The same run with only some checks on. With none the judge is told nothing at all, and the seed proves nothing: that
/// is what the checks cost.
pub fn run_checked(plan: &Plan, seed: u64, token: &str, keep_timeline: bool, checks: Checks) -> RunOutput {
    let plan = &nemesis::swarm::expand(plan, seed);
    let config = JudgeConfig { checks, ..judge_config(plan) };
    let judge = (checks != Checks::NONE).then(|| Judge::new(config.clone()));
    let recorder = Arc::new(Recorder::new(judge, keep_timeline.then(Timeline::default)));
    let settings = WorldSettings {
        network: NetworkSettings {
            latency: latency(plan.network),
            follow_frames: plan.faults.iter().any(nemesis::follows_frames),
            ..NetworkSettings::default()
        },
        time_limit: Some(VIRTUAL_MAX),
        disk_tap: Some(recorder.clone()),
        network_tap: Some(recorder.clone()),
        task_tap: Some(recorder.clone()),
        ..WorldSettings::default()
    };
    let (moved, recorded) = (plan.clone(), recorder.clone());
    let phased = run_in_fresh_thread(seed, settings, move |world| {
        recorded.begin();
        phases(world, moved, recorded)
    });
    let phased = phased.unwrap_or_else(|error| Phased {
        end: None,
        fired: Vec::new(),
        out_of_sync: Vec::new(),
        now: recorder.now(),
        broken_off: Some(error.to_string()),
        world: WorldEnd::default(),
    });
    let mut recorded = recorder.lock();
    let timeline = recorded.timeline.take().map(|timeline| timeline.moments).unwrap_or_default();
    let mut end = phased.world.clone();
    end.failures.append(&mut recorded.failures);
    let judge = recorded.judge.take().unwrap_or_else(|| Judge::new(config));
    drop(recorded);
    let judgement = match &phased.end {
        Some(state) => judge.finish(phased.now, state),
        None => judge.finish(phased.now, &FinalState::nothing()),
    };
    RunOutput { result: result::assemble(plan, seed, &phased, &judgement, &end, token), timeline }
}

/// What the phases hand over when they are through.
pub struct Phased {
    pub end: Option<FinalState>,
    /// Planned faults and how often each changed something.
    pub fired: Vec<(FaultPlan, u64)>,
    /// Replicas that were not in sync when the logs were compared, in words.
    pub out_of_sync: Vec<String>,
    pub now: Time,
    /// Why the run could not be carried through.
    pub broken_off: Option<String>,
    pub world: WorldEnd,
}

fn latency(network: NetworkPlan) -> Latency {
    match network {
        NetworkPlan::SameZone => Latency::SAME_ZONE,
        NetworkPlan::CrossZone => Latency::CROSS_ZONE,
    }
}

/// The bounds of the liveness checks, from the run's own settings (invariants.md 0).
struct Bounds {
    elect: Duration,
    isr: Duration,
    quorum: Duration,
    call: Duration,
}

impl Bounds {
    fn new(plan: &Plan, settings: &BrokerSettings) -> Bounds {
        let delivery = plan
            .producers
            .iter()
            .map(|producer| ProducerSettings::new(&producer.settings).expect("checked").delivery_timeout)
            .max()
            .expect("a plan has producers");
        Bounds {
            elect: settings.broker_session_timeout
                + settings.controller_quorum_fetch_timeout
                + 2 * settings.controller_quorum_election_timeout
                + SLACK,
            isr: settings.replica_lag_time_max + 2 * settings.replica_fetch_wait_max,
            quorum: 5
                * (settings.controller_quorum_fetch_timeout + settings.controller_quorum_election_timeout),
            call: delivery + settings.request_timeout + SLACK,
        }
    }
}

async fn phases(world: World, plan: Plan, recorder: Arc<Recorder>) -> Phased {
    let settings = BrokerSettings::new(&plan.broker).expect("checked when the plan was made");
    let bounds = Bounds::new(&plan, &settings);
    let cluster = Arc::new(build(&world, &plan, &settings, &recorder).await);
    let mut phased = Phased {
        end: None,
        fired: Vec::new(),
        out_of_sync: Vec::new(),
        now: Duration::ZERO,
        broken_off: None,
        world: WorldEnd::default(),
    };
    match boot(&cluster, &plan).await {
        Err(reason) => phased.broken_off = Some(reason),
        Ok(()) => {
            start_load(&cluster).await;
            cluster.until(WARM_UP_MAX, || recorder.acked() >= WARM_UP_ACKED).await;
            phased.fired = safety(&cluster, &plan).await;
            cluster.heal_everything().await;
            phased.end = Some(settle(&cluster, &plan, &bounds).await);
            phased.out_of_sync = out_of_sync(&recorder, &plan);
        }
    }
    phased.now = recorder.now();
    world.shutdown_all().await;
    phased.world = WorldEnd { hash: world.hash(), events: world.events(), failures: Vec::new() };
    phased
}

fn judge_config(plan: &Plan) -> JudgeConfig {
    let contract = |topic: &Settings, replication_factor: i32| {
        let settings = acked_core::settings::TopicSettings::new(topic, &plan.broker);
        TopicContract {
            replication_factor,
            min_insync: settings.min_insync_replicas,
            unclean: settings.unclean_leader_election_enable,
        }
    };
    JudgeConfig {
        brokers: (1..=i32::from(plan.brokers)).map(NodeId).collect(),
        controllers: (1..=i32::from(plan.controllers)).map(|c| NodeId(CONTROLLER_BASE + c)).collect(),
        topics: plan
            .topics
            .iter()
            .map(|topic| (topic.name.clone(), contract(&topic.settings, i32::from(topic.replication_factor))))
            .collect(),
        default_topic: contract(&Settings::default_for(acked_core::settings::Scope::Topic), 1),
        elr: false,
        checks: Checks::ALL,
    }
}

/// Makes hosts for everybody, and the configuration of every node; starts nothing.
async fn build(world: &World, plan: &Plan, settings: &BrokerSettings, recorder: &Arc<Recorder>) -> Cluster {
    let mut members = Vec::new();
    let mut add = |name: String, address: [u8; 4], node: Option<NodeId>| {
        let host = world.add_node(&name, address.into(), node);
        members.push(Member { name, node, host });
        host
    };
    let mut programs = BTreeMap::new();
    let voters: BTreeMap<NodeId, (String, u16)> = (1..=plan.controllers)
        .map(|number| {
            (NodeId(CONTROLLER_BASE + i32::from(number)), (format!("10.0.1.{number}"), CONTROLLER_PORT))
        })
        .collect();
    let mut configure = |host: Host, node: NodeId, role: Role, address: [u8; 4], port: u16| {
        let config = NodeConfig {
            node,
            role,
            cluster_id: CLUSTER_ID.to_string(),
            listen: (address, port).into(),
            advertised: (std::net::Ipv4Addr::from(address).to_string(), port),
            voters: voters.clone(),
            settings: settings.clone(),
            given: plan.broker.clone(),
        };
        programs.insert(host, Program::Node(Box::new(config)));
    };
    for number in 1..=plan.controllers {
        let (node, address) = (NodeId(CONTROLLER_BASE + i32::from(number)), [10, 0, 1, number as u8]);
        let host = add(format!("c{number}"), address, Some(node));
        configure(host, node, Role::Controller, address, CONTROLLER_PORT);
    }
    for number in 1..=plan.brokers {
        let (node, address) = (NodeId(i32::from(number)), [10, 0, 0, number as u8]);
        let host = add(format!("b{number}"), address, Some(node));
        configure(host, node, Role::Broker, address, BROKER_PORT);
    }
    for (number, producer) in plan.producers.iter().enumerate() {
        add(producer.name.clone(), [10, 0, 2, 1 + number as u8], None);
    }
    for number in 1..=plan.tailing_consumers {
        add(format!("k{number}"), [10, 0, 3, number as u8], None);
    }
    let nemesis = add("nemesis".to_string(), [10, 0, 4, 1], None);
    // The nemesis is no target: it must be able to heal what it did.
    members.pop();
    let env = world.start(nemesis, |_| std::future::pending()).await;
    // A broker that stands still must not hold the schedule up: another one is asked soon.
    let settings = AdminSettings { request_timeout: Duration::from_millis(500), ..AdminSettings::default() };
    let admin = Admin::new(&env, "nemesis", settings, bootstrap(plan));
    let client = u32::try_from(members.len()).expect("few members");
    for (number, member) in members.iter().enumerate().filter(|(_, member)| member.is_client()) {
        programs.insert(member.host, client_program(plan, &member.name, number as u32, recorder));
    }
    Cluster::new(world.clone(), recorder.clone(), plan.rules, members, programs, env, admin, client)
}

fn bootstrap(plan: &Plan) -> Vec<(String, u16)> {
    (1..=plan.brokers).map(|number| (format!("10.0.0.{number}"), BROKER_PORT)).collect()
}

async fn boot(cluster: &Arc<Cluster>, plan: &Plan) -> Result<(), String> {
    for member in cluster.members().to_vec() {
        if member.node.is_some() {
            cluster.start(&member).await;
        }
    }
    let recorder = cluster.recorder().clone();
    let brokers = usize::from(plan.brokers);
    if !cluster.until(BOOT_MAX, || recorder.lock().view.unfenced() >= brokers).await {
        return Err(format!("not every broker was unfenced within {} s of boot", BOOT_MAX.as_secs()));
    }
    for topic in &plan.topics {
        let new = NewTopic {
            name: topic.name.clone(),
            partitions: Some(topic.partitions),
            replication_factor: Some(topic.replication_factor),
            assignment: Vec::new(),
            settings: topic
                .settings
                .given()
                .map(|(name, value)| (name.to_string(), value.to_string()))
                .collect(),
        };
        let created = cluster.admin().create_topic(new).await;
        if let Err(error) = created
            && error.code != acked_wire::error_code::TOPIC_ALREADY_EXISTS
        {
            return Err(format!("create topic {}: {error}", topic.name));
        }
    }
    let led = || {
        let recorded = recorder.lock();
        plan.topics.iter().all(|topic| {
            (0..topic.partitions).all(|index| {
                recorded.view.partition(&topic.name, index).is_some_and(|state| state.leader.is_some())
            })
        })
    };
    if !cluster.until(BOOT_MAX, led).await {
        return Err("not every partition had a leader after boot".into());
    }
    Ok(())
}

/// What a client's process runs: a producer of the plan, or else a consumer that reads along.
fn client_program(plan: &Plan, name: &str, number: u32, recorder: &Arc<Recorder>) -> Program {
    let memory = Arc::new(Memory::default());
    let (bootstrap, recorder, kept) = (bootstrap(plan), recorder.clone(), memory.clone());
    let main: ClientMain = if let Some(producer) = plan.producers.iter().find(|known| known.name == name) {
        let topic = plan.topics.iter().find(|topic| topic.name == producer.topic).expect("checked");
        let (producer, partitions) = (producer.clone(), topic.partitions);
        Arc::new(move |env: SimEnv| {
            let (producer, bootstrap) = (producer.clone(), bootstrap.clone());
            let (recorder, memory) = (recorder.clone(), kept.clone());
            Box::pin(workload::produce(env, producer, partitions, number, bootstrap, recorder, memory))
        })
    } else {
        let settings = ConsumerSettings::new(&plan.consumer).expect("checked when the plan was made");
        let (name, topics) = (name.to_string(), plan.topics.clone());
        let first = first_position(&plan.consumer);
        Arc::new(move |env: SimEnv| {
            let (name, topics, settings) = (name.clone(), topics.clone(), settings.clone());
            let (bootstrap, recorder, memory) = (bootstrap.clone(), recorder.clone(), kept.clone());
            Box::pin(workload::tail(env, name, number, topics, settings, first, bootstrap, recorder, memory))
        })
    };
    Program::Client { number, main, memory }
}

/// Where consumers begin that have read nothing yet: everything is to be read, unless the scenario says `latest`.
fn first_position(consumer: &Settings) -> Start {
    let given = consumer.given().find(|(name, _)| *name == "auto.offset.reset");
    if given.is_some_and(|(_, value)| value == "latest") { Start::Latest } else { Start::Earliest }
}

async fn start_load(cluster: &Arc<Cluster>) {
    for member in cluster.members().iter().filter(|member| member.is_client()) {
        cluster.start(member).await;
    }
}

/// Fires every fault at its drawn time and waits until all are over and the phase's time is up.
async fn safety(cluster: &Arc<Cluster>, plan: &Plan) -> Vec<(FaultPlan, u64)> {
    let world = cluster.world();
    let begun = world.now();
    let waits_max = plan.safety;
    let (results, mut ended) = tokio::sync::mpsc::unbounded_channel();
    for fault in &plan.faults {
        let mut random = world.rng(&format!("fault {}", fault.id));
        let at = draw(&mut random, fault.at);
        let lasts = draw(&mut random, fault.lasts);
        let plus = fault.when.as_ref().map_or(Duration::ZERO, |(_, plus)| draw(&mut random, *plus));
        let occasion = Occasion { cluster: cluster.clone(), plan: fault.clone(), lasts, random };
        let (cluster, results) = (cluster.clone(), results.clone());
        world.spawn("fault", async move {
            let plan = occasion.plan.clone();
            cluster.sleep(at).await;
            let came = match &plan.when {
                // A state that never comes to hold is a fault that never fires: the seed is vacuous, not stuck.
                Some((trigger, _)) => cluster.until_triggered(waits_max, trigger).await,
                None => true,
            };
            cluster.sleep(plus).await;
            let effect = if came { nemesis::fire(occasion).await } else { 0 };
            let _ = results.send((plan, effect));
        });
    }
    drop(results);
    let mut fired = Vec::new();
    while let Some(result) = ended.recv().await {
        fired.push(result);
    }
    let spent = world.now() - begun;
    cluster.sleep(plan.safety.saturating_sub(spent)).await;
    // In the order of the plan, whichever ended first.
    fired.sort_by_key(|(fault, _)| plan.faults.iter().position(|planned| planned.id == fault.id));
    fired
}

fn draw(random: &mut rand_chacha::ChaCha8Rng, range: TimeRange) -> Duration {
    let micros = |duration: Duration| u64::try_from(duration.as_micros()).expect("bounded by an hour");
    Duration::from_micros(random.random_range(micros(range.from)..=micros(range.to)))
}

/// Liveness, then the final read. Every fault is healed when this begins.
async fn settle(cluster: &Arc<Cluster>, plan: &Plan, bounds: &Bounds) -> FinalState {
    let recorder = cluster.recorder().clone();
    recorder.end_load();
    let healed = recorder.now();
    let producers = plan.producers.len();
    let led = || {
        let recorded = recorder.lock();
        recorded.view.partitions().all(|state| state.leader.is_some())
    };
    cluster.until(bounds.elect, led).await;
    let probes = probe(cluster, plan, healed, bounds.elect + bounds.isr).await;
    cluster.until(bounds.call, || recorder.producers_done() == producers).await;
    // Replicas that rejoin late are compared too.
    let full = || {
        let recorded = recorder.lock();
        recorded.view.partitions().all(|state| state.isr.len() == state.replicas.len())
    };
    cluster.until(bounds.isr + bounds.elect, full).await;
    // What is committed reaches the followers with the next fetch.
    cluster.sleep(SLACK).await;

    let settings = ConsumerSettings::new(&plan.consumer).expect("checked when the plan was made");
    let client = cluster.members().len() as u32;
    let deadline = cluster.env().now() + READ_BACK_MAX;
    let read = workload::read_back(
        cluster.env().clone(),
        client,
        plan.topics.clone(),
        settings,
        bootstrap(plan),
        recorder.clone(),
        deadline,
    )
    .await;
    final_state(&recorder, bounds, &probes, &read)
}

/// One acks=all write to every partition, by Kafka's default producer; how long after the heal it was acknowledged.
async fn probe(
    cluster: &Arc<Cluster>,
    plan: &Plan,
    healed: Time,
    bound: Duration,
) -> Vec<(String, i32, Probe)> {
    let recorder = cluster.recorder();
    let mut settings = Settings::default_for(acked_core::settings::Scope::Producer);
    let bound_ms = bound.as_millis().to_string();
    // delivery.timeout.ms may not be below linger.ms + request.timeout.ms.
    for (name, value) in [("request.timeout.ms", "2000"), ("delivery.timeout.ms", bound_ms.as_str())] {
        let _ = settings.set(name, value).expect("Kafka has these and takes such values");
    }
    let settings = ProducerSettings::new(&settings).expect("a consistent producer");
    let env = cluster.env();
    let client = cluster.members().len() as u32 + 1;
    let (producer, mut completions) = acked_client::Producer::new(env, "probe", settings, bootstrap(plan));
    let mut probes: Vec<(String, i32, u64, Probe)> = Vec::new();
    for topic in &plan.topics {
        for index in 0..topic.partitions {
            let operation = recorder.next_operation();
            let value = workload::value(&format!("probe-{}-{index}", topic.name), 0, 64);
            recorder.client(&ClientEvent::SendInvoked {
                client,
                operation,
                topic: &topic.name,
                index,
                content: crate::judge::content_hash(None, Some(&value), []),
                acks: -1,
                idempotent: true,
                ordered: true,
            });
            producer.send_tagged(
                operation,
                topic.name.as_str(),
                index,
                None,
                Some(value),
                env.wall_clock_ms(),
            );
            probes.push((topic.name.clone(), index, operation, Probe::NotTried));
        }
    }
    for _ in 0..probes.len() {
        let Some(completion) = completions.next().await else { break };
        let operation = completion.tag;
        let outcome = match completion.result {
            Ok(metadata) => {
                recorder.client(&ClientEvent::SendOk { operation, offset: metadata.offset.unwrap_or(-1) });
                Probe::Acked(recorder.now() - healed)
            }
            Err(error) => {
                recorder.client(&if error.definite {
                    ClientEvent::SendFailed { operation, code: error.code }
                } else {
                    ClientEvent::SendInfo { operation, code: error.code }
                });
                Probe::Refused(error.code)
            }
        };
        let slot = probes.iter_mut().find(|(_, _, tag, _)| *tag == operation).expect("only probes are sent");
        slot.3 = outcome;
    }
    producer.close().await;
    probes.into_iter().map(|(topic, index, _, probe)| (topic, index, probe)).collect()
}

fn out_of_sync(recorder: &Arc<Recorder>, plan: &Plan) -> Vec<String> {
    let recorded = recorder.lock();
    let mut found = Vec::new();
    for topic in &plan.topics {
        for index in 0..topic.partitions {
            let Some(state) = recorded.view.partition(&topic.name, index) else { continue };
            for replica in state.replicas.iter().filter(|replica| !state.isr.contains(replica)) {
                found.push(format!("{} of {}-{index}", node_name(*replica), topic.name));
            }
        }
    }
    found
}

fn final_state(
    recorder: &Arc<Recorder>,
    bounds: &Bounds,
    probes: &[(String, i32, Probe)],
    read: &[ReadTo],
) -> FinalState {
    let recorded = recorder.lock();
    let partitions = probes
        .iter()
        .map(|(topic, index, probe)| {
            let state = recorded.view.partition(topic, *index);
            let read = read.iter().find(|one| one.topic == *topic && one.index == *index);
            FinalPartition {
                topic: topic.clone(),
                index: *index,
                leader: state.and_then(|state| state.leader),
                // Everybody is up and connected after the heal.
                electable: state.is_some_and(|state| !state.isr.is_empty()),
                writable: state.is_some(),
                probe: *probe,
                read_to: read.filter(|one| one.end.is_some()).map(|one| one.position),
            }
        })
        .collect();
    FinalState {
        partitions,
        quorum_leader: recorded.view.controller(),
        quorum_majority: true,
        call_bound: bounds.call,
        elect_bound: bounds.elect,
        write_bound: bounds.elect + bounds.isr,
        quorum_bound: bounds.quorum,
    }
}
