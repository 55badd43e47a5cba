//! The child process: reads orders on standard input, runs seeds, writes results. Ends when its input ends, so that
//! no worker outlives its parent.

use std::collections::BTreeMap;
use std::io::{BufRead, Write};
use std::sync::{Arc, mpsc};

use super::cell::{Cell, Source};
use super::orders::{Answer, Order};
use crate::exit::{Exit, Failure};

/// # Errors
/// Orders that make no sense, or an output that is gone.
pub fn work() -> Result<Exit, Failure> {
    let (orders, received) = mpsc::channel();
    // Reading runs beside the seeds: the end of the input ends the process in the middle of a run.
    let reader = std::thread::Builder::new().name("orders".into()).spawn(move || {
        for line in std::io::stdin().lock().lines() {
            let Ok(line) = line else { break };
            if orders.send(line).is_err() {
                break;
            }
        }
        std::process::exit(i32::from(Exit::Held.code()));
    });
    reader.map_err(|error| Failure::internal(format!("failed to start a thread: {error}")))?;
    let mut cells: BTreeMap<usize, Cell> = BTreeMap::new();
    let mut output = std::io::stdout().lock();
    for line in received {
        let order = serde_json::from_str(&line)
            .map_err(|error| Failure::internal(format!("failed to read an order: {error}")))?;
        match order {
            Order::Prepare { cell, path, text, own_file, configuration, changes } => {
                let source = Arc::new(Source::new(&path, &text, own_file)?);
                let (made, _) = Cell::all(&source, Some(&configuration), &changes)?;
                let made = made.into_iter().next().expect("a configuration that is asked for gives a plan");
                cells.insert(cell, made);
            }
            Order::Run { cell, seed } => {
                let prepared = &cells[&cell];
                let output_of_run =
                    acked_sim::runner::run(&prepared.plan, seed, &prepared.token(seed), false);
                let answer = Answer { cell, result: output_of_run.result };
                serde_json::to_writer(&mut output, &answer)
                    .map_err(|error| Failure::internal(format!("failed to write a result: {error}")))?;
                output.write_all(b"\n")?;
                output.flush()?;
            }
        }
    }
    Ok(Exit::Held)
}
