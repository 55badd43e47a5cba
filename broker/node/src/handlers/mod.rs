//! What the shell answers without a machine: the handshake; and how a frame becomes a request. Everything else is one
//! machine's to answer; which one is told in `broker.rs` and `controller.rs`.

pub mod api_versions;

use acked_wire::{ApiKey, RequestBody, RequestHeader, decode_request_body, decode_request_header};
use bytes::Bytes;

use crate::config::Role;

/// A request that this node takes.
#[expect(clippy::large_enum_variant, reason = "one lives at a time, on the stack")]
pub enum Incoming {
    Body(RequestBody),
    /// The one request whose unknown versions are answered, so that a client can ask again.
    ApiVersionsOfUnknownVersion,
}

/// Reads a frame (without its length). `None` for an unknown key or version, an API of another role, and bytes that do
/// not parse: the connection is closed without an answer, as 4.3.1 does. Bytes after the body are ignored.
pub fn read(role: Role, mut frame: Bytes) -> Option<(RequestHeader, Incoming)> {
    let header = decode_request_header(&mut frame).ok()?;
    if !api_versions::serves(role, header.api_key) {
        return None;
    }
    let declared = acked_wire::DECLARED.iter().find(|(key, _)| *key == header.api_key);
    if header.api_key == ApiKey::ApiVersions
        && !declared.is_some_and(|(_, of)| of.contains(&header.api_version))
    {
        return Some((header, Incoming::ApiVersionsOfUnknownVersion));
    }
    let body = decode_request_body(header.api_key, header.api_version, &mut frame).ok()?;
    Some((header, Incoming::Body(body)))
}

#[cfg(test)]
mod tests {
    use acked_wire::{
        ApiVersionsRequest, EnvelopeRequest, FetchRequest, MetadataRequest, ProduceRequest, VoteRequest,
    };

    use super::*;

    /// The frame without its length.
    fn frame(body: &RequestBody, version: i16) -> Vec<u8> {
        let frame = body.frame(version, 7, Some(&"client".into())).expect("a body of that version");
        frame[4..].to_vec()
    }

    fn newest(body: RequestBody) -> Vec<u8> {
        frame(&body, crate::shell::newest(body.key()))
    }

    fn is_taken(role: Role, frame: &[u8]) -> bool {
        matches!(read(role, Bytes::copy_from_slice(frame)), Some((_, Incoming::Body(_))))
    }

    fn with_version(mut frame: Vec<u8>, version: i16) -> Vec<u8> {
        frame[2..4].copy_from_slice(&version.to_be_bytes());
        frame
    }

    #[test]
    fn unknown_key_is_not_taken() {
        let mut metadata = newest(MetadataRequest::default().into());
        for key in [-1i16, 4, 999, i16::MAX] {
            metadata[..2].copy_from_slice(&key.to_be_bytes());
            assert!(read(Role::Broker, Bytes::copy_from_slice(&metadata)).is_none(), "key {key}");
        }
    }

    #[test]
    fn unknown_version_is_not_taken_but_for_the_handshake() {
        let metadata = newest(MetadataRequest::default().into());
        // Brokers say Produce from 0, and close the connection on version 2 all the same (measured).
        let produce = newest(ProduceRequest::default().into());
        for version in [-1, 2, 99, i16::MAX] {
            assert!(version == 2 || !is_taken(Role::Broker, &with_version(metadata.clone(), version)));
            assert!(!is_taken(Role::Broker, &with_version(produce.clone(), version)));
            if version == 2 {
                continue;
            }
            let handshake = with_version(newest(ApiVersionsRequest::default().into()), version);
            let taken = read(Role::Broker, handshake.into());
            assert!(matches!(taken, Some((_, Incoming::ApiVersionsOfUnknownVersion))), "version {version}");
        }
    }

    #[test]
    fn each_role_takes_only_its_own_apis() {
        let metadata = newest(MetadataRequest::default().into());
        let produce = newest(ProduceRequest::default().into());
        let vote = newest(VoteRequest::default().into());
        let envelope = newest(EnvelopeRequest::default().into());
        let fetch = newest(FetchRequest::default().into());
        let handshake = newest(ApiVersionsRequest::default().into());
        for (frame, broker, controller) in [
            (metadata, true, false),
            (produce, true, false),
            (vote, false, true),
            (envelope, false, true),
            (fetch, true, true),
            (handshake, true, true),
        ] {
            assert_eq!(is_taken(Role::Broker, &frame), broker, "{frame:?}");
            assert_eq!(is_taken(Role::Controller, &frame), controller, "{frame:?}");
        }
    }

    #[test]
    fn bytes_after_the_body_are_ignored() {
        let mut metadata = newest(MetadataRequest::default().into());
        let (_, Incoming::Body(plain)) = read(Role::Broker, metadata.clone().into()).expect("a request")
        else {
            panic!("not a body");
        };
        metadata.extend_from_slice(&[0xff; 3]);
        let (header, Incoming::Body(longer)) = read(Role::Broker, metadata.into()).expect("a request") else {
            panic!("not a body");
        };
        assert_eq!(header.correlation_id, 7);
        assert_eq!(longer, plain);
    }

    #[test]
    fn cut_frame_is_not_taken() {
        let fetch = newest(FetchRequest::default().into());
        for length in 0..fetch.len() {
            assert!(read(Role::Broker, Bytes::copy_from_slice(&fetch[..length])).is_none(), "{length} bytes");
        }
    }
}
