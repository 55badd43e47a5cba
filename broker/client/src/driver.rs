//! The one task of a client: hands events to its machine, one at a time, and carries out what the machine asks for.

use std::future::poll_fn;
use std::task::{Context, Poll};

use acked_core::Time;
use acked_core::client::NetworkInput;
use acked_env::{Env, Timer};
use tokio::sync::mpsc;

use crate::transport::Transport;

/// Everything that can happen to a client.
pub(crate) enum Event<Command> {
    Network(NetworkInput),
    Command(Command),
    Deadline,
    /// The handle was dropped.
    Dropped,
}

/// Whether the task goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    Continue,
    End,
}

/// A machine with what its handle waits for.
pub(crate) trait Client: Send + 'static {
    type Command: Send + 'static;

    /// Handles one event and carries out its effects. `Dropped` never comes here.
    fn handle<E: Env>(
        &mut self,
        now: Time,
        event: Event<Self::Command>,
        transport: &mut Transport<E>,
    ) -> Flow;

    fn next_deadline(&self) -> Option<Time>;
}

struct Driver<E: Env, C: Client> {
    env: E,
    client: C,
    transport: Transport<E>,
    mailbox: mpsc::UnboundedReceiver<C::Command>,
    timer: E::Timer,
    /// What the timer is set to: never later than what the machine wants, often earlier, so that it is seldom set.
    armed: Option<Time>,
}

/// Starts a client's task and returns its mailbox. The task ends when the mailbox is dropped or the client says so.
pub(crate) fn start<E: Env, C: Client>(
    env: &E,
    name: &'static str,
    client_id: &str,
    client: C,
) -> mpsc::UnboundedSender<C::Command> {
    let (sender, mailbox) = mpsc::unbounded_channel();
    let transport = Transport::new(env.clone(), client_id);
    let timer = env.timer();
    let driver = Driver { env: env.clone(), client, transport, mailbox, timer, armed: None };
    env.spawn(name, driver.run());
    sender
}

impl<E: Env, C: Client> Driver<E, C> {
    async fn run(mut self) {
        loop {
            let event = poll_fn(|context| self.poll_event(context)).await;
            if matches!(event, Event::Dropped) {
                return;
            }
            let now = self.env.now();
            if self.client.handle(now, event, &mut self.transport) == Flow::End {
                return;
            }
            self.arm();
        }
    }

    /// Answers before commands: they are bounded by what was asked, and commands are not.
    fn poll_event(&mut self, context: &mut Context<'_>) -> Poll<Event<C::Command>> {
        if let Poll::Ready(input) = self.transport.poll_next(context) {
            return Poll::Ready(Event::Network(input));
        }
        if let Poll::Ready(command) = self.mailbox.poll_recv(context) {
            return Poll::Ready(command.map_or(Event::Dropped, Event::Command));
        }
        self.timer.poll_fired(context).map(|()| {
            self.armed = None;
            Event::Deadline
        })
    }

    fn arm(&mut self) {
        let Some(deadline) = self.client.next_deadline() else { return };
        if self.armed.is_none_or(|armed| deadline < armed) {
            self.armed = Some(deadline);
            self.timer.set(self.armed);
        }
    }
}
