//! Values of hints that are more than a word: numbers, switches, lists.
//!
//! Readers answer `None` or a reason, never a panic; what they take is bounded.

use layout::ByteSize;

/// Most ranges that one hint names.
pub const MOST_UPCOMING: usize = 1024;

/// Most servers that one hint names.
const MOST_SERVERS: usize = 1 << 16;

/// A number, or a size as in the layout language.
///
/// ```
/// use advise::hints::number;
/// assert_eq!((number(" 12 "), number("64KiB"), number("-1")), (Some(12), Some(65536), None));
/// ```
pub fn number(text: &str) -> Option<u64> {
    let text = text.trim();
    match text.parse::<u64>() {
        Ok(n) => Some(n),
        Err(_) => text.parse::<ByteSize>().ok().map(|size| size.0),
    }
}

/// What a switch says.
pub fn switch(text: &str) -> Option<bool> {
    match text.trim() {
        "1" | "on" | "true" | "yes" => Some(true),
        "0" | "off" | "false" | "no" => Some(false),
        _ => None,
    }
}

/// Numbers of servers: `0,2,3`, or in brackets as layouts have them.
pub fn server_list(text: &str) -> Result<Vec<u64>, String> {
    let text = text.trim();
    let inner = text.strip_prefix('[').and_then(|t| t.strip_suffix(']'));
    let mut list: Vec<u64> = Vec::new();
    for part in inner.unwrap_or(text).split(',') {
        let part = part.trim();
        let number = part
            .parse()
            .map_err(|_| format!("'{part}' is no number of a server"))?;
        if !list.contains(&number) {
            list.push(number);
        }
        if list.len() > MOST_SERVERS {
            return Err("too many servers".into());
        }
    }
    Ok(list)
}

/// Bytes of a view that will be accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UpcomingBytes {
    /// From where on.
    pub offset: u64,
    /// How many.
    pub size: u64,
}

/// Ranges `OFFSET:SIZE`, with commas between them.
///
/// ```
/// use advise::hints::{UpcomingBytes, upcoming};
/// assert_eq!(upcoming("4KiB:100").unwrap(), [UpcomingBytes { offset: 4096, size: 100 }]);
/// assert!(upcoming("4096").unwrap_err().contains("OFFSET:SIZE"));
/// ```
pub fn upcoming(text: &str) -> Result<Vec<UpcomingBytes>, String> {
    let mut ranges = Vec::new();
    for part in text.split(',') {
        let pair = part.split_once(':');
        let range = pair.and_then(|(offset, size)| Some((number(offset)?, number(size)?)));
        let (offset, size) = range.ok_or("give OFFSET:SIZE, several with commas between them")?;
        if offset
            .checked_add(size)
            .is_none_or(|end| end > falls::MAX_OFFSET)
        {
            return Err(format!("{offset}:{size} ends beyond 2^63 - 1"));
        }
        if ranges.len() == MOST_UPCOMING {
            return Err(format!("give at most {MOST_UPCOMING} ranges"));
        }
        ranges.push(UpcomingBytes { offset, size });
    }
    Ok(ranges)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_and_bounded() {
        assert_eq!(server_list("3, 1,3"), Ok(vec![3, 1]));
        assert!(server_list("1,,2").is_err());
        let many = vec!["1:1"; MOST_UPCOMING + 1].join(",");
        assert!(upcoming(&many).unwrap_err().contains("at most"));
        assert!(upcoming("9223372036854775807:9223372036854775807").is_err());
        assert_eq!(switch("yes"), Some(true));
    }
}
