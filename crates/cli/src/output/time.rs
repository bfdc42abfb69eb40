//! Times as people write them, in UTC.

/// Year, month and day of a day since 1970, by the proleptic Gregorian calendar.
fn date(days: u64) -> (u64, u64, u64) {
    // Years begin in March, so that the leap day is the last: 400 of them have 146,097 days.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let is_next = month >= 10;
    let month = if is_next { month - 9 } else { month + 3 };
    (era * 400 + year + u64::from(is_next), month, day - (153 * ((month + 9) % 12) + 2) / 5 + 1)
}

/// The days since 1970 of a date.
fn days(year: u64, month: u64, day: u64) -> u64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year / 400, year % 400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// The date of a moment, as in `2026-11-16`.
pub fn day(ns: u64) -> String {
    let (year, month, day) = date(ns / 1_000_000_000 / 86_400);
    format!("{year:04}-{month:02}-{day:02}")
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
    let mut parts = date.split('-').map(number);
    let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
    if parts.next().is_some()
        || !(1970..=2500).contains(&year)
        || !(1..=12).contains(&month)
        || !(1..=31).contains(&day)
    {
        return None;
    }
    let (whole, fraction) = time.split_once('.').unwrap_or((time, ""));
    let mut parts = whole.split(':').map(number);
    let (hour, minute, second) = (parts.next()??, parts.next().unwrap_or(Some(0))?, parts.next().unwrap_or(Some(0))?);
    if parts.next().is_some() || hour > 23 || minute > 59 || second > 60 || fraction.len() > 9 {
        return None;
    }
    let fraction = if fraction.is_empty() { 0 } else { format!("{fraction:0<9}").parse::<u64>().ok()? };
    let seconds = days(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second;
    Some(seconds * 1_000_000_000 + fraction)
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
