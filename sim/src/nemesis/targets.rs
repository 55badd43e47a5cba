//! The words by which scenarios name nodes: names (`b1`, `c2`, `p1`), groups (`brokers`, `controllers`, `clients`) and
//! roles (`controller`, `leader(orders-0)`, `follower(orders-0)`, `followers(orders-0)`, `replica(orders-0,1)`).

use acked_core::NodeId;

use crate::names::CONTROLLER_BASE;
use crate::runner::cluster::Member;
use crate::runner::view::View;

/// A parsed target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    Broker(u16),
    Controller(u16),
    Client(String),
    Brokers,
    Controllers,
    Clients,
    ActiveController,
    Leader {
        topic: String,
        index: i32,
    },
    /// The first in-sync replica that does not lead.
    Follower {
        topic: String,
        index: i32,
    },
    Followers {
        topic: String,
        index: i32,
    },
    /// The replica at a place of the assignment; place 0 is the preferred leader.
    Replica {
        topic: String,
        index: i32,
        place: usize,
    },
}

/// Reads one word.
///
/// # Errors
/// A word that names nothing, worded for whoever wrote the scenario.
pub fn parse(word: &str) -> Result<Target, String> {
    let fault = || {
        format!(
            "'{word}' names no node: write b1, c1, p1, brokers, controllers, clients, controller, \
             leader(TOPIC-0), follower(TOPIC-0), followers(TOPIC-0) or replica(TOPIC-0,1)"
        )
    };
    match word {
        "brokers" => return Ok(Target::Brokers),
        "controllers" => return Ok(Target::Controllers),
        "clients" => return Ok(Target::Clients),
        "controller" => return Ok(Target::ActiveController),
        _ => {}
    }
    if let Some((role, rest)) = word.split_once('(') {
        let rest = rest.strip_suffix(')').ok_or_else(fault)?;
        if role == "replica" {
            let (partition, place) = rest.split_once(',').ok_or_else(fault)?;
            let (topic, index) = topic_partition(partition).ok_or_else(fault)?;
            let place = place.trim().parse().map_err(|_| fault())?;
            return Ok(Target::Replica { topic, index, place });
        }
        let (topic, index) = topic_partition(rest).ok_or_else(fault)?;
        return match role {
            "leader" => Ok(Target::Leader { topic, index }),
            "follower" => Ok(Target::Follower { topic, index }),
            "followers" => Ok(Target::Followers { topic, index }),
            _ => Err(fault()),
        };
    }
    let number = |prefix: char| word.strip_prefix(prefix).and_then(|digits| digits.parse::<u16>().ok());
    if let Some(number) = number('b') {
        return Ok(Target::Broker(number));
    }
    if let Some(number) = number('c') {
        return Ok(Target::Controller(number));
    }
    if word.starts_with('p') || word.starts_with('k') {
        return Ok(Target::Client(word.to_string()));
    }
    Err(fault())
}

/// `orders-0` as topic and index.
pub fn topic_partition(text: &str) -> Option<(String, i32)> {
    let (topic, index) = text.rsplit_once('-')?;
    Some((topic.to_string(), index.parse().ok()?)).filter(|(topic, index)| !topic.is_empty() && *index >= 0)
}

/// The members that a target means now; empty when the role is vacant.
pub fn resolve(target: &Target, view: &View, members: &[Member]) -> Vec<Member> {
    let node = |id: NodeId| members.iter().filter(move |member| member.node == Some(id)).cloned().collect();
    let all = |wanted: fn(&Member) -> bool| members.iter().filter(|member| wanted(member)).cloned().collect();
    match target {
        Target::Broker(number) => node(NodeId(i32::from(*number))),
        Target::Controller(number) => node(NodeId(CONTROLLER_BASE + i32::from(*number))),
        Target::Client(name) => members.iter().filter(|member| member.name == *name).cloned().collect(),
        Target::Brokers => all(Member::is_broker),
        Target::Controllers => all(Member::is_controller),
        Target::Clients => all(|member| member.node.is_none()),
        Target::ActiveController => view.controller().map(node).unwrap_or_default(),
        Target::Leader { topic, index } => {
            view.partition(topic, *index).and_then(|state| state.leader).map(node).unwrap_or_default()
        }
        Target::Follower { topic, index } => view
            .partition(topic, *index)
            .and_then(|state| state.isr.iter().find(|replica| Some(**replica) != state.leader).copied())
            .map(node)
            .unwrap_or_default(),
        Target::Replica { topic, index, place } => view
            .partition(topic, *index)
            .and_then(|state| state.replicas.get(*place).copied())
            .map(node)
            .unwrap_or_default(),
        Target::Followers { topic, index } => view
            .partition(topic, *index)
            .map(|state| {
                let followers = state.replicas.iter().filter(|replica| Some(**replica) != state.leader);
                followers.flat_map(|replica| -> Vec<Member> { node(*replica) }).collect()
            })
            .unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_as_names_groups_and_roles() {
        assert_eq!(parse("b2"), Ok(Target::Broker(2)));
        assert_eq!(parse("c1"), Ok(Target::Controller(1)));
        assert_eq!(parse("p1"), Ok(Target::Client("p1".into())));
        assert_eq!(parse("controller"), Ok(Target::ActiveController));
        let leader = Target::Leader { topic: "my-orders".into(), index: 3 };
        assert_eq!(parse("leader(my-orders-3)"), Ok(leader));
        for word in
            ["", "x1", "leader", "leader()", "leader(orders)", "leader(orders-0", "boss(orders-0)", "b-1"]
        {
            assert!(parse(word).is_err(), "{word}");
        }
    }
}
