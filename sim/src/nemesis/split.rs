//! `split` cuts any two sets of nodes from each other, in both directions or one; the other kinds are presets of it.
//! What is in flight is delayed, and connections end only by their own time-outs, as on a real network.

use std::sync::Arc;

use super::{Class, FaultKind, Firing, Occasion, needs_nodes, only_arguments, targets};
use crate::runner::cluster::{Cluster, Member};

/// Which way a split cuts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    Both,
    /// From the first side to the second.
    Forward,
}

pub const SPLIT: FaultKind = FaultKind {
    name: "split",
    text: "cuts `sides = [[…], […]]` from each other for `for`; `direction` is both, forward or backward",
    may_lose: "nothing at acks=all with unclean election off",
    class: Class::Disturbs,
    check: |plan| {
        let (one, other) = plan.sides.as_ref().ok_or("split needs sides = [[…], […]]")?;
        if one.is_empty() || other.is_empty() || !plan.nodes.is_empty() {
            return Err("split needs two sides that are not empty, and takes no nodes".into());
        }
        for word in one.iter().chain(other) {
            targets::parse(word)?;
        }
        only_arguments(plan, &["direction"])?;
        match plan.arguments.get("direction").map(String::as_str) {
            None | Some("both" | "forward" | "backward") => Ok(()),
            Some(other) => Err(format!("direction '{other}' is neither both, forward nor backward")),
        }
    },
    fire: |occasion| -> Firing {
        Box::pin(async move {
            let (one, other) = occasion.plan.sides.clone().expect("checked when the plan was made");
            let (one, other) = (occasion.cluster.resolve(&one), occasion.cluster.resolve(&other));
            match occasion.plan.arguments.get("direction").map(String::as_str) {
                Some("forward") => cut(occasion, one, other, Direction::Forward).await,
                Some("backward") => cut(occasion, other, one, Direction::Forward).await,
                _ => cut(occasion, one, other, Direction::Both).await,
            }
        })
    },
};

/// The leader, and the clients named with it, against everybody else.
pub const ISOLATED_LEADER: FaultKind = FaultKind {
    name: "isolated-leader",
    text: "the `nodes` (a leader and the clients that stay with it) are cut from everybody else for `for`",
    may_lose: "nothing at acks=all with unclean election off",
    class: Class::Disturbs,
    check: |plan| needs_nodes(plan, &[]),
    fire: |occasion| -> Firing {
        Box::pin(async move {
            let inside = occasion.cluster.resolve(&occasion.plan.nodes);
            let outside = others(&occasion.cluster, &inside);
            cut(occasion, inside, outside, Direction::Both).await
        })
    },
};

/// Everybody hears the nodes or is heard by them, not both.
pub const ONE_WAY: FaultKind = FaultKind {
    name: "one-way",
    text: "what the `nodes` send to everybody else does not arrive for `for`; what they are sent does",
    may_lose: "nothing at acks=all with unclean election off",
    class: Class::Disturbs,
    check: |plan| needs_nodes(plan, &[]),
    fire: |occasion| -> Firing {
        Box::pin(async move {
            let inside = occasion.cluster.resolve(&occasion.plan.nodes);
            let outside = others(&occasion.cluster, &inside);
            cut(occasion, inside, outside, Direction::Forward).await
        })
    },
};

pub const LEADER_CUT_FROM_CONTROLLERS: FaultKind = FaultKind {
    name: "leader-cut-from-controllers",
    text: "the `nodes` and the controllers do not hear each other for `for`; brokers and clients do",
    may_lose: "nothing at acks=all with unclean election off",
    class: Class::Disturbs,
    check: |plan| needs_nodes(plan, &[]),
    fire: |occasion| -> Firing {
        Box::pin(async move {
            let inside = occasion.cluster.resolve(&occasion.plan.nodes);
            let controllers = occasion.cluster.resolve(&["controllers".to_string()]);
            cut(occasion, inside, controllers, Direction::Both).await
        })
    },
};

/// Everybody else hears the leader, the clients' other brokers included.
pub const CLIENT_CUT_FROM_LEADER: FaultKind = FaultKind {
    name: "client-cut-from-leader",
    text: "the clients in `nodes` (all, if none) and the others in `nodes` (a leader) do not hear each other for `for`",
    may_lose: "nothing",
    class: Class::Disturbs,
    check: |plan| needs_nodes(plan, &[]),
    fire: |occasion| -> Firing {
        Box::pin(async move {
            let named = occasion.cluster.resolve(&occasion.plan.nodes);
            let (mut clients, leaders): (Vec<Member>, Vec<Member>) =
                named.into_iter().partition(Member::is_client);
            if clients.is_empty() {
                clients = occasion.cluster.resolve(&["clients".to_string()]);
            }
            cut(occasion, clients, leaders, Direction::Both).await
        })
    },
};

/// Brokers, controllers and clients, each group cut in two halves that hold together.
pub const HALVES: FaultKind = FaultKind {
    name: "halves",
    text: "the first half of brokers, controllers and clients is cut from the second for `for`",
    may_lose: "nothing at acks=all with unclean election off",
    class: Class::Disturbs,
    check: |plan| {
        if !plan.nodes.is_empty() || plan.sides.is_some() {
            return Err("halves takes neither nodes nor sides".into());
        }
        only_arguments(plan, &[])
    },
    fire: |occasion| -> Firing {
        Box::pin(async move {
            let mut sides = (Vec::new(), Vec::new());
            for group in ["brokers", "controllers", "clients"] {
                let members = occasion.cluster.resolve(&[group.to_string()]);
                let half = members.len() / 2;
                sides.0.extend_from_slice(&members[..half]);
                sides.1.extend_from_slice(&members[half..]);
            }
            cut(occasion, sides.0, sides.1, Direction::Both).await
        })
    },
};

fn others(cluster: &Arc<Cluster>, inside: &[Member]) -> Vec<Member> {
    cluster.members().iter().filter(|member| !inside.contains(member)).cloned().collect()
}

/// The number of transmissions that the cut held up or lost.
async fn cut(occasion: Occasion, from: Vec<Member>, to: Vec<Member>, direction: Direction) -> u64 {
    let Occasion { cluster, plan, lasts, .. } = occasion;
    if from.is_empty() || to.is_empty() {
        return 0;
    }
    let mut blocks = vec![cluster.block(&plan, &from, &to)];
    if direction == Direction::Both {
        blocks.push(cluster.block(&plan, &to, &from));
    }
    cluster.hold(&plan, blocks, lasts).await
}
