//! Claims about the simulated world, by area. Each runs in a world of its own.

mod network;

use std::future::Future;
use std::net::{Ipv4Addr, SocketAddr};
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
