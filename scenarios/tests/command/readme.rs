//! The tables in the README are what `acked list` prints: between `<!-- acked list WHAT -->` and `<!-- end -->`.
//! With ACKED_UPDATE_README set, this test writes them instead.

use std::fs;
use std::path::Path;

use crate::binary::run;

const TABLES: [&str; 4] = ["scenarios", "faults", "invariants", "mutations"];
const END: &str = "<!-- end -->";

/// The README with every table as it should be.
fn refreshed(text: &str) -> String {
    let mut text = text.to_string();
    for what in TABLES {
        let begin = format!("<!-- acked list {what} -->\n");
        let from =
            text.find(&begin).unwrap_or_else(|| panic!("README.md has the table of {what}")) + begin.len();
        let to =
            from + text[from..].find(END).unwrap_or_else(|| panic!("the table of {what} ends with {END}"));
        let table = run(&["list", what, "--format", "markdown"]).stdout;
        text.replace_range(from..to, &table);
    }
    text
}

#[test]
fn the_tables_of_the_readme_are_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the package lies in the workspace");
    let path = path.join("README.md");
    let text = fs::read_to_string(&path).expect("there is a README.md");
    let wanted = refreshed(&text);
    if std::env::var_os("ACKED_UPDATE_README").is_some() {
        fs::write(&path, &wanted).expect("README.md can be written");
    } else {
        assert!(
            text == wanted,
            "README.md is stale: ACKED_UPDATE_README=1 cargo test -p acked --test command readme"
        );
    }
}
