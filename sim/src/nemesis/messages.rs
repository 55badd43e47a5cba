//! Faults that choose by what travels: `client-disconnect`, and `drop` and `delay` for any messages of Kafka's protocol.
//! What a stream carries cannot be taken out of it, so a message that is lost takes its connection along, and one that
//! waits holds up what is behind it.

use std::collections::BTreeSet;

use super::arguments::{self, Range};
use super::{Class, FaultKind, Firing, Occasion, only_arguments, takes_nodes, targets};
use crate::plan::FaultPlan;
use crate::runner::cluster::Member;
use crate::world::{Catch, Filter, Host, Speech};

const TIMES_MAX: Range = Range { from: 1, to: 1_000_000 };
const PRODUCE: i16 = 0;

/// The request took effect, and the client never hears of it.
pub const CLIENT_DISCONNECT: FaultKind = FaultKind {
    name: "client-disconnect",
    text: "connections of the clients in `nodes` (all, if none) with the brokers in `nodes` (all, if none) break: \
           `how` is reset or close; `moment` is answer (`times` times within `for`, when the answer to an `api` \
           request, or else to a Produce, arrives: it took effect and nobody knows) or now",
    may_lose: "nothing at acks=all",
    class: Class::AsksWhatTravels,
    check: |plan| {
        takes_nodes(plan, &["how", "moment", "times", "api"])?;
        arguments::word(plan, "how", &["reset", "close"])?;
        arguments::word(plan, "moment", &["answer", "now"])?;
        arguments::numbers(plan, "times", 1, TIMES_MAX)?;
        arguments::api_key(plan).map(|_| ())
    },
    fire: |occasion| -> Firing { Box::pin(disconnect(occasion)) },
};

pub const DROP: FaultKind = FaultKind {
    name: "drop",
    text: "messages on the way from the first of the `sides` to the second are lost with their connection for `for`: \
           `speech` (requests, answers or both) of `api` (any, if none), at most `times`; `how` is reset or close",
    may_lose: "nothing at acks=all with unclean election off",
    class: Class::AsksWhatTravels,
    check: |plan| {
        check_sides(plan, &["speech", "api", "times", "how"])?;
        arguments::word(plan, "how", &["reset", "close"])?;
        arguments::numbers(plan, "times", 1, TIMES_MAX).map(drop)
    },
    fire: |occasion| -> Firing {
        Box::pin(async move {
            let catch = how(&occasion.plan);
            let otherwise = TIMES_MAX.to;
            let times = arguments::numbers(&occasion.plan, "times", otherwise, TIMES_MAX);
            filter_sides(occasion, catch, times.expect("checked when the plan was made")).await
        })
    },
};

pub const DELAY: FaultKind = FaultKind {
    name: "delay",
    text: "messages on the way from the first of the `sides` to the second wait until `for` is over, and what is behind \
           them: `speech` (requests, answers or both) of `api` (any, if none)",
    may_lose: "nothing at acks=all with unclean election off",
    class: Class::AsksWhatTravels,
    check: |plan| check_sides(plan, &["speech", "api"]),
    fire: |occasion| -> Firing {
        let all = Range { from: i64::MAX, to: i64::MAX };
        Box::pin(filter_sides(occasion, Catch::Hold, all))
    },
};

fn check_sides(plan: &FaultPlan, known: &[&str]) -> Result<(), String> {
    let (from, to) = plan.sides.as_ref().ok_or_else(|| format!("{} needs sides = [[…], […]]", plan.kind))?;
    if from.is_empty() || to.is_empty() || !plan.nodes.is_empty() {
        return Err(format!("{} needs two sides that are not empty, and takes no nodes", plan.kind));
    }
    for word in from.iter().chain(to) {
        targets::parse(word)?;
    }
    only_arguments(plan, known)?;
    arguments::word(plan, "speech", &["requests", "answers", "both"])?;
    arguments::api_key(plan).map(|_| ())
}

fn how(plan: &FaultPlan) -> Catch {
    match arguments::word(plan, "how", &["reset", "close"]) {
        Ok("close") => Catch::Close,
        _ => Catch::Reset,
    }
}

fn hosts(members: &[Member]) -> BTreeSet<Host> {
    members.iter().map(|member| member.host).collect()
}

/// Brokers and clients among the nodes, or all of them where none is named.
fn parties(occasion: &Occasion) -> (Vec<Member>, Vec<Member>) {
    let named = occasion.cluster.resolve(&occasion.plan.nodes);
    let choose = |wanted: fn(&Member) -> bool| -> Vec<Member> {
        let chosen: Vec<Member> = named.iter().filter(|member| wanted(member)).cloned().collect();
        let everybody =
            || occasion.cluster.members().iter().filter(|member| wanted(member)).cloned().collect();
        if chosen.is_empty() { everybody() } else { chosen }
    };
    (choose(Member::is_broker), choose(Member::is_client))
}

async fn disconnect(mut occasion: Occasion) -> u64 {
    let (brokers, clients) = parties(&occasion);
    let plan = &occasion.plan;
    let catch = how(plan);
    if plan.arguments.get("moment").is_some_and(|moment| moment == "now") {
        return occasion.cluster.break_connections(plan, &clients, &brokers, catch == Catch::Reset);
    }
    let times = arguments::numbers(plan, "times", 1, TIMES_MAX).expect("checked when the plan was made");
    let api_key = arguments::api_key(plan).expect("checked when the plan was made").unwrap_or(PRODUCE);
    let filter = Filter {
        from: hosts(&brokers),
        to: hosts(&clients),
        speech: Speech::Answers,
        api_key: Some(api_key),
        catch,
        times: times.draw(&mut occasion.random) as u64,
    };
    catch_for(occasion, filter).await
}

async fn filter_sides(mut occasion: Occasion, catch: Catch, times: Range) -> u64 {
    let (from, to) = occasion.plan.sides.clone().expect("checked when the plan was made");
    let (from, to) = (occasion.cluster.resolve(&from), occasion.cluster.resolve(&to));
    let speech = match arguments::word(&occasion.plan, "speech", &["requests", "answers", "both"]) {
        Ok("answers") => Speech::Answers,
        Ok("both") => Speech::Both,
        _ => Speech::Requests,
    };
    let filter = Filter {
        from: hosts(&from),
        to: hosts(&to),
        speech,
        api_key: arguments::api_key(&occasion.plan).expect("checked when the plan was made"),
        catch,
        times: times.draw(&mut occasion.random) as u64,
    };
    catch_for(occasion, filter).await
}

/// Catches for the fault's time, or until as many were caught as there should be.
async fn catch_for(occasion: Occasion, filter: Filter) -> u64 {
    let Occasion { cluster, plan, lasts, .. } = occasion;
    let (times, holds) = (filter.times, filter.catch == Catch::Hold);
    let api = plan.arguments.get("api").map_or("", String::as_str);
    let block = cluster.filter(&plan, filter, api);
    cluster.until(lasts, || !holds && cluster.effects(block) >= times).await;
    cluster.unblock(&plan, block);
    cluster.effects(block)
}
