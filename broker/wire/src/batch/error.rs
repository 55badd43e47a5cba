//! What can be wrong with bytes that claim to be a record batch.

/// Why a batch was refused. Offsets and lengths are as the batch states them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BatchError {
    /// Fewer bytes than the header, or than the batch states.
    #[error("read batch: {wanted} bytes wanted, {available} there")]
    Truncated { wanted: usize, available: usize },
    /// More bytes than the batch states, where exactly one batch must be.
    #[error("read batch: {left} bytes behind it")]
    TrailingBytes { left: usize },
    /// A length too small for the header.
    #[error("read batch: stated length {length}")]
    InvalidLength { length: i32 },
    /// A format other than 2.
    #[error("read batch: format version {magic}, not 2")]
    UnsupportedMagic { magic: i8 },
    /// The CRC-32C of the bytes differs from the stated one.
    #[error("check batch: checksum {computed:#010x}, stated {stated:#010x}")]
    Checksum { stated: u32, computed: u32 },
    /// The records are compressed, and were to be read without opening the batch.
    #[error("read batch: compressed")]
    Compressed,
    /// A codec number that Kafka does not define.
    #[error("open batch: unknown codec")]
    UnknownCodec,
    /// The codec refuses the compressed bytes.
    #[error("open batch: the compressed bytes are malformed")]
    MalformedStream,
    /// The records are larger than they may be.
    #[error("open batch: more than {max} bytes of records")]
    TooLarge { max: usize },
    /// A negative count, or no record where there must be one.
    #[error("check batch: {count} records")]
    RecordCount { count: i32 },
    /// The last offset does not agree with the count of records.
    #[error("check batch: last offset delta {last_offset_delta} with {count} records")]
    LastOffsetDelta { last_offset_delta: i32, count: i32 },
    /// The offset of a record is not the one that its place asks for.
    #[error("check batch: record {index} has offset delta {offset_delta}")]
    OffsetDelta { index: i32, offset_delta: i32 },
    /// A record does not end where its length says, or a length in it is impossible.
    #[error("check batch: record {index} is malformed")]
    MalformedRecord { index: i32 },
    /// Bytes are left behind the last record.
    #[error("check batch: {left} bytes behind the last record")]
    BytesBehindRecords { left: usize },
}
