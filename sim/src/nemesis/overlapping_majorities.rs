//! `overlapping-majorities`: the nodes form a ring, in an order that the seed draws, and each hears only those around
//! it: a majority for everybody, and no two the same one. With three nodes each hears itself and the next.

use rand::RngExt;

use super::{Class, FaultKind, Firing, Occasion, needs_nodes};
use crate::runner::cluster::Member;

pub const OVERLAPPING_MAJORITIES: FaultKind = FaultKind {
    name: "overlapping-majorities",
    text: "each of the `nodes` (three or more) hears a majority of them for `for`, and no two hear the same one",
    may_lose: "nothing at acks=all with unclean election off",
    class: Class::Disturbs,
    check: |plan| needs_nodes(plan, &[]),
    fire: |occasion| -> Firing { Box::pin(fire(occasion)) },
};

/// Whether the node at `place` of a ring hears the one at `other`.
fn hears(size: usize, place: usize, other: usize) -> bool {
    let majority = size / 2 + 1;
    let behind = (majority - 1) / 2;
    (other + size - place + behind) % size < majority
}

async fn fire(occasion: Occasion) -> u64 {
    let Occasion { cluster, plan, lasts, mut random } = occasion;
    let mut ring = cluster.resolve(&plan.nodes);
    if ring.len() < 3 {
        return 0;
    }
    for last in (1..ring.len()).rev() {
        ring.swap(last, random.random_range(0..=last));
    }
    let mut blocks = Vec::new();
    for (place, hearer) in ring.iter().enumerate() {
        let unheard: Vec<Member> = ring
            .iter()
            .enumerate()
            .filter(|(other, _)| !hears(ring.len(), place, *other))
            .map(|(_, member)| member.clone())
            .collect();
        blocks.push(cluster.block(&plan, &unheard, std::slice::from_ref(hearer)));
    }
    cluster.hold(&plan, blocks, lasts).await
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn everybody_hears_itself_and_a_majority_and_no_two_the_same() {
        for size in 3..=9 {
            let mut sets = BTreeSet::new();
            for place in 0..size {
                let heard: Vec<usize> = (0..size).filter(|other| hears(size, place, *other)).collect();
                assert!(heard.contains(&place) && heard.len() == size / 2 + 1, "{size} {place} {heard:?}");
                assert!(heard.len() < size, "somebody is not heard");
                sets.insert(heard);
            }
            assert_eq!(sets.len(), size);
        }
    }
}
