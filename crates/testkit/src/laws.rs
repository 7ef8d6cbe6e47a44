//! Property tests that draw the same cases every time.
//!
//! A fixed seed unless `PROPTEST_RNG_SEED` names another, a number of cases that keeps `make test`
//! short unless `PROPTEST_CASES` asks for more; a failure prints the seed. No files are written.

use proptest::strategy::Strategy;
use proptest::test_runner::{Config, RngSeed, TestCaseError, TestError, TestRunner};

const SEED: u64 = 0x0f41_1500;

/// The configuration for a `proptest!` block.
pub fn config(cases: u32) -> Config {
    let mut config = Config {
        failure_persistence: None,
        ..Config::default()
    };
    if std::env::var_os("PROPTEST_CASES").is_none() {
        config.cases = cases;
    }
    if config.rng_seed == RngSeed::Random {
        config.rng_seed = RngSeed::Fixed(SEED);
    }
    config
}

/// Runs `test` on `cases` draws.
#[track_caller]
pub fn check<S: Strategy>(
    cases: u32,
    strategy: S,
    test: impl Fn(S::Value) -> Result<(), TestCaseError>,
) {
    let config = config(cases);
    let seed = match config.rng_seed {
        RngSeed::Fixed(seed) => seed,
        RngSeed::Random => SEED,
    };
    match TestRunner::new(config).run(&strategy, test) {
        Ok(()) => {}
        Err(TestError::Fail(why, value)) => {
            panic!("{why}\nsmallest case: {value:?}\nseen with PROPTEST_RNG_SEED={seed}")
        }
        Err(error) => panic!("{error} (PROPTEST_RNG_SEED={seed})"),
    }
}
