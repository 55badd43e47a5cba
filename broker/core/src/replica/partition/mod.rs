//! One partition replica.
//!
//! | file | holds |
//! |---|---|
//! | replica.rs | the replica: role changes, appends, truncation, completed writes |
//! | leading.rs | what only a leader knows: follower positions, the pending ISR change; raises the high watermark |
//! | writes.rs | queued writes, and the log end offset that the completed ones give |

mod leading;
mod replica;
mod writes;

pub(super) use leading::{IsrChange, Leading};
pub(super) use replica::{Applied, Replica, Role, Stage, Waiter};
