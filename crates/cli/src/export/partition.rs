//! Folders as Hive names them: `host=NAME/date=YYYY-MM-DD`.

use std::fmt::Write;

/// What Hive calls the folder of rows that have no value there.
const NOTHING: &str = "__HIVE_DEFAULT_PARTITION__";

/// A folder's name; what a path cannot hold, and what Hive sets apart, is escaped as `%2F`.
pub fn folder(column: &str, value: &str) -> String {
    let mut name = format!("{column}=");
    if value.is_empty() {
        name.push_str(NOTHING);
    }
    for letter in value.chars() {
        if letter.is_ascii_control() || "\"#%'*/:=?\\{[]^".contains(letter) {
            let _ = write!(name, "%{:02X}", letter as u32);
        } else {
            name.push(letter);
        }
    }
    name
}

/// Which day since 1970, in UTC.
pub fn day(ns: i64) -> i64 {
    ns.div_euclid(86_400_000_000_000)
}

/// A day as `2026-11-16`.
pub fn date(day: i64) -> String {
    // Years that begin in March have their leap day at the end; counted from 1 March 0000.
    let days = day + 719_468;
    let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, turned) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    format!("{:04}-{month:02}-{day:02}", era * 400 + year + turned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_named_as_hive_names_it() {
        let cases = [("node-7.example", "host=node-7.example"), ("a/b=c%", "host=a%2Fb%3Dc%25")];
        let odd = [("", "host=__HIVE_DEFAULT_PARTITION__"), ("ü, \n", "host=ü, %0A"), ("..", "host=..")];
        for (host, name) in cases.into_iter().chain(odd) {
            assert_eq!(folder("host", host), name);
        }
    }

    #[test]
    fn a_day_ends_at_midnight() {
        let night = 1_794_873_600_000_000_000;
        assert_eq!([night - 1, night].map(|ns| date(day(ns))), ["2026-11-16", "2026-11-17"]);
        assert_eq!([-1, 0, 951_782_400_000_000_000].map(|ns| date(day(ns))), ["1969-12-31", "1970-01-01", "2000-02-29"]);
    }
}
