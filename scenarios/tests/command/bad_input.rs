//! What a user can get wrong: each gives a clear message on standard error, nothing on standard output, and the code
//! that a scheduler can rely on.

use std::fs;

use crate::binary::run;

fn refused(arguments: &[&str], code: i32, words: &[&str]) {
    let ended = run(arguments);
    assert_eq!(ended.code, code, "{arguments:?}: {}", ended.stderr);
    assert_eq!(ended.stdout, "", "{arguments:?}");
    for word in words {
        assert!(ended.stderr.contains(word), "{arguments:?} says {word:?}: {}", ended.stderr);
    }
    assert!(!ended.stderr.contains("panicked"), "{arguments:?}: {}", ended.stderr);
}

/// A scenario file of this test's own, with `change` applied to a good one.
fn file(name: &str, change: impl Fn(&str) -> String) -> String {
    let folder = env!("CARGO_TARGET_TMPDIR");
    let path = format!("{folder}/{name}.toml");
    let good = include_str!("../../catalogue/durability/leader-crash.toml");
    fs::write(&path, change(good)).expect("the folder for temporary files takes it");
    path
}

#[test]
fn an_unknown_scenario_is_2_with_the_nearest_name_and_an_empty_glob_is_4() {
    refused(
        &["run", "leader-crsh"],
        2,
        &["there is no scenario 'leader-crsh'", "did you mean leader-crash?"],
    );
    refused(&["run", "zzz-*"], 4, &["nothing is selected"]);
    refused(&["run", "--configuration", "zzz"], 4, &["zzz"]);
    refused(&["run", "leader-crash", "--configuration", "zzz"], 2, &["no configuration 'zzz'", "default"]);
}

#[test]
fn an_unknown_setting_is_2_with_the_nearest_names() {
    let unknown = "topic.min.insync.replica=2";
    refused(&["run", "leader-crash", "--set", unknown], 2, &["no such setting", "min.insync.replicas"]);
    refused(&["run", "leader-crash", "--set", "min.insync.replicas=2"], 2, &["must begin with its scope"]);
    refused(&["run", "leader-crash", "--set", "topic.min.insync.replicas"], 2, &["scope.name=value"]);
    refused(&["run", "leader-crash", "--set", "topic.min.insync.replicas=many"], 2, &["\"many\" is not"]);
}

#[test]
fn seeds_that_are_none_are_2() {
    for seeds in ["0", "x", "5..1", "1..", "-3", "1.5"] {
        refused(&["run", "leader-crash", &format!("--seeds={seeds}")], 2, &["--seeds"]);
    }
    refused(&["run", "leader-crash", "--seed=-1"], 2, &["--seed"]);
    refused(&["run", "leader-crash", "--seed", "1", "--seeds", "2"], 2, &["cannot be used with"]);
    refused(&["run", "leader-crash", "--jobs", "0"], 2, &["--jobs"]);
    refused(&["run", "leader-crash", "--for", "5"], 2, &["is no duration"]);
}

#[test]
fn an_unknown_mutation_command_or_list_is_2() {
    refused(&["run", "--mutate", "ack-befor-append"], 2, &["no mutation", "did you mean ack-before-append?"]);
    refused(&["mutants", "zzz"], 2, &["no mutation 'zzz'"]);
    refused(&["mutants", "ack-over-leader-epochs"], 2, &["no scenario provokes"]);
    refused(&["rnu"], 2, &["rnu", "--help"]);
    refused(&["list", "nothing"], 2, &["possible values"]);
}

#[test]
fn a_malformed_file_is_2_with_line_and_column() {
    let path = file("malformed", |good| good.replace("[topic.orders]", "[topic.orders"));
    refused(&["run", &path], 2, &[&path, "line ", "column "]);
    let path = file("unknown-key", |good| format!("surprise = 1\n{good}"));
    refused(&["run", &path], 2, &[&path, "surprise", "line 1"]);
    let path = file("other-schema", |good| good.replace("scenario/1", "scenario/9"));
    refused(&["run", &path], 2, &["scenario/9", "scenario/1"]);
    let path = file("bad-name", |good| good.replace("\"leader-crash\"", "\"Leader Crash\""));
    refused(&["run", &path], 2, &["'Leader Crash'", "small letters"]);
    refused(&["run", "no/such/file.toml"], 2, &["no/such/file.toml"]);
}

#[test]
fn an_unknown_fault_kind_target_or_time_is_2_and_names_the_fault() {
    let path = file("unknown-fault", |good| good.replace("kind = \"crash\"", "kind = \"crush\""));
    refused(&["run", &path], 2, &["fault 'first'", "'crush'", "crash"]);
    let path = file("unknown-target", |good| good.replace("leader(orders-0)", "boss(orders-0)"));
    refused(&["run", &path], 2, &["boss(orders-0)"]);
    let path = file("no-time", |good| good.replace("\"1s..8s\"", "\"soon\""));
    refused(&["run", &path], 2, &["'soon' is no duration"]);
}

#[test]
fn a_token_that_is_none_or_of_another_build_or_scenario_is_2() {
    for command in ["repro", "show"] {
        refused(&[command, "zzz"], 2, &["a token begins with AK1."]);
        refused(&[command, "AK1.leader-crash.default.7.0badcafe"], 2, &["has 5"]);
        let other = "AK1.leader-crash.default.7.0badcafe.0000000";
        refused(&[command, other], 2, &["is of build 0000000", "--allow-build-mismatch"]);
        let hash = "needs scenario 'leader-crash' with hash 0badcafe";
        refused(&[command, other, "--allow-build-mismatch"], 2, &[hash]);
        let gone = "AK1.no-such.default.7.0badcafe.0000000";
        refused(&[command, gone, "--allow-build-mismatch"], 2, &["no-such", "0badcafe", "--scenario FILE"]);
    }
}
