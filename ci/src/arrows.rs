//! Which package may depend on which: arrows point down only. Packages at the bottom have a closed list of what they
//! may use from outside as well, and the simulator's executor and the real world's runtime have one owner each.

use std::fs;
use std::io;
use std::path::Path;

use toml::{Table, Value};

/// One package's row.
struct Layer {
    folder: &'static str,
    name: &'static str,
    /// Packages of the workspace.
    below: &'static [&'static str],
    /// More of them that only tests use.
    in_tests: &'static [&'static str],
    /// Packages from outside; `None` is not limited.
    outside: Option<&'static [&'static str]>,
}

const WIRE: &str = "acked-wire";
const CORE: &str = "acked-core";
const ENV: &str = "acked-env";
const NODE: &str = "acked-node";
const CLIENT: &str = "acked-client";
const REPORTS: &str = "acked-reports";
const SIM: &str = "acked-sim";

const LAYERS: &[Layer] = &[
    Layer {
        folder: "broker/wire",
        name: WIRE,
        below: &[],
        in_tests: &[],
        outside: Some(&["bytes", "crc32c", "flate2", "lz4_flex", "snap", "thiserror", "zstd"]),
    },
    Layer {
        folder: "broker/core",
        name: CORE,
        below: &[WIRE],
        in_tests: &[],
        outside: Some(&["bytes", "rand", "rand_chacha", "strsim", "thiserror"]),
    },
    Layer { folder: "broker/env", name: ENV, below: &[], in_tests: &[], outside: None },
    Layer {
        folder: "broker/node",
        name: NODE,
        below: &[WIRE, CORE, ENV],
        in_tests: &[CLIENT],
        outside: Some(&["bytes", "rand_chacha", "thiserror", "tokio"]),
    },
    Layer {
        folder: "broker/client",
        name: CLIENT,
        below: &[WIRE, CORE, ENV],
        in_tests: &[],
        outside: Some(&["bytes", "rand_chacha", "thiserror", "tokio"]),
    },
    Layer {
        folder: "reports",
        name: REPORTS,
        below: &[],
        in_tests: &[],
        outside: Some(&["maud", "quick-junit", "serde", "serde_json", "thiserror"]),
    },
    Layer {
        folder: "sim",
        name: SIM,
        below: &[WIRE, CORE, ENV, NODE, CLIENT, REPORTS],
        in_tests: &[],
        outside: None,
    },
    Layer {
        folder: "scenarios",
        name: "acked",
        below: &[WIRE, CORE, ENV, NODE, CLIENT, REPORTS, SIM],
        in_tests: &[],
        outside: None,
    },
    Layer { folder: "ci", name: "acked-ci", below: &[], in_tests: &[], outside: None },
];

/// Who alone may depend on what is not for everybody.
const OWNED: &[(&str, &str)] =
    &[("madsim", SIM), ("clap", "acked"), ("indicatif", "acked"), ("tracing-subscriber", "acked")];
/// Features of tokio that reach the real world, and who alone may have them outside tests.
const REAL_WORLD: &[&str] = &["net", "time", "fs", "rt", "rt-multi-thread", "process", "signal", "full"];

/// What is wrong with the manifests under `root`.
pub fn check(root: &Path) -> io::Result<Vec<String>> {
    let workspace = read(&root.join("Cargo.toml"))?;
    let members = workspace.get("workspace").and_then(|table| table.get("members")).and_then(Value::as_array);
    let members: Vec<&str> = members.into_iter().flatten().filter_map(Value::as_str).collect();
    let mut complaints = Vec::new();
    for member in &members {
        let path = format!("{member}/Cargo.toml");
        let text = fs::read_to_string(root.join(&path))?;
        let Some(layer) = LAYERS.iter().find(|layer| layer.folder == *member) else {
            complaints.push(format!("{path}:1: the package has no layer: add it to ci/src/arrows.rs"));
            continue;
        };
        complaints.extend(check_manifest(&path, &text, layer));
    }
    for layer in LAYERS.iter().filter(|layer| !members.contains(&layer.folder)) {
        complaints.push(format!("Cargo.toml:1: the layer {} is no member", layer.folder));
    }
    Ok(complaints)
}

fn read(path: &Path) -> io::Result<Table> {
    let text = fs::read_to_string(path)?;
    text.parse()
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, format!("{}: {error}", path.display())))
}

fn check_manifest(path: &str, text: &str, layer: &Layer) -> Vec<String> {
    let table: Table = match text.parse() {
        Ok(table) => table,
        Err(error) => return vec![format!("{path}:1: {error}")],
    };
    let mut complaints = Vec::new();
    let line = |name: &str| {
        let at = text.lines().position(|line| line.trim_start().starts_with(name));
        at.map_or(1, |line| line + 1)
    };
    let found = table.get("package").and_then(|package| package.get("name")).and_then(Value::as_str);
    if found != Some(layer.name) {
        complaints.push(format!("{path}:{}: the package must be called {}", line("name"), layer.name));
    }
    for (section, in_tests) in
        [("dependencies", false), ("build-dependencies", false), ("dev-dependencies", true)]
    {
        for (name, dependency) in table.get(section).and_then(Value::as_table).into_iter().flatten() {
            let at = line(name);
            let mut complain = |what: String| complaints.push(format!("{path}:{at}: {what}"));
            if LAYERS.iter().any(|other| other.name == name) {
                let allowed = layer.below.contains(&name.as_str())
                    || (in_tests && layer.in_tests.contains(&name.as_str()));
                if !allowed {
                    complain(format!("{} may not depend on {name}: arrows point down only", layer.name));
                }
                continue;
            }
            if let Some((_, owner)) =
                OWNED.iter().find(|(owned, owner)| owned == name && *owner != layer.name)
            {
                complain(format!("only {owner} may depend on {name}"));
            }
            if in_tests {
                continue;
            }
            if layer.outside.is_some_and(|allowed| !allowed.contains(&name.as_str())) {
                complain(format!("{} may not depend on {name}: the list is in ci/src/arrows.rs", layer.name));
            }
            if name == "tokio" && layer.name != ENV {
                let features = dependency.get("features").and_then(Value::as_array);
                for feature in features.into_iter().flatten().filter_map(Value::as_str) {
                    if REAL_WORLD.contains(&feature) {
                        complain(format!("only {ENV} may have tokio's feature {feature}"));
                    }
                }
            }
        }
    }
    complaints
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layer(name: &str) -> &'static Layer {
        LAYERS.iter().find(|layer| layer.name == name).expect("it is in the table")
    }

    fn complaints(name: &str, dependencies: &str) -> Vec<String> {
        let text = format!("[package]\nname = \"{name}\"\n\n{dependencies}");
        check_manifest("x/Cargo.toml", &text, layer(name))
    }

    #[test]
    fn an_arrow_that_points_up_is_refused_with_its_line() {
        let found = complaints(CORE, "[dependencies]\nacked-node = { workspace = true }\n");
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("x/Cargo.toml:5: acked-core may not depend on acked-node"), "{found:?}");
        assert!(complaints(REPORTS, "[dev-dependencies]\nacked-sim = \"1\"\n")[0].contains("acked-sim"));
    }

    #[test]
    fn arrows_down_and_test_arrows_pass() {
        assert!(
            complaints(
                NODE,
                "[dependencies]\nacked-core = \"1\"\n[dev-dependencies]\nacked-client = \"1\"\n"
            )
            .is_empty()
        );
        assert!(complaints(NODE, "[dependencies]\nacked-client = \"1\"\n")[0].contains("acked-client"));
    }

    #[test]
    fn the_bottom_has_a_closed_list_and_executors_an_owner() {
        assert!(complaints(CORE, "[dependencies]\ntokio = \"1\"\n")[0].contains("may not depend on tokio"));
        assert!(complaints(NODE, "[dev-dependencies]\nmadsim = \"1\"\n")[0].contains("only acked-sim"));
        let net = "[dependencies]\ntokio = { version = \"1\", features = [\"sync\", \"net\"] }\n";
        assert!(complaints(NODE, net)[0].contains("feature net"));
        assert!(complaints(ENV, net).is_empty());
    }

    #[test]
    fn layers_point_at_layers_that_come_before_them() {
        for (index, layer) in LAYERS.iter().enumerate() {
            for below in layer.below {
                assert!(
                    LAYERS[..index].iter().any(|other| other.name == *below),
                    "{} -> {below}",
                    layer.name
                );
            }
        }
    }
}
