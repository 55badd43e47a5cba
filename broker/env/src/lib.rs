//! Everything outside a node: network, disk, clocks, timers, tasks and randomness. The broker and the clients are
//! generic over [`Env`]; `TokioEnv` is the real world, `SimEnv` (in `sim`) the simulated one. Knows no Kafka.

pub mod deadline;
pub mod frame;
mod real;

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use rand_chacha::ChaCha8Rng;
use tokio::io::{AsyncRead, AsyncWrite};

pub use real::{TokioDisk, TokioEnv, TokioFile, TokioListener, TokioTimer};

/// One node's (or one client's) world. Clones share it.
pub trait Env: Clone + Send + Sync + 'static {
    type Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static;
    type Listener: Listener<Stream = Self::Stream>;
    type Disk: Disk;
    type Timer: Timer;

    /// Accepts connections on `address`. Port 0 asks for any free port.
    fn listen(&self, address: SocketAddr) -> impl Future<Output = io::Result<Self::Listener>> + Send;

    /// Connects to a host name or address. May hang as long as a real SYN may: callers bring their own deadline.
    fn connect(&self, host: &str, port: u16) -> impl Future<Output = io::Result<Self::Stream>> + Send;

    fn disk(&self) -> Self::Disk;

    /// Monotonic time since the origin of this node's clock; survives restarts of the node in the simulated world.
    fn now(&self) -> Duration;

    /// Milliseconds since 1970 by this node's wall clock, which may step and drift.
    fn wall_clock_ms(&self) -> i64;

    /// A timer that has not been set.
    fn timer(&self) -> Self::Timer;

    /// Runs a task until it ends or the node dies. A panic in it becomes a finding (simulated) or ends the process (real).
    fn spawn(&self, name: &'static str, task: impl Future<Output = ()> + Send + 'static);

    /// A random stream of its own for each purpose: taking draws from one never shifts another.
    fn rng(&self, purpose: &str) -> ChaCha8Rng;
}

/// Accepts connections until dropped.
pub trait Listener: Send + 'static {
    type Stream;
    fn local_address(&self) -> SocketAddr;
    fn accept(&mut self) -> impl Future<Output = io::Result<(Self::Stream, SocketAddr)>> + Send;
}

/// One reusable deadline: a task needs one, however many deadlines it keeps.
pub trait Timer: Send + Unpin + 'static {
    /// Fires at `deadline` (monotonic); `None` disarms it. Replaces the deadline set before.
    fn set(&mut self, deadline: Option<Duration>);

    /// Ready once the deadline has passed; stays pending while disarmed. Disarms itself on firing.
    fn poll_fired(&mut self, context: &mut Context<'_>) -> Poll<()>;
}

/// Files of one node. Paths are relative to the node's root, use `/`, and may not contain `..`.
///
/// A name is durable only after `sync_directory` of its parent, content only after [`File::sync`].
pub trait Disk: Clone + Send + Sync + 'static {
    type File: File;

    /// Opens for reading and writing. With `create`, makes the file if it is missing (not its parents).
    fn open(&self, path: &str, create: bool) -> impl Future<Output = io::Result<Self::File>> + Send;
    fn create_directories(&self, path: &str) -> impl Future<Output = io::Result<()>> + Send;
    /// Names in a directory, sorted; `NotFound` when it is missing.
    fn list(&self, path: &str) -> impl Future<Output = io::Result<Vec<DirectoryEntry>>> + Send;
    fn rename(&self, from: &str, to: &str) -> impl Future<Output = io::Result<()>> + Send;
    /// Removes a file, or a directory with everything in it.
    fn remove(&self, path: &str) -> impl Future<Output = io::Result<()>> + Send;
    fn sync_directory(&self, path: &str) -> impl Future<Output = io::Result<()>> + Send;
    /// Bytes that may still be written.
    fn free_space(&self) -> impl Future<Output = io::Result<u64>> + Send;
}

/// One name in a directory.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DirectoryEntry {
    pub name: String,
    pub is_directory: bool,
}

/// An open file. Operations run one after the other, in the order in which one task issues them; the caller keeps
/// one task per file. An operation whose future is dropped may still take effect.
pub trait File: Send + Sync + 'static {
    /// Length in bytes.
    fn size(&self) -> impl Future<Output = io::Result<u64>> + Send;
    /// Reads up to `length` bytes at `position`; fewer only at the end of the file.
    fn read_at(&self, position: u64, length: usize) -> impl Future<Output = io::Result<Bytes>> + Send;
    /// Writes all of `bytes` at `position`, extending the file when needed.
    fn write_at(&self, position: u64, bytes: Bytes) -> impl Future<Output = io::Result<()>> + Send;
    /// Cuts (or extends with zeros) to `size` bytes.
    fn truncate(&self, size: u64) -> impl Future<Output = io::Result<()>> + Send;
    /// Makes content and length durable.
    fn sync(&self) -> impl Future<Output = io::Result<()>> + Send;
}
