//! CPU time of the calling thread and memory of the process, as the kernel accounts them. Only outside a simulation.

use std::time::Duration;

/// CPU time that the calling thread has used. `None` where the kernel does not tell.
pub fn thread_cpu() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace().next()?.parse().ok().map(Duration::from_nanos)
}

/// CPU time that all threads of the process have used, also those that have ended. `None` where the kernel does not
/// tell.
pub fn process_cpu() -> Option<Duration> {
    let spent = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Some(Duration::new(u64::try_from(spent.tv_sec).ok()?, u32::try_from(spent.tv_nsec).ok()?))
}

/// The most memory that the process ever held resident, in KiB. `None` where the kernel does not tell.
pub fn peak_rss_kib() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse().ok()
}
