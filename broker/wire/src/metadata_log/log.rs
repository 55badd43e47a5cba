//! Records about the metadata log itself.

use crate::Str;
use crate::schema::messages;

messages! {
    /// Says nothing; moves the high watermark.
    pub struct NoOpRecord [versions 0..=0, flexible 0..] {
    }

    /// The records up to the end of the transaction take effect together.
    pub struct BeginTransactionRecord [versions 0..=0, flexible 0..] {
        name: Option<Str> [0.., nullable 0.., tag 0],
    }

    /// The metadata transaction takes effect.
    pub struct EndTransactionRecord [versions 0..=0, flexible 0..] {
    }

    /// The metadata transaction never happened.
    pub struct AbortTransactionRecord [versions 0..=0, flexible 0..] {
        reason: Option<Str> [0.., nullable 0.., tag 0],
    }
}
