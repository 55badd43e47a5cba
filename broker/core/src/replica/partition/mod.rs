//! One partition replica.
//!
//! | file | holds |
//! |---|---|
//! | replica.rs | the replica and its role changes |
//! | changes.rs | appends, truncations, completed and failed writes |
//! | watermark.rs | the high watermark |
//! | leading.rs | what only a leader knows: follower positions, the pending ISR change |
//! | writes.rs | queued writes, and the log end offset that the completed ones give |

mod changes;
mod leading;
mod replica;
mod watermark;
mod writes;

pub(super) use leading::{IsrChange, Leading};
pub(super) use replica::{Applied, Replica, Role, Stage, Waiter};
