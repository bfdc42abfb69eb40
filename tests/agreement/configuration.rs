//! The products and releases that the simulated library knows.

use aclshim_facts::product::{Product, Version};
use aclshim_facts::world::RunMode;

/// The simulated library's own lists: what it learns to be is tried here.
#[allow(dead_code, reason = "only the names matter here")]
#[path = "../../crates/sim/src/config/cann.rs"]
mod cann;
#[allow(dead_code, reason = "as above")]
#[path = "../../crates/sim/src/config/product.rs"]
mod product;

/// Its products, by SoC name.
pub fn products() -> impl Iterator<Item = &'static str> {
    product::PRODUCTS.iter().map(|product| product.name.to_str().expect("a plain name"))
}

/// Its releases.
pub fn releases() -> impl Iterator<Item = &'static str> {
    cann::Cann::ALL.into_iter().map(|(name, _)| name)
}

/// One way to set it up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Configuration {
    pub soc: &'static str,
    pub cann: &'static str,
    pub form: RunMode,
    pub tells_pageable: bool,
}

impl Configuration {
    /// Every one.
    pub fn all() -> Vec<Self> {
        let mut all = Vec::new();
        for soc in products() {
            for cann in releases() {
                for form in [RunMode::EndPoint, RunMode::RootComplex] {
                    for tells_pageable in [true, false] {
                        all.push(Self { soc, cann, form, tells_pageable });
                    }
                }
            }
        }
        all
    }

    /// Its position in [`Configuration::all`].
    pub fn number(self) -> u64 {
        Self::all().iter().position(|other| *other == self).expect("one of all") as u64
    }

    pub fn product(self) -> &'static Product {
        Product::of(self.soc).expect("a product that we know")
    }

    pub fn version(self) -> Version {
        Version::parse(self.cann).expect("a release")
    }

    /// The folder of the library of that release, under `target/`.
    pub fn library(self) -> &'static str {
        if self.version() < (Version { major: 9, minor: 1 }) { "sim/cann-8.5" } else { "sim" }
    }

    /// The simulated library's own settings.
    pub fn settings(self) -> [(&'static str, &'static str); 4] {
        [
            ("ASCENDCL_SIM_SOC", self.soc),
            ("ASCENDCL_SIM_CANN", self.cann),
            ("ASCENDCL_SIM_RUN_MODE", if self.form == RunMode::EndPoint { "host" } else { "device" }),
            ("ASCENDCL_SIM_USER_MALLOC_ATTR", if self.tells_pageable { "on" } else { "off" }),
        ]
    }

    pub fn name(self) -> String {
        self.settings().map(|(name, value)| format!("{}={value}", &name["ASCENDCL_SIM_".len()..])).join(" ")
    }
}
