//! How a replica's high watermark moves: a leader raises it, a follower takes over what it is told.
//!
//! Source: kafka-rules 1.5, 2.

use super::replica::{Replica, Role};
use crate::observation::Observation;
use crate::replica::broker::Broker;
use crate::replica::interface::ReplicaEffect;
use crate::types::Output;

impl Replica {
    /// As leader, raises it as far as everybody who counts has got. Gives whether it moved.
    pub fn raise_high_watermark(&mut self, broker: &Broker, out: &mut Output<ReplicaEffect>) -> bool {
        let Role::Leading(leading) = &self.role else { return false };
        let rules = &broker.rules;
        let (isr, own_end, min_insync) = (&self.state.isr, self.writes.end(), self.min_insync());
        let Some(to) = leading.committable(rules, isr, broker.node(), own_end, min_insync) else {
            return false;
        };
        if to <= self.high_watermark {
            return false;
        }
        out.observe(Observation::HighWatermarkAdvanced {
            partition: self.id,
            leader_epoch: self.state.leader_epoch,
            from: self.high_watermark,
            to,
            isr: self.state.isr.clone(),
            maximal_isr: leading.maximal_isr(rules, isr).collect(),
            min_insync: i32::try_from(min_insync).expect("bounded by the configured value"),
        });
        self.high_watermark = to;
        self.check();
        true
    }

    /// As follower, takes over what the leader told, once its records are written. Gives whether it moved.
    pub fn adopt_told_high_watermark(&mut self, out: &mut Output<ReplicaEffect>) -> bool {
        let is_idle = self.writes.is_idle();
        let Some(following) = self.following_mut() else { return false };
        if !is_idle {
            return false;
        }
        let Some(told) = following.told_high_watermark.take() else { return false };
        let to = told.clamp(self.log.log_start_offset(), self.writes.end());
        self.set_follower_high_watermark(to, out)
    }

    pub(super) fn lower_high_watermark(&mut self, log_end_offset: i64, out: &mut Output<ReplicaEffect>) {
        if self.high_watermark > log_end_offset {
            self.set_follower_high_watermark(log_end_offset, out);
        }
    }

    pub(super) fn set_follower_high_watermark(&mut self, to: i64, out: &mut Output<ReplicaEffect>) -> bool {
        let from = self.high_watermark;
        if from == to {
            return false;
        }
        self.high_watermark = to;
        let leader_epoch = self.state.leader_epoch;
        out.observe(Observation::FollowerHighWatermark { partition: self.id, leader_epoch, from, to });
        true
    }
}
