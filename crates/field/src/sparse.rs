use std::{fmt, sync::Arc};

use evariste_backend::{
    Buffer, Element, Error, Queue, Result, Secrecy, View, ViewMut,
    author::{Arg, Binding, BindingType, CpuArg, Kernel, KernelSpec, Language, Ready},
    parallel, params,
};
use evariste_primitives::checked_len;
use rayon::slice::ParallelSliceMut;

use self::layout::{LONGEST, Layout, WINDOW, codes};
use crate::{
    element::Mont,
    field::DeviceField,
    native::Native,
    source::{self, binding_type, iterations},
};

mod layout;

/// Threads of a workgroup.
const THREADS: u32 = 256;

/// A sparse matrix on a device, for products with vectors.
///
/// The matrix is public, and so is what depends on it alone: which elements a product reads, and how long it takes.
/// Vectors may be secret.
///
/// ```
/// # fn main() -> Result<(), evariste_backend::Error> {
/// use ark_bls12_381::Fr;
/// use evariste_backend::Device;
/// use evariste_field::{Mont, SparseMatrix};
///
/// let device = Device::best()?;
/// // The rows (0, 2, 1), (0, 0, 0).
/// let entries = [(0, 1, Fr::from(2)), (0, 2, Fr::from(1))];
/// let matrix = SparseMatrix::new(&device, 2, 3, entries)?;
/// let vector = device.upload::<Mont<Fr>>(&[10, 20, 30].map(Fr::from))?;
/// let mut out = device.alloc(2)?;
/// matrix.multiply(&vector, &mut out)?;
/// assert_eq!(out.to_vec()?, [70, 0].map(Fr::from));
/// # Ok(())
/// # }
/// ```
///
/// # Algorithm
///
/// The matrix lies in compressed rows (CSR). A thread adds the entries of one row. The host changes the rows once, so
/// that neighbouring threads take equally long:
///
/// - A row of more than 32 entries becomes a row of sums over 32 of them each. Sums are rows of an earlier launch. A row
///   of a million entries takes three launches before the last one. A matrix without long rows takes one launch.
/// - Of 1024 neighbouring rows, those with equally many entries come together.
///
/// The time is thus proportional to rows and entries, however long the longest row is. An entry takes a multiplication
/// and an addition. An entry with the coefficient 1 or −1 takes the addition alone.
///
/// Coefficients lie in a table, each different one once. An entry is a column and a place in the table, of 8 bytes. A
/// coefficient of 256 bits beside the column would make it 36. With the element of the vector, an entry then reads 40
/// bytes in place of 68. The table of an R1CS is short and stays in the cache.
///
/// Merge-based products (Merrill and Garland, "Merge-based parallel sparse matrix-vector multiplication", SC 2016)
/// divide rows at each product. The matrix is known here, so its rows are divided when it is made.
pub struct SparseMatrix<F: DeviceField> {
    queue: Queue,
    stored: Arc<Stored<F>>,
}

/// What lies on the device, and the kernel.
struct Stored<F: DeviceField> {
    kernel: Kernel<Params>,
    lines: Buffer<u64>,
    entries: Buffer<u64>,
    coefficients: Buffer<Mont<F>>,
    /// How many sums each launch before the last one computes.
    levels: Vec<usize>,
    rows: usize,
    columns: usize,
    count: usize,
    ready: Ready,
}

params! {
    struct Params {
        rows: u32,
    }
}

impl<F: DeviceField> SparseMatrix<F> {
    /// Uploads a matrix and makes its kernel ready. An entry is a row, a column and a value. Entries may come in any
    /// order; those at the same place are added. Entries of value 0 are left out.
    ///
    /// # Errors
    /// - [`Error::OutOfRange`] if an entry has a row or a column that the matrix does not have.
    /// - [`Error::TooLarge`] for more than [`MAX_LEN`](evariste_primitives::MAX_LEN) rows, columns or entries. Also if
    ///   the loop over 32 entries exceeds the iterations that the device allows.
    /// - [`Error::OutOfMemory`] if the device has no room for the matrix.
    /// - [`Error::Compile`] if the compiler or the driver refuses the kernel.
    /// - [`Error::Unavailable`] if the compiler is missing and the disk cache has not the kernel.
    /// - [`Error::Driver`] if a call of the driver fails.
    /// - [`Error::Lost`] if the device is lost.
    pub fn new(
        queue: impl Into<Queue>,
        rows: usize,
        columns: usize,
        entries: impl IntoIterator<Item = (u32, u32, F)>,
    ) -> Result<Self> {
        let queue = queue.into();
        let device = queue.device();
        checked_len(device, "rows of a sparse matrix", rows)?;
        checked_len(device, "columns of a sparse matrix", columns)?;
        let place = |(row, column, value): (u32, u32, F)| {
            expect_index("the row of an entry", row, rows)?;
            expect_index("the column of an entry", column, columns)?;
            Ok((row, column, value))
        };
        let entries = merged(entries.into_iter().map(place).collect::<Result<_>>()?);
        checked_len(device, "entries of a sparse matrix", entries.len())?;
        let kernel = Kernel::new(device, spec::<F>())?;
        kernel.expect_fits(&Params::default())?;

        let mut lengths = vec![0; rows];
        entries.iter().for_each(|(row, ..)| lengths[*row as usize] += 1);
        let layout = Layout::new(lengths, entries.iter().map(|(_, column, value)| (*column, *value)));
        let [lines, pairs] = [&layout.lines, &layout.entries].map(|pairs| queue.upload_with(pairs, Secrecy::Public));
        let stored = Stored {
            kernel,
            lines: lines?,
            entries: pairs?,
            coefficients: queue.upload_with(&layout.coefficients, Secrecy::Public)?,
            levels: layout.levels,
            rows,
            columns,
            count: entries.len(),
            ready: Ready::behind(&queue)?,
        };
        Ok(Self { queue, stored: Arc::new(stored) })
    }

    /// Returns the same matrix for work on `queue`.
    #[must_use]
    pub fn on(&self, queue: &Queue) -> Self {
        Self { queue: queue.clone(), stored: Arc::clone(&self.stored) }
    }

    /// Returns the kernel, for tools that compile it ahead.
    #[doc(hidden)]
    pub fn kernels() -> Vec<KernelSpec> {
        vec![spec::<F>()]
    }

    /// Returns the bytes of device memory that a matrix and a product take at most. `entries` counts places whose value
    /// is not 0, and `coefficients` different values other than 1 and −1.
    pub fn required_bytes(rows: usize, entries: usize, coefficients: usize) -> u64 {
        // Three sums take the place of 95 entries or sums at least, as the last of them may be shorter.
        let [rows, entries, coefficients, sums] =
            [rows, entries, coefficients, entries / (LONGEST - 2)].map(|count| count as u64);
        let pairs = (rows + 1 + sums).saturating_add(entries + sums).saturating_mul(u64::BYTES as u64);
        pairs.saturating_add((coefficients + sums).saturating_mul(Mont::<F>::BYTES as u64))
    }

    /// Returns the number of rows: elements of a product.
    pub fn rows(&self) -> usize {
        self.stored.rows
    }

    /// Returns the number of columns: elements of a vector that the matrix multiplies.
    pub fn columns(&self) -> usize {
        self.stored.columns
    }

    /// Returns the number of places whose value is not 0.
    pub fn entries(&self) -> usize {
        self.stored.count
    }

    /// Sets `out` to the product of the matrix and a vector: `out[i] = Σ m[i, j] · vector[j]`. Returns when the work is
    /// queued.
    ///
    /// # Errors
    /// - [`Error::Length`] unless `vector` has an element for each column, and `out` one for each row.
    /// - [`Error::WrongDevice`] if a view or the queue is of another device.
    /// - [`Error::SecretInput`] if `vector` is secret and `out` is not.
    /// - [`Error::OutOfMemory`] if there is no room for the sums of long rows.
    /// - [`Error::Driver`] if a call of the driver fails.
    /// - [`Error::Lost`] if the device is lost.
    ///
    /// After [`Error::Driver`] and [`Error::Lost`] `out` may have some of the product. After any other error nothing has
    /// been written.
    pub fn multiply<'a>(
        &self,
        vector: impl Into<View<'a, Mont<F>>>,
        out: impl Into<ViewMut<'a, Mont<F>>>,
    ) -> Result<()> {
        let (vector, out, stored) = (vector.into(), out.into(), &*self.stored);
        vector.expect_len("the vector of a sparse product", stored.columns)?;
        out.expect_len("the output of a sparse product", stored.rows)?;
        let device = self.queue.expect_device(stored.kernel.device())?.device();
        device.expect_same("the vector of a sparse product", vector.device())?;
        device.expect_same("the output of a sparse product", out.device())?;
        vector.secrecy().expect_to(out.secrecy(), "sparse product", ["the vector", "the output"])?;
        stored.ready.wait(&self.queue)?;
        let secrecy = Secrecy::of([vector.secrecy(), out.secrecy()]);
        let mut sums = device.alloc_with(stored.levels.iter().sum(), secrecy)?;
        let mut known = 0;
        for &count in &stored.levels {
            let (before, rest) = sums.as_view_mut().split_at(known)?;
            stored.launch(&self.queue, known, vector, before.as_view(), rest.into_part(..count)?)?;
            known += count;
        }
        stored.launch(&self.queue, known, vector, sums.as_view(), out)
    }
}

impl<F: DeviceField> Stored<F> {
    /// Computes the rows from line `first` on, one for each element of `out`.
    fn launch(
        &self,
        queue: &Queue,
        first: usize,
        vector: View<'_, Mont<F>>,
        sums: View<'_, Mont<F>>,
        out: ViewMut<'_, Mont<F>>,
    ) -> Result<()> {
        let rows = out.len();
        let groups = (rows as u64).div_ceil(THREADS.into());
        let args = &mut [
            Arg::read(self.lines.view(first..=first + rows)?),
            Arg::read(&self.entries),
            Arg::read(&self.coefficients),
            Arg::read(vector),
            Arg::read(sums),
            Arg::write(out),
        ];
        // SAFETY: threads touch lines up to `rows`. Their places are below `rows`, and their entries inside the buffer.
        // Columns were checked against the length of the vector, and codes are made with the table. Lines from `first`
        // on add sums of lines before it alone.
        unsafe { self.kernel.launch(queue, groups, &Params { rows: rows as u32 }, args) }
    }
}

impl<F: DeviceField> fmt::Debug for SparseMatrix<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Stored { rows, columns, count, .. } = &*self.stored;
        f.debug_struct("SparseMatrix")
            .field("rows", rows)
            .field("columns", columns)
            .field("entries", count)
            .finish_non_exhaustive()
    }
}

fn expect_index(what: &'static str, index: u32, len: usize) -> Result<()> {
    match (index as usize) < len {
        true => Ok(()),
        false => Err(Error::OutOfRange { what, offset: index.into(), count: 1, len: len as u64 }),
    }
}

/// The entries by rows and columns, with the sum of those at one place, where it is not 0.
fn merged<F: DeviceField>(mut entries: Vec<(u32, u32, F)>) -> Vec<(u32, u32, F)> {
    entries.par_sort_unstable_by_key(|(row, column, _)| (*row, *column));
    entries.dedup_by(|next, kept| {
        let is_same = (next.0, next.1) == (kept.0, kept.1);
        if is_same {
            kept.2 += next.2;
        }
        is_same
    });
    entries.retain(|(.., value)| !value.is_zero());
    entries
}

fn spec<F: DeviceField>() -> KernelSpec {
    let (pair, word) = (BindingType::Vec2, binding_type::<F>());
    let bindings = [
        Binding::read("lines", pair),
        Binding::read("entries", pair),
        Binding::read("coefficients", word),
        Binding::read("x", word),
        Binding::read("sums", word),
        Binding::write("out", word),
    ];
    let source = move |language| match language {
        Language::Cuda => source::cuda::<F>() + evariste_cuda::vector::SPARSE_PRODUCT,
        Language::Wgsl { int64 } => {
            let accessors: String = bindings[2..].iter().map(source::wgsl_accessors::<F>).collect();
            [&source::wgsl::<F>(int64), &accessors, evariste_shaders::vector::SPARSE_PRODUCT].concat()
        }
    };
    let iterations = iterations::repeat(LONGEST as u64, iterations::mul::<F>());
    KernelSpec::new("sparse_product", source::label::<F>(), bindings, run::<F>, source)
        .threads(THREADS)
        .constants(codes::ALL)
        .iterations(move |_: &Params| iterations)
}

/// The body for the CPU.
fn run<F: DeviceField>(params: &Params, [lines, entries, coefficients, x, sums, out]: &mut [CpuArg<'_>; 6]) {
    let rows = params.rows as usize;
    let (lines, entries) = (&lines.read::<[u32; 2]>()[..=rows], entries.read::<[u32; 2]>());
    let (coefficients, x, sums) = (coefficients.read::<u32>(), x.read::<u32>(), sums.read::<u32>());
    let at = |limbs: &[u32], i: u32| Native::<F>::load(&limbs[i as usize * F::LIMBS..]);
    parallel::chunks(&mut out.write::<u32>()[..rows * F::LIMBS], WINDOW * F::LIMBS, &|window, out| {
        let first = window * WINDOW;
        for line in lines[first..=first + out.len() / F::LIMBS].windows(2) {
            let ([place, start], [_, end]) = (line[0], line[1]);
            let mut sum = Native::<F>::ZERO;
            for [index, code] in &entries[start as usize..end as usize] {
                match *code {
                    codes::CODE_ONE => sum += at(x, *index),
                    codes::CODE_MINUS_ONE => sum -= at(x, *index),
                    codes::CODE_SUM => sum += at(sums, *index),
                    code => sum += at(x, *index) * at(coefficients, code - codes::CODE_FIRST),
                }
            }
            // A window's rows have its places.
            sum.store(&mut out[(place as usize - first) * F::LIMBS..]);
        }
    });
}

#[cfg(test)]
mod tests {
    use ark_bls12_381::Fr;
    use ark_ff::{AdditiveGroup, UniformRand};
    use ark_std::rand::Rng;
    use evariste_backend::Device;

    use super::*;
    use crate::reference;

    /// Random entries: each row gets some, with coefficients of all kinds.
    fn random(rows: u32, columns: u32, each: usize) -> Vec<(u32, u32, Fr)> {
        let mut rng = ark_std::test_rng();
        let mut entries = Vec::new();
        for _ in 0..rows as usize * each {
            let value = match rng.gen_range(0..4) {
                0 => Fr::from(1),
                1 => -Fr::from(1),
                2 => Fr::from(rng.gen_range(0u64..9)),
                _ => Fr::rand(&mut rng),
            };
            entries.push((rng.gen_range(0..rows), rng.gen_range(0..columns), value));
        }
        entries
    }

    fn check(rows: usize, columns: usize, entries: &[(u32, u32, Fr)]) -> SparseMatrix<Fr> {
        let device = Device::cpu();
        let mut rng = ark_std::test_rng();
        let vector: Vec<Fr> = (0..columns).map(|_| Fr::rand(&mut rng)).collect();
        let matrix = SparseMatrix::new(&device, rows, columns, entries.iter().copied()).unwrap();
        let mut out = device.upload::<Mont<Fr>>(&vec![Fr::from(9); rows]).unwrap();
        matrix.multiply(&device.upload(&vector).unwrap(), &mut out).unwrap();
        assert_eq!(out.to_vec().unwrap(), reference::sparse_product(rows, entries, &vector));
        assert_eq!((matrix.rows(), matrix.columns()), (rows, columns));
        matrix
    }

    #[test]
    fn products_match_the_reference_on_the_cpu() {
        for (rows, columns) in [(0, 0), (0, 5), (5, 0), (5, 5)] {
            assert_eq!(check(rows, columns, &[]).entries(), 0);
        }
        check(1, 1, &[(0, 0, -Fr::from(1))]);
        check(3000, 2000, &random(3000, 2000, 3));
        // All in one column, all in one row, and one row of several levels among short ones.
        check(3000, 5, &(0..2999).map(|row| (row, 3, Fr::from(row))).collect::<Vec<_>>());
        check(5, 3000, &(0..2999).map(|column| (3, column, Fr::from(column))).collect::<Vec<_>>());
        let mut entries = random(3000, 70_000, 2);
        entries.extend((0..70_000).map(|column| (1500, column, Fr::from(1))));
        let matrix = check(3000, 70_000, &entries);
        assert_eq!(matrix.stored.levels.len(), 3);
    }

    #[test]
    fn entries_at_one_place_are_added() {
        let [one, two] = [1, 2].map(Fr::from);
        let entries = [(1, 1, two), (0, 1, one), (1, 1, -two), (1, 0, Fr::ZERO), (0, 1, one), (0, 0, -one)];
        let matrix = check(2, 2, &entries);
        assert_eq!(matrix.entries(), 2);
    }

    #[test]
    fn entries_outside_are_refused() {
        let of = |entry| SparseMatrix::new(&Device::cpu(), 2, 3, [(0, 0, Fr::from(1)), entry]).unwrap_err();
        let error = |what, offset, len| Error::OutOfRange { what, offset, count: 1, len };
        assert_eq!(of((2, 0, Fr::from(1))), error("the row of an entry", 2, 2));
        assert_eq!(of((1, u32::MAX, Fr::ZERO)), error("the column of an entry", u32::MAX.into(), 3));
        let refused = SparseMatrix::<Fr>::new(&Device::cpu(), (1 << 31) + 1, 3, []).unwrap_err();
        assert!(matches!(refused, Error::TooLarge { expected: 0x8000_0000, actual: 0x8000_0001, .. }), "{refused}");
    }

    /// But for an eighth and some words, by which the CPU rounds allocations up.
    #[test]
    fn matrices_take_no_more_memory_than_they_say() {
        for (rows, columns, each) in [(1000, 500, 3), (10, 3000, 2000)] {
            let device = Device::another_cpu();
            let vector = device.zeros::<Mont<Fr>>(columns as usize).unwrap();
            let mut out = device.alloc(rows as usize).unwrap();
            let before = device.stats().bytes_live;
            let matrix = SparseMatrix::new(&device, rows as usize, columns as usize, random(rows, columns, each));
            let matrix = matrix.unwrap();
            matrix.multiply(&vector, &mut out).unwrap();
            let taken = device.stats().bytes_peak - before;
            let coefficients = matrix.stored.coefficients.len();
            let required = SparseMatrix::<Fr>::required_bytes(rows as usize, matrix.entries(), coefficients);
            assert!(taken <= required + required / 8 + 5 * 16, "{taken} of {required}");
            assert!(taken > required / 2, "{taken} of {required}");
        }
    }
}
