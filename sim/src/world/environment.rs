//! [`SimEnv`]: the simulated world as one process sees it. A new one is made for each start of a process.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use acked_env::{Env, Timer};
use madsim::runtime::NodeHandle;
use rand_chacha::ChaCha8Rng;

use super::clock::nanoseconds;
use super::disk::SimDisk;
use super::host::Host;
use super::network::{SimListener, SimStream};
use super::shared::{Shared, Slot, contained};
use super::streams;

/// One process's network, disk, clocks, tasks and randomness.
#[derive(Clone)]
pub struct SimEnv {
    shared: Arc<Shared>,
    host: Host,
    incarnation: u32,
    executor_node: NodeHandle,
}

impl SimEnv {
    pub(super) fn new(
        shared: &Arc<Shared>,
        host: Host,
        incarnation: u32,
        executor_node: NodeHandle,
    ) -> SimEnv {
        SimEnv { shared: Arc::clone(shared), host, incarnation, executor_node }
    }

    pub fn host(&self) -> Host {
        self.host
    }

    /// Which start of the host's process this is, from 1.
    pub fn incarnation(&self) -> u32 {
        self.incarnation
    }

    /// An ended process opens no sockets, whoever still holds its environment.
    fn still_lives(&self) -> io::Result<()> {
        let kernel = self.shared.lock();
        let host = kernel.host(self.host);
        if host.alive && host.incarnation == self.incarnation {
            return Ok(());
        }
        Err(io::ErrorKind::NotConnected.into())
    }
}

impl Env for SimEnv {
    type Stream = SimStream;
    type Listener = SimListener;
    type Disk = SimDisk;
    type Timer = SimTimer;

    async fn listen(&self, address: SocketAddr) -> io::Result<SimListener> {
        self.still_lives()?;
        SimListener::bind(&self.shared, self.host, address)
    }

    async fn connect(&self, host: &str, port: u16) -> io::Result<SimStream> {
        self.still_lives()?;
        SimStream::connect(&self.shared, self.host, host, port).await
    }

    fn disk(&self) -> SimDisk {
        SimDisk::new(&self.shared, self.host, self.incarnation)
    }

    fn now(&self) -> Duration {
        let kernel = self.shared.lock();
        Duration::from_nanos(kernel.host(self.host).clock.local(kernel.schedule.now()))
    }

    fn wall_clock_ms(&self) -> i64 {
        let kernel = self.shared.lock();
        kernel.host(self.host).clock.wall_ms(kernel.schedule.now())
    }

    fn timer(&self) -> SimTimer {
        SimTimer { slot: Slot::new(&self.shared, Some(self.host)) }
    }

    fn spawn(&self, name: &'static str, task: impl Future<Output = ()> + Send + 'static) {
        self.executor_node.spawn(contained(Arc::clone(&self.shared), Some(self.host), name, task));
    }

    /// The stream depends on the seed, the host, the incarnation, the purpose, and how often this process asked for it.
    fn rng(&self, purpose: &str) -> ChaCha8Rng {
        let mut kernel = self.shared.lock();
        let host = kernel.host_mut(self.host);
        let count = host.streams.entry(purpose.to_owned()).or_default();
        *count += 1;
        let full = format!("node/{}/{}/{purpose}/{count}", host.identity.name, self.incarnation);
        streams::stream(self.shared.seed, &full)
    }
}

/// A deadline on a host's clock. Fires late, never early.
pub struct SimTimer {
    slot: Slot,
}

impl Timer for SimTimer {
    fn set(&mut self, deadline: Option<Duration>) {
        self.slot.set(deadline.map(nanoseconds));
    }

    fn poll_fired(&mut self, context: &mut Context<'_>) -> Poll<()> {
        self.slot.poll(context.waker())
    }
}
