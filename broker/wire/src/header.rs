//! What precedes every request and response body.

use bytes::{Buf, Bytes};

use crate::schema::field::{Field, Shape};
use crate::schema::reader::Reader;
use crate::schema::sink::Sink;
use crate::schema::tags::{self, UnknownTag};
use crate::{ApiKey, Str, WireError};

/// The client id is the one string that flexible headers keep in the old encoding.
const OLD: Shape = Shape { version: 1, flexible: false };

/// Header of a request, version 1 or 2.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestHeader {
    pub api_key: ApiKey,
    pub api_version: i16,
    pub correlation_id: i32,
    pub client_id: Option<Str>,
    /// Tagged fields of a version 2 header; Kafka 4.3.1 defines none.
    pub unknown_tags: Vec<UnknownTag>,
}

impl RequestHeader {
    pub(crate) fn write<S: Sink>(&self, out: &mut S) -> Result<(), WireError> {
        out.u16(self.api_key.code() as u16);
        out.u16(self.api_version as u16);
        out.u32(self.correlation_id as u32);
        self.client_id.write(OLD, out)?;
        if self.api_key.request_header_version(self.api_version) >= 2 {
            tags::Writer::begin(0, &self.unknown_tags, out).end(out)?;
        } else if !self.unknown_tags.is_empty() {
            return Err(WireError::TagsNotInVersion { message: "RequestHeader", version: 1 });
        }
        Ok(())
    }

    fn read(input: &mut Reader) -> Result<RequestHeader, WireError> {
        let api_key = ApiKey::try_from(input.u16()? as i16)?;
        let api_version = input.u16()? as i16;
        let correlation_id = input.u32()? as i32;
        let client_id = Option::read(input, OLD)?;
        let flexible = api_key.request_header_version(api_version) >= 2;
        let unknown_tags = if flexible { tags::read(input, |_, _, _| Ok(false))? } else { Vec::new() };
        Ok(RequestHeader { api_key, api_version, correlation_id, client_id, unknown_tags })
    }
}

/// Reads the header from the front of a request frame (without its four bytes of length); the body remains.
///
/// Fails with [`WireError::UnknownApiKey`] when no API of Kafka 4.3.1 has the number. Any version is
/// accepted.
pub fn decode_request_header(frame: &mut Bytes) -> Result<RequestHeader, WireError> {
    let mut reader = Reader::new(frame.clone());
    let header = RequestHeader::read(&mut reader)?;
    frame.advance(reader.position());
    Ok(header)
}

pub(crate) fn write_response_header<S: Sink>(key: ApiKey, version: i16, correlation_id: i32, out: &mut S) {
    out.u32(correlation_id as u32);
    if key.response_header_version(version) >= 1 {
        out.u8(0);
    }
}

/// Reads the header from the front of a response frame (without its length) and returns the correlation id;
/// the body remains. Tagged fields of the header are skipped: Kafka 4.3.1 defines none, and no proxy
/// re-encodes them.
pub fn decode_response_header(key: ApiKey, version: i16, frame: &mut Bytes) -> Result<i32, WireError> {
    let mut reader = Reader::new(frame.clone());
    let correlation_id = reader.u32()? as i32;
    if key.response_header_version(version) >= 1 {
        tags::read(&mut reader, |_, _, _| Ok(false))?;
    }
    frame.advance(reader.position());
    Ok(correlation_id)
}
