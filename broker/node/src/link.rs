//! Connections to other nodes: one task and one connection for each peer and purpose, one request in flight at a
//! time, so that a fetch that waits never delays a vote.

use std::time::Duration;

use acked_core::{NodeId, PeerError};
use acked_env::Env;
use acked_env::deadline::before;
use acked_env::frame::read_frame;
use bytes::{Bytes, BytesMut};
use tokio::io::AsyncWriteExt;
use tokio::sync::mpsc;

use crate::event::Event;

/// What a link carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Purpose {
    ReplicaFetch,
    QuorumFetch,
    QuorumElection,
    Lifecycle,
    AlterPartition,
    ProducerIds,
    Forward,
}

/// One link of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LinkKey {
    pub peer: NodeId,
    pub purpose: Purpose,
}

/// A frame to send (length included) and the token under which its answer is reported.
pub struct LinkRequest {
    pub token: u64,
    pub frame: Bytes,
}

/// `socket.request.max.bytes`, Kafka's default; answers of peers are held to the same bound.
pub const FRAME_MAX: usize = 100 * 1024 * 1024;

/// How long a link waits.
#[derive(Clone, Copy, Debug)]
pub struct LinkTimeouts {
    pub connect: Duration,
    pub request: Duration,
}

/// Carries requests out one after the other until their sender is gone.
pub async fn carry<E: Env>(
    env: E,
    key: LinkKey,
    host: String,
    port: u16,
    timeouts: LinkTimeouts,
    mut requests: mpsc::UnboundedReceiver<LinkRequest>,
    events: mpsc::UnboundedSender<Event>,
) {
    let mut timer = env.timer();
    let mut connection: Option<(E::Stream, BytesMut)> = None;
    while let Some(LinkRequest { token, frame }) = requests.recv().await {
        let result = exchange(&env, &mut timer, &mut connection, &host, port, timeouts, &frame).await;
        if result.is_err() {
            connection = None;
        }
        if events.send(Event::Response { link: key, token, result }).is_err() {
            return;
        }
    }
}

async fn exchange<E: Env>(
    env: &E,
    timer: &mut E::Timer,
    connection: &mut Option<(E::Stream, BytesMut)>,
    host: &str,
    port: u16,
    timeouts: LinkTimeouts,
    frame: &Bytes,
) -> Result<Bytes, PeerError> {
    if connection.is_none() {
        let connected = before(timer, env.now() + timeouts.connect, env.connect(host, port)).await;
        let stream = connected.and_then(Result::ok).ok_or(PeerError::Unreachable)?;
        *connection = Some((stream, BytesMut::new()));
    }
    let (stream, buffer) = connection.as_mut().expect("connected just above");
    let answered = before(timer, env.now() + timeouts.request, async {
        stream.write_all(frame).await?;
        stream.flush().await?;
        read_frame(stream, buffer, FRAME_MAX).await
    })
    .await;
    match answered {
        None => Err(PeerError::TimedOut),
        Some(Ok(Some(answer))) => Ok(answer),
        Some(Ok(None) | Err(_)) => Err(PeerError::Disconnected),
    }
}
