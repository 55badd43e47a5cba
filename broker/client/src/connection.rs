//! One connection: the handshake that learns the broker's versions (KIP-35), then requests out and answers in, in order.

use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::io;
use std::ops::RangeInclusive;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};

use acked_env::frame::read_frame;
use acked_wire::{
    ApiKey, ApiVersionsRequest, ApiVersionsResponse, DECLARED, Message, RequestBody, Str, WireError,
    decode_response_body, decode_response_header, error_code,
};
use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::transport::Happened;

/// `socket.request.max.bytes`: longer frames are refused.
const FRAME_MAX: usize = 100 * 1024 * 1024;

/// How the client names itself in the handshake (KIP-511).
const SOFTWARE_NAME: &str = "acked";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Waits for the answer to ApiVersions in this version.
    Handshake {
        version: i16,
    },
    Up,
}

struct Awaited {
    correlation: i32,
    key: ApiKey,
    version: i16,
}

struct Outgoing {
    frame: Bytes,
    /// To be reported once written, when there is no answer to wait for.
    report: Option<i32>,
}

/// See the module. `Handshake → Up`: the broker's versions are known. An error ends it.
pub(crate) struct Connection<S> {
    stream: S,
    stage: Stage,
    /// By API, the versions that both sides speak.
    versions: BTreeMap<ApiKey, RangeInclusive<i16>>,
    input: BytesMut,
    output: VecDeque<Outgoing>,
    unflushed: bool,
    awaited: VecDeque<Awaited>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    pub(crate) fn new(stream: S, client_id: &Str) -> Connection<S> {
        let version = *declared(ApiKey::ApiVersions).expect("ApiVersions is declared").end();
        let mut connection = Connection {
            stream,
            stage: Stage::Handshake { version },
            versions: BTreeMap::new(),
            input: BytesMut::new(),
            output: VecDeque::new(),
            unflushed: false,
            awaited: VecDeque::new(),
        };
        connection.ask_versions(version, client_id);
        connection
    }

    /// Queues a request in the newest version that both sides speak.
    ///
    /// # Errors
    /// When there is none, or the request cannot be said in it; nothing is queued then.
    pub(crate) fn send(
        &mut self,
        correlation: i32,
        body: &RequestBody,
        answered: bool,
        client_id: &Str,
    ) -> Result<(), WireError> {
        assert_eq!(self.stage, Stage::Up, "requests follow the handshake");
        let key = body.key();
        let versions = self
            .versions
            .get(&key)
            .ok_or(WireError::UnsupportedVersion { message: key.name(), version: -1 })?;
        let version = *versions.end();
        let frame = body.frame(version, correlation, Some(client_id))?;
        self.output.push_back(Outgoing { frame, report: (!answered).then_some(correlation) });
        if answered {
            self.awaited.push_back(Awaited { correlation, key, version });
        }
        Ok(())
    }

    pub(crate) fn poll_next(
        &mut self,
        context: &mut Context<'_>,
        client_id: &Str,
    ) -> Poll<io::Result<Happened>> {
        loop {
            if let Poll::Ready(written) = self.poll_write(context) {
                return Poll::Ready(written.map(|correlation| Happened::Written { correlation }));
            }
            let frame = ready!(pin!(read_frame(&mut self.stream, &mut self.input, FRAME_MAX)).poll(context))?;
            let frame = frame.ok_or(io::ErrorKind::UnexpectedEof)?;
            match self.stage {
                Stage::Up => return Poll::Ready(self.answer(frame)),
                Stage::Handshake { version } => {
                    if self.on_versions(frame, version, client_id)? {
                        return Poll::Ready(Ok(Happened::Up));
                    }
                }
            }
        }
    }

    /// Writes until nothing is left or the stream takes no more. Ready when a request is to be reported, or the stream
    /// failed.
    fn poll_write(&mut self, context: &mut Context<'_>) -> Poll<io::Result<i32>> {
        while let Some(first) = self.output.front_mut() {
            let written = ready!(Pin::new(&mut self.stream).poll_write(context, &first.frame))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.unflushed = true;
            first.frame.advance(written);
            if first.frame.is_empty() {
                let report = self.output.pop_front().and_then(|outgoing| outgoing.report);
                if let Some(correlation) = report {
                    return Poll::Ready(Ok(correlation));
                }
            }
        }
        if self.unflushed {
            ready!(Pin::new(&mut self.stream).poll_flush(context))?;
            self.unflushed = false;
        }
        Poll::Pending
    }

    fn answer(&mut self, mut frame: Bytes) -> io::Result<Happened> {
        let awaited = self.awaited.pop_front().ok_or_else(|| malformed("an answer that nobody waits for"))?;
        let correlation =
            decode_response_header(awaited.key, awaited.version, &mut frame).map_err(malformed)?;
        if correlation != awaited.correlation {
            return Err(malformed("an answer out of order"));
        }
        let body = decode_response_body(awaited.key, awaited.version, &mut frame).map_err(malformed)?;
        Ok(Happened::Answer { correlation, body })
    }

    // ---- handshake

    fn ask_versions(&mut self, version: i16, client_id: &Str) {
        let request = RequestBody::ApiVersions(ApiVersionsRequest {
            client_software_name: Str::from_static(SOFTWARE_NAME),
            client_software_version: Str::from_static(env!("CARGO_PKG_VERSION")),
            ..Default::default()
        });
        let frame = request.frame(version, 0, Some(client_id)).expect("the handshake has no awkward fields");
        self.stage = Stage::Handshake { version };
        self.output.push_back(Outgoing { frame, report: None });
    }

    /// True when the versions are known. A broker that does not speak `version` says so in version 0 and names those
    /// that it speaks; the newest common one is tried next.
    fn on_versions(&mut self, mut frame: Bytes, version: i16, client_id: &Str) -> io::Result<bool> {
        let _ = decode_response_header(ApiKey::ApiVersions, version, &mut frame).map_err(malformed)?;
        let code = frame.first_chunk().map_or(error_code::NONE, |bytes| i16::from_be_bytes(*bytes));
        let format = if code == error_code::UNSUPPORTED_VERSION { 0 } else { version };
        let answer = ApiVersionsResponse::decode(format, &mut frame).map_err(malformed)?;
        if code == error_code::UNSUPPORTED_VERSION {
            let theirs = answer.api_keys.iter().find(|api| api.api_key == ApiKey::ApiVersions.code());
            let newest = theirs.map_or(0, |api| api.max_version.min(version - 1)).max(0);
            if newest >= version {
                return Err(malformed("no common version of ApiVersions"));
            }
            self.ask_versions(newest, client_id);
            return Ok(false);
        }
        if code != error_code::NONE {
            return Err(malformed(error_code::name(code)));
        }
        for api in &answer.api_keys {
            let Ok(key) = ApiKey::try_from(api.api_key) else { continue };
            let Some(ours) = declared(key) else { continue };
            let (first, last) = (api.min_version.max(*ours.start()), api.max_version.min(*ours.end()));
            if first <= last {
                self.versions.insert(key, first..=last);
            }
        }
        self.stage = Stage::Up;
        Ok(true)
    }
}

fn declared(key: ApiKey) -> Option<&'static RangeInclusive<i16>> {
    DECLARED.iter().find(|(declared, _)| *declared == key).map(|(_, versions)| versions)
}

fn malformed(reason: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use acked_wire::api::metadata::{MetadataRequest, MetadataResponse};
    use acked_wire::{ApiVersion, ResponseBody, decode_request_header};
    use tokio::io::DuplexStream;

    use super::*;

    struct Bench {
        connection: Connection<DuplexStream>,
        broker: DuplexStream,
        received: BytesMut,
    }

    fn now<T>(future: impl Future<Output = T>) -> Poll<T> {
        pin!(future).poll(&mut Context::from_waker(Waker::noop()))
    }

    fn client() -> Str {
        Str::from_static("test")
    }

    fn bench() -> Bench {
        let (ours, broker) = tokio::io::duplex(1 << 16);
        Bench { connection: Connection::new(ours, &client()), broker, received: BytesMut::new() }
    }

    impl Bench {
        fn poll(&mut self) -> Poll<io::Result<Happened>> {
            self.connection.poll_next(&mut Context::from_waker(Waker::noop()), &client())
        }

        /// API, version and correlation id of the next request that arrived at the broker.
        fn request(&mut self) -> (i16, i16, i32) {
            let Poll::Ready(frame) = now(read_frame(&mut self.broker, &mut self.received, FRAME_MAX)) else {
                panic!("a request arrived")
            };
            let mut frame = frame.expect("a good frame").expect("a frame");
            let header = decode_request_header(&mut frame).expect("a good header");
            (header.api_key.code(), header.api_version, header.correlation_id)
        }

        fn write(&mut self, bytes: &[u8]) {
            let written = now(tokio::io::AsyncWriteExt::write_all(&mut self.broker, bytes));
            assert!(matches!(written, Poll::Ready(Ok(()))));
        }

        fn answer_versions(&mut self, format: i16, error_code: i16, apis: &[(i16, i16, i16)]) {
            let api = |(api_key, min_version, max_version): &(i16, i16, i16)| ApiVersion {
                api_key: *api_key,
                min_version: *min_version,
                max_version: *max_version,
                ..Default::default()
            };
            let body = ApiVersionsResponse {
                error_code,
                api_keys: apis.iter().map(api).collect(),
                ..Default::default()
            };
            let frame = ResponseBody::ApiVersions(body).frame(format, 0).expect("encodes");
            self.write(&frame);
        }
    }

    fn up(apis: &[(i16, i16, i16)]) -> Bench {
        let mut bench = bench();
        assert!(bench.poll().is_pending());
        let _ = bench.request();
        bench.answer_versions(4, 0, apis);
        assert!(matches!(bench.poll(), Poll::Ready(Ok(Happened::Up))));
        bench
    }

    fn metadata() -> RequestBody {
        RequestBody::Metadata(MetadataRequest::default())
    }

    #[test]
    fn handshake_falls_back_to_the_newest_version_that_the_broker_names() {
        let mut bench = bench();
        assert!(bench.poll().is_pending());
        assert_eq!(bench.request(), (18, 4, 0));
        bench.answer_versions(0, error_code::UNSUPPORTED_VERSION, &[(18, 0, 2)]);
        assert!(bench.poll().is_pending());
        assert_eq!(bench.request(), (18, 2, 0));
        bench.answer_versions(2, 0, &[(18, 0, 2)]);
        assert!(matches!(bench.poll(), Poll::Ready(Ok(Happened::Up))));
    }

    #[test]
    fn broker_that_refuses_every_version_is_given_up() {
        let mut bench = bench();
        for version in [4, 0] {
            assert!(bench.poll().is_pending());
            assert_eq!(bench.request(), (18, version, 0));
            bench.answer_versions(0, error_code::UNSUPPORTED_VERSION, &[]);
        }
        assert!(matches!(bench.poll(), Poll::Ready(Err(_))));
    }

    #[test]
    fn requests_go_out_in_the_newest_common_version_and_answers_come_in_order() {
        let mut bench = up(&[(3, 0, 99)]);
        for correlation in [7, 8] {
            bench.connection.send(correlation, &metadata(), true, &client()).expect("both speak it");
        }
        assert!(bench.poll().is_pending());
        assert_eq!((bench.request(), bench.request()), ((3, 13, 7), (3, 13, 8)));
        for correlation in [7, 8] {
            let body = ResponseBody::Metadata(MetadataResponse::default());
            bench.write(&body.frame(13, correlation).expect("encodes"));
            let Poll::Ready(Ok(Happened::Answer { correlation: answered, .. })) = bench.poll() else {
                panic!("answered")
            };
            assert_eq!(answered, correlation);
        }
    }

    #[test]
    fn request_without_a_common_version_is_not_sent() {
        let mut bench = up(&[(3, 90, 99)]);
        assert!(bench.connection.send(1, &metadata(), true, &client()).is_err());
        assert!(bench.connection.output.is_empty() && bench.connection.awaited.is_empty());
    }

    #[test]
    fn request_without_answer_is_reported_once_written() {
        let mut bench = up(&[(3, 0, 13)]);
        bench.connection.send(5, &metadata(), false, &client()).expect("both speak it");
        assert!(matches!(bench.poll(), Poll::Ready(Ok(Happened::Written { correlation: 5 }))));
        assert!(bench.poll().is_pending());
    }

    #[test]
    fn hostile_frames_end_the_connection() {
        let long = [0x7f, 0xff, 0xff, 0xff];
        let short = [0, 0, 0, 1, 9];
        let unasked = [0, 0, 0, 4, 0, 0, 0, 1];
        for bytes in [&long[..], &short, &unasked] {
            let mut bench = up(&[(3, 0, 13)]);
            bench.write(bytes);
            assert!(matches!(bench.poll(), Poll::Ready(Err(_))), "{bytes:?}");
        }
        let mut bench = up(&[(3, 0, 13)]);
        bench.connection.send(5, &metadata(), true, &client()).expect("both speak it");
        assert!(bench.poll().is_pending());
        let body = ResponseBody::Metadata(MetadataResponse::default());
        bench.write(&body.frame(13, 6).expect("encodes"));
        assert!(matches!(bench.poll(), Poll::Ready(Err(_))), "another correlation id");
    }

    #[test]
    fn end_of_stream_ends_the_connection() {
        let mut bench = up(&[]);
        drop(bench.broker);
        let polled = bench.connection.poll_next(&mut Context::from_waker(Waker::noop()), &client());
        assert!(matches!(polled, Poll::Ready(Err(_))));
    }
}
