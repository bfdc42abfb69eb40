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
}
