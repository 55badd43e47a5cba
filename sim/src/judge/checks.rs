//! The registry of what the judge checks: identifiers, names, and which checks a run has switched on. The one list
//! that `acked list invariants` prints.

/// What one check looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    /// Clients and logs only: what could be checked on a real cluster.
    BlackBox,
    /// The machines' observations too.
    WhiteBox,
}

/// An invariant or anomaly, named as in every report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Check {
    K4,
    L1,
    L2,
    L5,
    L7,
    M2,
    P1,
    P2,
    Q1,
    Q2,
    Q3,
    Q4,
    Q5,
    Q6,
    R2,
    R3,
    S1,
    S10,
    S11,
    S12,
    S13,
    S14,
    S15,
    S16,
    S19,
    S2,
    S22,
    S23,
    S3,
    S4,
    S5,
    S7,
    S8,
    S9,
    V1,
    V11,
    V13,
    V17,
    V2,
    V20,
    V3,
    V4,
    V9,
}

/// One row of the registry.
#[derive(Clone, Copy, Debug)]
pub struct Invariant {
    pub check: Check,
    pub id: &'static str,
    pub name: &'static str,
    pub view: View,
    /// One sentence: what must hold.
    pub text: &'static str,
}

const fn row(
    check: Check,
    id: &'static str,
    name: &'static str,
    view: View,
    text: &'static str,
) -> Invariant {
    Invariant { check, id, name, view, text }
}

/// Every check, sorted by identifier.
pub static INVARIANTS: &[Invariant] = &[
    row(
        Check::K4,
        "K4",
        "two oracles agree",
        View::WhiteBox,
        "an oracle that sees only the lines of verifiable clients finds the same acknowledged records lost",
    ),
    row(
        Check::L1,
        "L1",
        "leader exists",
        View::BlackBox,
        "a partition with an electable replica has a leader once faults are healed",
    ),
    row(
        Check::L2,
        "L2",
        "writes resume",
        View::BlackBox,
        "with enough replicas alive an acks=all write succeeds once faults are healed",
    ),
    row(
        Check::L5,
        "L5",
        "operations terminate",
        View::BlackBox,
        "every client call ends within its own time-out",
    ),
    row(
        Check::L7,
        "L7",
        "quorum elects",
        View::WhiteBox,
        "a majority of controllers elects a leader once faults are healed",
    ),
    row(
        Check::M2,
        "M2",
        "fenced means out",
        View::WhiteBox,
        "a fenced broker is in no committed in-sync set (but as the last one that is kept) and leads nothing",
    ),
    row(
        Check::P1,
        "P1",
        "frames decode",
        View::BlackBox,
        "a frame decodes at the negotiated version and is the same when it is encoded again (sampled)",
    ),
    row(
        Check::P2,
        "P2",
        "answers in order",
        View::BlackBox,
        "on a connection answers come in the order of their requests, one each, and none for acks=0",
    ),
    row(Check::Q1, "Q1", "election safety", View::WhiteBox, "at most one quorum leader in an epoch"),
    row(
        Check::Q2,
        "Q2",
        "vote durability",
        View::WhiteBox,
        "a voter votes for at most one candidate in an epoch, also across restarts",
    ),
    row(
        Check::Q3,
        "Q3",
        "epoch monotonic",
        View::WhiteBox,
        "quorum epochs never fall on a node or along a metadata log",
    ),
    row(
        Check::Q4,
        "Q4",
        "metadata log safety",
        View::WhiteBox,
        "metadata logs match, an elected controller holds what is committed, and every node applies the same",
    ),
    row(
        Check::Q5,
        "Q5",
        "quorum-held watermark",
        View::WhiteBox,
        "what is committed in the metadata log is synced on a majority of the voters",
    ),
    row(
        Check::Q6,
        "Q6",
        "metadata watermark monotonic",
        View::WhiteBox,
        "a node's metadata high watermark never falls while its process lives",
    ),
    row(
        Check::R2,
        "R2",
        "process-crash neutrality",
        View::WhiteBox,
        "after a process crash the recovered log is the log before",
    ),
    row(
        Check::R3,
        "R3",
        "power-loss prefix",
        View::WhiteBox,
        "after a power loss the recovered log is the front of the log before that the disk kept, no more and no less",
    ),
    row(
        Check::S1,
        "S1",
        "committed durability",
        View::BlackBox,
        "a committed record is in the log of the final leader and is read back from it",
    ),
    row(
        Check::S10,
        "S10",
        "candidate completeness",
        View::WhiteBox,
        "every member of the in-sync set and of the eligible leader replicas holds what is committed",
    ),
    row(
        Check::S11,
        "S11",
        "one leader per epoch",
        View::WhiteBox,
        "at most one broker appends as leader in a leader epoch",
    ),
    row(
        Check::S12,
        "S12",
        "stale leader is harmless",
        View::WhiteBox,
        "a deposed leader commits or acknowledges only what every electable replica holds",
    ),
    row(
        Check::S13,
        "S13",
        "epoch order",
        View::WhiteBox,
        "epochs never fall along a log, and a committed state has a higher partition epoch than the one before",
    ),
    row(
        Check::S14,
        "S14",
        "truncation safety",
        View::WhiteBox,
        "an electable replica does not discard a committed record",
    ),
    row(
        Check::S15,
        "S15",
        "quorum superset",
        View::WhiteBox,
        "a leader counts every committed member, and committed sets are well formed",
    ),
    row(
        Check::S16,
        "S16",
        "no fabricated records",
        View::BlackBox,
        "every record in a log was sent by some client, with the same content",
    ),
    row(
        Check::S19,
        "S19",
        "idempotence",
        View::WhiteBox,
        "a producer's sequence number is committed at most once in a partition",
    ),
    row(
        Check::S2,
        "S2",
        "ack implies commit",
        View::WhiteBox,
        "an acks=all success is sent only for a committed record, with enough replicas in sync",
    ),
    row(
        Check::S22,
        "S22",
        "unclean election accounting",
        View::WhiteBox,
        "an unclean election happens only if allowed and nobody better is there, costs only what the chosen replica lacked, and readers are told",
    ),
    row(
        Check::S23,
        "S23",
        "last replica standing",
        View::WhiteBox,
        "with eligible leader replicas on, a committed record goes only when everybody that could be elected with it went down uncleanly",
    ),
    row(
        Check::S3,
        "S3",
        "acks=1 contract",
        View::WhiteBox,
        "an acks=1 success is sent only for a record in the log of a broker that believes itself leader",
    ),
    row(Check::S4, "S4", "offset uniqueness", View::WhiteBox, "an offset has one committed content for ever"),
    row(
        Check::S5,
        "S5",
        "log matching, committed",
        View::BlackBox,
        "below a replica's high watermark, and at the end in every in-sync replica, the log holds what is committed",
    ),
    row(
        Check::S7,
        "S7",
        "watermark bound",
        View::WhiteBox,
        "the high watermark passes a record only when every member of the maximal in-sync set holds it",
    ),
    row(
        Check::S8,
        "S8",
        "watermark monotonic",
        View::WhiteBox,
        "a replica's high watermark never falls in a leader epoch, and what was exposed falls only by licence",
    ),
    row(
        Check::S9,
        "S9",
        "leader completeness",
        View::WhiteBox,
        "a leader that acts holds every committed record that was not licensed away",
    ),
    row(
        Check::V1,
        "V1",
        "lost write",
        View::BlackBox,
        "an acknowledged record is read by whoever reads past its offset",
    ),
    row(
        Check::V11,
        "V11",
        "nonmonotonic poll",
        View::BlackBox,
        "a consumer goes back only when it was told to, or where records were licensed away",
    ),
    row(
        Check::V13,
        "V13",
        "nonmonotonic send",
        View::BlackBox,
        "a producer's later success has the higher offset",
    ),
    row(
        Check::V17,
        "V17",
        "phantom value",
        View::BlackBox,
        "only what was sent is read, in its partition, and what was read stays",
    ),
    row(
        Check::V2,
        "V2",
        "unseen",
        View::BlackBox,
        "an acknowledged record that nobody reached is counted, and resolved against the logs",
    ),
    row(
        Check::V20,
        "V20",
        "silent branch switch",
        View::BlackBox,
        "a consumer that read from a branch that is gone is told so before it reads another",
    ),
    row(Check::V3, "V3", "duplicate", View::BlackBox, "a record of an idempotent producer has one offset"),
    row(Check::V4, "V4", "inconsistent offsets", View::BlackBox, "an offset shows one content to everyone"),
    row(
        Check::V9,
        "V9",
        "poll skip",
        View::BlackBox,
        "a consumer does not go over a record that others read",
    ),
];

impl Check {
    /// Its row of the registry.
    pub fn invariant(self) -> &'static Invariant {
        let row = &INVARIANTS[self as usize];
        assert!(row.check == self, "the registry is in the order of the enum");
        row
    }

    /// The identifier used in code, reports and scenarios.
    pub fn id(self) -> &'static str {
        self.invariant().id
    }

    /// The check with this identifier.
    pub fn from_id(id: &str) -> Option<Check> {
        INVARIANTS.iter().find(|row| row.id == id).map(|row| row.check)
    }
}

/// The checks that are switched on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checks(u128);

impl Checks {
    pub const ALL: Checks = Checks((1 << INVARIANTS.len()) - 1);
    pub const NONE: Checks = Checks(0);

    /// Only those that see clients and logs: what may kill a mutation.
    pub fn black_box() -> Checks {
        INVARIANTS
            .iter()
            .filter(|row| row.view == View::BlackBox)
            .fold(Checks::NONE, |checks, row| checks.with(row.check))
    }

    #[must_use]
    pub fn with(self, check: Check) -> Checks {
        Checks(self.0 | 1 << check as u128)
    }

    #[must_use]
    pub fn without(self, check: Check) -> Checks {
        Checks(self.0 & !(1 << check as u128))
    }

    pub fn has(self, check: Check) -> bool {
        self.0 & (1 << check as u128) != 0
    }
}

/// Comparisons made by each check: one that compared nothing is visible.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comparisons([u64; INVARIANTS.len()]);

impl Default for Comparisons {
    fn default() -> Self {
        Comparisons([0; INVARIANTS.len()])
    }
}

impl Comparisons {
    pub fn add(&mut self, check: Check, count: u64) {
        self.0[check as usize] += count;
    }

    pub fn of(&self, check: Check) -> u64 {
        self.0[check as usize]
    }

    /// Identifier and count of every check, in the order of the registry.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        INVARIANTS.iter().map(|row| (row.id, self.0[row.check as usize]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registry_is_sorted_and_in_the_order_of_the_enum() {
        assert!(INVARIANTS.is_sorted_by(|left, right| left.id < right.id));
        for (position, row) in INVARIANTS.iter().enumerate() {
            assert_eq!(row.check as usize, position);
            assert_eq!(Check::from_id(row.id), Some(row.check));
            assert_eq!(format!("{:?}", row.check), row.id);
        }
    }

    #[test]
    fn checks_are_switched_one_by_one() {
        let checks = Checks::ALL.without(Check::S9);
        assert!(!checks.has(Check::S9) && checks.has(Check::S7));
        assert_eq!(checks.with(Check::S9), Checks::ALL);
        assert!(Checks::black_box().has(Check::V1) && !Checks::black_box().has(Check::S2));
    }
}
