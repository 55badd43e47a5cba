//! Who leads a partition. A pure choice; what the record says is in `partition_change`.
//!
//! Not decided here: whether an unclean election is allowed. Source: kafka-rules 5; KIP-460 (kinds of elections).

use crate::types::NodeId;

/// What kind of election is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// Any in-sync replica, the current leader first; out of sync if the topic's settings allow it.
    Online,
    /// `replicas[0]` first.
    Preferred,
    /// Out of sync if need be, because an administrator asked for it.
    UncleanByAdministrator,
}

/// The outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Elected {
    pub leader: Option<NodeId>,
    /// The leader is not in sync: what it lacks is lost.
    pub unclean: bool,
}

/// What an election looks at.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidates<'a> {
    /// The assignment, in order of preference.
    pub replicas: &'a [NodeId],
    /// The in-sync replicas as they will be.
    pub isr: &'a [NodeId],
    pub current: Option<NodeId>,
}

impl Candidates<'_> {
    /// Elects a leader. `acceptable` says whether a broker may lead at all; `unclean` whether one out of sync may.
    ///
    /// In this order, where valid is in sync and acceptable:
    ///
    /// - for a preferred election, `replicas[0]` if it is valid;
    /// - the current leader if it is valid;
    /// - the first valid replica in assignment order;
    /// - if allowed, the first acceptable replica, in sync or not;
    /// - nobody.
    pub fn elect(&self, preferred: bool, unclean: bool, acceptable: impl Fn(NodeId) -> bool) -> Elected {
        let valid = |node: &NodeId| self.isr.contains(node) && acceptable(*node);
        let first = self.replicas.first().filter(|_| preferred);
        let clean = first
            .filter(|node| valid(node))
            .or(self.current.as_ref().filter(|node| valid(node)))
            .or(self.replicas.iter().find(|node| valid(node)))
            .copied();
        if let Some(leader) = clean {
            assert!(self.isr.contains(&leader), "a clean election out of the in-sync replicas");
            return Elected { leader: Some(leader), unclean: false };
        }
        let outsider = self.replicas.iter().find(|node| unclean && acceptable(**node)).copied();
        assert!(
            outsider.is_none_or(|node| !self.isr.contains(&node)),
            "an in-sync replica is elected cleanly"
        );
        Elected { leader: outsider, unclean: outsider.is_some() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn elect(isr: &[i32], current: i32, up: &[i32], preferred: bool, unclean: bool) -> (Option<i32>, bool) {
        let replicas = [NodeId(1), NodeId(2), NodeId(3)];
        let isr: Vec<NodeId> = isr.iter().map(|id| NodeId(*id)).collect();
        let current = (current > 0).then_some(NodeId(current));
        let candidates = Candidates { replicas: &replicas, isr: &isr, current };
        let elected = candidates.elect(preferred, unclean, |node| up.contains(&node.0));
        (elected.leader.map(|node| node.0), elected.unclean)
    }

    #[test]
    fn valid_leader_is_kept() {
        assert_eq!(elect(&[1, 2, 3], 2, &[1, 2, 3], false, true), (Some(2), false));
    }

    #[test]
    fn first_valid_replica_in_assignment_order_follows() {
        assert_eq!(elect(&[3, 2], 1, &[1, 2, 3], false, true), (Some(2), false));
        assert_eq!(elect(&[3, 2], 2, &[1, 3], false, true), (Some(3), false));
    }

    #[test]
    fn preferred_replica_leads_only_in_sync() {
        assert_eq!(elect(&[1, 2], 2, &[1, 2, 3], true, false), (Some(1), false));
        assert_eq!(elect(&[2, 3], 2, &[1, 2, 3], true, false), (Some(2), false));
        assert_eq!(elect(&[1, 3], 2, &[2, 3], true, false), (Some(3), false));
    }

    #[test]
    fn outsider_leads_only_when_allowed_and_no_member_is_acceptable() {
        assert_eq!(elect(&[1], 1, &[2, 3], false, true), (Some(2), true));
        assert_eq!(elect(&[1], 1, &[2, 3], false, false), (None, false));
        assert_eq!(elect(&[3], 1, &[2, 3], false, true), (Some(3), false));
    }

    #[test]
    fn nobody_leads_when_nobody_is_acceptable() {
        assert_eq!(elect(&[1, 2, 3], 1, &[], false, true), (None, false));
    }
}
