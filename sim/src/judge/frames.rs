//! P1 and P2, over the bytes that processes write to each other.
//!
//! - P1: a frame decodes at the negotiated version, and encoding what was decoded gives the same bytes. Done for the
//!   first few frames of each API, version and direction, and for every so many of the rest: decoding everything would
//!   cost more than the brokers do.
//! - P2: answers come in the order of their requests, one each, and none for a produce request with acks=0. Done for
//!   every frame, by its first bytes.
//!
//! Memory is bounded: of a frame that is not sampled only its first bytes are kept, and a frame is sampled only up to
//! a size.

use std::collections::{BTreeMap, VecDeque};

use acked_reports::Outcome;
use acked_wire::{
    ApiKey, WireError, decode_request_body, decode_request_header, decode_response_body,
    decode_response_header,
};
use bytes::Bytes;

use super::checks::Check;
use super::reporter::{Place, Reporter};
use crate::world::tap::ConnectionId;

/// Frames of one API, version and direction that are all decoded.
const FIRST_FRAMES: u64 = 8;
/// Of the others, every so many are.
const SAMPLE_EVERY: u64 = 32;
/// What is kept of a frame that is not decoded: enough for the header and the acks of a produce request, whose client id
/// and transactional id are short here.
const FRONT_BYTES: usize = 300;
/// Longest frame that is decoded.
const SAMPLED_BYTES_MAX: usize = 1 << 20;
/// Kafka's `socket.request.max.bytes`; nothing here is longer.
const FRAME_BYTES_MAX: usize = 100 << 20;
/// Requests that may wait for answers on one connection; a client has a few in flight.
const PENDING_MAX: usize = 10_000;

/// A request that was written, and is to be answered.
#[derive(Clone, Copy, Debug)]
struct Pending {
    api_key: ApiKey,
    api_version: i16,
    correlation_id: i32,
}

/// One direction of a connection, taken apart into frames.
#[derive(Debug, Default)]
struct Direction {
    /// The length bytes seen so far.
    length: Vec<u8>,
    /// Bytes of the frame that are still to come, once its length is known.
    missing: usize,
    in_frame: bool,
    kept: Vec<u8>,
    frame_length: usize,
    sampled: bool,
    /// What came was no frame: nothing behind it can be read.
    broken: bool,
}

#[derive(Debug, Default)]
struct Connection {
    generation: u32,
    requests: Direction,
    answers: Direction,
    pending: VecDeque<Pending>,
}

/// Every open connection, and how many frames of each kind there were.
#[derive(Debug, Default)]
pub struct Frames {
    /// By slot.
    connections: BTreeMap<u32, Connection>,
    /// By API key, version and whether it is a request.
    seen: BTreeMap<(i16, i16, bool), u64>,
}

/// The frame that `bytes` end, or not yet. Gives what is left of `bytes` besides.
enum Taken<'a> {
    More,
    Frame { kept: Vec<u8>, whole: bool, rest: &'a [u8] },
    NoFrame,
}

impl Direction {
    /// Takes bytes of one frame. `is_sampled` decides, by the first bytes of a frame, whether to keep all of it.
    fn take<'a>(&mut self, mut bytes: &'a [u8], is_sampled: impl FnOnce(&[u8]) -> bool) -> Taken<'a> {
        if !self.in_frame {
            let wanted = 4 - self.length.len();
            let (length, rest) = bytes.split_at(wanted.min(bytes.len()));
            self.length.extend_from_slice(length);
            if self.length.len() < 4 {
                return Taken::More;
            }
            let length: [u8; 4] = self.length.as_slice().try_into().expect("four bytes were gathered");
            self.length.clear();
            let Ok(missing) = usize::try_from(i32::from_be_bytes(length)) else { return Taken::NoFrame };
            if missing > FRAME_BYTES_MAX {
                return Taken::NoFrame;
            }
            (self.missing, self.frame_length, self.in_frame, bytes) = (missing, missing, true, rest);
            // Processes write whole frames, so that its first bytes are almost always here with its length.
            self.sampled = is_sampled(&rest[..rest.len().min(missing)]);
        }
        let (now, rest) = bytes.split_at(self.missing.min(bytes.len()));
        let keep_max = if self.sampled { SAMPLED_BYTES_MAX } else { FRONT_BYTES };
        let room = keep_max.saturating_sub(self.kept.len());
        self.kept.extend_from_slice(&now[..now.len().min(room)]);
        self.missing -= now.len();
        if self.missing > 0 {
            return Taken::More;
        }
        self.in_frame = false;
        let whole = self.sampled && self.kept.len() == self.frame_length;
        Taken::Frame { kept: std::mem::take(&mut self.kept), whole, rest }
    }
}

impl Frames {
    /// A process wrote to a connection.
    pub fn written(&mut self, id: ConnectionId, by_client: bool, mut bytes: &[u8], reporter: &mut Reporter) {
        let connection = self.connections.entry(id.slot).or_default();
        if connection.generation != id.generation {
            *connection = Connection { generation: id.generation, ..Connection::default() };
        }
        while !bytes.is_empty() {
            let connection = self.connections.get_mut(&id.slot).expect("it was just made");
            let pending = connection.pending.front().copied();
            let seen = &mut self.seen;
            let direction = if by_client { &mut connection.requests } else { &mut connection.answers };
            if direction.broken {
                return;
            }
            let is_sampled = |front: &[u8]| {
                let kind = match (by_client, pending) {
                    (true, _) => first_words(front).map(|(key, version)| (key, version, true)),
                    (false, pending) => {
                        pending.map(|pending| (pending.api_key.code(), pending.api_version, false))
                    }
                };
                let Some(kind) = kind else { return false };
                let count = seen.entry(kind).or_default();
                *count += 1;
                *count <= FIRST_FRAMES || count.is_multiple_of(SAMPLE_EVERY)
            };
            match direction.take(bytes, is_sampled) {
                Taken::More => return,
                Taken::NoFrame => {
                    direction.broken = true;
                    reporter.compared(Check::P1, 1);
                    reporter.found(Check::P1, Outcome::None, Place::default(), || {
                        format!("connection {}: what was written is no frame", id.slot)
                    });
                    return;
                }
                Taken::Frame { kept, whole, rest } => {
                    bytes = rest;
                    if by_client {
                        connection.request(id.slot, kept, whole, reporter);
                    } else {
                        connection.answer(id.slot, kept, whole, reporter);
                    }
                }
            }
        }
    }
}

/// API key and version, the first words of a request.
fn first_words(front: &[u8]) -> Option<(i16, i16)> {
    let (key, rest) = front.split_first_chunk::<2>()?;
    let (version, _) = rest.split_first_chunk::<2>()?;
    Some((i16::from_be_bytes(*key), i16::from_be_bytes(*version)))
}

/// What the first bytes of a request say.
struct Front {
    pending: Pending,
    /// Acks of a produce request; any other number for the rest.
    acks: Option<i16>,
}

/// Reads the front of a request without copying it; `None` when it is too short or says nothing known.
fn front_of(frame: &[u8]) -> Option<Front> {
    let (key, version) = first_words(frame)?;
    let api_key = ApiKey::try_from(key).ok()?;
    let (correlation_id, mut rest) = frame.get(4..)?.split_first_chunk::<4>()?;
    let pending =
        Pending { api_key, api_version: version, correlation_id: i32::from_be_bytes(*correlation_id) };
    if api_key != ApiKey::Produce {
        return Some(Front { pending, acks: None });
    }
    let skip_text = |rest: &mut &[u8]| -> Option<()> {
        let (length, behind) = rest.split_first_chunk::<2>()?;
        let length = usize::try_from(i16::from_be_bytes(*length)).unwrap_or(0);
        *rest = behind.get(length..)?;
        Some(())
    };
    skip_text(&mut rest)?;
    if api_key.request_header_version(version) >= 2 {
        // No tags in the header, and a compact transactional id: its length plus one, 0 for null.
        let (tags, behind) = rest.split_first()?;
        let (length, behind) = behind.split_first()?;
        if *tags != 0 || *length >= 0x80 {
            return None;
        }
        rest = behind.get(usize::from(length.saturating_sub(1))..)?;
    } else {
        skip_text(&mut rest)?;
    }
    let (acks, _) = rest.split_first_chunk::<2>()?;
    Some(Front { pending, acks: Some(i16::from_be_bytes(*acks)) })
}

impl Connection {
    fn request(&mut self, slot: u32, frame: Vec<u8>, whole: bool, reporter: &mut Reporter) {
        let Some(Front { pending, acks }) = front_of(&frame) else {
            self.requests.broken = true;
            self.answers.broken = true;
            reporter.compared(Check::P1, 1);
            reporter.found(Check::P1, Outcome::None, Place::default(), || {
                format!("connection {slot}: a request of {} bytes has no readable header", frame.len())
            });
            return;
        };
        if acks != Some(0) {
            if self.pending.len() >= PENDING_MAX {
                self.answers.broken = true;
                return;
            }
            self.pending.push_back(pending);
        }
        if whole {
            reporter.compared(Check::P1, 1);
            if let Err(wrong) = request_again(frame) {
                found_again(slot, "request", &pending, &wrong, reporter);
            }
        }
    }

    fn answer(&mut self, slot: u32, frame: Vec<u8>, whole: bool, reporter: &mut Reporter) {
        reporter.compared(Check::P2, 1);
        let told = frame.first_chunk::<4>().map(|told| i32::from_be_bytes(*told));
        let expected = self.pending.pop_front();
        let wrong = match expected {
            None => Some("nothing was asked that is not answered".to_owned()),
            Some(pending) if told != Some(pending.correlation_id) => Some(format!(
                "{:?} with correlation id {} is to be answered next",
                pending.api_key, pending.correlation_id
            )),
            Some(_) => None,
        };
        if let Some(wrong) = wrong {
            // Whatever follows is out of step as well.
            self.answers.broken = true;
            reporter.found(Check::P2, Outcome::None, Place::default(), || {
                let told = told.map_or("without a correlation id".to_owned(), |told| format!("to {told}"));
                format!("connection {slot}: an answer {told} was written, and {wrong}")
            });
            return;
        }
        if let Some(pending) = expected.filter(|_| whole) {
            reporter.compared(Check::P1, 1);
            if let Err(wrong) = answer_again(&pending, frame) {
                found_again(slot, "answer", &pending, &wrong, reporter);
            }
        }
    }
}

/// Why a frame is not what its decoding says.
enum Wrong {
    Unreadable(WireError),
    Different,
}

fn found_again(slot: u32, what: &str, frame: &Pending, wrong: &Wrong, reporter: &mut Reporter) {
    let place = Place { epoch: i32::from(frame.api_key.code()), ..Place::default() };
    reporter.found(Check::P1, Outcome::None, place, || {
        let wrong = match wrong {
            Wrong::Unreadable(error) => format!("failed to be read: {error}"),
            Wrong::Different => "is another one when it is encoded again".to_owned(),
        };
        format!("connection {slot}: {what} of {:?} version {} {wrong}", frame.api_key, frame.api_version)
    });
}

fn request_again(frame: Vec<u8>) -> Result<(), Wrong> {
    let whole = Bytes::from(frame);
    let mut input = whole.clone();
    let header = decode_request_header(&mut input).map_err(Wrong::Unreadable)?;
    let body =
        decode_request_body(header.api_key, header.api_version, &mut input).map_err(Wrong::Unreadable)?;
    let again = body.frame(header.api_version, header.correlation_id, header.client_id.as_ref());
    let again = again.map_err(Wrong::Unreadable)?;
    if again[4..] == whole { Ok(()) } else { Err(Wrong::Different) }
}

fn answer_again(pending: &Pending, frame: Vec<u8>) -> Result<(), Wrong> {
    let whole = Bytes::from(frame);
    let at = |version: i16| {
        let mut input = whole.clone();
        let told = decode_response_header(pending.api_key, version, &mut input).map_err(Wrong::Unreadable)?;
        let body = decode_response_body(pending.api_key, version, &mut input).map_err(Wrong::Unreadable)?;
        let again = body.frame(version, told).map_err(Wrong::Unreadable)?;
        if again[4..] == whole { Ok(()) } else { Err(Wrong::Different) }
    };
    match at(pending.api_version) {
        // A version that the server does not know is answered in version 0.
        Err(_) if pending.api_key == ApiKey::ApiVersions => at(0),
        result => result,
    }
}

#[cfg(test)]
mod tests {
    use acked_wire::{
        ApiVersionsRequest, ApiVersionsResponse, MetadataRequest, MetadataResponse, ProduceRequest,
        ProduceResponse, RequestBody, ResponseBody,
    };

    use super::super::checks::Checks;
    use super::*;

    const ID: ConnectionId = ConnectionId { slot: 3, generation: 0 };

    struct Wire {
        frames: Frames,
        reporter: Reporter,
    }

    impl Wire {
        fn new() -> Wire {
            Wire { frames: Frames::default(), reporter: Reporter::new(Checks::ALL) }
        }

        fn write(&mut self, by_client: bool, bytes: &[u8]) {
            self.frames.written(ID, by_client, bytes, &mut self.reporter);
        }

        fn ask(&mut self, body: impl Into<RequestBody>, version: i16, correlation_id: i32) {
            let client = "client".into();
            let frame = body.into().frame(version, correlation_id, Some(&client)).expect("it can be encoded");
            self.write(true, &frame);
        }

        fn tell(&mut self, body: impl Into<ResponseBody>, version: i16, correlation_id: i32) {
            let frame = body.into().frame(version, correlation_id).expect("it can be encoded");
            self.write(false, &frame);
        }

        fn found(&self) -> Vec<&'static str> {
            self.reporter.findings.iter().map(|finding| finding.invariant).collect()
        }
    }

    #[test]
    fn frames_in_order_are_clean_however_they_are_cut_into_pieces() {
        let client = "client".into();
        let request =
            RequestBody::from(MetadataRequest::default()).frame(13, 7, Some(&client)).expect("encodes");
        let answer = ResponseBody::from(MetadataResponse::default()).frame(13, 7).expect("encodes");
        for piece in [1, 3, 5, 1000] {
            let mut wire = Wire::new();
            for _ in 0..3 {
                let asked = [&request[..], &request[..]].concat();
                asked.chunks(piece).for_each(|bytes| wire.write(true, bytes));
                let told = [&answer[..], &answer[..]].concat();
                told.chunks(piece).for_each(|bytes| wire.write(false, bytes));
            }
            assert_eq!(wire.found(), [""; 0]);
            assert_eq!(wire.reporter.comparisons.of(Check::P2), 6);
        }
        let mut wire = Wire::new();
        wire.write(true, &request);
        wire.write(false, &answer);
        assert_eq!(wire.reporter.comparisons.of(Check::P1), 2);
    }

    #[test]
    fn answers_out_of_order_or_unasked_are_found() {
        let mut wire = Wire::new();
        wire.ask(MetadataRequest::default(), 13, 1);
        wire.ask(MetadataRequest::default(), 13, 2);
        wire.tell(MetadataResponse::default(), 13, 2);
        assert_eq!(wire.found(), ["P2"]);
        let mut wire = Wire::new();
        wire.tell(MetadataResponse::default(), 13, 1);
        assert_eq!(wire.found(), ["P2"]);
    }

    #[test]
    fn produce_without_acks_has_no_answer() {
        for version in [3, 8, 9, 13] {
            let mut wire = Wire::new();
            wire.ask(
                ProduceRequest { acks: 0, transactional_id: None, ..ProduceRequest::default() },
                version,
                1,
            );
            wire.ask(
                ProduceRequest { acks: -1, transactional_id: None, ..ProduceRequest::default() },
                version,
                2,
            );
            wire.tell(ProduceResponse::default(), version, 2);
            assert_eq!(wire.found(), [""; 0], "version {version}");
            let mut wire = Wire::new();
            wire.ask(
                ProduceRequest { acks: 0, transactional_id: None, ..ProduceRequest::default() },
                version,
                1,
            );
            wire.tell(ProduceResponse::default(), version, 1);
            assert_eq!(wire.found(), ["P2"], "version {version}");
        }
    }

    #[test]
    fn bytes_behind_a_body_and_garbage_are_found() {
        let mut wire = Wire::new();
        let client = "client".into();
        let request =
            RequestBody::from(MetadataRequest::default()).frame(13, 7, Some(&client)).expect("encodes");
        let mut longer = request.to_vec();
        longer.push(9);
        let length = (longer.len() as u32 - 4).to_be_bytes();
        longer[..4].copy_from_slice(&length);
        wire.write(true, &longer);
        assert_eq!(wire.found(), ["P1"]);
        let mut wire = Wire::new();
        wire.write(true, &[0xff; 20]);
        assert_eq!(wire.found(), ["P1"]);
    }

    #[test]
    fn unknown_version_of_api_versions_is_answered_in_version_0() {
        let mut wire = Wire::new();
        let client = "client".into();
        let request =
            RequestBody::from(ApiVersionsRequest::default()).frame(4, 1, Some(&client)).expect("encodes");
        wire.write(true, &request);
        wire.tell(ApiVersionsResponse { error_code: 35, ..ApiVersionsResponse::default() }, 0, 1);
        assert_eq!(wire.found(), [""; 0]);
    }

    #[test]
    fn next_connection_in_the_slot_begins_anew() {
        let mut wire = Wire::new();
        wire.ask(MetadataRequest::default(), 13, 1);
        wire.write(false, &[0, 0]);
        let next = ConnectionId { generation: 1, ..ID };
        let client = "client".into();
        let request =
            RequestBody::from(MetadataRequest::default()).frame(13, 9, Some(&client)).expect("encodes");
        wire.frames.written(next, true, &request, &mut wire.reporter);
        let answer = ResponseBody::from(MetadataResponse::default()).frame(13, 9).expect("encodes");
        wire.frames.written(next, false, &answer, &mut wire.reporter);
        assert_eq!(wire.found(), [""; 0]);
    }

    #[test]
    fn most_frames_of_a_kind_are_only_looked_at_in_front() {
        let mut wire = Wire::new();
        for correlation_id in 0..200 {
            wire.ask(MetadataRequest::default(), 13, correlation_id);
            wire.tell(MetadataResponse::default(), 13, correlation_id);
        }
        assert_eq!(wire.reporter.comparisons.of(Check::P1), 2 * (8 + 200 / 32));
        assert_eq!(wire.reporter.comparisons.of(Check::P2), 200);
    }
}
