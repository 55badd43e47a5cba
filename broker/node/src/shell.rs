//! What brokers and controllers have in common: the world, the observer, requests that wait for answers and links to
//! other nodes.

use std::collections::BTreeMap;
use std::sync::Arc;

use acked_core::controller::MetadataImage;
use acked_core::{NodeId, Observation, Observer, PeerError};
use acked_env::Env;
use acked_wire::{ApiKey, ApiVersionsRequest, RequestBody, RequestHeader, ResponseBody, Str};
use bytes::Bytes;
use tokio::sync::mpsc;

use crate::config::NodeConfig;
use crate::connection::ConnectionId;
use crate::event::Event;
use crate::handlers::api_versions;
use crate::link::{self, LinkKey, LinkRequest, LinkTimeouts, Purpose};
use crate::requests::Requests;

/// The client id that a node gives in its own requests.
const CLIENT_ID: &str = "acked-node";

/// The task that carries one link, and where it leads.
struct Link {
    host: String,
    port: u16,
    requests: mpsc::UnboundedSender<LinkRequest>,
}

pub struct Shell<E: Env, O: Observer> {
    pub env: E,
    pub config: NodeConfig,
    pub observer: Arc<O>,
    pub events: mpsc::UnboundedSender<Event>,
    pub requests: Requests,
    links: BTreeMap<LinkKey, Link>,
    sent: BTreeMap<u64, (ApiKey, i16)>,
    next_token: u64,
}

impl<E: Env, O: Observer> Shell<E, O> {
    pub fn new(env: E, config: NodeConfig, observer: Arc<O>, events: mpsc::UnboundedSender<Event>) -> Self {
        Shell {
            env,
            config,
            observer,
            events,
            requests: Requests::default(),
            links: BTreeMap::new(),
            sent: BTreeMap::new(),
            next_token: 0,
        }
    }

    pub fn observe(&self, observations: &mut Vec<Observation>) {
        if observations.is_empty() {
            return;
        }
        let now = self.env.now();
        for observation in observations.drain(..) {
            self.observer.observe(self.config.node, now, &observation);
        }
    }

    /// Sends a request in the newest version that this build has; the answer comes back as `Event::Response` under
    /// the token returned.
    pub fn send(&mut self, peer: NodeId, purpose: Purpose, address: (&str, u16), body: &RequestBody) -> u64 {
        self.next_token += 1;
        let token = self.next_token;
        let key = body.key();
        let version = newest(key);
        let frame = body
            .frame(version, correlation(token), Some(&Str::from_static(CLIENT_ID)))
            .expect("this node's own requests fit their newest version");
        self.sent.insert(token, (key, version));
        self.send_frame(LinkKey { peer, purpose }, address, token, frame);
        token
    }

    /// Sends a frame (length included) as it is.
    pub fn send_frame(&mut self, key: LinkKey, (host, port): (&str, u16), token: u64, frame: Bytes) {
        // A peer that came back at another address gets another link; the old one ends with what it has in flight.
        let is_current = self.links.get(&key).is_some_and(|link| link.host == host && link.port == port);
        if !is_current {
            let link = self.open_link(key, host, port);
            self.links.insert(key, link);
        }
        // A link ends only with the node.
        let _ = self.links[&key].requests.send(LinkRequest { token, frame });
    }

    fn open_link(&self, key: LinkKey, host: &str, port: u16) -> Link {
        let settings = &self.config.settings;
        let timeouts = LinkTimeouts {
            connect: settings.socket_connection_setup_timeout,
            request: match key.purpose {
                Purpose::QuorumFetch | Purpose::QuorumElection => settings.controller_quorum_request_timeout,
                // A second heartbeat can still come in time when nobody answers the first one, as in Kafka.
                Purpose::Lifecycle => settings.broker_session_timeout / 2,
                Purpose::ReplicaFetch => settings.replica_socket_timeout,
                Purpose::AlterPartition | Purpose::ProducerIds | Purpose::Forward => settings.request_timeout,
            },
        };
        let host = host.to_string();
        let (requests, queue) = mpsc::unbounded_channel();
        let (env, events) = (self.env.clone(), self.events.clone());
        self.env.spawn("link", link::carry(env, key, host.clone(), port, timeouts, queue, events));
        Link { host, port, requests }
    }

    /// The decoded answer to the request that was sent under `token`.
    pub fn decode(
        &mut self,
        token: u64,
        result: Result<Bytes, PeerError>,
    ) -> Result<ResponseBody, PeerError> {
        let (key, version) =
            self.sent.remove(&token).expect("every answer belongs to a request that was sent");
        let mut frame = result?;
        let answered = acked_wire::decode_response_header(key, version, &mut frame);
        if answered != Ok(correlation(token)) {
            return Err(PeerError::Malformed);
        }
        acked_wire::decode_response_body(key, version, &mut frame).map_err(|_| PeerError::Malformed)
    }

    pub fn answer_api_versions(
        &mut self,
        connection: ConnectionId,
        header: RequestHeader,
        body: &ApiVersionsRequest,
        image: &MetadataImage,
    ) {
        let (role, version) = (self.config.role, header.api_version);
        let answer = api_versions::answer(role, version, body, image.features(), image.offset());
        let request = self.requests.receive(connection, header);
        self.requests.answer(request, &answer.into());
    }

    pub fn refuse_api_versions(&mut self, connection: ConnectionId, mut header: RequestHeader) {
        header.api_version = 0;
        let request = self.requests.receive(connection, header);
        self.requests.answer(request, &api_versions::unsupported_version().into());
    }

    pub fn now(&self) -> acked_core::Time {
        self.env.now()
    }
}

/// The correlation id of the request that was sent under `token`.
fn correlation(token: u64) -> i32 {
    i32::try_from(token & 0x7fff_ffff).expect("masked to 31 bits")
}

/// The newest version of an API that this build has.
pub fn newest(key: ApiKey) -> i16 {
    let declared = acked_wire::DECLARED.iter().find(|(declared, _)| *declared == key);
    *declared.expect("nodes send only what is declared").1.end()
}
