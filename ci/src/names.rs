//! Names that a package must never contain, and what the style bans everywhere. Tests are held to less: they may read
//! golden files and start threads.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::source::{Source, has_word};

/// Words that are banned in the folders of `within`, but not in those of `except`.
struct Ban {
    words: &'static [&'static str],
    within: &'static [&'static str],
    except: &'static [&'static str],
    in_tests_too: bool,
    why: &'static str,
}

const EVERYWHERE: &[&str] = &["broker", "sim", "reports", "scenarios", "ci"];

const BANS: &[Ban] = &[
    Ban {
        words: &["madsim"],
        within: EVERYWHERE,
        except: &["sim"],
        in_tests_too: true,
        why: "only sim names madsim",
    },
    Ban {
        words: &["tokio::net", "tokio::time", "tokio::fs", "tokio::spawn", "tokio::task", "tokio::runtime"],
        within: EVERYWHERE,
        except: &["broker/env"],
        in_tests_too: false,
        why: "only env names tokio's net, time, fs and spawn",
    },
    Ban {
        words: &["HashMap", "HashSet", "RandomState"],
        within: EVERYWHERE,
        except: &[],
        in_tests_too: true,
        why: "its order differs between runs",
    },
    Ban {
        words: &["Instant::now", "SystemTime::now", "SystemTime"],
        within: EVERYWHERE,
        except: &["broker/env", "scenarios/src/stopwatch.rs"],
        in_tests_too: false,
        why: "time comes from Env; the command's own is in scenarios/src/stopwatch.rs",
    },
    Ban {
        words: &["thread::spawn"],
        within: EVERYWHERE,
        except: &[],
        in_tests_too: true,
        why: "tasks are spawned through Env, threads are named by thread::Builder",
    },
    Ban {
        words: &[
            "async",
            ".await",
            "std::fs",
            "std::net",
            "std::io",
            "std::thread",
            "std::process",
            "std::env",
            "std::time::Instant",
            "Mutex",
            "RwLock",
            "RefCell",
            "Atomic",
            "println!",
            "eprintln!",
            "tracing",
            "tokio",
        ],
        within: &["broker/core/src"],
        except: &[],
        in_tests_too: false,
        why: "core is pure: no async, clocks, files, sockets, threads, locks or logging",
    },
    Ban {
        words: &["std::fs", "std::net", "std::thread", "std::process", "tokio", "async", ".await"],
        within: &["broker/wire/src"],
        except: &[],
        in_tests_too: false,
        why: "wire does no I/O",
    },
    Ban {
        words: &["std::fs", "std::thread", "std::process", "RwLock", "sync::watch", "Mutex"],
        within: &["broker/node/src", "broker/client/src"],
        except: &["broker/node/src/memory_disk.rs"],
        in_tests_too: false,
        why: "a shell has one owner per state and reaches the world through Env",
    },
    Ban {
        words: &["acked_core", "acked_node", "acked_client", "acked_sim", "acked_wire", "acked_env"],
        within: &["reports"],
        except: &[],
        in_tests_too: true,
        why: "reports knows no simulator and no broker",
    },
    Ban {
        words: &["todo!", "unimplemented!", "dbg!", "#[ignore", ".unwrap()"],
        within: EVERYWHERE,
        except: &[],
        in_tests_too: true,
        why: "banned by the style",
    },
    Ban {
        words: &["#[allow(", "#![allow("],
        within: EVERYWHERE,
        except: &[],
        in_tests_too: true,
        why: "write #[expect(…, reason = …)]",
    },
];

/// Marks that a comment must not leave behind, and places that only one machine has.
const LEFTOVERS: &[&str] = &["TODO", "FIXME", "XXX", "HACK"];
const PLACES: &[&str] = &["/home/", "/Users/"];

/// What is wrong with the sources under `root`.
pub fn check(root: &Path) -> io::Result<Vec<String>> {
    let mut files = Vec::new();
    for folder in EVERYWHERE {
        find(&root.join(folder), &mut files)?;
    }
    files.sort();
    let scenarios = scenario_names(root)?;
    let mut complaints = Vec::new();
    for file in files {
        let path = file.strip_prefix(root).expect("found beneath it").to_string_lossy().into_owned();
        let text = fs::read_to_string(&file)?;
        complaints.extend(check_file(&path, &text));
        if path.starts_with("sim/src") {
            complaints.extend(check_scenario_names(&path, &text, &scenarios));
        }
    }
    Ok(complaints)
}

fn find(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            if path.file_name().is_none_or(|name| name != "target") {
                find(&path, files)?;
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    Ok(())
}

fn is_test(path: &str) -> bool {
    path.contains("/tests/") || path.ends_with("/tests.rs") || path.contains("/benches/")
}

fn check_file(path: &str, text: &str) -> Vec<String> {
    let source = Source::new(text, is_test(path));
    let mut complaints = Vec::new();
    // The check names what it bans.
    let own = path.starts_with("ci/src/");
    if !is_test(path) && !text.starts_with("//!") {
        complaints.push(format!("{path}:1: a file begins with a header: //! what it decides"));
    }
    for ban in BANS {
        let inside = |folders: &[&str]| {
            folders.iter().any(|folder| path == *folder || path.starts_with(&format!("{folder}/")))
        };
        if !inside(ban.within) || inside(ban.except) {
            continue;
        }
        for (number, line, in_test) in source.lines() {
            if in_test && !ban.in_tests_too {
                continue;
            }
            for word in ban.words.iter().filter(|word| has_word(line, word)) {
                complaints.push(format!("{path}:{number}: {word}: {}", ban.why));
            }
        }
    }
    complaints.extend(unbiased_selects(path, &source));
    for (at, (line, comment)) in text.lines().zip(source.comments.lines()).enumerate() {
        for word in LEFTOVERS.iter().filter(|word| has_word(comment, word)) {
            complaints.push(format!("{path}:{}: {word}: a comment leaves no marker behind", at + 1));
        }
        for place in PLACES.iter().filter(|place| !own && line.contains(*place)) {
            complaints.push(format!("{path}:{}: {place}: the project knows no place outside itself", at + 1));
        }
    }
    complaints
}

/// `select!` polls its branches in an order that nobody chose, unless it begins with `biased;`.
fn unbiased_selects(path: &str, source: &Source) -> Vec<String> {
    let code = &source.code;
    code.match_indices("select!")
        .filter(|(at, word)| {
            let body = code[at + word.len()..].trim_start().trim_start_matches(['{', '(', '[']).trim_start();
            !body.starts_with("biased;")
        })
        .map(|(at, _)| {
            let number = code[..at].matches('\n').count() + 1;
            format!("{path}:{number}: select! without biased; differs between runs")
        })
        .collect()
}

/// The names of the catalogue that are not also kinds of faults.
fn scenario_names(root: &Path) -> io::Result<Vec<String>> {
    let mut kinds = String::new();
    let mut sources = Vec::new();
    find(&root.join("sim/src/nemesis"), &mut sources)?;
    for source in sources {
        kinds.push_str(&fs::read_to_string(source)?);
    }
    let mut names = Vec::new();
    let mut folders = vec![root.join("scenarios/catalogue")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if let Some(name) = path.file_stem() {
                names.push(name.to_string_lossy().into_owned());
            }
        }
    }
    names.retain(|name| !kinds.contains(&format!("name: \"{name}\"")));
    Ok(names)
}

fn check_scenario_names(path: &str, text: &str, names: &[String]) -> Vec<String> {
    let source = Source::new(text, is_test(path));
    text.lines()
        .take(source.test_from)
        .enumerate()
        .flat_map(|(at, line)| {
            let named = names.iter().filter(move |name| line.contains(&format!("\"{name}\"")));
            named.map(move |name| format!("{path}:{}: \"{name}\": sim knows no scenario by name", at + 1))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(path: &str, code: &str) -> Vec<String> {
        check_file(path, &format!("//! A header.\n{code}\n"))
    }

    #[test]
    fn banned_names_are_found_with_file_and_line() {
        for (path, code) in [
            ("broker/node/src/a.rs", "use madsim::time;"),
            ("broker/node/src/a.rs", "tokio::spawn(x);"),
            ("sim/src/a.rs", "use std::collections::HashMap;"),
            ("sim/src/a.rs", "let now = Instant::now();"),
            ("broker/core/src/a.rs", "async fn a() {}"),
            ("broker/core/src/a.rs", "let lock = Mutex::new(1);"),
            ("reports/src/a.rs", "use acked_sim::plan;"),
            ("scenarios/src/a.rs", "todo!()"),
            ("scenarios/src/a.rs", "x.unwrap();"),
            ("scenarios/src/a.rs", "#[allow(dead_code)]"),
            ("scenarios/tests/a.rs", "#[ignore]"),
            ("sim/src/a.rs", "// TODO later"),
            ("sim/src/a.rs", "tokio::select! { a = b => {} }"),
        ] {
            let found = complaints(path, code);
            assert_eq!(found.len(), 1, "{code}: {found:?}");
            assert!(found[0].starts_with(&format!("{path}:2: ")), "{found:?}");
        }
    }

    #[test]
    fn what_is_allowed_passes() {
        for (path, code) in [
            ("sim/src/a.rs", "use madsim::time;"),
            ("broker/env/src/a.rs", "tokio::spawn(x); let now = Instant::now();"),
            ("broker/core/src/a.rs", "// async, Mutex and HashMap are for others"),
            ("broker/core/src/a.rs", "let text = \"async\";"),
            ("broker/core/src/tests/a.rs", "std::fs::read(path);"),
            ("broker/node/src/a.rs", "tokio::select! {\n    biased;\n    a = b => {}\n}"),
        ] {
            let found = complaints(path, code);
            assert!(found.is_empty(), "{code}: {found:?}");
        }
    }

    #[test]
    fn a_file_without_a_header_and_a_scenario_in_sim_are_found() {
        assert!(check_file("sim/src/a.rs", "fn a() {}\n")[0].contains("header"));
        let names = ["leader-crash".to_string()];
        let found = check_scenario_names("sim/src/a.rs", "//! x\nrun(\"leader-crash\");\n", &names);
        assert_eq!(found, ["sim/src/a.rs:2: \"leader-crash\": sim knows no scenario by name"]);
    }
}
