//! The cost model: the window size and the division of the work by the number of additions and by the device.

use evariste_backend::DeviceInfo;

use crate::{
    config::{Aggregation, MAX_WINDOW, MIN_WINDOW, Tuning},
    precompute::PrecomputedTable,
    reduce::{Reduction, TREE_ADDITIONS, TREE_LOG},
};

/// Pairs of a key and a value that are sorted at once: their number and the last bit of a value are 32 bits.
pub(crate) const MAX_PAIRS: u64 = 1 << 31;

/// Threads that add points at once for each unit of a GPU that runs workgroups, as far as registers allow.
const LANES_PER_UNIT: u32 = 512;

/// Slices for each of these threads at most: more level out their times, but leave more ends to join.
const SLICES_PER_LANE: u32 = 3;

/// Points of a slice, before there are more slices than lanes, over a field of up to [`AFFINE_LIMBS`] limbs. On an H200,
/// 2^20 points of BN254 G1 took 0.97 of the time that they took with twice as many.
const SLICE: u64 = 128;

/// The same over longer fields, where ends take longer to join: half as many points took 1.01 of the time with G2.
const LONG_SLICE: u64 = 256;

/// Most slices.
pub(crate) const MAX_SLICES: u32 = 1 << 24;

/// Threads for each unit of a processor.
const CPU_LANES_PER_UNIT: u32 = 8;

/// Most levels of affine additions.
pub(crate) const MAX_LEVELS: u32 = 8;

/// Points over a field of [`AFFINE_LIMBS`] limbs from which on batch-affine additions pay; with longer elements fewer pay.
/// On an H200, 2^20 points of BLS12-381 G1 took 0.93 of the time that all additions in XYZZ form took with tables and as
/// long without, 2^18 as long, and 2^20 points of G2 0.89. Over eight limbs they gained nothing.
const AFFINE_PAIRS: u64 = 1 << 23;

/// See [`AFFINE_PAIRS`].
const AFFINE_LIMBS: u64 = 12;

/// Pairs for each lane below which a GPU has slices for half of its lanes alone: their ends then take longer to join than
/// their points to add. On an H200, 2^14 points of BLS12-381 G1 took 0.93 of the time that they took with all.
const FEW_PAIRS: u64 = 32;

/// Points that a thread of a GPU adds at least. With 4, and slices for all lanes, 2^10 points took
/// 1.06 of the time on an H200; Vulkan was not measured.
const LEAST_SLICE: u32 = 1;

/// Points that a thread of a processor adds at least.
const CPU_LEAST_SLICE: u32 = 1024;

/// log₂ of the buckets that trees reduce at once: more of them have layers first, which work in less memory.
const TREES_LOG: u32 = 17;

/// The same of trees that weigh: a warp of each weighs while the others wait. On an H200, rows of 2^12 took 299 us in place
/// of 382 with layers before them.
const WEIGHING_TREES_LOG: u32 = 14;

/// log₂ of the lengths of runs in a layer.
const LAYER_LOGS: [u32; 2] = [3, 6];

/// log₂ of the length of a run in layers before trees that weigh, at least. Runs of twice the length took 415 us there.
const WEIGHING_LAYER_LOG: u32 = 2;

/// Rows from which on trees weigh. It was not measured where the host's additions and theirs take as long; with twenty
/// rows the host took 200 us longer than an H200 did.
const WEIGHED_ROWS: u32 = 4;

/// How pairs are divided among threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slices {
    /// Threads.
    pub(crate) count: u32,
    /// Pairs of a thread at least.
    pub(crate) least: u32,
}

/// The properties of a device that the division of work depends on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct CostModel {
    /// Threads that add points at once.
    pub(crate) lanes: u32,
    /// Whether lanes are those of a GPU.
    gpu: bool,
    /// Additions that the loops of one thread may do in a launch.
    additions: u64,
    /// The cost of adding two buckets in additions of points to buckets.
    full: f64,
    /// Whether a thread adds all points of a bucket.
    whole: bool,
}

/// Loop iterations beside those of additions, in each kernel that adds points.
const OTHER_ITERATIONS: u32 = 64;

impl CostModel {
    /// The model of a device: an addition of points takes `iterations` loop iterations, and a processor adds points to
    /// buckets `in_lanes` or one by one. `whole` says whether a thread adds all points of a bucket.
    pub(crate) fn new(info: &DeviceInfo, iterations: u64, in_lanes: bool, whole: bool) -> Self {
        let gpu = !info.is_processor();
        let lanes = if gpu { LANES_PER_UNIT } else { CPU_LANES_PER_UNIT };
        let allowed = |limit: u32| u64::from(limit.saturating_sub(OTHER_ITERATIONS)) / (iterations + 1);
        let additions = info.limits.loop_iterations.map_or(u64::MAX, allowed).max(1);
        let lanes = info.parallelism.max(1).saturating_mul(lanes).min(1 << 20);
        Self { lanes, gpu, additions, full: if in_lanes && !gpu { LANES_FULL } else { FULL }, whole }
    }

    /// The division of `pairs` pairs among threads, over a field of `limbs` limbs.
    pub(crate) fn slices(&self, tuning: &Tuning, limbs: usize, pairs: u64) -> Slices {
        let least = if self.gpu { LEAST_SLICE } else { CPU_LEAST_SLICE };
        let most = u64::from(self.lanes) * u64::from(if self.gpu { SLICES_PER_LANE } else { 1 });
        let slice = if limbs as u64 > AFFINE_LIMBS { LONG_SLICE } else { SLICE };
        let few = self.gpu && pairs < FEW_PAIRS * u64::from(self.lanes);
        let count = if few { self.lanes.div_ceil(2) } else { (pairs / slice).clamp(self.lanes.into(), most) as u32 };
        let needed = pairs.div_ceil(self.additions).min(u64::from(MAX_SLICES)) as u32;
        Slices {
            count: tuning.slices.unwrap_or(count).max(needed).clamp(1, MAX_SLICES),
            // No more than all pairs, so that kernels can add both.
            least: u64::from(tuning.min_slice.unwrap_or(least)).clamp(1, self.additions.min(MAX_PAIRS)) as u32,
        }
    }

    /// The levels of batch-affine addition for `pairs` points of `buckets` buckets, over a field of `limbs` limbs.
    pub(crate) fn levels(&self, tuning: &Tuning, limbs: usize, pairs: u64, buckets: u64) -> u32 {
        let pays = self.gpu
            && limbs as u64 >= AFFINE_LIMBS
            && pairs.saturating_mul(limbs as u64) >= AFFINE_PAIRS * AFFINE_LIMBS;
        // Until few points of a bucket are left: fewer where additions take longer.
        let load = (pairs / buckets.max(1)).max(1).ilog2();
        let left = if limbs as u64 > AFFINE_LIMBS { 2 } else { 3 };
        tuning.affine_levels.unwrap_or(if pays { load.saturating_sub(left).min(5) } else { 0 })
    }

    /// The layers that `rows` rows of 2^`log` buckets are reduced by: of all numbers, or of odd ones.
    pub(crate) fn reduction(&self, tuning: &Tuning, rows: u32, log: u32, odd: bool) -> Reduction {
        // A thread adds twice the points of a layer's run, and a few times for each level of a tree.
        let most_layer = self.additions.ilog2().saturating_sub(1).max(1);
        let weigh = rows >= WEIGHED_ROWS && self.additions >= TREE_ADDITIONS;
        let most_tree = u64::from(TREE_LOG).min(self.additions / if weigh { TREE_ADDITIONS } else { 1 }) as u32;
        let running = tuning.aggregation == Aggregation::RunningSums;
        let last = match tuning.log_final_row {
            // Nothing is weighted any more.
            _ if running => log,
            Some(last) => last,
            None if self.gpu => {
                let all = if weigh { WEIGHING_TREES_LOG } else { TREES_LOG };
                all.saturating_sub(rows.max(1).ilog2()).max(TREE_LOG)
            }
            None => 0,
        };
        let (mut layers, mut left) = (Vec::new(), log);
        if running {
            // One run for each thread. Besides, each adds its sum as often as its number says.
            let others = self.additions.saturating_sub(2 * u64::from(MAX_WINDOW) + 3).max(1);
            let own = ((u64::from(rows) << left) / u64::from(self.lanes)).max(1).ilog2().max(LAYER_LOGS[0]);
            let run = tuning.log_reduction_run.unwrap_or(own).min(left).min(others.ilog2().saturating_sub(1));
            layers.push(run);
            left -= run;
        }
        while left > last {
            let own = (u64::from(rows) << left) / u64::from(self.lanes);
            let least = if self.gpu && weigh { WEIGHING_LAYER_LOG } else { LAYER_LOGS[0] };
            let most = if self.gpu { LAYER_LOGS[1] } else { MAX_WINDOW };
            let layer = tuning
                .log_reduction_run
                .unwrap_or(own.max(1).ilog2().clamp(least, most))
                .clamp(1, left.min(most_layer));
            layers.push(layer);
            left -= layer;
        }
        let mut trees = Vec::new();
        // Without any step, buckets become the output.
        while left > 0 || layers.is_empty() && trees.is_empty() {
            trees.push(left.min(most_tree));
            left -= left.min(most_tree);
        }
        Reduction { rows, log, layers, trees, weigh, odd, running }
    }
}

/// The shape of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    /// Scalars of one sum.
    pub(crate) len: usize,
    /// Sums.
    pub(crate) count: usize,
    /// Bits that signed digits have to cover.
    pub(crate) bits: u32,
}

/// The cost of additions of two points in XYZZ form in mixed ones: 12M + 2S to 8M + 2S.
const FULL: f64 = 1.4;

/// The same where points are added to buckets in lanes of AVX-512 IFMA, and buckets to each other one by one.
const LANES_FULL: f64 = 4.5;

/// Time of an addition that waits for nothing else, to that of one where all lanes are busy.
const LONE: f64 = 0.4;

/// The same where trees weigh.
const LONE_WEIGHING: f64 = 0.6;

/// Additions that layers before trees that weigh wait for, in those of a level.
const LAYERED: f64 = 4.0;

/// What a bucket then takes in the reduction to what it takes elsewhere, where pairs are few ([`FEW_PAIRS`]) and where not.
const REDUCED: [f64; 2] = [1.45, 1.2];

/// Time of an addition and of a doubling on the host, in microseconds.
const HOST_MICROSECONDS: [f64; 2] = [0.9, 0.5];

/// Points that layers leave of a row on a processor, about.
const ROW_LEFT: f64 = 3.0;

/// Mixed additions in a microsecond for each unit that runs workgroups.
const GPU_RATE: f64 = 20.0;

/// The same of a processor.
const CPU_RATE: f64 = 1.5;

/// Time of sorting a pair, in mixed additions.
const SORT: f64 = 0.1;

/// Time of a doubling in mixed additions: 6M + 3S to 8M + 2S.
const DOUBLING: f64 = 0.9;

/// Threads of a GPU that do the same at the same time.
const WARP: i32 = 32;

/// Time of a piece's launches beside its additions, in mixed additions of each lane: an estimate, which nobody has
/// measured.
const PIECE: f64 = 8.0;

/// log₂ of the buckets of a digit of `window` bits: of all its sizes. With each base and its `doublings` − 1 first
/// doublings, it counts the odd parts of sizes in each class. Sizes m·2^e with odd m are of class ⌊e / `doublings`⌋.
pub(crate) fn bucket_logs(window: u32, doublings: u32) -> Vec<u32> {
    match doublings {
        0 => vec![window - 1],
        _ => (0..window).step_by(doublings as usize).map(|exponent| (window - 2).saturating_sub(exponent)).collect(),
    }
}

/// Buckets of a digit.
pub(crate) fn buckets(window: u32, doublings: u32) -> u64 {
    bucket_logs(window, doublings).into_iter().map(|log| 1 << log).sum()
}

/// Doublings for each point that is added to a bucket. Threads of a GPU wait for each other, so each takes the time of
/// the thread with the most doublings.
fn later_doublings(precomputed: PrecomputedTable, gpu: bool) -> f64 {
    let PrecomputedTable::Doublings { copies } = precomputed else { return 0.0 };
    let threads = if gpu { WARP } else { 1 };
    // An exponent is e or more with probability 2^-e.
    let any = |exponent: u32| 1.0 - (1.0 - 0.5f64.powi(exponent as i32)).powi(threads);
    (copies..=MAX_WINDOW).map(any).sum()
}

/// The cost of digits of `window` bits in mixed additions, with multiples of each base.
fn cost(model: &CostModel, shape: &Shape, window: u32, precomputed: PrecomputedTable) -> f64 {
    let tables = precomputed.tables();
    let digits = shape.bits.div_ceil(window);
    let windows = f64::from(digits.div_ceil(tables)) * shape.count as f64;
    let pairs = shape.len as f64 * shape.count as f64 * f64::from(digits);
    let buckets = windows * buckets(window, precomputed.doublings()) as f64;
    let rate = if model.gpu { GPU_RATE } else { CPU_RATE };
    let per_unit = if model.gpu { LANES_PER_UNIT } else { CPU_LANES_PER_UNIT };
    let microsecond = rate * f64::from(model.lanes / per_unit).max(1.0);
    let weigh = model.gpu && windows >= WEIGHED_ROWS.into() && precomputed.doublings() == 0;
    let few = pairs < FEW_PAIRS as f64 * f64::from(model.lanes);
    let (lone, reduced) = if weigh { (LONE_WEIGHING, REDUCED[usize::from(!few)]) } else { (LONE, 1.0) };
    // Waits: a few additions for each layer or level, the points of a bucket of the highest digit where one thread adds
    // them, and on the host the doublings.
    let highest = shape.bits - window * digits.saturating_sub(1);
    let longest = if model.whole { shape.len as f64 / 2f64.powi(highest as i32 - 1) } else { 0.0 };
    let is_layered = weigh && windows.log2().floor() + f64::from(window - 1) > WEIGHING_TREES_LOG.into();
    let levels = f64::from(window) + if is_layered { LAYERED } else { 0.0 };
    let waits = if model.gpu { (levels * lone + longest * LONE) * f64::from(model.lanes) } else { 0.0 };
    let left = match (model.gpu, weigh) {
        (false, _) => ROW_LEFT,
        // Two to six points are left, by layers and trees: the other constants were fitted to one.
        (true, true) => 1.0,
        (true, false) => f64::from(window),
    };
    let [addition, doubling] = HOST_MICROSECONDS;
    let host = addition * windows * left + doubling * f64::from(digits.div_ceil(tables) * window);
    let each = 1.0 + SORT + DOUBLING * later_doublings(precomputed, model.gpu);
    each * pairs + 2.0 * model.full * reduced * buckets + waits + host * microsecond
}

/// The cost of one sum in several pieces. Each piece starts from the buckets of those before.
pub(crate) fn cost_in_pieces(
    model: &CostModel,
    shape: &Shape,
    window: u32,
    precomputed: PrecomputedTable,
    pieces: usize,
) -> f64 {
    let windows = shape.bits.div_ceil(window).div_ceil(precomputed.tables());
    let buckets = f64::from(windows) * buckets(window, precomputed.doublings()) as f64;
    let each = model.full / FULL * buckets + PIECE * f64::from(model.lanes);
    cost(model, shape, window, precomputed) + pieces.saturating_sub(1) as f64 * each
}

/// Bits of a digit, that of the least cost first, among those whose buckets stay below `most_buckets`.
pub(crate) fn window_sizes(
    model: &CostModel,
    shape: &Shape,
    precomputed: PrecomputedTable,
    most_buckets: u64,
) -> Vec<u32> {
    let mut sizes: Vec<u32> = fitting(shape, precomputed, most_buckets).collect();
    let cost = |window: u32| cost(model, shape, window, precomputed);
    sizes.sort_by(|a, b| cost(*a).total_cmp(&cost(*b)));
    sizes
}

/// The first of [`window_sizes`].
pub(crate) fn best_window(model: &CostModel, shape: &Shape, precomputed: PrecomputedTable, most_buckets: u64) -> u32 {
    let cost = |window: &u32| cost(model, shape, *window, precomputed);
    let by_cost = |a: &u32, b: &u32| cost(a).total_cmp(&cost(b));
    fitting(shape, precomputed, most_buckets).min_by(by_cost).unwrap_or(MIN_WINDOW)
}

fn fitting(shape: &Shape, precomputed: PrecomputedTable, most_buckets: u64) -> impl Iterator<Item = u32> {
    let Shape { bits, count, .. } = *shape;
    let windows = move |window: u32| u64::from(bits.div_ceil(window).div_ceil(precomputed.tables()));
    let all = move |window: u32| windows(window) * buckets(window, precomputed.doublings());
    (MIN_WINDOW..=MAX_WINDOW).filter(move |window| all(*window).saturating_mul(count as u64) <= most_buckets)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_and_pairs_are_added_in_32_bits() {
        let model = CostModel { lanes: 1, gpu: true, additions: u64::MAX, full: FULL, whole: false };
        for least in [1, u32::MAX] {
            let slices = model.slices(&Tuning::default().min_slice(least), 8, 10);
            assert!(u64::from(slices.least) + MAX_PAIRS <= 1 << 32, "{slices:?}");
        }
    }

    #[test]
    fn fewer_doublings_cost_more_in_the_accumulation() {
        let [gpu, cpu] = [true, false].map(|gpu| {
            let doublings = |copies| later_doublings(PrecomputedTable::Doublings { copies }, gpu);
            (1..=MAX_WINDOW).map(doublings).collect::<Vec<_>>()
        });
        // Of exponents above 0, half are 1, a quarter 2, and so on: one doubling for each point.
        assert!((cpu[0] - 1.0).abs() < 1e-6, "{}", cpu[0]);
        assert!(cpu.iter().zip(&gpu).all(|(own, any)| own <= any), "{cpu:?} {gpu:?}");
        assert!([&cpu, &gpu].into_iter().all(|all| all.is_sorted_by(|a, b| a > b)), "{cpu:?} {gpu:?}");
    }

    #[test]
    fn reductions_weigh_every_bucket() {
        // A row of small integers in place of points.
        let steps: [(&[u32], &[u32]); 9] = [
            (&[], &[3]),
            (&[], &[2, 1]),
            (&[], &[1, 1, 1]),
            (&[1], &[2]),
            (&[1], &[1, 1]),
            (&[3], &[]),
            (&[2, 1], &[]),
            (&[1, 1], &[1]),
            (&[2], &[1]),
        ];
        let kinds = [0u32, 1, 2, 3, 4, 5, 6, 7].map(|kind| [kind & 1 == 1, kind >> 1 & 1 == 1, kind >> 2 == 1]);
        for (&(layers, trees), [odd, running, weigh]) in steps.iter().flat_map(|steps| kinds.map(|kind| (steps, kind)))
        {
            if running && layers.len() != 1 {
                continue;
            }
            let (layers, trees) = (layers.into(), trees.into());
            let reduction = Reduction { rows: 2, log: 3, layers, trees, weigh, odd, running };
            for row in 0..2 {
                let outputs = evaluate(&reduction, &[[1, 20, 300, 4, 5, 6, 7, 8], [9, 8, 7, 6, 5, 4, 3, 2]]);
                let value: u64 = reduction.weights(row).iter().map(|(at, weight)| outputs[*at] << weight).sum();
                let x = [[1, 20, 300, 4, 5, 6, 7, 8], [9, 8, 7, 6, 5, 4, 3, 2u64]][row];
                let weights = (1..).step_by(1 + usize::from(odd));
                let expected: u64 = x.iter().zip(weights).map(|(x, k)| x * k).sum();
                assert_eq!(value, expected, "{reduction:?}");
            }
        }
    }

    /// What the kernels do, on integers.
    fn evaluate(reduction: &Reduction, rows: &[[u64; 8]; 2]) -> Vec<u64> {
        let mut rows: Vec<Vec<u64>> = rows.iter().map(|row| row.to_vec()).collect();
        let sums = |row: &Vec<u64>, log: u32| row.chunks(1 << log).map(|run| run.iter().sum()).collect::<Vec<u64>>();
        let mut weighted = 2;
        let mut layers = reduction.layers.iter();
        if reduction.running {
            let weight = |i: usize| if reduction.odd { 2 * i as u64 + 1 } else { i as u64 + 1 };
            for (row, log) in rows.iter_mut().zip([layers.next().copied().unwrap(); 2]) {
                *row = sums(&row.iter().enumerate().map(|(i, x)| weight(i) * x).collect(), log);
            }
            weighted = 0;
        }
        let weighing = if reduction.weigh { &reduction.trees[..] } else { &[] };
        for &log in layers.chain(weighing) {
            let weighted_sum = |run: &[u64]| run.iter().zip(0..).map(|(x, t)| x * t).sum();
            let weighted_sums = |row: &Vec<u64>| row.chunks(1 << log).map(weighted_sum).collect::<Vec<u64>>();
            let mut next: Vec<Vec<u64>> = rows[..weighted].iter().map(|row| sums(row, log)).collect();
            next.extend(rows[..weighted].iter().map(weighted_sums));
            next.extend(rows[weighted..].iter().map(|row| sums(row, log)));
            rows = next;
        }
        for &log in &reduction.trees[weighing.len()..] {
            let mut next: Vec<Vec<u64>> = rows[..weighted].iter().map(|row| sums(row, log)).collect();
            for bit in 0..log {
                let has = |i: usize| i as u64 >> bit & 1;
                let chosen = |row: &Vec<u64>| row.iter().enumerate().map(|(i, x)| x * has(i)).collect::<Vec<u64>>();
                next.extend(rows[..weighted].iter().map(|row| sums(&chosen(row), log)));
            }
            next.extend(rows[weighted..].iter().map(|row| sums(row, log)));
            rows = next;
        }
        rows.concat()
    }
}
