//! Writing to standard output. A reader that went away (`pario ... | head -1`) is no failure: what
//! it wanted, it has.

use std::io::{ErrorKind, Write};

use crate::Error;

/// Writes a text and flushes it.
pub fn print(text: &str) -> Result<(), Error> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(format!("cannot write to standard output: {error}").into()),
        Ok(()) => Ok(()),
    }
}

/// Writes a message for people to standard error; nobody there is no failure.
pub fn note(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// Writes a file, with an error that names it.
pub fn write_file(path: &std::path::Path, text: &str) -> Result<(), Error> {
    std::fs::write(path, text)
        .map_err(|error| format!("cannot write {}: {error}", path.display()).into())
}

const UNITS: [(&str, u32); 7] = [
    ("EiB", 60),
    ("PiB", 50),
    ("TiB", 40),
    ("GiB", 30),
    ("MiB", 20),
    ("KiB", 10),
    ("B", 0),
];

/// Exact numbers of bytes have at most so many digits.
const EXACT: u64 = 99_999;

/// Bytes in few characters: exact if some unit makes the number short, else three digits of it.
pub fn bytes(count: u64) -> String {
    let exact = UNITS
        .iter()
        .find(|(_, shift)| count.is_multiple_of(1 << shift) && (count > 0 || *shift == 0));
    if let Some((unit, shift)) = exact.filter(|(_, shift)| count >> shift <= EXACT) {
        return format!("{} {unit}", count >> shift);
    }
    // More than EXACT bytes, so there is a unit.
    let largest = UNITS.iter().find(|(_, shift)| count >> shift > 0);
    let (unit, shift) = largest.unwrap_or(&("B", 0));
    let value = count as f64 / (1u64 << shift) as f64;
    let decimals = match value {
        ..10.0 => 2,
        ..100.0 => 1,
        _ => 0,
    };
    format!("{value:.decimals$} {unit}")
}

/// Like [`bytes`], with the exact number beside a rounded one.
pub fn exact_bytes(count: u64) -> String {
    let short = bytes(count);
    let exact = UNITS.iter().any(|(unit, shift)| {
        format!("{} {unit}", count >> shift) == short && count.is_multiple_of(1 << shift)
    });
    if exact {
        short
    } else {
        format!("{short} ({count} B)")
    }
}

/// Seconds as people read them.
pub fn time(seconds: f64) -> String {
    match seconds.abs() {
        s if s < 1e-3 => format!("{:.1} us", seconds * 1e6),
        s if s < 1.0 => format!("{:.2} ms", seconds * 1e3),
        _ => format!("{seconds:.2} s"),
    }
}

/// `one` for 1, else `many`, after the number.
pub fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// A text cut to `width` characters, the last one an ellipsis if something was lost.
pub fn shortened(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let kept: String = text.chars().take(width.saturating_sub(1)).collect();
    format!("{kept}…")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_exact_where_that_is_short() {
        assert_eq!(bytes(0), "0 B");
        assert_eq!(bytes(1025), "1025 B");
        assert_eq!(bytes(128 << 20), "128 MiB");
        assert_eq!(bytes((1 << 20) + 1024), "1025 KiB");
        assert_eq!(bytes(8_000_000_000_000), "7.28 TiB");
        assert_eq!(bytes(240_000_000), "229 MiB");
        assert_eq!(bytes(u64::MAX >> 1), "8.00 EiB");
        assert_eq!(exact_bytes(240_000_000), "229 MiB (240000000 B)");
        assert_eq!(exact_bytes(128 << 20), "128 MiB");
    }

    #[test]
    fn texts_are_cut_by_characters() {
        assert_eq!(shortened("a…b", 3), "a…b");
        assert_eq!(shortened("abcd", 3), "ab…");
    }
}
