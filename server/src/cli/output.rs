//! What commands print: text for people, or with `--json` one JSON document for programs.
//!
//! Invariant: stdout has results alone; everything else goes to stderr. A reader that closes the
//! pipe early (`| head`) ends the output, not the program with a panic.

use std::io::{self, Write as _};

use serde_json::Value;

/// Where results go, and in which form.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Output {
    pub(crate) json: bool,
}

impl Output {
    /// Prints a result.
    pub(crate) fn value(self, value: &Value, text: impl FnOnce() -> String) {
        self.line(&if self.json { value.to_string() } else { text() });
    }

    /// Prints a list as a table, or as one JSON array.
    pub(crate) fn rows(self, table: &Table, empty: &str, values: Vec<Value>) {
        if self.json {
            self.line(&Value::Array(values).to_string());
        } else if values.is_empty() {
            self.note(empty);
        } else {
            self.line(table.render().trim_end());
        }
    }

    /// Prints one line of a result.
    pub(crate) fn line(self, text: &str) {
        // Nobody reads any more: there is nobody to tell either.
        let _closed = self.try_line(text);
    }

    /// The same for a command that goes on until nobody reads any more; says whether somebody does.
    pub(crate) fn try_line(self, text: &str) -> bool {
        let mut out = io::stdout().lock();
        writeln!(out, "{text}").and_then(|()| out.flush()).is_ok()
    }

    /// Says something to people that is not a result.
    pub(crate) fn note(self, text: &str) {
        if !self.json {
            let _closed = writeln!(io::stderr().lock(), "{text}");
        }
    }
}

/// Columns of text, as wide as what is in them.
#[derive(Debug, Default)]
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these headings.
    pub(crate) fn new(headings: &[&str]) -> Self {
        Self { rows: vec![headings.iter().map(|heading| (*heading).into()).collect()] }
    }

    /// Appends a row.
    pub(crate) fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.rows.push(cells.into());
    }

    /// The table as text, without trailing spaces.
    pub(crate) fn render(&self) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<_> = (0..columns).map(width).collect();
        let mut text = String::new();
        for row in &self.rows {
            let mut line = String::new();
            for (cell, width) in row.iter().zip(&widths) {
                line += cell;
                line.extend(std::iter::repeat_n(' ', width + 2 - cell.chars().count()));
            }
            text += line.trim_end();
            text.push('\n');
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_cells() {
        let mut table = Table::new(&["NAME", "N"]);
        table.row(["größer".into(), "1".into()]);
        table.row(["a".into(), String::new()]);
        assert_eq!(table.render(), "NAME    N\ngrößer  1\na\n");
    }
}
