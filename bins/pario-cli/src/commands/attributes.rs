//! How the attributes of stored files are shown: kinds, permission bits, owners, times, and all of
//! them as JSON.
//!
//! Times are ISO 8601 in UTC, so that two people who look at one file read the same.

use std::collections::HashMap;

use client::{Kind, Metadata, Time};
use serde_json::{Map, Value, json};

/// `-rw-r--r--` or `drwxr-xr-x`.
pub(crate) fn mode(kind: Kind, mode: u32) -> String {
    let mut text = String::with_capacity(10);
    text.push(match kind {
        Kind::Directory => 'd',
        Kind::File => '-',
    });
    for (shift, special, sign) in [(6, 0o4000, 's'), (3, 0o2000, 's'), (0, 0o1000, 't')] {
        let bits = mode >> shift;
        text.push(if bits & 4 != 0 { 'r' } else { '-' });
        text.push(if bits & 2 != 0 { 'w' } else { '-' });
        text.push(match (mode & special != 0, bits & 1 != 0) {
            (false, false) => '-',
            (false, true) => 'x',
            (true, false) => sign.to_ascii_uppercase(),
            (true, true) => sign,
        });
    }
    text
}

/// `directory` or `file`.
pub(crate) fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Directory => "directory",
        Kind::File => "file",
    }
}

/// `2026-11-15T07:58:13Z`.
pub(crate) fn time(time: Time) -> String {
    let seconds = time.0.div_euclid(1_000_000_000);
    let (year, month, day) = date(seconds.div_euclid(86_400));
    let second = seconds.rem_euclid(86_400);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// `2026-11-15T07:58:13.000000017Z`.
pub(crate) fn exact_time(exact: Time) -> String {
    let nanoseconds = exact.0.rem_euclid(1_000_000_000);
    let seconds = time(exact);
    format!("{}.{nanoseconds:09}Z", seconds.trim_end_matches('Z'))
}

/// Year, month and day of a day counted from the beginning of 1970. Years are taken to begin in March,
/// so that the day that comes and goes is their last.
fn date(day: i64) -> (i64, i64, i64) {
    const DAYS_OF_400_YEARS: i64 = 146_097;
    let from_march_of_0 = day + 719_468;
    let era = from_march_of_0.div_euclid(DAYS_OF_400_YEARS);
    let of_era = from_march_of_0.rem_euclid(DAYS_OF_400_YEARS);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12 + 1;
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    (year, month, day)
}

/// Names of users and groups of this host, as far as its files have them.
#[derive(Debug)]
pub(crate) struct People {
    users: HashMap<u32, String>,
    groups: HashMap<u32, String>,
}

impl People {
    /// Reads them.
    pub(crate) fn of_this_host() -> People {
        People {
            users: names_in("/etc/passwd"),
            groups: names_in("/etc/group"),
        }
    }

    /// The name of a user, else his number.
    pub(crate) fn user(&self, number: u32) -> String {
        let name = self.users.get(&number).cloned();
        name.unwrap_or_else(|| number.to_string())
    }

    /// The name of a group, else its number.
    pub(crate) fn group(&self, number: u32) -> String {
        let name = self.groups.get(&number).cloned();
        name.unwrap_or_else(|| number.to_string())
    }
}

/// Lines of `name:password:number:...`; without the file everybody is a number.
fn names_in(path: &str) -> HashMap<u32, String> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let mut names = HashMap::new();
    for line in text.lines() {
        let mut fields = line.split(':');
        if let (Some(name), _, Some(Ok(number))) =
            (fields.next(), fields.next(), fields.next().map(str::parse))
        {
            names.entry(number).or_insert_with(|| name.to_owned());
        }
    }
    names
}

/// Everything, for JSON.
pub(crate) fn to_json(attributes: &Metadata) -> Map<String, Value> {
    let mut map = Map::new();
    let mut put = |name: &str, value: Value| map.insert(name.to_owned(), value);
    put("kind", json!(kind(attributes.kind)));
    put("id", json!(attributes.file.0));
    put("mode", json!(format!("{:04o}", attributes.mode)));
    put("owner", json!(attributes.owner));
    put("group", json!(attributes.group));
    put("modified", json!(exact_time(attributes.modified)));
    put("changed", json!(exact_time(attributes.changed)));
    put("accessed", json!(exact_time(attributes.accessed)));
    if attributes.kind == Kind::File {
        put("size", json!(attributes.size));
        put("array", json!(attributes.array));
        put("layout", json!(attributes.layout));
        put("generation", json!(attributes.generation));
    }
    map
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_dates_of_the_calendar() {
        let at = |seconds: i64| time(Time(seconds * 1_000_000_000));
        assert_eq!(at(0), "1970-01-01T00:00:00Z");
        assert_eq!(at(951_782_399), "2000-02-28T23:59:59Z");
        assert_eq!(at(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(at(4_107_542_400), "2100-03-01T00:00:00Z");
        assert_eq!(at(1_735_689_599), "2024-12-31T23:59:59Z");
        assert_eq!(at(-1), "1969-12-31T23:59:59Z");
        assert_eq!(exact_time(Time(-1)), "1969-12-31T23:59:59.999999999Z");
    }

    #[test]
    fn permissions_are_letters() {
        assert_eq!(mode(Kind::File, 0o644), "-rw-r--r--");
        assert_eq!(mode(Kind::Directory, 0o1777), "drwxrwxrwt");
        assert_eq!(mode(Kind::File, 0o4655), "-rwSr-xr-x");
        assert_eq!(mode(Kind::File, 0o2755), "-rwxr-sr-x");
    }
}
