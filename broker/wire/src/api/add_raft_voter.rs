//! AddRaftVoter (key 80): an observer of the metadata quorum becomes a voter (KIP-853).

use crate::schema::messages;
use crate::{Str, Uuid};

messages! {
    /// Asks the quorum's leader for one voter more.
    pub struct AddRaftVoterRequest [versions 0..=1, flexible 0..] {
        cluster_id: Option<Str> [0.., nullable 0.., default = Some(Str::default())],
        timeout_ms: i32 [0..],
        voter_id: i32 [0..],
        voter_directory_id: Uuid [0..],
        listeners: Vec<Listener> [0..],
        /// Whether the answer waits until the new voters are committed, or only until the leader wrote them
        /// (KIP-1186).
        ack_when_committed: bool [1.., default = true],
    }

    /// See [`AddRaftVoterRequest`].
    pub struct Listener {
        name: Str [0..],
        host: Str [0..],
        port: u16 [0..],
    }

    /// Answer to [`AddRaftVoterRequest`].
    pub struct AddRaftVoterResponse [versions 0..=1, flexible 0..] {
        throttle_time_ms: i32 [0..],
        error_code: i16 [0..],
        error_message: Option<Str> [0.., nullable 0.., default = Some(Str::default()); ignorable],
    }
}
