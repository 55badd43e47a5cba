//! A random walk of brokers, leaders, administrators and time against short invariants.

use std::collections::BTreeMap;

use acked_wire::MetadataRecord;
use acked_wire::api::create_topics::CreatableTopic;
use proptest::prelude::*;

use crate::controller::*;
use crate::observation::{Election, Observation, PartitionState};
use crate::types::{Time, TopicPartition};

use super::cluster::*;

#[derive(Clone, Debug)]
enum Step {
    /// A new process of the broker registers; refused while the old one's session lives.
    Start(i32),
    Serve(i32),
    /// A heartbeat of a broker whose metadata is behind.
    Behind(i32),
    WantFence(i32),
    Stop(i32),
    /// The leader of a topic asks for these of its replicas, with right or wrong epochs.
    Alter {
        topic: usize,
        members: u8,
        leader_epoch: i32,
        partition_epoch: i32,
        old_member: bool,
    },
    Elect {
        kind: i8,
    },
    Wait {
        milliseconds: u64,
    },
    FailOver,
}

fn step() -> impl Strategy<Value = Step> {
    let broker = 1..=4i32;
    prop_oneof![
        2 => broker.clone().prop_map(Step::Start),
        6 => broker.clone().prop_map(Step::Serve),
        1 => broker.clone().prop_map(Step::Behind),
        1 => broker.clone().prop_map(Step::WantFence),
        1 => broker.prop_map(Step::Stop),
        6 => (0..3usize, 0..16u8, -1..=1i32, -1..=1i32, prop::bool::weighted(0.1)).prop_map(
            |(topic, members, leader_epoch, partition_epoch, old_member)| Step::Alter {
                topic,
                members,
                // Right more often than wrong.
                leader_epoch: if members % 3 == 0 { leader_epoch } else { 0 },
                partition_epoch: if members % 3 == 1 { partition_epoch } else { 0 },
                old_member,
            }
        ),
        1 => (0..2i8).prop_map(|kind| Step::Elect { kind }),
        4 => (1..6000u64).prop_map(|milliseconds| Step::Wait { milliseconds }),
        1 => Just(Step::FailOver),
    ]
}

const TOPICS: [(&str, &[i32], &str); 3] =
    [("careful", &[1, 2, 3], "false"), ("careless", &[3, 4, 1], "true"), ("single", &[2], "true")];

fn walk(cluster: &mut Cluster, step: &Step) {
    match step {
        Step::Start(id) => {
            cluster.register(*id);
        }
        Step::Serve(id) => {
            cluster.serve(*id);
        }
        Step::Behind(id) => {
            cluster.heartbeat(*id, 0, false, false);
        }
        Step::WantFence(id) => {
            cluster.heartbeat(*id, cluster.next_offset - 1, true, false);
        }
        Step::Stop(id) => {
            cluster.heartbeat(*id, cluster.next_offset - 1, false, true);
        }
        Step::Alter { topic, members, leader_epoch, partition_epoch, old_member } => {
            let (name, replicas, _) = TOPICS[*topic];
            let members: Vec<i32> =
                replicas.iter().copied().filter(|id| members & (1 << (id - 1)) != 0).collect();
            let mut request = cluster.wish(name, &members);
            let wish = &mut request.topics[0].partitions[0];
            wish.leader_epoch += leader_epoch;
            wish.partition_epoch += partition_epoch;
            if let Some(member) = wish.new_isr_with_epochs.last_mut().filter(|_| *old_member) {
                member.broker_epoch -= 1;
            }
            cluster.alter(request);
        }
        Step::Elect { kind } => {
            cluster.elect(*kind, None);
        }
        Step::Wait { milliseconds } => {
            cluster.now += Time::from_millis(*milliseconds);
            if cluster.controller.next_deadline().is_some_and(|deadline| deadline <= cluster.now) {
                cluster.tick();
            }
        }
        Step::FailOver => cluster.fail_over(),
    }
}

/// What must hold of every image (invariants S15 and M2 with ELR off).
fn check_image(image: &MetadataImage) {
    for partition in image.partitions() {
        let state = &partition.state;
        assert!(!state.isr.is_empty() && state.elr.is_empty(), "{state:?}");
        assert!(state.isr.iter().all(|member| state.replicas.contains(member)), "{state:?}");
        assert!(state.leader.is_none_or(|leader| state.isr.contains(&leader)), "{state:?}");
        assert!(state.leader.is_none_or(|leader| image.is_active(leader)), "{state:?}");
        let retained = state.isr.len() == 1 && state.leader.is_none();
        assert!(retained || state.isr.iter().all(|member| image.is_active(*member)), "{state:?}");
    }
}

/// What must hold between one image and a later one (M1, S13).
fn check_step(before: &MetadataImage, after: &MetadataImage) {
    for partition in before.partitions() {
        let old = &partition.state;
        let new = &after.partition(old.partition).expect("no topic is removed").state;
        assert!(new.leader_epoch >= old.leader_epoch, "{old:?} {new:?}");
        assert!(old.leader == new.leader || new.leader_epoch > old.leader_epoch, "{old:?} {new:?}");
        assert!(old == new || new.partition_epoch > old.partition_epoch, "{old:?} {new:?}");
    }
    for broker in before.brokers() {
        let new = after.broker(broker.id).expect("no broker is unregistered");
        assert!(new.epoch >= broker.epoch);
        assert_eq!(new.epoch == broker.epoch, new.incarnation == broker.incarnation);
    }
}

/// S22: nobody out of sync leads unless that is allowed and no in-sync replica could.
fn check_elections(seen: &[Observation]) {
    let mut before: BTreeMap<TopicPartition, PartitionState> = BTreeMap::new();
    for observation in seen {
        let Observation::PartitionDecided { state, election, acceptable, unclean_allowed, .. } = observation
        else {
            continue;
        };
        let old = before.insert(state.partition, state.clone());
        let Some(old) = old else {
            assert_eq!(*election, Some(Election::Created));
            continue;
        };
        let in_sync_acceptable = old.isr.iter().any(|member| acceptable.contains(member));
        match election {
            None => assert_eq!(state.leader, old.leader),
            Some(Election::Unclean { asked_by_administrator }) => {
                assert!(*unclean_allowed || *asked_by_administrator, "{old:?} {state:?}");
                assert!(!in_sync_acceptable, "{old:?} {state:?}");
                assert!(state.recovering && state.isr.len() == 1, "{state:?}");
            }
            Some(Election::Leaderless) => {
                assert_eq!(state.leader, None);
                assert!(!in_sync_acceptable, "{old:?} {state:?}");
            }
            Some(Election::Clean | Election::Preferred) => {
                let leader = state.leader.expect("an election that found somebody");
                assert!(old.isr.contains(&leader) && acceptable.contains(&leader), "{old:?} {state:?}");
            }
            Some(other) => panic!("{other:?} with ELR off"),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn random_walks_keep_the_invariants(steps in prop::collection::vec(step(), 1..80)) {
        let mut cluster = Cluster::with(false, 4, &[]);
        for (name, replicas, unclean) in TOPICS {
            let configs = vec![setting("unclean.leader.election.enable", Some(unclean))];
            cluster.create_topics(vec![CreatableTopic { configs, ..manual(name, &[replicas]) }]);
        }
        for step in &steps {
            let before = cluster.controller.image().clone();
            walk(&mut cluster, step);
            check_image(cluster.controller.image());
            check_step(&before, cluster.controller.image());
        }
        check_elections(&cluster.observations);
        let mut replayed = MetadataImage::default();
        for (offset, record) in &cluster.log {
            let encoded = record.encode().expect("records encode");
            prop_assert_eq!(&MetadataRecord::decode(&encoded).expect("records decode"), record);
            replayed.replay(*offset, record).expect("the log holds together");
        }
        let mut image = cluster.controller.image().clone();
        let _ = (image.take_changes(), replayed.take_changes());
        prop_assert_eq!(replayed, image);
    }
}
