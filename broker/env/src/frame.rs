//! Length-prefixed frames over a byte stream: four bytes of big-endian length, then that many bytes.

use std::io;

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt};

/// How much is reserved before any of a frame's bytes have arrived: a peer that only claims a long frame costs no more.
const RESERVE: usize = 16 * 1024;

/// Reads the next frame, without its length. `Ok(None)` when the stream ends between two frames.
///
/// # Errors
/// `InvalidData` for a negative length or one above `frame_max` bytes, `UnexpectedEof` for an end within a frame,
/// and whatever the stream reports.
pub async fn read_frame<S: AsyncRead + Unpin>(
    stream: &mut S,
    buffer: &mut BytesMut,
    frame_max: usize,
) -> io::Result<Option<Bytes>> {
    loop {
        if buffer.len() >= 4 {
            let length = i32::from_be_bytes([buffer[0], buffer[1], buffer[2], buffer[3]]);
            let length =
                usize::try_from(length).ok().filter(|length| *length <= frame_max).ok_or_else(|| {
                    io::Error::new(io::ErrorKind::InvalidData, format!("frame of {length} bytes"))
                })?;
            if buffer.len() >= 4 + length {
                buffer.advance(4);
                return Ok(Some(buffer.split_to(length).freeze()));
            }
            buffer.reserve((4 + length - buffer.len()).min(RESERVE));
        } else {
            buffer.reserve(2048);
        }
        if stream.read_buf(buffer).await? == 0 {
            return if buffer.is_empty() { Ok(None) } else { Err(io::ErrorKind::UnexpectedEof.into()) };
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    /// Slices never wait, so one poll finishes the future.
    fn now<T>(future: impl Future<Output = T>) -> T {
        match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(value) => value,
            Poll::Pending => panic!("a slice does not wait"),
        }
    }

    #[test]
    fn frames_come_out_one_by_one_and_the_end_between_them_is_no_error() {
        let mut bytes: &[u8] = &[0, 0, 0, 2, 7, 8, 0, 0, 0, 0, 0, 0, 0, 1, 9];
        let mut buffer = BytesMut::new();
        let mut frames = Vec::new();
        while let Some(frame) = now(read_frame(&mut bytes, &mut buffer, 10)).expect("whole frames") {
            frames.push(frame.to_vec());
        }
        assert_eq!(frames, [vec![7, 8], vec![], vec![9]]);
    }

    #[test]
    fn a_long_negative_or_cut_frame_is_an_error() {
        for (bytes, kind) in [
            (&[0u8, 0, 0, 11][..], io::ErrorKind::InvalidData),
            (&[0xff, 0xff, 0xff, 0xff][..], io::ErrorKind::InvalidData),
            (&[0, 0, 0, 5, 1][..], io::ErrorKind::UnexpectedEof),
            (&[0, 0][..], io::ErrorKind::UnexpectedEof),
        ] {
            let mut bytes = bytes;
            let error = now(read_frame(&mut bytes, &mut BytesMut::new(), 10)).expect_err("refused");
            assert_eq!(error.kind(), kind);
        }
    }
}
