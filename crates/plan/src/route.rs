//! Direct, or in two steps through a layout that both sides know.
//!
//! Between cyclic(x) and cyclic(y) with blocks that share no factor, runs are short and follow no
//! short period; the thesis on data-parallel I/O (section 4.9) goes through cyclic(lcm(x, y)), which
//! both sides divide evenly, at the price of moving every byte twice. Here the cost function
//! decides: the second copy pays when the direct meeting is lazy and its runs are short, so that
//! finding them costs more than copying them.

use falls::lcm;
use layout::{ArrayType, Distribution, ElementType, Grid, Hpf, Order, Partition, Pattern};

use crate::cost::CostFunction;
use crate::plan::Plan;

/// How bytes get from one partition to the other, with the predicted times.
#[derive(Clone, Debug)]
pub struct Route {
    middle: Option<Partition>,
    direct_s: f64,
    two_step_s: Option<f64>,
}

impl Route {
    /// The cheaper of the two ways for the first `file_len` bytes.
    pub fn choose(
        source: &Partition,
        target: &Partition,
        file_len: u64,
        cost: &CostFunction,
    ) -> Route {
        let seconds =
            |a: &Partition, b: &Partition| cost.seconds(&Plan::between(a, b, file_len).measures());
        let direct_s = seconds(source, target);
        let middle = middle(source, target, file_len);
        let two_step_s = middle
            .as_ref()
            .map(|m| seconds(source, m) + seconds(m, target));
        let pays = two_step_s.is_some_and(|t| t < direct_s);
        Route {
            middle: middle.filter(|_| pays),
            direct_s,
            two_step_s,
        }
    }

    /// The partition in between; `None` when the direct way is chosen.
    pub fn middle(&self) -> Option<&Partition> {
        self.middle.as_ref()
    }

    /// Predicted seconds of the direct way.
    pub fn direct_s(&self) -> f64 {
        self.direct_s
    }

    /// Predicted seconds through the middle; `None` when there is no such way.
    pub fn two_step_s(&self) -> Option<f64> {
        self.two_step_s
    }
}

/// cyclic(lcm(x, y)) when the partitions are cyclic(x) and cyclic(y) over as many elements, neither
/// block dividing the other.
fn middle(source: &Partition, target: &Partition, file_len: u64) -> Option<Partition> {
    let count = source.len();
    if count < 2 || count != target.len() || source.displacement() != target.displacement() {
        return None;
    }
    let (x, y) = (cyclic_block(source)?, cyclic_block(target)?);
    let block = lcm(x, y)?;
    if block == x || block == y || block >= file_len {
        return None;
    }
    cyclic(block, count as u64, block.checked_mul(count as u64)?)
        .and_then(|pattern| Partition::new(source.displacement(), pattern).ok())
}

/// The x of a partition that is cyclic(x) from its displacement on, over one or many periods.
fn cyclic_block(partition: &Partition) -> Option<u64> {
    let elements = partition.pattern().elements();
    let period = partition.pattern().period();
    let first = elements[0].segments(0..period).next()?;
    let block = first.len();
    if first.start() != 0 {
        return None;
    }
    let expected = cyclic(block, elements.len() as u64, period)?;
    // A shorter last block would shift everything in the next period.
    let whole = block
        .checked_mul(elements.len() as u64)
        .is_some_and(|round| period.is_multiple_of(round));
    let same = elements
        .iter()
        .zip(expected.elements())
        .all(|(a, b)| a.same_bytes(b));
    (same && whole).then_some(block)
}

/// Blocks of `block` bytes dealt to `count` elements inside `period`.
fn cyclic(block: u64, count: u64, period: u64) -> Option<Pattern> {
    let bytes = ArrayType::new(ElementType::U8, vec![period], Order::C).ok()?;
    let grid = Grid::new(vec![count], Order::C).ok()?;
    let dealt = Hpf::new(vec![Distribution::CyclicOf(block)], grid).ok()?;
    let elements = dealt.on(&bytes).ok()?.elements().ok()?;
    Pattern::new(elements.period, elements.sets).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dealt(block: u64, count: u64) -> Partition {
        Partition::from_start(cyclic(block, count, block * count).unwrap())
    }

    #[test]
    fn regular_pairs_go_direct() {
        for (x, y) in [(8, 64), (64, 8), (8, 8), (24, 36)] {
            let route = Route::choose(&dealt(x, 4), &dealt(y, 4), 1 << 20, &CostFunction::MEMORY);
            assert!(route.middle().is_none(), "{x} {y} {route:?}");
        }
    }

    #[test]
    fn long_coprime_blocks_go_through_their_common_multiple() {
        let (source, target) = (dealt(10_007, 4), dealt(9_973, 4));
        let dear_search = CostFunction {
            lazy_run_s: 1e-5,
            ..CostFunction::MEMORY
        };
        let route = Route::choose(&source, &target, 1 << 32, &dear_search);
        let middle = route.middle().expect("two steps");
        assert_eq!(cyclic_block(middle), Some(10_007 * 9_973));
        assert!(route.two_step_s().unwrap() < route.direct_s());
        let cheap_search = CostFunction {
            lazy_run_s: 1e-9,
            ..CostFunction::MEMORY
        };
        assert!(
            Route::choose(&source, &target, 1 << 32, &cheap_search)
                .middle()
                .is_none()
        );
    }

    #[test]
    fn partitions_that_are_not_cyclic_have_no_middle() {
        let rows = Partition::from_start(
            Pattern::new(
                12,
                vec!["{(0,4)}".parse().unwrap(), "{(5,11)}".parse().unwrap()],
            )
            .unwrap(),
        );
        assert!(
            Route::choose(&rows, &dealt(7, 2), 1 << 20, &CostFunction::MEMORY)
                .two_step_s()
                .is_none()
        );
    }
}
