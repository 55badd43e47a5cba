//! Whether to colour: an explicit `--color` beats all, then NO_COLOR, then CLICOLOR_FORCE and FORCE_COLOR, then
//! CLICOLOR, then whether standard output is a terminal that can.

use std::io::IsTerminal;

use acked_reports::render::Style;
use clap::ValueEnum;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Colour {
    #[default]
    Auto,
    Always,
    Never,
}

pub fn style(asked: Colour) -> Style {
    let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let terminal = std::io::stdout().is_terminal() && set("TERM").is_none_or(|term| term != "dumb");
    Style { colour: decide(asked, set, terminal) }
}

fn decide(asked: Colour, set: impl Fn(&str) -> Option<String>, terminal: bool) -> bool {
    let on = |name: &str| set(name).is_some_and(|value| value != "0");
    match asked {
        Colour::Always => true,
        Colour::Never => false,
        Colour::Auto if set("NO_COLOR").is_some() => false,
        Colour::Auto if on("CLICOLOR_FORCE") || on("FORCE_COLOR") => true,
        Colour::Auto if set("CLICOLOR").is_some_and(|value| value == "0") => false,
        Colour::Auto => terminal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_first_wins() {
        let with = |asked, set: &[(&str, &str)], terminal| {
            let get =
                |name: &str| set.iter().find(|(known, _)| *known == name).map(|(_, value)| value.to_string());
            decide(asked, get, terminal)
        };
        assert!(with(Colour::Always, &[("NO_COLOR", "1")], false));
        assert!(!with(Colour::Never, &[("FORCE_COLOR", "1")], true));
        assert!(!with(Colour::Auto, &[("NO_COLOR", "1"), ("FORCE_COLOR", "1")], true));
        assert!(with(Colour::Auto, &[("CLICOLOR_FORCE", "1"), ("CLICOLOR", "0")], false));
        assert!(!with(Colour::Auto, &[("CLICOLOR", "0")], true));
        assert!(with(Colour::Auto, &[], true));
        assert!(!with(Colour::Auto, &[], false));
    }
}
