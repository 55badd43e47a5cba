//! Whatever others say, a node answers or ignores it: no panic, no fall of its epoch or high watermark.

use std::time::Duration;

use acked_wire::{BeginQuorumEpochRequest, RequestBody, ResponseBody, Str, VoteRequest, error_code};
use bytes::Bytes;
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::super::messages::{self, Answer, FetchAnswer, Standing};
use super::desk::*;
use crate::types::{NodeId, PeerError};

const VOTERS: [NodeId; 3] = [ME, SECOND, THIRD];

/// Numbers near the edges and near what the node knows.
fn number(rng: &mut ChaCha8Rng) -> i64 {
    match rng.random_range(0..12) {
        0 => i64::MAX,
        1 => i64::MIN,
        2 => i64::from(i32::MAX),
        3 => -1,
        _ => rng.random_range(0..6),
    }
}

fn epoch(rng: &mut ChaCha8Rng) -> i32 {
    // The greatest epochs end all elections, so they come seldom.
    if rng.random_range(0..200) == 0 { i32::MAX - rng.random_range(0..2) } else { rng.random_range(-1..8) }
}

fn node(rng: &mut ChaCha8Rng) -> NodeId {
    [ME, SECOND, THIRD, BROKER, NodeId(-1), NodeId(i32::MAX)][rng.random_range(0..6)]
}

fn standing(rng: &mut ChaCha8Rng) -> Standing {
    let leader = rng.random_bool(0.5).then(|| node(rng));
    Standing { epoch: epoch(rng), leader }
}

fn records(rng: &mut ChaCha8Rng) -> Bytes {
    let mut records = batch(rng.random_range(0..6), rng.random_range(0..4), &["x", "y"]).to_vec();
    match rng.random_range(0..4) {
        0 => records.truncate(rng.random_range(0..records.len())),
        1 => {
            let at = rng.random_range(0..records.len());
            records[at] = rng.random();
        }
        2 => return Bytes::new(),
        _ => {}
    }
    records.into()
}

fn request(rng: &mut ChaCha8Rng) -> RequestBody {
    let from = config(node(rng), &VOTERS);
    let to = node(rng);
    match rng.random_range(0..6) {
        0 => messages::begin_request(&from, to, epoch(rng)),
        1 => messages::end_request(&from, epoch(rng), &[node(rng), node(rng)]),
        2 => messages::fetch_request(&from, epoch(rng), number(rng), epoch(rng), number(rng)),
        3 => RequestBody::Vote(VoteRequest::default()),
        4 => RequestBody::BeginQuorumEpoch(BeginQuorumEpochRequest {
            cluster_id: Some(Str::from_static("another")),
            ..BeginQuorumEpochRequest::default()
        }),
        _ => messages::vote_request(&from, to, epoch(rng), (epoch(rng), number(rng)), rng.random()),
    }
}

fn response(rng: &mut ChaCha8Rng, asked: &RequestBody) -> Result<ResponseBody, PeerError> {
    let by = config(node(rng), &VOTERS);
    let error =
        [error_code::NONE, error_code::NONE, error_code::FENCED_LEADER_EPOCH, 999][rng.random_range(0..4)];
    let answer = Answer { error, standing: standing(rng), granted: rng.random() };
    Ok(match asked {
        RequestBody::Vote(_) => messages::vote_response(&by, &answer),
        RequestBody::BeginQuorumEpoch(_) => messages::begin_response(&by, &answer),
        RequestBody::EndQuorumEpoch(_) => messages::end_response(&by, &answer),
        _ if rng.random_range(0..10) == 0 => messages::fetch_refused(error),
        _ => {
            let diverging = rng.random_bool(0.2).then(|| (epoch(rng), number(rng)));
            let records = records(rng);
            let high_watermark = number(rng);
            let standing = answer.standing;
            messages::fetch_response(&by, FetchAnswer { error, standing, high_watermark, diverging, records })
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_message_breaks_a_node(seed in any::<u64>(), observes in any::<bool>()) {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let own = if observes { BROKER } else { ME };
        let mut desk = Desk::start(config(own, &VOTERS), None, &batch(1, 0, &["a"]));
        let mut before = (0, 0);
        for _ in 0..200 {
            let open = desk.sent();
            match rng.random_range(0..8) {
                0..3 => {
                    desk.request(request(&mut rng));
                }
                3..6 if !open.is_empty() => {
                    let sent = &open[rng.random_range(0..open.len())];
                    let result = response(&mut rng, &sent.body);
                    desk.answer(sent, result);
                }
                6 => {
                    let _ = desk.propose(&["p"]);
                }
                _ => desk.pass(Duration::from_millis(rng.random_range(1..700))),
            }
            let after = (desk.quorum.epoch(), desk.quorum.high_watermark());
            prop_assert!(after.0 >= before.0 && after.1 >= before.1, "{before:?} fell to {after:?}");
            before = after;
        }
    }
}
