//! The fuzz harnesses on some thousand inputs from a fixed generator: texts grown from pieces of the
//! notation, hostile numbers among them, and arbitrary bytes.
//!
//! `make fuzz` runs the same functions with a fuzzer behind them.

use random::Random;

fn cases(default: u64) -> u64 {
    let asked = std::env::var("PROPTEST_CASES").ok();
    asked.and_then(|n| n.parse().ok()).unwrap_or(default)
}

#[test]
fn intersect_project_on_arbitrary_bytes() {
    let mut stream = Random::new(0x0f41_1500);
    for _ in 0..cases(3000) {
        let len = stream.below(60);
        let data: Vec<u8> = (0..len).map(|_| stream.draw() as u8).collect();
        crate::harness::intersect_project(&data);
    }
}

#[test]
fn notation_on_scraps() {
    const SCRAPS: &[&str] = &[
        "{",
        "}",
        "(",
        ")",
        ",",
        "-",
        " ",
        "0",
        "1",
        "7",
        "64",
        "é",
        "x",
        "{}",
        "(0,0)",
        "(0,3,8,2)",
        "(0,7,16,2,{(0,1,4,2)})",
        "9223372036854775806",
        "9223372036854775807",
        "9223372036854775808",
        "-1",
        "(5,7,-,1)",
        ",{",
        "\n",
        "\t",
    ];
    let mut stream = Random::new(7);
    for _ in 0..cases(20_000) {
        let count = stream.below(14);
        let text: String = (0..count)
            .map(|_| SCRAPS[stream.below(SCRAPS.len() as u64) as usize])
            .collect();
        crate::harness::notation(&text);
    }
}

/// A tree written with numbers of every magnitude; most of them are refused, many are not.
fn member(stream: &mut Random, depth: u32, room: u64) -> String {
    let number = |stream: &mut Random, bound: u64| {
        let bits = stream.below(64);
        stream.below(bound.clamp(1, 1 << bits.min(62)))
    };
    let l = number(stream, room);
    let len = 1 + number(stream, room - l);
    let n = 1 + number(stream, (room - l) / len);
    let s = len + number(stream, (room - l) / n);
    let inner = if depth > 0 && stream.below(2) == 0 {
        let inside = member(stream, depth - 1, len);
        format!(",{{{inside}}}")
    } else {
        String::new()
    };
    format!("({l},{},{s},{n}{inner})", l + len - 1)
}

#[test]
fn notation_on_numbers_of_every_magnitude() {
    let mut stream = Random::new(99);
    let mut accepted = 0;
    for _ in 0..cases(20_000) {
        let depth = stream.below(12) as u32;
        let text = format!("{{{}}}", member(&mut stream, depth, i64::MAX as u64));
        accepted += u32::from(text.parse::<falls::FallsSet>().is_ok());
        crate::harness::notation(&text);
    }
    assert!(accepted > 100, "{accepted} accepted");
}
