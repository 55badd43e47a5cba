//! The scenarios that ship with the binary, sorted by name. The build script finds them.

/// One scenario file, by the name that the command line knows.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    pub name: &'static str,
    pub path: &'static str,
    pub text: &'static str,
}

/// Every scenario, sorted by name.
pub const CATALOGUE: &[Entry] = include!(concat!(env!("OUT_DIR"), "/catalogue.rs"));

/// The scenario of that name.
pub fn find(name: &str) -> Option<&'static Entry> {
    CATALOGUE.iter().find(|entry| entry.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::parse;

    #[test]
    fn every_entry_parses_under_its_own_name_in_order() {
        for pair in CATALOGUE.windows(2) {
            assert!(pair[0].name < pair[1].name, "{} before {}", pair[0].name, pair[1].name);
        }
        for entry in CATALOGUE {
            let scenario = parse(entry.path, entry.text).expect("the catalogue is well formed");
            assert_eq!(scenario.name, entry.name);
            assert!(scenario.ask.ends_with('?'), "{} asks a question", entry.name);
            assert!(scenario.configuration.contains_key("default"), "{} has a default", entry.name);
        }
    }
}
