//! Every test that the overview of the broker names is there.

use std::fs;
use std::path::Path;

#[test]
fn tests_named_in_the_overview_exist() {
    let broker = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let overview = fs::read_to_string(broker.join("README.md")).expect("the overview of the broker");
    let named = overview.split('`').filter_map(|quoted| quoted.split_once("::"));
    let named: Vec<(&str, &str)> = named.filter(|(path, _)| path.ends_with(".rs")).collect();
    assert!(named.len() >= 15, "the table of deviations names its tests: {named:?}");
    for (path, test) in named {
        let code = fs::read_to_string(broker.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
        assert!(code.contains(&format!("fn {test}()")), "{path} has no test {test}");
    }
}
