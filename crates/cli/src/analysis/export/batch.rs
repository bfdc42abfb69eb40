//! Rows as Arrow record batches.

use super::row::{COLUMNS, Get, Row};
use super::texts::Texts;
use anyhow::Result;
use arrow::datatypes::{DataType, Field, Schema};
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
    let arrays = columns.map(|column| (column.array)(rows, texts));
    Ok(RecordBatch::try_new(Arc::clone(schema), arrays.collect::<Result<_>>()?)?)
}
