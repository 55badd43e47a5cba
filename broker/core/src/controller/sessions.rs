//! What the active controller remembers of each broker without writing it down: when it was last heard of, how far
//! its metadata is, where its controlled shutdown began. Lost with the leadership of the quorum: a new active
//! controller gives every unfenced broker a fresh session.
//!
//! A session: absent → live (registration or heartbeat) → expired (`broker.session.timeout.ms` of silence) → absent.

use std::collections::BTreeMap;

use super::image::MetadataImage;
use crate::types::{NodeId, Time};

/// One broker incarnation as heard of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Session {
    pub broker_epoch: i64,
    pub last_contact: Time,
    /// Last metadata offset the broker said it replayed; −1 before its first heartbeat.
    pub metadata_offset: i64,
    /// Metadata offset that every other active broker must reach before this one may stop; set by the first
    /// heartbeat that asks for it.
    pub shutdown_offset: Option<i64>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Sessions {
    timeout: Time,
    by_broker: BTreeMap<NodeId, Session>,
}

impl Sessions {
    /// Fresh sessions for every unfenced broker.
    pub fn new(image: &MetadataImage, timeout: Time, now: Time) -> Sessions {
        let mut sessions = Sessions { timeout, by_broker: BTreeMap::new() };
        for broker in image.brokers().filter(|broker| !broker.fenced) {
            sessions.open(broker.id, broker.epoch, now);
        }
        sessions
    }

    /// A registration is a sign of life. The same incarnation keeps what it reported before.
    pub fn open(&mut self, broker: NodeId, broker_epoch: i64, now: Time) {
        match self.by_broker.get_mut(&broker) {
            Some(session) if session.broker_epoch == broker_epoch => session.last_contact = now,
            _ => {
                let fresh =
                    Session { broker_epoch, last_contact: now, metadata_offset: -1, shutdown_offset: None };
                self.by_broker.insert(broker, fresh);
            }
        }
    }

    /// A heartbeat of the registered incarnation.
    pub fn touch(
        &mut self,
        broker: NodeId,
        broker_epoch: i64,
        now: Time,
        metadata_offset: i64,
    ) -> &mut Session {
        self.open(broker, broker_epoch, now);
        let session = self.by_broker.get_mut(&broker).expect("opened just now");
        session.metadata_offset = metadata_offset;
        session
    }

    pub fn get(&self, broker: NodeId) -> Option<&Session> {
        self.by_broker.get(&broker)
    }

    pub fn close(&mut self, broker: NodeId) {
        self.by_broker.remove(&broker);
    }

    /// Whether the incarnation of that epoch was heard of within the timeout.
    pub fn is_live(&self, broker: NodeId, broker_epoch: i64, now: Time) -> bool {
        let session = self.by_broker.get(&broker);
        session.is_some_and(|session| session.broker_epoch == broker_epoch && now < self.expiry(session))
    }

    /// When the session of `broker` ends if nothing more is heard.
    pub fn expiry_of(&self, broker: NodeId) -> Option<Time> {
        self.by_broker.get(&broker).map(|session| self.expiry(session))
    }

    fn expiry(&self, session: &Session) -> Time {
        session.last_contact.saturating_add(self.timeout)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn session_lives_for_its_timeout_after_the_last_sign_of_life() {
        let timeout = Time::from_secs(9);
        let mut sessions = Sessions { timeout, by_broker: BTreeMap::new() };
        sessions.open(NodeId(1), 5, Time::from_secs(10));
        sessions.touch(NodeId(1), 5, Time::from_secs(12), 40);
        assert!(sessions.is_live(NodeId(1), 5, Time::from_secs(20)));
        assert!(!sessions.is_live(NodeId(1), 5, Time::from_secs(21)));
        assert!(!sessions.is_live(NodeId(1), 6, Time::from_secs(20)), "another incarnation has no session");
    }

    #[test]
    fn new_incarnation_forgets_what_the_old_one_reported() {
        let mut sessions = Sessions { timeout: Time::from_secs(9), by_broker: BTreeMap::new() };
        sessions.touch(NodeId(1), 5, Time::ZERO, 40).shutdown_offset = Some(41);
        sessions.open(NodeId(1), 7, Time::ZERO);
        let session = sessions.get(NodeId(1)).expect("open");
        assert_eq!((session.metadata_offset, session.shutdown_offset), (-1, None));
    }
}
