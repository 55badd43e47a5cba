//! [`World`]: makes machines, starts and ends their processes, cuts links and steps clocks. The supervisor's side;
//! what a process sees is [`SimEnv`].

use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::task::Poll;
use std::time::Duration;

use acked_core::NodeId;
use bytes::Bytes;
use madsim::plugin::Simulator;
use madsim::rand::GlobalRng;
use madsim::runtime::{Handle, NodeHandle};
use madsim::time::TimeHandle;
use rand_chacha::ChaCha8Rng;

use super::clock::{Clock, nanoseconds};
use super::disk::state::DiskState;
use super::disk::{DiskEffects, DiskSettings, DiskShared};
use super::environment::SimEnv;
use super::finding::TaskFailure;
use super::host::{Host, HostIdentity, HostState};
use super::network::fabric::{LinkShape, Network};
use super::network::{BlockId, Filter, NetworkCounters, NetworkSettings};
use super::schedule::Schedule;
use super::shared::{Kernel, Shared, contained, lock};
use super::streams;
use super::tap::{DiskTap, NetworkTap, TaskTap};
use super::timers::Timers;
use super::trace::{Ending, Happening, Log, Trace};

/// The executor asks for a moment between the end of a process and its next start: the old tasks are dropped then.
const RESTART_PAUSE_NS: u64 = 1_000_000;

/// How the world is made. All bounds; the seed fixes the rest.
#[derive(Clone, Default)]
pub struct WorldSettings {
    pub network: NetworkSettings,
    pub disk: DiskSettings,
    /// A run that reaches this time ends with [`super::RunError::TimeLimit`].
    pub time_limit: Option<Duration>,
    pub disk_tap: Option<Arc<dyn DiskTap>>,
    pub network_tap: Option<Arc<dyn NetworkTap>>,
    pub task_tap: Option<Arc<dyn TaskTap>>,
}

/// How a process is made to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CrashKind {
    /// The process is killed; the kernel closes its connections and the page cache survives.
    Process,
    /// The machine loses power: peers are told nothing, unsynced data survives in part.
    Power,
}

type Start = Arc<dyn Fn(SimEnv) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync>;

/// The supervisor's handle of one simulated world. Clones share it.
#[derive(Clone)]
pub struct World {
    shared: Arc<Shared>,
    inner: Arc<Inner>,
}

struct Inner {
    settings: WorldSettings,
    /// The executor's node for the world's own tasks: the driver of the schedule, the nemesis.
    own_node: NodeHandle,
    starts: Mutex<BTreeMap<Host, Start>>,
    clients: Mutex<u8>,
}

/// The executor tells its plugins about kills here; how the process ends was decided before.
struct Kills {
    shared: OnceLock<Weak<Shared>>,
}

impl Simulator for Kills {
    fn new(_: &GlobalRng, _: &TimeHandle, _: &madsim::Config) -> Kills {
        Kills { shared: OnceLock::new() }
    }

    fn reset_node(&self, id: madsim::task::NodeId) {
        if let Some(shared) = self.shared.get().and_then(Weak::upgrade) {
            process_ended(&shared, id);
        }
    }
}

/// The consequences of the end of a process for network and disk. The executor's locks are held: no call of it.
fn process_ended(shared: &Arc<Shared>, id: madsim::task::NodeId) {
    let ended = shared.with(|kernel| {
        let now = kernel.schedule.now();
        let index = kernel.hosts.iter().position(|state| state.executor_node == id)?;
        let host = Host(index as u16);
        let state = &mut kernel.hosts[index];
        let how = state.ending;
        state.alive = false;
        state.paused = false;
        state.ended_at = Some(now);
        kernel.trace.record(now, Happening::Ended { host, how });
        let (network, mut around) = kernel.network();
        match how {
            Ending::Exit | Ending::Process => network.process_ended(host, &mut around),
            Ending::Power => network.power_lost(host, &mut around),
        }
        // The disk refuses this incarnation's handles from now on and waits for the next one's.
        Some((host, how, kernel.host(host).incarnation + 1))
    });
    let Some((host, how, incarnation)) = ended else { return };
    let disk = shared.disk(host);
    match how {
        Ending::Exit | Ending::Process => disk.lock().process_ended(incarnation),
        Ending::Power => {
            let lost = disk.lock().lose_power(incarnation);
            let change = super::trace::DiskAction::PowerLoss;
            let checksum = lost.pages_torn as u32;
            let (position, size) = (lost.pages_dropped, lost.bytes_lost);
            shared.lock().record(Happening::DiskChanged { host, change, position, size, checksum });
        }
    }
}

impl World {
    /// Must be called on the executor's main task.
    pub(super) fn new(seed: u64, settings: WorldSettings) -> World {
        let executor = Handle::current();
        let mut network = Network::new(seed, settings.network.clone());
        network.tap = settings.network_tap.clone();
        let kernel = Kernel {
            schedule: Schedule::new(TimeHandle::current()),
            timers: Timers::default(),
            network,
            trace: Trace::default(),
            hosts: Vec::new(),
            limit: settings.time_limit.map(nanoseconds),
            limit_reached: false,
            limit_waker: None,
            wakes: Vec::new(),
            next_prune: 0,
            moment_began: 0,
        };
        let own_node = executor.create_node().name("world").build();
        let shared = Arc::new(Shared::new(seed, executor, kernel, settings.task_tap.clone()));
        let kills = madsim::plugin::simulator::<Kills>();
        let first = kills.shared.set(Arc::downgrade(&shared)).is_ok();
        assert!(first, "one world lives in one runtime");
        let driven = Arc::downgrade(&shared);
        let mut wakes = Vec::new();
        own_node.spawn(poll_fn(move |context| match driven.upgrade() {
            Some(shared) => {
                shared.drive(context.waker(), &mut wakes);
                Poll::<()>::Pending
            }
            None => Poll::Ready(()),
        }));
        let inner = Inner { settings, own_node, starts: Mutex::default(), clients: Mutex::default() };
        World { shared, inner: Arc::new(inner) }
    }

    pub(super) fn register(runtime: &madsim::runtime::Runtime) {
        runtime.add_simulator::<Kills>();
    }

    /// A machine for the broker with this id, named `b<id>` at 10.0.0.`<id>`.
    pub fn add_broker(&self, node: NodeId) -> Host {
        self.add_node(&format!("b{node}"), address(0, node.0), Some(node))
    }

    /// A machine for the controller with this id (101 …), named `c<id - 100>` at 10.0.1.`<id - 100>`.
    pub fn add_controller(&self, node: NodeId) -> Host {
        let number = node.0 - 100;
        self.add_node(&format!("c{number}"), address(1, number), Some(node))
    }

    /// A machine for a client, at the next address of 10.0.2.0/24.
    pub fn add_client(&self, name: &str) -> Host {
        let number = {
            let mut clients = lock(&self.inner.clients);
            *clients += 1;
            i32::from(*clients)
        };
        self.add_node(name, address(2, number), None)
    }

    /// A machine with power and without a process. Name and address must be new.
    pub fn add_node(&self, name: &str, address: IpAddr, node: Option<NodeId>) -> Host {
        let executor_node = self.shared.executor.create_node().name(name).build().id();
        let mut clock_stream = self.rng(&format!("clock/{name}"));
        let origin = streams::below(&mut clock_stream, 1_000_000_000_000);
        let host = {
            let mut kernel = self.shared.lock();
            assert!(kernel.network.resolve(name).is_none(), "host {name} exists once");
            assert!(kernel.network.resolve(&address.to_string()).is_none(), "address {address} is used once");
            kernel.network.add_machine(name, address);
            let host = Host(u16::try_from(kernel.hosts.len()).expect("fewer than 65 536 hosts"));
            kernel.hosts.push(HostState {
                identity: HostIdentity { name: name.into(), address, node },
                executor_node,
                clock: Clock::new(origin),
                alive: false,
                paused: false,
                incarnation: 0,
                ended_at: None,
                ending: Ending::Process,
                streams: BTreeMap::new(),
            });
            host
        };
        let mut disk =
            DiskState::new(node, self.inner.settings.disk.clone(), self.rng(&format!("disk/{name}")));
        disk.tap = self.inner.settings.disk_tap.clone();
        lock(&self.shared.disks).push(Arc::new(DiskShared::new(host, disk)));
        host
    }

    pub fn identity(&self, host: Host) -> HostIdentity {
        self.shared.lock().host(host).identity.clone()
    }

    /// All machines, in the order of creation.
    pub fn hosts(&self) -> Vec<Host> {
        (0..self.shared.lock().hosts.len()).map(|index| Host(index as u16)).collect()
    }

    /// The machine of this name or address.
    pub fn find(&self, name: &str) -> Option<Host> {
        self.shared.lock().network.resolve(name)
    }

    pub fn host_of(&self, node: NodeId) -> Option<Host> {
        let kernel = self.shared.lock();
        let index = kernel.hosts.iter().position(|state| state.identity.node == Some(node))?;
        Some(Host(index as u16))
    }

    /// Starts the host's process with `main` as its main task, and keeps `main` for [`World::restart`]. Returns the
    /// process's environment, for tasks that the supervisor adds. When `main` returns the process exits.
    ///
    /// # Panics
    /// When a process of this host runs.
    pub async fn start<F, Main>(&self, host: Host, main: F) -> SimEnv
    where
        F: Fn(SimEnv) -> Main + Send + Sync + 'static,
        Main: Future<Output = ()> + Send + 'static,
    {
        lock(&self.inner.starts).insert(host, Arc::new(move |env| Box::pin(main(env))));
        self.restart(host).await
    }

    /// Starts the host's process as it was started last, on the disk as it is now.
    ///
    /// # Panics
    /// When a process of this host runs, or none was ever started.
    pub async fn restart(&self, host: Host) -> SimEnv {
        let (ended_at, executor_node) = {
            let kernel = self.shared.lock();
            let state = kernel.host(host);
            assert!(!state.alive, "{} runs already", state.identity.name);
            (state.ended_at, state.executor_node)
        };
        if let Some(ended_at) = ended_at {
            self.shared.sleep_until(ended_at + RESTART_PAUSE_NS).await;
            self.shared.executor.restart(executor_node);
        }
        let main = Arc::clone(lock(&self.inner.starts).get(&host).expect("the host was started before"));
        let node = self.shared.executor.get_node(executor_node).expect("a host's node exists");
        let incarnation = self.shared.with(|kernel| {
            let state = kernel.host_mut(host);
            assert!(!state.alive, "{} was started twice at the same time", state.identity.name);
            state.alive = true;
            state.incarnation += 1;
            state.ending = Ending::Exit;
            state.streams.clear();
            let incarnation = state.incarnation;
            kernel.record(Happening::Started { host, incarnation });
            let (network, mut around) = kernel.network();
            network.power_on(host, &mut around);
            incarnation
        });
        self.shared.disk(host).lock().process_ended(incarnation);
        let env = SimEnv::new(&self.shared, host, incarnation, node.clone());
        let (shared, given) = (Arc::clone(&self.shared), env.clone());
        node.spawn(async move {
            contained(Arc::clone(&shared), Some(host), "main", async move { main(given).await }).await;
            shared.executor.kill(executor_node);
        });
        env
    }

    /// Ends the host's process, or takes the machine's power. Returns what the disk lost. Without a process, power
    /// loss still hits the disk, and a process crash does nothing.
    pub fn crash(&self, host: Host, kind: CrashKind) -> DiskEffects {
        let (paused, alive, executor_node) = {
            let mut kernel = self.shared.lock();
            let state = kernel.host_mut(host);
            state.ending = match kind {
                CrashKind::Process => Ending::Process,
                CrashKind::Power => Ending::Power,
            };
            (state.paused, state.alive, state.executor_node)
        };
        if kind == CrashKind::Process && !alive {
            return DiskEffects::default();
        }
        if paused {
            self.resume(host);
        }
        let before = self.disk_effects(host);
        self.shared.executor.kill(executor_node);
        assert!(!self.is_alive(host), "the plugin heard of the kill");
        self.disk_effects(host).since(before)
    }

    /// Stops the process's tasks; its kernel goes on: connections are accepted up to the backlog, data is buffered up
    /// to the window, timers fire late.
    pub fn pause(&self, host: Host) {
        self.set_paused(host, true);
    }

    pub fn resume(&self, host: Host) {
        self.set_paused(host, false);
    }

    pub fn is_alive(&self, host: Host) -> bool {
        self.shared.lock().host(host).alive
    }

    pub fn is_paused(&self, host: Host) -> bool {
        self.shared.lock().host(host).paused
    }

    /// Blocks everything on the way from any of `from` to any of `to`, until [`World::unblock`]. Blocks add up.
    pub fn block(&self, from: &[Host], to: &[Host]) -> BlockId {
        self.shared.with(|kernel| {
            let (network, mut around) = kernel.network();
            network.block(from, to, &mut around)
        })
    }

    /// Lifts one block; lifting it again does nothing.
    pub fn unblock(&self, block: BlockId) {
        self.shared.with(|kernel| {
            let (network, mut around) = kernel.network();
            network.unblock(block, &mut around);
        });
    }

    pub fn unblock_all(&self) {
        let blocks = self.shared.lock().network.blocks();
        for block in blocks {
            self.unblock(block);
        }
    }

    /// Catches messages of Kafka's protocol until [`World::unblock`]. Only in a world that follows frames
    /// ([`NetworkSettings::follow_frames`]).
    pub fn filter(&self, filter: Filter) -> BlockId {
        self.shared.lock().network.filter(filter)
    }

    /// How often a block or filter held up, lost or broke something so far, also after it was lifted.
    pub fn block_effects(&self, block: BlockId) -> u64 {
        self.shared.lock().network.effects(block)
    }

    /// Breaks every open connection between the two sets at once: by a reset at both ends, or by the end of the stream
    /// in the middle of what travels. Returns how many there were.
    pub fn break_connections(&self, ones: &[Host], others: &[Host], reset: bool) -> u64 {
        self.shared.with(|kernel| {
            let (network, mut around) = kernel.network();
            network.break_connections((ones, others), reset, &mut around)
        })
    }

    /// Changes latency, loss or bandwidth of one direction of a link, for what is sent from now on.
    pub fn set_link(&self, from: Host, to: Host, change: impl FnOnce(&mut LinkShape)) {
        self.shared.lock().network.set_link(from, to, change);
    }

    pub fn network_counters(&self) -> NetworkCounters {
        self.shared.lock().network.counters()
    }

    /// Connections of which some kernel still keeps state.
    pub fn open_connections(&self) -> usize {
        self.shared.lock().network.open_connections()
    }

    /// Changes the latencies or the capacity of a host's disk.
    pub fn set_disk(&self, host: Host, change: impl FnOnce(&mut DiskSettings)) {
        change(&mut self.shared.disk(host).lock().settings);
    }

    /// The next `count` syncs of files on this host fail, and make nothing durable.
    pub fn fail_syncs(&self, host: Host, count: u64) {
        self.shared.disk(host).lock().syncs_to_fail = count;
    }

    /// Gives a host without a process an empty disk.
    pub fn wipe_disk(&self, host: Host) -> DiskEffects {
        let incarnation = {
            let kernel = self.shared.lock();
            assert!(!kernel.host(host).alive, "a disk is taken out of a machine without a process");
            kernel.host(host).incarnation + 1
        };
        self.shared.disk(host).lock().wipe(incarnation)
    }

    /// What faults did to this host's disk so far.
    pub fn disk_effects(&self, host: Host) -> DiskEffects {
        self.shared.disk(host).lock().effects()
    }

    /// The content of a file as the page cache has it.
    pub fn inspect(&self, host: Host, path: &str) -> Option<Bytes> {
        self.shared.disk(host).lock().inspect(path)
    }

    /// The paths of all files of a host, sorted.
    pub fn files(&self, host: Host) -> Vec<String> {
        self.shared.disk(host).lock().files()
    }

    /// From now on the host's clocks gain `drift` millionths (lose, when negative); at most half a million.
    pub fn set_clock_drift(&self, host: Host, drift: i32) {
        self.shared.with(|kernel| {
            let now = kernel.schedule.now();
            kernel.host_mut(host).clock.set_drift(now, drift);
            kernel.timers.requeue(host, &kernel.hosts, &mut kernel.schedule);
            record_clock(kernel, host);
        });
    }

    /// From now on the clocks of a host stand still, or go on from where they stood.
    pub fn freeze_clocks(&self, host: Host, frozen: bool) {
        self.shared.with(|kernel| {
            let now = kernel.schedule.now();
            let clock = &mut kernel.host_mut(host).clock;
            if frozen {
                clock.freeze(now);
            } else {
                clock.thaw(now);
            }
            kernel.timers.requeue(host, &kernel.hosts, &mut kernel.schedule);
            kernel.record(Happening::Frozen { host, frozen });
        });
    }

    /// Moves the host's wall clock; its monotonic clock stays.
    pub fn step_wall_clock(&self, host: Host, by_ms: i64) {
        self.shared.with(|kernel| {
            kernel.host_mut(host).clock.step_wall(by_ms);
            record_clock(kernel, host);
        });
    }

    /// Time since the start of the world.
    pub fn now(&self) -> Duration {
        Duration::from_nanos(self.shared.lock().schedule.now())
    }

    /// The present time of a host's monotonic clock.
    pub fn local_time(&self, host: Host) -> Duration {
        let kernel = self.shared.lock();
        Duration::from_nanos(kernel.host(host).clock.local(kernel.schedule.now()))
    }

    pub async fn sleep(&self, duration: Duration) {
        self.sleep_until(self.now() + duration).await;
    }

    /// Waits until the world's time is `at`.
    pub async fn sleep_until(&self, at: Duration) {
        self.shared.sleep_until(nanoseconds(at)).await;
    }

    /// Runs a task of the supervisor (nemesis, workload driver) until it ends or the world does.
    pub fn spawn(&self, name: &'static str, task: impl Future<Output = ()> + Send + 'static) {
        self.inner.own_node.spawn(contained(Arc::clone(&self.shared), None, name, task));
    }

    pub fn seed(&self) -> u64 {
        self.shared.seed
    }

    /// The supervisor's random stream of `purpose`: the same whenever it is asked for.
    pub fn rng(&self, purpose: &str) -> ChaCha8Rng {
        streams::stream(self.shared.seed, &format!("world/{purpose}"))
    }

    /// Feeds a fault, numbered by its owner, to the hash.
    pub fn record_fault(&self, number: u64) {
        self.shared.lock().record(Happening::Fault { number });
    }

    /// The fingerprint of everything that happened so far.
    pub fn hash(&self) -> u64 {
        self.shared.lock().trace.hash()
    }

    /// Happenings so far.
    pub fn events(&self) -> u64 {
        self.shared.lock().trace.events()
    }

    /// Tells `log` every happening from now on. It must not call the world.
    pub fn set_log(&self, log: Option<Log>) {
        self.shared.lock().trace.set_log(log);
    }

    /// Tasks that came to a bad end so far.
    pub fn task_failures(&self) -> Vec<TaskFailure> {
        self.shared.task_failures()
    }

    /// Timers in use, for tests that look for leaks.
    pub fn open_timers(&self) -> usize {
        self.shared.lock().timers.count()
    }

    /// Ends all processes (the machines keep their power), so that nothing of them outlives the run.
    pub async fn shutdown_all(&self) {
        for host in self.hosts() {
            self.crash(host, CrashKind::Process);
        }
        let resume = self.shared.lock().schedule.now() + RESTART_PAUSE_NS;
        self.shared.sleep_until(resume).await;
    }

    /// Ends the world's own tasks as well. The schedule stands still afterwards.
    pub(super) fn stop(&self) {
        for host in self.hosts() {
            self.crash(host, CrashKind::Process);
        }
        lock(&self.inner.starts).clear();
        self.shared.executor.kill(self.inner.own_node.id());
    }

    pub(super) async fn limit_reached(&self) {
        poll_fn(|context| {
            let mut kernel = self.shared.lock();
            if kernel.limit_reached {
                return Poll::Ready(());
            }
            kernel.limit_waker = Some(context.waker().clone());
            Poll::Pending
        })
        .await;
    }

    fn set_paused(&self, host: Host, paused: bool) {
        let executor_node = {
            let mut kernel = self.shared.lock();
            let state = kernel.host_mut(host);
            if state.paused == paused || !state.alive {
                return;
            }
            state.paused = paused;
            let executor_node = state.executor_node;
            kernel.record(Happening::Paused { host, paused });
            executor_node
        };
        if paused {
            self.shared.executor.pause(executor_node);
        } else {
            self.shared.executor.resume(executor_node);
        }
    }
}

fn address(network: u8, number: i32) -> IpAddr {
    let number = u8::try_from(number).expect("host numbers fit an octet");
    IpAddr::V4(Ipv4Addr::new(10, 0, network, number))
}

fn record_clock(kernel: &mut Kernel, host: Host) {
    let clock = &kernel.host(host).clock;
    let (rate, wall_offset_ms) = (clock.rate(), clock.wall_offset_ms());
    kernel.record(Happening::ClockChanged { host, rate, wall_offset_ms });
}
