//! The simulated network alone: length-prefixed requests and answers between six machines in a ring, through the very
//! streams and the frame reader that the broker uses.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use acked_core::NodeId;
use acked_env::frame::read_frame;
use acked_env::{Env, Listener};
use bytes::{BufMut, BytesMut};
use tokio::io::AsyncWriteExt;

use super::cpu::process_cpu;
use crate::world::{SimEnv, SimStream, WorldSettings, run_in_fresh_thread};

const NODES: i32 = 6;
/// Requests that each machine keeps under way to its neighbour.
const IN_FLIGHT: u64 = 11;
const PORT: u16 = 9092;

/// CPU time of one frame from one machine to another, both ends and the simulation of what is between them, over
/// `requests` requests of `bytes` bytes from each machine and as many answers. `None` where CPU time cannot be read.
pub fn measure(requests: u64, bytes: usize) -> Option<Duration> {
    let started = process_cpu()?;
    let frames = run(requests, bytes);
    let spent = process_cpu()?.checked_sub(started)?;
    Some(spent / u32::try_from(frames).expect("a measurement is shorter than 2^32 frames"))
}

fn run(requests: u64, bytes: usize) -> u64 {
    let result = run_in_fresh_thread(1, WorldSettings::default(), move |world| async move {
        let hosts: Vec<_> = (1..=NODES).map(|node| world.add_broker(NodeId(node))).collect();
        let (done, mut all_done) = tokio::sync::mpsc::unbounded_channel();
        let mut envs = Vec::new();
        for host in &hosts {
            envs.push(world.start(*host, |env: SimEnv| answer(env)).await);
        }
        for (number, env) in envs.iter().enumerate() {
            let neighbour = format!("b{}", (number + 1) % hosts.len() + 1);
            let (done, inside) = (done.clone(), env.clone());
            env.spawn("ask", async move {
                let stream = inside.connect(&neighbour, PORT).await.expect("the neighbour listens");
                let _ = done.send(ask(stream, requests, bytes).await);
            });
        }
        let mut frames = 0;
        for _ in &hosts {
            frames += all_done.recv().await.expect("every machine says how much it sent");
        }
        frames
    });
    result.expect("nothing fails here")
}

async fn answer(env: SimEnv) {
    let address = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), PORT);
    let mut listener = env.listen(address).await.expect("the port is free");
    let (mut stream, _) = listener.accept().await.expect("somebody connects");
    let mut buffer = BytesMut::new();
    while let Ok(Some(frame)) = read_frame(&mut stream, &mut buffer, usize::MAX >> 1).await {
        if write(&mut stream, &frame).await.is_err() {
            break;
        }
    }
    std::future::pending::<()>().await;
}

/// Gives the frames that went to and fro.
async fn ask(mut stream: SimStream, requests: u64, bytes: usize) -> u64 {
    let (request, mut buffer) = (vec![7; bytes], BytesMut::new());
    let (mut sent, mut answered) = (0, 0);
    while answered < requests {
        while sent < requests && sent - answered < IN_FLIGHT {
            write(&mut stream, &request).await.expect("the neighbour lives");
            sent += 1;
        }
        let frame = read_frame(&mut stream, &mut buffer, usize::MAX >> 1).await;
        assert_eq!(frame.expect("the neighbour lives").expect("it answers").len(), bytes);
        answered += 1;
    }
    sent + answered
}

async fn write(stream: &mut SimStream, frame: &[u8]) -> std::io::Result<()> {
    let mut whole = BytesMut::with_capacity(4 + frame.len());
    whole.put_u32(u32::try_from(frame.len()).expect("a frame's length has 32 bits"));
    whole.put_slice(frame);
    stream.write_all(&whole).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_request_is_answered() {
        assert_eq!(run(50, 1024), 50 * 2 * NODES as u64);
    }
}
