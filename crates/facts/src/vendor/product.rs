//! The products by their SoC names, what their chips can do, and the releases of CANN.

/// A family of products that the vendor's documents treat alike.
#[derive(Debug, PartialEq, Eq)]
pub struct Product {
    /// What `aclrtGetSocName` answers on it.
    pub names: &'static [Name],
    /// As the vendor's documents call it.
    pub name: &'static str,
    /// The batch copies.
    pub has_batch: bool,
    /// `aclrtMemcpyAsyncWithOffset`.
    pub has_offset: bool,
    /// Copies by descriptor.
    pub has_descriptor: bool,
    /// Bytes of a descriptor, where there is one.
    pub descriptor_size: usize,
    /// Device-to-device rows in `aclrtMemcpy2dAsync`.
    pub has_rows_on_device: bool,
    /// `aclrtMemsetD32`; where it is missing the vendor answers 0 and sets nothing.
    pub has_words: bool,
    /// Copies from and to device variables, by the documents.
    pub has_symbols: bool,
    /// A batch on a stream is checked whole before its first item is sent.
    pub checks_batch_whole: bool,
}

/// A name of a SoC, or many. No name may be taken for that of another product: a family's limits would be laid on chips
/// that have none of them, and `enforce` would refuse good calls.
#[derive(Debug, PartialEq, Eq)]
pub enum Name {
    /// This one.
    Exactly(&'static str),
    /// All that begin so.
    Begins(&'static str),
    /// All that begin so and go on with a digit: without one it is another chip.
    Numbered(&'static str),
}

use Name::{Begins, Exactly, Numbered};

impl Name {
    fn is_of(&self, soc: &str) -> bool {
        match self {
            Exactly(name) => soc == *name,
            Begins(name) => soc.starts_with(name),
            Numbered(name) => soc.strip_prefix(name).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit())),
        }
    }
}

const A2: Product = Product {
    names: &[Numbered("Ascend910B")],
    name: "Atlas A2",
    has_batch: true,
    has_offset: true,
    has_descriptor: true,
    descriptor_size: 32,
    has_rows_on_device: true,
    has_words: true,
    has_symbols: true,
    checks_batch_whole: false,
};

/// Every product that the vendor's pages of these functions tell apart. Of another one (an Ascend310, an IPV350) nothing
/// is said that depends on the product.
pub static PRODUCTS: &[Product] = &[
    A2,
    Product { names: &[Begins("Ascend910_93")], name: "Atlas A3", ..A2 },
    Product {
        // The second is what it was called at first.
        names: &[Begins("Ascend950"), Begins("Ascend910_95")],
        name: "Ascend 950",
        descriptor_size: 64,
        checks_batch_whole: true,
        ..A2
    },
    Product {
        names: &[Begins("Ascend310P")],
        name: "Atlas inference series",
        has_batch: false,
        has_offset: false,
        has_descriptor: false,
        has_rows_on_device: false,
        has_words: false,
        ..A2
    },
    Product {
        names: &[Begins("Ascend310B")],
        name: "Atlas 200I/500 A2",
        has_batch: false,
        has_offset: false,
        has_rows_on_device: false,
        has_words: false,
        has_symbols: false,
        ..A2
    },
    Product {
        names: &[
            Exactly("Ascend910A"),
            Exactly("Ascend910B"),
            Exactly("Ascend910ProA"),
            Exactly("Ascend910ProB"),
            Exactly("Ascend910PremiumA"),
        ],
        name: "Atlas training series",
        has_batch: false,
        has_descriptor: false,
        has_rows_on_device: false,
        has_words: false,
        has_symbols: false,
        ..A2
    },
];

impl Product {
    /// The product of a SoC name.
    pub fn of(soc: &str) -> Option<&'static Self> {
        PRODUCTS.iter().find(|product| product.names.iter().any(|name| name.is_of(soc)))
    }
}

/// A release of CANN: its first two numbers decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    /// The first number.
    pub major: u16,
    /// The second.
    pub minor: u16,
}

impl Version {
    /// 9.0: the first release after the 8.x line that the seed pages are of.
    pub const V9_0: Self = Self { major: 9, minor: 0 };
    /// 9.1: a copy of nothing succeeds, and the functions of that release are there.
    pub const V9_1: Self = Self { major: 9, minor: 1 };

    /// From a text such as `9.1.0`, `9.2.0-beta.1` or `8.5`.
    pub fn parse(text: &str) -> Option<Self> {
        let mut numbers = text.trim().trim_start_matches(['v', 'V']).split('.');
        let mut number = || {
            let digits = numbers.next()?;
            digits.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
        };
        Some(Self { major: number()?, minor: number()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_soc_name_finds_its_product() {
        let name = |soc| Product::of(soc).map(|product| product.name);
        assert_eq!(name("Ascend910B1"), Some("Atlas A2"));
        assert_eq!(name("Ascend910_9391"), Some("Atlas A3"));
        assert_eq!(name("Ascend910A"), Some("Atlas training series"));
        assert_eq!(name("Ascend950"), Some("Ascend 950"));
        assert_eq!(name("Ascend310P3"), Some("Atlas inference series"));
        assert_eq!(name("Kirin"), None);
        // Names that begin alike, and are other chips.
        for soc in ["Ascend910B2C", "Ascend910B4-1"] {
            assert_eq!(name(soc), Some("Atlas A2"), "{soc}");
        }
        for soc in ["Ascend910B", "Ascend910ProA", "Ascend910ProB", "Ascend910PremiumA"] {
            assert_eq!(name(soc), Some("Atlas training series"), "{soc}");
        }
        for soc in ["Ascend950DT", "Ascend910_9599", "Ascend910_9589"] {
            assert_eq!(name(soc), Some("Ascend 950"), "{soc}");
        }
        for soc in ["Ascend910", "Ascend910C", "Ascend910_1234", "Ascend910Bx", "Ascend310", "Ascend031", ""] {
            assert_eq!(name(soc), None, "{soc}");
        }
    }

    #[test]
    fn no_name_is_of_two_products() {
        for soc in ["Ascend910B1", "Ascend910B", "Ascend910A", "Ascend910_9391", "Ascend910_9599", "Ascend310P3"] {
            let count = PRODUCTS.iter().filter(|product| product.names.iter().any(|name| name.is_of(soc))).count();
            assert_eq!(count, 1, "{soc}");
        }
    }

    #[test]
    fn a_version_is_its_first_two_numbers() {
        let version = |major, minor| Some(Version { major, minor });
        assert_eq!(Version::parse("9.1.0"), version(9, 1));
        assert_eq!(Version::parse("9.2.0-beta.1"), version(9, 2));
        assert_eq!(Version::parse("8.5"), version(8, 5));
        assert_eq!(Version::parse("V8.0.RC1"), version(8, 0));
        assert_eq!(Version::parse("nine"), None);
    }
}
