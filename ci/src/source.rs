//! Rust source as the check reads it: comments and texts blanked out, so that a word in a comment is no use of the name;
//! and which lines are tests. Not a parser: it knows comments, string, byte string, raw string and character literals.

/// One source file.
pub struct Source {
    /// Code with every comment and literal blanked; line ends stay.
    pub code: String,
    /// The comments alone, everything else blanked.
    pub comments: String,
    /// Whether each line is behind the `#[cfg(test)]` that ends a file, or the whole file is a test.
    pub test_from: usize,
}

impl Source {
    /// `is_test` for a file that holds nothing but tests.
    pub fn new(text: &str, is_test: bool) -> Source {
        let (code, comments) = split(text);
        let first_test = code.lines().position(|line| {
            let line = line.trim_start();
            line.starts_with("#[cfg(test)]") || line.starts_with("#![cfg(test)]")
        });
        // A module declaration under `#[cfg(test)]` in the middle of a file hides only itself.
        let lines: Vec<&str> = code.lines().collect();
        let ends_file = |at: usize| lines[at..].iter().take(3).any(|line| line.contains('{'));
        let test_from = match first_test {
            _ if is_test => 0,
            Some(at) if ends_file(at) => at,
            _ => lines.len(),
        };
        Source { code, comments, test_from }
    }

    /// Lines of code with their numbers, counted from 1, and whether they are tests.
    pub fn lines(&self) -> impl Iterator<Item = (usize, &str, bool)> {
        self.code.lines().enumerate().map(|(at, line)| (at + 1, line, at >= self.test_from))
    }
}

/// Whether `word` stands in `line` with no letter, digit or underscore beside it.
pub fn has_word(line: &str, word: &str) -> bool {
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
    let (first, last) = (word.chars().next().is_some_and(is_part), word.chars().last().is_some_and(is_part));
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back().is_some_and(is_part) && first;
        let after = line[at + word.len()..].chars().next().is_some_and(is_part) && last;
        !before && !after
    })
}

/// Code without comments and literals, and comments without code.
fn split(text: &str) -> (String, String) {
    let letters: Vec<char> = text.chars().collect();
    let (mut code, mut comments) = (String::with_capacity(text.len()), String::with_capacity(text.len()));
    let mut at = 0;
    while at < letters.len() {
        let rest = &letters[at..];
        let (length, kind) = match rest {
            ['/', '/', ..] => (rest.iter().take_while(|letter| **letter != '\n').count(), Kind::Comment),
            ['/', '*', ..] => (block_comment(rest), Kind::Comment),
            ['"', ..] => (quoted(rest, '"'), Kind::Literal),
            ['r', '"' | '#', ..] if !is_name_before(&letters, at) => match raw(&rest[1..]) {
                Some(length) => (length + 1, Kind::Literal),
                None => (1, Kind::Code),
            },
            ['\'', ..] => match character(rest) {
                Some(length) => (length, Kind::Literal),
                None => (1, Kind::Code),
            },
            _ => (1, Kind::Code),
        };
        for letter in &rest[..length] {
            let blank = if *letter == '\n' { '\n' } else { ' ' };
            code.push(if kind == Kind::Code { *letter } else { blank });
            comments.push(if kind == Kind::Comment { *letter } else { blank });
        }
        at += length;
    }
    (code, comments)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Code,
    Comment,
    Literal,
}

fn is_name_before(letters: &[char], at: usize) -> bool {
    // `br"…"` is a literal too: its b is left as code, which hurts nobody.
    at > 0 && (letters[at - 1].is_alphanumeric() || letters[at - 1] == '_') && letters[at - 1] != 'b'
}

fn block_comment(rest: &[char]) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < rest.len() {
        match rest[at..] {
            ['/', '*', ..] => {
                depth += 1;
                at += 2;
            }
            ['*', '/', ..] => {
                depth -= 1;
                at += 2;
                if depth == 0 {
                    return at;
                }
            }
            _ => at += 1,
        }
    }
    at
}

fn quoted(rest: &[char], quote: char) -> usize {
    let mut at = 1;
    while at < rest.len() {
        match rest[at] {
            '\\' => at += 2,
            letter if letter == quote => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

/// The length of `#"…"#` with any number of hashes; `None` when it is no raw string (`r#type`).
fn raw(rest: &[char]) -> Option<usize> {
    let hashes = rest.iter().take_while(|letter| **letter == '#').count();
    if rest.get(hashes) != Some(&'"') {
        return None;
    }
    let end: Vec<char> = std::iter::once('"').chain(std::iter::repeat_n('#', hashes)).collect();
    let from = hashes + 1;
    let length = rest[from..].windows(end.len()).position(|window| window == end);
    Some(length.map_or(rest.len(), |length| from + length + end.len()))
}

/// The length of a character literal; `None` for a lifetime.
fn character(rest: &[char]) -> Option<usize> {
    match rest {
        [_, '\\', ..] => Some(quoted(rest, '\'')),
        [_, _, '\'', ..] => Some(3),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_are_no_code() {
        let text = "let a = \"madsim \\\" x\"; // madsim\n/* madsim /* y */ */ b('\"', '\\'', r#\"madsim\"#, r#type);\n";
        let source = Source::new(text, false);
        assert!(!source.code.contains("madsim"), "{}", source.code);
        assert!(source.code.contains("r#type") && source.code.contains("let a ="), "{}", source.code);
        assert_eq!(source.comments.matches("madsim").count(), 2);
        assert_eq!(source.code.lines().count(), 2);
    }

    #[test]
    fn lifetimes_are_code() {
        let source = Source::new("fn f<'a>(x: &'a str) -> &'a str { x }\n", false);
        assert_eq!(source.code, "fn f<'a>(x: &'a str) -> &'a str { x }\n");
    }

    #[test]
    fn what_follows_the_tests_at_the_end_is_a_test() {
        let source = Source::new("fn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\n", false);
        let tests: Vec<bool> = source.lines().map(|(_, _, test)| test).collect();
        assert_eq!(tests, [false, true, true, true, true]);
        let declared = Source::new("#[cfg(test)]\nmod tests;\n\nfn a() { x(); }\n\nfn b() {}\n", false);
        assert!(declared.lines().last().is_some_and(|(_, _, test)| !test));
    }

    #[test]
    fn words_stand_alone() {
        assert!(has_word("use madsim::time;", "madsim"));
        assert!(!has_word("let madsimulated = 1;", "madsim"));
        assert!(has_word("x.await?", ".await"));
        assert!(!has_word("x.awaited()", ".await"));
    }
}
