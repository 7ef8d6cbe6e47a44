//! The fuzz harness for messages with hostile trees inside, on fixed seeds.
//!
//! `make fuzz` runs the same function with a fuzzer behind it; what it does is in `harness/hostile.rs`.

use crate::harness;

#[path = "harness/hostile.rs"]
mod hostile;

#[test]
fn messages_with_hostile_trees_on_fixed_seeds() {
    let asked = std::env::var("PROPTEST_CASES").ok();
    let cases: u64 = asked.and_then(|n| n.parse().ok()).unwrap_or(500);
    for seed in 0..cases {
        hostile::messages_with_trees(&seed.to_le_bytes());
    }
}
