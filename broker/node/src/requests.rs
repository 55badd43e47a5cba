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

struct Connection {
    replies: mpsc::UnboundedSender<ReplyOrder>,
    /// The one request that it has read and that has no answer: it reads the next one only then.
    waiting: Option<RequestId>,
}

#[derive(Default)]
pub struct Requests {
    connections: BTreeMap<ConnectionId, Connection>,
    pending: BTreeMap<RequestId, Pending>,
    next: u64,
}

impl Requests {
    pub fn opened(&mut self, connection: ConnectionId, replies: mpsc::UnboundedSender<ReplyOrder>) {
        self.connections.insert(connection, Connection { replies, waiting: None });
    }

    /// The connection is gone; the request of its that still waits for an answer, which nobody will read.
    pub fn closed(&mut self, connection: ConnectionId) -> Option<RequestId> {
        let request = self.connections.remove(&connection)?.waiting?;
        self.take(request).map(|_| request)
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
        if let Some(connection) = self.connections.get_mut(&pending.connection) {
            assert!(connection.waiting.is_none(), "a connection reads one request at a time");
            connection.waiting = Some(id);
        }
        self.pending.insert(id, pending);
        id
    }

    fn take(&mut self, request: RequestId) -> Option<Pending> {
        let pending = self.pending.remove(&request)?;
        if let Some(connection) = self.connections.get_mut(&pending.connection) {
            connection.waiting = None;
        }
        Some(pending)
    }

    /// Answers with a body in the version that was asked. A body that the version cannot carry is a bug of this
    /// node; its connection is closed, as a broker does on an error it cannot express.
    pub fn answer(&mut self, request: RequestId, body: &ResponseBody) {
        let Some(pending) = self.take(request) else { return };
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
        let Some(pending) = self.take(request) else { return };
        let length = i32::try_from(response.len()).expect("frames are bounded below two gibibytes");
        let mut frame = Vec::with_capacity(4 + response.len());
        frame.extend_from_slice(&length.to_be_bytes());
        frame.extend_from_slice(response);
        self.order(pending.connection, ReplyOrder::Answer(frame.into()));
    }

    /// The request needs no answer (acks=0): its connection reads on.
    pub fn read_on(&mut self, request: RequestId) {
        if let Some(pending) = self.take(request) {
            self.order(pending.connection, ReplyOrder::ReadOn);
        }
    }

    pub fn close(&mut self, request: RequestId) {
        if let Some(pending) = self.take(request) {
            self.close_connection(pending.connection);
        }
    }

    pub fn close_connection(&mut self, connection: ConnectionId) {
        self.order(connection, ReplyOrder::Close);
    }

    fn order(&mut self, connection: ConnectionId, order: ReplyOrder) {
        if let Some(connection) = self.connections.get(&connection) {
            // A connection that is gone has nobody left to answer.
            let _ = connection.replies.send(order);
        }
    }
}

fn encode(header: &RequestHeader, body: &ResponseBody) -> Option<Bytes> {
    body.frame(header.api_version, header.correlation_id).ok()
}

#[cfg(test)]
mod tests {
    use acked_wire::{
        ApiKey, CreateTopicsResponse, MetadataResponse, decode_response_body, decode_response_header,
    };

    use super::*;

    fn header(api_key: ApiKey, api_version: i16, correlation_id: i32) -> RequestHeader {
        RequestHeader { api_key, api_version, correlation_id, client_id: None, unknown_tags: Vec::new() }
    }

    fn connected() -> (Requests, mpsc::UnboundedReceiver<ReplyOrder>) {
        let (replies, orders) = mpsc::unbounded_channel();
        let mut requests = Requests::default();
        requests.opened(1, replies);
        (requests, orders)
    }

    fn answer(orders: &mut mpsc::UnboundedReceiver<ReplyOrder>) -> Bytes {
        let Ok(ReplyOrder::Answer(frame)) = orders.try_recv() else { panic!("no answer") };
        let length = i32::from_be_bytes([frame[0], frame[1], frame[2], frame[3]]);
        assert_eq!(usize::try_from(length).expect("a length"), frame.len() - 4);
        frame.slice(4..)
    }

    #[test]
    fn answer_is_framed_as_the_request_asked() {
        let (mut requests, mut orders) = connected();
        let newest = crate::shell::newest(ApiKey::Metadata);
        let request = requests.receive(1, header(ApiKey::Metadata, newest, 7));
        let body = ResponseBody::Metadata(MetadataResponse { controller_id: 3, ..Default::default() });
        requests.answer(request, &body);
        let mut frame = answer(&mut orders);
        let correlation = decode_response_header(ApiKey::Metadata, newest, &mut frame).expect("a header");
        assert_eq!(correlation, 7);
        assert_eq!(decode_response_body(ApiKey::Metadata, newest, &mut frame), Ok(body));
        assert!(frame.is_empty());
    }

    #[test]
    fn answer_to_an_embedded_request_travels_inside_an_envelope() {
        let (mut requests, mut orders) = connected();
        let newest = crate::shell::newest(ApiKey::CreateTopics);
        let embedded = header(ApiKey::CreateTopics, newest, 9);
        let request = requests.receive_embedded(1, header(ApiKey::Envelope, 0, 8), embedded);
        let body = ResponseBody::CreateTopics(CreateTopicsResponse::default());
        requests.answer(request, &body);
        let mut frame = answer(&mut orders);
        let outer = decode_response_header(ApiKey::Envelope, 0, &mut frame).expect("a header");
        assert_eq!(outer, 8);
        let Ok(ResponseBody::Envelope(envelope)) = decode_response_body(ApiKey::Envelope, 0, &mut frame)
        else {
            panic!("no envelope");
        };
        let mut inside = envelope.response_data.expect("an answer");
        // What a broker hands to its client: the embedded answer without a length, which is put before it again.
        let (mut broker, mut client) = connected();
        let request = broker.receive(1, header(ApiKey::CreateTopics, newest, 9));
        broker.answer_forwarded(request, &inside);
        assert_eq!(answer(&mut client), inside);
        let inner = decode_response_header(ApiKey::CreateTopics, newest, &mut inside).expect("a header");
        assert_eq!(inner, 9);
        assert_eq!(decode_response_body(ApiKey::CreateTopics, newest, &mut inside), Ok(body));
    }

    #[test]
    fn body_that_the_version_cannot_carry_closes_the_connection() {
        let (mut requests, mut orders) = connected();
        let request = requests.receive(1, header(ApiKey::Metadata, i16::MAX, 7));
        requests.answer(request, &ResponseBody::Metadata(MetadataResponse::default()));
        assert!(matches!(orders.try_recv(), Ok(ReplyOrder::Close)));
    }

    #[test]
    fn request_of_a_closed_connection_is_told_once_and_answered_never() {
        let (mut requests, mut orders) = connected();
        let answered = requests.receive(1, header(ApiKey::Produce, 9, 1));
        requests.read_on(answered);
        assert!(matches!(orders.try_recv(), Ok(ReplyOrder::ReadOn)));
        let waiting = requests.receive(1, header(ApiKey::Metadata, 1, 2));
        assert_eq!(requests.closed(1), Some(waiting));
        assert_eq!(requests.closed(1), None);
        requests.answer(waiting, &ResponseBody::Metadata(MetadataResponse::default()));
        assert!(orders.try_recv().is_err());
        assert!(requests.pending.is_empty());
    }

    #[test]
    fn connection_without_a_waiting_request_leaves_none() {
        let (mut requests, _orders) = connected();
        assert_eq!(requests.closed(1), None);
    }
}
