//! UpdateRaftVoter (key 82): a voter of the metadata quorum tells its endpoints and versions (KIP-853).

use crate::schema::messages;
use crate::{Str, Uuid};

messages! {
    /// Tells the quorum's leader where a voter listens and what it speaks.
    pub struct UpdateRaftVoterRequest [versions 0..=0, flexible 0..] {
        cluster_id: Option<Str> [0.., nullable 0.., default = Some(Str::default())],
        /// -1 when not known.
        current_leader_epoch: i32 [0..],
        voter_id: i32 [0..],
        voter_directory_id: Uuid [0..],
        listeners: Vec<Listener> [0..],
        k_raft_version_feature: KRaftVersionFeature [0..],
    }

    /// See [`UpdateRaftVoterRequest`].
    pub struct Listener {
        name: Str [0..],
        host: Str [0..],
        port: u16 [0..],
    }

    /// See [`UpdateRaftVoterRequest`].
    pub struct KRaftVersionFeature {
        min_supported_version: i16 [0..],
        max_supported_version: i16 [0..],
    }

    /// Answer to [`UpdateRaftVoterRequest`].
    pub struct UpdateRaftVoterResponse [versions 0..=0, flexible 0..] {
        throttle_time_ms: i32 [0..],
        error_code: i16 [0..],
        current_leader: CurrentLeader [0.., tag 0],
    }

    /// See [`UpdateRaftVoterResponse`].
    pub struct CurrentLeader {
        /// -1 when not known.
        leader_id: i32 [0.., default = -1],
        leader_epoch: i32 [0.., default = -1],
        host: Str [0..],
        port: i32 [0..],
    }
}
