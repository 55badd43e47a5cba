//! Accepted connections: one task each, which reads one request, waits for its answer, and only then reads on, as a
//! 4.3.1 broker does (measured: while an acks=all produce waits, later requests of that connection wait unread).
//!
//! So a connection never has more than one event of a request in the node's mailbox, and a frame takes memory only as
//! its bytes arrive. A peer that vanishes while its request waits is noticed when the answer is written, or the node
//! stops: until then its request waits its time out in the purgatory, as in Kafka, and its connection costs a task.

use std::future::poll_fn;
use std::time::Duration;

use acked_env::frame::read_frame;
use acked_env::{Env, Listener, Timer};
use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
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

/// Pause after the listener failed, as it does while the process has no file descriptor left.
const ACCEPT_RETRY_BACKOFF: Duration = Duration::from_millis(100);

/// Accepts until the node's task is gone.
pub async fn accept<E: Env>(
    env: E,
    mut listener: E::Listener,
    frame_max: usize,
    events: mpsc::UnboundedSender<Event>,
) {
    let mut timer = env.timer();
    let mut next: ConnectionId = 1;
    loop {
        let accepted = tokio::select! {
            biased;
            () = events.closed() => return,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) => {
                env.spawn("connection", serve(stream, next, frame_max, events.clone()));
                next += 1;
            }
            // A connection that dies before it is accepted is its client's loss; the listener goes on.
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionAborted => {}
            Err(_) => {
                timer.set(Some(env.now() + ACCEPT_RETRY_BACKOFF));
                poll_fn(|context| timer.poll_fired(context)).await;
            }
        }
    }
}

async fn serve<S: AsyncRead + AsyncWrite + Unpin>(
    mut stream: S,
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
    while let Some(frame) = next_frame(&mut stream, &mut buffer, frame_max, &events).await {
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

/// `None` when the connection is at its end, or the node.
async fn next_frame<S: AsyncRead + Unpin>(
    stream: &mut S,
    buffer: &mut BytesMut,
    frame_max: usize,
    events: &mpsc::UnboundedSender<Event>,
) -> Option<Bytes> {
    tokio::select! {
        biased;
        () = events.closed() => None,
        frame = read_frame(stream, buffer, frame_max) => frame.ok().flatten(),
    }
}
