use bytes::{Bytes, BytesMut};

use super::{Message, UnknownTag};
use crate::{Str, WireError};

messages! {
    /// One field for each rule of the language.
    pub struct Example [versions 0..=4, flexible 2..] {
        always: i16 [0..],
        late: i32 [1.., default = -1],
        hint: i32 [1..; ignorable],
        name: Option<Str> [0.., nullable 1..],
        ordered_then_tagged: i64 [1.., tag 2 in 3..],
        tagged: bool [2.., tag 0, default = true],
        inner: Option<Inner> [2.., nullable 2..],
    }

    /// See [`Example`].
    pub struct Inner {
        value: u16 [0..],
    }
}

fn example() -> Example {
    Example { always: 7, name: Some(Str::from("ab")), ..Default::default() }
}

fn encode(message: &Example, version: i16) -> Result<Vec<u8>, WireError> {
    let mut out = BytesMut::new();
    message.encode(version, &mut out).map(|()| out.to_vec())
}

fn decode(version: i16, bytes: &[u8]) -> Result<Example, WireError> {
    Example::decode(version, &mut Bytes::copy_from_slice(bytes))
}

#[test]
fn each_version_has_its_own_form() {
    let mut message = example();
    assert_eq!(encode(&message, 0), Ok(vec![0, 7, 0, 2, b'a', b'b']));
    message.late = 1;
    message.hint = 2;
    message.ordered_then_tagged = 3;
    let version_1 = [0, 7, 0, 0, 0, 1, 0, 0, 0, 2, 0, 2, b'a', b'b', 0, 0, 0, 0, 0, 0, 0, 3];
    assert_eq!(encode(&message, 1), Ok(version_1.to_vec()));
    message.tagged = false;
    message.inner = Some(Inner { value: 5, unknown_tags: Vec::new() });
    // Compact text; one for a value that is not null, then the inner structure and its count of tags; one tag.
    let version_2 =
        [0, 7, 0, 0, 0, 1, 0, 0, 0, 2, 3, b'a', b'b', 0, 0, 0, 0, 0, 0, 0, 3, 1, 0, 5, 0, 1, 0, 1, 0];
    assert_eq!(encode(&message, 2), Ok(version_2.to_vec()));
    let version_3 =
        [0, 7, 0, 0, 0, 1, 0, 0, 0, 2, 3, b'a', b'b', 1, 0, 5, 0, 2, 0, 1, 0, 2, 8, 0, 0, 0, 0, 0, 0, 0, 3];
    assert_eq!(encode(&message, 3), Ok(version_3.to_vec()));
    for version in 2..=4 {
        let bytes = encode(&message, version).expect("every field is in this version");
        assert_eq!(decode(version, &bytes).as_ref(), Ok(&message));
    }
}

#[test]
fn a_value_that_the_version_lacks_is_refused_unless_it_may_be_dropped() {
    let late = Example { late: 0, ..example() };
    assert_eq!(encode(&late, 0), Err(WireError::FieldNotInVersion { field: "Example.late", version: 0 }));
    let tagged = Example { tagged: false, ..example() };
    assert_eq!(encode(&tagged, 1), Err(WireError::FieldNotInVersion { field: "Example.tagged", version: 1 }));
    let hint = Example { hint: 9, ..example() };
    assert_eq!(encode(&hint, 0), encode(&example(), 0));
}

#[test]
fn null_is_refused_where_the_version_does_not_allow_it() {
    let null = Example { name: None, ..example() };
    let refused = WireError::UnexpectedNull { field: "Example.name", version: 0 };
    assert_eq!(encode(&null, 0), Err(refused));
    assert_eq!(decode(0, &[0, 7, 0xff, 0xff]), Err(refused));
    let bytes = encode(&null, 1).expect("null is allowed");
    assert_eq!(decode(1, &bytes), Ok(null));
}

#[test]
fn other_versions_are_refused() {
    for version in [-1, 5, i16::MAX, i16::MIN] {
        let refused = WireError::UnsupportedVersion { message: "Example", version };
        assert_eq!(encode(&example(), version), Err(refused));
        assert_eq!(decode(version, &[0; 100]), Err(refused));
    }
}

fn tag(tag: u32, value: &'static [u8]) -> UnknownTag {
    UnknownTag { tag, value: Bytes::from_static(value) }
}

#[test]
fn unknown_tags_are_kept_between_the_known_ones() {
    let unknown_tags = vec![tag(1, b"x"), tag(u32::MAX, b"")];
    let message = Example { tagged: false, ordered_then_tagged: 1, unknown_tags, ..example() };
    let bytes = encode(&message, 4).expect("tags are allowed");
    let tags = [4, 0, 1, 0, 1, 1, b'x', 2, 8, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff, 0x0f, 0];
    assert!(bytes.ends_with(&tags), "{bytes:?}");
    assert_eq!(decode(4, &bytes), Ok(message));
}

#[test]
fn unknown_tags_of_another_version_are_refused_where_they_cannot_be_said() {
    let message = Example { unknown_tags: vec![tag(9, b"")], ..example() };
    assert_eq!(encode(&message, 1), Err(WireError::TagsNotInVersion { message: "Example", version: 1 }));
    // The same tag twice: once as a field, once as an unknown one.
    let message = Example { tagged: false, unknown_tags: vec![tag(0, b"")], ..example() };
    assert_eq!(encode(&message, 4), Err(WireError::UnorderedTag { tag: 0 }));
}

/// Version 4 up to its tagged fields, which follow.
fn with_tags(tags: &[u8]) -> Vec<u8> {
    let mut bytes = encode(&example(), 4).expect("a plain message");
    assert_eq!(bytes.pop(), Some(0));
    bytes.extend_from_slice(tags);
    bytes
}

#[test]
fn malformed_tags_are_refused() {
    assert!(decode(4, &with_tags(&[1, 0, 1, 0])).is_ok());
    assert_eq!(decode(4, &with_tags(&[2, 5, 0, 5, 0])), Err(WireError::UnorderedTag { tag: 5 }));
    assert_eq!(decode(4, &with_tags(&[2, 5, 0, 0, 1, 0])), Err(WireError::UnorderedTag { tag: 0 }));
    assert_eq!(decode(4, &with_tags(&[1, 0, 2, 0, 0])), Err(WireError::TagTooLong { tag: 0, left: 1 }));
    assert_eq!(decode(4, &with_tags(&[1, 0, 0])), Err(WireError::Truncated { wanted: 1, remaining: 0 }));
    assert_eq!(decode(4, &with_tags(&[1, 0, 9, 0])), Err(WireError::Truncated { wanted: 9, remaining: 1 }));
    assert!(matches!(
        decode(4, &with_tags(&[0xff, 0xff, 0xff, 0xff, 0x0f, 9, 0])),
        Err(WireError::CountTooLarge { .. })
    ));
    assert_eq!(decode(4, &with_tags(&[0xff; 9])), Err(WireError::InvalidVarint));
}

#[test]
fn bytes_behind_the_message_stay_in_the_input() {
    let mut input = Bytes::from_static(&[0, 7, 0, 2, b'a', b'b', 1, 2, 3]);
    assert_eq!(Example::decode(0, &mut input), Ok(example()));
    assert_eq!(input, [1, 2, 3][..]);
}

#[test]
fn a_refused_message_leaves_the_input_alone() {
    let mut input = Bytes::from_static(&[0, 7, 0, 9, b'a', b'b']);
    assert_eq!(Example::decode(0, &mut input), Err(WireError::Truncated { wanted: 9, remaining: 2 }));
    assert_eq!(input.len(), 6);
}

#[test]
fn text_shares_the_frame_and_too_long_text_is_refused() {
    let frame = Bytes::from_static(&[0, 7, 0, 2, b'a', b'b']);
    let name = Example::decode(0, &mut frame.clone()).expect("valid").name.expect("not null");
    assert_eq!(name.as_bytes().as_ptr(), frame[4..].as_ptr());
    let long = Example { name: Some(Str::from("x".repeat(32_768))), ..example() };
    for version in [0, 4] {
        assert_eq!(encode(&long, version), Err(WireError::TooLong { length: 32_768 }));
    }
}
