//! Values of rows as Arrow arrays.

use super::texts::{Text, Texts};
use aclshim_collect::findings::rule_bits::rule_ids;
use anyhow::Result;
use arrow::array::{
    ArrayRef, ArrowPrimitiveType, BooleanArray, DictionaryArray, ListBuilder, PrimitiveArray, StringArray,
    StringBuilder,
};
use arrow::buffer::{BooleanBuffer, NullBuffer};
use arrow::datatypes::{Int32Type, Int64Type, UInt32Type, UInt64Type};
use std::sync::Arc;

/// A value that becomes an element of an Arrow array. `get` is known at compile time, so that it costs no call per value.
pub trait ArrowValue: Sized {
    /// The values of all rows.
    fn array<R>(rows: &[R], get: impl Fn(&R) -> Self, texts: &Texts) -> Result<ArrayRef>;
}

fn primitive<T: ArrowPrimitiveType, R>(
    rows: &[R],
    mut get: impl FnMut(&R) -> Option<T::Native>,
) -> Result<PrimitiveArray<T>> {
    let values: Vec<T::Native> = rows.iter().map(|row| get(row).unwrap_or_default()).collect();
    let is_there = NullBuffer::new(BooleanBuffer::collect_bool(rows.len(), |at| get(&rows[at]).is_some()));
    Ok(PrimitiveArray::try_new(values.into(), Some(is_there).filter(|is_there| is_there.null_count() > 0))?)
}

macro_rules! arrow_values {
    ($($native:ty: $arrow:ty),+) => {$(
        impl ArrowValue for Option<$native> {
            fn array<R>(rows: &[R], get: impl Fn(&R) -> Self, _: &Texts) -> Result<ArrayRef> {
                Ok(Arc::new(primitive::<$arrow, R>(rows, get)?))
            }
        }
    )+};
}
arrow_values!(u64: UInt64Type, i64: Int64Type, u32: UInt32Type, i32: Int32Type);

impl ArrowValue for bool {
    fn array<R>(rows: &[R], get: impl Fn(&R) -> Self, _: &Texts) -> Result<ArrayRef> {
        Ok(Arc::new(BooleanArray::new(BooleanBuffer::collect_bool(rows.len(), |at| get(&rows[at])), None)))
    }
}

impl ArrowValue for Option<Text> {
    /// Dictionary-encoded: each text is stored once.
    fn array<R>(rows: &[R], get: impl Fn(&R) -> Self, texts: &Texts) -> Result<ArrayRef> {
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
        let keys = primitive::<Int32Type, R>(rows, |row| get(row).map(&mut number))?;
        Ok(Arc::new(DictionaryArray::try_new(keys, Arc::new(StringArray::from(values)))?))
    }
}

impl ArrowValue for u128 {
    /// The ids of rules.
    fn array<R>(rows: &[R], get: impl Fn(&R) -> Self, _: &Texts) -> Result<ArrayRef> {
        let mut lists = ListBuilder::new(StringBuilder::new());
        for row in rows {
            rule_ids(get(row)).for_each(|id| lists.values().append_value(id));
            lists.append(true);
        }
        Ok(Arc::new(lists.finish()))
    }
}
