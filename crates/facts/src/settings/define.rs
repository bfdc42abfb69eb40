//! The macro behind the settings table: makes everything about a setting from its row.

/// Makes from each row the [`Setting`](super::Setting), the enum of a choice, and the field of `Settings` with its parser and
/// printer.
///
/// A row is `field: NAME = kind(...), "sentence";` with one of these kinds:
///
/// | kind | type of the field | |
/// |---|---|---|
/// | `choice(Type { Variant = "word", ... })` | the enum `Type` | the first word is the default |
/// | `text(room, default)` | `Text<room>` | a text that is too long is refused |
/// | `pattern(room, default)` | `Text<room>` | a text that is too long is cut |
/// | `path(shown, default)` | `Text<PATH>` | made absolute; `shown` documents the default |
/// | `library(shown)` | `Text<PATH>` | a path or a name, as the dynamic loader takes it |
/// | `bytes(default, least, most)` | `u64` | with a unit: 64K, 1M, 2G |
/// | `count(default, least, most)` | `u64` | |
macro_rules! settings {
    ($($(#[$about:meta])+ $field:ident: $name:ident = $kind:ident($($argument:tt)*), $sentence:expr;)+) => {
        $(define_choice! { $kind($name, $($argument)*) })+

        $(
            $(#[$about])+
            pub static $name: Setting = Setting {
                variable: concat!("ACLSHIM_", stringify!($name)),
                value: value!($kind($($argument)*)),
                sentence: $sentence,
            };
        )+

        /// All settings, in the order of the documentation.
        pub static SETTINGS: &[&Setting] = &[$(&$name),+];

        define_settings! { [] [] [] $($(#[$about])+ $field: $kind($($argument)*);)+ }

        impl Settings {
            /// The values before [`Self::read`]. All bytes are zero: as a static it takes no memory until it is written.
            pub const UNREAD: Self = Self { $($field: <field_type!($kind($($argument)*)) as SettingValue>::UNREAD,)+ };

            /// Takes over the value that is given for each setting, or its default. A relative path is one in
            /// `working_directory`. Each setting whose value makes no sense is refused, and its default holds.
            #[inline]
            #[unsafe(link_section = ".text.startup")]
            pub fn read(&mut self, working_directory: WorkingDirectory, given: &mut dyn Given) {
                $(
                    if !self.$field.read(&$name, given.value(&$name), working_directory) {
                        given.refuse(&$name);
                    }
                )+
            }

            /// Writes the values, `NAME=value` a line; paths last, because the room may end amid a long one.
            pub fn write(&self, out: &mut dyn fmt::Write) -> fmt::Result {
                for is_path in [false, true] {
                    $(
                        if $name.is_path() == is_path {
                            write!(out, "{}=", $name.variable)?;
                            self.$field.write(&$name, out)?;
                            out.write_str("\n")?;
                        }
                    )+
                }
                Ok(())
            }
        }
    };
}

/// The struct `Settings`. Small fields come first, in one page: all of them are written when a program starts. Texts are
/// next, of which only the lengths are read then, and paths last.
macro_rules! define_settings {
    ([$($small:tt)*] [$($text:tt)*] [$($path:tt)*]) => {
        /// A value for every setting.
        #[repr(C)]
        pub struct Settings { $($small)* $($text)* $($path)* }
    };
    ($small:tt [$($text:tt)*] $path:tt $(#[$about:meta])+ $field:ident: text($($argument:tt)*); $($rest:tt)*) => {
        define_settings! {
            $small [$($text)* $(#[$about])+ pub $field: field_type!(text($($argument)*)),] $path $($rest)*
        }
    };
    ($small:tt $text:tt [$($path:tt)*] $(#[$about:meta])+ $field:ident: path($($argument:tt)*); $($rest:tt)*) => {
        define_settings! {
            $small $text [$($path)* $(#[$about])+ pub $field: field_type!(path($($argument)*)),] $($rest)*
        }
    };
    ($small:tt $text:tt [$($path:tt)*] $(#[$about:meta])+ $field:ident: library($($argument:tt)*); $($rest:tt)*) => {
        define_settings! {
            $small $text [$($path)* $(#[$about])+ pub $field: field_type!(library($($argument)*)),] $($rest)*
        }
    };
    ([$($small:tt)*] $text:tt $path:tt $(#[$about:meta])+ $field:ident: $kind:ident($($argument:tt)*); $($rest:tt)*) => {
        define_settings! {
            [$($small)* $(#[$about])+ pub $field: field_type!($kind($($argument)*)),] $text $path $($rest)*
        }
    };
}

/// The enum of a choice; nothing for a setting of another kind.
macro_rules! define_choice {
    (choice($name:ident, $type:ident { $($(#[$about:meta])+ $variant:ident = $word:literal,)+ })) => {
        #[doc = concat!("A value of [`", stringify!($name), "`].")]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $type {
            $($(#[$about])+ $variant),+
        }

        impl Choice for $type {
            const SETTING: &'static Setting = &$name;
            const ALL: &'static [Self] = &[$(Self::$variant),+];
        }
    };
    ($kind:ident($($argument:tt)*)) => {};
}

/// The [`Value`](super::Value) of a row.
macro_rules! value {
    (choice($type:ident { $($(#[$about:meta])+ $variant:ident = $word:literal,)+ })) => { Value::Choice(&[$($word),+]) };
    (text($room:expr, $default:expr)) => { Value::Text($default) };
    (pattern($room:expr, $default:expr)) => { Value::Pattern($default) };
    (path($shown:expr, $default:expr)) => { Value::Path { shown: $shown, default: $default } };
    (library($shown:expr)) => { Value::Library { shown: $shown } };
    (bytes($default:expr, $least:expr, $most:expr)) => { Value::Bytes($default, $least, $most) };
    (count($default:expr, $least:expr, $most:expr)) => { Value::Count($default, $least, $most) };
}

/// The type of a row's field in `Settings`.
macro_rules! field_type {
    (choice($type:ident $variants:tt)) => { $type };
    (text($room:expr, $default:expr)) => { Text<{ $room }> };
    (pattern($room:expr, $default:expr)) => { Text<{ $room }> };
    (path($shown:expr, $default:expr)) => { Text<PATH> };
    (library($shown:expr)) => { Text<PATH> };
    (bytes($($bound:expr),+)) => { u64 };
    (count($($bound:expr),+)) => { u64 };
}
