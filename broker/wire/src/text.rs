//! Text that shares the bytes of the frame it came in.

use std::fmt;
use std::ops::Deref;

use bytes::Bytes;

use crate::WireError;

/// UTF-8 text as a slice of shared bytes: decoding copies nothing and a clone costs one counter.
///
/// A `Str` keeps the whole frame it was sliced from in memory. State that outlives a request should hold
/// [`Str::detached`].
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Str(Bytes);

impl Str {
    /// Text of the program itself; allocates nothing.
    pub const fn from_static(text: &'static str) -> Str {
        Str(Bytes::from_static(text.as_bytes()))
    }

    /// Text out of a frame. Fails when it is not UTF-8.
    pub fn from_utf8(bytes: Bytes) -> Result<Str, WireError> {
        match std::str::from_utf8(&bytes) {
            Ok(_) => Ok(Str(bytes)),
            Err(_) => Err(WireError::InvalidText),
        }
    }

    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).expect("the bytes were checked when the value was made")
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The same text in memory of its own, so that the frame it came from can be freed.
    pub fn detached(&self) -> Str {
        Str(Bytes::copy_from_slice(&self.0))
    }
}

impl Deref for Str {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl AsRef<str> for Str {
    fn as_ref(&self) -> &str {
        self.as_str()
    }
}

impl From<&str> for Str {
    fn from(text: &str) -> Str {
        Str(Bytes::copy_from_slice(text.as_bytes()))
    }
}

impl From<String> for Str {
    fn from(text: String) -> Str {
        Str(Bytes::from(text.into_bytes()))
    }
}

impl From<&String> for Str {
    fn from(text: &String) -> Str {
        Str::from(text.as_str())
    }
}

impl PartialEq<str> for Str {
    fn eq(&self, other: &str) -> bool {
        self.0 == other.as_bytes()
    }
}

impl PartialEq<&str> for Str {
    fn eq(&self, other: &&str) -> bool {
        self.0 == other.as_bytes()
    }
}

impl fmt::Display for Str {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self.as_str(), f)
    }
}

impl fmt::Debug for Str {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_that_is_not_utf8_is_refused() {
        assert_eq!(Str::from_utf8(Bytes::from_static(&[0xc3, 0x28])), Err(WireError::InvalidText));
    }

    #[test]
    fn text_orders_and_compares_as_str_does() {
        let mut names = ["orders", "", "order", "é", "z"];
        let mut texts = names.map(Str::from);
        names.sort();
        texts.sort();
        assert_eq!(texts, names);
        assert_eq!(Str::from("orders").detached(), "orders");
    }
}
