//! The async shell of a broker or controller: it owns the machines, moves bytes and files, and decides nothing.

mod boot;
mod broker;
mod checkpoints;
mod config;
mod connection;
mod controller;
mod event;
mod files;
mod forward;
mod handlers;
mod link;
mod log_file;
#[cfg(test)]
mod memory_disk;
mod metadata_log;
mod node;
mod quorum_host;
mod requests;
mod shell;

pub use config::{NodeConfig, Role};
pub use files::{BootError, DATA_DIRECTORY, format_if_empty};
pub use node::{Node, NodeError, NodeHandle};
