//! Rows as Arrow's columns.

use super::row::{COLUMNS, Get, Row, rule_ids};
use super::texts::{Text, Texts};
use anyhow::Result;
use arrow::array::{
    ArrayRef, BooleanArray, DictionaryArray, Int32Array, Int64Array, ListBuilder, StringArray, StringBuilder,
    UInt32Array, UInt64Array,
};
use arrow::datatypes::{DataType, Field, Int32Type, Schema};
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
    let arrays = columns.map(|column| array(column.get, rows, texts));
    Ok(RecordBatch::try_new(Arc::clone(schema), arrays.collect::<Result<_>>()?)?)
}

fn array(get: Get, rows: &[Row], texts: &Texts) -> Result<ArrayRef> {
    Ok(match get {
        Get::Text(get) => Arc::new(dictionary(rows.iter().map(get), texts)?),
        Get::Size(get) | Get::Address(get) => Arc::new(rows.iter().map(get).collect::<UInt64Array>()),
        Get::Long(get) => Arc::new(rows.iter().map(get).collect::<Int64Array>()),
        Get::Id(get) => Arc::new(rows.iter().map(get).collect::<UInt32Array>()),
        Get::Int(get) => Arc::new(rows.iter().map(get).collect::<Int32Array>()),
        Get::Flag(get) => Arc::new(rows.iter().map(|row| Some(get(row))).collect::<BooleanArray>()),
        Get::Rules(get) => {
            let mut lists = ListBuilder::new(StringBuilder::new());
            for row in rows {
                rule_ids(get(row)).for_each(|id| lists.values().append_value(id));
                lists.append(true);
            }
            Arc::new(lists.finish())
        }
    })
}

/// Texts by number: those that occur are told once.
fn dictionary(column: impl Iterator<Item = Option<Text>>, texts: &Texts) -> Result<DictionaryArray<Int32Type>> {
    let mut numbers = vec![None; texts.len()];
    let mut values = Vec::new();
    let keys: Int32Array = column
        .map(|text| {
            let text = text?;
            Some(*numbers[text.number()].get_or_insert_with(|| {
                values.push(texts.get(text));
                values.len() as i32 - 1
            }))
        })
        .collect();
    Ok(DictionaryArray::try_new(keys, Arc::new(StringArray::from(values)))?)
}
