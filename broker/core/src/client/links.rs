//! Which brokers a client is connected to and what it waits for from each. Decides when to connect, whom to ask when
//! any broker will do, and when to give a connection up. Does not know what the requests mean.
//!
//! A link is `Idle` (may connect after its backoff), `Connecting` or `Up`.
//! - `Idle → Connecting`: someone needs the broker. `Connecting → Up`: connected, versions known.
//! - `Connecting → Idle`: refused, or `socket.connection.setup.timeout.ms` passed (handshake included).
//! - `Up → Idle`: closed by the peer, an answer out of order, or `request.timeout.ms` passed for its oldest request.
//!   Every request without an answer is lost: it may have taken effect.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use acked_wire::{RequestBody, ResponseBody};
use rand_chacha::ChaCha8Rng;

use super::{Address, Backoff, ClusterView};
use crate::{NodeId, Time};

/// One attempt to connect and the connection that came of it; never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(pub u64);

/// What the links ask of the shell, in order.
#[derive(Debug)]
pub enum NetworkEffect {
    /// Connect and learn the broker's versions, then say `Connected`; or say `Disconnected`.
    Connect { connection: ConnectionId, host: Arc<str>, port: u16 },
    /// Drop the connection, or the attempt. Nothing more may be said of it.
    Disconnect { connection: ConnectionId },
    /// Write one request. Unless `answered`, say `Written` once all of it was handed over.
    Send { connection: ConnectionId, correlation: i32, body: RequestBody, answered: bool },
}

/// What the shell says about the network. What it says of connections that were dropped is ignored.
#[derive(Debug)]
pub enum NetworkInput {
    Connected {
        connection: ConnectionId,
    },
    Disconnected {
        connection: ConnectionId,
    },
    Answer {
        connection: ConnectionId,
        correlation: i32,
        body: ResponseBody,
    },
    /// A request that gets no answer was handed over.
    Written {
        connection: ConnectionId,
        correlation: i32,
    },
    /// The request cannot be said in any version that the broker knows; nothing was sent.
    Unsupported {
        connection: ConnectionId,
        correlation: i32,
    },
}

/// A broker that this client may connect to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Peer {
    /// The n-th of `bootstrap.servers`.
    Bootstrap(usize),
    Node(NodeId),
}

/// What one input means for the machine; `T` is what it wanted from the request.
#[derive(Debug)]
pub enum LinkEvent<T> {
    /// Nothing: it is about a connection of the past.
    Stale,
    Up(Peer),
    /// The link went down; nobody knows what became of these requests, oldest first.
    Down {
        peer: Peer,
        lost: Vec<T>,
    },
    Answer {
        peer: Peer,
        what: T,
        body: ResponseBody,
    },
    Written {
        what: T,
    },
    Unsupported {
        peer: Peer,
        what: T,
    },
}

/// The pace of connections.
#[derive(Clone, Copy, Debug)]
pub struct LinkSettings {
    pub request_timeout: Duration,
    pub setup_timeout: Duration,
    pub reconnect: Backoff,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Idle { not_before: Time },
    Connecting { connection: ConnectionId, deadline: Time },
    Up { connection: ConnectionId },
}

#[derive(Debug)]
struct Sent<T> {
    correlation: i32,
    answered: bool,
    deadline: Time,
    what: T,
}

#[derive(Debug)]
struct Link<T> {
    state: State,
    address: Address,
    failures: u32,
    last_try: Time,
    in_flight: VecDeque<Sent<T>>,
}

/// Every link of one client.
#[derive(Debug)]
pub struct Links<T> {
    settings: LinkSettings,
    bootstrap: Vec<Address>,
    links: BTreeMap<Peer, Link<T>>,
    /// Whom the machine tries to reach when any broker will do.
    asking: Option<Peer>,
    next_connection: u64,
    next_correlation: i32,
}

impl<T> Links<T> {
    /// # Panics
    /// When `bootstrap` is empty: a client that knows nobody can do nothing.
    pub fn new(settings: LinkSettings, bootstrap: Vec<(String, u16)>) -> Links<T> {
        assert!(!bootstrap.is_empty(), "bootstrap.servers names at least one broker");
        let bootstrap =
            bootstrap.into_iter().map(|(host, port)| Address { host: host.into(), port }).collect();
        Links {
            settings,
            bootstrap,
            links: BTreeMap::new(),
            asking: None,
            next_connection: 0,
            next_correlation: 0,
        }
    }

    /// Requests without an answer on this link.
    pub fn in_flight(&self, peer: Peer) -> usize {
        self.links.get(&peer).map_or(0, |link| link.in_flight.len())
    }

    pub fn is_up(&self, peer: Peer) -> bool {
        self.links.get(&peer).is_some_and(|link| matches!(link.state, State::Up { .. }))
    }

    /// True when the link is up; otherwise starts to connect unless that is under way or backing off.
    pub fn ensure(
        &mut self,
        now: Time,
        peer: Peer,
        view: &ClusterView,
        out: &mut Vec<NetworkEffect>,
    ) -> bool {
        let Some(address) = self.address(peer, view) else { return false };
        let link = self.links.entry(peer).or_insert_with(|| Link {
            state: State::Idle { not_before: now },
            address: address.clone(),
            failures: 0,
            last_try: Time::ZERO,
            in_flight: VecDeque::new(),
        });
        match link.state {
            State::Up { .. } => true,
            State::Connecting { .. } => false,
            State::Idle { not_before } if not_before > now => false,
            State::Idle { .. } => {
                let connection = ConnectionId(self.next_connection);
                self.next_connection += 1;
                link.last_try = now;
                let deadline = now.saturating_add(self.settings.setup_timeout);
                link.state = State::Connecting { connection, deadline };
                out.push(NetworkEffect::Connect {
                    connection,
                    host: address.host.clone(),
                    port: address.port,
                });
                link.address = address;
                false
            }
        }
    }

    /// A link that is up, for a request that any broker can answer; otherwise starts to connect to the one that was
    /// tried longest ago: the known brokers first, then the bootstrap list. One that hangs holds nobody up but
    /// itself: another is tried while a leader's connection is being made.
    pub fn any(&mut self, now: Time, view: &ClusterView, out: &mut Vec<NetworkEffect>) -> Option<Peer> {
        let up = self.links.iter().filter(|(_, link)| matches!(link.state, State::Up { .. }));
        if let Some((peer, _)) = up.min_by_key(|(peer, link)| (link.in_flight.len(), **peer)) {
            self.asking = None;
            return Some(*peer);
        }
        if let Some(peer) = self.asking
            && self.links.get(&peer).is_some_and(|link| matches!(link.state, State::Connecting { .. }))
        {
            return None;
        }
        let nodes = view.brokers().keys().map(|node| Peer::Node(*node));
        let candidates = nodes.chain((0..self.bootstrap.len()).map(Peer::Bootstrap));
        let free = candidates.filter_map(|peer| match self.links.get(&peer) {
            None => Some((None, is_bootstrap(peer), peer)),
            Some(link) => match link.state {
                State::Idle { not_before } if not_before <= now => {
                    Some((Some(link.last_try), is_bootstrap(peer), peer))
                }
                _ => None,
            },
        });
        let peer = free.min().map(|(_, _, peer)| peer)?;
        self.asking = Some(peer);
        self.ensure(now, peer, view, out);
        None
    }

    /// Sends on a link that is up.
    pub fn send(
        &mut self,
        now: Time,
        peer: Peer,
        body: RequestBody,
        answered: bool,
        what: T,
        out: &mut Vec<NetworkEffect>,
    ) {
        let link = self.links.get_mut(&peer).expect("requests go to links that are up");
        let State::Up { connection } = link.state else { panic!("link {peer:?} is not up") };
        let correlation = self.next_correlation;
        self.next_correlation = self.next_correlation.wrapping_add(1) & i32::MAX;
        let deadline = now.saturating_add(self.settings.request_timeout);
        link.in_flight.push_back(Sent { correlation, answered, deadline, what });
        out.push(NetworkEffect::Send { connection, correlation, body, answered });
    }

    /// What an input of the shell means. `out` gets a `Disconnect` when the peer broke the protocol.
    pub fn handle(
        &mut self,
        now: Time,
        input: NetworkInput,
        rng: &mut ChaCha8Rng,
        out: &mut Vec<NetworkEffect>,
    ) -> LinkEvent<T> {
        match input {
            NetworkInput::Connected { connection } => self.connected(connection),
            NetworkInput::Disconnected { connection } => match self.peer_of(connection) {
                Some(peer) => self.down(now, peer, rng),
                None => LinkEvent::Stale,
            },
            NetworkInput::Answer { connection, correlation, body } => {
                match self.take(connection, correlation, true) {
                    Taken::Request(peer, what) => LinkEvent::Answer { peer, what, body },
                    Taken::Nothing => LinkEvent::Stale,
                    Taken::OutOfOrder(peer) => self.give_up(now, peer, rng, out),
                }
            }
            NetworkInput::Written { connection, correlation } => {
                match self.take(connection, correlation, false) {
                    Taken::Request(_, what) => LinkEvent::Written { what },
                    Taken::Nothing => LinkEvent::Stale,
                    Taken::OutOfOrder(peer) => self.give_up(now, peer, rng, out),
                }
            }
            NetworkInput::Unsupported { connection, correlation } => {
                let Some(peer) = self.peer_of(connection) else { return LinkEvent::Stale };
                let link = self.links.get_mut(&peer).expect("the peer was just found");
                match link.in_flight.iter().position(|sent| sent.correlation == correlation) {
                    Some(index) => {
                        let sent = link.in_flight.remove(index).expect("the index was just found");
                        LinkEvent::Unsupported { peer, what: sent.what }
                    }
                    None => LinkEvent::Stale,
                }
            }
        }
    }

    /// Gives up one link whose time is over and says what was lost; call until `None`.
    pub fn expire(
        &mut self,
        now: Time,
        rng: &mut ChaCha8Rng,
        out: &mut Vec<NetworkEffect>,
    ) -> Option<LinkEvent<T>> {
        let peer = self.links.iter().find(|(_, link)| deadline(link).is_some_and(|at| at <= now));
        let peer = *peer?.0;
        Some(self.give_up(now, peer, rng, out))
    }

    /// The first request or connection timeout. Backoffs are the machine's to ask for: [`Links::retry_at`].
    pub fn next_deadline(&self) -> Option<Time> {
        self.links.values().filter_map(deadline).min()
    }

    /// When a link that is backing off may connect again; `None` when it is not backing off.
    pub fn retry_at(&self, peer: Peer) -> Option<Time> {
        match self.links.get(&peer)?.state {
            State::Idle { not_before } => Some(not_before),
            _ => None,
        }
    }

    /// When any broker could be asked again, while none is up or being connected to for that.
    pub fn any_retry_at(&self) -> Option<Time> {
        self.links.keys().filter_map(|peer| self.retry_at(*peer)).min()
    }

    /// Once the brokers are known, bootstrap links that wait for nothing are closed.
    pub fn drop_bootstrap(&mut self, out: &mut Vec<NetworkEffect>) {
        for index in 0..self.bootstrap.len() {
            let peer = Peer::Bootstrap(index);
            if self.is_up(peer) && self.in_flight(peer) == 0 {
                self.disconnect(peer, out);
                self.links.remove(&peer);
            }
        }
    }

    fn address(&self, peer: Peer, view: &ClusterView) -> Option<Address> {
        match peer {
            Peer::Bootstrap(index) => self.bootstrap.get(index).cloned(),
            Peer::Node(node) => view.address(node).cloned(),
        }
    }

    fn peer_of(&self, wanted: ConnectionId) -> Option<Peer> {
        self.links.iter().find_map(|(peer, link)| match link.state {
            State::Connecting { connection, .. } | State::Up { connection } if connection == wanted => {
                Some(*peer)
            }
            _ => None,
        })
    }

    fn connected(&mut self, connection: ConnectionId) -> LinkEvent<T> {
        let Some(peer) = self.peer_of(connection) else { return LinkEvent::Stale };
        let link = self.links.get_mut(&peer).expect("the peer was just found");
        assert!(link.in_flight.is_empty(), "nothing is sent before the link is up");
        link.state = State::Up { connection };
        link.failures = 0;
        LinkEvent::Up(peer)
    }

    /// The request that an answer is for. Brokers answer in order.
    fn take(&mut self, connection: ConnectionId, correlation: i32, answered: bool) -> Taken<T> {
        let Some(peer) = self.peer_of(connection) else { return Taken::Nothing };
        let link = self.links.get_mut(&peer).expect("the peer was just found");
        match link.in_flight.front() {
            Some(oldest) if oldest.correlation == correlation && oldest.answered == answered => {
                let sent = link.in_flight.pop_front().expect("the oldest was just seen");
                Taken::Request(peer, sent.what)
            }
            _ => Taken::OutOfOrder(peer),
        }
    }

    fn give_up(
        &mut self,
        now: Time,
        peer: Peer,
        rng: &mut ChaCha8Rng,
        out: &mut Vec<NetworkEffect>,
    ) -> LinkEvent<T> {
        self.disconnect(peer, out);
        self.down(now, peer, rng)
    }

    fn disconnect(&mut self, peer: Peer, out: &mut Vec<NetworkEffect>) {
        let link = self.links.get(&peer).expect("only known links are given up");
        match link.state {
            State::Connecting { connection, .. } | State::Up { connection } => {
                out.push(NetworkEffect::Disconnect { connection });
            }
            State::Idle { .. } => panic!("link {peer:?} is not connected"),
        }
    }

    fn down(&mut self, now: Time, peer: Peer, rng: &mut ChaCha8Rng) -> LinkEvent<T> {
        let link = self.links.get_mut(&peer).expect("only known links go down");
        link.failures = link.failures.saturating_add(1);
        let not_before = now.saturating_add(self.settings.reconnect.delay(link.failures, rng));
        link.state = State::Idle { not_before };
        let lost = std::mem::take(&mut link.in_flight).into_iter().map(|sent| sent.what).collect();
        LinkEvent::Down { peer, lost }
    }
}

/// What was found for an answer.
enum Taken<T> {
    Request(Peer, T),
    /// The connection is one of the past.
    Nothing,
    /// The peer broke the protocol.
    OutOfOrder(Peer),
}

fn is_bootstrap(peer: Peer) -> bool {
    matches!(peer, Peer::Bootstrap(_))
}

fn deadline<T>(link: &Link<T>) -> Option<Time> {
    match link.state {
        State::Idle { .. } => None,
        State::Connecting { deadline, .. } => Some(deadline),
        State::Up { .. } => link.in_flight.front().map(|oldest| oldest.deadline),
    }
}

#[cfg(test)]
mod tests {
    use acked_wire::api::metadata::{MetadataRequest, MetadataResponse};
    use rand::SeedableRng;

    use super::*;

    const MS: Duration = Duration::from_millis(1);

    struct Bench {
        links: Links<u32>,
        rng: ChaCha8Rng,
        out: Vec<NetworkEffect>,
        view: ClusterView,
    }

    fn bench(brokers: i32) -> Bench {
        let settings = LinkSettings {
            request_timeout: 100 * MS,
            setup_timeout: 50 * MS,
            reconnect: Backoff { first: 10 * MS, max: 100 * MS },
        };
        let mut view = ClusterView::default();
        if brokers > 0 {
            assert!(view.update(&super::super::cluster::tests::answer(brokers, &[])));
        }
        Bench {
            links: Links::new(settings, vec![("x".to_string(), 1), ("y".to_string(), 2)]),
            rng: ChaCha8Rng::seed_from_u64(1),
            out: Vec::new(),
            view,
        }
    }

    impl Bench {
        fn any(&mut self, now: Time) -> Option<Peer> {
            self.links.any(now, &self.view, &mut self.out)
        }

        fn handle(&mut self, now: Time, input: NetworkInput) -> LinkEvent<u32> {
            self.links.handle(now, input, &mut self.rng, &mut self.out)
        }

        fn up(&mut self, peer: Peer) -> ConnectionId {
            assert!(!self.links.ensure(Time::ZERO, peer, &self.view, &mut self.out));
            let Some(NetworkEffect::Connect { connection, .. }) = self.out.pop() else { panic!("connects") };
            let event = self.handle(Time::ZERO, NetworkInput::Connected { connection });
            assert!(matches!(event, LinkEvent::Up(up) if up == peer));
            connection
        }

        fn send(&mut self, peer: Peer, what: u32) -> i32 {
            let body = RequestBody::Metadata(MetadataRequest::default());
            self.links.send(Time::ZERO, peer, body, true, what, &mut self.out);
            let Some(NetworkEffect::Send { correlation, .. }) = self.out.pop() else { panic!("sends") };
            correlation
        }
    }

    fn hosts(out: &[NetworkEffect]) -> Vec<String> {
        out.iter()
            .filter_map(|effect| match effect {
                NetworkEffect::Connect { host, .. } => Some(host.to_string()),
                _ => None,
            })
            .collect()
    }

    #[test]
    fn address_that_does_not_answer_yields_to_the_next_of_the_list() {
        let mut bench = bench(0);
        assert_eq!(bench.any(Time::ZERO), None);
        assert_eq!(bench.any(10 * MS), None);
        assert_eq!(hosts(&bench.out), ["x"], "one attempt at a time");
        assert!(bench.links.expire(49 * MS, &mut bench.rng, &mut bench.out).is_none());
        let event = bench.links.expire(50 * MS, &mut bench.rng, &mut bench.out);
        assert!(matches!(event, Some(LinkEvent::Down { peer: Peer::Bootstrap(0), .. })));
        assert_eq!(bench.any(50 * MS), None);
        assert_eq!(hosts(&bench.out), ["x", "y"]);
    }

    #[test]
    fn known_brokers_are_asked_before_the_list_and_a_link_that_is_up_before_all() {
        let mut bench = bench(2);
        assert_eq!(bench.any(Time::ZERO), None);
        assert_eq!(hosts(&bench.out), ["b1"]);
        let _ = bench.up(Peer::Bootstrap(1));
        assert_eq!(bench.any(Time::ZERO), Some(Peer::Bootstrap(1)));
    }

    #[test]
    fn timed_out_request_closes_the_connection_and_loses_all_behind_it() {
        let mut bench = bench(1);
        let peer = Peer::Node(NodeId(1));
        let connection = bench.up(peer);
        let (_, _) = (bench.send(peer, 1), bench.send(peer, 2));
        let event = bench.links.expire(100 * MS, &mut bench.rng, &mut bench.out);
        assert!(matches!(event, Some(LinkEvent::Down { lost, .. }) if lost == [1, 2]));
        assert!(
            matches!(bench.out[..], [NetworkEffect::Disconnect { connection: dropped }] if dropped == connection)
        );
        assert!(bench.links.retry_at(peer).is_some_and(|at| at >= 108 * MS));
        let late = bench.handle(100 * MS, NetworkInput::Disconnected { connection });
        assert!(matches!(late, LinkEvent::Stale));
    }

    #[test]
    fn answer_out_of_order_closes_the_connection() {
        let mut bench = bench(1);
        let peer = Peer::Node(NodeId(1));
        let connection = bench.up(peer);
        let (first, second) = (bench.send(peer, 1), bench.send(peer, 2));
        let body = || ResponseBody::Metadata(MetadataResponse::default());
        let event = bench.handle(MS, NetworkInput::Answer { connection, correlation: first, body: body() });
        assert!(matches!(event, LinkEvent::Answer { what: 1, .. }));
        let wrong = second + 1;
        let event = bench.handle(MS, NetworkInput::Answer { connection, correlation: wrong, body: body() });
        assert!(matches!(event, LinkEvent::Down { lost, .. } if lost == [2]));
    }
}
