//! Kafka's messages and record batches as types and bytes. It decides nothing of the protocol and does no
//! I/O.
//!
//! | module | holds |
//! |---|---|
//! | [`schema`] | the language in which messages are declared, and the codec behind it |
//! | [`api`] | requests and responses |
//! | [`metadata_log`] | records of the metadata log |
//! | [`control`] | control records of the quorum |
//! | [`batch`] | record batches: read, checked, patched in place, written |
//! | [`error_code`], [`ApiKey`] | Kafka's numbers |

pub mod api;
mod api_key;
pub mod batch;
pub mod control;
mod error;
pub mod error_code;
mod frame;
mod header;
pub mod metadata_log;
pub mod schema;
mod text;
pub mod uuid;

#[cfg(test)]
mod arbitrary;
#[cfg(test)]
mod differential;

pub use api::*;
pub use api_key::ApiKey;
pub use error::WireError;
pub use frame::{decode_response, encode_request, encode_response};
pub use header::{RequestHeader, decode_request_header, decode_response_header};
pub use metadata_log::*;
pub use schema::{Message, UnknownTag};
pub use text::Str;
pub use uuid::Uuid;
