#![doc = include_str!("../README.md")]
#![no_std]

/// `pointwise`: one operation on two vectors.
pub const POINTWISE: &str = include_str!("../pointwise.wgsl");

/// `group_inverse`: the inverses of the elements of a workgroup's threads, with inversions by the first 32.
pub const GROUP_INVERSE: &str = include_str!("../group_inverse.wgsl");

/// `batch_inverse`: the inverse of each element, with inversions shared by many.
pub const BATCH_INVERSE: &str = include_str!("../batch_inverse.wgsl");

/// `mul_chain`: many multiplications on each element, to measure their rate.
pub const MUL_CHAIN: &str = include_str!("../mul_chain.wgsl");

/// `products`: products of two vectors with the factors in one memory or another, to compare these.
pub const PRODUCTS: &str = include_str!("../products.wgsl");

/// `powers`: the powers of an element.
pub const POWERS: &str = include_str!("../powers.wgsl");

/// Where the lines of a pass lie, before the kernels of a transform.
pub const NTT_LINES: &str = include_str!("../ntt_lines.wgsl");

/// `power`: powers by squaring and multiplying, before the kernels of a transform that take them.
pub const NTT_POWER: &str = include_str!("../ntt_power.wgsl");

/// `ntt_pass`: one pass of a number-theoretic transform, with [`NTT_LINES`] and [`NTT_POWER`].
pub const NTT_PASS: &str = include_str!("../ntt_pass.wgsl");
/// Butterflies of elements that are reduced, before [`NTT_PASS`].
pub const NTT_PLAIN: &str = include_str!("../ntt_plain.wgsl");
/// Butterflies of elements whose sums are not, before [`NTT_PASS`].
pub const NTT_LAZY: &str = include_str!("../ntt_lazy.wgsl");

/// `ntt_halves`: the first round of a transform that is then two, with [`NTT_LINES`].
pub const NTT_HALVES: &str = include_str!("../ntt_halves.wgsl");

/// `ntt_factors`: the factors between two passes by each method, with [`NTT_POWER`].
pub const NTT_FACTORS: &str = include_str!("../ntt_factors.wgsl");

/// `ntt_twiddles`: the factors between two passes.
pub const NTT_TWIDDLES: &str = include_str!("../ntt_twiddles.wgsl");

/// What the kernels of AES share.
pub const AES_HEADER: &str = include_str!("../aes.wgsl");

/// The AES block function on words.
pub const AES_WORDS: &str = include_str!("../aes_words.wgsl");

/// The columns of a round by S-box.
pub const AES_SBOX: &str = include_str!("../aes_sbox.wgsl");

/// The columns of a round by tables.
pub const AES_TABLES: &str = include_str!("../aes_tables.wgsl");

/// The AES block function on bits, in constant time.
pub const AES_BITS: &str = include_str!("../aes_bits.wgsl");

/// Where the blocks of independent messages lie.
pub const AES_MESSAGE: &str = include_str!("../aes_message.wgsl");

/// Tweaks of XTS.
pub const AES_XTS: &str = include_str!("../aes_xts.wgsl");

/// `aes_ctr`: the keystream of counter mode onto one message.
pub const AES_CTR: &str = include_str!("../aes_ctr.wgsl");

/// `aes_blocks`: modes whose blocks do not wait for each other.
pub const AES_BLOCKS: &str = include_str!("../aes_blocks.wgsl");

/// `aes_previous`: what CBC decryption in place needs of the neighbouring workgroup.
pub const AES_PREVIOUS: &str = include_str!("../aes_previous.wgsl");

/// `aes_serial`: modes that go block after block.
pub const AES_SERIAL: &str = include_str!("../aes_serial.wgsl");

/// `ghash`: GHASH of segments of blocks.
pub const GHASH: &str = include_str!("../ghash.wgsl");

/// `move_bytes`: a copy between places of any alignment.
pub const MOVE_BYTES: &str = include_str!("../move_bytes.wgsl");

/// What the threads of a workgroup compute together: `group_scan`.
pub const GROUP: &str = include_str!("../group.wgsl");

/// `scan_sums`: the sum of each tile of a vector of integers.
pub const SCAN_SUMS: &str = include_str!("../scan_sums.wgsl");

/// `scan_tiles`: the exclusive prefix sums of each tile, on from an offset.
pub const SCAN_TILES: &str = include_str!("../scan_tiles.wgsl");

/// `histogram`: how often each digit occurs in each chunk of keys.
pub const HISTOGRAM: &str = include_str!("../histogram.wgsl");

/// `column_sums`: the sums of the columns of a matrix of integers.
pub const COLUMN_SUMS: &str = include_str!("../column_sums.wgsl");

/// `sort_sweep`: one pass of a radix sort whose workgroups wait for each other.
pub const SORT_SWEEP: &str = include_str!("../sort_sweep.wgsl");

/// `sort_count`: the digits of each tile, for a radix sort whose workgroups do not.
pub const SORT_COUNT: &str = include_str!("../sort_count.wgsl");

/// `sort_scatter`: one pass of that sort.
pub const SORT_SCATTER: &str = include_str!("../sort_scatter.wgsl");

/// `segmented_sum`: the sums of runs of equal keys, after a monoid.
pub const SEGMENTED_SUM: &str = include_str!("../segmented_sum.wgsl");

/// Points on a curve, and what all their forms share, after the arithmetic of a field.
pub const CURVE: &str = include_str!("../curve.wgsl");

/// Additions of affine points, after [`CURVE`].
pub const CURVE_AFFINE: &str = include_str!("../curve_affine.wgsl");

/// Points in XYZZ form, after [`CURVE`].
pub const CURVE_XYZZ: &str = include_str!("../curve_xyzz.wgsl");

/// Points in Jacobian form, after [`CURVE`].
pub const CURVE_JACOBIAN: &str = include_str!("../curve_jacobian.wgsl");

/// Between XYZZ and Jacobian form, after both.
pub const CURVE_CONVERT: &str = include_str!("../curve_convert.wgsl");

/// `point_map`: one operation on vectors of points.
pub const POINT_MAP: &str = include_str!("../point_map.wgsl");

/// `point_divide`: one operation that needs a division on vectors of points, with inversions shared by many.
pub const POINT_DIVIDE: &str = include_str!("../point_divide.wgsl");

/// `point_times`: points times small integers.
pub const POINT_TIMES: &str = include_str!("../point_times.wgsl");

/// `point_chain`: many additions for each point, to measure their rate.
pub const POINT_CHAIN: &str = include_str!("../point_chain.wgsl");

/// `map`: one operation on each element of a vector.
pub const MAP: &str = include_str!("../map.wgsl");

/// `exponentiate`: one power of each element.
pub const EXPONENTIATE: &str = include_str!("../exponentiate.wgsl");

/// `reduce`: sums, products and values of polynomials, of chunks of a vector.
pub const REDUCE: &str = include_str!("../reduce.wgsl");

/// `prefix`: prefix sums and products, and division by a linear polynomial.
pub const PREFIX: &str = include_str!("../prefix.wgsl");

/// `bit_reverse`: elements in bit-reversed order.
pub const BIT_REVERSE: &str = include_str!("../bit_reverse.wgsl");

/// `transpose_tiles`: a matrix transposed.
pub const TRANSPOSE: &str = include_str!("../transpose.wgsl");

/// `claim`: who is the last to name each index.
pub const CLAIM: &str = include_str!("../claim.wgsl");

/// `gather`: elements chosen by index, of words of any size.
pub const GATHER: &str = include_str!("../gather.wgsl");

/// `msm_accumulate`: the sums of the points of each bucket, from sorted pairs.
pub const MSM_ACCUMULATE: &str = include_str!("../msm_accumulate.wgsl");

/// `msm_bits`: sums of the elements whose index has a bit.
pub const MSM_BITS: &str = include_str!("../msm_bits.wgsl");

/// `msm_edges`: where neighbours of sorted keys differ.
pub const MSM_EDGES: &str = include_str!("../msm_edges.wgsl");

/// `msm_pairs`: neighbours of sorted points, added.
pub const MSM_PAIRS: &str = include_str!("../msm_pairs.wgsl");

/// `msm_double`: points times a power of two.
pub const MSM_DOUBLE: &str = include_str!("../msm_double.wgsl");

/// `msm_layer`: sums and weighted sums of runs of points.
pub const MSM_LAYER: &str = include_str!("../msm_layer.wgsl");

/// `msm_merge`: what slices of sorted pairs have of the buckets at their ends, joined.
pub const MSM_MERGE: &str = include_str!("../msm_merge.wgsl");

/// `msm_recode`: scalars as signed digits.
pub const MSM_RECODE: &str = include_str!("../msm_recode.wgsl");

/// `msm_running`: weighted sums of runs of buckets.
pub const MSM_RUNNING: &str = include_str!("../msm_running.wgsl");

/// `msm_whole`: the sums of the points of each bucket, each by one thread.
pub const MSM_WHOLE: &str = include_str!("../msm_whole.wgsl");

/// Points of sorted pairs, added to a sum one by one.
pub const MSM_ADD_SINGLE: &str = include_str!("../msm_add_single.wgsl");

/// Points of sorted pairs, added to a sum two by two.
pub const MSM_ADD_DOUBLE: &str = include_str!("../msm_add_double.wgsl");

/// Points of sorted pairs, added to a sum doubled as their exponents say.
pub const MSM_ADD_DOUBLED: &str = include_str!("../msm_add_doubled.wgsl");

/// The pairs of a thread of `msm_whole`: a slice of them, up to borders of buckets.
pub const MSM_SLICE_PAIRS: &str = include_str!("../msm_slice_pairs.wgsl");

/// The pairs of a thread of `msm_whole`: those of one bucket.
pub const MSM_BUCKET_PAIRS: &str = include_str!("../msm_bucket_pairs.wgsl");

/// The challenge of a round of a sumcheck from the sums of the round before.
pub const SUMCHECK_DRAW: &str = include_str!("../sumcheck_draw.wgsl");

/// `group_sum`: a sum over threads of a workgroup.
pub const SUMCHECK_SUM: &str = include_str!("../sumcheck_sum.wgsl");

/// The partial sums of a chunk of pairs in a round of a sumcheck.
pub const SUMCHECK_CHUNK: &str = include_str!("../sumcheck_chunk.wgsl");

/// The values of the tables of a sumcheck at its last challenge.
pub const SUMCHECK_VALUES: &str = include_str!("../sumcheck_values.wgsl");

/// `sumcheck_tail`: the last rounds of a sumcheck by one workgroup, and the values of its tables.
pub const SUMCHECK_TAIL: &str = include_str!("../sumcheck_tail.wgsl");

/// `sumcheck_finish`: the last challenge of a sumcheck and the values of its tables.
pub const SUMCHECK_FINISH: &str = include_str!("../sumcheck_finish.wgsl");

/// `sumcheck_round`: one round of a sumcheck, with the folding of the round before.
pub const SUMCHECK_ROUND: &str = include_str!("../sumcheck_round.wgsl");

/// `sumcheck_eq`: the tables of eq for groups of coordinates.
pub const SUMCHECK_EQ: &str = include_str!("../sumcheck_eq.wgsl");

/// `sumcheck_outer`: the table of eq from those of two groups of coordinates.
pub const SUMCHECK_OUTER: &str = include_str!("../sumcheck_outer.wgsl");

/// `sumcheck_fold`: a multilinear table with one variable bound.
pub const SUMCHECK_FOLD: &str = include_str!("../sumcheck_fold.wgsl");

/// `mod_run`: a list of steps, most of them multiplications, modulo primes known at run time.
pub const MOD_RUN: &str = include_str!("../mod_run.wgsl");

/// `mod_symbols`: Jacobi symbols for odd moduli known at run time.
pub const MOD_SYMBOLS: &str = include_str!("../mod_symbols.wgsl");

/// A machine that computes roots in the steps of a program, after the arithmetic of a prime field.
pub const SQRT: &str = include_str!("../sqrt.wgsl");

/// `sqrt_roots`: what a program makes of each element.
pub const SQRT_ROOTS: &str = include_str!("../sqrt_roots.wgsl");

/// `sqrt_warp`: roots by the 32 threads of a warp together.
pub const SQRT_WARP: &str = include_str!("../sqrt_warp.wgsl");

/// `sqrt_points`: points of a curve from their compressed encodings.
pub const SQRT_POINTS: &str = include_str!("../sqrt_points.wgsl");

/// `sqrt_subgroup`: whether points lie in the subgroup.
pub const SQRT_SUBGROUP: &str = include_str!("../sqrt_subgroup.wgsl");

/// `sqrt_multiple`: multiples of points by one scalar.
pub const SQRT_MULTIPLE: &str = include_str!("../sqrt_multiple.wgsl");

/// `sqrt_frobenius`: an endomorphism of points over a quadratic extension.
pub const SQRT_FROBENIUS: &str = include_str!("../sqrt_frobenius.wgsl");

/// Every kernel: the name of its entry, and its source. Tests launch each, so a new one stands here too.
pub const KERNELS: &[(&str, &str)] = &[
    ("aes_blocks", AES_BLOCKS),
    ("aes_previous", AES_PREVIOUS),
    ("aes_ctr", AES_CTR),
    ("aes_serial", AES_SERIAL),
    ("batch_inverse", BATCH_INVERSE),
    ("bit_reverse", BIT_REVERSE),
    ("claim", CLAIM),
    ("column_sums", COLUMN_SUMS),
    ("exponentiate", EXPONENTIATE),
    ("gather", GATHER),
    ("ghash", GHASH),
    ("histogram", HISTOGRAM),
    ("map", MAP),
    ("mod_run", MOD_RUN),
    ("mod_symbols", MOD_SYMBOLS),
    ("move_bytes", MOVE_BYTES),
    ("msm_accumulate", MSM_ACCUMULATE),
    ("msm_bits", MSM_BITS),
    ("msm_double", MSM_DOUBLE),
    ("msm_edges", MSM_EDGES),
    ("msm_layer", MSM_LAYER),
    ("msm_merge", MSM_MERGE),
    ("msm_pairs", MSM_PAIRS),
    ("msm_recode", MSM_RECODE),
    ("msm_running", MSM_RUNNING),
    ("msm_whole", MSM_WHOLE),
    ("mul_chain", MUL_CHAIN),
    ("ntt_factors", NTT_FACTORS),
    ("ntt_halves", NTT_HALVES),
    ("ntt_pass", NTT_PASS),
    ("ntt_twiddles", NTT_TWIDDLES),
    ("point_chain", POINT_CHAIN),
    ("point_divide", POINT_DIVIDE),
    ("point_map", POINT_MAP),
    ("point_times", POINT_TIMES),
    ("pointwise", POINTWISE),
    ("powers", POWERS),
    ("prefix", PREFIX),
    ("products", PRODUCTS),
    ("reduce", REDUCE),
    ("scan_sums", SCAN_SUMS),
    ("scan_tiles", SCAN_TILES),
    ("segmented_sum", SEGMENTED_SUM),
    ("sort_count", SORT_COUNT),
    ("sort_scatter", SORT_SCATTER),
    ("sort_sweep", SORT_SWEEP),
    ("sqrt_frobenius", SQRT_FROBENIUS),
    ("sqrt_multiple", SQRT_MULTIPLE),
    ("sqrt_points", SQRT_POINTS),
    ("sqrt_roots", SQRT_ROOTS),
    ("sqrt_subgroup", SQRT_SUBGROUP),
    ("sqrt_warp", SQRT_WARP),
    ("sumcheck_eq", SUMCHECK_EQ),
    ("sumcheck_finish", SUMCHECK_FINISH),
    ("sumcheck_fold", SUMCHECK_FOLD),
    ("sumcheck_outer", SUMCHECK_OUTER),
    ("sumcheck_round", SUMCHECK_ROUND),
    ("sumcheck_tail", SUMCHECK_TAIL),
    ("transpose_tiles", TRANSPOSE),
];

#[cfg(test)]
mod tests {
    extern crate std;

    use std::{fs, string::String};

    use super::*;

    /// The name of the first function after `@compute`.
    fn entry(source: &str) -> Option<&str> {
        let (_, rest) = source.split_once("@compute")?;
        let (_, rest) = rest.split_once("fn ")?;
        rest.split_once('(').map(|(name, _)| name)
    }

    #[test]
    fn every_kernel_is_listed_under_its_entry() {
        for (name, source) in KERNELS {
            assert_eq!(entry(source), Some(*name));
            assert_eq!(source.matches("@compute").count(), 1, "{name}");
        }
        for file in fs::read_dir(env!("CARGO_MANIFEST_DIR")).unwrap() {
            let path = file.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "wgsl") {
                let text: String = fs::read_to_string(&path).unwrap();
                let listed = KERNELS.iter().any(|(_, source)| *source == text);
                assert_eq!(listed, entry(&text).is_some(), "{}", path.display());
            }
        }
    }
}
