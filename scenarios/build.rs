//! Finds the scenario files, so that adding one needs no other change, and takes the build's identity: a hash of
//! Cargo.lock and of every .rs and .toml file of the packages, whatever the profile.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

const PACKAGES: [&str; 5] = ["broker", "sim", "reports", "scenarios", "ci"];

fn main() -> io::Result<()> {
    let here = PathBuf::from(env::var("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo sets it"));
    let root = here.parent().expect("the package lies in the workspace").to_path_buf();

    fs::write(out.join("catalogue.rs"), catalogue(&here.join("catalogue"))?)?;

    let mut sources = Vec::new();
    for package in PACKAGES {
        println!("cargo:rerun-if-changed={}", root.join(package).display());
        find_files(&root.join(package), &["rs", "toml"], &mut sources)?;
    }
    for name in ["Cargo.lock", "Cargo.toml"] {
        println!("cargo:rerun-if-changed={}", root.join(name).display());
        sources.push(root.join(name));
    }
    sources.sort();
    let mut hash = Fnv::default();
    for source in &sources {
        let name = source.strip_prefix(&root).expect("every source lies in the workspace");
        hash.add(name.to_string_lossy().as_bytes());
        hash.add(&fs::read(source)?);
    }
    println!("cargo:rustc-env=ACKED_BUILD={:07x}", hash.0 >> 36);
    Ok(())
}

/// A slice of entries sorted by name; the folder beneath `catalogue` is the tier.
fn catalogue(folder: &Path) -> io::Result<String> {
    let mut files = Vec::new();
    find_files(folder, &["toml"], &mut files)?;
    files.sort_by_key(|path| path.file_stem().map(|name| name.to_os_string()));
    let mut text = String::from("&[\n");
    for path in &files {
        let name = path.file_stem().expect("it has an extension").to_string_lossy();
        let relative = path.strip_prefix(folder).expect("found beneath it").to_string_lossy();
        writeln!(
            text,
            "    Entry {{ name: {name:?}, path: {:?}, text: include_str!({:?}) }},",
            format!("scenarios/catalogue/{relative}"),
            path.to_string_lossy()
        )
        .expect("a string takes every write");
    }
    text.push(']');
    Ok(text)
}

fn find_files(folder: &Path, extensions: &[&str], found: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            if path.file_name().is_none_or(|name| name != "target") {
                find_files(&path, extensions, found)?;
            }
        } else if path.extension().is_some_and(|found| extensions.iter().any(|wanted| found == *wanted)) {
            found.push(path);
        }
    }
    Ok(())
}

/// FNV-1a of 64 bits, with the length after every part so that parts do not run into each other.
struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Fnv(0xcbf2_9ce4_8422_2325)
    }
}

impl Fnv {
    fn add(&mut self, part: &[u8]) {
        for byte in part.iter().chain(&(part.len() as u64).to_be_bytes()) {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}
