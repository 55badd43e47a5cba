//! One node from start to stop: boot, then one task that owns every machine and is woken by one kind of event.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use acked_core::controller::{Lifecycle, LifecycleConfig, ProducerIds, ProducerIdsConfig};
use acked_core::quorum::{Quorum, QuorumConfig, VoterEndpoint};
use acked_core::replica::{ReplicaConfig, ReplicaManager};
use acked_core::{Observer, Output, Rules, Time};
use acked_env::{Env, Listener as _, Timer};
use acked_wire::api::broker_registration::Listener;
use tokio::sync::mpsc;

use crate::boot::{self, Booted};
use crate::broker::{BrokerNode, BrokerParts, FoundReplica, LISTENER};
use crate::config::{NodeConfig, Role};
use crate::connection;
use crate::controller::ControllerNode;
use crate::event::Event;
use crate::files::BootError;
use crate::link::FRAME_MAX;
use crate::metadata_log;
use crate::quorum_host::QuorumHost;
use crate::shell::Shell;

/// Why a node is through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Asked to, in order.
    Stopped,
    /// By itself; what it failed to do.
    Failed(&'static str),
}

/// Why a node could not start, or did not go on.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    #[error(transparent)]
    Boot(#[from] BootError),
    #[error("listen on {address}: {source}")]
    Listen { address: std::net::SocketAddr, source: std::io::Error },
    #[error("{0}")]
    Failed(&'static str),
}

/// Asks a running node to stop in order.
#[derive(Clone, Debug)]
pub struct NodeHandle(mpsc::UnboundedSender<Event>);

impl NodeHandle {
    /// Returns at once; the node's `run` ends when it has stopped: a broker when the controller lets it go, or after
    /// the five minutes that a controlled shutdown may take; a controller when another one leads, or after
    /// `controller.quorum.request.timeout.ms`. Asking again changes nothing.
    pub fn stop(&self) {
        // A node that is gone needs no telling.
        let _ = self.0.send(Event::Shutdown);
    }
}

/// A broker or a controller, before it runs.
pub struct Node<E: Env, O: Observer> {
    env: E,
    config: NodeConfig,
    rules: Rules,
    observer: Arc<O>,
    events: mpsc::UnboundedSender<Event>,
    mailbox: mpsc::UnboundedReceiver<Event>,
}

impl<E: Env, O: Observer> Node<E, O> {
    pub fn new(env: E, config: NodeConfig, rules: Rules, observer: Arc<O>) -> (Self, NodeHandle) {
        let (events, mailbox) = mpsc::unbounded_channel();
        let handle = NodeHandle(events.clone());
        (Node { env, config, rules, observer, events, mailbox }, handle)
    }

    /// Runs until the node is asked to stop, or cannot go on.
    ///
    /// # Errors
    /// What kept it from starting, or made it stop by itself.
    pub async fn run(self) -> Result<(), NodeError> {
        let Node { env, config, rules, observer, events, mailbox } = self;
        let mut booted = boot::boot(&env, &config).await?;
        let listener = env
            .listen(config.listen)
            .await
            .map_err(|source| NodeError::Listen { address: config.listen, source })?;
        // Port 0 asks for any: what is told to others is what was given.
        let mut config = config;
        if config.advertised.1 == 0 {
            config.advertised.1 = listener.local_address().port();
        }
        let shell = Shell::new(env.clone(), config.clone(), observer, events.clone());
        shell.observe(&mut booted.observations);

        let (files, queue) = mpsc::unbounded_channel();
        env.spawn("metadata log", metadata_log::serve(env.disk(), queue, events.clone()));
        env.spawn("accept", connection::accept(env.clone(), listener, FRAME_MAX, events));
        let mut output = Output::default();
        let quorum = Quorum::start(
            quorum_config(&env, &config, &booted),
            rules,
            booted.quorum_state,
            booted.metadata_log.clone(),
            env.rng("quorum"),
            env.now(),
            &mut output,
        );
        let mut quorum = QuorumHost::new(quorum, files, output);
        let mut shell = shell;
        let begun = quorum.carry_out(&mut shell);
        match config.role {
            Role::Controller => {
                let mut node = ControllerNode::new(shell, quorum);
                node.news(begun);
                let ended = serve(&env, mailbox, &mut node).await;
                finish(ended, node.close()).await
            }
            Role::Broker => {
                let parts = broker_parts(&env, &config, rules, booted);
                let mut node = BrokerNode::new(shell, quorum, parts);
                node.news(begun);
                let ended = serve(&env, mailbox, &mut node).await;
                finish(ended, node.close()).await
            }
        }
    }
}

async fn finish(ended: Ended, close: impl Future<Output = ()>) -> Result<(), NodeError> {
    match ended {
        Ended::Stopped => {
            close.await;
            Ok(())
        }
        // Nothing is marked clean that did not end in order.
        Ended::Failed(what) => Err(NodeError::Failed(what)),
    }
}

/// What the loop asks of a node of either role.
pub trait Serve {
    fn next_deadline(&self) -> Option<Time>;
    fn event(&mut self, event: Event) -> Option<Ended>;
    fn deadline(&mut self, now: Time) -> Option<Ended>;
}

/// Events that are taken before the clock is looked at: a mailbox that is never empty must not keep a heartbeat back.
const EVENTS_IN_A_ROW_MAX: u32 = 32;

async fn serve<E: Env>(env: &E, mut mailbox: mpsc::UnboundedReceiver<Event>, node: &mut impl Serve) -> Ended {
    let mut timer = env.timer();
    let mut armed = None;
    let mut in_a_row = 0;
    loop {
        let deadline = node.next_deadline();
        if in_a_row >= EVENTS_IN_A_ROW_MAX {
            in_a_row = 0;
            let now = env.now();
            if deadline.is_some_and(|deadline| deadline <= now)
                && let Some(ended) = node.deadline(now)
            {
                return ended;
            }
            continue;
        }
        if deadline != armed {
            timer.set(deadline);
            armed = deadline;
        }
        let event = poll_fn(|context| {
            if let Poll::Ready(event) = mailbox.poll_recv(context) {
                return Poll::Ready(event);
            }
            timer.poll_fired(context).map(|()| None)
        })
        .await;
        let ended = match event {
            Some(event) => {
                in_a_row += 1;
                node.event(event)
            }
            None => {
                (armed, in_a_row) = (None, 0);
                node.deadline(env.now())
            }
        };
        if let Some(ended) = ended {
            return ended;
        }
    }
}

fn quorum_config<E: Env>(env: &E, config: &NodeConfig, booted: &Booted) -> QuorumConfig {
    let settings = &config.settings;
    let voters = config
        .voters
        .iter()
        .map(|(node, (host, port))| (*node, VoterEndpoint { host: host.clone(), port: *port }))
        .collect();
    let since_start =
        i64::try_from(env.now().as_millis()).expect("a node's clock does not reach 292 million years");
    QuorumConfig {
        election_timeout: settings.controller_quorum_election_timeout,
        election_backoff_max: settings.controller_quorum_election_backoff_max,
        fetch_timeout: settings.controller_quorum_fetch_timeout,
        request_timeout: settings.controller_quorum_request_timeout,
        retry_backoff: settings.controller_quorum_retry_backoff,
        append_linger: settings.controller_quorum_append_linger,
        clock_origin_ms: env.wall_clock_ms() - since_start,
        ..QuorumConfig::new(config.cluster_id.clone(), config.node, booted.directory, voters)
    }
}

fn broker_parts<E: Env>(env: &E, config: &NodeConfig, rules: Rules, booted: Booted) -> BrokerParts {
    let settings = &config.settings;
    let (host, port) = &config.advertised;
    let listener = Listener {
        name: LISTENER.into(),
        host: host.as_str().into(),
        port: *port,
        security_protocol: 0,
        ..Listener::default()
    };
    let mut lifecycle = LifecycleConfig::new(
        config.node,
        config.cluster_id.as_str().into(),
        booted.incarnation,
        vec![listener],
        vec![booted.directory],
        settings,
    );
    lifecycle.previous_broker_epoch = booted.previous_broker_epoch;
    let logs = booted
        .replicas
        .iter()
        .map(|(partition, replica)| FoundReplica {
            partition: *partition,
            paths: replica.paths.clone(),
            is_usable: replica.log.is_some(),
        })
        .collect();
    let recovered = booted
        .replicas
        .into_iter()
        .filter_map(|(partition, replica)| Some((partition, replica.log?)))
        .collect();
    let replica_config = ReplicaConfig {
        node: config.node,
        replica_lag_time_max: settings.replica_lag_time_max,
        replica_fetch_wait_max: settings.replica_fetch_wait_max,
        replica_fetch_min_bytes: settings.replica_fetch_min_bytes,
        replica_fetch_max_bytes: settings.replica_fetch_max_bytes,
        replica_fetch_response_max_bytes: settings.replica_fetch_response_max_bytes,
        replica_fetch_backoff: settings.replica_fetch_backoff,
        fetch_max_bytes: settings.fetch_max_bytes,
        high_watermark_checkpoint_interval: settings.replica_high_watermark_checkpoint_interval,
        ..ReplicaConfig::default()
    };
    BrokerParts {
        incarnation: booted.incarnation,
        replicas: ReplicaManager::new(replica_config, rules, recovered),
        lifecycle: Lifecycle::new(lifecycle, env.now()),
        producer_ids: ProducerIds::new(ProducerIdsConfig {
            node: config.node,
            wait_max: settings.request_timeout,
            retry_backoff: settings.controller_quorum_retry_backoff,
        }),
        logs,
        high_watermarks: booted.high_watermarks,
        recovery_points: booted.recovery_points,
    }
}

#[cfg(test)]
mod tests {
    use acked_env::TokioEnv;
    use tokio::runtime::Builder;

    use super::*;

    /// Always late, and ended by its deadline.
    #[derive(Default)]
    struct Late {
        events: u32,
    }

    impl Serve for Late {
        fn next_deadline(&self) -> Option<Time> {
            Some(Time::ZERO)
        }

        fn event(&mut self, _event: Event) -> Option<Ended> {
            self.events += 1;
            None
        }

        fn deadline(&mut self, _now: Time) -> Option<Ended> {
            Some(Ended::Stopped)
        }
    }

    #[test]
    fn full_mailbox_does_not_keep_a_deadline_back() {
        let (events, mailbox) = mpsc::unbounded_channel();
        for _ in 0..10 * EVENTS_IN_A_ROW_MAX {
            events.send(Event::Shutdown).unwrap_or_else(|_| unreachable!("the mailbox is there"));
        }
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
        let mut node = Late::default();
        let ended = runtime.block_on(async {
            let env = TokioEnv::new("unused", Some(0)).expect("a seed needs no entropy");
            serve(&env, mailbox, &mut node).await
        });
        assert_eq!(ended, Ended::Stopped);
        assert!(node.events <= EVENTS_IN_A_ROW_MAX, "{} events came first", node.events);
    }
}
