//! One recorded call as a row, and the columns that every format has.
//!
//! A column is declared once, below. The fields of [`Row`], the header line of CSV, the keys of JSON, the schema of
//! Parquet and the table in `docs/exporting.md` (`aclshim export --columns`) follow from it.

use super::array::ArrowValue;
use super::texts::{Text, Texts};
use anyhow::Result;
use arrow::array::ArrayRef;
use std::fmt::Write;

/// What a column holds in a row.
pub mod cell {
    /// A text out of few.
    pub type Text = Option<super::Text>;
    /// A number as large as a `size_t`.
    pub type Size = Option<u64>;
    /// A pointer or handle.
    pub type Address = Option<u64>;
    /// A large number with a sign.
    pub type Long = Option<i64>;
    /// A small number without a sign.
    pub type Id = Option<u32>;
    /// A C `int`.
    pub type Int = Option<i32>;
    /// Yes or no.
    pub type Flag = bool;
    /// One bit a rule.
    pub type Rules = u128;
}

/// How a column is read from a row; also its type.
#[derive(Clone, Copy)]
pub enum Get {
    Text(fn(&Row) -> cell::Text),
    Size(fn(&Row) -> cell::Size),
    Address(fn(&Row) -> cell::Address),
    Long(fn(&Row) -> cell::Long),
    Id(fn(&Row) -> cell::Id),
    Int(fn(&Row) -> cell::Int),
    Flag(fn(&Row) -> cell::Flag),
    Rules(fn(&Row) -> cell::Rules),
}

/// What a column describes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum About {
    /// The process and thread, which have names of their own in a timeline.
    Process,
    /// Where the call stands in time, which a timeline shows.
    Time,
    Call,
}

/// A column.
pub struct Column {
    pub name: &'static str,
    /// What it says.
    pub sentence: &'static str,
    /// What it describes.
    pub about: About,
    pub get: Get,
    /// Its values in many rows.
    pub array: fn(&[Row], &Texts) -> Result<ArrayRef>,
}

macro_rules! columns {
    ($($about:ident { $(#[doc = $sentence:literal] $name:ident: $kind:ident,)+ })+) => {
        /// One call.
        #[derive(Clone, Copy, Debug, Default)]
        pub struct Row {
            $($(#[doc = $sentence] pub $name: cell::$kind,)+)+
            /// Which process, among those that were read.
            pub process: usize,
        }

        /// All columns, in order.
        pub static COLUMNS: &[Column] = &[$($(Column {
            name: stringify!($name),
            sentence: $sentence.trim_ascii(),
            about: About::$about,
            get: Get::$kind(|row| row.$name),
            array: |rows, texts| ArrowValue::array(rows, |row: &Row| row.$name, texts),
        }),+),+];
    };
}

columns! {
    Process {
        /// The machine's name.
        host: Text,
        /// The machine's boot: with `pid` and `born_ns` it names the process.
        boot: Text,
        /// The process, in its own pid namespace.
        pid: Id,
        /// When the process made its first copy, in nanoseconds since 1970.
        born_ns: Long,
        /// The rank among the processes of a job.
        rank: Text,
        /// The program's path.
        executable: Text,
        /// The product, as the vendor names it.
        product: Text,
        /// The CANN version.
        cann: Text,
        /// The thread.
        thread: Id,
        /// The ring that the thread recorded into; `number` counts in it.
        ring: Id,
    }
    Call {
        /// The number of the record in its ring: greater is later.
        number: Size,
    }
    Time {
        /// The function.
        function: Text,
        /// When the call began, in nanoseconds since 1970.
        time_ns: Long,
        /// How long it took; of an asynchronous call that is the submission.
        duration_ns: Long,
    }
    Call {
        /// `done`; `left`: an exception or a jump passed through; `in flight`: no end was seen.
        state: Text,
        /// What it returned.
        code: Int,
        /// The vendor's name of that, where it is not 0.
        code_name: Text,
        /// The vendor's library made it inside another call.
        nested: Flag,
        /// A rule refused it, and it was not forwarded.
        refused: Flag,
        /// Its result was injected.
        injected: Flag,
        /// The ids of the rules that it breaks.
        rules: Rules,
        /// How many bytes it asks to move or set; of a batch that was not accepted, unknown.
        bytes: Size,
        /// The argument `kind` (aclrtMemcpyKind).
        kind: Int,
        /// The vendor's name of that, without `ACL_MEMCPY_`.
        kind_name: Text,
        /// `host to device`, `device to host`, `device to device`, `host to host`, where the arguments tell.
        direction: Text,
        /// Where to: an address, or a device variable.
        dst: Address,
        /// The room there.
        dst_max: Size,
        /// Where from.
        src: Address,
        /// The argument `count`; of `aclrtMemsetD32` the number of words.
        count: Size,
        /// The stream of an asynchronous call; `0x0` is the default stream.
        stream: Address,
        /// Of a 2D copy: from one row to the next at the destination.
        dst_pitch: Size,
        /// The same at the source.
        src_pitch: Size,
        /// The bytes of a row.
        width: Size,
        /// How many rows.
        height: Size,
        /// The offset at the destination, where the function has one.
        dst_offset: Size,
        /// The offset at the source.
        src_offset: Size,
        /// The value that memory is set to.
        value: Long,
        /// The copy descriptor in device memory.
        descriptor: Address,
        /// How many copies a batch makes.
        items: Size,
        /// The smallest of them in bytes.
        smallest: Size,
        /// The largest.
        largest: Size,
        /// How many of them are larger than the room at their destination.
        too_large: Size,
        /// The return address in the caller.
        site: Address,
        /// The file that this address lies in.
        module: Text,
        /// From where that file begins in memory.
        module_offset: Size,
        /// The scope that was open, by its name; `#` and its number where that is not known.
        scope: Text,
        /// The number of that scope in its process.
        scope_id: Id,
        /// What the program calls the stream.
        stream_name: Text,
        /// What the program calls the memory at the destination.
        dst_name: Text,
        /// What the program calls the memory at the source.
        src_name: Text,
    }
}

/// What one row holds in one column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    Nothing,
    Text(&'a str),
    Number(u64),
    Signed(i64),
    Address(u64),
    Flag(bool),
    /// One bit a rule.
    Rules(u128),
}

impl Column {
    /// Its value in a row.
    pub fn value<'a>(&self, row: &Row, texts: &'a Texts) -> Value<'a> {
        let value = match self.get {
            Get::Text(get) => get(row).map(|text| Value::Text(texts.get(text))),
            Get::Size(get) => get(row).map(Value::Number),
            Get::Address(get) => get(row).map(Value::Address),
            Get::Long(get) => get(row).map(Value::Signed),
            Get::Id(get) => get(row).map(|id| Value::Number(id.into())),
            Get::Int(get) => get(row).map(|int| Value::Signed(int.into())),
            Get::Flag(get) => Some(Value::Flag(get(row))),
            Get::Rules(get) => Some(Value::Rules(get(row))),
        };
        value.unwrap_or(Value::Nothing)
    }

    /// The value of a column of texts.
    pub fn text(&self, row: &Row) -> Option<Text> {
        match self.get {
            Get::Text(get) => get(row),
            _ => None,
        }
    }
}

impl Row {
    /// The stream that the call has put work on, if it has.
    pub fn submits(&self) -> Option<u64> {
        self.stream.filter(|_| self.code == Some(0) && !self.nested && !self.refused)
    }
}

impl Get {
    /// The type in Parquet, in JSON, and in CSV.
    fn types(self) -> [&'static str; 3] {
        match self {
            Get::Text(_) => ["string", "string", "text"],
            Get::Size(_) => ["uint64", "number", "digits"],
            Get::Address(_) => ["uint64", "string", "`0x7f00`"],
            Get::Long(_) => ["int64", "number", "digits"],
            Get::Id(_) => ["uint32", "number", "digits"],
            Get::Int(_) => ["int32", "number", "digits"],
            Get::Flag(_) => ["boolean", "boolean", "`true`, `false`"],
            Get::Rules(_) => ["list of string", "array of string", "ids with `;` between"],
        }
    }
}

/// The columns as a table of a document.
pub fn table() -> String {
    let mut text = String::from("| column | Parquet | JSON | CSV | |\n|---|---|---|---|---|\n");
    for Column { name, sentence, get, .. } in COLUMNS {
        let [parquet, json, csv] = get.types();
        let _ = writeln!(text, "| `{name}` | {parquet} | {json} | {csv} | {sentence} |");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn no_two_columns_have_one_name() {
        let names: BTreeSet<_> = COLUMNS.iter().map(|column| column.name).collect();
        assert_eq!(names.len(), COLUMNS.len());
    }
}
