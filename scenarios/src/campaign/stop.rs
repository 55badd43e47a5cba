//! How a campaign is asked to end early. Shared by the signal thread, the pool and whoever consumes results.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::exit::{Exit, Failure};
use crate::output;

/// Running seeds end, no further ones start.
const DRAIN: u8 = 1;
/// Running seeds are ended.
const ABORT: u8 = 2;

#[derive(Clone, Debug, Default)]
pub struct Stop {
    asked: Arc<AtomicU8>,
    /// The signal that came; 0 for none. It also means that nothing further starts.
    signal: Arc<AtomicU8>,
}

impl Stop {
    /// For the next pool of the same command: only a signal is remembered.
    pub fn afresh(&self) -> Stop {
        Stop { asked: Arc::default(), signal: self.signal.clone() }
    }

    /// No further seeds.
    pub fn drain(&self) {
        self.asked.fetch_max(DRAIN, Ordering::SeqCst);
    }

    /// Now.
    pub fn abort(&self) {
        self.asked.fetch_max(ABORT, Ordering::SeqCst);
    }

    pub fn is_draining(&self) -> bool {
        self.asked.load(Ordering::SeqCst) >= DRAIN || self.signal.load(Ordering::SeqCst) != 0
    }

    pub fn is_aborting(&self) -> bool {
        self.asked.load(Ordering::SeqCst) == ABORT
    }

    /// How a signal wants the process to end, if one came.
    pub fn signalled(&self) -> Option<Exit> {
        match i32::from(self.signal.load(Ordering::SeqCst)) {
            SIGINT => Some(Exit::Interrupted),
            SIGTERM => Some(Exit::Terminated),
            _ => None,
        }
    }

    /// From now on the first interrupt or termination lets running seeds finish, the second ends the process.
    ///
    /// # Errors
    /// A system that gives no signal handler.
    pub fn listen(&self) -> Result<(), Failure> {
        let fault = |error| Failure::internal(format!("failed to listen for signals: {error}"));
        let mut signals = Signals::new([SIGINT, SIGTERM]).map_err(fault)?;
        let stop = self.clone();
        let listener = move || {
            for signal in signals.forever() {
                let exit = if signal == SIGINT { Exit::Interrupted } else { Exit::Terminated };
                if stop.signal.swap(signal as u8, Ordering::SeqCst) != 0 {
                    // Workers end with their input, which closes with this process.
                    std::process::exit(i32::from(exit.code()));
                }
                output::say("\nstopping: running seeds finish; once more to stop now");
            }
        };
        std::thread::Builder::new().name("signals".into()).spawn(listener).map_err(fault)?;
        Ok(())
    }
}
