//! Literals of Python, as numpy writes them into the heads of its files, and as JSON.
//!
//! Tuples become lists. On the way back numpy wants tuples again: for fields, and for shapes in them.

use serde_json::{Map, Value};

/// Reads one literal: dictionaries with texts as keys, tuples, lists, texts, whole numbers, `True`, `False`, `None`.
pub(crate) fn parsed(text: &str) -> Option<Value> {
    let mut reader = Reader {
        rest: text.trim_start(),
        depth: 0,
    };
    let value = reader.value()?;
    reader.rest.trim().is_empty().then_some(value)
}

/// Levels of a literal; numpy needs a few.
const MOST_LEVELS: usize = 32;

struct Reader<'t> {
    rest: &'t str,
    depth: usize,
}

impl Reader<'_> {
    fn takes(&mut self, token: &str) -> bool {
        let Some(rest) = self.rest.strip_prefix(token) else {
            return false;
        };
        self.rest = rest.trim_start();
        true
    }

    fn value(&mut self) -> Option<Value> {
        self.depth += 1;
        let value = (self.depth <= MOST_LEVELS).then(|| self.inner())?;
        self.depth -= 1;
        value
    }

    fn inner(&mut self) -> Option<Value> {
        for (token, value) in [
            ("True", Value::Bool(true)),
            ("False", Value::Bool(false)),
            ("None", Value::Null),
        ] {
            if self.takes(token) {
                return Some(value);
            }
        }
        match self.rest.chars().next()? {
            '{' => self.dictionary(),
            '(' => self.sequence("(", ")"),
            '[' => self.sequence("[", "]"),
            '\'' | '"' => self.text().map(Value::String),
            _ => self.number(),
        }
    }

    fn dictionary(&mut self) -> Option<Value> {
        let mut map = Map::new();
        self.takes("{");
        while !self.takes("}") {
            let key = self.text()?;
            self.takes(":").then_some(())?;
            map.insert(key, self.value()?);
            if !self.takes(",") && !self.rest.starts_with('}') {
                return None;
            }
        }
        Some(Value::Object(map))
    }

    fn sequence(&mut self, open: &str, close: &str) -> Option<Value> {
        let mut all = Vec::new();
        self.takes(open);
        while !self.takes(close) {
            all.push(self.value()?);
            if !self.takes(",") && !self.rest.starts_with(close) {
                return None;
            }
        }
        Some(Value::Array(all))
    }

    fn text(&mut self) -> Option<String> {
        let quote = self.rest.chars().next().filter(|c| "'\"".contains(*c))?;
        let mut found = String::new();
        let mut chars = self.rest.char_indices().skip(1);
        while let Some((at, c)) = chars.next() {
            match c {
                '\\' => found.push(
                    chars
                        .next()
                        .map(|(_, c)| c)
                        .filter(|c| "\\'\"".contains(*c))?,
                ),
                c if c == quote => {
                    self.rest = self.rest[at + 1..].trim_start();
                    return Some(found);
                }
                c => found.push(c),
            }
        }
        None
    }

    fn number(&mut self) -> Option<Value> {
        let end = self
            .rest
            .find(|c: char| !c.is_ascii_digit() && c != '-')
            .unwrap_or(self.rest.len());
        let number: i64 = self.rest[..end].parse().ok()?;
        self.rest = self.rest[end..].trim_start_matches('L').trim_start();
        Some(number.into())
    }
}

/// A type of entries as numpy writes it into a head.
pub(crate) fn type_literal(said: &Value) -> String {
    match said {
        Value::String(text) => quoted(text),
        Value::Array(fields) if !fields.is_empty() && fields.iter().all(Value::is_array) => {
            let fields: Vec<String> = fields.iter().map(field).collect();
            format!("[{}]", fields.join(", "))
        }
        Value::Array(parts) => tuple(parts.iter().map(type_literal).collect()),
        other => other.to_string(),
    }
}

fn field(said: &Value) -> String {
    let Value::Array(parts) = said else {
        return said.to_string();
    };
    let told = parts.iter().enumerate().map(|(place, part)| match part {
        // A title and a name, or a shape.
        Value::Array(inner) if place != 1 => tuple(inner.iter().map(type_literal).collect()),
        other => type_literal(other),
    });
    tuple(told.collect())
}

fn tuple(parts: Vec<String>) -> String {
    match parts.as_slice() {
        [one] => format!("({one},)"),
        _ => format!("({})", parts.join(", ")),
    }
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn heads_of_numpy_are_read() {
        let head = "{'descr': [('a', '<i4'), ('b\\'s', '<f8', (2,))], 'fortran_order': False, 'shape': (3, 4), }   \n";
        let due = json!({
            "descr": [["a", "<i4"], ["b's", "<f8", [2]]], "fortran_order": false, "shape": [3, 4],
        });
        assert_eq!(parsed(head), Some(due));
        assert_eq!(parsed("()"), Some(json!([])));
        assert_eq!(parsed("(5,)"), Some(json!([5])));
        for bad in [
            "",
            "{",
            "{'a' 1}",
            "(1 2)",
            "'x",
            "{'a': 1} x",
            &"(".repeat(100),
        ] {
            assert_eq!(parsed(bad), None, "{bad}");
        }
    }

    #[test]
    fn types_become_what_they_were() {
        for text in [
            "'<f8'",
            "[('a', '<i4'), ('b\\'s', '<f8', (2,))]",
            "[('n', [('x', '|u1')]), ('t', '<M8[ns]', (2, 3))]",
        ] {
            let read = parsed(text).expect(text);
            assert_eq!(type_literal(&read), text);
        }
    }
}
