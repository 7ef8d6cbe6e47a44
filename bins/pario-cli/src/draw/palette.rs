//! Owns the colours of elements.
//!
//! The first eight are the palette of Okabe and Ito, which readers with any kind of colour
//! blindness can tell apart; the next eight are the same lightened, then darkened, and so on. Pictures
//! with more elements than colours rely on the numbers in the cells.

/// A colour as red, green, blue.
pub(crate) type Colour = (u8, u8, u8);

const BASE: [Colour; 8] = [
    (0x56, 0xb4, 0xe9), // sky blue
    (0xe6, 0x9f, 0x00), // orange
    (0x00, 0x9e, 0x73), // bluish green
    (0xcc, 0x79, 0xa7), // reddish purple
    (0xf0, 0xe4, 0x42), // yellow
    (0x00, 0x72, 0xb2), // blue
    (0xd5, 0x5e, 0x00), // vermilion
    (0x99, 0x99, 0x99), // grey
];

/// The colour of an element.
pub(crate) fn of(element: usize) -> Colour {
    let base = BASE[element % BASE.len()];
    match element / BASE.len() % 3 {
        0 => base,
        1 => mixed(base, (0xff, 0xff, 0xff), 0.55),
        _ => mixed(base, (0, 0, 0), 0.45),
    }
}

/// Black or white, whichever reads better on a colour.
pub(crate) fn ink(on: Colour) -> &'static str {
    let luminance = 0.299 * f64::from(on.0) + 0.587 * f64::from(on.1) + 0.114 * f64::from(on.2);
    if luminance > 120.0 {
        "#1a1a1a"
    } else {
        "#ffffff"
    }
}

/// A colour on its way to another; 1 arrives there.
pub(crate) fn mixed(from: Colour, to: Colour, share: f64) -> Colour {
    let mix = |a: u8, b: u8| (f64::from(a) + (f64::from(b) - f64::from(a)) * share).round() as u8;
    (mix(from.0, to.0), mix(from.1, to.1), mix(from.2, to.2))
}

/// `#rrggbb`.
pub(crate) fn hex(colour: Colour) -> String {
    format!("#{:02x}{:02x}{:02x}", colour.0, colour.1, colour.2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_24_colours_differ() {
        let mut seen: Vec<Colour> = (0..24).map(of).collect();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 24);
        assert_eq!(hex(of(0)), "#56b4e9");
    }
}
