//! The schema language: one declaration a message, in `messages!`.
//!
//! ```text
//! messages! {
//!     /// What it is.
//!     pub struct Example [versions 0..=4, flexible 2..] {
//!         field:    Type [versions],                     present in these versions
//!         nullable: Option<Type> [0.., nullable 3..],    null allowed in these versions
//!         counted:  i32 [1.., default = -1],             what it is where the version lacks it
//!         extra:    i64 [2.., tag 0],                    tagged field 0 (`tag 0 in 3..`: tagged from 3 on only)
//!         hint:     i32 [1..; ignorable],                dropped silently by versions that lack it
//!     }
//!     pub struct Nested { … }                            structures used by the message, in its encoding
//! }
//! ```
//!
//! | file | holds |
//! |---|---|
//! | field.rs | each type in both encodings |
//! | reader.rs | bounds and the memory budget of one frame |
//! | sink.rs | counting and writing |
//! | tags.rs | tagged fields, known and unknown |

pub(crate) mod field;
pub(crate) mod reader;
pub(crate) mod sink;
pub(crate) mod tags;

use std::ops::RangeInclusive;

use bytes::{Buf, Bytes, BytesMut};

use crate::WireError;
use field::{Field, Shape};
use reader::Reader;
use sink::Counter;
pub use tags::UnknownTag;

/// The versions of a field that is never null, or never tagged.
pub(crate) const NEVER: RangeInclusive<i16> = RangeInclusive::new(1, 0);

/// Something with a declaration of its own: a request, a response, a record.
pub trait Message: Sized {
    /// Name in Kafka's schema.
    const NAME: &'static str;
    /// Versions that the declaration covers; others are refused with [`WireError::UnsupportedVersion`].
    const DECLARED: RangeInclusive<i16>;

    /// Appends the message to `out`, which grows once.
    ///
    /// Fails when a field that `version` lacks is not at its default (unless the schema lets it be dropped),
    /// when a field is null that may not be, and when a length does not fit. `out` may then hold a beginning
    /// of the message.
    fn encode(&self, version: i16, out: &mut BytesMut) -> Result<(), WireError>;

    /// As [`Message::encode`], into a buffer that already has the space.
    fn append(&self, version: i16, out: &mut BytesMut) -> Result<(), WireError>;

    /// Bytes that [`Message::encode`] appends. Fails as it does.
    fn encoded_length(&self, version: i16) -> Result<usize, WireError>;

    /// Reads one message from the front of `input` and leaves what follows it. Text and bytes share `input`.
    /// Memory is bounded by 64 times the length of `input` and 64 KiB.
    fn decode(version: i16, input: &mut Bytes) -> Result<Self, WireError>;
}

/// A structure declared in `messages!`, with the flexible versions of the message that it belongs to.
pub(crate) trait Declared: Field {
    const NAME: &'static str;
    const DECLARED: RangeInclusive<i16>;

    fn is_flexible(version: i16) -> bool;

    fn shape(version: i16) -> Result<Shape, WireError> {
        if Self::DECLARED.contains(&version) {
            Ok(Shape { version, flexible: Self::is_flexible(version) })
        } else {
            Err(WireError::UnsupportedVersion { message: Self::NAME, version })
        }
    }
}

impl<M: Declared> Message for M {
    const NAME: &'static str = <M as Declared>::NAME;
    const DECLARED: RangeInclusive<i16> = <M as Declared>::DECLARED;

    fn encode(&self, version: i16, out: &mut BytesMut) -> Result<(), WireError> {
        out.reserve(self.encoded_length(version)?);
        self.append(version, out)
    }

    fn append(&self, version: i16, out: &mut BytesMut) -> Result<(), WireError> {
        self.write(M::shape(version)?, out)
    }

    fn encoded_length(&self, version: i16) -> Result<usize, WireError> {
        measure(self, M::shape(version)?)
    }

    fn decode(version: i16, input: &mut Bytes) -> Result<M, WireError> {
        let shape = M::shape(version)?;
        let mut reader = Reader::new(input.clone());
        let message = M::read(&mut reader, shape)?;
        input.advance(reader.position());
        Ok(message)
    }
}

/// Bytes that `value` takes.
pub(crate) fn measure<T: Field>(value: &T, shape: Shape) -> Result<usize, WireError> {
    let mut counter = Counter::default();
    value.write(shape, &mut counter)?;
    Ok(counter.0)
}

/// Whether a field says more than its default.
pub(crate) fn differs<T: PartialEq>(value: &T, default: T) -> bool {
    *value != default
}

/// Declares messages; see the head of this module. Every structure gets its type, its defaults, both
/// directions of the codec and a filler for tests.
macro_rules! messages {
    ($(
        $(#[$attribute:meta])*
        pub struct $name:ident $([versions $declared:expr, flexible $flexible:expr])? { $($body:tt)* }
    )*) => {$(
        messages! { @group $(#[$attribute])* $name { $($body)* } }
        $(
            impl $crate::schema::Declared for $name {
                const NAME: &'static str = stringify!($name);
                const DECLARED: std::ops::RangeInclusive<i16> = $declared;

                fn is_flexible(version: i16) -> bool {
                    ($flexible).contains(&version)
                }
            }
        )?
    )*};

    // Brings the options of each field into groups of a fixed number: ( versions ) ( nullable ) ( tag ) (
    // default ) ( ignorable ), empty where not stated.
    (@group $(#[$attribute:meta])* $name:ident { $(
        $(#[$note:meta])*
        $field:ident: $type:ty [
            $versions:expr
            $(, nullable $nullable:expr)?
            $(, tag $tag:literal $(in $tagged:expr)?)?
            $(, default = $default:expr)?
            $(; $ignorable:ident)?
        ],
    )* }) => {
        messages! { @structure $(#[$attribute])* $name { $(
            $(#[$note])*
            $field: $type, ($versions) ($($nullable)?) ($($tag $(in $tagged)?)?) ($($default)?) ($($ignorable)?);
        )* } }
    };

    (@structure $(#[$attribute:meta])* $name:ident { $(
        $(#[$note:meta])*
        $field:ident: $type:ty, $versions:tt $nullable:tt $tag:tt $default:tt $ignorable:tt;
    )* }) => {
        $(#[$attribute])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $name {
            $( $(#[$note])* pub $field: $type, )*
            /// Tagged fields without a declaration, in ascending order of their tags.
            pub unknown_tags: Vec<$crate::schema::UnknownTag>,
        }

        impl Default for $name {
            fn default() -> Self {
                $name {
                    $( $field: messages!(@default $default), )*
                    unknown_tags: Vec::new(),
                }
            }
        }

        impl $crate::schema::field::Field for $name {
            fn read(
                input: &mut $crate::schema::reader::Reader,
                shape: $crate::schema::field::Shape,
            ) -> Result<Self, $crate::WireError> {
                let mut message = $name::default();
                $(
                    if messages!(@plain shape $versions $tag) {
                        message.$field = $crate::schema::field::Field::read(input, shape)?;
                        messages!(@check_null message.$field, shape, $name.$field $nullable);
                    }
                )*
                if shape.flexible {
                    message.unknown_tags = $crate::schema::tags::read(input, |_input, _tag, _size| {
                        $(
                            messages!(@when $tag {
                                if messages!(@tagged shape $versions $tag) && _tag == messages!(@number $tag) {
                                    message.$field = _input.within(_tag, _size, |input| {
                                        $crate::schema::field::Field::read(input, shape)
                                    })?;
                                    messages!(@check_null message.$field, shape, $name.$field $nullable);
                                    return Ok(true);
                                }
                            });
                        )*
                        Ok(false)
                    })?;
                }
                Ok(message)
            }

            fn write<S: $crate::schema::sink::Sink>(
                &self,
                shape: $crate::schema::field::Shape,
                out: &mut S,
            ) -> Result<(), $crate::WireError> {
                $(
                    if messages!(@plain shape $versions $tag) {
                        messages!(@check_null self.$field, shape, $name.$field $nullable);
                        $crate::schema::field::Field::write(&self.$field, shape, out)?;
                    } else if !messages!(@in shape $versions) {
                        messages!(@check_absent self.$field, shape, $name.$field $default $ignorable);
                    }
                )*
                if !shape.flexible {
                    return $crate::schema::tags::none(stringify!($name), shape, &self.unknown_tags);
                }
                let count = 0 $( + u32::from(messages!(@says self.$field, shape, $versions $tag $default)) )*;
                if count == 0 && self.unknown_tags.is_empty() {
                    out.u8(0);
                    return Ok(());
                }
                let tags = &mut $crate::schema::tags::Writer::begin(count, &self.unknown_tags, out);
                // Declarations follow Kafka's order of fields, in which tags need not ascend.
                for _tag in $crate::schema::tags::up_to_last(&[$(messages!(@tag $tag)),*]) {
                    $(
                        messages!(@when $tag {
                            if _tag == messages!(@tag $tag)
                                && messages!(@says self.$field, shape, $versions $tag $default)
                            {
                                messages!(@check_null self.$field, shape, $name.$field $nullable);
                                let size = $crate::schema::measure(&self.$field, shape)?;
                                tags.known(messages!(@number $tag), size, out)?;
                                $crate::schema::field::Field::write(&self.$field, shape, out)?;
                            }
                        });
                    )*
                }
                tags.end(out)
            }

            fn smallest(shape: $crate::schema::field::Shape) -> usize {
                // The count of tagged fields takes a byte.
                let sum = usize::from(shape.flexible) $(
                    + if messages!(@plain shape $versions $tag) {
                        <$type as $crate::schema::field::Field>::smallest(shape)
                    } else {
                        0
                    }
                )*;
                sum.max(1)
            }

            #[cfg(test)]
            fn arbitrary(
                source: &mut $crate::arbitrary::Source,
                shape: $crate::schema::field::Shape,
            ) -> Self {
                let mut message = $name::default();
                $(
                    while messages!(@in shape $versions) {
                        message.$field = $crate::schema::field::Field::arbitrary(source, shape);
                        if !messages!(@wrong_null message.$field, shape, $nullable) {
                            break;
                        }
                    }
                )*
                if shape.flexible {
                    message.unknown_tags = source.unknown_tags();
                }
                message
            }
        }
    };

    (@default ()) => { Default::default() };
    (@default ($default:expr)) => { $default };

    (@in $shape:ident ($versions:expr)) => { ($versions).contains(&$shape.version) };

    // Whether the field is among the ordered ones of this version.
    (@plain $shape:ident $versions:tt ()) => { messages!(@in $shape $versions) };
    (@plain $shape:ident $versions:tt ($tag:literal)) => { false };
    (@plain $shape:ident $versions:tt ($tag:literal in $tagged:expr)) => {
        messages!(@in $shape $versions) && !messages!(@in $shape ($tagged))
    };

    // Whether the field is among the tagged ones of this version.
    (@tagged $shape:ident $versions:tt ()) => { false };
    (@tagged $shape:ident $versions:tt ($tag:literal)) => { messages!(@in $shape $versions) };
    (@tagged $shape:ident $versions:tt ($tag:literal in $tagged:expr)) => { messages!(@in $shape ($tagged)) };

    // Whether the field has to be written among the tagged ones.
    (@says $value:expr, $shape:ident, $versions:tt () $default:tt) => { false };
    (@says $value:expr, $shape:ident, $versions:tt $tag:tt $default:tt) => {
        messages!(@tagged $shape $versions $tag)
            && $crate::schema::differs(&$value, messages!(@default $default))
    };

    (@tag ()) => { -1i64 };
    (@tag $tag:tt) => { messages!(@number $tag) as i64 };
    (@number ($tag:literal $(in $tagged:expr)?)) => { $tag as u32 };

    // The body, for a tagged field only.
    (@when () $body:tt) => {};
    (@when $tag:tt { $($body:tt)* }) => { $($body)* };

    (@wrong_null $value:expr, $shape:ident, ()) => { $crate::schema::field::Field::is_null(&$value) };
    (@wrong_null $value:expr, $shape:ident, $nullable:tt) => {
        $crate::schema::field::Field::is_null(&$value) && !messages!(@in $shape $nullable)
    };

    (@check_null $value:expr, $shape:ident, $name:ident.$field:ident $nullable:tt) => {
        if messages!(@wrong_null $value, $shape, $nullable) {
            return Err($crate::WireError::UnexpectedNull {
                field: concat!(stringify!($name), ".", stringify!($field)),
                version: $shape.version,
            });
        }
    };

    (@check_absent $value:expr, $shape:ident, $name:ident.$field:ident $default:tt (ignorable)) => {};
    (@check_absent $value:expr, $shape:ident, $name:ident.$field:ident $default:tt ()) => {
        if $crate::schema::differs(&$value, messages!(@default $default)) {
            return Err($crate::WireError::FieldNotInVersion {
                field: concat!(stringify!($name), ".", stringify!($field)),
                version: $shape.version,
            });
        }
    };
}
pub(crate) use messages;

#[cfg(test)]
mod tests;
