//! Three brokers and three controllers on loopback, with real sockets and files: what was acknowledged is read back
//! after a broker was killed, the killed one comes back in sync on its files, and an orderly stop leaves files as
//! Kafka writes them, the same bytes on every replica.
//!
//! Nothing is timed: every wait is for a condition, with a bound far above what it takes.

use std::collections::BTreeMap;
use std::fs;
use std::future::Future;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use acked_client::{Admin, Consumer, NewTopic, Producer, RecordMetadata, Start};
use acked_core::settings::{
    AdminSettings, BrokerSettings, ConsumerSettings, ProducerSettings, Scope, Settings,
};
use acked_core::{NodeId, Observation, Observer, Rules, Time};
use acked_env::deadline::before;
use acked_env::{Env, Listener, TokioDisk, TokioEnv, TokioListener, TokioTimer};
use acked_node::{Node, NodeConfig, NodeError, NodeHandle, Role};
use acked_wire::batch::batches;
use bytes::Bytes;
use rand_chacha::ChaCha8Rng;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;

const CLUSTER_ID: &str = "loopback-cluster";
const TOPIC: &str = "orders";
const PARTITIONS: i32 = 2;
const BROKERS: [NodeId; 3] = [NodeId(1), NodeId(2), NodeId(3)];
const CONTROLLERS: [NodeId; 3] = [NodeId(101), NodeId(102), NodeId(103)];

/// No wait takes a tenth of it, unless something is broken.
const WAIT_MAX: Duration = Duration::from_secs(50);
/// How often a condition is looked at.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);

#[test]
fn what_was_acknowledged_survives_a_killed_broker_on_real_files_and_sockets() {
    let directory = TemporaryDirectory::new("survives");
    let mut cluster = Cluster::start(&directory.0, &CONTROLLERS, &BROKERS);
    let clients = Clients::new(&cluster);
    clients.until("three brokers serve", || async {
        let described = clients.admin.describe(Some(&[])).await;
        described.is_ok_and(|cluster| cluster.brokers.len() == BROKERS.len())
    });
    let created = clients.within("the topic is created", clients.admin.create_topic(topic()));
    let topic_id = created.expect("three brokers take three replicas").topic.to_string();

    let mut acked = Acked::default();
    let (producer, _) = clients.producer();
    acked.add(clients.send(&producer, 0..200));
    // Under load: some of these are on their way when their leader dies.
    let in_flight: Vec<_> = (200..400).map(|number| clients.send_one(&producer, number)).collect();
    cluster.kill(clients.leader(0));
    let later: Vec<_> = (400..500).map(|number| clients.send_one(&producer, number)).collect();
    acked.add(clients.answers(in_flight.into_iter().chain(later)));
    assert_eq!(acked.records.len(), 500, "idempotence and acks=all outlast one broker of three");
    assert_eq!(clients.read_everything(), acked.records);

    cluster.restart_killed();
    clients.until("the killed broker is in sync again", || clients.are_in_sync());
    acked.add(clients.send(&producer, 500..550));
    assert_eq!(clients.read_everything(), acked.records);
    clients.within("the producer closes", producer.close());
    // A replica that takes over before it was told of the last commits may stop before it finds out by itself.
    let marks = acked.ends();
    clients.until("every replica knows what is committed", || async {
        BROKERS.iter().all(|broker| high_watermarks(&cluster.root(*broker)) == marks)
    });

    cluster.stop(&clients);
    for broker in BROKERS {
        check_broker_files(&cluster.root(broker), broker, &topic_id, &acked);
    }
    for controller in CONTROLLERS {
        check_identity(&cluster.root(controller), controller);
        check_quorum_state(&cluster.root(controller));
    }
    check_replicas_are_equal(&cluster, &acked);
    directory.remove();
}

#[test]
fn replica_that_was_damaged_after_a_clean_stop_is_kept_but_not_served() {
    let directory = TemporaryDirectory::new("damaged");
    let broker = BROKERS[0];
    let mut cluster = Cluster::start(&directory.0, &CONTROLLERS[..1], &[broker]);
    let clients = Clients::new(&cluster);
    clients.until("the broker serves", || async {
        clients.admin.describe(Some(&[])).await.is_ok_and(|cluster| cluster.brokers.len() == 1)
    });
    let topic = NewTopic { replication_factor: Some(1), settings: Vec::new(), ..topic() };
    clients.within("the topic is created", clients.admin.create_topic(topic)).expect("one broker is enough");
    let (producer, _) = clients.producer();
    let sent = clients.send(&producer, 0..20);
    assert_eq!(sent.len(), 20);
    clients.within("the producer closes", producer.close());
    cluster.stop_one(broker, &clients);

    let data = cluster.root(broker).join("data");
    let recovery_points = entries(&data.join("recovery-point-offset-checkpoint"));
    assert_eq!(recovery_points, [format!("{TOPIC} 0 10"), format!("{TOPIC} 1 10")]);
    let log = data.join(format!("{TOPIC}-0/00000000000000000000.log"));
    let mut damaged = fs::read(&log).expect("a log");
    *damaged.last_mut().expect("ten records") ^= 1;
    fs::write(&log, &damaged).expect("a writable file");

    cluster.start_again(broker);
    let clients = Clients::new(&cluster);
    clients.until("the sound partition is served", || async { clients.end(1).await == Ok(10) });
    // A storage error, asked again for as long as the client cares to.
    clients.within("the damaged partition is refused", async {
        assert!(clients.end(0).await.is_err());
    });
    cluster.stop(&clients);
    assert_eq!(fs::read(&log).expect("a log"), damaged, "what is left of it is kept");
    assert_eq!(
        entries(&data.join("recovery-point-offset-checkpoint")),
        recovery_points,
        "so is what it held"
    );
    assert!(!data.join(".kafka_cleanshutdown").exists(), "the next start must look again");
    directory.remove();
}

fn topic() -> NewTopic {
    NewTopic {
        name: TOPIC.to_string(),
        partitions: Some(PARTITIONS),
        replication_factor: Some(3),
        settings: vec![("min.insync.replicas".to_string(), "2".to_string())],
        ..NewTopic::default()
    }
}

// ---- what was sent and read

/// A record by where it is.
type Place = (i32, i64);

#[derive(Default)]
struct Acked {
    records: BTreeMap<Place, String>,
}

impl Acked {
    fn add(&mut self, answers: Vec<(u32, RecordMetadata)>) {
        for (number, answer) in answers {
            let offset = answer.offset.expect("acks=all tells the offset");
            let before = self.records.insert((answer.partition, offset), value(number));
            assert_eq!(before, None, "two records were acknowledged at one place");
        }
    }

    /// The offset after the last record of a partition.
    fn end(&self, partition: i32) -> i64 {
        let of_partition = self.records.keys().filter(|(index, _)| *index == partition);
        of_partition.map(|(_, offset)| offset + 1).max().expect("every partition was written to")
    }

    /// As the entries of a checkpoint.
    fn ends(&self) -> Vec<String> {
        (0..PARTITIONS).map(|index| format!("{TOPIC} {index} {}", self.end(index))).collect()
    }
}

fn value(number: u32) -> String {
    format!("record {number}")
}

struct Clients {
    runtime: Runtime,
    env: TokioEnv,
    bootstrap: Vec<(String, u16)>,
    admin: Admin,
}

impl Clients {
    fn new(cluster: &Cluster) -> Clients {
        let runtime = runtime();
        let env = TokioEnv::new("unused", None).expect("entropy");
        let brokers = cluster.ports.iter().filter(|(node, _)| BROKERS.contains(node));
        let bootstrap: Vec<_> = brokers.map(|(_, port)| address(*port)).collect();
        let admin = {
            let _entered = runtime.enter();
            Admin::new(&env, "admin", AdminSettings::default(), bootstrap.clone())
        };
        Clients { runtime, env, bootstrap, admin }
    }

    fn producer(&self) -> (Producer, acked_client::Completions) {
        let _entered = self.runtime.enter();
        let settings = ProducerSettings::default();
        assert!(settings.enable_idempotence, "Kafka's default");
        Producer::new(&self.env, "producer", settings, self.bootstrap.clone())
    }

    /// What comes of the future, which has to come within the bound.
    fn within<T>(&self, what: &str, future: impl Future<Output = T>) -> T {
        self.runtime.block_on(async {
            let value = before(&mut self.env.timer(), self.env.now() + WAIT_MAX, future).await;
            value.unwrap_or_else(|| panic!("in vain it was waited until {what}"))
        })
    }

    fn until<F: Future<Output = bool>>(&self, what: &str, mut holds: impl FnMut() -> F) {
        self.within(what, async {
            while !holds().await {
                let mut timer = self.env.timer();
                before(&mut timer, self.env.now() + LOOK_INTERVAL, std::future::pending::<()>()).await;
            }
        });
    }

    fn send_one(
        &self,
        producer: &Producer,
        number: u32,
    ) -> (u32, impl Future<Output = acked_client::SendResult> + use<>) {
        let partition = i32::try_from(number).expect("small") % PARTITIONS;
        let value = Some(Bytes::from(value(number)));
        let timestamp_ms = self.env.wall_clock_ms();
        (number, producer.send(TOPIC, partition, None, value, timestamp_ms))
    }

    fn answers<F: Future<Output = acked_client::SendResult>>(
        &self,
        sent: impl IntoIterator<Item = (u32, F)>,
    ) -> Vec<(u32, RecordMetadata)> {
        self.within("every record is acknowledged", async {
            let mut answers = Vec::new();
            for (number, answer) in sent {
                answers.push((number, answer.await.expect("a majority of the replicas lives")));
            }
            answers
        })
    }

    fn send(&self, producer: &Producer, numbers: std::ops::Range<u32>) -> Vec<(u32, RecordMetadata)> {
        let sent: Vec<_> = numbers.map(|number| self.send_one(producer, number)).collect();
        self.answers(sent)
    }

    fn leader(&self, partition: usize) -> NodeId {
        let described = self.within("the topic is described", self.admin.describe(Some(&[TOPIC])));
        let described = described.expect("the topic is there");
        described.topics[0].partitions[partition].leader.expect("records were just acknowledged")
    }

    /// The high watermark of a partition, or why nobody tells it within two seconds.
    async fn end(&self, partition: i32) -> Result<i64, acked_client::ConsumerError> {
        let settings = ConsumerSettings::default();
        let consumer = Consumer::new(&self.env, "consumer", settings, self.bootstrap.clone());
        let ends = consumer.end_offsets(&[(TOPIC, partition)], Duration::from_secs(2)).await;
        ends.map(|ends| ends[0])
    }

    async fn are_in_sync(&self) -> bool {
        let Ok(described) = self.admin.describe(Some(&[TOPIC])).await else { return false };
        let partitions = &described.topics[0].partitions;
        partitions.len() == PARTITIONS as usize
            && partitions.iter().all(|partition| partition.isr.len() == BROKERS.len())
    }

    /// Every record below the high watermarks.
    fn read_everything(&self) -> BTreeMap<Place, String> {
        let places: Vec<(&str, i32)> = (0..PARTITIONS).map(|index| (TOPIC, index)).collect();
        self.within("everything is read", async {
            let mut consumer =
                Consumer::new(&self.env, "consumer", ConsumerSettings::default(), self.bootstrap.clone());
            let ends = consumer.end_offsets(&places, WAIT_MAX).await.expect("every partition has a leader");
            let total: i64 = ends.iter().sum();
            for (topic, index) in &places {
                consumer.assign(*topic, *index, Start::Earliest);
            }
            let mut read = BTreeMap::new();
            while (read.len() as i64) < total {
                for record in consumer.poll(LOOK_INTERVAL).await.records {
                    let value = record.value.expect("every record has a value");
                    let value = String::from_utf8(value.to_vec()).expect("text");
                    let before = read.insert((record.partition, record.offset), value);
                    assert_eq!(before, None, "a record was given twice");
                }
            }
            read
        })
    }
}

// ---- the cluster

struct Unobserved;

impl Observer for Unobserved {
    fn observe(&self, _node: NodeId, _now: Time, _observation: &Observation) {}
}

/// The real world, with a listener that was bound before the node starts: voters must know each other's ports.
#[derive(Clone)]
struct BoundEnv {
    world: TokioEnv,
    listener: Arc<Mutex<Option<TokioListener>>>,
}

impl Env for BoundEnv {
    type Stream = <TokioEnv as Env>::Stream;
    type Listener = TokioListener;
    type Disk = TokioDisk;
    type Timer = TokioTimer;

    async fn listen(&self, _address: SocketAddr) -> io::Result<TokioListener> {
        let listener = self.listener.lock().expect("nothing panics with it").take();
        listener.ok_or_else(|| io::ErrorKind::AddrInUse.into())
    }

    async fn connect(&self, host: &str, port: u16) -> io::Result<Self::Stream> {
        self.world.connect(host, port).await
    }

    fn disk(&self) -> TokioDisk {
        self.world.disk()
    }

    fn now(&self) -> Duration {
        self.world.now()
    }

    fn wall_clock_ms(&self) -> i64 {
        self.world.wall_clock_ms()
    }

    fn timer(&self) -> TokioTimer {
        self.world.timer()
    }

    fn spawn(&self, name: &'static str, task: impl Future<Output = ()> + Send + 'static) {
        self.world.spawn(name, task);
    }

    fn rng(&self, purpose: &str) -> ChaCha8Rng {
        self.world.rng(purpose)
    }
}

fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime")
}

fn address(port: u16) -> (String, u16) {
    (Ipv4Addr::LOCALHOST.to_string(), port)
}

/// A node's process: everything that dies with it.
struct Process {
    runtime: Runtime,
    env: BoundEnv,
    port: u16,
}

/// A process whose node runs.
struct Running {
    runtime: Runtime,
    handle: NodeHandle,
    ended: oneshot::Receiver<Result<(), NodeError>>,
}

impl Process {
    fn new(root: PathBuf) -> Process {
        let runtime = runtime();
        let (world, listener) = runtime.block_on(async {
            let world = TokioEnv::new(root, None).expect("entropy");
            let listener = world.listen((Ipv4Addr::LOCALHOST, 0).into()).await.expect("a free port");
            (world, listener)
        });
        let port = listener.local_address().port();
        Process { runtime, env: BoundEnv { world, listener: Arc::new(Mutex::new(Some(listener))) }, port }
    }

    fn run(self, config: NodeConfig) -> Running {
        let (node, handle) = Node::new(self.env.clone(), config, Rules::KAFKA, Arc::new(Unobserved));
        let (done, ended) = oneshot::channel();
        let entered = self.runtime.enter();
        self.env.spawn("node", async move {
            let _ = done.send(node.run().await);
        });
        drop(entered);
        Running { runtime: self.runtime, handle, ended }
    }
}

struct Cluster {
    directory: PathBuf,
    voters: BTreeMap<NodeId, (String, u16)>,
    ports: BTreeMap<NodeId, u16>,
    running: BTreeMap<NodeId, Running>,
    killed: Option<NodeId>,
}

impl Cluster {
    /// Binds a port for every node, then starts them all: nobody else can take a port in between.
    fn start(directory: &Path, controllers: &[NodeId], brokers: &[NodeId]) -> Cluster {
        let mut cluster = Cluster {
            directory: directory.to_path_buf(),
            voters: BTreeMap::new(),
            ports: BTreeMap::new(),
            running: BTreeMap::new(),
            killed: None,
        };
        let processes: Vec<(NodeId, Process)> = controllers
            .iter()
            .chain(brokers)
            .copied()
            .map(|node| {
                fs::create_dir_all(cluster.root(node)).expect("a fresh directory");
                (node, Process::new(cluster.root(node)))
            })
            .collect();
        cluster.ports = processes.iter().map(|(node, process)| (*node, process.port)).collect();
        cluster.voters = controllers.iter().map(|node| (*node, address(cluster.ports[node]))).collect();
        for (node, process) in processes {
            cluster.run(node, process);
        }
        cluster
    }

    fn root(&self, node: NodeId) -> PathBuf {
        self.directory.join(format!("node-{node}"))
    }

    fn run(&mut self, node: NodeId, process: Process) {
        let role = if CONTROLLERS.contains(&node) { Role::Controller } else { Role::Broker };
        let mut given = Settings::default_for(Scope::Broker);
        let shorter = [
            // A killed broker is missed after three seconds, not nine.
            ("broker.session.timeout.ms", "3000"),
            ("broker.heartbeat.interval.ms", "500"),
            ("replica.high.watermark.checkpoint.interval.ms", "500"),
        ];
        for (name, value) in shorter {
            let _ = given.set(name, value).expect("a setting of Kafka's");
        }
        let config = NodeConfig {
            node,
            role,
            cluster_id: CLUSTER_ID.to_string(),
            listen: (Ipv4Addr::LOCALHOST, process.port).into(),
            advertised: address(process.port),
            voters: self.voters.clone(),
            settings: BrokerSettings::new(&given).expect("no conflict"),
            given,
        };
        self.running.insert(node, process.run(config));
    }

    /// Drops everything of a broker where it stands. Files keep what was handed to the operating system.
    fn kill(&mut self, node: NodeId) {
        let Running { runtime, handle: _, ended: _ } = self.running.remove(&node).expect("it runs");
        runtime.shutdown_timeout(WAIT_MAX);
        assert!(!self.root(node).join("data/.kafka_cleanshutdown").exists(), "nobody told it to stop");
        self.killed = Some(node);
    }

    fn restart_killed(&mut self) {
        let node = self.killed.take().expect("one was killed");
        self.start_again(node);
    }

    /// Starts a broker on the files that it left, on another port.
    fn start_again(&mut self, node: NodeId) {
        let process = Process::new(self.root(node));
        self.ports.insert(node, process.port);
        self.run(node, process);
    }

    /// Stops brokers, then controllers, one after the other.
    fn stop(&mut self, clients: &Clients) {
        let nodes: Vec<NodeId> = self.running.keys().copied().collect();
        assert!(BROKERS.iter().all(|broker| *broker < CONTROLLERS[0]), "brokers come first");
        for node in nodes {
            self.stop_one(node, clients);
        }
    }

    fn stop_one(&mut self, node: NodeId, clients: &Clients) {
        let Running { runtime, handle, ended } = self.running.remove(&node).expect("it runs");
        handle.stop();
        // Asking twice changes nothing.
        handle.stop();
        let ended = clients.within(&format!("node {node} stops"), ended).expect("its task ends in order");
        ended.unwrap_or_else(|error| panic!("node {node} failed to {error}"));
        runtime.shutdown_timeout(WAIT_MAX);
    }
}

// ---- files, read without the project's own parsers

fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The lines behind version 0 and the count, which must be right.
fn entries(path: &Path) -> Vec<String> {
    let text = text(path);
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("0"), "version of {text:?}");
    let count: usize = lines.next().and_then(|count| count.parse().ok()).expect("a count");
    let entries: Vec<String> = lines.map(str::to_string).collect();
    assert_eq!(entries.len(), count, "{text:?}");
    assert!(text.ends_with('\n'));
    entries
}

/// The entries of the checkpoint of high watermarks; none while it is not there.
fn high_watermarks(root: &Path) -> Vec<String> {
    let path = root.join("data/replication-offset-checkpoint");
    if path.exists() { entries(&path) } else { Vec::new() }
}

fn is_uuid(text: &str) -> bool {
    text.len() == 22 && text.bytes().all(|letter| letter.is_ascii_alphanumeric() || b"-_".contains(&letter))
}

fn check_identity(root: &Path, node: NodeId) {
    let text = text(&root.join("data/meta.properties"));
    let properties: BTreeMap<&str, &str> =
        text.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once('=')).collect();
    assert_eq!(properties["version"], "1");
    assert_eq!(properties["cluster.id"], CLUSTER_ID);
    assert_eq!(properties["node.id"], node.to_string());
    assert!(is_uuid(properties["directory.id"]), "{text:?}");
}

fn check_quorum_state(root: &Path) {
    let text = text(&root.join("data/__cluster_metadata-0/quorum-state"));
    for part in ["\"leaderId\":", "\"leaderEpoch\":", "\"votedId\":", "\"data_version\":0"] {
        assert!(text.contains(part), "{part} is not in {text:?}");
    }
}

fn check_broker_files(root: &Path, node: NodeId, topic_id: &str, acked: &Acked) {
    check_identity(root, node);
    check_quorum_state(root);
    let marker = text(&root.join("data/.kafka_cleanshutdown"));
    let marker: String = marker.chars().filter(|letter| !letter.is_whitespace()).collect();
    let epoch =
        marker.strip_prefix("{\"version\":0,\"brokerEpoch\":").and_then(|rest| rest.strip_suffix('}'));
    let epoch: i64 = epoch.and_then(|epoch| epoch.parse().ok()).unwrap_or_else(|| panic!("{marker:?}"));
    assert!(epoch > 0, "a registered broker has an epoch");
    let synced = entries(&root.join("data/recovery-point-offset-checkpoint"));
    assert_eq!(synced, acked.ends(), "everything was synced");
    assert_eq!(high_watermarks(root), acked.ends(), "everything is committed");
    for index in 0..PARTITIONS {
        let directory = root.join(format!("data/{TOPIC}-{index}"));
        let metadata = text(&directory.join("partition.metadata"));
        assert_eq!(metadata.trim_end(), format!("version: 0\ntopic_id: {topic_id}"));
        assert!(is_uuid(topic_id));
        let epochs: Vec<(i32, i64)> = entries(&directory.join("leader-epoch-checkpoint"))
            .iter()
            .map(|entry| {
                let (epoch, start) = entry.split_once(' ').expect("two numbers");
                (epoch.parse().expect("an epoch"), start.parse().expect("an offset"))
            })
            .collect();
        assert_eq!(epochs.first().map(|(_, start)| *start), Some(0), "the first leader wrote from the start");
        assert!(epochs.is_sorted_by(|one, next| one.0 < next.0 && one.1 < next.1), "{epochs:?}");
    }
}

/// Up to the end of what was acknowledged, which is every replica's high watermark.
fn check_replicas_are_equal(cluster: &Cluster, acked: &Acked) {
    for index in 0..PARTITIONS {
        let end = acked.end(index);
        let [first, second, third] = BROKERS.map(|broker| {
            let log = format!("data/{TOPIC}-{index}/00000000000000000000.log");
            committed(fs::read(cluster.root(broker).join(log)).expect("a log"), end)
        });
        assert!(first == second && second == third, "replicas of {TOPIC}-{index} differ below {end}");
    }
}

/// The bytes of the batches below `end`, which must all be there.
fn committed(log: Vec<u8>, end: i64) -> Vec<u8> {
    let mut next = 0;
    let mut size = 0;
    for batch in batches(&log) {
        let batch = batch.expect("a whole batch");
        if batch.header.base_offset >= end {
            break;
        }
        assert_eq!(batch.header.base_offset, next);
        next = batch.header.last_offset() + 1;
        size = batch.position + batch.bytes.len();
    }
    assert_eq!(next, end, "a replica lacks committed records");
    log[..size].to_vec()
}

/// Below cargo's folder for what tests write; kept when the test fails.
struct TemporaryDirectory(PathBuf);

impl TemporaryDirectory {
    fn new(name: &str) -> TemporaryDirectory {
        let name = format!("loopback-{name}-{}", std::process::id());
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        if directory.exists() {
            fs::remove_dir_all(&directory).expect("left from a process with the same number");
        }
        TemporaryDirectory(directory)
    }

    fn remove(self) {
        fs::remove_dir_all(self.0).expect("the test's own directory");
    }
}
