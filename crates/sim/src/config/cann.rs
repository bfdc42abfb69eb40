//! The releases that are simulated, and what differs between them. Tests take their list of releases from here.

/// The CANN release whose behaviour is simulated.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub enum Cann {
    /// 8.5.0
    V8_5,
    /// 9.0.0
    V9_0,
    /// 9.1.0: nothing to copy is no error any more.
    V9_1,
    /// 9.2.0
    V9_2,
}

impl Cann {
    /// Every release by the name that `ASCENDCL_SIM_CANN` has for it, the newest first.
    pub const ALL: [(&'static str, Self); 4] =
        [("9.2", Self::V9_2), ("9.1", Self::V9_1), ("9.0", Self::V9_0), ("8.5", Self::V8_5)];

    /// The release of that name.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(name, _)| *name == text).map(|(_, cann)| cann)
    }

    /// The version as the vendor writes it.
    pub fn text(self) -> &'static str {
        match self {
            Self::V8_5 => "8.5.0",
            Self::V9_0 => "9.0.0",
            Self::V9_1 => "9.1.0",
            Self::V9_2 => "9.2.0",
        }
    }

    /// Whether a copy of nothing succeeds before any other check.
    pub fn accepts_nothing(self) -> bool {
        self >= Self::V9_1
    }

    /// Whether the two-dimensional copies know rows inside a device.
    pub fn copies_rows_on_device(self) -> bool {
        self >= Self::V9_0
    }
}
