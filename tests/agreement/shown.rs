//! A call as a person reads it.

use crate::case::{Attribute, Situation, Spot};
use crate::resolve::Resolved;
use crate::scene::Scene;
use std::fmt::{self, Display, Formatter};

/// As a person reads it: the call, and where its pointers point.
pub struct Shown<'a>(pub &'a Resolved, pub &'a Scene);

impl Display for Shown<'_> {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let Self(resolved, scene) = *self;
        let row = resolved.function.row();
        write!(f, "{}(", row.name)?;
        for (at, (argument, word)) in row.arguments.iter().zip(&resolved.words).enumerate() {
            let comma = if at > 0 { ", " } else { "" };
            let name = argument.name;
            match argument.c_type {
                "aclrtStream" => write!(f, "{comma}{name}={}", stream_name(*word, resolved, scene))?,
                kind if kind.contains('*') => {
                    let is_array = resolved.lists.is_some() && *word != 0 && name != "failIndex";
                    let shown = if is_array { "array".into() } else { pointer_name(*word, scene) };
                    write!(f, "{comma}{name}={shown}")?;
                }
                "aclrtMemcpyKind" | "int32_t" => write!(f, "{comma}{name}={}", *word as i32)?,
                _ => write!(f, "{comma}{name}={}", size_name(*word))?,
            }
        }
        writeln!(f, ")")?;
        if let Some(lists) = &resolved.lists {
            for at in 0..lists.dsts.len().min(12) {
                writeln!(
                    f,
                    "  item {at}: dst={} destMax={} src={} size={}",
                    pointer_name(lists.dsts[at], scene),
                    size_name(lists.dst_maxs[at]),
                    pointer_name(lists.srcs[at], scene),
                    size_name(lists.sizes[at])
                )?;
            }
            if lists.dsts.len() > 12 {
                writeln!(f, "  ... {} items in all", lists.dsts.len())?;
            }
            for (at, attribute) in lists.attributes.iter().enumerate().take(8) {
                let Attribute { dst_type, dst_id, src_type, src_id, reserved } = attribute;
                let index = size_name(lists.indexes.get(at).copied().unwrap_or_default());
                writeln!(
                    f,
                    "  attribute {at} from item {index}: dst type {dst_type} id {dst_id}, src type {src_type} id {src_id}, \
                     rsv {reserved:?}"
                )?;
            }
        }
        let Situation { context, captures, exchanged } = &resolved.situation;
        writeln!(
            f,
            "  context {context:?}, captures {captures:?}, exchanged mode {exchanged}, open {}",
            scene.is_open()
        )
    }
}

fn size_name(size: u64) -> String {
    match size {
        u64::MAX => "SIZE_MAX".into(),
        0x1_0000..=u64::MAX => format!("{size:#x}"),
        _ => size.to_string(),
    }
}

fn pointer_name(word: u64, scene: &Scene) -> String {
    const NAMED: [Spot; 16] = {
        use Spot::*;
        [
            Window,
            Pageable,
            Edge,
            Pinned,
            Registered,
            Managed,
            Device0,
            Device1,
            Mirror,
            Freed,
            Unreachable,
            Cells,
            Sheet,
            Symbol,
            NoSymbol,
            Answer,
        ]
    };
    let address = word as usize;
    let size = |spot| if matches!(spot, Spot::Symbol | Spot::NoSymbol) { 1 } else { crate::scene::SIZE };
    let spot = NAMED.into_iter().find(|spot| {
        let start = scene.address(*spot);
        start != 0 && (start..start + size(*spot)).contains(&address)
    });
    match spot {
        _ if word == 0 => "NULL".into(),
        Some(spot) if address == scene.address(spot) => format!("{spot:?}"),
        Some(spot) => format!("{spot:?}+{}", address - scene.address(spot)),
        None => format!("{address:#x}"),
    }
}

fn stream_name(word: u64, resolved: &Resolved, scene: &Scene) -> String {
    format!("{:?}", scene.stream_is(word as usize, &resolved.situation))
}
