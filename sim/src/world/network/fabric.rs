//! The whole network: what a call of a node, an event of the schedule or a fault does to it.
//!
//! What real TCP does and this must too:
//! 1. Data, FIN and RST written under a split arrive after the heal, at the next retransmission (0.2 s, doubling).
//! 2. A connection attempt under a split, or to a machine without power, hangs: the attempt is repeated after 1, 2,
//!    4 … s until the caller gives up. A machine that is up refuses at once where nobody listens.
//! 3. A killed process's kernel closes its connections: FIN, or RST when something arrived that was never read.
//! 4. A machine that loses power tells nobody. Its peers' data stays unacknowledged until they give up, or until the
//!    machine is up again and answers with RST.
//! 5. A writer waits when the receiver's window is full; room is reported with a latency of its own.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::task::{Poll, Waker};

use super::connection::{Connection, Direction, End, EndState, Item};
use super::filter::{Catch, Conversation, Filter};
use super::latency::Latency;
use super::link::{Link, next_retransmission};
use crate::world::host::Host;
use crate::world::schedule::{Event, Schedule};
use crate::world::streams;
use crate::world::tap::{ConnectionId, NetworkTap};
use crate::world::trace::{Happening, Trace, Travelling};

const SECOND_NS: u64 = 1_000_000_000;
const FIRST_EPHEMERAL_PORT: u16 = 32_768;

/// Bounds of the network that hold for every link.
#[derive(Clone, Debug)]
pub struct NetworkSettings {
    /// Between different machines, where nothing else is set.
    pub latency: Latency,
    /// Within one machine.
    pub loopback: Latency,
    /// Bytes of one direction of a connection that are written but not yet read.
    pub window: usize,
    /// Connections that wait to be accepted; further attempts are dropped and repeated.
    pub backlog: usize,
    /// Writes in a million that arrive in two pieces.
    pub breaks_per_million: u32,
    /// An end gives up on unacknowledged data after this much, drawn per connection direction between the bounds.
    pub give_up_ns: (u64, u64),
    /// The longest pause between two retransmissions.
    pub retransmit_longest_ns: u64,
    /// A connection attempt fails for good after this much.
    pub connect_limit_ns: u64,
    /// Filters may ask what travels: it is followed on every connection.
    pub follow_frames: bool,
}

impl Default for NetworkSettings {
    fn default() -> NetworkSettings {
        NetworkSettings {
            latency: Latency::SAME_ZONE,
            loopback: Latency::LOOPBACK,
            window: 256 * 1024,
            backlog: 128,
            breaks_per_million: 20_000,
            give_up_ns: (15 * SECOND_NS, 30 * SECOND_NS),
            retransmit_longest_ns: 6_400_000_000,
            connect_limit_ns: 127 * SECOND_NS,
            follow_frames: false,
        }
    }
}

/// What the network did to its users: the effects of faults are counted here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NetworkCounters {
    /// Items delivered.
    pub delivered: u64,
    /// Times that the first item of a direction found its way blocked.
    pub stuck: u64,
    /// Connection attempts (and answers) that were dropped.
    pub attempts_dropped: u64,
    pub refused: u64,
    /// Resets that reached an end.
    pub resets: u64,
    /// Ends that gave up.
    pub gave_up: u64,
}

/// One set of blocked links, or one filter, until it is lifted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BlockId(u64);

/// What the network needs of the rest of the world during one call.
pub(in crate::world) struct Surroundings<'a> {
    pub now: u64,
    pub schedule: &'a mut Schedule,
    pub trace: &'a mut Trace,
    /// Woken by the caller when it has let go of the world.
    pub wakes: &'a mut Vec<Waker>,
}

pub(in crate::world) struct Network {
    seed: u64,
    settings: NetworkSettings,
    machines: Vec<Machine>,
    links: Vec<Link>,
    link_index: BTreeMap<(Host, Host), usize>,
    connections: Vec<Connection>,
    free: Vec<u32>,
    listeners: BTreeMap<(Host, u16), Listening>,
    next_listener: u64,
    blocks: BTreeMap<BlockId, Block>,
    next_block: u64,
    /// How often each block, lifted ones too, held up, lost or broke something.
    effects: BTreeMap<BlockId, u64>,
    counters: NetworkCounters,
    pub tap: Option<Arc<dyn NetworkTap>>,
}

enum Block {
    Links(Vec<(Host, Host)>),
    Filter(Filter),
}

struct Machine {
    name: String,
    address: IpAddr,
    /// Has power: its kernel answers.
    up: bool,
    next_port: u16,
}

struct Listening {
    token: u64,
    waiting: VecDeque<u32>,
    waker: Option<Waker>,
}

impl Network {
    pub(in crate::world) fn new(seed: u64, settings: NetworkSettings) -> Network {
        Network {
            seed,
            settings,
            machines: Vec::new(),
            links: Vec::new(),
            link_index: BTreeMap::new(),
            connections: Vec::new(),
            free: Vec::new(),
            listeners: BTreeMap::new(),
            next_listener: 0,
            blocks: BTreeMap::new(),
            next_block: 0,
            effects: BTreeMap::new(),
            counters: NetworkCounters::default(),
            tap: None,
        }
    }

    pub(in crate::world) fn add_machine(&mut self, name: &str, address: IpAddr) {
        let next_port = FIRST_EPHEMERAL_PORT;
        self.machines.push(Machine { name: name.to_owned(), address, up: true, next_port });
    }

    pub(in crate::world) fn counters(&self) -> NetworkCounters {
        self.counters
    }

    /// Connections whose state is still kept.
    pub(in crate::world) fn open_connections(&self) -> usize {
        self.connections.len() - self.free.len()
    }

    pub(in crate::world) fn address(&self, host: Host) -> IpAddr {
        self.machine(host).address
    }

    /// Finds a machine by name or address.
    pub(in crate::world) fn resolve(&self, name: &str) -> Option<Host> {
        let address = name.parse::<IpAddr>().ok();
        let matches = |machine: &Machine| machine.name == name || Some(machine.address) == address;
        self.machines.iter().position(matches).map(|index| Host(index as u16))
    }

    pub(in crate::world) fn listen(&mut self, host: Host, address: SocketAddr) -> io::Result<(u16, u64)> {
        let own = self.machine(host).address;
        if !address.ip().is_unspecified() && address.ip() != own {
            return Err(io::ErrorKind::AddrNotAvailable.into());
        }
        let port = if address.port() == 0 { self.free_port(host) } else { address.port() };
        if self.listeners.contains_key(&(host, port)) {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        self.next_listener += 1;
        let token = self.next_listener;
        self.listeners.insert((host, port), Listening { token, waiting: VecDeque::new(), waker: None });
        Ok((port, token))
    }

    /// The next established connection, whose end 1 the caller then holds.
    pub(in crate::world) fn accept(
        &mut self,
        host: Host,
        (port, token): (u16, u64),
        waker: &Waker,
    ) -> Poll<io::Result<(u32, SocketAddr)>> {
        let Some(listening) = self.listeners.get_mut(&(host, port)).filter(|known| known.token == token)
        else {
            return Poll::Ready(Err(io::ErrorKind::NotConnected.into()));
        };
        let Some(connection) = listening.waiting.pop_front() else {
            remember(&mut listening.waker, waker);
            return Poll::Pending;
        };
        Poll::Ready(Ok((connection, self.peer_address(connection, 1))))
    }

    pub(in crate::world) fn stop_listening(
        &mut self,
        host: Host,
        (port, token): (u16, u64),
        around: &mut Surroundings<'_>,
    ) {
        if self.listeners.get(&(host, port)).is_none_or(|known| known.token != token) {
            return;
        }
        let listening = self.listeners.remove(&(host, port)).expect("the listener was just seen");
        self.refuse_waiting(listening, around);
    }

    /// Starts a connection, whose end 0 the caller then holds.
    pub(in crate::world) fn connect(
        &mut self,
        from: Host,
        to: Host,
        port: u16,
        around: &mut Surroundings<'_>,
    ) -> u32 {
        let own_port = self.free_port(from);
        let (out, back) = (self.link(from, to), self.link(to, from));
        let window = self.settings.window;
        let end = |host, port| End {
            host,
            port,
            state: EndState::Opening,
            error: None,
            held: false,
            reset_sent: false,
        };
        let mut fresh = Connection {
            generation: 0,
            ends: [end(from, own_port), end(to, port)],
            directions: [Direction::new(out, window), Direction::new(back, window)],
            attempts: 0,
            started_at: around.now,
            conversation: self.settings.follow_frames.then(Box::<Conversation>::default),
            free: false,
        };
        fresh.ends[0].held = true;
        let index = match self.free.pop() {
            Some(index) => {
                let slot = &mut self.connections[index as usize];
                fresh.generation = slot.generation;
                *slot = fresh;
                index
            }
            None => {
                self.connections.push(fresh);
                u32::try_from(self.connections.len() - 1).expect("fewer than four billion connections")
            }
        };
        let latency = self.links[out].latency();
        self.push_syn(index, around.now + latency, around);
        index
    }

    /// Ready once the attempt of [`Network::connect`] has succeeded or failed.
    pub(in crate::world) fn poll_connected(
        &mut self,
        connection: u32,
        waker: &Waker,
    ) -> Poll<io::Result<(SocketAddr, SocketAddr)>> {
        let state = &mut self.connections[connection as usize];
        if let Some(error) = state.ends[0].error {
            return Poll::Ready(Err(error.into()));
        }
        match state.ends[0].state {
            EndState::Opening => {
                remember(&mut state.directions[0].writer, waker);
                Poll::Pending
            }
            EndState::Open => {
                Poll::Ready(Ok((self.peer_address(connection, 1), self.peer_address(connection, 0))))
            }
            EndState::Closed | EndState::Gone => Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into())),
        }
    }

    pub(in crate::world) fn read(
        &mut self,
        connection: u32,
        end: usize,
        buffer: &mut [u8],
        waker: &Waker,
        around: &mut Surroundings<'_>,
    ) -> Poll<io::Result<usize>> {
        let threshold = (self.settings.window / 4).max(1);
        let state = &mut self.connections[connection as usize];
        let incoming = &mut state.directions[1 - end];
        if incoming.readable > 0 {
            let size = incoming.readable.min(buffer.len());
            copy_out(&mut incoming.buffer, &mut buffer[..size]);
            incoming.readable -= size;
            incoming.unreported += size;
            if incoming.unreported >= threshold && state.ends[end].state == EndState::Open {
                let amount = std::mem::take(&mut incoming.unreported);
                self.send_item(connection, end, Travelling::Window, amount, around);
            }
            return Poll::Ready(Ok(size));
        }
        if let Some(error) = state.ends[end].error {
            return Poll::Ready(Err(error.into()));
        }
        if incoming.fin_arrived {
            return Poll::Ready(Ok(0));
        }
        if state.ends[end].state != EndState::Open {
            return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
        }
        remember(&mut incoming.reader, waker);
        Poll::Pending
    }

    pub(in crate::world) fn write(
        &mut self,
        connection: u32,
        end: usize,
        bytes: &[u8],
        waker: &Waker,
        around: &mut Surroundings<'_>,
    ) -> Poll<io::Result<usize>> {
        let state = &mut self.connections[connection as usize];
        if let Some(error) = state.ends[end].error {
            return Poll::Ready(Err(error.into()));
        }
        let outgoing = &mut state.directions[end];
        if state.ends[end].state != EndState::Open || outgoing.fin_sent {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        if bytes.is_empty() {
            return Poll::Ready(Ok(0));
        }
        let size = bytes.len().min(outgoing.credit);
        if size == 0 {
            remember(&mut outgoing.writer, waker);
            return Poll::Pending;
        }
        outgoing.credit -= size;
        let bytes = &bytes[..size];
        outgoing.buffer.extend(bytes);
        let id = ConnectionId { slot: connection, generation: state.generation };
        let (from, to) = (state.ends[end].host, state.ends[1 - end].host);
        let checksum = crc32c::crc32c(bytes);
        around.trace.record(around.now, Happening::Sent { from, to, connection, size, checksum });
        if let Some(tap) = &self.tap {
            tap.written(id, end == 0, bytes);
        }
        self.send_item(connection, end, Travelling::Data, size, around);
        Poll::Ready(Ok(size))
    }

    /// Sends FIN after everything written so far.
    pub(in crate::world) fn shutdown(
        &mut self,
        connection: u32,
        end: usize,
        around: &mut Surroundings<'_>,
    ) -> io::Result<()> {
        let state = &mut self.connections[connection as usize];
        if let Some(error) = state.ends[end].error {
            return Err(error.into());
        }
        if state.ends[end].state != EndState::Open {
            return Err(io::ErrorKind::NotConnected.into());
        }
        if !state.directions[end].fin_sent {
            state.directions[end].fin_sent = true;
            self.send_item(connection, end, Travelling::Fin, 0, around);
        }
        Ok(())
    }

    /// The holder of an end let go of it.
    pub(in crate::world) fn release(&mut self, connection: u32, end: usize, around: &mut Surroundings<'_>) {
        self.connections[connection as usize].ends[end].held = false;
        self.close_end(connection, end, around);
        self.free_if_over(connection);
    }

    /// The machine has power from now on: what waits for it is sent again.
    pub(in crate::world) fn power_on(&mut self, host: Host, around: &mut Surroundings<'_>) {
        if !std::mem::replace(&mut self.machines[usize::from(host.0)].up, true) {
            self.resume(|link| link.to == host, around);
        }
    }

    /// The process ended; the kernel closes everything it held.
    pub(in crate::world) fn process_ended(&mut self, host: Host, around: &mut Surroundings<'_>) {
        for listening in self.take_listeners(host) {
            self.refuse_waiting(listening, around);
        }
        self.for_each_end(host, |network, connection, end| {
            network.close_end(connection, end, around);
            network.free_if_over(connection);
        });
    }

    /// The machine lost power: its ends vanish and nobody is told.
    pub(in crate::world) fn power_lost(&mut self, host: Host, around: &mut Surroundings<'_>) {
        self.machines[usize::from(host.0)].up = false;
        for listening in self.take_listeners(host) {
            for connection in listening.waiting {
                self.connections[connection as usize].ends[1].held = false;
            }
        }
        self.for_each_end(host, |network, connection, end| {
            let state = &mut network.connections[connection as usize];
            state.ends[end].state = EndState::Gone;
            state.directions[end].drop_unsent(around.now);
            state.directions[1 - end].drop_readable();
            network.free_if_over(connection);
        });
    }

    pub(in crate::world) fn block(
        &mut self,
        from: &[Host],
        to: &[Host],
        around: &mut Surroundings<'_>,
    ) -> BlockId {
        let pairs: Vec<(Host, Host)> = from
            .iter()
            .flat_map(|from| to.iter().map(move |to| (*from, *to)))
            .filter(|(from, to)| from != to)
            .collect();
        for (from, to) in &pairs {
            let link = self.link(*from, *to);
            self.links[link].blocks += 1;
            around.trace.record(around.now, Happening::Blocked { from: *from, to: *to, blocked: true });
        }
        self.keep(Block::Links(pairs))
    }

    /// Catches messages until it is lifted as a block is.
    ///
    /// # Panics
    /// When frames are not followed in this network.
    pub(in crate::world) fn filter(&mut self, filter: Filter) -> BlockId {
        assert!(self.settings.follow_frames, "a network with filters follows frames");
        self.keep(Block::Filter(filter))
    }

    fn keep(&mut self, block: Block) -> BlockId {
        self.next_block += 1;
        let id = BlockId(self.next_block);
        self.blocks.insert(id, block);
        self.effects.insert(id, 0);
        id
    }

    /// How often a block or filter held up, lost or broke something, also after it was lifted.
    pub(in crate::world) fn effects(&self, block: BlockId) -> u64 {
        self.effects.get(&block).copied().unwrap_or(0)
    }

    /// Breaks every open connection between any of `ones` and any of `others`; how many there were.
    pub(in crate::world) fn break_connections(
        &mut self,
        (ones, others): (&[Host], &[Host]),
        reset: bool,
        around: &mut Surroundings<'_>,
    ) -> u64 {
        let mut broken = 0;
        for connection in 0..self.connections.len() as u32 {
            let [asked, answers] = &self.connections[connection as usize].ends;
            let between = |one: Host, other: Host| ones.contains(&one) && others.contains(&other);
            let concerned = between(asked.host, answers.host) || between(answers.host, asked.host);
            if concerned && asked.state == EndState::Open && answers.state == EndState::Open {
                self.break_connection(connection, 1, reset, around);
                broken += 1;
            }
        }
        broken
    }

    /// Lifts a block; lifting it twice does nothing.
    pub(in crate::world) fn unblock(&mut self, block: BlockId, around: &mut Surroundings<'_>) {
        let pairs = match self.blocks.remove(&block) {
            None => return,
            Some(Block::Links(pairs)) => pairs,
            Some(Block::Filter(filter)) => {
                let concerned =
                    |link: &Link| filter.from.contains(&link.from) && filter.to.contains(&link.to);
                self.resume(concerned, around);
                return;
            }
        };
        for (from, to) in pairs {
            let index = self.link(from, to);
            let link = &mut self.links[index];
            assert!(link.blocks > 0, "a block that is lifted was in force");
            link.blocks -= 1;
            around.trace.record(around.now, Happening::Blocked { from, to, blocked: false });
            if link.blocks == 0 {
                self.resume(|link| link.from == from && link.to == to, around);
            }
        }
    }

    pub(in crate::world) fn blocks(&self) -> Vec<BlockId> {
        self.blocks.keys().copied().collect()
    }

    pub(in crate::world) fn set_link(&mut self, from: Host, to: Host, change: impl FnOnce(&mut LinkShape)) {
        let index = self.link(from, to);
        let link = &mut self.links[index];
        let mut shape = LinkShape {
            latency: link.latency,
            loss_per_million: link.loss_per_million,
            bandwidth: link.bandwidth,
        };
        change(&mut shape);
        link.latency = shape.latency;
        link.loss_per_million = shape.loss_per_million;
        link.bandwidth = shape.bandwidth;
    }

    pub(in crate::world) fn syn_arrives(
        &mut self,
        connection: u32,
        generation: u32,
        around: &mut Surroundings<'_>,
    ) {
        let state = &self.connections[connection as usize];
        if state.generation != generation || state.ends[0].state != EndState::Opening {
            return;
        }
        let (from, to, port) = (state.ends[0].host, state.ends[1].host, state.ends[1].port);
        let link = state.directions[0].link;
        if !self.passes(link) {
            self.credit_blocks(link);
            self.repeat_syn(connection, around);
            return;
        }
        let listener = self.listeners.get(&(to, port));
        if listener.is_some_and(|known| known.waiting.len() >= self.settings.backlog) {
            self.repeat_syn(connection, around);
            return;
        }
        let accepted = listener.is_some();
        around.trace.record(around.now, Happening::Connected { from, to, connection, accepted });
        let back = self.connections[connection as usize].directions[1].link;
        let at = around.now + self.links[back].latency();
        around.schedule.push(at, Event::SynAnswer { connection, generation, accepted });
    }

    pub(in crate::world) fn syn_answer_arrives(
        &mut self,
        connection: u32,
        generation: u32,
        accepted: bool,
        around: &mut Surroundings<'_>,
    ) {
        let state = &self.connections[connection as usize];
        if state.generation != generation || state.ends[0].state != EndState::Opening {
            return;
        }
        let link = state.directions[1].link;
        if !self.passes(link) {
            self.credit_blocks(link);
            self.repeat_syn(connection, around);
            return;
        }
        if !accepted {
            self.counters.refused += 1;
            self.fail_end(connection, 0, io::ErrorKind::ConnectionRefused, around);
            return;
        }
        let state = &mut self.connections[connection as usize];
        state.ends[0].state = EndState::Open;
        around.wakes.extend(state.directions[0].writer.take());
        self.send_item(connection, 0, Travelling::Open, 0, around);
    }

    /// The first items of a direction are due.
    pub(in crate::world) fn items_arrive(
        &mut self,
        connection: u32,
        direction: usize,
        generation: u32,
        around: &mut Surroundings<'_>,
    ) {
        let index = connection as usize;
        if self.connections[index].generation != generation {
            return;
        }
        self.connections[index].directions[direction].armed = false;
        loop {
            let state = &mut self.connections[index];
            let flow = &mut state.directions[direction];
            let Some(item) = flow.items.front().copied() else { break };
            if item.arrives > around.now {
                self.arm(connection, direction, around);
                break;
            }
            let link = self.connections[index].directions[direction].link;
            if !self.passes(link) {
                self.credit_blocks(link);
                self.get_stuck(connection, direction, around);
                break;
            }
            match self.caught(connection, direction, item) {
                None => {}
                Some(Catch::Hold) => {
                    self.get_stuck(connection, direction, around);
                    break;
                }
                Some(catch) => {
                    self.break_connection(connection, direction, catch == Catch::Reset, around);
                    break;
                }
            }
            self.connections[index].directions[direction].items.pop_front();
            self.acknowledge(connection, direction, around);
            self.deliver(connection, direction, item, around);
        }
        self.free_if_over(connection);
    }

    pub(in crate::world) fn give_up_due(
        &mut self,
        connection: u32,
        direction: usize,
        generation: u32,
        around: &mut Surroundings<'_>,
    ) {
        if self.connections[connection as usize].generation != generation {
            return;
        }
        let flow = &mut self.connections[connection as usize].directions[direction];
        flow.give_up_queued = false;
        let Some(since) = flow.unacknowledged_since else { return };
        let deadline = since + self.patience(connection, direction);
        if deadline > around.now {
            self.queue_give_up(connection, direction, deadline, around);
            return;
        }
        self.counters.gave_up += 1;
        let host = self.connections[connection as usize].ends[direction].host;
        around.trace.record(around.now, Happening::GaveUp { host, connection });
        self.fail_end(connection, direction, io::ErrorKind::TimedOut, around);
        self.free_if_over(connection);
    }

    fn deliver(&mut self, connection: u32, direction: usize, item: Item, around: &mut Surroundings<'_>) {
        self.counters.delivered += 1;
        let receiver = 1 - direction;
        let state = &mut self.connections[connection as usize];
        let (from, to) = (state.ends[direction].host, state.ends[receiver].host);
        let (what, size) = (item.what, item.amount);
        around.trace.record(around.now, Happening::Delivered { from, to, connection, what, size });
        let receiving = state.ends[receiver].state;
        let flow = &mut state.directions[direction];
        match (item.what, receiving) {
            (Travelling::Open, EndState::Opening) => self.establish(connection, around),
            (Travelling::Data, EndState::Open) => {
                flow.readable += item.amount as usize;
                around.wakes.extend(flow.reader.take());
            }
            (Travelling::Fin, EndState::Open) => {
                flow.fin_arrived = true;
                around.wakes.extend(flow.reader.take());
            }
            (Travelling::Fin, EndState::Closed) => flow.fin_arrived = true,
            (Travelling::Window, EndState::Open) => {
                let back = &mut state.directions[receiver];
                back.credit += item.amount as usize;
                around.wakes.extend(back.writer.take());
            }
            (Travelling::Reset, EndState::Opening | EndState::Open | EndState::Closed) => {
                self.counters.resets += 1;
                self.fail_end(connection, receiver, io::ErrorKind::ConnectionReset, around);
            }
            (Travelling::Window | Travelling::Reset, _) => {}
            (Travelling::Open | Travelling::Data | Travelling::Fin, _) => {
                if item.what == Travelling::Data {
                    assert_eq!(flow.readable, 0, "nobody reads at an end that is not open");
                    flow.buffer.drain(..item.amount as usize);
                }
                self.reset_from(connection, receiver, around);
            }
        }
    }

    /// Whether a filter catches what the next item of a direction says; what passes has been heard.
    fn caught(&mut self, connection: u32, direction: usize, item: Item) -> Option<Catch> {
        if !self.settings.follow_frames || item.what != Travelling::Data {
            return None;
        }
        let state = &mut self.connections[connection as usize];
        if state.ends[1 - direction].state != EndState::Open {
            return None;
        }
        let conversation = state.conversation.as_mut().expect("frames are followed on every connection");
        let bytes = state.directions[direction].in_flight(item.amount as usize);
        let (from, to) = (state.ends[direction].host, state.ends[1 - direction].host);
        let asked_for = self.blocks.values().any(|block| matches!(block, Block::Filter(_)));
        let messages = if asked_for { conversation.ahead(direction, bytes) } else { Vec::new() };
        for (id, block) in &self.blocks {
            let Block::Filter(filter) = block else { continue };
            let effects = self.effects.get_mut(id).expect("every block has its counter");
            if *effects < filter.times && messages.iter().any(|message| filter.matches(from, to, *message)) {
                *effects += 1;
                return Some(filter.catch);
            }
        }
        conversation.arrived(direction, bytes);
        None
    }

    /// Something was held up or lost on a link: which blocks it was due to.
    fn credit_blocks(&mut self, link: usize) {
        let (from, to) = (self.links[link].from, self.links[link].to);
        for (id, block) in &self.blocks {
            if matches!(block, Block::Links(pairs) if pairs.contains(&(from, to))) {
                *self.effects.get_mut(id).expect("every block has its counter") += 1;
            }
        }
    }

    /// Something on the way breaks a connection: both ends are reset, or half of the next item of `direction` arrives
    /// and then the end of the stream, at both ends.
    fn break_connection(
        &mut self,
        connection: u32,
        direction: usize,
        reset: bool,
        around: &mut Surroundings<'_>,
    ) {
        let state = &mut self.connections[connection as usize];
        let (from, to) = (state.ends[direction].host, state.ends[1 - direction].host);
        around.trace.record(around.now, Happening::Broken { from, to, connection, reset });
        if reset {
            self.counters.resets += 2;
            for end in 0..2 {
                self.fail_end(connection, end, io::ErrorKind::ConnectionReset, around);
            }
        } else {
            let flow = &mut state.directions[direction];
            if let Some(item) = flow.items.front().filter(|item| item.what == Travelling::Data) {
                flow.readable += item.amount as usize / 2;
            }
            for flow in &mut state.directions {
                flow.drop_in_flight();
                flow.fin_sent = true;
                flow.fin_arrived = true;
                around.wakes.extend(flow.reader.take());
                around.wakes.extend(flow.writer.take());
            }
        }
        self.free_if_over(connection);
    }

    /// The handshake's last message reached the server.
    fn establish(&mut self, connection: u32, around: &mut Surroundings<'_>) {
        let state = &mut self.connections[connection as usize];
        let key = (state.ends[1].host, state.ends[1].port);
        match self.listeners.get_mut(&key) {
            Some(listening) => {
                state.ends[1].state = EndState::Open;
                // The backlog holds it until it is accepted.
                state.ends[1].held = true;
                listening.waiting.push_back(connection);
                around.wakes.extend(listening.waker.take());
            }
            None => self.reset_from(connection, 1, around),
        }
    }

    /// Puts an item on the wire, behind everything sent before it in this direction.
    fn send_item(
        &mut self,
        connection: u32,
        direction: usize,
        what: Travelling,
        amount: usize,
        around: &mut Surroundings<'_>,
    ) {
        let now = around.now;
        let flow = &mut self.connections[connection as usize].directions[direction];
        let amount = u32::try_from(amount).expect("a window is smaller than 4 GiB");
        if what == Travelling::Data
            && let Some(last) = flow.items.back_mut()
            && last.what == Travelling::Data
            && last.written == now
        {
            last.amount += amount;
            return;
        }
        let link = &mut self.links[flow.link];
        let broken = match what {
            Travelling::Data => link.breaks(amount as usize, self.settings.breaks_per_million),
            _ => None,
        };
        let first = broken.map_or(amount, |at| at as u32);
        for part in [Some(first), broken.map(|_| amount - first)].into_iter().flatten() {
            let flight = link.send(now, part as usize);
            flow.last_arrival = flow.last_arrival.max(flight.arrives);
            let item =
                Item { written: now, leaves: flight.leaves, arrives: flow.last_arrival, amount: part, what };
            flow.items.push_back(item);
        }
        if !flow.armed && !flow.stuck {
            self.arm(connection, direction, around);
        }
    }

    fn arm(&mut self, connection: u32, direction: usize, around: &mut Surroundings<'_>) {
        let state = &mut self.connections[connection as usize];
        let generation = state.generation;
        let flow = &mut state.directions[direction];
        let Some(first) = flow.items.front() else { return };
        flow.armed = true;
        let event = Event::Arrival { connection, direction: direction as u8, generation };
        around.schedule.push(first.arrives, event);
    }

    /// The way is blocked: a living sender keeps trying, a dead one does not.
    fn get_stuck(&mut self, connection: u32, direction: usize, around: &mut Surroundings<'_>) {
        self.counters.stuck += 1;
        let state = &mut self.connections[connection as usize];
        let sender = &state.ends[direction];
        if sender.state == EndState::Gone && !sender.reset_sent {
            state.directions[direction].drop_in_flight();
            return;
        }
        state.directions[direction].stuck = true;
        self.mark_unacknowledged(connection, direction, around);
    }

    /// Something arrived: its acknowledgement comes back unless the way back is blocked.
    fn acknowledge(&mut self, connection: u32, direction: usize, around: &mut Surroundings<'_>) {
        let back = self.connections[connection as usize].directions[1 - direction].link;
        if self.passes(back) {
            self.connections[connection as usize].directions[direction].unacknowledged_since = None;
        } else {
            self.mark_unacknowledged(connection, direction, around);
        }
    }

    fn mark_unacknowledged(&mut self, connection: u32, direction: usize, around: &mut Surroundings<'_>) {
        let state = &mut self.connections[connection as usize];
        let flow = &mut state.directions[direction];
        if flow.unacknowledged_since.is_some() || state.ends[direction].state == EndState::Gone {
            return;
        }
        flow.unacknowledged_since = Some(around.now);
        if !flow.give_up_queued {
            let deadline = around.now + self.patience(connection, direction);
            self.queue_give_up(connection, direction, deadline, around);
        }
    }

    fn queue_give_up(&mut self, connection: u32, direction: usize, at: u64, around: &mut Surroundings<'_>) {
        let state = &mut self.connections[connection as usize];
        state.directions[direction].give_up_queued = true;
        let generation = state.generation;
        around.schedule.push(at, Event::GiveUp { connection, direction: direction as u8, generation });
    }

    /// How long this sender waits for an acknowledgement: a fixed function of the connection, so that asking twice
    /// agrees.
    fn patience(&self, connection: u32, direction: usize) -> u64 {
        let (low, high) = self.settings.give_up_ns;
        let state = &self.connections[connection as usize];
        let purpose = format!("patience/{connection}/{}/{direction}", state.generation);
        streams::between(&mut streams::stream(self.seed, &purpose), low, high)
    }

    /// Links that pass again: what waited for them is sent at its next retransmission.
    fn resume(&mut self, cleared: impl Fn(&Link) -> bool, around: &mut Surroundings<'_>) {
        for connection in 0..self.connections.len() as u32 {
            for direction in 0..2 {
                let state = &self.connections[connection as usize];
                let flow = &state.directions[direction];
                let back = state.directions[1 - direction].link;
                if flow.stuck && cleared(&self.links[flow.link]) && self.passes(flow.link) {
                    self.retransmit(connection, direction, around);
                } else if !flow.stuck
                    && flow.unacknowledged_since.is_some()
                    && cleared(&self.links[back])
                    && self.passes(back)
                {
                    self.connections[connection as usize].directions[direction].unacknowledged_since = None;
                }
            }
        }
    }

    fn retransmit(&mut self, connection: u32, direction: usize, around: &mut Surroundings<'_>) {
        let flow = &mut self.connections[connection as usize].directions[direction];
        let since = flow.unacknowledged_since.unwrap_or(around.now);
        let sent = next_retransmission(since, around.now, self.settings.retransmit_longest_ns);
        let arrives = sent + self.links[flow.link].latency();
        flow.stuck = false;
        for item in &mut flow.items {
            item.leaves = item.leaves.max(sent);
            item.arrives = item.arrives.max(arrives);
        }
        flow.last_arrival = flow.last_arrival.max(arrives);
        self.arm(connection, direction, around);
    }

    fn push_syn(&mut self, connection: u32, at: u64, around: &mut Surroundings<'_>) {
        let state = &mut self.connections[connection as usize];
        state.attempts += 1;
        let generation = state.generation;
        around.schedule.push(at, Event::Syn { connection, generation });
    }

    fn repeat_syn(&mut self, connection: u32, around: &mut Surroundings<'_>) {
        self.counters.attempts_dropped += 1;
        let state = &self.connections[connection as usize];
        let pause = SECOND_NS << (state.attempts - 1).min(5);
        if around.now + pause > state.started_at + self.settings.connect_limit_ns {
            self.fail_end(connection, 0, io::ErrorKind::TimedOut, around);
            return;
        }
        let link = state.directions[0].link;
        let at = around.now + pause + self.links[link].latency();
        self.push_syn(connection, at, around);
    }

    /// An end learns that its connection is no more.
    fn fail_end(&mut self, connection: u32, end: usize, error: io::ErrorKind, around: &mut Surroundings<'_>) {
        let state = &mut self.connections[connection as usize];
        state.ends[end].state = EndState::Gone;
        state.ends[end].error.get_or_insert(error);
        state.directions[end].drop_in_flight();
        around.wakes.extend(state.directions[end].writer.take());
        around.wakes.extend(state.directions[1 - end].reader.take());
    }

    /// The kernel at `end` knows no such connection, or throws it away: it answers with a reset.
    fn reset_from(&mut self, connection: u32, end: usize, around: &mut Surroundings<'_>) {
        let state = &mut self.connections[connection as usize];
        state.ends[end].state = EndState::Gone;
        if state.ends[end].reset_sent {
            return;
        }
        state.ends[end].reset_sent = true;
        state.directions[end].drop_unsent(around.now);
        state.directions[1 - end].drop_readable();
        self.send_item(connection, end, Travelling::Reset, 0, around);
    }

    /// The process lets go of an end: FIN, or RST when bytes arrived that it never read.
    fn close_end(&mut self, connection: u32, end: usize, around: &mut Surroundings<'_>) {
        let state = &mut self.connections[connection as usize];
        match state.ends[end].state {
            EndState::Opening => state.ends[end].state = EndState::Gone,
            EndState::Open if state.directions[1 - end].readable > 0 => {
                self.reset_from(connection, end, around);
            }
            EndState::Open => {
                state.ends[end].state = EndState::Closed;
                if !state.directions[end].fin_sent {
                    state.directions[end].fin_sent = true;
                    self.send_item(connection, end, Travelling::Fin, 0, around);
                }
            }
            EndState::Closed | EndState::Gone => {}
        }
    }

    fn free_if_over(&mut self, connection: u32) {
        let state = &mut self.connections[connection as usize];
        // The server's end of an attempt that never came about has no holder and no state to keep.
        let attempt_ended = !state.ends[0].held
            && state.ends[0].state == EndState::Gone
            && state.directions[0].items.is_empty();
        if attempt_ended && state.ends[1].state == EndState::Opening {
            state.ends[1].state = EndState::Gone;
        }
        if state.is_over() && !state.free {
            state.free = true;
            state.generation = state.generation.wrapping_add(1);
            for direction in &mut state.directions {
                *direction = Direction::new(direction.link, 0);
            }
            self.free.push(connection);
        }
    }

    fn for_each_end(&mut self, host: Host, mut act: impl FnMut(&mut Network, u32, usize)) {
        for connection in 0..self.connections.len() as u32 {
            for end in 0..2 {
                if self.connections[connection as usize].ends[end].host == host {
                    act(self, connection, end);
                }
            }
        }
    }

    /// Connections that nobody will accept any more.
    fn refuse_waiting(&mut self, listening: Listening, around: &mut Surroundings<'_>) {
        for connection in listening.waiting {
            self.connections[connection as usize].ends[1].held = false;
            self.reset_from(connection, 1, around);
            self.free_if_over(connection);
        }
    }

    fn take_listeners(&mut self, host: Host) -> Vec<Listening> {
        let keys: Vec<(Host, u16)> =
            self.listeners.range((host, 0)..=(host, u16::MAX)).map(|(key, _)| *key).collect();
        keys.iter().filter_map(|key| self.listeners.remove(key)).collect()
    }

    /// A message on this link reaches a kernel now.
    fn passes(&self, link: usize) -> bool {
        let link = &self.links[link];
        link.blocks == 0 && self.machine(link.to).up
    }

    fn link(&mut self, from: Host, to: Host) -> usize {
        if let Some(index) = self.link_index.get(&(from, to)) {
            return *index;
        }
        let latency = if from == to { self.settings.loopback } else { self.settings.latency };
        let purpose = format!("network/{}/{}", self.machine(from).name, self.machine(to).name);
        self.links.push(Link::new(from, to, latency, streams::stream(self.seed, &purpose)));
        self.link_index.insert((from, to), self.links.len() - 1);
        self.links.len() - 1
    }

    fn machine(&self, host: Host) -> &Machine {
        &self.machines[usize::from(host.0)]
    }

    fn peer_address(&self, connection: u32, end: usize) -> SocketAddr {
        let peer = &self.connections[connection as usize].ends[1 - end];
        SocketAddr::new(self.machine(peer.host).address, peer.port)
    }

    fn free_port(&mut self, host: Host) -> u16 {
        loop {
            let machine = &mut self.machines[usize::from(host.0)];
            let port = machine.next_port;
            machine.next_port = port.checked_add(1).unwrap_or(FIRST_EPHEMERAL_PORT);
            if !self.listeners.contains_key(&(host, port)) {
                return port;
            }
        }
    }
}

/// What can be set of one directed link.
#[derive(Clone, Copy, Debug)]
pub struct LinkShape {
    pub latency: Latency,
    /// Messages in a million that are lost and sent again.
    pub loss_per_million: u32,
    /// Bytes a second; `None` is unlimited.
    pub bandwidth: Option<u64>,
}

fn remember(slot: &mut Option<Waker>, waker: &Waker) {
    if !slot.as_ref().is_some_and(|known| known.will_wake(waker)) {
        *slot = Some(waker.clone());
    }
}

fn copy_out(from: &mut VecDeque<u8>, to: &mut [u8]) {
    let (front, back) = from.as_slices();
    let first = front.len().min(to.len());
    to[..first].copy_from_slice(&front[..first]);
    let rest = to.len() - first;
    to[first..].copy_from_slice(&back[..rest]);
    from.drain(..to.len());
}
