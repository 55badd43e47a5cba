//! Compression of the records of a batch: each codec in the framing that Kafka's clients and brokers use.
//!
//! | codec | framing |
//! |---|---|
//! | gzip | one member or more |
//! | snappy | xerial's: 16 bytes of head, then blocks of at most 32 KiB, each behind four bytes of length |
//! | lz4 | the standard frame, of independent blocks of 64 KiB without checksums |
//! | zstd | the standard frame |
//!
//! Opening holds at most three times the bound of its result. Beside it, lz4 takes at most 16 MiB for itself, and zstd
//! the window that its stream states, which is refused above 128 MiB and filled only as far as there are records.
//! Source: Kafka's `org.apache.kafka.common.compress`.

use std::io::{self, Read, Write};

use super::{BatchError, Compression};

/// Most bytes of records that a batch may open to, unless the caller says otherwise. Kafka has no such bound; its
/// producers write batches far below it.
pub const INFLATED_MAX: usize = 64 << 20;

/// How to compress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Codec {
    pub compression: Compression,
    /// gzip 1 to 9, zstd -131072 to 22; the others have none here. `None`: that of Kafka, 6 and 3.
    pub level: Option<i32>,
}

impl Codec {
    pub const NONE: Codec = Codec { compression: Compression::None, level: None };
}

impl From<Compression> for Codec {
    /// With Kafka's default level.
    fn from(compression: Compression) -> Codec {
        Codec { compression, level: None }
    }
}

/// What xerial's framing begins with: a magic word, a version and the oldest version that can read it, both 1.
const SNAPPY_HEAD: [u8; 16] = *b"\x82SNAPPY\0\0\0\0\x01\0\0\0\x01";
const SNAPPY_MAGIC: &[u8] = b"\x82SNAPPY\0";
/// Bytes before compression.
const SNAPPY_BLOCK: usize = 32 << 10;

const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// Byte of an lz4 frame that states how it is made.
const LZ4_FLAGS_AT: usize = 4;
/// No block needs the one before it.
const LZ4_INDEPENDENT: u8 = 0x20;
const LZ4_BLOCK_CHECKSUM: u8 = 0x10;
const LZ4_CONTENT_SIZE: u8 = 0x08;
const LZ4_CONTENT_CHECKSUM: u8 = 0x04;
const LZ4_DICTIONARY: u8 = 0x01;
/// Bytes of an lz4 frame before its first block: magic word, flags, block size, checksum of these.
const LZ4_HEAD: usize = 7;
/// The bit of a block's length that says that the block is not compressed.
const LZ4_PLAIN_BLOCK: u32 = 0x8000_0000;

/// Panics when the codec is [`Compression::Unknown`] or the records have 2^31 bytes or more.
pub(super) fn compress(codec: Codec, records: &[u8]) -> Vec<u8> {
    assert!(i32::try_from(records.len()).is_ok(), "a batch has less than 2^31 bytes");
    match codec.compression {
        Compression::None => records.to_vec(),
        Compression::Gzip => gzip(codec.level, records).expect("a vector takes all"),
        Compression::Snappy => snappy(records),
        Compression::Lz4 => lz4(records).expect("a vector takes all"),
        Compression::Zstd => {
            let level = codec.level.unwrap_or(zstd::DEFAULT_COMPRESSION_LEVEL);
            zstd::bulk::compress(records, level).expect("its own bound is room enough")
        }
        Compression::Unknown => panic!("nobody writes a codec that Kafka does not define"),
    }
}

fn gzip(level: Option<i32>, records: &[u8]) -> io::Result<Vec<u8>> {
    let level = level.and_then(|level| u32::try_from(level).ok()).map(flate2::Compression::new);
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), level.unwrap_or_default());
    encoder.write_all(records)?;
    encoder.finish()
}

fn snappy(records: &[u8]) -> Vec<u8> {
    let mut out = SNAPPY_HEAD.to_vec();
    let mut encoder = snap::raw::Encoder::new();
    for block in records.chunks(SNAPPY_BLOCK) {
        let block = encoder.compress_vec(block).expect("a block is far below the limit of the format");
        out.extend((block.len() as u32).to_be_bytes());
        out.extend(block);
    }
    out
}

fn lz4(records: &[u8]) -> Result<Vec<u8>, lz4_flex::frame::Error> {
    use lz4_flex::frame::{BlockMode, BlockSize, FrameEncoder, FrameInfo};
    let frame = FrameInfo::new().block_mode(BlockMode::Independent).block_size(BlockSize::Max64KB);
    let mut encoder = FrameEncoder::with_frame_info(frame, Vec::new());
    encoder.write_all(records)?;
    encoder.finish()
}

/// The records, at most `max` bytes.
///
/// Fails with [`BatchError::TooLarge`] beyond that, [`BatchError::MalformedStream`] when the codec refuses the bytes,
/// and [`BatchError::UnknownCodec`].
pub(super) fn decompress(compression: Compression, stream: &[u8], max: usize) -> Result<Vec<u8>, BatchError> {
    match compression {
        Compression::None if stream.len() > max => Err(BatchError::TooLarge { max }),
        Compression::None => Ok(stream.to_vec()),
        Compression::Gzip => read_gzip(stream, max),
        Compression::Snappy => read_snappy(stream, max),
        Compression::Lz4 => {
            let frame = lz4_frame(stream).ok_or(BatchError::MalformedStream)?;
            read_all(lz4_flex::frame::FrameDecoder::new(frame), max)
        }
        Compression::Zstd => {
            let decoder = zstd::stream::read::Decoder::with_buffer(stream);
            read_all(decoder.map_err(|_| BatchError::MalformedStream)?, max)
        }
        Compression::Unknown => Err(BatchError::UnknownCodec),
    }
}

fn read_all(stream: impl Read, max: usize) -> Result<Vec<u8>, BatchError> {
    let mut out = Vec::new();
    read_behind(stream, max, &mut out)?;
    Ok(out)
}

/// Appends what is left of `stream`, up to `max` bytes in all.
fn read_behind(stream: impl Read, max: usize, out: &mut Vec<u8>) -> Result<(), BatchError> {
    let one_more = (max - out.len()) as u64 + 1;
    stream.take(one_more).read_to_end(out).map_err(|_| BatchError::MalformedStream)?;
    if out.len() > max { Err(BatchError::TooLarge { max }) } else { Ok(()) }
}

/// Reads members one behind the other; what follows them and is none is not read, as by Kafka (measured).
fn read_gzip(stream: &[u8], max: usize) -> Result<Vec<u8>, BatchError> {
    let mut out = Vec::new();
    let mut rest = stream;
    loop {
        let mut member = flate2::bufread::GzDecoder::new(rest);
        read_behind(&mut member, max, &mut out)?;
        rest = member.into_inner();
        if !rest.starts_with(&GZIP_MAGIC) {
            return Ok(out);
        }
    }
}

/// The first frame, up to its end mark; what follows it is not read. Only frames of independent blocks, as Kafka's
/// reader. The decoder takes a frame without end mark for a whole one, hence the walk.
fn lz4_frame(stream: &[u8]) -> Option<&[u8]> {
    let flags = *stream.get(LZ4_FLAGS_AT)?;
    if flags & LZ4_INDEPENDENT == 0 || flags & LZ4_DICTIONARY != 0 {
        return None;
    }
    let content_size = if flags & LZ4_CONTENT_SIZE != 0 { 8 } else { 0 };
    let checksum = if flags & LZ4_BLOCK_CHECKSUM != 0 { 4 } else { 0 };
    let content_checksum = if flags & LZ4_CONTENT_CHECKSUM != 0 { 4 } else { 0 };
    let mut rest = stream.get(LZ4_HEAD + content_size..)?;
    loop {
        let (length, block) = rest.split_first_chunk()?;
        let length = u32::from_le_bytes(*length);
        if length == 0 {
            return stream.get(..stream.len() - block.len() + content_checksum);
        }
        rest = block.get((length & !LZ4_PLAIN_BLOCK) as usize + checksum..)?;
    }
}

/// Reads blocks behind the head, and a bare block without one, as Kafka's reader does.
fn read_snappy(stream: &[u8], max: usize) -> Result<Vec<u8>, BatchError> {
    let mut decoder = snap::raw::Decoder::new();
    let mut out = Vec::new();
    if !stream.starts_with(SNAPPY_MAGIC) {
        read_snappy_block(&mut decoder, stream, max, &mut out)?;
        return Ok(out);
    }
    let mut rest = stream.get(SNAPPY_HEAD.len()..).ok_or(BatchError::MalformedStream)?;
    while !rest.is_empty() {
        // Streams that were put together have a head between them.
        if let Some(next) = rest.get(SNAPPY_HEAD.len()..).filter(|_| rest.starts_with(SNAPPY_MAGIC)) {
            rest = next;
            continue;
        }
        let (length, blocks) = rest.split_first_chunk().ok_or(BatchError::MalformedStream)?;
        let length = usize::try_from(u32::from_be_bytes(*length)).unwrap_or(usize::MAX);
        let (block, next) = blocks.split_at_checked(length).ok_or(BatchError::MalformedStream)?;
        read_snappy_block(&mut decoder, block, max, &mut out)?;
        rest = next;
    }
    Ok(out)
}

fn read_snappy_block(
    decoder: &mut snap::raw::Decoder,
    block: &[u8],
    max: usize,
    out: &mut Vec<u8>,
) -> Result<(), BatchError> {
    let size = snap::raw::decompress_len(block).map_err(|_| BatchError::MalformedStream)?;
    let start = out.len();
    if size > max - start {
        return Err(BatchError::TooLarge { max });
    }
    // Before room is made for what no block of this length can say.
    if size > block.len().saturating_mul(SNAPPY_RATIO_MAX) {
        return Err(BatchError::MalformedStream);
    }
    out.resize(start + size, 0);
    decoder.decompress(block, &mut out[start..]).map_err(|_| BatchError::MalformedStream)?;
    Ok(())
}

/// Bytes that one byte of a snappy block can stand for, at most: three bytes copy at most 64.
const SNAPPY_RATIO_MAX: usize = 22;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const CODECS: [Compression; 5] =
        [Compression::None, Compression::Gzip, Compression::Snappy, Compression::Lz4, Compression::Zstd];

    proptest! {
        #[test]
        fn what_is_compressed_opens_to_the_same_bytes(
            seed in proptest::collection::vec(any::<u8>(), 0..300),
            repeats in 1usize..400,
        ) {
            let records = seed.repeat(repeats);
            for compression in CODECS {
                let stream = compress(compression.into(), &records);
                let opened = decompress(compression, &stream, records.len());
                prop_assert_eq!(opened.as_ref(), Ok(&records), "{:?}", compression);
                if let Some(less) = records.len().checked_sub(1) {
                    let refused = decompress(compression, &stream, less);
                    prop_assert_eq!(refused, Err(BatchError::TooLarge { max: less }), "{:?}", compression);
                }
            }
        }

        #[test]
        fn any_bytes_open_or_are_refused(stream in proptest::collection::vec(any::<u8>(), 0..200)) {
            for compression in CODECS {
                if let Ok(opened) = decompress(compression, &stream, 1 << 20) {
                    prop_assert!(opened.len() <= 1 << 20);
                }
            }
        }
    }

    #[test]
    fn levels_are_those_of_the_codec() {
        let records: Vec<u8> = (0..20_000u32)
            .flat_map(|number| format!("{} {}", number / 3, number % 7 * number).into_bytes())
            .collect();
        for (compression, low, default, high) in [(Compression::Gzip, 1, 6, 9), (Compression::Zstd, 1, 3, 19)]
        {
            let stream = |level| compress(Codec { compression, level }, &records);
            assert!(stream(Some(high)).len() < stream(Some(low)).len(), "{compression:?}");
            assert_eq!(stream(None), stream(Some(default)), "{compression:?}");
        }
    }

    #[test]
    fn gzip_members_are_read_one_behind_the_other_and_what_follows_is_not() {
        let mut stream = gzip(None, b"first").expect("a vector takes all");
        stream.extend(gzip(None, b"second").expect("a vector takes all"));
        stream.extend([0, 0, 0, 1]);
        assert_eq!(decompress(Compression::Gzip, &stream, 11), Ok(b"firstsecond".to_vec()));
        assert_eq!(decompress(Compression::Gzip, &stream, 10), Err(BatchError::TooLarge { max: 10 }));
    }

    #[test]
    fn lz4_frames_of_other_makers_are_read_and_what_follows_is_not() {
        use lz4_flex::frame::{BlockMode, FrameEncoder, FrameInfo};
        let independent = FrameInfo::new().block_mode(BlockMode::Independent);
        for frame in [
            independent.clone().block_checksums(true).content_checksum(true),
            independent.content_size(Some(7)),
        ] {
            let mut encoder = FrameEncoder::with_frame_info(frame, Vec::new());
            encoder.write_all(b"records").expect("a vector takes all");
            let mut stream = encoder.finish().expect("a vector takes all");
            stream.extend(lz4(b"more").expect("a vector takes all"));
            assert_eq!(decompress(Compression::Lz4, &stream, 100), Ok(b"records".to_vec()));
        }
    }

    #[test]
    fn snappy_streams_that_were_put_together_and_a_bare_block_are_read() {
        let mut twice = snappy(b"first");
        twice.extend(snappy(b"second"));
        assert_eq!(decompress(Compression::Snappy, &twice, 100), Ok(b"firstsecond".to_vec()));
        let bare = snap::raw::Encoder::new().compress_vec(b"bare").expect("a small block");
        assert_eq!(decompress(Compression::Snappy, &bare, 100), Ok(b"bare".to_vec()));
    }

    #[test]
    fn lz4_frames_whose_blocks_need_each_other_are_refused_as_by_kafka() {
        use lz4_flex::frame::{BlockMode, FrameEncoder, FrameInfo};
        let frame = FrameInfo::new().block_mode(BlockMode::Linked);
        let mut encoder = FrameEncoder::with_frame_info(frame, Vec::new());
        encoder.write_all(b"linked").expect("a vector takes all");
        let stream = encoder.finish().expect("a vector takes all");
        assert_eq!(decompress(Compression::Lz4, &stream, 100), Err(BatchError::MalformedStream));
    }

    #[test]
    fn a_stream_that_ends_early_is_refused() {
        let records = b"some records, and some records more".repeat(9);
        for compression in &CODECS[1..] {
            let stream = compress((*compression).into(), &records);
            let cut = &stream[..stream.len() - 1];
            let refused = decompress(*compression, cut, 10_000);
            assert_eq!(refused, Err(BatchError::MalformedStream), "{compression:?}");
        }
    }

    #[test]
    fn zstd_windows_above_128_mib_are_refused() {
        // Magic word, no options, exponent of the window over 2^10, one empty block that is the last.
        let stream = |exponent: u8| [0x28, 0xb5, 0x2f, 0xfd, 0, exponent << 3, 1, 0, 0];
        assert_eq!(decompress(Compression::Zstd, &stream(17), 100), Ok(Vec::new()));
        assert_eq!(decompress(Compression::Zstd, &stream(18), 100), Err(BatchError::MalformedStream));
    }

    #[test]
    fn unknown_codecs_are_refused() {
        assert_eq!(decompress(Compression::Unknown, b"", 100), Err(BatchError::UnknownCodec));
    }
}
