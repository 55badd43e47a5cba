//! Which scenarios a command line means: names, globs over the listed ones, and files.

use std::sync::Arc;

use super::cell::{Cell, Source};
use crate::exit::{Exit, Failure};
use crate::scenario::{self, CATALOGUE, SettingNote};
use crate::token::Changes;

/// What the command line asks for.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// Names, globs and paths; empty means every listed scenario.
    pub names: Vec<String>,
    pub configuration: Option<String>,
    pub changes: Changes,
}

/// What it came to.
pub struct Selected {
    pub cells: Vec<Cell>,
    pub notes: Vec<SettingNote>,
}

/// Every cell that is meant, each once, in the order asked for.
///
/// # Errors
/// Names that do not exist, scenarios that do not fit, and nothing selected at all.
pub fn select(selection: &Selection) -> Result<Selected, Failure> {
    let mut sources: Vec<(Source, bool)> = Vec::new();
    let mut add = |source: Source, named: bool| {
        if sources.iter().all(|(known, _)| known.path != source.path) {
            sources.push((source, named));
        }
    };
    if selection.names.is_empty() {
        for source in listed("*") {
            add(source?, false);
        }
    }
    for name in &selection.names {
        if name.ends_with(".toml") || name.contains('/') {
            add(Source::read(name)?, true);
        } else if name.contains(['*', '?']) {
            for source in listed(name) {
                add(source?, false);
            }
        } else {
            let known = CATALOGUE.iter().map(|entry| entry.name);
            let unknown = || {
                Failure::usage(format!("there is no scenario '{name}'{}", crate::nearest::hint(name, known)))
            };
            add(Source::shipped(name).ok_or_else(unknown)??, true);
        }
    }

    let mut selected = Selected { cells: Vec::new(), notes: Vec::new() };
    for (source, named) in sources {
        // A configuration that only some scenarios have picks those, unless a scenario was named for it.
        if let Some(wanted) = &selection.configuration
            && !named
            && !source.scenario.configuration.contains_key(wanted)
        {
            continue;
        }
        let (cells, notes) =
            Cell::all(&Arc::new(source), selection.configuration.as_deref(), &selection.changes)?;
        selected.cells.extend(cells);
        selected.notes.extend(notes);
    }
    selected.notes.sort();
    selected.notes.dedup();
    if selected.cells.is_empty() {
        let mut text = format!("nothing is selected by {}", selection.names.join(" "));
        if let Some(wanted) = &selection.configuration {
            text = format!("no scenario selected has a configuration '{wanted}'");
        }
        return Err(Failure {
            exit: Exit::NothingSelected,
            text: format!("{text} (unlisted scenarios are named in full)"),
        });
    }
    Ok(selected)
}

/// The scenarios of a bare run that match.
fn listed(pattern: &str) -> impl Iterator<Item = Result<Source, Failure>> {
    CATALOGUE
        .iter()
        .filter(move |entry| matches(pattern, entry.name))
        .map(|entry| Source::new(entry.path, entry.text, false))
        .filter(|source| source.as_ref().map_or(true, |source| !source.scenario.unlisted))
}

/// `*` stands for any letters, `?` for one.
fn matches(pattern: &str, name: &str) -> bool {
    // Where the last star stood, and how much of the name it has taken so far.
    let (pattern, name) = (pattern.as_bytes(), name.as_bytes());
    let (mut at, mut seen, mut star) = (0, 0, None);
    while seen < name.len() {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at, seen));
                at += 1;
            }
            Some(letter) if *letter == b'?' || *letter == name[seen] => {
                at += 1;
                seen += 1;
            }
            _ => {
                let Some((before, taken)) = star else { return false };
                star = Some((before, taken + 1));
                at = before + 1;
                seen = taken + 1;
            }
        }
    }
    pattern[at..].iter().all(|letter| *letter == b'*')
}

/// Every scenario that ships, listed or not, in every configuration; not those that plant a bug, which must fail.
///
/// # Errors
/// Changes that do not fit.
pub fn everything(changes: &Changes) -> Result<Vec<Cell>, Failure> {
    let names = scenario::CATALOGUE.iter().map(|entry| entry.name.to_string()).collect();
    let selection = Selection { names, configuration: None, changes: changes.clone() };
    let mut cells = select(&selection)?.cells;
    cells.retain(|cell| !cell.source.scenario.must_fail());
    Ok(cells)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn everything_has_the_unlisted_but_for_what_must_fail() {
        let cells = everything(&Changes::default()).expect("the catalogue is sound");
        assert!(cells.iter().any(|cell| cell.source.scenario.unlisted));
        assert!(cells.iter().all(|cell| cell.name() != "canary" && !cell.name().starts_with("planted-")));
    }

    #[test]
    fn globs_match_whole_names() {
        for (pattern, name, expected) in [
            ("*", "leader-crash", true),
            ("leader-*", "leader-crash", true),
            ("*crash", "leader-crash", true),
            ("*-cr?sh", "leader-crash", true),
            ("*a*a*h", "leader-crash", true),
            ("leader", "leader-crash", false),
            ("*leader", "leader-crash", false),
            ("?", "", false),
            ("*", "", true),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }

    /// Obviously right, and slow.
    fn model(pattern: &[u8], name: &[u8]) -> bool {
        match (pattern.split_first(), name.split_first()) {
            (None, None) => true,
            (Some((b'*', rest)), None) => model(rest, name),
            (Some((b'*', rest)), Some((_, tail))) => model(rest, name) || model(pattern, tail),
            (Some((b'?', rest)), Some((_, tail))) => model(rest, tail),
            (Some((one, rest)), Some((other, tail))) => one == other && model(rest, tail),
            _ => false,
        }
    }

    proptest! {
        #[test]
        fn globs_match_as_the_model_does(pattern in "[ab*?]{0,6}", name in "[ab]{0,6}") {
            prop_assert_eq!(matches(&pattern, &name), model(pattern.as_bytes(), name.as_bytes()));
        }
    }

    #[test]
    fn a_bare_selection_has_no_unlisted_scenario_and_a_named_one_may() {
        let bare = select(&Selection::default()).expect("the catalogue is well formed");
        assert!(bare.cells.iter().all(|cell| !cell.source.scenario.unlisted));
        let named = Selection { names: vec!["museum-ack-before-append".into()], ..Selection::default() };
        assert!(!select(&named).expect("it ships").cells.is_empty());
    }

    #[test]
    fn what_is_not_there_is_said_with_the_right_code() {
        let exit = |names: &[&str], configuration: Option<&str>| {
            let selection = Selection {
                names: names.iter().map(|name| name.to_string()).collect(),
                configuration: configuration.map(str::to_string),
                ..Selection::default()
            };
            select(&selection).err().map(|failure| failure.exit)
        };
        assert_eq!(exit(&["leader-crsh"], None), Some(Exit::Usage));
        assert_eq!(exit(&["zzz*"], None), Some(Exit::NothingSelected));
        assert_eq!(exit(&[], Some("zzz")), Some(Exit::NothingSelected));
        assert_eq!(exit(&["leader-crash"], Some("zzz")), Some(Exit::Usage));
        assert_eq!(exit(&["leader-crash", "leader-*"], Some("safe")), None);
    }
}
