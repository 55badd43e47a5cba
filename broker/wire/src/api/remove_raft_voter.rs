//! RemoveRaftVoter (key 81): a voter of the metadata quorum is one no longer (KIP-853).

use crate::schema::messages;
use crate::{Str, Uuid};

messages! {
    /// Asks the quorum's leader for one voter less.
    pub struct RemoveRaftVoterRequest [versions 0..=0, flexible 0..] {
        cluster_id: Option<Str> [0.., nullable 0.., default = Some(Str::default())],
        voter_id: i32 [0..],
        voter_directory_id: Uuid [0..],
    }

    /// Answer to [`RemoveRaftVoterRequest`].
    pub struct RemoveRaftVoterResponse [versions 0..=0, flexible 0..] {
        throttle_time_ms: i32 [0..],
        error_code: i16 [0..],
        error_message: Option<Str> [0.., nullable 0.., default = Some(Str::default()); ignorable],
    }
}
