//! Numbers, times and colours in text. Colour only repeats what a word already says.

/// Whether to colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Style {
    pub colour: bool,
}

impl Style {
    pub fn red(self, text: &str) -> String {
        self.paint("31;1", text)
    }

    pub fn green(self, text: &str) -> String {
        self.paint("32", text)
    }

    pub fn yellow(self, text: &str) -> String {
        self.paint("33", text)
    }

    pub fn bold(self, text: &str) -> String {
        self.paint("1", text)
    }

    fn paint(self, code: &str, text: &str) -> String {
        if self.colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_string() }
    }
}

/// `1234567` as `1,234,567`.
pub fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Virtual microseconds as seconds with three digits: `27.500`.
pub fn seconds(micros: u64) -> String {
    format!("{}.{:03}", micros / 1_000_000, micros % 1_000_000 / 1_000)
}

/// `1 seed`, `2 seeds`.
pub fn count(number: u64, one: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {one}{plural}", thousands(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_and_times_cut_to_milliseconds() {
        assert_eq!(thousands(0), "0");
        assert_eq!(thousands(999), "999");
        assert_eq!(thousands(1_000), "1,000");
        assert_eq!(thousands(1_234_567), "1,234,567");
        assert_eq!(seconds(27_500_999), "27.500");
        assert_eq!(count(1, "seed"), "1 seed");
        assert_eq!(count(2, "seed"), "2 seeds");
    }

    #[test]
    fn without_colour_a_word_is_itself() {
        assert_eq!(Style::default().red("FAIL"), "FAIL");
        assert_eq!(Style { colour: true }.red("FAIL"), "\x1b[31;1mFAIL\x1b[0m");
    }
}
