//! Runs jobs on worker processes and hands results over in the order of the jobs, whatever finishes first. A worker
//! that is silent for too long is ended and replaced; its seed is `budget`. Workers are outside the terminal's process
//! group, so that an interrupt reaches only the parent.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use acked_reports::{Contract, Outcome, SeedResult, Verdict};

use super::cell::Cell;
use super::orders::{Answer, Order};
use super::stop::Stop;
use crate::exit::Failure;
use crate::stopwatch::Stopwatch;

/// How often a thread that waits for its worker looks whether it should stop.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);

/// One seed of one cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Job {
    /// Index into the cells of the campaign.
    pub cell: usize,
    pub seed: u64,
}

/// A result in its turn.
#[derive(Debug)]
pub struct Delivered {
    pub job: Job,
    pub result: SeedResult,
    /// The worker ended without one; `result` says how.
    pub died: bool,
}

/// What the receiver of results wants next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    Continue,
    /// Nothing more is wanted.
    Stop,
}

pub struct Pool<'a> {
    pub cells: &'a [Cell],
    pub workers: usize,
    pub seed_timeout: Duration,
    /// No seed starts later than this.
    pub budget: Option<Duration>,
    pub stop: &'a Stop,
}

/// Where jobs come from: numbered, so that results find their turn.
struct Queue<'a, J> {
    jobs: J,
    next: u64,
    started: Stopwatch,
    pool: &'a Pool<'a>,
    /// Whether the budget, rather than the end of the jobs, ended it.
    out_of_time: bool,
}

impl<J: Iterator<Item = Job>> Queue<'_, J> {
    fn take(&mut self) -> Option<(u64, Job)> {
        if self.pool.stop.is_draining() {
            return None;
        }
        if self.pool.budget.is_some_and(|budget| self.started.elapsed() >= budget) {
            self.out_of_time |= self.jobs.next().is_some();
            self.pool.stop.drain();
            return None;
        }
        let job = self.jobs.next()?;
        self.next += 1;
        Some((self.next - 1, job))
    }
}

impl Pool<'_> {
    /// Runs the jobs. `arrived` is called for every result as soon as it is there, `deliver` in the order of the jobs.
    /// Returns whether the budget ended it before the jobs did.
    ///
    /// # Errors
    /// Workers that cannot be started, and what `deliver` fails with.
    pub fn run<J: Iterator<Item = Job> + Send>(
        &self,
        jobs: J,
        mut arrived: impl FnMut(&SeedResult),
        mut deliver: impl FnMut(Delivered) -> Result<Flow, Failure>,
    ) -> Result<bool, Failure> {
        assert!(self.workers > 0, "somebody must do the work");
        let queue = Queue { jobs, next: 0, started: Stopwatch::start(), pool: self, out_of_time: false };
        let queue = Mutex::new(queue);
        let (results, received) = mpsc::channel();
        std::thread::scope(|scope| {
            for number in 0..self.workers {
                let (queue, results) = (&queue, results.clone());
                let thread = std::thread::Builder::new().name(format!("worker {number}"));
                let started = thread.spawn_scoped(scope, move || self.serve(queue, &results));
                if let Err(error) = started {
                    self.stop.abort();
                    return Err(Failure::internal(format!("failed to start a thread: {error}")));
                }
            }
            drop(results);
            let ended = self.collect(&received, &mut arrived, &mut deliver);
            if ended.is_err() {
                self.stop.abort();
            }
            ended
        })?;
        let queue = queue.into_inner().expect("no thread panicked, or the scope had");
        Ok(queue.out_of_time)
    }

    /// Puts results into the order of their jobs.
    fn collect(
        &self,
        received: &Receiver<Result<(u64, Delivered), Failure>>,
        arrived: &mut impl FnMut(&SeedResult),
        deliver: &mut impl FnMut(Delivered) -> Result<Flow, Failure>,
    ) -> Result<(), Failure> {
        let mut waiting: BTreeMap<u64, Delivered> = BTreeMap::new();
        let mut next = 0;
        for result in received {
            let (number, delivered) = result?;
            arrived(&delivered.result);
            assert!(number >= next, "a job is run once");
            waiting.insert(number, delivered);
            while let Some(delivered) = waiting.remove(&next) {
                next += 1;
                match deliver(delivered)? {
                    Flow::Continue => {}
                    Flow::Stop => {
                        self.stop.abort();
                        return Ok(());
                    }
                }
            }
        }
        Ok(())
    }

    /// One worker's thread: takes jobs until there are none.
    fn serve<J: Iterator<Item = Job>>(
        &self,
        queue: &Mutex<Queue<'_, J>>,
        results: &Sender<Result<(u64, Delivered), Failure>>,
    ) {
        let mut worker: Option<Worker> = None;
        while let Some((number, job)) = lock(queue).take() {
            let reply = self.one(&mut worker, job);
            let done = match reply {
                Ok(Some(delivered)) => results.send(Ok((number, delivered))),
                // Aborted: nobody waits for it.
                Ok(None) => break,
                Err(failure) => {
                    self.stop.abort();
                    results.send(Err(failure))
                }
            };
            if done.is_err() {
                break;
            }
        }
        if let Some(worker) = worker {
            worker.end(self.stop.is_aborting());
        }
    }

    fn one(&self, slot: &mut Option<Worker>, job: Job) -> Result<Option<Delivered>, Failure> {
        let cell = &self.cells[job.cell];
        let worker = match slot {
            Some(worker) => worker,
            None => slot.insert(Worker::start()?),
        };
        let died = |how: String| {
            let reason = format!("its process ended without a result: {how}");
            Some(Delivered { job, result: without_result(cell, job, Verdict::Unknown, reason), died: true })
        };
        if let Err(error) = worker.order(job, cell) {
            let how = slot.take().expect("it was just used").end(true).unwrap_or_else(|| error.to_string());
            return Ok(died(how));
        }
        let mut silent = Duration::ZERO;
        loop {
            match worker.answers.recv_timeout(LOOK_INTERVAL) {
                Ok(answer) => {
                    assert_eq!(answer.cell, job.cell, "a worker answers what it was asked");
                    assert_eq!(answer.result.seed, job.seed, "a worker answers what it was asked");
                    return Ok(Some(Delivered { job, result: answer.result, died: false }));
                }
                Err(RecvTimeoutError::Disconnected) => {
                    let ended = slot.take().expect("it was just used").end(true);
                    return Ok(died(ended.unwrap_or_else(|| "it closed its output".into())));
                }
                Err(RecvTimeoutError::Timeout) => {
                    silent += LOOK_INTERVAL;
                    if self.stop.is_aborting() {
                        return Ok(None);
                    }
                    if silent >= self.seed_timeout {
                        slot.take().expect("it was just used").end(true);
                        let seconds = self.seed_timeout.as_secs_f64();
                        let reason = format!("no result within {seconds} s of wall time");
                        let result = without_result(cell, job, Verdict::Budget, reason);
                        return Ok(Some(Delivered { job, result, died: false }));
                    }
                }
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("nothing panics while it takes a job")
}

/// The result of a seed that gave none.
fn without_result(cell: &Cell, job: Job, verdict: Verdict, reason: String) -> SeedResult {
    SeedResult {
        scenario: cell.name().to_string(),
        configuration: cell.configuration.clone(),
        seed: job.seed,
        token: cell.token(job.seed),
        verdict,
        outcome: Outcome::None,
        contract: Contract::Kept,
        reason: Some(reason),
        findings: Vec::new(),
        lost: Vec::new(),
        lost_total: 0,
        sent: 0,
        acked: 0,
        indeterminate: 0,
        refused: 0,
        read_back: 0,
        faults: Vec::new(),
        comparisons: BTreeMap::new(),
        events: 0,
        virtual_us: 0,
        hash: format!("{:016x}", 0),
    }
}

/// A child process and the thread that reads its answers.
struct Worker {
    child: Child,
    orders: ChildStdin,
    answers: Receiver<Answer>,
    /// Cells that it has been told of.
    knows: Vec<usize>,
}

impl Worker {
    fn start() -> Result<Worker, Failure> {
        let fault = |error: std::io::Error| Failure::internal(format!("failed to start a worker: {error}"));
        let binary = std::env::current_exe().map_err(fault)?;
        let mut child = Command::new(binary)
            .arg("worker")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .map_err(fault)?;
        let orders = child.stdin.take().expect("it was piped");
        let output = child.stdout.take().expect("it was piped");
        let (sender, answers) = mpsc::channel();
        let reader = move || {
            for line in BufReader::new(output).lines() {
                // A line cut short by the worker's end is no answer; the end itself is noticed.
                let Some(answer) = line.ok().and_then(|line| serde_json::from_str(&line).ok()) else { break };
                if sender.send(answer).is_err() {
                    break;
                }
            }
        };
        std::thread::Builder::new().name("answers".into()).spawn(reader).map_err(fault)?;
        Ok(Worker { child, orders, answers, knows: Vec::new() })
    }

    fn order(&mut self, job: Job, cell: &Cell) -> std::io::Result<()> {
        if !self.knows.contains(&job.cell) {
            self.knows.push(job.cell);
            self.write(&Order::Prepare {
                cell: job.cell,
                path: cell.source.path.clone(),
                text: cell.source.text.clone(),
                own_file: cell.source.own_file,
                configuration: cell.configuration.clone(),
                changes: cell.changes.clone(),
            })?;
        }
        self.write(&Order::Run { cell: job.cell, seed: job.seed })
    }

    fn write(&mut self, order: &Order) -> std::io::Result<()> {
        let mut line = serde_json::to_vec(order)?;
        line.push(b'\n');
        self.orders.write_all(&line)?;
        self.orders.flush()
    }

    /// Ends the process and says how it ended, if it had already ended by itself.
    fn end(mut self, by_force: bool) -> Option<String> {
        drop(self.orders);
        let ended = self.child.try_wait().ok().flatten();
        if ended.is_none() && by_force {
            // It may end by itself at the same moment; then there is nothing left to kill.
            let _ = self.child.kill();
        }
        let status = self.child.wait().ok()?;
        (!status.success()).then(|| status.to_string())
    }
}
