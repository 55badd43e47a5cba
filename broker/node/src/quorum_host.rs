//! Carries out what the quorum machine wants: its files, its requests, its answers. What concerns the node that
//! hosts it (committed records, leadership) is handed on.

use std::collections::BTreeMap;

use acked_core::log::checkpoint::QuorumStateFile;
use acked_core::quorum::{CommittedBatch, Quorum, QuorumEffect, QuorumInput, QuorumState};
use acked_core::{NodeId, Observer, Output, PeerError, Time};
use acked_env::Env;
use acked_wire::RequestBody;
use bytes::Bytes;
use tokio::sync::{mpsc, oneshot};

use crate::link::Purpose;
use crate::metadata_log::MetadataOperation;
use crate::shell::Shell;

/// What the hosting node must act on, in order.
pub enum QuorumNews {
    Committed(Vec<CommittedBatch>),
    BecameLeader {
        epoch: i32,
    },
    LostLeadership,
    LeaderChanged,
    Stopped,
    /// The node must stop: what it was told contradicts what is committed.
    Halted,
}

pub struct QuorumHost {
    pub quorum: Quorum,
    files: mpsc::UnboundedSender<MetadataOperation>,
    /// Requests that wait for an answer: token to addressee and the machine's correlation.
    sent: BTreeMap<u64, (NodeId, u64)>,
    output: Output<QuorumEffect>,
}

impl QuorumHost {
    /// `output` is what the quorum wanted when it was started; the first `carry_out` does it.
    pub fn new(
        quorum: Quorum,
        files: mpsc::UnboundedSender<MetadataOperation>,
        output: Output<QuorumEffect>,
    ) -> QuorumHost {
        QuorumHost { quorum, files, sent: BTreeMap::new(), output }
    }

    pub fn next_deadline(&self) -> Option<Time> {
        self.quorum.next_deadline()
    }

    pub fn handle<E: Env, O: Observer>(
        &mut self,
        shell: &mut Shell<E, O>,
        input: QuorumInput,
    ) -> Vec<QuorumNews> {
        self.quorum.handle(shell.now(), input, &mut self.output);
        self.carry_out(shell)
    }

    /// Proposes one atomic batch; the offset of its first record, or `None` when this node does not lead.
    pub fn propose<E: Env, O: Observer>(
        &mut self,
        shell: &mut Shell<E, O>,
        records: &[Bytes],
    ) -> (Option<i64>, Vec<QuorumNews>) {
        let offset = self.quorum.propose(shell.now(), records, &mut self.output).ok();
        (offset, self.carry_out(shell))
    }

    /// The answer to a request of the quorum's; `None` when the token is not one of its.
    pub fn response<E: Env, O: Observer>(
        &mut self,
        shell: &mut Shell<E, O>,
        token: u64,
        result: Result<Bytes, PeerError>,
    ) -> Vec<QuorumNews> {
        let (to, correlation) =
            self.sent.remove(&token).expect("the link's purpose says that it is the quorum's");
        let result = shell.decode(token, result);
        self.handle(shell, QuorumInput::Response { to, correlation, result })
    }

    pub fn carry_out<E: Env, O: Observer>(&mut self, shell: &mut Shell<E, O>) -> Vec<QuorumNews> {
        shell.observe(&mut self.output.observations);
        let mut news = Vec::new();
        let effects: Vec<QuorumEffect> = self.output.effects.drain(..).collect();
        for effect in effects {
            // The file task ends before the node only when a write failed, which stops the node by itself.
            match effect {
                QuorumEffect::SaveState { save, state } => {
                    let state = self.state_file(shell, state);
                    let _ = self.files.send(MetadataOperation::SaveState { save, state });
                }
                QuorumEffect::AppendLog { write, position, bytes, sync } => {
                    let _ = self.files.send(MetadataOperation::Append { write, position, bytes, sync });
                }
                QuorumEffect::TruncateLog { write, size } => {
                    let _ = self.files.send(MetadataOperation::Truncate { write, size });
                }
                QuorumEffect::Send { to, correlation, body } => {
                    let purpose = match body {
                        RequestBody::Fetch(_) => Purpose::QuorumFetch,
                        _ => Purpose::QuorumElection,
                    };
                    let (host, port) = shell.config.voters[&to].clone();
                    let token = shell.send(to, purpose, (&host, port), &body);
                    self.sent.insert(token, (to, correlation));
                }
                QuorumEffect::Reply { request, body } => shell.requests.answer(request, &body),
                QuorumEffect::Committed { batches } => news.push(QuorumNews::Committed(batches)),
                QuorumEffect::BecameLeader { epoch } => news.push(QuorumNews::BecameLeader { epoch }),
                QuorumEffect::LostLeadership { .. } => news.push(QuorumNews::LostLeadership),
                QuorumEffect::LeaderChanged { .. } => news.push(QuorumNews::LeaderChanged),
                QuorumEffect::Stopped => news.push(QuorumNews::Stopped),
                QuorumEffect::Halt { .. } => news.push(QuorumNews::Halted),
            }
        }
        news
    }

    /// Waits until the files are written. A task that died keeps nobody waiting.
    pub async fn close(self) {
        let (closed, answer) = oneshot::channel();
        let _ = self.files.send(MetadataOperation::Close { closed });
        let _ = answer.await;
    }

    fn state_file<E: Env, O: Observer>(&self, shell: &Shell<E, O>, state: QuorumState) -> QuorumStateFile {
        let id = |node: Option<NodeId>| node.map_or(-1, |node| node.0);
        QuorumStateFile {
            cluster_id: shell.config.cluster_id.clone(),
            leader_id: id(state.leader),
            leader_epoch: state.epoch,
            voted_id: id(state.voted),
            applied_offset: 0,
            current_voters: shell.config.voters.keys().map(|voter| voter.0).collect(),
        }
    }
}
