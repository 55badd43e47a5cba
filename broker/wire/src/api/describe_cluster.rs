//! DescribeCluster (key 60): the brokers, or the controllers (KIP-919), of the cluster.

use crate::Str;
use crate::schema::messages;

messages! {
    /// Asks for the nodes of one kind.
    pub struct DescribeClusterRequest [versions 0..=2, flexible 0..] {
        include_cluster_authorized_operations: bool [0..],
        /// 1 brokers, 2 controllers.
        endpoint_type: i8 [1.., default = 1],
        /// Whether fenced brokers are listed too (KIP-1073).
        include_fenced_brokers: bool [2..],
    }

    /// Answer to [`DescribeClusterRequest`].
    pub struct DescribeClusterResponse [versions 0..=2, flexible 0..] {
        throttle_time_ms: i32 [0..],
        error_code: i16 [0..],
        error_message: Option<Str> [0.., nullable 0..],
        /// 1 brokers, 2 controllers.
        endpoint_type: i8 [1.., default = 1],
        cluster_id: Str [0..],
        /// From a controller the leader of the quorum, from a broker any broker that is alive.
        controller_id: i32 [0.., default = -1],
        brokers: Vec<DescribeClusterBroker> [0..],
        /// Bits; `i32::MIN` when not asked for.
        cluster_authorized_operations: i32 [0.., default = i32::MIN],
    }

    /// See [`DescribeClusterResponse`].
    pub struct DescribeClusterBroker {
        broker_id: i32 [0..],
        host: Str [0..],
        port: i32 [0..],
        rack: Option<Str> [0.., nullable 0..],
        is_fenced: bool [2..],
    }
}
