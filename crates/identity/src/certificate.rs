//! What a certificate says: whose it is, for how long, and for which names.
//!
//! Reads the parts of X.509 that Pario uses, and only those: names, validity, and the alternative names. Whether
//! a certificate is genuine is not judged here but by the code that checks its signatures; what it says is believed
//! after that only.
//!
//! Whose it is stands in an alternative name of the form of a URI:
//!
//! ```text
//!  pario:server                                     a server; its names and addresses stand beside it
//!  pario:user:NAME?uid=1000&gid=100&groups=4,27     a user
//! ```
//!
//! Invariants
//! - Any bytes may come: what is no certificate is refused, never a panic, in time linear in its length.
//! - A certificate that says two things about whose it is says nothing.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use wire::message::session::Credentials;

/// Longest name of a user.
const MAX_NAME_BYTES: usize = 64;
/// Further groups of a user.
const MAX_GROUPS: usize = 64;

/// Whose a certificate is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Holder {
    /// A server of a service.
    Server,
    /// A user.
    User {
        /// His name, for people.
        name: String,
        /// Whom he works for.
        credentials: Credentials,
    },
}

impl Holder {
    /// As it stands in a certificate.
    pub fn to_uri(&self) -> String {
        match self {
            Holder::Server => "pario:server".into(),
            Holder::User { name, credentials } => {
                let mut text = format!(
                    "pario:user:{name}?uid={}&gid={}",
                    credentials.user, credentials.group
                );
                if !credentials.groups.is_empty() {
                    let groups: Vec<String> =
                        credentials.groups.iter().map(u32::to_string).collect();
                    text += &format!("&groups={}", groups.join(","));
                }
                text
            }
        }
    }

    /// What such a text says; nothing if it is none of ours.
    pub fn of_uri(text: &str) -> Option<Result<Holder, CertificateError>> {
        let rest = text.strip_prefix("pario:")?;
        Some(Holder::of_rest(rest).ok_or(CertificateError(
            "has a name that begins with pario: and is none",
        )))
    }

    fn of_rest(rest: &str) -> Option<Holder> {
        if rest == "server" {
            return Some(Holder::Server);
        }
        let (name, numbers) = rest.strip_prefix("user:")?.split_once('?')?;
        if !is_user_name(name) {
            return None;
        }
        let (mut user, mut group, mut groups) = (None, None, None);
        for part in numbers.split('&') {
            match part.split_once('=')? {
                ("uid", n) if user.is_none() => user = Some(number(n)?),
                ("gid", n) if group.is_none() => group = Some(number(n)?),
                ("groups", list) if groups.is_none() => {
                    let list: Option<Vec<u32>> = list.split(',').map(number).collect();
                    groups = Some(list.filter(|list| list.len() <= MAX_GROUPS)?);
                }
                _ => return None,
            }
        }
        Some(Holder::User {
            name: name.into(),
            credentials: Credentials {
                user: user?,
                group: group?,
                groups: groups.unwrap_or_default(),
            },
        })
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Holder::Server => f.write_str("server"),
            Holder::User { name, credentials } => {
                write!(
                    f,
                    "user {name} ({}:{})",
                    credentials.user, credentials.group
                )
            }
        }
    }
}

/// Whether a text is fit to name a user in a certificate.
pub fn is_user_name(name: &str) -> bool {
    let is_fit = |b: u8| b.is_ascii_alphanumeric() || b"._-".contains(&b);
    (1..=MAX_NAME_BYTES).contains(&name.len()) && name.bytes().all(is_fit)
}

/// A number without a sign, leading zeros or anything around it.
fn number(text: &str) -> Option<u32> {
    let is_plain = text == "0" || !text.starts_with('0');
    (is_plain && text.bytes().all(|b| b.is_ascii_digit()))
        .then(|| text.parse().ok())
        .flatten()
}

/// What a certificate says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate {
    /// Whom it names, for people.
    pub subject: String,
    /// Who signed it, for people.
    pub issuer: String,
    /// Its number, in hexadecimal.
    pub serial: String,
    /// When it begins to be good.
    pub not_before: Moment,
    /// When it ceases to be.
    pub not_after: Moment,
    /// Whose it is; an authority's says nothing.
    pub holder: Option<Holder>,
    /// Names of hosts.
    pub names: Vec<String>,
    /// Addresses of hosts.
    pub addresses: Vec<IpAddr>,
    /// Whether it may sign others.
    pub is_authority: bool,
}

/// A moment as certificates write it, in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment {
    /// Year, month, day.
    pub date: (u16, u8, u8),
    /// Hour, minute, second.
    pub time: (u8, u8, u8),
}

impl Moment {
    /// Seconds since 1970.
    pub fn seconds(self) -> i64 {
        let (year, month, day) = self.date;
        let (hour, minute, second) = self.time;
        let days = days_since_1970(i64::from(year), i64::from(month), i64::from(day));
        days * 86_400 + i64::from(hour) * 3600 + i64::from(minute) * 60 + i64::from(second)
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ((year, month, day), (hour, minute, second)) = (self.date, self.time);
        write!(
            f,
            "{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC"
        )
    }
}

/// Days from 1970 to a date of the Gregorian calendar.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    // Years begin in March, so that the day that comes and goes is their last.
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// Why bytes are no certificate of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the certificate {0}")]
pub struct CertificateError(&'static str);

const CUT: CertificateError = CertificateError("is cut off or malformed");

const INTEGER: u8 = 0x02;
const OCTETS: u8 = 0x04;
const OBJECT: u8 = 0x06;
const UTC_TIME: u8 = 0x17;
const GENERAL_TIME: u8 = 0x18;
const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;

/// 2.5.29.17
const ALTERNATIVE_NAMES: &[u8] = &[0x55, 0x1d, 0x11];
/// 2.5.29.19
const CONSTRAINTS: &[u8] = &[0x55, 0x1d, 0x13];
/// 2.5.4.3
const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];

/// Values one after the other, each with a tag and a length in front.
#[derive(Clone, Copy)]
struct Values<'b>(&'b [u8]);

impl<'b> Values<'b> {
    fn next(&mut self) -> Result<(u8, &'b [u8]), CertificateError> {
        let (&[tag, first], rest) = self.0.split_first_chunk().ok_or(CUT)?;
        let (len, rest) = match first {
            0..=0x7f => (usize::from(first), rest),
            0x81..=0x83 => {
                let (digits, rest) = rest
                    .split_at_checked(usize::from(first & 0x7f))
                    .ok_or(CUT)?;
                let len = digits.iter().fold(0, |n, &b| n << 8 | usize::from(b));
                (len, rest)
            }
            _ => return Err(CUT),
        };
        let (value, rest) = rest.split_at_checked(len).ok_or(CUT)?;
        self.0 = rest;
        Ok((tag, value))
    }

    fn expect(&mut self, wanted: u8) -> Result<&'b [u8], CertificateError> {
        match self.next()? {
            (tag, value) if tag == wanted => Ok(value),
            _ => Err(CUT),
        }
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Certificate {
    /// Reads one in DER.
    pub fn parse(der: &[u8]) -> Result<Certificate, CertificateError> {
        let mut outer = Values(der);
        let mut all = Values(outer.expect(SEQUENCE)?);
        let mut body = Values(all.expect(SEQUENCE)?);
        // The version is missing in those of version 1, which have no names that could matter.
        let (tag, _) = body.next()?;
        if tag != 0xa0 || !outer.is_empty() {
            return Err(CUT);
        }
        let serial = body.expect(INTEGER)?;
        body.expect(SEQUENCE)?;
        let issuer = common_name(body.expect(SEQUENCE)?)?;
        let mut validity = Values(body.expect(SEQUENCE)?);
        let not_before = moment(validity.next()?)?;
        let not_after = moment(validity.next()?)?;
        let subject = common_name(body.expect(SEQUENCE)?)?;
        body.expect(SEQUENCE)?;
        let mut found = Certificate {
            subject,
            issuer,
            serial: serial.iter().map(|b| format!("{b:02x}")).collect(),
            not_before,
            not_after,
            holder: None,
            names: Vec::new(),
            addresses: Vec::new(),
            is_authority: false,
        };
        while !body.is_empty() {
            let (tag, value) = body.next()?;
            if tag == 0xa3 {
                let mut list = Values(Values(value).expect(SEQUENCE)?);
                while !list.is_empty() {
                    found.extension(list.expect(SEQUENCE)?)?;
                }
            }
        }
        Ok(found)
    }

    fn extension(&mut self, bytes: &[u8]) -> Result<(), CertificateError> {
        let mut parts = Values(bytes);
        let what = parts.expect(OBJECT)?;
        let value = loop {
            match parts.next()? {
                (OCTETS, value) => break value,
                // Whether it is critical.
                (0x01, _) => {}
                _ => return Err(CUT),
            }
        };
        if what == ALTERNATIVE_NAMES {
            let mut names = Values(Values(value).expect(SEQUENCE)?);
            while !names.is_empty() {
                let (tag, name) = names.next()?;
                self.alternative_name(tag, name)?;
            }
        } else if what == CONSTRAINTS {
            let mut parts = Values(Values(value).expect(SEQUENCE)?);
            self.is_authority = !parts.is_empty() && parts.next()? == (0x01, &[0xff]);
        }
        Ok(())
    }

    fn alternative_name(&mut self, tag: u8, name: &[u8]) -> Result<(), CertificateError> {
        match tag {
            0x82 => self.names.push(text(name)?),
            0x86 => {
                if let Some(holder) = Holder::of_uri(&text(name)?) {
                    let holder = holder?;
                    if self.holder.replace(holder).is_some() {
                        return Err(CertificateError("says twice whose it is"));
                    }
                }
            }
            0x87 => self.addresses.push(match name.len() {
                4 => Ipv4Addr::from(<[u8; 4]>::try_from(name).expect("four")).into(),
                16 => Ipv6Addr::from(<[u8; 16]>::try_from(name).expect("sixteen")).into(),
                _ => return Err(CUT),
            }),
            _ => {}
        }
        Ok(())
    }
}

fn text(bytes: &[u8]) -> Result<String, CertificateError> {
    let text = str::from_utf8(bytes).map_err(|_| CUT)?;
    match text.chars().any(char::is_control) {
        true => Err(CUT),
        false => Ok(text.into()),
    }
}

/// The common name in a name; nothing if it has none.
fn common_name(bytes: &[u8]) -> Result<String, CertificateError> {
    let mut parts = Values(bytes);
    let mut found = String::new();
    while !parts.is_empty() {
        let mut pair = Values(Values(parts.expect(SET)?).expect(SEQUENCE)?);
        let what = pair.expect(OBJECT)?;
        let (_, value) = pair.next()?;
        if what == COMMON_NAME {
            found = text(value)?;
        }
    }
    Ok(found)
}

fn moment((tag, value): (u8, &[u8])) -> Result<Moment, CertificateError> {
    let two = |at: usize| -> Result<u8, CertificateError> {
        match value.get(at..at + 2) {
            Some(&[a @ b'0'..=b'9', b @ b'0'..=b'9']) => Ok((a - b'0') * 10 + (b - b'0')),
            _ => Err(CUT),
        }
    };
    let (year, at) = match (tag, value.len()) {
        (UTC_TIME, 13) => {
            let year = u16::from(two(0)?);
            (if year < 50 { 2000 + year } else { 1900 + year }, 2)
        }
        (GENERAL_TIME, 15) => (u16::from(two(0)?) * 100 + u16::from(two(2)?), 4),
        _ => return Err(CUT),
    };
    if value.last() != Some(&b'Z') {
        return Err(CUT);
    }
    let found = Moment {
        date: (year, two(at)?, two(at + 2)?),
        time: (two(at + 4)?, two(at + 6)?, two(at + 8)?),
    };
    let is_date = (1..=12).contains(&found.date.1) && (1..=31).contains(&found.date.2);
    let is_time = found.time.0 < 24 && found.time.1 < 60 && found.time.2 <= 60;
    match is_date && is_time {
        true => Ok(found),
        false => Err(CUT),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holders_are_read_as_written() {
        let user = |groups: Vec<u32>| Holder::User {
            name: "ada.l-1".into(),
            credentials: Credentials {
                user: 1000,
                group: 0,
                groups,
            },
        };
        for holder in [Holder::Server, user(vec![]), user(vec![4, u32::MAX])] {
            let text = holder.to_uri();
            assert_eq!(Holder::of_uri(&text), Some(Ok(holder)), "{text}");
        }
        assert_eq!(Holder::of_uri("https://example.org"), None);
        for text in [
            "pario:",
            "pario:servers",
            "pario:server:",
            "pario:user:",
            "pario:user:a",
            "pario:user:?uid=1&gid=1",
            "pario:user:a b?uid=1&gid=1",
            "pario:user:a?uid=1",
            "pario:user:a?uid=01&gid=1",
            "pario:user:a?uid=+1&gid=1",
            "pario:user:a?uid=1&gid=1&uid=0",
            "pario:user:a?uid=1&gid=4294967296",
            "pario:user:a?uid=1&gid=1&groups=",
            "pario:user:a?uid=1&gid=1&more=1",
        ] {
            assert!(Holder::of_uri(text).unwrap().is_err(), "{text}");
        }
    }

    #[test]
    fn moments_are_counted_as_the_calendar_does() {
        let at = |date, time| Moment { date, time }.seconds();
        assert_eq!(at((1970, 1, 1), (0, 0, 0)), 0);
        assert_eq!(at((2000, 3, 1), (0, 0, 0)), 951_868_800);
        assert_eq!(at((2024, 2, 29), (12, 34, 56)), 1_709_210_096);
        assert_eq!(
            at((2100, 3, 1), (0, 0, 0)) - at((2100, 2, 28), (0, 0, 0)),
            86_400
        );
    }
}
