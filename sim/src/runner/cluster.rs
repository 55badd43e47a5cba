//! The cluster under test: starts, stops and cuts its members, and tells the recorder what was really done. Faults act
//! through it; it never decides when.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use acked_client::{Admin, AdminError, ElectionKind, SettingsOf};
use acked_core::{NodeId, Rules, TopicPartition};
use acked_node::{Node, NodeConfig, NodeHandle};
use acked_wire::error_code;

use super::recorder::{FailureCause, Recorder};
use crate::judge::FaultEvent;
use crate::names::{CONTROLLER_BASE, node_name};
use crate::nemesis::targets;
use crate::plan::{FaultPlan, Trigger};
use crate::workload::Memory;
use crate::world::{BlockId, CrashKind, Filter, Host, SimEnv, World};

/// How long an orderly stop may take before it is ended by force.
const STOP_WAIT_MAX: Duration = Duration::from_secs(30);
/// How often a condition on the view is looked at.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);
/// The same where a vote of the quorum is waited for.
const VOTE_LOOK_INTERVAL: Duration = Duration::from_millis(1);

/// A member of the world: a broker, a controller or a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    pub name: String,
    /// `None` for clients.
    pub node: Option<NodeId>,
    pub host: Host,
}

/// What a client's process runs, from its start on.
pub type ClientMain = Arc<dyn Fn(SimEnv) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync>;

/// What runs on a host whenever its process is started.
pub enum Program {
    Node(Box<NodeConfig>),
    Client {
        /// The client's number in the history.
        number: u32,
        main: ClientMain,
        memory: Arc<Memory>,
    },
}

impl Member {
    pub fn is_client(&self) -> bool {
        self.node.is_none()
    }

    pub fn is_broker(&self) -> bool {
        self.node.is_some_and(|node| node.0 <= CONTROLLER_BASE)
    }

    pub fn is_controller(&self) -> bool {
        self.node.is_some_and(|node| node.0 > CONTROLLER_BASE)
    }
}

struct Process {
    program: Program,
    state: ProcessState,
    /// Of the node that runs; it makes the handle when it starts.
    handle: Arc<Mutex<Option<NodeHandle>>>,
    /// Of the process that was started last.
    env: Option<SimEnv>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ProcessState {
    Down,
    /// On its way up; nothing can end it before it is there.
    Starting,
    Up,
    /// Stopping in order; whoever asked for it sees it through.
    Stopping,
}

pub struct Cluster {
    world: World,
    recorder: Arc<Recorder>,
    rules: Rules,
    members: Vec<Member>,
    processes: Mutex<BTreeMap<Host, Process>>,
    /// Blocks that are not lifted.
    cuts: Mutex<Vec<BlockId>>,
    /// Some fault takes machines' power and wants to be the only one.
    power_is_taken: AtomicBool,
    /// The process of the nemesis: what it asks of the cluster goes over its own connections.
    env: SimEnv,
    admin: Admin,
    client: u32,
}

impl Cluster {
    #[expect(clippy::too_many_arguments, reason = "everything that a cluster is made of")]
    pub fn new(
        world: World,
        recorder: Arc<Recorder>,
        rules: Rules,
        members: Vec<Member>,
        programs: BTreeMap<Host, Program>,
        env: SimEnv,
        admin: Admin,
        client: u32,
    ) -> Cluster {
        let processes = programs
            .into_iter()
            .map(|(host, program)| {
                let state = ProcessState::Down;
                (host, Process { program, state, handle: Arc::default(), env: None })
            })
            .collect();
        Cluster {
            world,
            recorder,
            rules,
            members,
            processes: Mutex::new(processes),
            cuts: Mutex::default(),
            power_is_taken: AtomicBool::new(false),
            env,
            admin,
            client,
        }
    }

    pub fn members(&self) -> &[Member] {
        &self.members
    }

    pub fn admin(&self) -> &Admin {
        &self.admin
    }

    pub fn recorder(&self) -> &Arc<Recorder> {
        &self.recorder
    }

    pub fn env(&self) -> &SimEnv {
        &self.env
    }

    /// The members that the words mean now, each once, in the order named.
    pub fn resolve(&self, words: &[String]) -> Vec<Member> {
        let recorded = self.recorder.lock();
        let mut found: Vec<Member> = Vec::new();
        for word in words {
            let target = targets::parse(word).expect("checked when the plan was made");
            for member in targets::resolve(&target, &recorded.view, &self.members) {
                if !found.contains(&member) {
                    found.push(member);
                }
            }
        }
        found
    }

    pub fn world(&self) -> &World {
        &self.world
    }

    pub async fn sleep(&self, duration: Duration) {
        self.world.sleep(duration).await;
    }

    /// Waits until `condition` holds or `wait_max` has passed; whether it held.
    pub async fn until(&self, wait_max: Duration, condition: impl FnMut() -> bool) -> bool {
        self.until_seen(wait_max, LOOK_INTERVAL, condition).await
    }

    /// Waits until the state that a fault is tied to holds. Votes are looked for more closely than the rest: what
    /// follows one is over within a few milliseconds.
    pub async fn until_triggered(&self, wait_max: Duration, trigger: &Trigger) -> bool {
        let interval = match trigger {
            Trigger::VotesGranted { .. } => VOTE_LOOK_INTERVAL,
            Trigger::LeaderChanged { .. } | Trigger::IsrSize { .. } => LOOK_INTERVAL,
        };
        self.until_seen(wait_max, interval, self.trigger(trigger)).await
    }

    async fn until_seen(
        &self,
        wait_max: Duration,
        interval: Duration,
        mut condition: impl FnMut() -> bool,
    ) -> bool {
        let deadline = self.world.now() + wait_max;
        while !condition() {
            if self.world.now() >= deadline {
                return false;
            }
            self.sleep(interval).await;
        }
        true
    }

    fn processes(&self) -> MutexGuard<'_, BTreeMap<Host, Process>> {
        self.processes.lock().expect("nothing panics while it starts or stops a process")
    }

    fn state(&self, host: Host) -> ProcessState {
        self.processes()[&host].state
    }

    /// Moves a process from one state to another; false when it is in none of those.
    fn turn(&self, host: Host, from: &[ProcessState], to: ProcessState) -> bool {
        let mut processes = self.processes();
        let process = processes.get_mut(&host).expect("every member has a program");
        let turns = from.contains(&process.state);
        if turns {
            process.state = to;
        }
        turns
    }

    /// Starts a process, if it is down.
    pub async fn start(&self, member: &Member) {
        if !self.turn(member.host, &[ProcessState::Down], ProcessState::Starting) {
            return;
        }
        let main = self.main(member);
        if let Some(node) = member.node {
            self.recorder.node_begins(node);
        }
        let env = self.world.start(member.host, move |env| main(env)).await;
        self.processes().get_mut(&member.host).expect("every member has a program").env = Some(env);
        self.turn(member.host, &[ProcessState::Starting], ProcessState::Up);
    }

    fn main(&self, member: &Member) -> ClientMain {
        let processes = self.processes();
        let process = &processes[&member.host];
        let config = match &process.program {
            Program::Node(config) => config.clone(),
            Program::Client { main, memory, .. } => {
                memory.begin();
                return main.clone();
            }
        };
        let (rules, recorder, name) = (self.rules, self.recorder.clone(), member.name.clone());
        let slot = process.handle.clone();
        Arc::new(move |env: SimEnv| {
            let (node, handle) = Node::new(env, (*config).clone(), rules, recorder.clone());
            *slot.lock().expect("nothing panics while it holds a handle") = Some(handle);
            let (recorder, name) = (recorder.clone(), name.clone());
            Box::pin(async move {
                if let Err(error) = node.run().await {
                    let text = format!("{name} stopped by itself: failed to {error}");
                    recorder.failed(FailureCause::Exit, Some(name), text);
                }
            })
        })
    }

    /// Kills a process that is up; false when there is nothing to kill.
    pub fn crash(&self, plan: &FaultPlan, member: &Member, kind: CrashKind) -> bool {
        if member.is_client() && !self.world.is_alive(member.host) {
            // It had done all it had to.
            return false;
        }
        if !self.turn(member.host, &[ProcessState::Up, ProcessState::Stopping], ProcessState::Down) {
            return false;
        }
        // Told before it happens, so that the judge knows the cause of what the disk reports.
        let nodes: Vec<NodeId> = member.node.into_iter().collect();
        self.tell(plan, &nodes, true, kind == CrashKind::Power, &member.name);
        let lost = self.world.crash(member.host, kind);
        self.client_ended(member);
        if kind == CrashKind::Power && member.node.is_some() {
            let text = format!(
                "{}: {} unsynced bytes in {} files and {} names are gone",
                member.name, lost.bytes_lost, lost.files_changed, lost.names_reverted
            );
            self.recorder.note(&plan.id, &text);
        }
        true
    }

    /// Starts a process again that a fault took down.
    pub async fn start_again(&self, fault: &str, member: &Member) {
        if self.state(member.host) == ProcessState::Down {
            self.heal(fault, "start", &nodes(std::slice::from_ref(member)), &member.name);
            self.start(member).await;
        }
    }

    /// Stops a process in order; false when it was not up.
    pub async fn stop(&self, plan: &FaultPlan, member: &Member) -> bool {
        if member.is_client() && !self.world.is_alive(member.host) {
            return false;
        }
        if !self.turn(member.host, &[ProcessState::Up], ProcessState::Stopping) {
            return false;
        }
        {
            let processes = self.processes();
            let process = &processes[&member.host];
            match &process.program {
                Program::Node(_) => {
                    let slot = process.handle.lock().expect("nothing panics while it holds a handle");
                    if let Some(handle) = &*slot {
                        handle.stop();
                    }
                }
                Program::Client { memory, .. } => memory.ask_to_stop(),
            }
        }
        self.tell(plan, &nodes(std::slice::from_ref(member)), true, false, &member.name);
        self.until(STOP_WAIT_MAX, || {
            !self.world.is_alive(member.host) || self.state(member.host) != ProcessState::Stopping
        })
        .await;
        // Another fault may have killed it, and started it again, meanwhile.
        if self.turn(member.host, &[ProcessState::Stopping], ProcessState::Down) {
            self.world.crash(member.host, CrashKind::Process);
            self.client_ended(member);
        }
        true
    }

    fn client_ended(&self, member: &Member) {
        if let Program::Client { number, .. } = &self.processes()[&member.host].program {
            self.recorder.client_ended(*number);
        }
    }

    pub fn pause(&self, plan: &FaultPlan, member: &Member) -> bool {
        if !self.world.is_alive(member.host) || self.world.is_paused(member.host) {
            return false;
        }
        self.tell(plan, &nodes(std::slice::from_ref(member)), true, false, &member.name);
        self.world.pause(member.host);
        true
    }

    pub fn resume(&self, fault: &str, member: &Member) {
        if self.world.is_paused(member.host) {
            self.heal(fault, "pause", &nodes(std::slice::from_ref(member)), &member.name);
            self.world.resume(member.host);
        }
    }

    /// Cuts what goes from one side to the other. Cuts add up; each is lifted by itself.
    pub fn block(&self, plan: &FaultPlan, from: &[Member], to: &[Member]) -> BlockId {
        let names = |members: &[Member]| {
            members.iter().map(|member| member.name.as_str()).collect::<Vec<_>>().join(" ")
        };
        self.tell(plan, &nodes(from), true, false, &format!("{{{}}} to {{{}}}", names(from), names(to)));
        let block = self.world.block(&hosts(from), &hosts(to));
        self.cuts.lock().expect("nothing panics while it cuts").push(block);
        block
    }

    /// Catches messages until it is lifted as a block is. Only in a world that follows frames.
    pub fn filter(&self, plan: &FaultPlan, filter: Filter, text: &str) -> BlockId {
        self.tell(plan, &[], true, false, text);
        let block = self.world.filter(filter);
        self.cuts.lock().expect("nothing panics while it cuts").push(block);
        block
    }

    /// Lifts cuts after a time; how often they held up or lost something.
    pub async fn hold(&self, plan: &FaultPlan, blocks: Vec<BlockId>, lasts: Duration) -> u64 {
        self.sleep(lasts).await;
        let mut effects = 0;
        for block in blocks {
            self.unblock(plan, block);
            effects += self.effects(block);
        }
        effects
    }

    /// How often a cut or filter held up, lost or broke something.
    pub fn effects(&self, block: BlockId) -> u64 {
        self.world.block_effects(block)
    }

    /// Breaks the open connections between two sets at once; how many there were.
    pub fn break_connections(
        &self,
        plan: &FaultPlan,
        ones: &[Member],
        others: &[Member],
        reset: bool,
    ) -> u64 {
        let broken = self.world.break_connections(&hosts(ones), &hosts(others), reset);
        let how = if reset { "reset" } else { "closed" };
        self.tell(plan, &[], true, false, &format!("{broken} connections {how}"));
        broken
    }

    /// Moves the wall clock of a member's machine; its monotonic clock stays.
    pub fn step_clock(&self, plan: &FaultPlan, member: &Member, by_ms: i64) {
        let text = format!("{} by {by_ms} ms", member.name);
        self.tell(plan, &nodes(std::slice::from_ref(member)), true, false, &text);
        self.world.step_wall_clock(member.host, by_ms);
    }

    /// Lets the clocks of a member's machine gain (lose, when negative) millionths from now on; 0 is right again.
    pub fn drift_clock(&self, plan: &FaultPlan, member: &Member, ppm: i32) {
        let text = format!("{} by {ppm} millionths", member.name);
        self.tell(plan, &nodes(std::slice::from_ref(member)), ppm != 0, false, &text);
        self.world.set_clock_drift(member.host, ppm);
    }

    /// Stops a machine with its kernel and its clocks, as when a virtual machine is suspended. Cuts from it are part of
    /// it, and are returned; `None` when its process does not run or stands still already.
    pub fn freeze(&self, plan: &FaultPlan, member: &Member) -> Option<BlockId> {
        if !self.pause(plan, member) {
            return None;
        }
        self.world.freeze_clocks(member.host, true);
        let others: Vec<Host> = self.world.hosts().into_iter().filter(|host| *host != member.host).collect();
        let block = self.world.block(&others, &[member.host]);
        self.cuts.lock().expect("nothing panics while it cuts").push(block);
        Some(block)
    }

    /// Lets a frozen machine go on.
    pub fn thaw(&self, plan: &FaultPlan, member: &Member, block: BlockId) {
        self.world.freeze_clocks(member.host, false);
        self.resume(&plan.id, member);
        self.unblock(plan, block);
    }

    /// The environment of the process that a member runs; `None` when it does not run.
    pub fn process(&self, member: &Member) -> Option<SimEnv> {
        self.processes()[&member.host].env.clone().filter(|_| self.world.is_alive(member.host))
    }

    /// States that a fault begins, for faults that act by themselves.
    pub fn began(&self, plan: &FaultPlan, members: &[Member], text: &str) {
        self.tell(plan, &nodes(members), true, false, text);
    }

    pub fn unblock(&self, plan: &FaultPlan, block: BlockId) {
        let mut cuts = self.cuts.lock().expect("nothing panics while it cuts");
        // It may have been healed with everything else at the end of the safety phase.
        if let Some(at) = cuts.iter().position(|cut| *cut == block) {
            cuts.remove(at);
            self.heal(&plan.id, &plan.kind, &[], "");
            self.world.unblock(block);
        }
    }

    /// Asks something of the cluster, as an operation that must end; Kafka's code of what came of it.
    async fn administer(
        &self,
        name: &'static str,
        call: impl Future<Output = Result<i16, AdminError>>,
    ) -> i16 {
        let operation = self.recorder.call(self.client, name);
        let code = call.await.unwrap_or_else(|error| error.code);
        self.recorder.client(&crate::judge::ClientEvent::CallEnded { operation, code });
        code
    }

    /// Asks for an election; whether a leader was really moved.
    pub async fn elect(&self, plan: &FaultPlan, topic: &str, index: i32, kind: ElectionKind) -> bool {
        let before = self.recorder.lock().view.partition(topic, index).and_then(|state| state.leader);
        let partitions = [(topic, index)];
        let elected = async {
            let elected = self.admin.elect_leaders(kind, Some(&partitions)).await?;
            Ok(elected.first().map_or(error_code::NONE, |partition| partition.code))
        };
        let code = self.administer("elect-leaders", elected).await;
        let after = self.recorder.lock().view.partition(topic, index).and_then(|state| state.leader);
        let moved = code == error_code::NONE && before != after;
        let text = format!("{topic}-{index}: {}", error_code::name(code));
        self.tell(plan, &after.into_iter().collect::<Vec<_>>(), true, false, &text);
        moved
    }

    /// Gives a partition's replicas another order, which `reorder` makes of the present one, and asks for the preferred
    /// election that follows from it; whether the leader was really moved.
    pub async fn reassign(
        &self,
        plan: &FaultPlan,
        topic: &str,
        index: i32,
        reorder: impl Fn(&mut Vec<NodeId>),
    ) -> bool {
        let state = self.recorder.lock().view.partition(topic, index).cloned();
        let Some(mut replicas) = state.map(|state| state.replicas) else { return false };
        reorder(&mut replicas);
        let reassigned = async {
            self.admin.reassign(topic, index, Some(&replicas)).await?;
            Ok(error_code::NONE)
        };
        let code = self.administer("alter-partition-reassignments", reassigned).await;
        let names: Vec<String> = replicas.iter().map(|node| node_name(*node)).collect();
        let text = format!("{topic}-{index} on {}: {}", names.join(" "), error_code::name(code));
        self.tell(plan, &replicas, true, false, &text);
        code == error_code::NONE && self.elect(plan, topic, index, ElectionKind::Preferred).await
    }

    /// Changes a setting of a topic; whether the controller took it.
    pub async fn alter_topic(&self, plan: &FaultPlan, topic: &str, name: &str, value: &str) -> bool {
        let altered = async {
            self.admin.alter_settings(SettingsOf::Topic(topic), &[(name, Some(value))]).await?;
            Ok(error_code::NONE)
        };
        let code = self.administer("incremental-alter-configs", altered).await;
        let text = format!("{topic} {name}={value}: {}", error_code::name(code));
        self.tell(plan, &[], true, false, &text);
        code == error_code::NONE
    }

    /// Whether the state that a fault is tied to holds; leader changes are counted from now on.
    fn trigger<'a>(&'a self, trigger: &'a Trigger) -> impl FnMut() -> bool + 'a {
        let before = match trigger {
            Trigger::LeaderChanged { topic, index, .. } => {
                self.recorder.lock().view.leader_changes(topic, *index)
            }
            Trigger::IsrSize { .. } => 0,
            Trigger::VotesGranted { .. } => self.recorder.lock().view.votes_granted(),
        };
        move || {
            let view = &self.recorder.lock().view;
            match trigger {
                Trigger::LeaderChanged { topic, index, times } => {
                    view.leader_changes(topic, *index) >= before + times
                }
                Trigger::IsrSize { topic, index, size } => {
                    view.partition(topic, *index).is_some_and(|state| state.isr.len() == *size)
                }
                Trigger::VotesGranted { times } => view.votes_granted() >= before + times,
            }
        }
    }

    /// Takes the right to take machines' power, if nobody has it, every node runs and every replica is in sync.
    pub fn take_power(&self) -> bool {
        let nodes_run =
            self.members.iter().filter(|member| member.node.is_some()).all(|member| {
                self.state(member.host) == ProcessState::Up && self.world.is_alive(member.host)
            });
        let in_sync = self.recorder.lock().view.all_in_sync();
        nodes_run && in_sync && !self.power_is_taken.swap(true, Ordering::Relaxed)
    }

    pub fn give_power_back(&self) {
        self.power_is_taken.store(false, Ordering::Relaxed);
    }

    /// The in-sync sets that nodes are in, and how often each has left it so far.
    pub fn memberships(&self, members: &[Member]) -> Vec<(TopicPartition, NodeId, u64)> {
        let view = &self.recorder.lock().view;
        let nodes: Vec<NodeId> = members.iter().filter_map(|member| member.node).collect();
        view.partitions()
            .flat_map(|state| {
                let own = nodes.iter().filter(|node| state.isr.contains(node));
                own.map(|node| (state.partition, *node, view.departures(state.partition, *node)))
            })
            .collect()
    }

    /// Whether nodes have left all those sets since, and every replica is in sync again.
    pub fn came_back(&self, memberships: &[(TopicPartition, NodeId, u64)]) -> bool {
        let view = &self.recorder.lock().view;
        let left = |(partition, node, before): &(TopicPartition, NodeId, u64)| {
            view.departures(*partition, *node) > *before
        };
        memberships.iter().all(left) && view.all_in_sync()
    }

    /// Waits until a broker is in every in-sync set that it is assigned to, or the controllers have a leader again.
    pub async fn until_back(&self, member: &Member, wait_max: Duration) -> bool {
        let Some(node) = member.node else { return true };
        if member.is_controller() {
            return self.until(wait_max, || self.recorder.lock().view.controller().is_some()).await;
        }
        self.until(wait_max, || {
            let recorded = self.recorder.lock();
            recorded
                .view
                .partitions()
                .all(|state| !state.replicas.contains(&node) || state.isr.contains(&node))
        })
        .await
    }

    /// Ends every fault: all links whole, everybody awake, every node started.
    pub async fn heal_everything(&self) {
        self.cuts.lock().expect("nothing panics while it cuts").clear();
        self.world.unblock_all();
        for member in &self.members {
            self.resume("heal", member);
        }
        for member in &self.members {
            // A node that stopped by itself is started like one that was killed; a client that ended has done its work.
            let ended = self.state(member.host) == ProcessState::Up && !self.world.is_alive(member.host);
            if ended && member.node.is_some() {
                self.turn(member.host, &[ProcessState::Up], ProcessState::Down);
            }
            self.start_again("heal", member).await;
        }
    }

    fn tell(&self, plan: &FaultPlan, nodes: &[NodeId], injected: bool, loses_power: bool, text: &str) {
        let event =
            FaultEvent { id: &plan.id, kind: &plan.kind, nodes, injected, loses_power, wipes_disk: false };
        self.recorder.fault(&event, text);
    }

    fn heal(&self, id: &str, kind: &str, nodes: &[NodeId], text: &str) {
        let event = FaultEvent { id, kind, nodes, injected: false, loses_power: false, wipes_disk: false };
        self.recorder.fault(&event, text);
    }
}

fn nodes(members: &[Member]) -> Vec<NodeId> {
    let mut nodes: Vec<NodeId> = members.iter().filter_map(|member| member.node).collect();
    nodes.sort();
    nodes.dedup();
    nodes
}

fn hosts(members: &[Member]) -> Vec<Host> {
    members.iter().map(|member| member.host).collect()
}
