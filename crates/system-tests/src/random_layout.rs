//! Layouts drawn from all forms of the layout language.
//!
//! Blocks and stripes are mostly odd, so that periods of two layouts have little in common.

use crate::seed::Random;

/// A layout for a file of plain bytes, on some of so many servers.
pub fn of_bytes(random: &mut Random, servers: u64) -> String {
    let over = random.within(1..servers + 3);
    let odd = |random: &mut Random, most: u64| random.below(most) | 1;
    match random.below(9) {
        0 => "whole".into(),
        1 => format!("striped({}) over {over}", odd(random, 64)),
        2 => format!("striped({}) over {over}", 1 << random.within(9..15)),
        3 => {
            let over = random.within(1..servers + 1);
            let from = random.below(over);
            let stripe = odd(random, 20_000);
            format!("striped({stripe}) over {over} from {from}")
        }
        4 => {
            let sizes: Vec<u64> = (0..over).map(|_| random.within(1..900)).collect();
            let mut at = 0;
            let segment = |size: &u64| {
                at += size;
                format!("({},{})", at - size, at - 1)
            };
            let segments: Vec<String> = sizes.iter().map(segment).collect();
            format!("falls{{{}}}", segments.join("; "))
        }
        5 => {
            // Pairs of bytes within blocks, and the rest.
            let (pair, block) = (random.within(1..9), random.within(2..60));
            let len = 2 * pair * block;
            format!(
                "falls{{(0,{0},{1},{block}); ({2},{3},{1},{block}); ({len},{4})}}",
                pair - 1,
                2 * pair,
                pair,
                2 * pair - 1,
                len + random.below(500)
            )
        }
        6 => {
            let block = odd(random, 3000);
            let map: Vec<String> = (0..random.within(over..over + 6))
                .map(|i| (i % over).to_string())
                .collect();
            format!("blocks({block}: {})", map.join(","))
        }
        7 => format!("vesta({}, {})", random.within(1..7), odd(random, 500)),
        _ => format!("striped({}) over {over}", odd(random, 5000)),
    }
}

/// A layout for a file that holds a two-dimensional array of `rows` x `columns` elements.
pub fn of_array(random: &mut Random, servers: u64, rows: u64, columns: u64) -> String {
    let dimension = |random: &mut Random, extent: u64| match random.below(4) {
        0 => "block".to_string(),
        1 => "cyclic".to_string(),
        2 => format!("cyclic({})", random.within(2..extent.max(3))),
        _ => format!("block({})", extent),
    };
    let over = random.within(1..servers + 2);
    match random.below(8) {
        0 => format!("(block, *) onto {over}"),
        1 => format!("(*, block) onto {over}"),
        2 => format!("(cyclic({}), *) onto {over}", random.within(1..7)),
        3 => format!("(*, cyclic({})) onto {over}", random.within(1..7)),
        4 => {
            let (a, b) = (random.within(1..4), random.within(1..4));
            let (first, second) = (dimension(random, rows), dimension(random, columns));
            format!("({first}, {second}) onto {a}x{b}")
        }
        5 => {
            let (a, b) = (random.within(1..rows), random.within(1..columns));
            format!("chunks({a},{b}) over {over}")
        }
        _ => of_bytes(random, servers),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layouts::views_of;

    #[test]
    fn what_is_drawn_is_a_partition() {
        let mut random = Random::new(7);
        for _ in 0..400 {
            let servers = random.within(1..6);
            let (text, array) = match random.below(2) {
                0 => (of_bytes(&mut random, servers), None),
                _ => (of_array(&mut random, servers, 31, 45), Some("u8[31,45]")),
            };
            let views = views_of(array, 0, &text);
            let size: u64 = views.iter().map(|v| v.bytes().size()).sum();
            assert_eq!(size, views[0].bytes().period(), "{text}");
        }
    }
}
