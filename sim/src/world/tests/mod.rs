//! Claims about the simulated world, by area. Each runs in a world of its own.

mod determinism;
mod disk;
mod network;
mod process;

use std::future::{Future, poll_fn};
use std::net::{Ipv4Addr, SocketAddr};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use acked_core::NodeId;
use acked_env::{Env, Listener};

use super::{Host, SimEnv, SimStream, World, WorldSettings, run_in_fresh_thread};

const PORT: u16 = 9092;

/// Runs `main` in the world of seed 1 with two brokers and a client.
fn in_world<R, Main>(main: impl FnOnce(World, [Host; 3]) -> Main + Send + 'static) -> R
where
    R: Send + 'static,
    Main: Future<Output = R> + 'static,
{
    in_world_of(1, WorldSettings::default(), main)
}

fn in_world_of<R, Main>(
    seed: u64,
    settings: WorldSettings,
    main: impl FnOnce(World, [Host; 3]) -> Main + Send + 'static,
) -> R
where
    R: Send + 'static,
    Main: Future<Output = R> + 'static,
{
    let settings = WorldSettings { time_limit: Some(Duration::from_secs(3600)), ..settings };
    let result = run_in_fresh_thread(seed, settings, |world| {
        let hosts = [world.add_broker(NodeId(1)), world.add_broker(NodeId(2)), world.add_client("p1")];
        main(world, hosts)
    });
    result.expect("the run ends")
}

/// A process that does nothing but live.
async fn idle(_: SimEnv) {
    std::future::pending::<()>().await;
}

fn any_address() -> SocketAddr {
    SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), PORT)
}

/// A connection between two running processes: the connecting end and the accepted one.
async fn connected(from: &SimEnv, to: &SimEnv, name: &str) -> (SimStream, SimStream) {
    let mut listener = to.listen(any_address()).await.expect("the port is free");
    let stream = from.connect(name, PORT).await.expect("somebody listens");
    let (accepted, _) = listener.accept().await.expect("the connection is established");
    (stream, accepted)
}

/// The result of a future that is ready within `limit` of the world's time.
async fn within<R>(world: &World, limit: Duration, future: impl Future<Output = R>) -> R {
    ready_within(world, limit, future).await.expect("it is ready in time")
}

/// Whether a future is not ready after `limit` of the world's time. Drops it.
async fn still_waits<R>(world: &World, limit: Duration, future: impl Future<Output = R>) -> bool {
    ready_within(world, limit, future).await.is_none()
}

async fn ready_within<R>(world: &World, limit: Duration, future: impl Future<Output = R>) -> Option<R> {
    let mut future = pin!(future);
    let mut sleep = pin!(world.sleep(limit));
    poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(result) => Poll::Ready(Some(result)),
        Poll::Pending => sleep.as_mut().poll(context).map(|()| None),
    })
    .await
}
