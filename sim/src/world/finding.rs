//! Tasks that came to a bad end, as findings: what a node's code asserted and did not hold, and what went round for ever.
//! Decides nothing else.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::panic::PanicHookInfo;
use std::sync::Once;
use std::time::Duration;

use super::host::Host;

/// How a task came to a bad end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    Panic,
    /// It ran again and again without waiting for anything that takes time.
    Spin,
}

/// A task of a node (or of the world itself, without a host) came to a bad end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskFailure {
    pub kind: FailureKind,
    pub host: Option<Host>,
    /// The host's name.
    pub name: Option<String>,
    pub task: &'static str,
    /// Since the start of the world.
    pub at: Duration,
    /// What happened; of a panic the message, with its place in the source where that is known.
    pub message: String,
}

thread_local! {
    static SIMULATED: Cell<bool> = const { Cell::new(false) };
    static LAST: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// From now on, panics on this thread are kept for [`panic_message`] instead of being printed.
pub(super) fn keep_panics_of_this_thread() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let previous = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if SIMULATED.get() {
                LAST.set(Some(describe(panic)));
            } else {
                previous(panic);
            }
        }));
    });
    SIMULATED.set(true);
}

fn describe(panic: &PanicHookInfo<'_>) -> String {
    let message = text(panic.payload());
    match panic.location() {
        Some(place) => format!("{message} ({}:{})", place.file(), place.line()),
        None => message,
    }
}

/// The message of the panic that was just caught, with its place if [`keep_panics_of_this_thread`] was called.
pub(super) fn panic_message(payload: &(dyn Any + Send)) -> String {
    LAST.take().unwrap_or_else(|| text(payload))
}

fn text(payload: &(dyn Any + Send)) -> String {
    let message = payload.downcast_ref::<&str>().map(|message| (*message).to_owned());
    let message = message.or_else(|| payload.downcast_ref::<String>().cloned());
    message.unwrap_or_else(|| "panic without a message".to_owned())
}
