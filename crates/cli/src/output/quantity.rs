//! Numbers with their units, as people read them.

/// A duration in the largest unit that keeps two digits.
pub fn duration(ns: u64) -> String {
    match ns {
        0..10_000 => format!("{ns} ns"),
        10_000..10_000_000 => format!("{} us", ns / 1000),
        10_000_000..10_000_000_000 => format!("{} ms", ns / 1_000_000),
        _ => format!("{} s", ns / 1_000_000_000),
    }
}

/// A number of bytes in binary units.
pub fn human(bytes: u64) -> String {
    let units = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let Some(power) = bytes.checked_ilog2().map(|log| log / 10).filter(|&power| power > 0) else {
        return format!("{bytes} B");
    };
    format!("{:.1} {}", bytes as f64 / f64::from(power * 10).exp2(), units[power as usize - 1])
}

/// A number of things, with the plural of their name.
pub fn plural(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::{duration, human};

    #[test]
    fn times_read_as_people_write_them() {
        assert_eq!([250, 25_000, 2_500_000_000].map(duration), ["250 ns", "25 us", "2500 ms"]);
    }

    #[test]
    fn bytes_read_as_people_write_them() {
        let cases = [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (1536, "1.5 KiB"), (1 << 30, "1.0 GiB")];
        for (bytes, text) in cases {
            assert_eq!(human(bytes), text);
        }
        assert_eq!(human(u64::MAX), "16.0 EiB");
    }
}
