use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{connected, idle, in_world};

#[test]
fn data_written_arrives_in_order_after_a_latency() {
    in_world(|world, [b1, _, p1]| async move {
        let (server, client) = (world.start(b1, idle).await, world.start(p1, idle).await);
        let (mut near, mut far) = connected(&client, &server, "b1").await;
        let sent: Vec<u8> = (0..100_000_u32).map(|number| number as u8).collect();
        let before = world.now();
        near.write_all(&sent).await.expect("the window has room");
        let mut received = vec![0; sent.len()];
        far.read_exact(&mut received).await.expect("everything arrives");
        assert_eq!(received, sent);
        assert!(world.now() - before >= Duration::from_micros(200));
    });
}
