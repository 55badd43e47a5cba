//! What real TCP does under faults, and this network too.

use std::io::ErrorKind;
use std::time::Duration;

use acked_env::{Env, Listener};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{PORT, any_address, connected, idle, in_world, in_world_of, still_waits, within};
use std::collections::BTreeSet;

use crate::world::{Catch, CrashKind, Filter, Host, NetworkSettings, Speech, World, WorldSettings};

const SECOND: Duration = Duration::from_secs(1);

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

#[test]
fn data_and_fin_written_under_a_split_arrive_after_it_heals() {
    in_world(|world, [b1, _, p1]| async move {
        let (server, client) = (world.start(b1, idle).await, world.start(p1, idle).await);
        let (mut near, mut far) = connected(&client, &server, "b1").await;
        world.sleep(Duration::from_millis(100)).await;
        let split = world.block(&[p1], &[b1]);
        near.write_all(b"late").await.expect("the window has room");
        drop(near);
        let mut received = Vec::new();
        assert!(still_waits(&world, SECOND, far.read_to_end(&mut received)).await);
        world.unblock(split);
        let healed = world.now();
        far.read_to_end(&mut received).await.expect("data and FIN arrive");
        assert_eq!(received, b"late");
        let delay = world.now() - healed;
        assert!(
            delay > Duration::from_millis(300),
            "the next retransmission comes after 1.4 s, not {delay:?}"
        );
        assert!(
            delay < Duration::from_millis(500),
            "the next retransmission comes after 1.4 s, not {delay:?}"
        );
    });
}

#[test]
fn a_shut_down_direction_ends_while_the_other_goes_on() {
    in_world(|world, [b1, _, p1]| async move {
        let (server, client) = (world.start(b1, idle).await, world.start(p1, idle).await);
        let (mut near, mut far) = connected(&client, &server, "b1").await;
        near.write_all(b"question").await.expect("the window has room");
        near.shutdown().await.expect("the connection is open");
        let mut question = Vec::new();
        far.read_to_end(&mut question).await.expect("FIN arrives");
        far.write_all(b"answer").await.expect("this direction is open");
        drop(far);
        let mut answer = Vec::new();
        near.read_to_end(&mut answer).await.expect("FIN arrives");
        assert_eq!((&question[..], &answer[..]), (&b"question"[..], &b"answer"[..]));
        let error = near.write_all(b"more").await.expect_err("this end was shut down");
        assert_eq!(error.kind(), ErrorKind::BrokenPipe);
    });
}

#[test]
fn connecting_under_a_split_hangs_and_succeeds_after_it_heals() {
    in_world(|world, [b1, _, p1]| async move {
        let (server, client) = (world.start(b1, idle).await, world.start(p1, idle).await);
        let listener = server.listen(any_address()).await.expect("the port is free");
        for (from, to) in [(p1, b1), (b1, p1)] {
            let split = world.block(&[from], &[to]);
            assert!(still_waits(&world, 20 * SECOND, client.connect("b1", PORT)).await);
            world.unblock(split);
            assert!(within(&world, 5 * SECOND, client.connect("b1", PORT)).await.is_ok());
        }
        drop(listener);
    });
}

#[test]
fn an_attempt_begun_under_a_split_is_repeated() {
    in_world(|world, [b1, _, p1]| async move {
        let (server, client) = (world.start(b1, idle).await, world.start(p1, idle).await);
        let _listener = server.listen(any_address()).await.expect("the port is free");
        let split = world.block(&[p1], &[b1]);
        let world_of_healer = world.clone();
        world.spawn("healer", async move {
            world_of_healer.sleep(2 * SECOND).await;
            world_of_healer.unblock(split);
        });
        let before = world.now();
        client.connect("b1", PORT).await.expect("the third attempt gets through");
        let took = world.now() - before;
        assert!(took > 3 * SECOND && took < Duration::from_millis(3_300), "{took:?}");
    });
}

#[test]
fn connecting_is_refused_where_nobody_listens_and_hangs_where_there_is_no_power() {
    in_world(|world, [b1, b2, p1]| async move {
        world.start(b1, idle).await;
        let client = world.start(p1, idle).await;
        for name in ["b1", "10.0.0.2"] {
            let refused = within(&world, SECOND, client.connect(name, PORT)).await;
            assert_eq!(refused.err().map(|error| error.kind()), Some(ErrorKind::ConnectionRefused));
        }
        world.crash(b2, CrashKind::Power);
        assert!(still_waits(&world, 60 * SECOND, client.connect("b2", PORT)).await);
        let unknown = client.connect("b9", PORT).await.err().map(|error| error.kind());
        assert_eq!(unknown, Some(ErrorKind::NotFound));
    });
}

#[test]
fn power_loss_leaves_a_peer_half_open_until_it_writes_to_the_reborn_machine() {
    in_world(|world, [b1, _, p1]| async move {
        let (server, client) = (world.start(b1, idle).await, world.start(p1, idle).await);
        let (mut near, far) = connected(&client, &server, "b1").await;
        world.crash(b1, CrashKind::Power);
        let mut byte = [0];
        assert!(still_waits(&world, 60 * SECOND, near.read(&mut byte)).await);
        world.restart(b1).await;
        assert!(still_waits(&world, 60 * SECOND, near.read(&mut byte)).await);
        near.write_all(b"hello?").await.expect("this end knows nothing yet");
        let error = within(&world, SECOND, near.read(&mut byte)).await.expect_err("the machine answers");
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
        drop(far);
    });
}

#[test]
fn a_writer_gives_up_on_a_machine_without_power() {
    in_world(|world, [b1, _, p1]| async move {
        let (server, client) = (world.start(b1, idle).await, world.start(p1, idle).await);
        let (mut near, _far) = connected(&client, &server, "b1").await;
        world.crash(b1, CrashKind::Power);
        near.write_all(b"anyone?").await.expect("this end knows nothing yet");
        let mut byte = [0];
        assert!(still_waits(&world, 15 * SECOND, near.read(&mut byte)).await);
        let error = within(&world, 16 * SECOND, near.read(&mut byte)).await.expect_err("it gives up");
        assert_eq!(error.kind(), ErrorKind::TimedOut);
        assert_eq!(world.network_counters().gave_up, 1);
    });
}

#[test]
fn a_killed_process_resets_what_it_had_not_read_and_ends_the_rest() {
    in_world(|world, [b1, _, p1]| async move {
        let (server, client) = (world.start(b1, idle).await, world.start(p1, idle).await);
        let mut listener = server.listen(any_address()).await.expect("the port is free");
        let mut unread = client.connect("b1", PORT).await.expect("somebody listens");
        let (_first, _) = listener.accept().await.expect("it is established");
        let mut silent = client.connect("b1", PORT).await.expect("somebody listens");
        let (_second, _) = listener.accept().await.expect("it is established");
        unread.write_all(b"unread").await.expect("the window has room");
        world.sleep(SECOND).await;
        world.crash(b1, CrashKind::Process);
        let mut byte = [0];
        let error = within(&world, SECOND, unread.read(&mut byte)).await.expect_err("RST arrives");
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
        assert_eq!(within(&world, SECOND, silent.read(&mut byte)).await.expect("FIN arrives"), 0);
        silent.write_all(b"anyone?").await.expect("this direction is open");
        let error = within(&world, SECOND, silent.read(&mut byte)).await;
        assert_eq!(error.expect("FIN came first"), 0, "a reader that saw the end still sees it");
        world.sleep(SECOND).await;
        let error = silent.write_all(b"anyone?").await.expect_err("the kernel answered with RST");
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    });
}

#[test]
fn what_had_not_left_a_machine_without_power_is_lost() {
    in_world(|world, [b1, _, p1]| async move {
        let (server, client) = (world.start(b1, idle).await, world.start(p1, idle).await);
        let (mut near, mut far) = connected(&client, &server, "b1").await;
        world.sleep(SECOND).await;
        near.write_all(b"arrives").await.expect("the window has room");
        world.sleep(SECOND).await;
        let split = world.block(&[p1], &[b1]);
        near.write_all(b"never").await.expect("the window has room");
        world.sleep(SECOND).await;
        world.crash(p1, CrashKind::Power);
        world.unblock(split);
        let mut received = Vec::new();
        assert!(still_waits(&world, 60 * SECOND, far.read_to_end(&mut received)).await);
        assert_eq!(received, b"arrives");
    });
}

#[test]
fn a_writer_waits_when_its_reader_is_idle_and_goes_on_when_it_reads() {
    in_world(|world, [b1, _, p1]| async move {
        let (server, client) = (world.start(b1, idle).await, world.start(p1, idle).await);
        let (mut near, mut far) = connected(&client, &server, "b1").await;
        let window = 256 * 1024;
        near.write_all(&vec![1; window]).await.expect("the window has room");
        assert!(still_waits(&world, 60 * SECOND, near.write(&[2])).await);
        let mut received = vec![0; window];
        far.read_exact(&mut received).await.expect("everything arrives");
        within(&world, SECOND, near.write(&[2])).await.expect("the window has room again");
    });
}

#[test]
fn a_one_way_block_stops_one_direction_and_both_ends_notice_in_time() {
    in_world(|world, [b1, _, p1]| async move {
        let (server, client) = (world.start(b1, idle).await, world.start(p1, idle).await);
        let (mut near, mut far) = connected(&client, &server, "b1").await;
        world.sleep(SECOND).await;
        let block = world.block(&[b1], &[p1]);
        near.write_all(b"there").await.expect("the window has room");
        let mut there = [0; 5];
        within(&world, SECOND, far.read_exact(&mut there)).await.expect("this direction is open");
        far.write_all(b"back").await.expect("the window has room");
        let mut back = [0; 4];
        assert!(still_waits(&world, 10 * SECOND, near.read_exact(&mut back)).await);
        let near_error = within(&world, 25 * SECOND, near.read_exact(&mut back)).await;
        assert_eq!(near_error.expect_err("no acknowledgement comes").kind(), ErrorKind::TimedOut);
        let far_error = within(&world, 25 * SECOND, far.read(&mut back)).await;
        assert_eq!(far_error.expect_err("no acknowledgement comes").kind(), ErrorKind::TimedOut);
        world.unblock(block);
    });
}

#[test]
fn overlapping_blocks_of_a_link_are_lifted_one_by_one() {
    in_world(|world, [b1, b2, p1]| async move {
        let (server, client) = (world.start(b1, idle).await, world.start(p1, idle).await);
        let _listener = server.listen(any_address()).await.expect("the port is free");
        let first = world.block(&[p1], &[b1, b2]);
        let second = world.block(&[p1, b2], &[b1]);
        world.unblock(first);
        world.unblock(first);
        assert!(still_waits(&world, 10 * SECOND, client.connect("b1", PORT)).await);
        world.unblock(second);
        within(&world, SECOND, client.connect("b1", PORT)).await.expect("the way is free");
    });
}

#[test]
fn a_paused_process_accepts_by_its_kernel_and_reads_after_it_resumes() {
    in_world(|world, [b1, _, p1]| async move {
        let client = world.start(p1, idle).await;
        world
            .start(b1, |env| async move {
                let mut listener = env.listen(any_address()).await.expect("the port is free");
                let (mut stream, _) = listener.accept().await.expect("it is established");
                let mut question = [0; 4];
                stream.read_exact(&mut question).await.expect("the client writes");
                stream.write_all(&question).await.expect("the window has room");
                std::future::pending::<()>().await;
            })
            .await;
        world.sleep(SECOND).await;
        world.pause(b1);
        let mut stream =
            within(&world, SECOND, client.connect("b1", PORT)).await.expect("the kernel accepts");
        stream.write_all(b"ping").await.expect("the window has room");
        let mut answer = [0; 4];
        assert!(still_waits(&world, 60 * SECOND, stream.read_exact(&mut answer)).await);
        world.resume(b1);
        within(&world, SECOND, stream.read_exact(&mut answer)).await.expect("the process answers");
    });
}

#[test]
fn attempts_beyond_the_backlog_hang() {
    in_world(|world, [b1, _, p1]| async move {
        let (server, client) = (world.start(b1, idle).await, world.start(p1, idle).await);
        let mut listener = server.listen(any_address()).await.expect("the port is free");
        let mut waiting = Vec::new();
        for _ in 0..128 {
            waiting.push(client.connect("b1", PORT).await.expect("the backlog has room"));
        }
        world.sleep(SECOND).await;
        assert!(still_waits(&world, 10 * SECOND, client.connect("b1", PORT)).await);
        listener.accept().await.expect("a connection waits");
        within(&world, SECOND, client.connect("b1", PORT)).await.expect("the backlog has room");
    });
}

#[test]
fn loss_delays_and_never_reorders_or_tears_a_hole() {
    in_world(|world, [b1, _, p1]| async move {
        let (server, client) = (world.start(b1, idle).await, world.start(p1, idle).await);
        let (mut near, mut far) = connected(&client, &server, "b1").await;
        world.set_link(p1, b1, |link| link.loss_per_million = 300_000);
        let before = world.now();
        for number in 0..100_u8 {
            near.write_all(&[number; 100]).await.expect("the window has room");
            world.sleep(Duration::from_millis(1)).await;
        }
        let mut received = vec![0; 100 * 100];
        far.read_exact(&mut received).await.expect("everything arrives");
        assert!(received.chunks(100).enumerate().all(|(number, chunk)| chunk == [number as u8; 100]));
        assert!(world.now() - before > Duration::from_millis(300), "something was sent again");
    });
}

#[test]
fn bandwidth_bounds_how_fast_bytes_leave() {
    in_world(|world, [b1, _, p1]| async move {
        let (server, client) = (world.start(b1, idle).await, world.start(p1, idle).await);
        let (mut near, mut far) = connected(&client, &server, "b1").await;
        world.set_link(p1, b1, |link| link.bandwidth = Some(100_000));
        let before = world.now();
        near.write_all(&[1; 200_000]).await.expect("the window has room");
        far.read_exact(&mut vec![0; 200_000]).await.expect("everything arrives");
        let took = world.now() - before;
        assert!(took >= 2 * SECOND && took < 3 * SECOND, "{took:?}");
    });
}

#[test]
fn a_port_is_bound_once_and_free_again_after_the_process() {
    in_world(|world, [b1, _, _]| async move {
        let server = world.start(b1, idle).await;
        let listener = server.listen(any_address()).await.expect("the port is free");
        assert_eq!(listener.local_address().to_string(), "10.0.0.1:9092");
        let again = server.listen(any_address()).await.err().map(|error| error.kind());
        assert_eq!(again, Some(ErrorKind::AddrInUse));
        world.crash(b1, CrashKind::Process);
        let reborn = world.restart(b1).await;
        let second = reborn.listen(any_address()).await.expect("the kernel closed the listener");
        drop(listener);
        let again = reborn.listen(any_address()).await.err().map(|error| error.kind());
        assert_eq!(again, Some(ErrorKind::AddrInUse), "an old listener closes only itself");
        drop(second);
    });
}

#[test]
fn connections_are_forgotten_once_both_ends_are_done() {
    in_world(|world, [b1, _, p1]| async move {
        let (server, client) = (world.start(b1, idle).await, world.start(p1, idle).await);
        for _ in 0..20 {
            let (mut near, far) = connected(&client, &server, "b1").await;
            near.write_all(b"unread").await.expect("the window has room");
            drop(far);
            drop(near);
        }
        let split = world.block(&[p1], &[b1]);
        assert!(still_waits(&world, SECOND, client.connect("b1", PORT)).await);
        world.unblock(split);
        world.sleep(10 * SECOND).await;
        assert_eq!(world.open_connections(), 0);
        assert_eq!(world.open_timers(), 0);
    });
}

/// A request of 12 bytes, or an answer of 8, with this API key and correlation id.
fn request(api_key: i16, correlation: i32) -> Vec<u8> {
    let key = api_key.to_be_bytes();
    [&8_i32.to_be_bytes()[..], &key, &[0, 0], &correlation.to_be_bytes()].concat()
}

fn answer(correlation: i32) -> Vec<u8> {
    [4_i32.to_be_bytes(), correlation.to_be_bytes()].concat()
}

fn in_followed_world<R: Send + 'static, Main: Future<Output = R> + 'static>(
    main: impl FnOnce(World, [Host; 3]) -> Main + Send + 'static,
) -> R {
    let network = NetworkSettings { follow_frames: true, ..NetworkSettings::default() };
    in_world_of(1, WorldSettings { network, ..WorldSettings::default() }, main)
}

fn answers_to(api_key: i16, from: Host, to: Host, catch: Catch) -> Filter {
    let speech = Speech::Answers;
    let (from, to) = (BTreeSet::from([from]), BTreeSet::from([to]));
    Filter { from, to, speech, api_key: Some(api_key), catch, times: 1 }
}

#[test]
fn answer_that_is_caught_is_lost_with_its_connection_and_the_request_had_arrived() {
    for catch in [Catch::Reset, Catch::Close] {
        in_followed_world(move |world, [b1, _, p1]| async move {
            let (server, client) = (world.start(b1, idle).await, world.start(p1, idle).await);
            let (mut near, mut far) = connected(&client, &server, "b1").await;
            let filter = world.filter(answers_to(0, b1, p1, catch));
            for (api_key, correlation) in [(3, 1), (0, 2)] {
                near.write_all(&request(api_key, correlation)).await.expect("the window has room");
                far.read_exact(&mut [0; 12]).await.expect("the request arrives");
                far.write_all(&answer(correlation)).await.expect("the window has room");
                if api_key == 3 {
                    near.read_exact(&mut [0; 8]).await.expect("another answer arrives");
                }
            }
            let mut rest = Vec::new();
            let ended = within(&world, SECOND, near.read_to_end(&mut rest)).await;
            match catch {
                Catch::Close => assert!(ended.is_ok() && rest.len() == 4, "{ended:?} {rest:?}"),
                _ => assert_eq!(ended.expect_err("it was reset").kind(), ErrorKind::ConnectionReset),
            }
            assert!(near.write_all(&[1]).await.is_err());
            let ended = within(&world, SECOND, far.read(&mut [0; 8])).await;
            assert_eq!(ended.is_ok(), catch == Catch::Close, "the other end hears of it too");
            assert_eq!(world.block_effects(filter), 1);
            drop((near, far));
            world.sleep(SECOND).await;
            assert_eq!(world.open_connections(), 0);
        });
    }
}

#[test]
fn message_that_is_held_waits_with_what_is_behind_it_until_the_filter_is_lifted() {
    in_followed_world(|world, [b1, _, p1]| async move {
        let (server, client) = (world.start(b1, idle).await, world.start(p1, idle).await);
        let (mut near, mut far) = connected(&client, &server, "b1").await;
        let speech = Speech::Requests;
        let (from, to) = (BTreeSet::from([p1]), BTreeSet::from([b1]));
        let (catch, times) = (Catch::Hold, u64::MAX);
        let filter = world.filter(Filter { from, to, speech, api_key: Some(56), catch, times });
        near.write_all(&request(1, 1)).await.expect("the window has room");
        within(&world, SECOND, far.read_exact(&mut [0; 12])).await.expect("others pass");
        world.sleep(SECOND).await;
        for (api_key, correlation) in [(56, 2), (1, 3)] {
            near.write_all(&request(api_key, correlation)).await.expect("the window has room");
            world.sleep(Duration::from_millis(10)).await;
        }
        let mut both = [0; 24];
        assert!(still_waits(&world, SECOND, far.read_exact(&mut both)).await);
        world.unblock(filter);
        within(&world, 4 * SECOND, far.read_exact(&mut both)).await.expect("both arrive");
        assert_eq!(both[..], [request(56, 2), request(1, 3)].concat());
        assert_eq!(world.block_effects(filter), 1);
    });
}

#[test]
fn a_block_counts_what_it_held_up_itself() {
    in_world(|world, [b1, b2, p1]| async move {
        let (server, client) = (world.start(b1, idle).await, world.start(p1, idle).await);
        let (mut near, _far) = connected(&client, &server, "b1").await;
        world.sleep(SECOND).await;
        let (one, other) = (world.block(&[p1], &[b1]), world.block(&[p1], &[b2]));
        near.write_all(b"late").await.expect("the window has room");
        world.sleep(SECOND).await;
        assert_eq!((world.block_effects(one), world.block_effects(other)), (1, 0));
        world.unblock(one);
        assert_eq!(world.block_effects(one), 1, "it is told after the heal too");
    });
}

#[test]
fn connections_that_are_broken_at_once_are_gone_at_both_ends() {
    in_world(|world, [b1, b2, p1]| async move {
        let (server, client) = (world.start(b1, idle).await, world.start(p1, idle).await);
        let (mut near, mut far) = connected(&client, &server, "b1").await;
        world.sleep(SECOND).await;
        assert_eq!(world.break_connections(&[p1], &[b2], true), 0);
        assert_eq!(world.break_connections(&[p1], &[b1], true), 1);
        for stream in [&mut near, &mut far] {
            let error = stream.read(&mut [0; 1]).await.expect_err("it was reset");
            assert_eq!(error.kind(), ErrorKind::ConnectionReset);
        }
    });
}
