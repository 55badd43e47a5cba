//! The simulated disk of one machine: a page cache apart from the platter.
//!
//! ```text
//! write_at, truncate ─▶ cache of the file ──File::sync──▶ platter      (contents and size, per file)
//! create, rename, remove ─▶ names in cache ──sync_directory──▶ durable  (names, per directory)
//! ```
//!
//! A killed process leaves cache and names as they are. Power loss keeps what was synced, and of the rest a random
//! subset: each page (or sector), each size and each change of a name on its own.
//!
//! - [`content`]: the bytes of one file
//! - [`names`]: the tree of names
//! - [`state`]: a whole disk and its operations, told to the [`super::tap::DiskTap`]
//! - [`handle`]: what the nodes hold

pub(super) mod content;
pub(super) mod handle;
pub(super) mod names;
pub(super) mod state;

pub(super) use handle::DiskShared;
pub use handle::{SimDisk, SimFile};
pub use state::{DiskEffects, DiskSettings};
