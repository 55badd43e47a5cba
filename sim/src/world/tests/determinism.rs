//! Same seed, same run; and what one link or fault draws is nobody else's business.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use acked_env::{Disk, Env, File, Listener};
use bytes::Bytes;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{PORT, any_address, connected, idle, in_world, in_world_of};
use crate::world::shared::lock;
use crate::world::trace::{Happening, Travelling};
use crate::world::{CrashKind, Host, SimEnv, World, WorldSettings};

async fn echo(env: SimEnv) {
    let mut listener = env.listen(any_address()).await.expect("the port is free");
    let file = env.disk().open("log", true).await.expect("the root exists");
    let file = Arc::new(file);
    let mut position = file.size().await.expect("the handle is fresh");
    loop {
        let Ok((mut stream, _)) = listener.accept().await else { return };
        let mut buffer = [0; 512];
        while let Ok(size) = stream.read(&mut buffer).await {
            if size == 0 || stream.write_all(&buffer[..size]).await.is_err() {
                break;
            }
            let bytes = Bytes::copy_from_slice(&buffer[..size]);
            if file.write_at(position, bytes).await.is_err() {
                break;
            }
            position += size as u64;
        }
    }
}

async fn talk(env: SimEnv, name: &'static str) {
    use rand_chacha::rand_core::Rng;
    let mut random = env.rng("talk");
    for _ in 0..1000 {
        let Ok(mut stream) = env.connect(name, PORT).await else { continue };
        for _ in 0..50 {
            let question = random.next_u64().to_le_bytes();
            let mut answer = [0; 8];
            if stream.write_all(&question).await.is_err() || stream.read_exact(&mut answer).await.is_err() {
                break;
            }
            assert_eq!(answer, question);
        }
    }
}

/// A short life with every kind of fault; its hash and number of events.
async fn life(world: World, [b1, b2, p1]: [Host; 3]) -> (u64, u64) {
    let second = Duration::from_secs(1);
    for broker in [b1, b2] {
        world.start(broker, echo).await;
    }
    world
        .start(p1, |env| async move {
            env.spawn("second", talk(env.clone(), "b2"));
            talk(env, "b1").await;
        })
        .await;
    world.sleep(second).await;
    let split = world.block(&[p1], &[b1]);
    world.sleep(second).await;
    world.unblock(split);
    world.pause(b2);
    world.sleep(second).await;
    world.resume(b2);
    world.set_clock_drift(p1, 300);
    world.crash(b1, CrashKind::Power);
    world.sleep(second).await;
    world.restart(b1).await;
    world.crash(b2, CrashKind::Process);
    world.restart(b2).await;
    world.sleep(10 * second).await;
    (world.hash(), world.events())
}

fn hash_of(seed: u64) -> (u64, u64) {
    in_world_of(seed, WorldSettings::default(), life)
}

#[test]
fn the_same_seed_gives_the_same_hash_also_on_two_threads_at_once() {
    let first = hash_of(7);
    assert!(first.1 > 5_000, "{} events", first.1);
    assert_eq!(hash_of(7), first);
    let running: Vec<_> =
        (0..2).map(|_| std::thread::Builder::new().spawn(|| hash_of(7)).expect("a thread starts")).collect();
    for thread in running {
        assert_eq!(thread.join().expect("the run ends"), first);
    }
    assert_ne!(hash_of(8).0, first.0);
}

/// The hash of a fixed life under a fixed seed: it must not depend on the build.
#[test]
fn the_hash_is_the_same_in_every_build() {
    assert_eq!(hash_of(7), (KNOWN_HASH, KNOWN_EVENTS));
}

const KNOWN_HASH: u64 = 2660129934478429599;
const KNOWN_EVENTS: u64 = 162_610;

/// Latencies of ten messages from p1 to b1, while p1 talks to b2 as well or not.
fn latencies(with_other_traffic: bool) -> Vec<Duration> {
    in_world(move |world, [b1, b2, p1]| async move {
        let (first, second) = (world.start(b1, idle).await, world.start(b2, idle).await);
        let client = world.start(p1, idle).await;
        let (mut near, mut far) = connected(&client, &first, "b1").await;
        let mut other = connected(&client, &second, "b2").await;
        let flights: Arc<Mutex<Vec<Duration>>> = Arc::default();
        let (noted, mut sent) = (Arc::clone(&flights), Duration::ZERO);
        world.set_log(Some(Box::new(move |now, happening| match happening {
            Happening::Sent { to, .. } if *to == b1 => sent = now,
            Happening::Delivered { to, what: Travelling::Data, .. } if *to == b1 => {
                lock(&noted).push(now - sent)
            }
            _ => {}
        })));
        for _ in 0..10 {
            near.write_all(&[1]).await.expect("the window has room");
            if with_other_traffic {
                other.0.write_all(&[1; 100]).await.expect("the window has room");
                other.1.read_exact(&mut [0; 100]).await.expect("everything arrives");
            }
            far.read_exact(&mut [0]).await.expect("everything arrives");
            world.sleep(Duration::from_millis(100)).await;
        }
        std::mem::take(&mut *lock(&flights))
    })
}

#[test]
fn the_traffic_of_one_link_does_not_shift_the_draws_of_another() {
    let (alone, together) = (latencies(false), latencies(true));
    assert_eq!(alone.len(), 10);
    for (alone, together) in alone.iter().zip(&together) {
        // The executor advances its clock by up to 100 ns a poll; the draws themselves are equal.
        assert!(alone.abs_diff(*together) < Duration::from_micros(5), "{alone:?} {together:?}");
    }
}
