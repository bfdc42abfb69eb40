//! Rows as Arrow's columns.

use super::row::{COLUMNS, Get, Row};
use super::texts::{Text, Texts};
use aclshim_collect::judge::rule_ids;
use anyhow::Result;
use arrow::array::{
    ArrayRef, ArrowPrimitiveType, BooleanArray, DictionaryArray, ListBuilder, PrimitiveArray, StringArray,
    StringBuilder,
};
use arrow::buffer::{BooleanBuffer, NullBuffer};
use arrow::datatypes::{DataType, Field, Int32Type, Int64Type, Schema, UInt32Type, UInt64Type};
use arrow::record_batch::RecordBatch;
use std::sync::Arc;

/// The column that is the name of a folder, and not in the files.
const IN_THE_PATH: &str = "host";

/// The columns of a file.
pub fn schema() -> Schema {
    let columns = COLUMNS.iter().filter(|column| column.name != IN_THE_PATH);
    Schema::new(
        columns
            .map(|column| Field::new(column.name, data_type(column.get), is_nullable(column.get)))
            .collect::<Vec<_>>(),
    )
}

fn data_type(get: Get) -> DataType {
    match get {
        Get::Text(_) => DataType::Dictionary(DataType::Int32.into(), DataType::Utf8.into()),
        Get::Size(_) | Get::Address(_) => DataType::UInt64,
        Get::Long(_) => DataType::Int64,
        Get::Id(_) => DataType::UInt32,
        Get::Int(_) => DataType::Int32,
        Get::Flag(_) => DataType::Boolean,
        Get::Rules(_) => DataType::List(Field::new("item", DataType::Utf8, true).into()),
    }
}

fn is_nullable(get: Get) -> bool {
    !matches!(get, Get::Flag(_) | Get::Rules(_))
}

/// Rows, column by column.
pub fn batch(schema: &Arc<Schema>, rows: &[Row], texts: &Texts) -> Result<RecordBatch> {
    let columns = COLUMNS.iter().filter(|column| column.name != IN_THE_PATH);
    let arrays = columns.map(|column| (column.gather)(rows, texts));
    Ok(RecordBatch::try_new(Arc::clone(schema), arrays.collect::<Result<_>>()?)?)
}

/// What a column of rows becomes. `get` is known where this is compiled, so that it costs no call for each value.
pub trait Gather: Sized {
    /// The values of all rows.
    fn gather(rows: &[Row], get: impl Fn(&Row) -> Self, texts: &Texts) -> Result<ArrayRef>;
}

fn primitive<T: ArrowPrimitiveType>(
    rows: &[Row],
    mut get: impl FnMut(&Row) -> Option<T::Native>,
) -> Result<PrimitiveArray<T>> {
    let values: Vec<T::Native> = rows.iter().map(|row| get(row).unwrap_or_default()).collect();
    let is_there = NullBuffer::new(BooleanBuffer::collect_bool(rows.len(), |at| get(&rows[at]).is_some()));
    Ok(PrimitiveArray::try_new(values.into(), Some(is_there).filter(|is_there| is_there.null_count() > 0))?)
}

macro_rules! gather {
    ($($native:ty: $arrow:ty),+) => {$(
        impl Gather for Option<$native> {
            fn gather(rows: &[Row], get: impl Fn(&Row) -> Self, _: &Texts) -> Result<ArrayRef> {
                Ok(Arc::new(primitive::<$arrow>(rows, get)?))
            }
        }
    )+};
}
gather!(u64: UInt64Type, i64: Int64Type, u32: UInt32Type, i32: Int32Type);

impl Gather for bool {
    fn gather(rows: &[Row], get: impl Fn(&Row) -> Self, _: &Texts) -> Result<ArrayRef> {
        Ok(Arc::new(BooleanArray::new(BooleanBuffer::collect_bool(rows.len(), |at| get(&rows[at])), None)))
    }
}

impl Gather for Option<Text> {
    /// Dictionary-encoded: each text is stored once.
    fn gather(rows: &[Row], get: impl Fn(&Row) -> Self, texts: &Texts) -> Result<ArrayRef> {
        let mut numbers = vec![-1; texts.len()];
        let mut values = Vec::new();
        let mut number = |text: Text| {
            let number = &mut numbers[text.number()];
            if *number < 0 {
                *number = values.len() as i32;
                values.push(texts.get(text));
            }
            *number
        };
        let keys = primitive::<Int32Type>(rows, |row| get(row).map(&mut number))?;
        Ok(Arc::new(DictionaryArray::try_new(keys, Arc::new(StringArray::from(values)))?))
    }
}

impl Gather for u128 {
    /// The ids of rules.
    fn gather(rows: &[Row], get: impl Fn(&Row) -> Self, _: &Texts) -> Result<ArrayRef> {
        let mut lists = ListBuilder::new(StringBuilder::new());
        for row in rows {
            rule_ids(get(row)).for_each(|id| lists.values().append_value(id));
            lists.append(true);
        }
        Ok(Arc::new(lists.finish()))
    }
}
