//! A call's arguments by role, whatever its function, as the log has them.

use crate::interpreter::totals;
use crate::log::line::Address;
use aclshim_facts::Function;
use aclshim_facts::call::Form;
use aclshim_trace::record::Call;

/// The roles that a call has; the others are `None`.
pub(crate) struct Arguments {
    /// In the vendor's words.
    pub direction: Option<&'static str>,
    pub bytes: Option<u64>,
    pub dst_max: Option<u64>,
    pub dst: Option<Address>,
    pub src: Option<Address>,
    pub stream: Option<Address>,
}

impl Arguments {
    pub fn of(function: Function, call: &Call) -> Self {
        let decoded = function.call(&call.arguments);
        let (dst, src, dst_max, kind) = match decoded.form {
            Form::Linear { dst, dst_max, src, kind, .. } => {
                (Some(dst as u64), Some(src as u64), Some(dst_max), Some(kind))
            }
            Form::Pitched { dst, src, kind, .. } => (Some(dst as u64), Some(src as u64), None, Some(kind)),
            Form::Indirect { dst, dst_max, src, kind, .. } => {
                (Some(dst as u64), Some(src as u64), Some(dst_max), Some(kind))
            }
            Form::FromSymbol { dst, dst_max, symbol, kind, .. } => {
                (Some(dst as u64), Some(symbol as u64), Some(dst_max), Some(kind))
            }
            Form::ToSymbol { symbol, src, kind, .. } => (Some(symbol as u64), Some(src as u64), None, Some(kind)),
            Form::SetDesc { src, dst, kind, .. } => (Some(dst as u64), Some(src as u64), None, Some(kind)),
            Form::Described { kind, .. } | Form::DescSize { kind, .. } => (None, None, None, Some(kind)),
            Form::Fill { dst, dst_max, .. } | Form::FillWords { dst, dst_max, .. } => {
                (Some(dst as u64), None, Some(dst_max), None)
            }
            Form::Batch(_) => (None, None, None, None),
        };
        let bytes = match decoded.form {
            Form::Batch(_) => call.batch.as_ref().map(|batch| batch.total),
            _ => Some(totals::bytes(function, call)),
        };
        Self {
            direction: kind.and_then(|kind| kind.name()),
            bytes,
            dst_max: dst_max.map(|room| room as u64),
            dst: dst.map(Address),
            src: src.map(Address),
            stream: decoded.stream.map(|stream| Address(stream as u64)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aclshim_facts::FUNCTIONS;

    #[test]
    fn every_function_has_its_arguments_in_their_roles() {
        for row in FUNCTIONS {
            let function = Function::by_name(row.name).unwrap();
            let call = Call {
                number: 0,
                function: function as u16,
                arguments: std::array::from_fn(|at| 100 + at as u64),
                begin: 0,
                end: None,
                site: 0,
                is_nested: false,
                findings: 0,
                flags: 0,
                scope: 0,
                batch: None,
            };
            let shape = Arguments::of(function, &call);
            let named = |names: &[&str]| {
                let at = row.arguments.iter().position(|argument| names.contains(&argument.name));
                at.map(|at| 100 + at as u64)
            };
            let is_to_symbol = row.name.contains("ToSymbol");
            let dst = named(if is_to_symbol { &["symbol"] } else { &["dst", "dstAddr", "devPtr", "ptr"] });
            let src = named(if is_to_symbol { &["src"] } else { &["src", "srcAddr", "symbol"] });
            assert_eq!((shape.dst, shape.src), (dst.map(Address), src.map(Address)), "{}", row.name);
            let room = named(&["destMax", "dstMax", "maxCount", "memSize"]);
            assert_eq!((shape.dst_max, shape.stream), (room, named(&["stream"]).map(Address)), "{}", row.name);
            let is_batch = row.name.contains("Batch");
            assert_eq!(shape.bytes.is_none(), is_batch, "{}: a batch's are known when it has returned", row.name);
        }
    }
}
