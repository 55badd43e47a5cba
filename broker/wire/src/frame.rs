//! Whole frames: four bytes of length, a header, a body. Each is measured first and written into one buffer.

use bytes::{Bytes, BytesMut};

use crate::header::{RequestHeader, decode_response_header, write_response_header};
use crate::schema::sink::{Counter, Sink};
use crate::{ApiKey, Message, Request, Str, WireError};

/// A request frame, its four bytes of length included. Fails as [`Message::encode`] does.
pub fn encode_request<R: Request>(
    request: &R,
    version: i16,
    correlation_id: i32,
    client_id: Option<&Str>,
) -> Result<Bytes, WireError> {
    let header = RequestHeader {
        api_key: R::KEY,
        api_version: version,
        correlation_id,
        client_id: client_id.cloned(),
        unknown_tags: Vec::new(),
    };
    let mut counter = Counter::default();
    header.write(&mut counter)?;
    let mut out = begin(counter.0 + request.encoded_length(version)?)?;
    header.write(&mut out)?;
    request.append(version, &mut out)?;
    Ok(out.freeze())
}

/// A response frame, its four bytes of length included. Fails as [`Message::encode`] does.
pub fn encode_response<M: Message>(
    key: ApiKey,
    version: i16,
    correlation_id: i32,
    body: &M,
) -> Result<Bytes, WireError> {
    let header_length = if key.response_header_version(version) >= 1 { 5 } else { 4 };
    let mut out = begin(header_length + body.encoded_length(version)?)?;
    write_response_header(key, version, correlation_id, &mut out);
    body.append(version, &mut out)?;
    Ok(out.freeze())
}

/// Reads a response frame (without its length): the correlation id and the body. Bytes after the body are
/// ignored.
pub fn decode_response<R: Request>(version: i16, frame: &mut Bytes) -> Result<(i32, R::Response), WireError> {
    let correlation_id = decode_response_header(R::KEY, version, frame)?;
    Ok((correlation_id, R::Response::decode(version, frame)?))
}

/// A buffer of exactly one frame, beginning with its length.
fn begin(length: usize) -> Result<BytesMut, WireError> {
    let stated = i32::try_from(length).map_err(|_| WireError::TooLong { length })?;
    let mut out = BytesMut::with_capacity(4 + length);
    out.u32(stated as u32);
    Ok(out)
}
