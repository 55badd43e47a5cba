//! The table of APIs in the README is the one that the code would print.

use std::fmt::Write;

use acked_wire::api;

/// `BrokerHeartbeat` as `broker_heartbeat`.
fn file_name(name: &str) -> String {
    let mut file = String::new();
    for letter in name.chars() {
        if letter.is_ascii_uppercase() && !file.is_empty() {
            file.push('_');
        }
        file.push(letter.to_ascii_lowercase());
    }
    file
}

#[test]
fn readme_lists_the_declared_apis() {
    let mut table = String::from("| key | API | versions | file |\n|---|---|---|---|\n");
    for (key, versions) in api::DECLARED {
        let (code, name, file) = (key.code(), key.name(), file_name(key.name()));
        let versions = format!("{}–{}", versions.start(), versions.end());
        writeln!(table, "| {code} | {name} | {versions} | `src/api/{file}.rs` |")
            .expect("a string takes all");
    }
    let readme = include_str!("../README.md");
    assert!(readme.contains(&table), "the README is stale; its table should be:\n{table}");
}

#[test]
fn declared_versions_are_those_of_kafka() {
    for (key, versions) in api::DECLARED {
        assert_eq!(*versions, key.kafka_versions(), "{key}");
    }
}
