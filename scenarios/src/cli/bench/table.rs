//! The figures for people, each beside what it should be.

use super::{Figures, Sized, Spread};

/// A table of 80 columns, one figure a line.
pub fn human(figures: &Figures) -> String {
    let mut table = String::new();
    let mut row = |name: &str, value: String, aim: &str, spread: Option<&Spread>| {
        let spread = spread
            .map_or_else(String::new, |spread| format!("{} .. {}", short(spread.least), short(spread.most)));
        table.push_str(&format!("{name:<44}{value:>10}  {aim:<12}{spread}\n"));
    };
    let f = figures;
    row("figure", "median".into(), "aim", None);
    for (name, spread, aim) in [
        ("acknowledged requests a CPU second", &f.acked_per_cpu_s, ">= 10,000"),
        ("cost of one, in F", &f.f_per_ack, "<= 785"),
        ("F, ns", &f.f_ns, ""),
        ("idle: simulated s a CPU s", &f.idle_ratio, ">= 2,000"),
        ("40 requests a s: simulated s a CPU s", &f.load_ratio, ">= 150"),
        ("a frame through the network, ns", &f.ns_per_hop, ""),
        ("smoke seeds a CPU second", &f.smoke_seeds_per_core_s, ">= 50"),
        ("all checks on over off", &f.checker_cost, "<= 1.5"),
        ("leader-crash drill, CPU s", &f.drill_cpu_s, "<= 0.56"),
    ] {
        row(name, short(spread.median), aim, Some(spread));
    }
    row("under faults: requests a CPU second", short(f.acked_per_cpu_s_faults), ">= 3,000", None);
    row("under faults, 40 a s: simulated s a CPU s", short(f.load_ratio_faults), ">= 75", None);
    row("campaign, 1 worker: seeds a second", short(f.workers.one_seeds_per_s), ">= 50", None);
    row("campaign, 2 workers: seeds a second", short(f.workers.two_seeds_per_s), "", None);
    let machine = format!("of {}", short(f.workers.machine));
    row("2 workers over 1 (of the machine's own)", short(f.workers.speedup), ">= 1.8", None);
    row("", machine, "", None);
    for (what, sizes) in [("brokers", &f.by_brokers), ("partitions", &f.by_partitions)] {
        for Sized { size, f_per_ack, of_smallest } in sizes {
            let of = format!("{} x", short(*of_smallest));
            row(&format!("{size} {what}: cost of a request, in F"), short(*f_per_ack), &of, None);
        }
    }
    row("peak memory, MiB", short(f.peak_rss_mib), "<= 64", None);
    let noisy = if f.noisy { "noisy: the core was shared" } else { "" };
    row("wall time over CPU time", short(f.wall_per_cpu), noisy, None);
    table
}

/// Three digits or more.
fn short(number: f64) -> String {
    match number.abs() {
        large if large >= 100.0 => format!("{number:.0}"),
        middle if middle >= 10.0 => format!("{number:.1}"),
        _ => format!("{number:.2}"),
    }
}
