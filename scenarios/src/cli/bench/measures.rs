//! What is measured. A round measures everything once, F among it; the figures are medians over the rounds. What depends
//! on the faults that seeds draw is pooled over a fixed list of seeds instead.

use acked_sim::bench::{cpu, floor, hop};
use acked_sim::judge::Checks;

use super::load::{DRILL, FAULTS, Load};
use super::world::{self, Cost, no_cpu_time};
use super::{Figures, Sized, Spread, workers};
use crate::campaign::Cell;
use crate::exit::Failure;
use crate::output;
use crate::token::BUILD;

/// Requests of the large and of the small world of a round.
const LARGE: u64 = 4_000;
const SMALL: u64 = 400;
/// Events of the bare loop, and requests of each machine in the ring, that are measured in a round.
const FLOOR_EVENTS: u64 = 1_000_000;
const HOP_REQUESTS: u64 = 5_000;
const FRAME: usize = 1024;
/// The smoke world: boot, ten produces, read back, check.
const SMOKE_SEEDS: u64 = 20;
/// The seeds under faults.
const FAULT_SEEDS: std::ops::RangeInclusive<u64> = 1..=20;
/// Wall time over CPU time beyond which something else was using the core.
const NOISY: f64 = 1.05;
const BROKERS: [u16; 3] = [3, 5, 9];
const PARTITIONS: [u32; 3] = [1, 10, 100];

/// Two worlds that differ in size only.
struct Pair {
    large: Cell,
    small: Cell,
}

impl Pair {
    fn new(large: &Load, small: &Load) -> Result<Pair, Failure> {
        Ok(Pair { large: large.cell()?, small: small.cell()? })
    }

    /// So many records against few.
    fn of_records(load: &Load) -> Result<Pair, Failure> {
        Pair::new(&Load { records: LARGE, ..load.clone() }, &Load { records: SMALL, ..load.clone() })
    }

    fn cost(&self, seed: u64, checks: Checks) -> Result<(Cost, Cost), Failure> {
        let (large, small) = (world::run(&self.large, seed, checks)?, world::run(&self.small, seed, checks)?);
        Ok((large.beyond(small)?, large.and(small)))
    }
}

/// The worlds of a round.
struct Worlds {
    produce: Pair,
    idle: Pair,
    load: Pair,
    drill: Pair,
    smoke: Cell,
    brokers: Vec<(u32, Pair)>,
    partitions: Vec<(u32, Pair)>,
}

impl Worlds {
    fn new() -> Result<Worlds, Failure> {
        let standard = Load::default();
        let idle = |seconds| Load { records: 10, seconds, ..standard.clone() };
        let load = |seconds| Load {
            producers: 2,
            rate: Some(20),
            records: 40 * seconds,
            tailing: 2,
            seconds,
            ..standard.clone()
        };
        let before_drill = Load { records: 1, seconds: 1, faults: "", ..DRILL };
        let sized = |change: &dyn Fn(u32) -> Load, sizes: &[u32]| {
            sizes
                .iter()
                .map(|size| Ok::<_, Failure>((*size, Pair::of_records(&change(*size))?)))
                .collect::<Result<Vec<_>, _>>()
        };
        let brokers = |size: u32| Load { brokers: u16::try_from(size).expect("few"), ..standard.clone() };
        let partitions = |size: u32| Load { partitions: size, ..standard.clone() };
        Ok(Worlds {
            produce: Pair::of_records(&standard)?,
            idle: Pair::new(&idle(630), &idle(30))?,
            load: Pair::new(&load(130), &load(30))?,
            drill: Pair::new(&DRILL, &before_drill)?,
            smoke: Load { records: 10, seconds: 1, ..standard.clone() }.cell()?,
            brokers: sized(&brokers, &BROKERS.map(u32::from))?,
            partitions: sized(&partitions, &PARTITIONS)?,
        })
    }
}

/// Everything, in so many rounds.
///
/// # Errors
/// A system that tells no CPU time, a world that does not hold.
pub fn all(rounds: u32, optimised: bool, quiet: bool) -> Result<Figures, Failure> {
    let say = |text: &str| {
        if !quiet {
            output::say(text);
        }
    };
    let worlds = Worlds::new()?;
    // Caches and allocator are warm before anything counts.
    world::run(&worlds.smoke, 1, Checks::ALL)?;
    let mut spent = Cost::default();
    let [mut acked, mut in_f, mut floors, mut idle, mut load] = [const { Vec::new() }; 5];
    let [mut hops, mut smoke, mut checkers, mut drill] = [const { Vec::new() }; 4];
    let mut by_brokers = vec![Vec::new(); worlds.brokers.len()];
    let mut by_partitions = vec![Vec::new(); worlds.partitions.len()];
    for seed in 1..=u64::from(rounds) {
        let f = floor::measure(FLOOR_EVENTS).ok_or_else(no_cpu_time)?.as_secs_f64();
        floors.push(f * 1e9);
        let mut measure = |pair: &Pair, checks| -> Result<Cost, Failure> {
            let (more, all) = pair.cost(seed, checks)?;
            spent = spent.and(all);
            Ok(more)
        };
        let on = measure(&worlds.produce, Checks::ALL)?;
        let off = measure(&worlds.produce, Checks::NONE)?;
        acked.push(on.acked_per_cpu_s());
        in_f.push(1.0 / on.acked_per_cpu_s() / f);
        checkers.push(on.cpu.as_secs_f64() / off.cpu.as_secs_f64());
        idle.push(measure(&worlds.idle, Checks::ALL)?.ratio());
        load.push(measure(&worlds.load, Checks::ALL)?.ratio());
        drill.push(measure(&worlds.drill, Checks::ALL)?.cpu.as_secs_f64());
        for (sized, costs) in
            worlds.brokers.iter().zip(&mut by_brokers).chain(worlds.partitions.iter().zip(&mut by_partitions))
        {
            costs.push(1.0 / measure(&sized.1, Checks::ALL)?.acked_per_cpu_s() / f);
        }
        hops.push(hop::measure(HOP_REQUESTS, FRAME).ok_or_else(no_cpu_time)?.as_secs_f64() * 1e9);
        let mut small = Cost::default();
        for seed in (seed - 1) * SMOKE_SEEDS + 1..=seed * SMOKE_SEEDS {
            small = small.and(world::run(&worlds.smoke, seed, Checks::ALL)?);
        }
        smoke.push(SMOKE_SEEDS as f64 / small.cpu.as_secs_f64());
        say(&format!(
            "round {seed}/{rounds}: {:.0} acknowledged requests a CPU second",
            on.acked_per_cpu_s()
        ));
    }
    let peak = cpu::peak_rss_kib().ok_or_else(|| Failure::internal("this system does not tell memory"))?;
    say("under faults: 20 seeds");
    let faults = |load: Load| -> Result<Cost, Failure> {
        let cell = Load { seconds: 60, faults: FAULTS, ..load }.cell()?;
        FAULT_SEEDS
            .map(|seed| world::run(&cell, seed, Checks::ALL))
            .try_fold(Cost::default(), |sum, cost| Ok(sum.and(cost?)))
    };
    // As many records as the fastest cluster acknowledges in that time: the load never ends before the faults.
    let full = faults(Load { records: 20_000, ..Load::default() })?;
    let steady =
        faults(Load { producers: 2, rate: Some(20), records: 40 * 60, tailing: 2, ..Load::default() })?;
    say("whole campaigns by one worker and by two");
    let workers = workers::measure(&worlds.smoke)?;
    let wall_per_cpu = spent.wall.as_secs_f64() / spent.cpu.as_secs_f64();
    let rounded = |number: f64| (number * 100.0).round() / 100.0;
    Ok(Figures {
        build: BUILD,
        optimised,
        rounds,
        acked_per_cpu_s: Spread::of(acked),
        acked_per_cpu_s_faults: rounded(full.acked_per_cpu_s()),
        f_per_ack: Spread::of(in_f),
        f_ns: Spread::of(floors),
        idle_ratio: Spread::of(idle),
        load_ratio: Spread::of(load),
        load_ratio_faults: rounded(steady.ratio()),
        ns_per_hop: Spread::of(hops),
        smoke_seeds_per_core_s: Spread::of(smoke),
        workers,
        checker_cost: Spread::of(checkers),
        drill_cpu_s: Spread::of(drill),
        by_brokers: by_size(&worlds.brokers, by_brokers),
        by_partitions: by_size(&worlds.partitions, by_partitions),
        peak_rss_mib: rounded(peak as f64 / 1024.0),
        wall_per_cpu: rounded(wall_per_cpu),
        noisy: wall_per_cpu > NOISY,
    })
}

fn by_size(sizes: &[(u32, Pair)], costs: Vec<Vec<f64>>) -> Vec<Sized> {
    let costs: Vec<f64> = costs.into_iter().map(|costs| Spread::of(costs).median).collect();
    let smallest = costs.first().copied().unwrap_or(1.0);
    let sized = |((size, _), f_per_ack): (&(u32, Pair), f64)| Sized {
        size: *size,
        f_per_ack,
        of_smallest: (f_per_ack / smallest * 100.0).round() / 100.0,
    };
    sizes.iter().zip(costs).map(sized).collect()
}
