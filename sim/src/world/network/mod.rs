//! The simulated network: byte streams between machines over links with latency, loss and blocks.
//!
//! ```text
//! SimStream ──write──▶ Pipe: items in flight ──arrive──▶ readable bytes ──read──▶ SimStream
//!                        │  one Link per directed pair of hosts: latency, loss, blocks, own random stream
//!                        └─ FIN, RST, window updates and the last handshake message travel as items too
//! ```
//!
//! - [`latency`]: how long a message takes
//! - [`link`]: one directed pair of hosts
//! - [`filter`]: what travels, for faults that ask
//! - [`connection`]: the state of both ends and both directions of a connection
//! - [`fabric`]: the whole network: what a call or an event does
//! - [`stream`]: what the nodes hold

pub(super) mod connection;
pub(super) mod fabric;
pub(super) mod filter;
pub(super) mod latency;
pub(super) mod link;
pub(super) mod stream;

pub use fabric::{BlockId, NetworkCounters, NetworkSettings};
pub use filter::{Catch, Filter, Speech};
pub use latency::Latency;
pub use stream::{SimListener, SimStream};
