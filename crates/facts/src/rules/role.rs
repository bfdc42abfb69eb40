//! The arguments of a call by role, and where each stands in the vendor's list.

use crate::call::Form;
use crate::rules::rule::{Finding, Severity, Subject};
use crate::vendor::abi::aclError;

/// What an argument is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the vendor's arguments by role
pub enum Role {
    Dst,
    DstMax,
    DstPitch,
    DstOffset,
    Src,
    SrcPitch,
    SrcOffset,
    Count,
    Width,
    Height,
    Items,
    Kind,
    Attrs,
    AttrIndexes,
    AttrCount,
    FailIndex,
    Desc,
    DescSize,
    Config,
    Symbol,
    Offset,
    Value,
    Stream,
}

use Role::*;

/// The roles of a form's arguments, in the vendor's order. A stream comes last, where there is one.
fn roles(form: &Form) -> &'static [Role] {
    match form {
        Form::Linear { .. } => &[Dst, DstMax, Src, Count, Kind],
        Form::Pitched { .. } => &[Dst, DstPitch, Src, SrcPitch, Width, Height, Kind],
        Form::Batch(batch) if batch.fail_index.is_some() => {
            &[Dst, DstMax, Src, Count, Items, Attrs, AttrIndexes, AttrCount, FailIndex]
        }
        Form::Batch(_) => &[Dst, DstMax, Src, Count, Items, Attrs, AttrIndexes, AttrCount],
        Form::Indirect { .. } => &[Dst, DstMax, DstOffset, Src, Count, SrcOffset, Kind],
        Form::Described { .. } => &[Desc, Kind],
        Form::FromSymbol { .. } => &[Dst, DstMax, Symbol, Count, Offset, Kind],
        Form::ToSymbol { .. } => &[Symbol, Src, Count, Offset, Kind],
        Form::DescSize { .. } => &[Kind, DescSize],
        Form::SetDesc { .. } => &[Desc, Kind, Src, Dst, Count, Config],
        Form::Fill { .. } | Form::FillWords { .. } => &[Dst, DstMax, Value, Count],
    }
}

impl Subject<'_> {
    /// The position of the argument of this role.
    pub fn position(&self, role: Role) -> u8 {
        let roles = roles(&self.call.form);
        // A device variable is the source or the destination of its copy.
        let role = match (role, &self.call.form) {
            (Src, Form::FromSymbol { .. }) | (Dst, Form::ToSymbol { .. }) => Symbol,
            _ => role,
        };
        roles.iter().position(|other| *other == role).unwrap_or(roles.len()) as u8
    }

    /// The role of the argument at this position, if the call is a batch: of arrays only the role says what they hold.
    pub fn role_in_batch(&self, position: u8) -> Option<Role> {
        self.batch()?;
        roles(&self.call.form).get(usize::from(position)).copied()
    }

    /// A finding at the argument of this role.
    pub fn finding(&self, role: Role, severity: Severity) -> Finding {
        Finding { argument: self.position(role), index: None, severity, code: 0, fail_index: None }
    }

    /// A finding at the argument of this role that the vendor refuses the call for.
    pub fn refusal(&self, role: Role, code: aclError) -> Finding {
        Finding { code, ..self.finding(role, Severity::Error) }
    }

    /// Says what the vendor writes to `failIndex`, where the function has one.
    pub fn failing(&self, index: usize, finding: Finding) -> Finding {
        let has_one = matches!(&self.call.form, Form::Batch(batch) if batch.fail_index.is_some());
        Finding { fail_index: has_one.then_some(index), ..finding }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::functions::{FUNCTIONS, Function};
    use crate::rules::rule::Arrays;
    use crate::rules::world::World;

    /// The vendor's names of a role.
    fn names(role: Role) -> &'static [&'static str] {
        match role {
            Dst => &["dst", "dsts", "dstAddr", "devPtr", "ptr"],
            DstMax => &["destMax", "destMaxs", "dstMax", "maxCount", "memSize"],
            DstPitch => &["dpitch"],
            DstOffset => &["dstDataOffset"],
            Src => &["src", "srcs", "srcAddr"],
            SrcPitch => &["spitch"],
            SrcOffset => &["srcDataOffset"],
            Count => &["count", "sizes", "N"],
            Width => &["width"],
            Height => &["height"],
            Items => &["numBatches"],
            Kind => &["kind"],
            Attrs => &["attrs"],
            AttrIndexes => &["attrsIndexes"],
            AttrCount => &["numAttrs"],
            FailIndex => &["failIndex"],
            Desc => &["desc"],
            DescSize => &["descSize"],
            Config => &["config"],
            Symbol => &["symbol"],
            Offset => &["offset"],
            Value => &["value"],
            Stream => &["stream"],
        }
    }

    #[test]
    fn a_role_stands_where_the_vendor_names_it() {
        for function in Function::ALL {
            let row = &FUNCTIONS[*function as usize];
            let subject = Subject {
                function: *function,
                call: function.call(&[]),
                arrays: Arrays::default(),
                world: World::UNKNOWN,
            };
            let mut expected = roles(&subject.call.form).to_vec();
            expected.extend(subject.call.stream.map(|_| Stream));
            assert_eq!(expected.len(), row.arguments.len(), "{}", row.name);
            for role in expected {
                let name = row.arguments[subject.position(role) as usize].name;
                assert!(names(role).contains(&name), "{} {role:?} at {name}", row.name);
            }
        }
    }
}
