//! The worlds that are measured, as the scenario files that they are.

use std::sync::Arc;

use crate::campaign::{Cell, Source};
use crate::exit::Failure;
use crate::token::Changes;

/// What a world has to carry. Three controllers, replication factor 3, acks=all, idempotent producers; `linger.ms` and
/// `batch.size` of 0 make a request of every record.
#[derive(Clone, Debug)]
pub struct Load {
    pub brokers: u16,
    pub partitions: u32,
    pub producers: u64,
    /// Over all producers.
    pub records: u64,
    /// Records a second of each producer; `None`: as many as five in flight allow.
    pub rate: Option<u64>,
    pub value_bytes: u64,
    pub tailing: u16,
    /// How long the safety phase lasts at least, in seconds.
    pub seconds: u64,
    /// `[[fault]]` tables.
    pub faults: &'static str,
    /// Settings of brokers, lines of TOML.
    pub broker: &'static str,
}

impl Default for Load {
    fn default() -> Self {
        Load {
            brokers: 3,
            partitions: 1,
            producers: 4,
            records: 400,
            rate: None,
            value_bytes: 1024,
            tailing: 0,
            seconds: 10,
            faults: "",
            broker: "",
        }
    }
}

impl Load {
    fn text(&self) -> String {
        let Load { brokers, partitions, records, value_bytes, tailing, seconds, faults, broker, .. } = self;
        let mut text = format!(
            r#"
schema = "scenario/1"
name = "bench"
ask = "What does it cost?"

[cluster]
brokers = {brokers}
safety = "{seconds}s"

[topic.orders]
partitions = {partitions}

[broker]
{broker}

[consumer]
tailing = {tailing}

[expect]
acked = 1

[configuration.default]
expect = "may"
"#
        );
        let producers = self.producers.min(*records);
        let rate = self.rate.map_or_else(|| "max".to_owned(), |rate| format!("{rate}/s"));
        for number in 1..=producers {
            let share = records / producers + u64::from(number <= records % producers);
            text.push_str(&format!(
                r#"
[producer.p{number}]
records = {share}
rate = "{rate}"
value_bytes = {value_bytes}
acks = "all"
"enable.idempotence" = true
"batch.size" = 0
"linger.ms" = 0
"max.in.flight.requests.per.connection" = 5
"#
            ));
        }
        text.push_str(faults);
        text
    }

    /// The world of this load.
    ///
    /// # Errors
    /// None that a test would not have shown.
    pub fn cell(&self) -> Result<Cell, Failure> {
        let source = Arc::new(Source::new("bench.toml", &self.text(), false)?);
        let (mut cells, _) = Cell::all(&source, None, &Changes::default())?;
        Ok(cells.remove(0))
    }
}

/// The leader-crash drill: 1,600 records of 100 bytes at 40 a second, the leader killed after 12 s and back after 27 s,
/// everything under Kafka's default time-outs.
pub const DRILL: Load = Load {
    brokers: 3,
    partitions: 1,
    producers: 1,
    records: 1_600,
    rate: Some(40),
    value_bytes: 100,
    tailing: 0,
    seconds: 45,
    faults: r#"
[[fault]]
id = "crash"
kind = "crash"
nodes = ["leader(orders-0)"]
at = "12s"
for = "15s"
"#,
    broker: "",
};

/// The faults under which speed is measured, in every world all of them, at times that the seed draws: what a
/// cluster has to live through without losing anything at min.insync.replicas=1 and unclean election off.
pub const FAULTS: &str = r#"
[[fault]]
id = "crash"
kind = "crash"
nodes = ["leader(orders-0)"]
at = "2s..8s"
for = "2s..8s"

[[fault]]
id = "cut"
kind = "split"
sides = [["leader(orders-0)"], ["follower(orders-0)"]]
at = "14s..20s"
for = "3s..10s"

[[fault]]
id = "one-way"
kind = "one-way"
nodes = ["follower(orders-0)"]
at = "24s..30s"
for = "3s..10s"

[[fault]]
id = "pause"
kind = "pause"
nodes = ["leader(orders-0)"]
at = "34s..38s"
for = "2s..6s"

[[fault]]
id = "controller"
kind = "crash"
nodes = ["controller"]
at = "42s..46s"
for = "2s..8s"

[[fault]]
id = "power"
kind = "power-loss"
nodes = ["follower(orders-0)"]
at = "50s..54s"
for = "2s..5s"
"#;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worlds_hold_as_many_records_as_they_say() {
        for records in [3, 10, 400, 4_001] {
            let load = Load { records, ..Load::default() };
            let plan = load.cell().expect("the text is fixed").plan;
            assert_eq!(plan.producers.iter().map(|producer| producer.records).sum::<u64>(), records);
            assert_eq!(plan.producers.len() as u64, load.producers.min(records));
        }
    }

    #[test]
    fn drill_is_the_one_that_a_real_kafka_was_measured_with() {
        let plan = DRILL.cell().expect("the text is fixed").plan;
        assert_eq!((plan.producers[0].records, plan.producers[0].rate), (1_600, 40));
        let crash = &plan.faults[0];
        assert_eq!((crash.at.from.as_secs(), crash.lasts.from.as_secs()), (12, 15));
    }
}
