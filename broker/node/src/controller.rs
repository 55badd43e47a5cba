//! A controller node: a voter of the quorum, and the active controller while it leads it.

use std::collections::VecDeque;

use acked_core::controller::{
    Controller, ControllerBody, ControllerConfig, ControllerEffect, ControllerInput, MetadataImage,
    is_forwarded,
};
use acked_core::quorum::{CommittedBatch, QuorumInput};
use acked_core::{Observation, Observer, Output, RequestId, Time};
use acked_env::Env;
use acked_wire::{
    EnvelopeRequest, EnvelopeResponse, MetadataRecord, RequestBody, RequestHeader, ResponseBody,
    decode_request_body, decode_request_header, error_code,
};
use bytes::Bytes;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use crate::connection::ConnectionId;
use crate::event::Event;
use crate::handlers::{self, Incoming};
use crate::node::{Ended, Serve};
use crate::quorum_host::{QuorumHost, QuorumNews};
use crate::shell::Shell;

/// An answer that waits until everything it could have seen is committed.
struct Waiting {
    after_offset: i64,
    request: RequestId,
    body: ResponseBody,
    /// What it becomes when this node stops leading first.
    refusal: ResponseBody,
}

pub struct ControllerNode<E: Env, O: Observer> {
    shell: Shell<E, O>,
    quorum: QuorumHost,
    /// Committed metadata.
    image: MetadataImage,
    active: Option<Controller>,
    waiting: VecDeque<Waiting>,
    random: ChaCha8Rng,
    output: Output<ControllerEffect>,
    ended: Option<Ended>,
}

impl<E: Env, O: Observer> ControllerNode<E, O> {
    pub fn new(shell: Shell<E, O>, quorum: QuorumHost) -> Self {
        let random = shell.env.rng("controller");
        ControllerNode {
            shell,
            quorum,
            image: MetadataImage::default(),
            active: None,
            waiting: VecDeque::new(),
            random,
            output: Output::default(),
            ended: None,
        }
    }

    /// Waits until the metadata log and the quorum state are written; each write of theirs is synced.
    pub async fn close(self) {
        self.quorum.close().await;
        self.shell.observe(&mut vec![Observation::NodeStopped]);
    }

    fn quorum_input(&mut self, input: QuorumInput) {
        let news = self.quorum.handle(&mut self.shell, input);
        self.news(news);
    }

    pub fn news(&mut self, news: Vec<QuorumNews>) {
        for news in news {
            match news {
                QuorumNews::Committed(batches) => {
                    self.committed(&batches);
                    self.answer_committed();
                }
                QuorumNews::BecameLeader { epoch } => self.activate(epoch),
                QuorumNews::LostLeadership => self.deactivate(),
                QuorumNews::LeaderChanged => {}
                QuorumNews::Stopped => self.ended = Some(Ended::Stopped),
                QuorumNews::Halted => self.ended = Some(Ended::Failed("follow the metadata quorum")),
            }
        }
    }

    fn committed(&mut self, batches: &[CommittedBatch]) {
        let mut observations = Vec::new();
        for batch in batches {
            for (offset, record) in (batch.base_offset..).zip(&batch.records) {
                let replayed = MetadataRecord::decode(record).map_err(|_| ()).and_then(|record| {
                    self.image.replay_committed(offset, &record, &mut observations).map_err(|_| ())
                });
                if replayed.is_err() {
                    self.ended = Some(Ended::Failed("replay a committed metadata record"));
                }
            }
        }
        // The controllers' own image has no replicas to tell.
        let _ = self.image.take_changes();
        self.shell.observe(&mut observations);
    }

    fn activate(&mut self, epoch: i32) {
        let config = ControllerConfig::new(
            self.shell.config.node,
            self.shell.config.cluster_id.as_str().into(),
            &self.shell.config.settings,
        );
        let now = self.shell.now();
        let next_offset = self.quorum.quorum.log_end_offset();
        let random = ChaCha8Rng::seed_from_u64(self.random.next_u64());
        let controller = Controller::activate(
            config,
            epoch,
            self.image.clone(),
            next_offset,
            now,
            random,
            &mut self.output,
        );
        self.active = Some(controller);
        self.carry_out(None);
    }

    fn deactivate(&mut self) {
        if let Some(controller) = self.active.take() {
            controller.deactivate(&mut self.output);
            self.shell.observe(&mut self.output.observations);
            self.output.effects.clear();
        }
        for waiting in self.waiting.drain(..) {
            self.shell.requests.answer(waiting.request, &waiting.refusal);
        }
    }

    fn decide(&mut self, input: ControllerInput) {
        let Some(controller) = &mut self.active else { return };
        let refusal = match &input {
            ControllerInput::Request { body, .. } => Some(body.refusal(error_code::NOT_CONTROLLER)),
            ControllerInput::Tick => None,
        };
        controller.handle(self.shell.env.now(), input, self.quorum.quorum.log_end_offset(), &mut self.output);
        self.carry_out(refusal);
    }

    fn carry_out(&mut self, mut refusal: Option<ResponseBody>) {
        self.shell.observe(&mut self.output.observations);
        let mut news = Vec::new();
        let effects: Vec<ControllerEffect> = self.output.effects.drain(..).collect();
        for effect in effects {
            match effect {
                ControllerEffect::Propose { base_offset, records } => {
                    let records: Vec<Bytes> = records
                        .iter()
                        .map(|record| record.encode().expect("decided records fit their newest version"))
                        .collect();
                    let (offset, more) = self.quorum.propose(&mut self.shell, &records);
                    news.extend(more);
                    match offset {
                        Some(offset) => {
                            assert_eq!(offset, base_offset, "the controller knows where its log ends")
                        }
                        // Leadership is lost; the news that says so is on its way.
                        None => self.deactivate(),
                    }
                }
                ControllerEffect::Reply { request, body, after_offset } => {
                    let refusal = refusal.take().expect("one request has one answer");
                    self.waiting.push_back(Waiting { after_offset, request, body, refusal });
                }
            }
        }
        self.answer_committed();
        self.news(news);
    }

    fn answer_committed(&mut self) {
        let high_watermark = self.quorum.quorum.high_watermark();
        while self.waiting.front().is_some_and(|waiting| waiting.after_offset <= high_watermark) {
            let waiting = self.waiting.pop_front().expect("looked at just above");
            self.shell.requests.answer(waiting.request, &waiting.body);
        }
    }

    fn request(&mut self, connection: ConnectionId, frame: Bytes) {
        let Some((header, incoming)) = handlers::read(self.shell.config.role, frame) else {
            self.shell.requests.close_connection(connection);
            return;
        };
        let version = header.api_version;
        match incoming {
            Incoming::ApiVersionsOfUnknownVersion => self.shell.refuse_api_versions(connection, header),
            Incoming::Body(RequestBody::ApiVersions(body)) => {
                self.shell.answer_api_versions(connection, header, &body, &self.image);
            }
            Incoming::Body(RequestBody::Envelope(envelope)) => self.envelope(connection, header, envelope),
            Incoming::Body(body) => {
                let request = self.shell.requests.receive(connection, header);
                match ControllerBody::try_from(body) {
                    Ok(body) => self.controller_request(request, body),
                    Err(body) => self.quorum_input(QuorumInput::Request { request, version, body }),
                }
            }
        }
    }

    fn controller_request(&mut self, request: RequestId, body: ControllerBody) {
        if self.active.is_some() {
            self.decide(ControllerInput::Request { request, body });
        } else {
            self.shell.requests.answer(request, &body.refusal(error_code::NOT_CONTROLLER));
        }
    }

    fn envelope(&mut self, connection: ConnectionId, header: RequestHeader, envelope: EnvelopeRequest) {
        let code = if self.active.is_none() {
            Err(error_code::NOT_CONTROLLER)
        } else {
            let mut frame = envelope.request_data;
            decode_request_header(&mut frame)
                .and_then(|embedded| {
                    let body = decode_request_body(embedded.api_key, embedded.api_version, &mut frame)?;
                    Ok((embedded, body))
                })
                .map_err(|_| error_code::INVALID_REQUEST)
                .and_then(|(embedded, body)| match ControllerBody::try_from(body) {
                    Ok(body) if is_forwarded(embedded.api_key) => Ok((embedded, body)),
                    _ => Err(error_code::INVALID_REQUEST),
                })
        };
        match code {
            Ok((embedded, body)) => {
                let request = self.shell.requests.receive_embedded(connection, header, embedded);
                self.decide(ControllerInput::Request { request, body });
            }
            Err(error_code) => {
                let request = self.shell.requests.receive(connection, header);
                let answer =
                    EnvelopeResponse { response_data: None, error_code, ..EnvelopeResponse::default() };
                self.shell.requests.answer(request, &ResponseBody::Envelope(answer));
            }
        }
    }
}

impl<E: Env, O: Observer> Serve for ControllerNode<E, O> {
    fn next_deadline(&self) -> Option<Time> {
        let active = self.active.as_ref().and_then(Controller::next_deadline);
        [self.quorum.next_deadline(), active].into_iter().flatten().min()
    }

    fn event(&mut self, event: Event) -> Option<Ended> {
        match event {
            Event::ConnectionOpened { connection, replies } => {
                self.shell.requests.opened(connection, replies)
            }
            Event::ConnectionClosed { connection } => {
                self.shell.requests.closed(connection);
            }
            Event::Request { connection, frame } => self.request(connection, frame),
            Event::Response { token, result, .. } => {
                let news = self.quorum.response(&mut self.shell, token, result);
                self.news(news);
            }
            Event::MetadataLogSynced { write } => self.quorum_input(QuorumInput::LogSynced { write }),
            Event::QuorumStateSaved { save } => self.quorum_input(QuorumInput::StateSaved { save }),
            Event::MetadataFailed => {
                self.ended = Some(Ended::Failed("write the metadata log or quorum state"))
            }
            Event::Shutdown => self.quorum_input(QuorumInput::Shutdown),
            Event::LogWritten { .. } | Event::LogWriteFailed { .. } | Event::LogRead { .. } => {
                unreachable!("a controller has no replica logs")
            }
        }
        self.ended.take()
    }

    fn deadline(&mut self, now: Time) -> Option<Ended> {
        if self.quorum.next_deadline().is_some_and(|deadline| deadline <= now) {
            self.quorum_input(QuorumInput::Tick);
        }
        if self.active.as_ref().and_then(Controller::next_deadline).is_some_and(|deadline| deadline <= now) {
            self.decide(ControllerInput::Tick);
        }
        self.ended.take()
    }
}
