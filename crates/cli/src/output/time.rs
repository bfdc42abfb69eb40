//! Times as people write them, in UTC.

use chrono::{DateTime, Datelike, NaiveDate, NaiveTime};

/// The date of a moment, as in `2026-11-16`.
pub fn day(ns: u64) -> String {
    let moment = DateTime::from_timestamp((ns / 1_000_000_000) as i64, 0).unwrap_or_default();
    moment.date_naive().to_string()
}

/// A moment, as in `2026-11-16T15:04:05.000000001Z`.
pub fn moment(ns: u64) -> String {
    let (seconds, fraction) = (ns / 1_000_000_000, ns % 1_000_000_000);
    let of_day = seconds % 86_400;
    format!("{}T{:02}:{:02}:{:02}.{fraction:09}Z", day(ns), of_day / 3600, of_day / 60 % 60, of_day % 60)
}

/// A moment as [`moment`] writes it, shortened at will behind the day; or nanoseconds since 1970.
pub fn parse(text: &str) -> Option<u64> {
    if let Ok(ns) = text.parse() {
        return Some(ns);
    }
    let text = text.strip_suffix('Z').unwrap_or(text);
    let (date, time) = text.split_once(['T', ' ']).unwrap_or((text, "0:0:0"));
    let number = |text: &str| text.parse::<u64>().ok();
    let date: NaiveDate = date.parse().ok().filter(|date: &NaiveDate| (1970..=2500).contains(&date.year()))?;
    let (whole, fraction) = time.split_once('.').unwrap_or((time, ""));
    let mut parts = whole.split(':').map(number);
    let (hour, minute, second) = (parts.next()??, parts.next().unwrap_or(Some(0))?, parts.next().unwrap_or(Some(0))?);
    if parts.next().is_some() || hour > 23 || minute > 59 || second > 60 || fraction.len() > 9 {
        return None;
    }
    let fraction = if fraction.is_empty() { 0 } else { format!("{fraction:0<9}").parse::<u64>().ok()? };
    let midnight = date.and_time(NaiveTime::MIN).and_utc().timestamp() as u64;
    Some((midnight + hour * 3600 + minute * 60 + second) * 1_000_000_000 + fraction)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_written_and_read_back() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00"),
            (951_782_400, "2000-02-29T00:00:00"),
            (951_868_799, "2000-02-29T23:59:59"),
            (1_794_841_445, "2026-11-16T15:04:05"),
            (4_107_542_400, "2100-03-01T00:00:00"),
        ] {
            let ns = seconds * 1_000_000_000 + 7;
            assert_eq!(moment(ns), format!("{text}.000000007Z"));
            assert_eq!(parse(&moment(ns)), Some(ns));
        }
    }

    #[test]
    fn a_moment_may_be_shortened_and_nonsense_is_none() {
        let noon = 1_794_830_400_000_000_000;
        for text in ["2026-11-16T12:00:00Z", "2026-11-16 12:00", "2026-11-16T12", "1794830400000000000"] {
            assert_eq!(parse(text), Some(noon), "{text}");
        }
        assert_eq!(parse("2026-11-16T12:00:00.5"), Some(noon + 500_000_000));
        for text in ["", "noon", "2026-13-01", "2026-11-16T25", "2026-11-16T12:00:00.x", "1-1-1", "2026-11-16T1:2:3:4"]
        {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
