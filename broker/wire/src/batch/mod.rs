//! Record batches of format version 2, as they travel and as they lie in a log.
//!
//! | file | does |
//! |---|---|
//! | header.rs | the 61 bytes before the records, and patching them in place |
//! | view.rs | walks the batches of a byte range, checks one |
//! | open.rs | makes the records of one batch readable, compressed or not |
//! | record.rs | walks the records of one open batch |
//! | codec.rs | compresses records and opens them again |
//! | builder.rs | writes a batch |
//!
//! Nothing here allocates but the builder, and what opens a compressed batch. Walking batches and verifying
//! their checksums opens none.

mod builder;
mod codec;
mod error;
mod header;
mod open;
mod record;
mod varint;
mod view;

#[cfg(test)]
mod tests;

pub use builder::BatchBuilder;
pub use codec::{Codec, INFLATED_MAX};
pub use error::BatchError;
pub use header::{
    BatchHeader, Compression, HEADER_SIZE, parse_header, patch, patch_append_time, patch_create_time,
};
pub use open::OpenBatch;
pub use record::{HeaderView, Headers, RecordView, Records};
pub use view::{BatchView, Batches, batches};
