//! What Apache Kafka 4.3.1 and real clients sent and wrote is decoded, and encoded again to the same bytes.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use acked_wire::batch::{BatchError, batches};
use acked_wire::{
    ApiKey, RequestBody, RequestHeader, ResponseBody, api, decode_request_body, decode_request_header,
    decode_response_body, decode_response_header, error_code,
};
use bytes::Bytes;

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

/// One recorded pair. Frames come without their four bytes of length.
struct Pair {
    place: String,
    key: ApiKey,
    version: i16,
    request: Bytes,
    response: Option<Bytes>,
}

fn from_hex(text: &str) -> Bytes {
    let digit = |byte: u8| (byte as char).to_digit(16).expect("frames are in hex") as u8;
    text.as_bytes().chunks_exact(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
}

fn pairs() -> Vec<Pair> {
    let mut files: Vec<_> = fs::read_dir(golden("frames"))
        .expect("golden frames are there")
        .map(|entry| entry.expect("the folder is readable").path())
        .collect();
    files.sort();
    let mut pairs = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).expect("a golden file is text");
        for (index, line) in text.lines().enumerate() {
            let pair: serde_json::Value = serde_json::from_str(line).expect("a line is JSON");
            let number = |field: &str| pair[field].as_i64().expect("a number") as i16;
            pairs.push(Pair {
                place: format!("{}:{}", file.file_name().expect("a file").display(), index + 1),
                key: ApiKey::try_from(number("api_key")).expect("a declared key"),
                version: number("api_version"),
                request: from_hex(pair["request"].as_str().expect("a request")),
                response: pair["response"].as_str().map(from_hex),
            });
        }
    }
    pairs
}

fn declared(key: ApiKey, version: i16) -> bool {
    api::DECLARED.iter().any(|(other, versions)| *other == key && versions.contains(&version))
}

/// Pairs of declared versions: their number when the frames were copied.
const PAIRS: usize = 338;

#[test]
fn every_golden_frame_is_encoded_to_the_same_bytes() {
    let mut counts: BTreeMap<ApiKey, usize> = BTreeMap::new();
    let mut left_over = Vec::new();
    for pair in pairs().iter().filter(|pair| declared(pair.key, pair.version)) {
        *counts.entry(pair.key).or_default() += 1;
        let (correlation_id, rest) = check_request(pair);
        if rest > 0 {
            left_over.push((pair.key, pair.version, rest));
        }
        if let Some(response) = &pair.response {
            check_response(pair, response, correlation_id);
        }
    }
    println!("{} pairs: {counts:?}", counts.values().sum::<usize>());
    assert!(counts.values().sum::<usize>() >= PAIRS, "golden frames went missing");
    assert_eq!(counts.len(), api::DECLARED.len(), "an API has no golden frame");
    // librdkafka lists topics with a four-byte count where one byte belongs. A broker must ignore the rest.
    assert_eq!(left_over, [(ApiKey::Metadata, 13, 3)]);
}

/// Returns the correlation id, and how many bytes lie behind the body.
fn check_request(pair: &Pair) -> (i32, usize) {
    let place = &pair.place;
    let mut rest = pair.request.clone();
    let header = decode_request_header(&mut rest).unwrap_or_else(|error| panic!("{place}: {error}"));
    let RequestHeader { api_key, api_version, correlation_id, client_id, .. } = header;
    assert_eq!((api_key, api_version), (pair.key, pair.version), "{place}");
    let body = decode_request_body(pair.key, pair.version, &mut rest);
    let body = body.unwrap_or_else(|error| panic!("{place}: {error}"));
    let again = body.frame(pair.version, correlation_id, client_id.as_ref());
    let again = again.unwrap_or_else(|error| panic!("{place}: {error}"));
    assert_eq!(again[..4], (again.len() as i32 - 4).to_be_bytes(), "{place}");
    if rest.is_empty() {
        assert_eq!(again.slice(4..), pair.request, "{place}: {body:?}");
    } else {
        // The first byte of the count reads as a null list, which asks for all topics.
        assert!(
            matches!(&body, RequestBody::Metadata(request) if request.topics.is_none()),
            "{place}: {body:?}"
        );
    }
    (correlation_id, rest.len())
}

fn check_response(pair: &Pair, response: &Bytes, correlation_id: i32) {
    let place = &pair.place;
    let mut rest = response.clone();
    assert_eq!(decode_response_header(pair.key, pair.version, &mut rest), Ok(correlation_id), "{place}");
    let body = decode_response_body(pair.key, pair.version, &mut rest);
    let body = body.unwrap_or_else(|error| panic!("{place}: {error}"));
    assert!(rest.is_empty(), "{place}: {} bytes behind the response", rest.len());
    let again = body.frame(pair.version, correlation_id);
    assert_eq!(again.expect("what was decoded can be encoded").slice(4..), *response, "{place}: {body:?}");
}

#[test]
fn an_unknown_version_of_api_versions_is_answered_in_version_0() {
    let unknown: Vec<_> = pairs().into_iter().filter(|pair| !declared(pair.key, pair.version)).collect();
    let [pair] = &unknown[..] else { panic!("{} pairs of undeclared versions", unknown.len()) };
    assert_eq!((pair.key, pair.version), (ApiKey::ApiVersions, 99));
    let mut rest = pair.request.clone();
    let header = decode_request_header(&mut rest).expect("the header is that of the newest version");
    assert!(decode_request_body(pair.key, pair.version, &mut rest).is_err());

    let response = pair.response.as_ref().expect("it was answered");
    let mut rest = response.clone();
    let correlation_id = decode_response_header(pair.key, 0, &mut rest);
    assert_eq!(correlation_id, Ok(header.correlation_id));
    let Ok(ResponseBody::ApiVersions(body)) = decode_response_body(pair.key, 0, &mut rest) else {
        panic!("not an answer in version 0")
    };
    assert_eq!(body.error_code, error_code::UNSUPPORTED_VERSION);
    let served: Vec<_> =
        body.api_keys.iter().map(|api| (api.api_key, api.min_version, api.max_version)).collect();
    assert_eq!(served, [(18, 0, 4)]);
    let again = ResponseBody::from(body).frame(0, header.correlation_id).expect("it can be encoded");
    assert_eq!(again.slice(4..), *response);
}

#[test]
fn recorded_batches_are_valid_but_for_the_one_with_a_wrong_checksum() {
    let mut records = Vec::new();
    for pair in pairs().iter().filter(|pair| declared(pair.key, pair.version)) {
        let mut rest = pair.request.clone();
        decode_request_header(&mut rest).expect("checked above");
        if let Ok(RequestBody::Produce(body)) = decode_request_body(pair.key, pair.version, &mut rest) {
            let partitions = body.topic_data.into_iter().flat_map(|topic| topic.partition_data);
            records.extend(partitions.filter_map(|partition| partition.records));
        }
        let Some(mut rest) = pair.response.clone() else { continue };
        decode_response_header(pair.key, pair.version, &mut rest).expect("checked above");
        if let Ok(ResponseBody::Fetch(body)) = decode_response_body(pair.key, pair.version, &mut rest) {
            let partitions = body.responses.into_iter().flat_map(|topic| topic.partitions);
            records.extend(partitions.filter_map(|partition| partition.records));
        }
    }
    let (mut valid, mut wrong_checksum) = (0, 0);
    for batch in records.iter().flat_map(|range| batches(range)) {
        match batch.and_then(|batch| batch.validate_stored()) {
            Ok(()) => valid += 1,
            Err(BatchError::Checksum { .. }) => wrong_checksum += 1,
            Err(error) => panic!("a recorded batch: {error}"),
        }
    }
    assert_eq!((valid, wrong_checksum), (287, 1));
}
