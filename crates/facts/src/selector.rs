//! Selectors: a small language that selects calls. A call must match all words of the text, which blanks separate.
//!
//! | word | the calls |
//! |---|---|
//! | `aclrtMemcpy*,aclrtMemset` | of these functions; `*` stands for anything |
//! | `kind=H2D` | of this kind: the vendor's name, a short one, or a number |
//! | `direction=h2d` | whose bytes go this way, by the kind or by the attributes of a batch |
//! | `size=64..4K`, `size=4096`, `size=1M..` | that move this number of bytes |
//! | `code=107000`, `code=failed` | that returned this code, by its number or its name, or anything but 0 |
//! | `stream=NAME`, `default`, `none`, `0x7f00` | on this stream, on the default one, on none (synchronous ones) |
//! | `dst=NAME`, `src=NAME` | to or from memory of this name |
//! | `site=libfoo.so`, `site=libfoo.so+0x11f3` | made by this module, or at this offset in it |
//!
//! Functions, kinds, directions, sizes and codes may be several with commas between, one of which must hold. Names may
//! hold `*`. No words are every call.

use crate::call::Ends;
use crate::call::direction::Direction;
use crate::{FUNCTIONS, Function, written};
use core::fmt;

mod known;
#[cfg(test)]
mod tests;
pub mod words;

pub use known::{Known, Nameless, Names};
use words::{Name, Nonsense, Word};

/// Maximum number of kinds, sizes or codes in one word.
const FEW: usize = 8;
type Few<T> = [Option<T>; FEW];

/// A parsed selector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Selector {
    /// One bit a function; 0 if no word names a function.
    functions: u32,
    kinds: Few<i32>,
    /// One bit a direction.
    directions: u8,
    sizes: Few<Size>,
    codes: Few<Code>,
    stream: Option<Stream>,
    dst: Option<Name>,
    src: Option<Name>,
    site: Option<Site>,
}

const _: () = assert!(FUNCTIONS.len() <= 32 && Direction::ALL.len() <= 8);

/// A range of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Size {
    least: u64,
    most: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Code {
    Is(i32),
    Failed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stream {
    Named(Name),
    At(u64),
    None,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Site {
    module: Name,
    offset: Option<u64>,
}

impl Selector {
    /// Every call.
    pub const EVERY: Self = Self {
        functions: 0,
        kinds: [None; FEW],
        directions: 0,
        sizes: [None; FEW],
        codes: [None; FEW],
        stream: None,
        dst: None,
        src: None,
        site: None,
    };

    /// The keys: what may stand before `=`.
    pub const KEYS: [&[u8]; 8] = [b"kind", b"direction", b"size", b"code", b"stream", b"dst", b"src", b"site"];

    /// Parses a selector.
    pub fn parse(text: &[u8]) -> Result<Self, Nonsense> {
        let mut selector = Self::EVERY;
        for word in words::split(text) {
            selector.add(&word)?;
        }
        Ok(selector)
    }

    /// Adds a word.
    pub fn add(&mut self, word: &Word<'_>) -> Result<(), Nonsense> {
        match word.key {
            None => self.add_functions(word),
            Some(b"kind") => {
                several(&mut self.kinds, word, written::kind, "must be a kind, as in HOST_TO_DEVICE, H2D or 1")
            }
            Some(b"direction") => self.add_directions(word),
            Some(b"size") => {
                several(&mut self.sizes, word, size, "must be bytes or a range of them, as in 4096, 64..4K or 1M..")
            }
            Some(b"code") => several(
                &mut self.codes,
                word,
                code,
                "must be a code, as in 107000 or ACL_ERROR_RT_PARAM_INVALID, or failed",
            ),
            Some(b"stream") => once(&mut self.stream, word, stream(word)?),
            Some(b"dst") => once(&mut self.dst, word, word.name()?),
            Some(b"src") => once(&mut self.src, word, word.name()?),
            Some(b"site") => once(&mut self.site, word, site(word)?),
            Some(_) => Err(word.nonsense("is none of kind=, direction=, size=, code=, stream=, dst=, src= and site=")),
        }
    }

    fn add_functions(&mut self, word: &Word<'_>) -> Result<(), Nonsense> {
        if self.functions != 0 {
            return Err(word.nonsense("comes after other functions: several stand in one word, with commas between"));
        }
        for (part, pattern) in word.parts() {
            let is_it = |row: &crate::call::functions::Row| written::is_like(pattern, row.name.as_bytes());
            let bits =
                FUNCTIONS.iter().enumerate().filter(|(_, row)| is_it(row)).fold(0, |bits, (at, _)| bits | 1 << at);
            if bits == 0 {
                return Err(
                    part.nonsense("is no function that the shim stands in front of (docs/functions.md lists them)")
                );
            }
            self.functions |= bits;
        }
        Ok(())
    }

    fn add_directions(&mut self, word: &Word<'_>) -> Result<(), Nonsense> {
        if self.directions != 0 {
            return Err(word.twice());
        }
        for (part, text) in word.parts() {
            let known = written::direction(text);
            let way = known.ok_or_else(|| part.nonsense("must be one of h2d, d2h, d2d, h2h and unknown"))?;
            self.directions |= 1 << way as u8;
        }
        Ok(())
    }

    /// Whether it selects by the code that a call returned.
    pub fn asks_for_code(&self) -> bool {
        self.codes[0].is_some()
    }

    /// Whether it selects by direction or bytes, which for a batch only its arrays hold.
    pub fn asks_for_arrays(&self) -> bool {
        self.directions != 0 || self.sizes[0].is_some()
    }

    /// Whether it may select calls of this function.
    pub fn has(&self, function: Function) -> bool {
        self.functions == 0 || self.functions >> function as u8 & 1 == 1
    }

    /// Whether it selects a call. Names are looked up last, and only if a word needs them.
    pub fn matches(&self, call: &Known<'_>, names: &(impl Names + ?Sized)) -> bool {
        self.has(call.function)
            && (self.directions == 0 || self.directions >> call.direction as u8 & 1 == 1)
            && is_any(&self.kinds, call.kind, |kind, is| kind == is)
            && is_any(&self.sizes, call.bytes, |size, bytes| (size.least..=size.most).contains(&bytes))
            && is_any(&self.codes, call.code, |wanted, code| match wanted {
                Code::Is(wanted) => wanted == code,
                Code::Failed => code != 0,
            })
            && self.stream.is_none_or(|stream| match (stream, call.stream) {
                (Stream::None, is) => is.is_none(),
                (Stream::At(stream), is) => is == Some(stream),
                (Stream::Named(name), Some(is)) => names.stream(is, &mut |is| name.is_like(is)),
                (Stream::Named(_), None) => false,
            })
            && self.is_between(call.ends, names)
            && self.site.is_none_or(|site| {
                names.module(call.site, &mut |module, offset| {
                    site.module.is_like(module) && site.offset.is_none_or(|wanted| wanted == offset)
                })
            })
    }

    /// Whether one range of a call matches `dst=` and `src=`.
    fn is_between(&self, ends: &[Ends], names: &(impl Names + ?Sized)) -> bool {
        if self.dst.is_none() && self.src.is_none() {
            return true;
        }
        let is_at = |name: Option<Name>, address: *const _| {
            name.is_none_or(|name| names.buffer(address as u64, &mut |is| name.is_like(is)))
        };
        ends.iter().any(|ends| is_at(self.dst, ends.dst) && is_at(self.src, ends.src))
    }
}

/// Whether the known value matches one of the wanted ones, or none is wanted.
fn is_any<W: Copy, T: Copy>(wanted: &Few<W>, known: Option<T>, is: impl Fn(W, T) -> bool) -> bool {
    wanted[0].is_none() || known.is_some_and(|known| wanted.iter().flatten().any(|wanted| is(*wanted, known)))
}

fn once<T>(slot: &mut Option<T>, word: &Word<'_>, value: T) -> Result<(), Nonsense> {
    match slot.replace(value) {
        None => Ok(()),
        Some(_) => Err(word.twice()),
    }
}

fn several<T: Copy>(
    slots: &mut Few<T>,
    word: &Word<'_>,
    read: fn(&[u8]) -> Option<T>,
    must: &'static str,
) -> Result<(), Nonsense> {
    if slots[0].is_some() {
        return Err(word.twice());
    }
    let mut free = slots.iter_mut();
    for (part, text) in word.parts() {
        let value = read(text).ok_or_else(|| part.nonsense(must))?;
        *free.next().ok_or_else(|| part.nonsense("is one too many: eight at most"))? = Some(value);
    }
    Ok(())
}

fn size(text: &[u8]) -> Option<Size> {
    let Some(at) = text.windows(2).position(|two| two == b"..") else {
        let bytes = written::size(text)?;
        return Some(Size { least: bytes, most: bytes });
    };
    let (least, most) = (text.get(..at)?, text.get(at + 2..)?);
    let bound = |text: &[u8], none| if text.is_empty() { Some(none) } else { written::size(text) };
    let size = Size { least: bound(least, 0)?, most: bound(most, u64::MAX)? };
    (size.least <= size.most && text.len() > 2).then_some(size)
}

fn code(text: &[u8]) -> Option<Code> {
    if text == b"failed" { Some(Code::Failed) } else { written::code(text).map(Code::Is) }
}

fn stream(word: &Word<'_>) -> Result<Stream, Nonsense> {
    match word.value {
        b"default" => Ok(Stream::At(0)),
        b"none" => Ok(Stream::None),
        text if text.starts_with(b"0x") => {
            let at = written::address(text).ok_or_else(|| word.nonsense("must be an address behind 0x"))?;
            Ok(Stream::At(at))
        }
        _ => word.name().map(Stream::Named),
    }
}

fn site(word: &Word<'_>) -> Result<Site, Nonsense> {
    // A module may have a `+` in its name (libstdc++.so): the offset stands behind the last one.
    let split = word.value.windows(3).rposition(|three| three == b"+0x");
    let (module, offset) = match split {
        None => (word.value, None),
        Some(at) => {
            let offset = word.value.get(at + 1..).and_then(written::address);
            let offset = offset.ok_or_else(|| word.nonsense("must be MODULE or MODULE+0xOFFSET"))?;
            (word.value.get(..at).unwrap_or_default(), Some(offset))
        }
    };
    Ok(Site { module: word.name_of(module)?, offset })
}

impl fmt::Display for Selector {
    /// The text of an equal selector; `*` for every call.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_functions(self.functions, f)?;
        list(f, "kind", &self.kinds, |f, kind| match crate::vendor::abi::aclrtMemcpyKind(kind).name() {
            Some(name) => f.write_str(name),
            None => write!(f, "{kind}"),
        })?;
        if self.directions != 0 {
            let mut ways = [None; FEW];
            let named = Direction::ALL.into_iter().filter(|way| self.directions >> *way as u8 & 1 == 1);
            ways.iter_mut().zip(named).for_each(|(slot, way)| *slot = Some(way));
            list(f, "direction", &ways, |f, way| f.write_str(way.short()))?;
        }
        list(f, "size", &self.sizes, |f, Size { least, most }| match (least, most) {
            (least, most) if least == most => write!(f, "{least}"),
            (least, u64::MAX) => write!(f, "{least}.."),
            (least, most) => write!(f, "{least}..{most}"),
        })?;
        list(f, "code", &self.codes, |f, code| match code {
            Code::Is(code) => write!(f, "{code}"),
            Code::Failed => f.write_str("failed"),
        })?;
        match self.stream {
            None => {}
            Some(Stream::None) => f.write_str(" stream=none")?,
            Some(Stream::At(0)) => f.write_str(" stream=default")?,
            Some(Stream::At(at)) => write!(f, " stream={at:#x}")?,
            Some(Stream::Named(name)) => write!(f, " stream={name}")?,
        }
        for (key, name) in [("dst", self.dst), ("src", self.src)] {
            name.map_or(Ok(()), |name| write!(f, " {key}={name}"))?;
        }
        match self.site {
            None => Ok(()),
            Some(Site { module, offset: None }) => write!(f, " site={module}"),
            Some(Site { module, offset: Some(offset) }) => write!(f, " site={module}+{offset:#x}"),
        }
    }
}

/// One pattern if that says it all.
fn write_functions(bits: u32, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if bits == 0 || bits.count_ones() as usize == FUNCTIONS.len() {
        return f.write_str("*");
    }
    let mut meant = FUNCTIONS.iter().enumerate().filter(|(at, _)| bits >> at & 1 == 1).map(|(_, row)| row.name);
    let first = meant.next().unwrap_or_default();
    let shared = |a: &str, b: &str| a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count();
    let common = meant.clone().fold(first.len(), |length, name| length.min(shared(first, name)));
    let prefix = first.get(..common).unwrap_or_default();
    let all = FUNCTIONS.iter().filter(|row| row.name.starts_with(prefix)).count();
    if all > 1 && all == bits.count_ones() as usize {
        return write!(f, "{prefix}*");
    }
    f.write_str(first)?;
    meant.try_for_each(|name| write!(f, ",{name}"))
}

fn list<T: Copy>(
    f: &mut fmt::Formatter<'_>,
    key: &str,
    values: &Few<T>,
    write: impl Fn(&mut fmt::Formatter<'_>, T) -> fmt::Result,
) -> fmt::Result {
    for (nth, value) in values.iter().flatten().enumerate() {
        if nth == 0 {
            write!(f, " {key}=")?
        } else {
            f.write_str(",")?
        }
        write(f, *value)?;
    }
    Ok(())
}
