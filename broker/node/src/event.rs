//! The one closed set of events that wake a node's task.

use acked_core::replica::{ReadFailed, ReadId, WriteId};
use acked_core::{PeerError, TopicPartition};
use bytes::Bytes;
use tokio::sync::mpsc;

use crate::connection::{ConnectionId, ReplyOrder};
use crate::link::LinkKey;

pub enum Event {
    ConnectionOpened {
        connection: ConnectionId,
        replies: mpsc::UnboundedSender<ReplyOrder>,
    },
    /// A whole request frame; the connection reads no further one until it is given its reply order.
    Request {
        connection: ConnectionId,
        frame: Bytes,
    },
    ConnectionClosed {
        connection: ConnectionId,
    },
    /// The answer of another node, header and body, or why there is none.
    Response {
        link: LinkKey,
        token: u64,
        result: Result<Bytes, PeerError>,
    },
    LogWritten {
        partition: TopicPartition,
        write: WriteId,
    },
    LogWriteFailed {
        partition: TopicPartition,
        write: WriteId,
    },
    LogRead {
        read: ReadId,
        result: Result<Bytes, ReadFailed>,
    },
    MetadataLogSynced {
        write: u64,
    },
    QuorumStateSaved {
        save: u64,
    },
    /// The metadata log or the quorum state could not be made durable: the node must stop.
    MetadataFailed,
    Shutdown,
}
