//! - `node`: one broker on a small disk, and the words to write a story in.
//! - `leader`, `follower`, `produce`, `fetch`, `isr`, `list_offsets`, `epoch_ends`: each rule as a claim.
//! - `seams`: what each mutation does wrong.
//! - `model`: several brokers, a controller and a network against one sentence.

mod epoch_ends;
mod fetch;
mod follower;
mod isr;
mod leader;
mod list_offsets;
mod model;
mod node;
mod produce;
mod seams;
