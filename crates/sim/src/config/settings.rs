//! What the `ASCENDCL_SIM_*` variables ask for. Read once, at the first call; nonsense means the default.

use super::cann::Cann;
use super::fault::{self, Fault};
use super::product::{self, PRODUCTS, Product};
use crate::edge::error::{Outcome, RT_INVALID_DEVICEID, fail};
use std::env;
use std::sync::OnceLock;
use std::time::Duration;

impl Default for Cann {
    fn default() -> Self {
        if cfg!(feature = "cann-8-5") { Self::V8_5 } else { Self::V9_2 }
    }
}

/// Where the program runs, as `aclrtGetRunMode` answers it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum RunMode {
    /// On the host, beside the device (online).
    #[default]
    Host,
    /// On the device itself (offline).
    Device,
}

impl RunMode {
    fn parse(text: &str) -> Option<Self> {
        match text {
            "host" => Some(Self::Host),
            "device" => Some(Self::Device),
            _ => None,
        }
    }
}

/// The most devices that may be asked for.
pub const MAX_DEVICES: u32 = 64;

/// Everything that can be set.
#[derive(Debug)]
pub struct Settings {
    /// `ASCENDCL_SIM_DEVICES`
    pub devices: u32,
    /// `ASCENDCL_SIM_RUN_MODE`
    pub run_mode: RunMode,
    /// `ASCENDCL_SIM_BANDWIDTH`, bytes a second; `None` is as fast as the machine.
    pub bandwidth: Option<u64>,
    /// `ASCENDCL_SIM_LATENCY_US`
    pub latency: Duration,
    /// `ASCENDCL_SIM_MEMORY`, bytes of each device.
    pub memory: u64,
    /// `ASCENDCL_SIM_SOC`
    pub product: &'static Product,
    /// `ASCENDCL_SIM_CANN`
    pub cann: Cann,
    /// `ASCENDCL_SIM_USER_MALLOC_ATTR`: whether the driver can tell pageable memory.
    pub user_malloc_attr: bool,
    /// `ASCENDCL_SIM_FAULT`
    pub faults: Vec<Fault>,
}

impl Settings {
    fn read() -> Self {
        // A bug of the simulator must not write into the program's output: the call answers an error instead.
        std::panic::set_hook(Box::new(|_| {}));
        Self {
            devices: setting("DEVICES", |text| text.parse().ok())
                .filter(|count| (1..=MAX_DEVICES).contains(count))
                .unwrap_or(2),
            run_mode: setting("RUN_MODE", RunMode::parse).unwrap_or_default(),
            bandwidth: setting("BANDWIDTH", bytes).filter(|rate| *rate > 0),
            latency: Duration::from_micros(setting("LATENCY_US", |text| text.parse().ok()).unwrap_or(0)),
            memory: setting("MEMORY", bytes).unwrap_or(1 << 30),
            product: setting("SOC", product::named).unwrap_or(&PRODUCTS[0]),
            cann: setting("CANN", Cann::parse).unwrap_or_default(),
            user_malloc_attr: setting("USER_MALLOC_ATTR", |text| Some(text != "off")).unwrap_or(true),
            faults: setting("FAULT", |text| Some(fault::parse(text))).unwrap_or_default(),
        }
    }

    /// How long the device takes for a copy of `bytes`.
    pub fn cost(&self, bytes: usize) -> Duration {
        let transfer = match self.bandwidth {
            Some(rate) => {
                Duration::try_from_secs_f64(bytes as f64 / rate as f64).unwrap_or(Duration::from_secs(u32::MAX.into()))
            }
            None => Duration::ZERO,
        };
        self.latency.saturating_add(transfer)
    }
}

fn setting<T>(name: &str, parse: impl FnOnce(&str) -> Option<T>) -> Option<T> {
    let text = env::var(format!("ASCENDCL_SIM_{name}")).ok()?;
    parse(text.trim())
}

/// A number of bytes: `4096`, `512M`, `8G`; the letters are powers of 1024.
fn bytes(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let shift = match &text[digits.len()..] {
        "" => 0,
        "K" | "k" => 10,
        "M" | "m" => 20,
        "G" | "g" => 30,
        "T" | "t" => 40,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

/// The settings of this process.
pub fn settings() -> &'static Settings {
    static SETTINGS: OnceLock<Settings> = OnceLock::new();
    SETTINGS.get_or_init(Settings::read)
}

/// A device id that exists; 107001 otherwise.
pub fn valid_device(id: i32) -> Outcome<u32> {
    let devices = settings().devices;
    match u32::try_from(id) {
        Ok(device) if device < devices => Ok(device),
        _ => fail(RT_INVALID_DEVICEID, format!("deviceId={id} is not in [0, {devices})")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_powers_of_1024() {
        assert_eq!(bytes("4096"), Some(4096));
        assert_eq!(bytes("512M"), Some(512 << 20));
        assert_eq!(bytes("8G"), Some(8 << 30));
    }

    #[test]
    fn nonsense_is_no_number() {
        for text in ["", "G", "-1", "1.5G", "8Q", "99999999999T"] {
            assert_eq!(bytes(text), None, "{text}");
        }
    }
}
