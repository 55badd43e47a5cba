//! Requests that the node has read and not yet answered: which connection each came from and how its answer is
//! framed. Holds no decision about any of them.

use std::collections::BTreeMap;

use acked_core::RequestId;
use acked_wire::{EnvelopeResponse, RequestHeader, ResponseBody};
use bytes::Bytes;
use tokio::sync::mpsc;

use crate::connection::{ConnectionId, ReplyOrder};

struct Pending {
    connection: ConnectionId,
    header: RequestHeader,
    /// The header of the request that travelled inside an Envelope (KIP-590); `header` is the Envelope's own then.
    embedded: Option<RequestHeader>,
}

#[derive(Default)]
pub struct Requests {
    connections: BTreeMap<ConnectionId, mpsc::UnboundedSender<ReplyOrder>>,
    pending: BTreeMap<RequestId, Pending>,
    next: u64,
}

impl Requests {
    pub fn opened(&mut self, connection: ConnectionId, replies: mpsc::UnboundedSender<ReplyOrder>) {
        self.connections.insert(connection, replies);
    }

    /// The connection is gone; the request of its that still waits for an answer, which nobody will read.
    pub fn closed(&mut self, connection: ConnectionId) -> Option<RequestId> {
        self.connections.remove(&connection);
        let request = self.pending.iter().find(|(_, pending)| pending.connection == connection);
        let request = request.map(|(request, _)| *request)?;
        self.pending.remove(&request);
        Some(request)
    }

    pub fn receive(&mut self, connection: ConnectionId, header: RequestHeader) -> RequestId {
        self.insert(Pending { connection, header, embedded: None })
    }

    pub fn receive_embedded(
        &mut self,
        connection: ConnectionId,
        envelope: RequestHeader,
        embedded: RequestHeader,
    ) -> RequestId {
        self.insert(Pending { connection, header: envelope, embedded: Some(embedded) })
    }

    fn insert(&mut self, pending: Pending) -> RequestId {
        self.next += 1;
        let id = RequestId(self.next);
        self.pending.insert(id, pending);
        id
    }

    /// Answers with a body in the version that was asked. A body that the version cannot carry is a bug of this
    /// node; its connection is closed, as a broker does on an error it cannot express.
    pub fn answer(&mut self, request: RequestId, body: &ResponseBody) {
        let Some(pending) = self.pending.remove(&request) else { return };
        let frame = match &pending.embedded {
            None => encode(&pending.header, body),
            Some(embedded) => encode(embedded, body).and_then(|frame| {
                let envelope =
                    EnvelopeResponse { response_data: Some(frame.slice(4..)), ..Default::default() };
                encode(&pending.header, &ResponseBody::Envelope(envelope))
            }),
        };
        self.order(pending.connection, frame.map_or(ReplyOrder::Close, ReplyOrder::Answer));
    }

    /// Answers with a frame that is complete but for its length: what the controller answered to a forwarded request.
    pub fn answer_forwarded(&mut self, request: RequestId, response: &Bytes) {
        let Some(pending) = self.pending.remove(&request) else { return };
        let length = i32::try_from(response.len()).expect("frames are bounded below two gibibytes");
        let mut frame = Vec::with_capacity(4 + response.len());
        frame.extend_from_slice(&length.to_be_bytes());
        frame.extend_from_slice(response);
        self.order(pending.connection, ReplyOrder::Answer(frame.into()));
    }

    /// The request needs no answer (acks=0): its connection reads on.
    pub fn read_on(&mut self, request: RequestId) {
        if let Some(pending) = self.pending.remove(&request) {
            self.order(pending.connection, ReplyOrder::ReadOn);
        }
    }

    pub fn close(&mut self, request: RequestId) {
        if let Some(pending) = self.pending.remove(&request) {
            self.close_connection(pending.connection);
        }
    }

    pub fn close_connection(&mut self, connection: ConnectionId) {
        self.order(connection, ReplyOrder::Close);
    }

    pub fn order(&mut self, connection: ConnectionId, order: ReplyOrder) {
        if let Some(replies) = self.connections.get(&connection) {
            // A connection that is gone has nobody left to answer.
            let _ = replies.send(order);
        }
    }
}

fn encode(header: &RequestHeader, body: &ResponseBody) -> Option<Bytes> {
    body.frame(header.api_version, header.correlation_id).ok()
}
