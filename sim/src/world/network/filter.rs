//! Faults that look into what travels: where Kafka's frames begin in a byte stream, what they ask, and which of them a
//! filter catches. Decides what is caught; [`super::fabric`] holds it up or breaks its connection.
//!
//! Bytes of a stream cannot be taken out of it: what is caught waits, with everything behind it, or is lost together
//! with its connection. So a lost answer is what it is on a real network: the request took effect, and nobody knows.

use std::collections::{BTreeSet, VecDeque};

use crate::world::host::Host;

/// Bytes from the beginning of a frame that say what it is: size, then key, version and correlation id of a request,
/// or the correlation id of an answer.
const HEAD_REQUEST: usize = 12;
const HEAD_ANSWER: usize = 8;
/// Requests remembered a connection: those without an answer (acks=0) are never asked for.
const ASKED_MAX: usize = 1024;

/// Which half of the conversations a filter looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speech {
    Requests,
    Answers,
    Both,
}

/// What becomes of a message that is caught.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Catch {
    /// It waits, and what is behind it, until the filter is lifted.
    Hold,
    /// It is lost: both ends learn that their connection was reset.
    Reset,
    /// Half of it arrives, and then the end of the stream, at both ends.
    Close,
}

/// What is caught on the way from any of `from` to any of `to`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    pub from: BTreeSet<Host>,
    pub to: BTreeSet<Host>,
    pub speech: Speech,
    /// Kafka's key of the request, or of the request that an answer belongs to; `None` catches all.
    pub api_key: Option<i16>,
    pub catch: Catch,
    /// Messages that it catches at most.
    pub times: u64,
}

impl Filter {
    pub(super) fn matches(&self, from: Host, to: Host, message: Message) -> bool {
        let speech = match message {
            Message::Request { .. } => self.speech != Speech::Answers,
            Message::Answer { .. } => self.speech != Speech::Requests,
        };
        let (Message::Request { api_key, .. } | Message::Answer { api_key, .. }) = message;
        let key = self.api_key.is_none() || self.api_key == api_key;
        speech && key && self.from.contains(&from) && self.to.contains(&to)
    }
}

/// A message whose head has been seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Message {
    Request {
        correlation: i32,
        api_key: Option<i16>,
    },
    /// `api_key` is unknown for an answer to nothing that was asked.
    Answer {
        correlation: i32,
        api_key: Option<i16>,
    },
}

/// Where one direction of a connection stands in its frames, after the bytes that have arrived.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Framing {
    head: [u8; HEAD_REQUEST],
    /// Bytes of the head that have been seen.
    seen: usize,
    /// Bytes of the frame behind its head that are still to come; meaningful once the head is whole.
    left: usize,
}

impl Framing {
    /// Goes over arriving bytes and tells every head that they complete.
    pub(super) fn pass(&mut self, answers: bool, mut bytes: &[u8], mut tell: impl FnMut(&[u8])) {
        let length = if answers { HEAD_ANSWER } else { HEAD_REQUEST };
        while !bytes.is_empty() {
            if self.seen < length {
                let size = bytes.len().min(length - self.seen);
                self.head[self.seen..self.seen + size].copy_from_slice(&bytes[..size]);
                self.seen += size;
                bytes = &bytes[size..];
                if self.seen == length {
                    let frame = i32::from_be_bytes(self.head[..4].try_into().expect("four bytes"));
                    // A size that no frame has ends the following: it is hostile input, and some node's to refuse.
                    let behind = usize::try_from(frame).unwrap_or(0).saturating_sub(length - 4);
                    self.left = behind;
                    tell(&self.head[..length]);
                }
            }
            if self.seen == length {
                let size = bytes.len().min(self.left);
                self.left -= size;
                bytes = &bytes[size..];
                if self.left == 0 {
                    self.seen = 0;
                }
            }
        }
    }
}

/// What both directions of one connection say, as far as it has arrived.
#[derive(Debug, Default)]
pub(super) struct Conversation {
    framing: [Framing; 2],
    asked: VecDeque<(i32, i16)>,
}

impl Conversation {
    /// The messages whose heads the next bytes of a direction complete; direction 0 carries requests.
    pub(super) fn ahead(&self, direction: usize, (front, back): (&[u8], &[u8])) -> Vec<Message> {
        let mut framing = self.framing[direction];
        let mut found = Vec::new();
        for bytes in [front, back] {
            framing.pass(direction == 1, bytes, |head| found.push(read(&self.asked, direction, head)));
        }
        found
    }

    /// The bytes arrived.
    pub(super) fn arrived(&mut self, direction: usize, (front, back): (&[u8], &[u8])) {
        let Conversation { framing, asked } = self;
        for bytes in [front, back] {
            framing[direction].pass(direction == 1, bytes, |head| match read(asked, direction, head) {
                Message::Request { correlation, api_key } => {
                    if asked.len() == ASKED_MAX {
                        asked.pop_front();
                    }
                    asked.push_back((correlation, api_key.expect("a request names its key")));
                }
                Message::Answer { correlation, .. } => {
                    // Answers come in the order of their requests; those passed over had none.
                    if let Some(at) = asked.iter().position(|(known, _)| *known == correlation) {
                        asked.drain(..=at);
                    }
                }
            });
        }
    }
}

/// What a head says, given what was asked before on its connection.
fn read(asked: &VecDeque<(i32, i16)>, direction: usize, head: &[u8]) -> Message {
    let number = |at: usize| i32::from_be_bytes(head[at..at + 4].try_into().expect("four bytes"));
    if direction == 0 {
        let api_key = i16::from_be_bytes(head[4..6].try_into().expect("two bytes"));
        return Message::Request { correlation: number(8), api_key: Some(api_key) };
    }
    let correlation = number(4);
    let known = asked.iter().find(|(known, _)| *known == correlation);
    Message::Answer { correlation, api_key: known.map(|(_, api_key)| *api_key) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn request(api_key: i16, correlation: i32, body: usize) -> Vec<u8> {
        let mut bytes = (8 + body as i32).to_be_bytes().to_vec();
        bytes.extend(api_key.to_be_bytes());
        bytes.extend([0, 9]);
        bytes.extend(correlation.to_be_bytes());
        bytes.extend(vec![7; body]);
        bytes
    }

    fn answer(correlation: i32, body: usize) -> Vec<u8> {
        let mut bytes = (4 + body as i32).to_be_bytes().to_vec();
        bytes.extend(correlation.to_be_bytes());
        bytes.extend(vec![7; body]);
        bytes
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn every_message_is_told_once_however_the_stream_is_cut(
            messages in prop::collection::vec((0_i16..80, 0_usize..40), 1..12),
            cuts in prop::collection::vec(1_usize..30, 1..60),
        ) {
            let mut conversation = Conversation::default();
            for (direction, expected) in [(0, true), (1, false)] {
                let mut stream: Vec<u8> = Vec::new();
                for (number, (api_key, body)) in messages.iter().enumerate() {
                    stream.extend(match direction {
                        0 => request(*api_key, number as i32, *body),
                        _ => answer(number as i32, *body),
                    });
                }
                let mut told = Vec::new();
                let mut cut = cuts.iter().cycle();
                while !stream.is_empty() {
                    let size = (*cut.next().expect("it goes round")).min(stream.len());
                    let rest = stream.split_off(size);
                    told.extend(conversation.ahead(direction, (&stream, &[])));
                    conversation.arrived(direction, (&stream, &[]));
                    stream = rest;
                }
                let known: Vec<Message> = messages
                    .iter()
                    .enumerate()
                    .map(|(number, (api_key, _))| {
                        let (correlation, api_key) = (number as i32, Some(*api_key));
                        if expected {
                            Message::Request { correlation, api_key }
                        } else {
                            Message::Answer { correlation, api_key }
                        }
                    })
                    .collect();
                prop_assert_eq!(told, known);
            }
        }
    }

    #[test]
    fn answer_is_known_by_its_request_and_requests_without_one_are_passed_over() {
        let mut conversation = Conversation::default();
        for (api_key, correlation) in [(0, 1), (0, 2), (1, 3)] {
            conversation.arrived(0, (&request(api_key, correlation, 3), &[]));
        }
        let told = conversation.ahead(1, (&answer(3, 0), &[]));
        assert_eq!(told, [Message::Answer { correlation: 3, api_key: Some(1) }]);
        conversation.arrived(1, (&answer(3, 0), &[]));
        assert!(conversation.asked.is_empty());
        let told = conversation.ahead(1, (&answer(4, 0), &[]));
        assert_eq!(told, [Message::Answer { correlation: 4, api_key: None }]);
    }

    #[test]
    fn filter_catches_by_direction_speech_and_key() {
        let filter = Filter {
            from: BTreeSet::from([Host(1)]),
            to: BTreeSet::from([Host(2)]),
            speech: Speech::Answers,
            api_key: Some(0),
            catch: Catch::Hold,
            times: 1,
        };
        let answer = |api_key| Message::Answer { correlation: 1, api_key };
        assert!(filter.matches(Host(1), Host(2), answer(Some(0))));
        assert!(!filter.matches(Host(2), Host(1), answer(Some(0))));
        assert!(!filter.matches(Host(1), Host(2), answer(Some(1))));
        assert!(!filter.matches(Host(1), Host(2), answer(None)));
        assert!(!filter.matches(Host(1), Host(2), Message::Request { correlation: 1, api_key: Some(0) }));
    }
}
