//! Services as users run them: real processes of the built binary, in directories and on ports of
//! their own. Whatever happens to a test, its processes end with it.

mod audit;
mod backup;
mod by_hand;
mod completions;
mod disks;
mod doctor;
mod faults;
mod log;
mod metrics;
mod refused;
mod release_before;
mod restart;
mod scratch;
mod slow;
mod units;
mod up;
