//! The connections of one client: byte streams in, answers out. Frames, encodes, negotiates versions; decides neither
//! whom to connect to nor when to give up. Polled by the client's one task, so it needs no tasks and no locks.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use acked_core::client::{ConnectionId, NetworkEffect, NetworkInput};
use acked_env::Env;
use acked_wire::{RequestBody, Str};

use crate::connection::Connection;

type Connecting<E> = Pin<Box<dyn Future<Output = io::Result<<E as Env>::Stream>> + Send>>;

enum Stage<E: Env> {
    Connecting(Connecting<E>),
    Connected(Connection<E::Stream>),
}

/// See the module.
pub(crate) struct Transport<E: Env> {
    env: E,
    client_id: Str,
    /// A client has one for each broker that it talks to.
    links: Vec<(ConnectionId, Stage<E>)>,
    /// Whose turn it is.
    next: usize,
    /// Requests that could not be encoded for their broker.
    unsupported: Vec<(ConnectionId, i32)>,
}

impl<E: Env> Transport<E> {
    /// Milliseconds since 1970 by this host's wall clock.
    pub(crate) fn wall_clock_ms(&self) -> i64 {
        self.env.wall_clock_ms()
    }

    pub(crate) fn new(env: E, client_id: &str) -> Transport<E> {
        Transport {
            env,
            client_id: Str::from(client_id),
            links: Vec::new(),
            next: 0,
            unsupported: Vec::new(),
        }
    }

    pub(crate) fn carry_out(&mut self, effect: NetworkEffect) {
        match effect {
            NetworkEffect::Connect { connection, host, port } => {
                let env = self.env.clone();
                let connecting = Box::pin(async move { env.connect(&host, port).await });
                self.links.push((connection, Stage::Connecting(connecting)));
            }
            NetworkEffect::Disconnect { connection } => self.links.retain(|(id, _)| *id != connection),
            NetworkEffect::Send { connection, correlation, body, answered } => {
                self.send(connection, correlation, &body, answered);
            }
        }
    }

    fn send(&mut self, connection: ConnectionId, correlation: i32, body: &RequestBody, answered: bool) {
        let link = self.links.iter_mut().find(|(id, _)| *id == connection);
        // A connection that ended in this very turn is reported next; the request is lost with it.
        let Some((_, Stage::Connected(stream))) = link else { return };
        if stream.send(correlation, body, answered, &self.client_id).is_err() {
            self.unsupported.push((connection, correlation));
        }
    }

    /// Writes what waits, then says the next thing that happened. Never says anything of a dropped connection.
    pub(crate) fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<NetworkInput> {
        if let Some((connection, correlation)) = self.unsupported.pop() {
            return Poll::Ready(NetworkInput::Unsupported { connection, correlation });
        }
        for _ in 0..self.links.len() {
            let index = self.next % self.links.len();
            self.next = index + 1;
            let connection = self.links[index].0;
            if let Poll::Ready(happened) = self.poll_link(index, context) {
                return Poll::Ready(match happened {
                    Ok(Happened::Up) => NetworkInput::Connected { connection },
                    Ok(Happened::Written { correlation }) => {
                        NetworkInput::Written { connection, correlation }
                    }
                    Ok(Happened::Answer { correlation, body }) => {
                        NetworkInput::Answer { connection, correlation, body }
                    }
                    Err(_) => {
                        self.links.remove(index);
                        NetworkInput::Disconnected { connection }
                    }
                });
            }
        }
        Poll::Pending
    }

    fn poll_link(&mut self, index: usize, context: &mut Context<'_>) -> Poll<io::Result<Happened>> {
        let stage = &mut self.links[index].1;
        if let Stage::Connecting(connecting) = stage {
            let stream = ready!(connecting.as_mut().poll(context))?;
            *stage = Stage::Connected(Connection::new(stream, &self.client_id));
        }
        match stage {
            Stage::Connected(connection) => connection.poll_next(context, &self.client_id),
            Stage::Connecting(_) => unreachable!("it was connected just above"),
        }
    }
}

/// What a connection has to say.
pub(crate) enum Happened {
    /// The broker's versions are known.
    Up,
    /// A request without an answer was handed over.
    Written {
        correlation: i32,
    },
    Answer {
        correlation: i32,
        body: acked_wire::ResponseBody,
    },
}
