//! What can be wrong with bytes that claim to be a Kafka message, and with a message that is to become bytes.

/// Why a message could not be decoded or encoded. Every hostile input ends here, never in a panic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// No declaration covers this version of the message.
    #[error("use {message} version {version}: not declared")]
    UnsupportedVersion { message: &'static str, version: i16 },
    /// The number names no API of Kafka 4.3.1, or none that is declared here.
    #[error("use API key {key}: not declared")]
    UnknownApiKey { key: i16 },
    /// The number names no metadata record of Kafka 4.3.1.
    #[error("use metadata record {key}: not declared")]
    UnknownRecordKey { key: u32 },
    /// A metadata record is framed in a version other than 1.
    #[error("decode metadata record: frame version {version}, not 1")]
    UnknownFrameVersion { version: u32 },
    /// The input ends inside a value.
    #[error("decode message: {wanted} bytes wanted, {remaining} left")]
    Truncated { wanted: usize, remaining: usize },
    /// A count promises more elements than the remaining bytes can hold.
    #[error("decode message: {count} elements promised, {remaining} bytes left")]
    CountTooLarge { count: usize, remaining: usize },
    /// A length below -1, or -1 where null is not allowed by the type.
    #[error("decode message: length {length}")]
    NegativeLength { length: i32 },
    /// The message asks for more memory than a frame of its size may.
    #[error("decode message: {wanted} bytes of memory wanted, {budget} left in the budget of the frame")]
    BudgetExceeded { wanted: usize, budget: usize },
    /// Null in a field that is not nullable in this version (decoding or encoding).
    #[error("convert {field}: null is not allowed in version {version}")]
    UnexpectedNull { field: &'static str, version: i16 },
    /// A string that is not UTF-8.
    #[error("decode message: a string is not UTF-8")]
    InvalidText,
    /// A variable-length integer of more than five (32 bit) or ten (64 bit) bytes, or out of range.
    #[error("decode message: a variable-length integer does not end")]
    InvalidVarint,
    /// Tags must ascend and must not repeat (KIP-482).
    #[error("convert tagged fields: tag {tag} repeats or is out of order")]
    UnorderedTag { tag: u32 },
    /// A tagged field is shorter than the size stated before it.
    #[error("decode tagged field {tag}: {left} bytes left over")]
    TagTooLong { tag: u32, left: usize },
    /// The value cannot be said in this version, and the schema forbids to drop it silently.
    #[error("encode {field}: not in version {version}, and the value is not the default")]
    FieldNotInVersion { field: &'static str, version: i16 },
    /// Unknown tagged fields were kept from another version, and this one has no tagged fields.
    #[error("encode {message}: version {version} has no tagged fields")]
    TagsNotInVersion { message: &'static str, version: i16 },
    /// A string, array or frame longer than its length field can say.
    #[error("encode message: length {length} does not fit")]
    TooLong { length: usize },
}
