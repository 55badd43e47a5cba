//! The layer check: fails on a dependency that points up, on a name that a package must never contain, and on what the
//! house style bans. Every complaint is `file:line: what is wrong`. Knows the rules of design only; runs no product code.

mod arrows;
mod names;
mod source;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The workspace this package was built from.
fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the package lies in the workspace").to_path_buf()
}

/// Everything that is wrong, sorted.
fn complaints(root: &Path) -> std::io::Result<Vec<String>> {
    let mut complaints = arrows::check(root)?;
    complaints.extend(names::check(root)?);
    complaints.sort();
    complaints.dedup();
    Ok(complaints)
}

fn main() -> ExitCode {
    match complaints(&workspace()) {
        Ok(complaints) if complaints.is_empty() => {
            println!("layers hold");
            ExitCode::SUCCESS
        }
        Ok(complaints) => {
            for complaint in &complaints {
                eprintln!("{complaint}");
            }
            eprintln!("{} complaints", complaints.len());
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("failed to read the workspace: {error}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_workspace_keeps_its_layers() {
        let complaints = complaints(&workspace()).expect("the workspace is readable");
        assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
    }
}
