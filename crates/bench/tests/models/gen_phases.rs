//! `CYCLIC(x)` to `CYCLIC(y)` at once, element by element, or through `CYCLIC(lcm(x, y))` with long copies
//! (section 4.9 of the thesis).
//!
//! Twice the exchange and twice the copies, but at the rate of long pieces and without divisions: worth it
//! for small elements only.

use advise::cost::Curve;

/// A machine that redistributes: seconds per MB and node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Redistributor {
    /// Copies in pieces of `n` bytes.
    pub(crate) copy: Curve,
    /// What the two divisions of GEN add at 8 bytes, over copies in regular redistributions.
    pub(crate) division: f64,
    /// One exchange of everything with everybody.
    pub(crate) exchange: f64,
}

impl Redistributor {
    /// A node of the CS-2 (Table 4.2, 20 MB/s of exchange). The thesis does not print what the divisions
    /// cost: the value is the one that puts the crossing where it prints it, at 36 bytes. It comes to 2.65 us per
    /// element, two software divisions of some 85 cycles at 66 MHz, which is plausible and no proof.
    pub(crate) const CS2: Redistributor = Redistributor {
        copy: Curve {
            a: 1.58,
            b: 1.32,
            c: 0.066,
        },
        division: 0.347,
        exchange: 0.05,
    };

    /// One step: a pack and an unpack of single elements, and an exchange.
    pub(crate) fn one_phase(&self, element: f64) -> f64 {
        let copy = self.copy.at(element) + 8.0 / element.max(1.0) * self.division;
        2.0 * copy + self.exchange
    }

    /// Two steps: two packs and two unpacks at the rate of long copies, and two exchanges.
    pub(crate) fn two_phase(&self) -> f64 {
        4.0 * self.copy.c + 2.0 * self.exchange
    }

    /// Whether the way through the least common multiple is faster.
    pub(crate) fn two_phase_pays(&self, element: f64) -> bool {
        self.two_phase() < self.one_phase(element)
    }
}
