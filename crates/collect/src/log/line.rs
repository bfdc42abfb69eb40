//! How a kind of line is declared: once, as a type whose fields are the keys of the object. The
//! event, the schema and its page follow from the declaration.

use std::fmt;
use tracing::Value;
use tracing::field::{self, DisplayValue};

/// A line of the log.
pub trait Line {
    /// What is documented of it.
    fn schema(&self) -> &'static Schema;
    /// Emits the `tracing` event.
    fn emit(&self);
}

/// What is documented of a kind of line.
#[derive(Debug)]
pub struct Schema {
    /// The value of `event`.
    pub name: &'static str,
    /// The value of `level`.
    pub level: &'static str,
    /// What it says.
    pub sentence: &'static [&'static str],
    /// Its keys after `event`, in order.
    pub fields: &'static [Key],
}

/// What is documented of a key.
#[derive(Debug)]
pub struct Key {
    /// The key.
    pub name: &'static str,
    /// The type of its value in JSON.
    pub json: &'static str,
    /// What it says.
    pub sentence: &'static [&'static str],
}

/// An address, shown as `0x7f0012345678`: numbers of this size lose digits in many JSON readers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address(pub u64);

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

/// A value that a line may hold.
pub(crate) trait Shown {
    /// Its type in JSON.
    const JSON: &'static str;
    /// The value for `tracing`.
    fn value(&self) -> impl Value;
    /// Values for tests: one that is there, and one that is not, if there may be none.
    #[cfg(test)]
    fn samples() -> [Self; 2]
    where
        Self: Sized;
}

macro_rules! shown {
    ($($type:ty, $json:literal, $sample:expr, |$it:ident| $value:expr => $as:ty;)*) => {$(
        impl Shown for $type {
            const JSON: &'static str = $json;
            fn value(&self) -> impl Value {
                let $it = *self;
                $value
            }
            #[cfg(test)]
            fn samples() -> [Self; 2] {
                [$sample, $sample]
            }
        }
        impl Shown for Option<$type> {
            const JSON: &'static str = concat!($json, " or null");
            fn value(&self) -> impl Value {
                self.map(|$it| -> $as { $value })
            }
            #[cfg(test)]
            fn samples() -> [Self; 2] {
                [Some($sample), None]
            }
        }
    )*};
}

shown! {
    u64, "number", u64::MAX, |it| it => u64;
    i64, "number", i64::MIN, |it| it => i64;
    f64, "number", 0.25, |it| it => f64;
    bool, "boolean", true, |it| it => bool;
    Address, "string (hexadecimal)", Address(0x7f00_1234_5678), |it| field::display(it) => DisplayValue<Address>;
    &str, "string", "text\n\"", |it| it => &str;
    &[u8], "string", b"/some/where\xff", |it| it => &[u8];
}

/// A value for tests.
#[cfg(test)]
pub(crate) fn sample<T: Shown + Copy>(at: usize) -> T {
    T::samples()[at]
}

/// Declares kinds of lines and the list of them.
macro_rules! lines {
    ($(
        $(#[doc = $about:literal])+
        $level:ident $name:literal $type:ident $(<$life:lifetime>)? {
            $($(#[doc = $sentence:literal])+ $field:ident: $of:ty,)+
        }
    )+) => {
        $(
            $(#[doc = $about])+
            #[derive(Clone, Copy, Debug)]
            pub struct $type $(<$life>)? {
                $($(#[doc = $sentence])+ pub $field: $of,)+
            }

            impl $(<$life>)? $type $(<$life>)? {
                const SCHEMA: &'static $crate::log::line::Schema = &$crate::log::line::Schema {
                    name: $name,
                    level: stringify!($level),
                    sentence: &[$($about),+],
                    fields: &[$($crate::log::line::Key {
                        name: stringify!($field),
                        json: <$of as $crate::log::line::Shown>::JSON,
                        sentence: &[$($sentence),+],
                    }),+],
                };
            }

            impl $(<$life>)? $crate::log::line::Line for $type $(<$life>)? {
                fn schema(&self) -> &'static $crate::log::line::Schema {
                    Self::SCHEMA
                }
                fn emit(&self) {
                    use $crate::log::line::Shown;
                    tracing::$level!(event = $name, $($field = self.$field.value()),+);
                }
            }
        )+

        /// Every kind of line.
        pub static LINES: &[&$crate::log::line::Schema] = &[$($type::SCHEMA),+];

        /// Every kind of line, with all values and with as few as may be.
        #[cfg(test)]
        pub(crate) fn samples() -> Vec<Box<dyn $crate::log::line::Line>> {
            let mut all: Vec<Box<dyn $crate::log::line::Line>> = Vec::new();
            $(for at in 0..2 {
                all.push(Box::new($type { $($field: $crate::log::line::sample(at)),+ }));
            })+
            all
        }
    };
}
pub(crate) use lines;
