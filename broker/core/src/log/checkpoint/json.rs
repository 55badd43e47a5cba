//! As much JSON as Kafka's small state files need: objects, arrays, whole numbers, texts. A few hundred bytes, so
//! nothing here is made for speed; depth is bounded.

/// Kafka's state files nest two deep.
const DEPTH_MAX: usize = 8;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Json {
    Number(i64),
    Text(String),
    Array(Vec<Json>),
    Object(Vec<(String, Json)>),
    /// `true`, `false` or `null`: allowed anywhere, used nowhere.
    Word,
}

impl Json {
    /// `None` when `text` is not one whole value.
    pub fn parse(text: &str) -> Option<Json> {
        let mut reader = Reader { rest: text };
        let value = reader.value(DEPTH_MAX)?;
        reader.skip_space();
        reader.rest.is_empty().then_some(value)
    }

    pub fn field(&self, name: &str) -> Option<&Json> {
        let Json::Object(fields) = self else { return None };
        fields.iter().find(|(field, _)| field == name).map(|(_, value)| value)
    }

    pub fn number(&self, name: &str) -> Option<i64> {
        match self.field(name)? {
            Json::Number(number) => Some(*number),
            _ => None,
        }
    }

    pub fn text(&self, name: &str) -> Option<&str> {
        match self.field(name)? {
            Json::Text(text) => Some(text),
            _ => None,
        }
    }
}

/// `text` between quotes.
pub fn quote(text: &str) -> String {
    let mut quoted = String::from('"');
    for character in text.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            control if u32::from(control) < 0x20 => {
                quoted.push_str(&format!("\\u{:04x}", u32::from(control)))
            }
            plain => quoted.push(plain),
        }
    }
    quoted.push('"');
    quoted
}

struct Reader<'a> {
    rest: &'a str,
}

impl Reader<'_> {
    fn skip_space(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t', '\r', '\n']);
    }

    fn take(&mut self, token: &str) -> bool {
        self.skip_space();
        let taken = self.rest.strip_prefix(token);
        self.rest = taken.unwrap_or(self.rest);
        taken.is_some()
    }

    fn value(&mut self, depth: usize) -> Option<Json> {
        let depth = depth.checked_sub(1)?;
        if self.take("{") {
            return self.object(depth);
        }
        if self.take("[") {
            return self.array(depth);
        }
        if self.take("\"") {
            return self.text().map(Json::Text);
        }
        if ["true", "false", "null"].into_iter().any(|word| self.take(word)) {
            return Some(Json::Word);
        }
        let length =
            self.rest.find(|digit: char| digit != '-' && !digit.is_ascii_digit()).unwrap_or(self.rest.len());
        let (digits, rest) = self.rest.split_at(length);
        self.rest = rest;
        digits.parse().ok().map(Json::Number)
    }

    fn object(&mut self, depth: usize) -> Option<Json> {
        let mut fields = Vec::new();
        if self.take("}") {
            return Some(Json::Object(fields));
        }
        loop {
            if !self.take("\"") {
                return None;
            }
            let name = self.text()?;
            if !self.take(":") {
                return None;
            }
            fields.push((name, self.value(depth)?));
            if self.take("}") {
                return Some(Json::Object(fields));
            }
            if !self.take(",") {
                return None;
            }
        }
    }

    fn array(&mut self, depth: usize) -> Option<Json> {
        let mut values = Vec::new();
        if self.take("]") {
            return Some(Json::Array(values));
        }
        loop {
            values.push(self.value(depth)?);
            if self.take("]") {
                return Some(Json::Array(values));
            }
            if !self.take(",") {
                return None;
            }
        }
    }

    /// The rest of a text, after its opening quote.
    fn text(&mut self) -> Option<String> {
        let mut text = String::new();
        let mut characters = self.rest.char_indices();
        while let Some((index, character)) = characters.next() {
            match character {
                '"' => {
                    self.rest = &self.rest[index + 1..];
                    return Some(text);
                }
                '\\' => text.push(match characters.next()?.1 {
                    'n' => '\n',
                    't' => '\t',
                    'r' => '\r',
                    'b' => '\u{8}',
                    'f' => '\u{c}',
                    'u' => {
                        let mut code = 0;
                        for _ in 0..4 {
                            code = code * 16 + characters.next()?.1.to_digit(16)?;
                        }
                        char::from_u32(code)?
                    }
                    plain @ ('"' | '\\' | '/') => plain,
                    _ => return None,
                }),
                plain => text.push(plain),
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn values_are_read() {
        let json = Json::parse(r#" {"a": -5, "b":[{"c":"x\"\u0041"}, null, true], "d":{} } "#).expect("good");
        assert_eq!(json.number("a"), Some(-5));
        let Some(Json::Array(items)) = json.field("b") else { panic!("an array") };
        assert_eq!(items[0].text("c"), Some("x\"A"));
    }

    #[test]
    fn what_is_not_json_is_refused() {
        for text in ["", "{", "{\"a\"}", "[1,]", "1 2", "\"", "\"\\u00\"", "{\"a\":1.5}", &"[".repeat(10_000)]
        {
            assert_eq!(Json::parse(text), None, "{text:.20}");
        }
    }

    proptest! {
        #[test]
        fn every_text_survives_quoting(text in any::<String>()) {
            prop_assert_eq!(Json::parse(&quote(&text)), Some(Json::Text(text)));
        }

        #[test]
        fn no_text_makes_the_reader_panic(text in "[\\[\\]{}\",:0-9a\\\\u -]{0,60}") {
            let _ = Json::parse(&text);
        }
    }
}
