//! Accepted connections: one task each, which reads one request, waits for its answer, and only then reads on, as a
//! 4.3.1 broker does (measured: while an acks=all produce waits, later requests of that connection wait unread).

use std::net::SocketAddr;

use acked_env::frame::read_frame;
use acked_env::{Env, Listener};
use bytes::{Bytes, BytesMut};
use tokio::io::AsyncWriteExt;
use tokio::sync::mpsc;

use crate::event::Event;

/// Numbers a connection within one incarnation of a node.
pub type ConnectionId = u64;

/// What the connection does about the request that it has read.
pub enum ReplyOrder {
    /// Writes the frame (length included), then reads the next request.
    Answer(Bytes),
    /// Reads the next request (acks=0).
    ReadOn,
    Close,
}

/// Accepts until the node's task is gone.
pub async fn accept<E: Env>(
    env: E,
    mut listener: E::Listener,
    frame_max: usize,
    events: mpsc::UnboundedSender<Event>,
) {
    let mut next: ConnectionId = 1;
    while !events.is_closed() {
        match listener.accept().await {
            Ok((stream, peer)) => {
                env.spawn("connection", serve::<E>(stream, peer, next, frame_max, events.clone()));
                next += 1;
            }
            // A connection that dies before it is accepted is its client's loss; the listener goes on.
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionAborted => {}
            Err(_) => return,
        }
    }
}

async fn serve<E: Env>(
    mut stream: E::Stream,
    _peer: SocketAddr,
    connection: ConnectionId,
    frame_max: usize,
    events: mpsc::UnboundedSender<Event>,
) {
    let (replies, mut orders) = mpsc::unbounded_channel();
    if events.send(Event::ConnectionOpened { connection, replies }).is_err() {
        return;
    }
    let mut buffer = BytesMut::new();
    // A frame that is cut, too long or not a frame ends the connection, as does every error of the stream.
    while let Ok(Some(frame)) = read_frame(&mut stream, &mut buffer, frame_max).await {
        if events.send(Event::Request { connection, frame }).is_err() {
            return;
        }
        match orders.recv().await {
            Some(ReplyOrder::Answer(frame)) => {
                if stream.write_all(&frame).await.is_err() || stream.flush().await.is_err() {
                    break;
                }
            }
            Some(ReplyOrder::ReadOn) => {}
            Some(ReplyOrder::Close) | None => break,
        }
    }
    let _ = events.send(Event::ConnectionClosed { connection });
}
