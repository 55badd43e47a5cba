//! Where the replicas of a new topic go: striped over the brokers in random order, unfenced ones first, leaders
//! spread evenly. Not decided here: who is in sync. Racks are not looked at.
//! Source: KIP-36 without racks; Kafka's `StripedReplicaPlacer`.

use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use crate::types::NodeId;

/// Brokers that may hold replicas.
#[derive(Clone, Debug, Default)]
pub(super) struct Usable {
    pub unfenced: Vec<NodeId>,
    /// Registered but stopped or cut off; used when there are not enough others.
    pub fenced: Vec<NodeId>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum PlacementError {
    #[error(
        "Unable to replicate the partition {replicas} time(s): The target replication factor of {replicas} cannot \
         be reached because only {registered} broker(s) are registered or some brokers have all their log \
         directories cordoned."
    )]
    TooFewBrokers { replicas: usize, registered: usize },
    #[error("Unable to replicate the partition {replicas} time(s): All brokers are currently fenced.")]
    AllFenced { replicas: usize },
}

impl Usable {
    /// Replicas for `partitions` partitions, the preferred one first and unfenced.
    pub fn place(
        mut self,
        partitions: usize,
        replicas: usize,
        rng: &mut ChaCha8Rng,
    ) -> Result<Vec<Vec<NodeId>>, PlacementError> {
        assert!(replicas > 0, "the caller checked the replication factor");
        let registered = self.unfenced.len() + self.fenced.len();
        if replicas > registered {
            return Err(PlacementError::TooFewBrokers { replicas, registered });
        }
        if self.unfenced.is_empty() {
            return Err(PlacementError::AllFenced { replicas });
        }
        let mut placed = Vec::with_capacity(partitions);
        for partition in 0..partitions {
            let stripe = partition % self.unfenced.len();
            if stripe == 0 {
                // A fresh order for each round, so that followers of one leader differ.
                self.unfenced.shuffle(rng);
                self.fenced.shuffle(rng);
            }
            let mut assignment = self.unfenced.clone();
            assignment.rotate_left(stripe);
            let mut rest = self.fenced.clone();
            let turn = partition % rest.len().max(1);
            rest.rotate_left(turn);
            assignment.extend(rest);
            assignment.truncate(replicas);
            placed.push(assignment);
        }
        Ok(placed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use std::collections::BTreeSet;

    fn usable(unfenced: i32, fenced: i32) -> Usable {
        Usable {
            unfenced: (1..=unfenced).map(NodeId).collect(),
            fenced: (unfenced + 1..=unfenced + fenced).map(NodeId).collect(),
        }
    }

    #[test]
    fn leaders_are_spread_evenly_and_replicas_are_distinct() {
        let placed = usable(3, 0).place(9, 2, &mut ChaCha8Rng::seed_from_u64(1)).expect("enough brokers");
        for broker in 1..=3 {
            assert_eq!(placed.iter().filter(|replicas| replicas[0] == NodeId(broker)).count(), 3);
        }
        for replicas in &placed {
            assert_eq!(replicas.iter().collect::<BTreeSet<_>>().len(), 2);
        }
    }

    #[test]
    fn fenced_brokers_come_last_and_never_lead() {
        let placed = usable(1, 2).place(4, 3, &mut ChaCha8Rng::seed_from_u64(1)).expect("enough brokers");
        assert!(placed.iter().all(|replicas| replicas.len() == 3 && replicas[0] == NodeId(1)));
    }

    #[test]
    fn too_few_and_only_fenced_brokers_are_refused() {
        let rng = &mut ChaCha8Rng::seed_from_u64(1);
        let few = usable(1, 1).place(1, 3, rng);
        assert_eq!(few, Err(PlacementError::TooFewBrokers { replicas: 3, registered: 2 }));
        assert_eq!(usable(0, 2).place(1, 1, rng), Err(PlacementError::AllFenced { replicas: 1 }));
    }
}
