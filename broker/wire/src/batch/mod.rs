//! Record batches of format version 2, as they travel and as they lie in a log.
//!
//! | file | does |
//! |---|---|
//! | header.rs | the 61 bytes before the records, and patching them in place |
//! | view.rs | walks the batches of a byte range, checks one |
//! | record.rs | walks the records of one uncompressed batch |
//! | builder.rs | writes a batch |
//!
//! Nothing here allocates but the builder. Compressed batches can be walked and their checksum verified, not
//! opened.

mod builder;
mod error;
mod header;
mod record;
mod varint;
mod view;

#[cfg(test)]
mod tests;

pub use builder::BatchBuilder;
pub use error::BatchError;
pub use header::{BatchHeader, Compression, HEADER_SIZE, parse_header, patch, patch_append_time};
pub use record::{HeaderView, Headers, RecordView, Records};
pub use view::{BatchView, Batches, batches};
