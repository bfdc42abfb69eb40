//! Rows as text: CSV and JSON, one a line.

use super::Sink;
use super::row::{COLUMNS, Row, Value};
use super::texts::Texts;
use crate::output::file::OutputFile;
use aclshim_collect::findings::rule_bits::rule_ids;
use anyhow::Result;
use std::borrow::Cow;
use std::io::{self, Write};

/// Comma-separated values after RFC 4180, with a line of names.
pub struct Csv(OutputFile);

/// One JSON object a line.
pub struct Jsonl(pub OutputFile);

impl Csv {
    /// Writes the names.
    pub fn new(mut to: OutputFile) -> Result<Self> {
        let names: Vec<_> = COLUMNS.iter().map(|column| column.name).collect();
        write!(to, "{}\r\n", names.join(","))?;
        Ok(Self(to))
    }
}

impl Sink for Csv {
    fn row(&mut self, row: &Row, texts: &Texts) -> Result<()> {
        csv_line(&mut self.0, row, texts)?;
        Ok(())
    }

    fn finish(self: Box<Self>, _texts: &Texts) -> Result<()> {
        self.0.finish()
    }
}

impl Sink for Jsonl {
    fn row(&mut self, row: &Row, texts: &Texts) -> Result<()> {
        let mut between = "{";
        for column in COLUMNS {
            self.0.write_all(between.as_bytes())?;
            between = ",";
            json_pair(&mut self.0, column.name, column.value(row, texts))?;
        }
        self.0.write_all(b"}\n")?;
        Ok(())
    }

    fn finish(self: Box<Self>, _texts: &Texts) -> Result<()> {
        self.0.finish()
    }
}

fn csv_line(to: &mut impl Write, row: &Row, texts: &Texts) -> io::Result<()> {
    let mut between = "";
    for column in COLUMNS {
        to.write_all(between.as_bytes())?;
        between = ",";
        match column.value(row, texts) {
            Value::Nothing => Ok(()),
            Value::Text(text) => quoted(to, &no_formula(text)),
            Value::Number(number) => write!(to, "{number}"),
            Value::Signed(number) => write!(to, "{number}"),
            Value::Address(address) => write!(to, "{address:#x}"),
            Value::Flag(flag) => write!(to, "{flag}"),
            Value::Rules(rules) => listed(to, rules, "", ";"),
        }?;
    }
    to.write_all(b"\r\n")
}

/// With an apostrophe in front where a spreadsheet would take a text for a formula: names of files and programs may come from any user.
fn no_formula(text: &str) -> Cow<'_, str> {
    match text.starts_with(['=', '+', '-', '@', '\t', '\r']) {
        true => format!("'{text}").into(),
        false => text.into(),
    }
}

/// In quotes where it would not be read back without them.
fn quoted(to: &mut impl Write, text: &str) -> io::Result<()> {
    let is_plain = !text.contains([',', '"', '\r', '\n']) && text.trim() == text;
    if is_plain { to.write_all(text.as_bytes()) } else { write!(to, "\"{}\"", text.replace('"', "\"\"")) }
}

/// A key and a value of a JSON object.
pub fn json_pair(to: &mut impl Write, name: &str, value: Value<'_>) -> io::Result<()> {
    write!(to, "\"{name}\":")?;
    match value {
        Value::Nothing => to.write_all(b"null"),
        Value::Text(text) => Ok(serde_json::to_writer(to, text)?),
        Value::Number(number) => write!(to, "{number}"),
        Value::Signed(number) => write!(to, "{number}"),
        // As text: numbers of this size lose digits in many readers.
        Value::Address(address) => write!(to, "\"{address:#x}\""),
        Value::Flag(flag) => write!(to, "{flag}"),
        Value::Rules(rules) => {
            to.write_all(b"[")?;
            listed(to, rules, "\"", ",")?;
            to.write_all(b"]")
        }
    }
}

fn listed(to: &mut impl Write, rules: u128, quote: &str, between: &str) -> io::Result<()> {
    rule_ids(rules).enumerate().try_for_each(|(at, id)| {
        let between = if at > 0 { between } else { "" };
        write!(to, "{between}{quote}{id}{quote}")
    })
}
