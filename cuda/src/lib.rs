#![doc = include_str!("../README.md")]
#![no_std]

/// The type of a prime field's elements, `F`, after the constants of the field; instructions with carries.
pub const FIELD_WORDS: &str = concat!(include_str!("../field.cuh"), include_str!("../field_carries.cuh"));

/// Prime field arithmetic: `f_add`, `f_sub`, `f_mul` and more, after [`FIELD_WORDS`] and what the crate for fields renders of sums
/// and products by instructions with carries.
pub const FIELD: &str = concat!(
    include_str!("../field_even_odd.cuh"),
    include_str!("../field_lazy.cuh"),
    include_str!("../field_shoup.cuh"),
    include_str!("../field_sums.cuh"),
    include_str!("../field_goldilocks.cuh"),
    include_str!("../field_portable.cuh"),
);

/// `f_inverse` in a prime field, after its arithmetic.
pub const INVERSE: &str = include_str!("../inverse.cuh");

/// Arithmetic of an extension of a field, with the same names, after the arithmetic of the base and constants.
pub const EXTENSION: &str = include_str!("../extension.cuh");

/// `pointwise`: one operation on two vectors.
pub const POINTWISE: &str = include_str!("../pointwise.cu");

/// `group_inverse`: the inverses of the elements of a workgroup's threads, with inversions by the first 32.
pub const GROUP_INVERSE: &str = include_str!("../group_inverse.cuh");

/// `batch_inverse`: the inverse of each element, with inversions shared by many.
pub const BATCH_INVERSE: &str = include_str!("../batch_inverse.cu");

/// `mul_chain`: many multiplications on each element, to measure their rate.
pub const MUL_CHAIN: &str = include_str!("../mul_chain.cu");

/// `products`: products of two vectors with the factors in one memory or another, to compare these.
pub const PRODUCTS: &str = include_str!("../products.cu");

/// `powers`: the powers of an element.
pub const POWERS: &str = include_str!("../powers.cu");

/// Where the lines of a pass lie, before the kernels of a transform.
pub const NTT_LINES: &str = include_str!("../ntt_lines.cuh");

/// `power`: powers by squaring and multiplying, before the kernels of a transform that take them.
pub const NTT_POWER: &str = include_str!("../ntt_power.cuh");

/// `ntt_pass`: one pass of a number-theoretic transform, after [`NTT_LINES`].
pub const NTT_PASS: &str = include_str!("../ntt_pass.cu");

/// `ntt_halves`: the first round of a transform that is then two, after [`NTT_LINES`].
pub const NTT_HALVES: &str = include_str!("../ntt_halves.cu");

/// `ntt_factors`: the factors between two passes by each method, after [`NTT_POWER`].
pub const NTT_FACTORS: &str = include_str!("../ntt_factors.cu");

/// `ntt_twiddles`: the factors between two passes.
pub const NTT_TWIDDLES: &str = include_str!("../ntt_twiddles.cu");

/// The AES block function by S-box or tables, and what the kernels of AES share.
pub const AES_HEADER: &str = include_str!("../aes.cuh");

/// The AES block function on bits, in constant time.
pub const AES_BITS: &str = include_str!("../aes_bits.cuh");

/// Where the blocks of independent messages lie.
pub const AES_MESSAGE: &str = include_str!("../aes_message.cuh");

/// Tweaks of XTS.
pub const AES_XTS: &str = include_str!("../aes_xts.cuh");

/// `aes_ctr`: the keystream of counter mode onto one message.
pub const AES_CTR: &str = include_str!("../aes_ctr.cu");

/// `aes_blocks`: modes whose blocks do not wait for each other.
pub const AES_BLOCKS: &str = include_str!("../aes_blocks.cu");

/// `aes_previous`: what CBC decryption in place needs of the neighbouring workgroup.
pub const AES_PREVIOUS: &str = include_str!("../aes_previous.cu");

/// `aes_serial`: modes that go block after block.
pub const AES_SERIAL: &str = include_str!("../aes_serial.cu");

/// `ghash`: GHASH of segments of blocks.
pub const GHASH: &str = include_str!("../ghash.cu");

/// `move_bytes`: a copy between places of any alignment.
pub const MOVE_BYTES: &str = include_str!("../move_bytes.cu");

/// What the threads of a workgroup compute together: `group_scan`.
pub const GROUP: &str = include_str!("../group.cuh");

/// `scan_sums`: the sum of each tile of a vector of integers.
pub const SCAN_SUMS: &str = include_str!("../scan_sums.cu");

/// `scan_tiles`: the exclusive prefix sums of each tile, on from an offset.
pub const SCAN_TILES: &str = include_str!("../scan_tiles.cu");

/// `histogram`: how often each digit occurs in each chunk of keys.
pub const HISTOGRAM: &str = include_str!("../histogram.cu");

/// `column_sums`: the sums of the columns of a matrix of integers.
pub const COLUMN_SUMS: &str = include_str!("../column_sums.cu");

/// `sort_sweep`: one pass of a radix sort whose workgroups wait for each other.
pub const SORT_SWEEP: &str = include_str!("../sort_sweep.cu");

/// `sort_count`: the digits of each tile, for a radix sort whose workgroups do not.
pub const SORT_COUNT: &str = include_str!("../sort_count.cu");

/// `sort_scatter`: one pass of that sort.
pub const SORT_SCATTER: &str = include_str!("../sort_scatter.cu");

/// `segmented_sum`: the sums of runs of equal keys, after a monoid.
pub const SEGMENTED_SUM: &str = include_str!("../segmented_sum.cu");

/// Arithmetic of points on a curve: `Affine`, `Xyzz`, `Jacobian`, after the arithmetic of a field.
pub const CURVE: &str = include_str!("../curve.cuh");

/// `point_map`: one operation on vectors of points.
pub const POINT_MAP: &str = include_str!("../point_map.cu");

/// `point_divide`: one operation that needs a division on vectors of points, with inversions shared by many.
pub const POINT_DIVIDE: &str = include_str!("../point_divide.cu");

/// `point_times`: points times small integers.
pub const POINT_TIMES: &str = include_str!("../point_times.cu");

/// `point_chain`: many additions for each point, to measure their rate.
pub const POINT_CHAIN: &str = include_str!("../point_chain.cu");

/// `map`: one operation on each element of a vector.
pub const MAP: &str = include_str!("../map.cu");

/// `exponentiate`: one power of each element.
pub const EXPONENTIATE: &str = include_str!("../exponentiate.cu");

/// `reduce`: sums, products and values of polynomials, of chunks of a vector.
pub const REDUCE: &str = include_str!("../reduce.cu");

/// `prefix`: prefix sums and products, and division by a linear polynomial.
pub const PREFIX: &str = include_str!("../prefix.cu");

/// `bit_reverse`: elements in bit-reversed order.
pub const BIT_REVERSE: &str = include_str!("../bit_reverse.cu");

/// `transpose_tiles`: a matrix transposed.
pub const TRANSPOSE: &str = include_str!("../transpose.cu");

/// `claim`: who is the last to name each index.
pub const CLAIM: &str = include_str!("../claim.cu");

/// `gather`: elements chosen by index, of words of any size.
pub const GATHER: &str = include_str!("../gather.cu");

/// Sums of points for multi-scalar multiplication, after [`CURVE`].
pub const MSM_HEADER: &str = include_str!("../msm.cuh");

/// `msm_accumulate`: the sums of the points of each bucket, from sorted pairs.
pub const MSM_ACCUMULATE: &str = include_str!("../msm_accumulate.cu");

/// `msm_bits`: sums of the elements whose index has a bit.
pub const MSM_BITS: &str = include_str!("../msm_bits.cu");

/// `msm_edges`: where neighbours of sorted keys differ.
pub const MSM_EDGES: &str = include_str!("../msm_edges.cu");

/// `msm_pairs`: neighbours of sorted points, added.
pub const MSM_PAIRS: &str = include_str!("../msm_pairs.cu");

/// `msm_double`: points times a power of two.
pub const MSM_DOUBLE: &str = include_str!("../msm_double.cu");

/// `msm_layer`: sums and weighted sums of runs of points.
pub const MSM_LAYER: &str = include_str!("../msm_layer.cu");

/// `msm_merge`: what slices of sorted pairs have of the buckets at their ends, joined.
pub const MSM_MERGE: &str = include_str!("../msm_merge.cu");

/// `msm_recode`: scalars as signed digits.
pub const MSM_RECODE: &str = include_str!("../msm_recode.cu");

/// `msm_running`: weighted sums of runs of buckets.
pub const MSM_RUNNING: &str = include_str!("../msm_running.cu");

/// `msm_whole`: the sums of the points of each bucket, each by one thread.
pub const MSM_WHOLE: &str = include_str!("../msm_whole.cu");

/// Other ways of adding points to a sum than one by one, after [`MSM_HEADER`].
pub const MSM_ADD: &str = include_str!("../msm_add.cuh");

/// `group_sum` and `lanes_sum`: sums over threads of a block.
pub const SUMCHECK_SUM: &str = include_str!("../sumcheck_sum.cuh");

/// What the kernels of a sumcheck share.
pub const SUMCHECK_HEADER: &str = include_str!("../sumcheck.cuh");

/// The challenge of a round of a sumcheck from the sums of the round before.
pub const SUMCHECK_DRAW: &str = include_str!("../sumcheck_draw.cuh");

/// The partial sums of a chunk of pairs in a round of a sumcheck.
pub const SUMCHECK_CHUNK: &str = include_str!("../sumcheck_chunk.cuh");

/// The values of the tables of a sumcheck at its last challenge.
pub const SUMCHECK_VALUES: &str = include_str!("../sumcheck_values.cuh");

/// `sumcheck_tail`: the last rounds of a sumcheck by one block, and the values of its tables.
pub const SUMCHECK_TAIL: &str = include_str!("../sumcheck_tail.cu");

/// `sumcheck_finish`: the last challenge of a sumcheck and the values of its tables.
pub const SUMCHECK_FINISH: &str = include_str!("../sumcheck_finish.cu");

/// `sumcheck_round`: one round of a sumcheck, with the folding of the round before.
pub const SUMCHECK_ROUND: &str = include_str!("../sumcheck_round.cu");

/// `sumcheck_eq`: the tables of eq for groups of coordinates.
pub const SUMCHECK_EQ: &str = include_str!("../sumcheck_eq.cu");

/// `sumcheck_outer`: the table of eq from those of two groups of coordinates.
pub const SUMCHECK_OUTER: &str = include_str!("../sumcheck_outer.cu");

/// `sumcheck_fold`: a multilinear table with one variable bound.
pub const SUMCHECK_FOLD: &str = include_str!("../sumcheck_fold.cu");

/// Multiplication modulo odd numbers known at run time, after `LIMBS`, `LANES` and `THREADS`.
pub const MOD: &str =
    concat!(include_str!("../mod.cuh"), include_str!("../field_carries.cuh"), include_str!("../mod_multiply.cuh"));

/// `mod_run`: a list of steps, most of them multiplications, modulo primes known at run time.
pub const MOD_RUN: &str = include_str!("../mod_run.cu");

/// `mod_symbols`: Jacobi symbols for odd moduli known at run time.
pub const MOD_SYMBOLS: &str = include_str!("../mod_symbols.cu");

/// A machine that computes roots in the steps of a program, after the arithmetic of a prime field.
pub const SQRT: &str = include_str!("../sqrt.cuh");

/// `sqrt_roots`: what a program makes of each element.
pub const SQRT_ROOTS: &str = include_str!("../sqrt_roots.cu");

/// `sqrt_warp`: roots by the 32 threads of a warp together.
pub const SQRT_WARP: &str = include_str!("../sqrt_warp.cu");

/// `sqrt_points`: points of a curve from their compressed encodings.
pub const SQRT_POINTS: &str = include_str!("../sqrt_points.cu");

/// `sqrt_subgroup`: whether points lie in the subgroup.
pub const SQRT_SUBGROUP: &str = include_str!("../sqrt_subgroup.cu");

/// `sqrt_multiple`: multiples of points by one scalar.
pub const SQRT_MULTIPLE: &str = include_str!("../sqrt_multiple.cu");

/// `sqrt_frobenius`: an endomorphism of points over a quadratic extension.
pub const SQRT_FROBENIUS: &str = include_str!("../sqrt_frobenius.cu");

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

    use std::{fs, string::String, vec::Vec};

    use super::*;

    /// The names that follow `__global__ void`, behind launch bounds, and what follows them up to the body.
    fn entries(source: &str) -> impl Iterator<Item = (&str, &str)> {
        source.split("__global__ void").skip(1).filter_map(|rest| {
            let rest = match rest.trim_start().strip_prefix("__launch_bounds__") {
                Some(bounds) => bounds.split_once(')')?.1,
                None => rest,
            };
            let (name, rest) = rest.split_once('(')?;
            Some((name.trim(), rest.split_once(" {")?.0))
        })
    }

    #[test]
    fn every_kernel_is_listed_under_its_entry_and_takes_what_is_declared() {
        for (name, source) in KERNELS {
            let found: Vec<(&str, &str)> = entries(source).collect();
            assert!(!found.is_empty() && found.iter().all(|(entry, _)| entry == name), "{name}: {found:?}");
            let declared = |parameters: &str| parameters.starts_with("const Params params, BUFFERS(");
            assert!(found.iter().all(|(_, parameters)| declared(parameters)), "{name} takes {found:?}");
        }
        for file in fs::read_dir(env!("CARGO_MANIFEST_DIR")).unwrap() {
            let path = file.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "cu") {
                let text: String = fs::read_to_string(&path).unwrap();
                assert!(KERNELS.iter().any(|(_, source)| *source == text), "{} is not listed", path.display());
            }
        }
    }
}
