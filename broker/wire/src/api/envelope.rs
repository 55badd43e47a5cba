//! Envelope (key 58): a broker forwards a client's request to the controller (KIP-590).

use bytes::Bytes;

use crate::schema::messages;

messages! {
    /// A request with its header, and the principal that sent it.
    pub struct EnvelopeRequest [versions 0..=0, flexible 0..] {
        request_data: Bytes [0..],
        request_principal: Option<Bytes> [0.., nullable 0.., default = Some(Bytes::new())],
        client_host_address: Bytes [0..],
    }

    /// The answer to the request inside, with its header.
    pub struct EnvelopeResponse [versions 0..=0, flexible 0..] {
        response_data: Option<Bytes> [0.., nullable 0..],
        error_code: i16 [0..],
    }
}
