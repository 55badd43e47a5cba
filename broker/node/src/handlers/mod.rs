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
