//! What is written where: the same bytes for the same run however it is run, results in seed order, a reader that goes
//! away, an interrupt in the middle, and every list in every form.

use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;

use crate::binary::{acked, run};
use serde_json::Value;

const SCENARIO: &[&str] = &["run", "leader-crash", "--configuration", "default", "--progress", "none"];

fn lines(more: &[&str]) -> Vec<String> {
    let ended = run(&[SCENARIO, &["--format", "jsonl"], more].concat());
    assert_eq!(ended.code, 0, "{}\n{}", ended.stdout, ended.stderr);
    ended.stdout.lines().map(str::to_string).collect()
}

fn object(line: &str) -> Value {
    serde_json::from_str(line).expect("every line is one object")
}

#[test]
fn a_seed_gives_the_same_bytes_with_any_number_of_workers_alone_and_by_its_token() {
    let one = lines(&["--seeds", "3..5", "--jobs", "1"]);
    let two = lines(&["--seeds", "3..5", "--jobs", "2"]);
    assert_eq!(one, two);
    let types: Vec<Value> = one.iter().map(|line| object(line)["type"].clone()).collect();
    assert_eq!(types, ["plan", "seed", "seed", "seed", "summary"]);
    let seeds: Vec<Value> = one[1..4].iter().map(|line| object(line)["seed"].clone()).collect();
    assert_eq!(seeds, [3, 4, 5]);

    let alone = lines(&["--seed", "4"]);
    assert_eq!(alone[1], one[2], "alone as in a batch");
    let token = object(&one[2])["token"].as_str().expect("a seed has a token").to_string();
    let repro = run(&["repro", &token, "--format", "jsonl"]);
    assert_eq!(repro.code, 0);
    assert_eq!(repro.stdout.trim_end(), one[2], "by its token");
    let first = run(&["repro", &token]);
    assert_eq!(first.stdout, run(&["repro", &token]).stdout);
    assert!(first.stdout.contains("acknowledged"), "{}", first.stdout);
}

#[test]
fn a_broken_contract_is_1_and_ends_with_why_repro_and_show() {
    let ended = run(&[SCENARIO, &["--seed", "1", "--mutate", "ack-before-append"]].concat());
    assert_eq!(ended.code, 1, "{}", ended.stdout);
    for word in ["FAIL", "why ", "repro   acked repro AK1.", "show    acked show AK1."] {
        assert!(ended.stdout.contains(word), "{word}: {}", ended.stdout);
    }
    let repro = ended.stdout.lines().find_map(|line| line.strip_prefix("repro   acked repro "));
    let again = run(&["repro", repro.expect("it is printed")]);
    assert_eq!(again.code, 1, "{}", again.stdout);
}

#[test]
fn show_draws_within_eighty_columns() {
    let token =
        object(&lines(&["--seed", "2"])[1])["token"].as_str().expect("a seed has a token").to_string();
    let ended = run(&["show", &token, "--ascii"]);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert!(ended.stdout.is_ascii());
    for label in ["b1 ", "b2 ", "b3 ", "in sync", "high wmark", "first "] {
        assert!(ended.stdout.lines().any(|line| line.starts_with(label)), "{label}: {}", ended.stdout);
    }
    assert!(ended.stdout.lines().all(|line| line.len() <= 80), "{}", ended.stdout);
    assert_eq!(run(&["show", &token, "--ascii"]).stdout, ended.stdout);
    assert!(!run(&["show", &token]).stdout.is_ascii());
}

#[test]
fn notes_and_progress_stay_off_standard_output() {
    let unmodelled = "broker.num.io.threads=4";
    let arguments = ["run", "leader-crash", "--configuration", "default", "--seed", "1", "--set", unmodelled];
    let ended = run(&arguments);
    assert!(ended.stderr.contains("broker.num.io.threads has no effect here"), "{}", ended.stderr);
    assert!(ended.stderr.contains("seeds/s") && !ended.stdout.contains("seeds/s"));
    assert!(!ended.stdout.contains('\x1b'), "no colour where there is no terminal");
    let coloured = run(&[&arguments[..], &["--color", "always", "-q"]].concat());
    assert!(coloured.stdout.contains('\x1b'));
    assert_eq!(coloured.stderr, "", "quiet is quiet");
}

#[test]
fn a_flag_has_a_twin_in_the_environment_and_beats_it() {
    let from = |more: &[&str]| {
        let arguments = [SCENARIO, more].concat();
        let output = acked(&arguments).env("ACKED_SEED", "2").env("ACKED_FORMAT", "jsonl").output();
        String::from_utf8(output.expect("the binary starts").stdout).expect("it writes UTF-8")
    };
    let twin = from(&[]);
    assert_eq!(object(twin.lines().nth(1).expect("a seed"))["seed"], 2);
    let flag = from(&["--seed", "3"]);
    assert_eq!(object(flag.lines().nth(1).expect("a seed"))["seed"], 3);
}

#[test]
fn a_reader_that_goes_away_ends_the_run_quietly() {
    let arguments = [SCENARIO, &["--seeds", "1000", "--format", "jsonl"]].concat();
    let mut child =
        acked(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary starts");
    let mut reader = BufReader::new(child.stdout.take().expect("it is piped"));
    reader.read_line(&mut String::new()).expect("the plan comes first");
    drop(reader);
    let status = child.wait().expect("it ends");
    let mut said = String::new();
    child.stderr.take().expect("it is piped").read_to_string(&mut said).expect("it writes UTF-8");
    assert_eq!(status.code(), Some(74), "not everything ran: {said}");
    assert!(!said.contains("panicked") && !said.contains("error"), "{said}");

    // The same with progress and notes going into the closed pipe too.
    let (reader, writer) = std::io::pipe().expect("the system has pipes");
    drop(reader);
    let arguments =
        ["run", "leader-crash", "--configuration", "default", "--seeds", "20", "--format", "jsonl"];
    let mut command = acked(&arguments);
    command.stdout(writer.try_clone().expect("a pipe can be shared")).stderr(writer);
    assert_eq!(command.status().expect("the binary starts").code(), Some(74));

    let mut list = acked(&["list", "settings"]).stdout(Stdio::piped()).spawn().expect("the binary starts");
    drop(list.stdout.take());
    assert_eq!(list.wait().expect("it ends").code(), Some(0), "whoever closes a list has read enough");
}

#[test]
fn an_interrupt_lets_running_seeds_finish_and_keeps_their_results() {
    let arguments = [SCENARIO, &["--seeds", "1000", "--jobs", "2", "--format", "jsonl"]].concat();
    let mut child =
        acked(&arguments).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("the binary starts");
    let mut reader = BufReader::new(child.stdout.take().expect("it is piped"));
    let mut all = String::new();
    for _ in 0..2 {
        reader.read_line(&mut all).expect("the plan and the first seed come");
    }
    let kill = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(kill.expect("there is a kill command").success());
    reader.read_to_string(&mut all).expect("it writes UTF-8");
    assert_eq!(child.wait().expect("it ends").code(), Some(130));
    let last = object(all.lines().last().expect("there is a summary"));
    let seeds = all.lines().filter(|line| line.starts_with("{\"type\":\"seed\"")).count() as u64;
    assert_eq!((last["type"].as_str(), last["exit"].as_u64()), (Some("summary"), Some(130)));
    assert_eq!(last["seeds_run"].as_u64(), Some(seeds));
    assert!((1..1000).contains(&seeds) && last["not_run"].as_u64() == Some(1000 - seeds), "{last}");
}

#[test]
fn a_seed_that_says_nothing_for_too_long_is_budget_and_the_campaign_inconclusive() {
    let arguments = [SCENARIO, &["--seeds", "2", "--seed-timeout", "1ms", "--format", "jsonl"]].concat();
    let ended = run(&arguments);
    assert_eq!(ended.code, 3, "{}", ended.stdout);
    assert_eq!(object(ended.stdout.lines().nth(1).expect("a seed"))["verdict"], "budget");
}

#[test]
fn every_list_comes_for_people_programs_and_readmes() {
    for what in ["scenarios", "faults", "invariants", "settings", "mutations"] {
        let json = run(&["list", what, "--format", "json"]);
        let rows: Vec<Value> = serde_json::from_str(&json.stdout).expect("it is one array");
        assert!(rows.len() > 3, "{what}");
        let human = run(&["list", what]);
        assert_eq!(human.stdout.lines().count(), rows.len(), "{what}");
        let markdown = run(&["list", what, "--format", "markdown"]);
        assert_eq!(markdown.stdout.lines().count(), rows.len() + 2, "{what}");
        assert_eq!((json.code, human.code, markdown.code), (0, 0, 0));
    }
}

#[test]
fn a_scenario_file_of_the_users_own_runs_and_comes_back_by_its_token() {
    let path = format!("{}/own.toml", env!("CARGO_TARGET_TMPDIR"));
    let text =
        include_str!("../../catalogue/durability/leader-crash.toml").replace("\"leader-crash\"", "\"own\"");
    std::fs::write(&path, text).expect("the folder for temporary files takes it");
    let arguments = [
        "run",
        &path,
        "--configuration",
        "default",
        "--seed",
        "1",
        "--format",
        "jsonl",
        "--progress",
        "none",
    ];
    let ended = run(&arguments);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let seed = ended.stdout.lines().nth(1).expect("a seed").to_string();
    let token = object(&seed)["token"].as_str().expect("a seed has a token").to_string();
    assert_eq!(run(&["repro", &token]).code, 2, "its file is needed");
    let repro = run(&["repro", &token, "--scenario", &path, "--format", "jsonl"]);
    assert_eq!(repro.stdout.trim_end(), seed);
}

#[test]
fn the_canary_breaks_its_contract_with_code_1() {
    let ended = run(&["run", "canary", "--seeds", "1", "--format", "jsonl", "--progress", "none"]);
    assert_eq!(ended.code, 1, "{}", ended.stdout);
    assert!(ended.stdout.contains("\"contract\":\"broken\""), "{}", ended.stdout);
}

#[test]
fn a_hung_seed_is_out_of_budget_and_the_others_keep_their_results() {
    let arguments =
        ["run", "planted-hang", "planted-panic", "planted-spin", "--seeds", "1", "--seed-timeout", "8s"];
    let ended = run(&[&arguments[..], &["--jobs", "1", "--format", "jsonl", "--progress", "none"]].concat());
    assert_eq!(ended.code, 1, "the panic breaks its contract: {}", ended.stdout);
    let seeds: Vec<Value> = ended.stdout.lines().map(object).filter(|line| line["type"] == "seed").collect();
    let verdicts: Vec<&str> = seeds.iter().filter_map(|seed| seed["verdict"].as_str()).collect();
    assert_eq!(verdicts, ["budget", "violation", "violation"], "{}", ended.stdout);
    for (seed, id) in seeds[1..].iter().zip(["PANIC", "SPIN"]) {
        let finding = &seed["findings"][0];
        assert_eq!(finding["invariant"], id);
        let text = finding["text"].as_str().expect("a finding has a text");
        assert!(text.starts_with("b") && text.contains("task planted defect"), "{text}");
    }
}
