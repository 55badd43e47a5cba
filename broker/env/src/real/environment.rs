//! One process's real world. Everything that needs a runtime is called from within one.

use std::future::{Future, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::pin::pin;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rand::TryRng;
use rand::rngs::SysRng;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use tokio::net::TcpStream;
use tokio::time::Instant;

use super::{TokioDisk, TokioListener, TokioTimer, network};
use crate::Env;

/// Exit status of a process in which a task panicked: that of any panic in Rust.
const PANICKED: i32 = 101;

/// See the file's header. Clones share root, origin of time and randomness.
#[derive(Clone, Debug)]
pub struct TokioEnv {
    root: PathBuf,
    origin: Instant,
    /// Every purpose draws from a stream of its own under this key.
    key: [u8; 32],
}

impl TokioEnv {
    /// A world whose files lie below `root`, and whose randomness follows from `seed`, or from the operating system.
    ///
    /// # Errors
    /// When there is no seed and the operating system gives no entropy.
    pub fn new(root: impl Into<PathBuf>, seed: Option<u64>) -> io::Result<TokioEnv> {
        let mut key = [0; 32];
        match seed {
            Some(seed) => key[..8].copy_from_slice(&seed.to_le_bytes()),
            None => SysRng.try_fill_bytes(&mut key).map_err(io::Error::other)?,
        }
        Ok(TokioEnv { root: root.into(), origin: Instant::now(), key })
    }
}

impl Env for TokioEnv {
    type Stream = TcpStream;
    type Listener = TokioListener;
    type Disk = TokioDisk;
    type Timer = TokioTimer;

    async fn listen(&self, address: SocketAddr) -> io::Result<TokioListener> {
        TokioListener::bind(address).await
    }

    async fn connect(&self, host: &str, port: u16) -> io::Result<TcpStream> {
        network::connect(host, port).await
    }

    fn disk(&self) -> TokioDisk {
        TokioDisk::new(self.root.clone())
    }

    fn now(&self) -> Duration {
        self.origin.elapsed()
    }

    fn wall_clock_ms(&self) -> i64 {
        #[expect(clippy::disallowed_methods, reason = "this is the wall clock that Env promises")]
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH);
        let milliseconds = |duration: Duration| i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
        match since_1970 {
            Ok(after) => milliseconds(after),
            Err(before) => -milliseconds(before.duration()),
        }
    }

    fn timer(&self) -> TokioTimer {
        TokioTimer::new(self.origin)
    }

    fn spawn(&self, name: &'static str, task: impl Future<Output = ()> + Send + 'static) {
        tokio::spawn(async move {
            let mut task = pin!(task);
            poll_fn(|context| {
                // The panic hook has told where; a node that lost a task must not go on half alive.
                catch_unwind(AssertUnwindSafe(|| task.as_mut().poll(context))).unwrap_or_else(|_| {
                    eprintln!("acked: the task {name:?} panicked, so the process ends");
                    std::process::exit(PANICKED)
                })
            })
            .await;
        });
    }

    fn rng(&self, purpose: &str) -> ChaCha8Rng {
        let mut rng = ChaCha8Rng::from_seed(self.key);
        rng.set_stream(stream_of(purpose));
        rng
    }
}

/// FNV-1a: purposes are few and short, and their streams only have to differ.
fn stream_of(purpose: &str) -> u64 {
    purpose
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use rand_chacha::rand_core::Rng;
    use tokio::runtime::Builder;

    use super::*;

    /// Set in the child process of the test below.
    const CHILD: &str = "ACKED_ENV_TEST_PANICKING_CHILD";

    fn draws(env: &TokioEnv, purpose: &str) -> [u64; 4] {
        let mut rng = env.rng(purpose);
        [(); 4].map(|()| rng.next_u64())
    }

    #[test]
    fn every_purpose_has_a_stream_of_its_own() {
        let env = TokioEnv::new("unused", Some(7)).expect("a seed needs no entropy");
        assert_eq!(draws(&env, "election"), draws(&env.clone(), "election"));
        assert_ne!(draws(&env, "election"), draws(&env, "backoff"));
        let other = TokioEnv::new("unused", Some(8)).expect("a seed needs no entropy");
        assert_ne!(draws(&env, "election"), draws(&other, "election"));
    }

    #[test]
    fn two_worlds_without_a_seed_differ() {
        let [one, other] = [(); 2].map(|()| TokioEnv::new("unused", None).expect("entropy"));
        assert_ne!(draws(&one, "election"), draws(&other, "election"));
    }

    #[test]
    fn clocks_move_on() {
        let env = TokioEnv::new("unused", Some(0)).expect("a seed needs no entropy");
        let (before, wall) = (env.now(), env.wall_clock_ms());
        assert!(wall > 1_700_000_000_000, "later than this was written");
        assert!(env.now() >= before);
    }

    #[test]
    fn panic_in_a_task_ends_the_process() {
        if std::env::var_os(CHILD).is_some() {
            let runtime = Builder::new_current_thread().build().expect("a runtime");
            runtime.block_on(async {
                let env = TokioEnv::new("unused", Some(0)).expect("a seed needs no entropy");
                env.spawn("doomed", async { panic!("on purpose") });
                std::future::pending::<()>().await;
            });
        }
        let child = Command::new(std::env::current_exe().expect("this test's binary"))
            .args(["--exact", "--nocapture", "real::environment::tests::panic_in_a_task_ends_the_process"])
            .env(CHILD, "1")
            .output()
            .expect("the child ran");
        let told = String::from_utf8_lossy(&child.stderr);
        assert!(told.contains("the task \"doomed\" panicked"), "{told}");
        assert_eq!(child.status.code(), Some(PANICKED));
    }
}
