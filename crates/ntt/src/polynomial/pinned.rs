//! Low-degree extensions of matrices in pinned host memory: a block of columns is extended while the next arrives.

use std::ops::Range;

use ark_ff::FftField;
use evariste_backend::{Buffer, Element, Error as DeviceError, HostBuffer, Secrecy, View, ViewMut};
use evariste_field::{DeviceField, Mont};

use super::{LowDegreeExtension, MAX_LOG_COSETS};
use crate::{
    error::{Error, Result},
    layout::Direction,
    order::Order,
    transform::{PassBuffers, RowLengths, Run, whole_elements},
};

/// Numbers of blocks of columns in which a matrix may arrive, the best first: the work on one is not overlapped with a
/// transfer.
const BLOCKS: [usize; 4] = [16, 8, 4, 2];

/// Least bytes of a row of such a block, as each row of a copy takes time of its own. On an H200, 2^20 rows of 1 KiB
/// were extended and committed to in 30.1 ms by blocks of 256 bytes, and in 36.4 by blocks of 128, whose copies are a
/// third slower beside kernels. Blocks that do not start at a multiple of 256 bytes took 32 to 36 ms.
const MIN_ROW_BYTES: usize = 256;

impl<F: DeviceField + FftField> LowDegreeExtension<F> {
    /// Extends the columns of a matrix in pinned host memory, as [`LowDegreeExtension::extend_into`] does, in
    /// bit-reversed order. `host` holds elements in the device's form ([`Element::encode`]). The matrix arrives in
    /// blocks of neighbouring columns, and the device extends each while the next arrives.
    ///
    /// `extended` is called when the work on a block is queued, with the range of its columns and a view of `out`. It
    /// may queue more work on these columns; later ones may not be there yet. Returns the host memory, with unspecified
    /// contents, when the device has the matrix. Several matrices, and runs, arrive as one block.
    ///
    /// ```
    /// # fn main() -> Result<(), evariste_ntt::Error> {
    /// use ark_ff::FftField;
    /// use evariste_backend::{Device, Element, Secrecy, Transfer};
    /// use evariste_field::{Mont, small::BabyBear};
    /// use evariste_ntt::{Error, LowDegreeExtension};
    ///
    /// let device = Device::best()?;
    /// let extension = LowDegreeExtension::<BabyBear>::new(&device, 3, 1)?.columns(4);
    /// let mut host = device.host_buffer(8 * 4 * 4, Transfer::Upload, Secrecy::Public)?;
    /// Mont::<BabyBear>::encode(&[BabyBear::from(5); 8 * 4], &mut host);
    /// let mut out = device.alloc::<Mont<BabyBear>>(16 * 4)?;
    /// let mut columns = 0;
    /// extension.extend_pinned(host, BabyBear::GENERATOR, &mut out, |block, _| {
    ///     columns += block.len();
    ///     Ok::<_, Error>(())
    /// })?;
    /// assert_eq!((columns, out.to_vec()?), (4, vec![BabyBear::from(5); 16 * 4]));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of [`LowDegreeExtension::extend_into`], and what `extended` returns. Besides, [`Error::Device`] if `host`
    /// is no whole number of elements, belongs to another device, or is secret while `out` is public, and without room
    /// for the matrix on the device. The host memory is dropped then.
    pub fn extend_pinned<'a, E: From<Error>>(
        &self,
        host: HostBuffer,
        generator: F,
        out: impl Into<ViewMut<'a, Mont<F>>>,
        mut extended: impl FnMut(Range<usize>, View<'_, Mont<F>>) -> Result<(), E>,
    ) -> Result<HostBuffer, E> {
        let (mut out, len) = (out.into(), whole_elements::<F>(&host)?);
        let device = self.small.device();
        let mut values = device.alloc_with::<Mont<F>>(len, out.secrecy()).map_err(Error::from)?;
        self.expect_out(self.expect(values.as_view(), generator)?, values.as_view(), &out)?;
        let transfers = device.queue().map_err(Error::from)?;
        let Some(columns) = self.columns_of_blocks(len) else {
            let uploading = transfers.write_pinned(&mut values, host).map_err(Error::from)?;
            self.extend_into(&values, generator, Order::BitReversed, out.reborrow())?;
            extended(0..self.columns, out.as_view())?;
            return Ok(uploading.wait().map_err(Error::from)?);
        };
        let mut block = self.block(columns, generator, out.secrecy())?;
        let (arrived, uploading) = transfers
            .write_pinned_columns(&mut values, host, self.small.size(), self.columns / columns)
            .map_err(Error::from)?;
        for (event, start) in arrived.iter().zip((0..).step_by(columns)) {
            self.small.queue().wait_for(event).map_err(Error::from)?;
            // SAFETY: the columns that are read have arrived.
            let values = unsafe { values.as_view().assume_ordered() };
            block.extend(values.view(start..).map_err(Error::from)?, out.view_mut(start..).map_err(Error::from)?)?;
            extended(start..start + columns, out.as_view())?;
        }
        Ok(uploading.wait().map_err(Error::from)?)
    }

    /// Extends neighbouring columns of one matrix, as [`LowDegreeExtension::extend_into`] does all of them, in
    /// bit-reversed order. `values` and `out` are whole matrices; other columns of `out` stay as they are. Scratch of
    /// twice the size of the columns lies in device memory in between.
    ///
    /// # Errors
    /// - Those of [`LowDegreeExtension::extend_into`].
    /// - [`Error::TooLarge`] for a blow-up above 16.
    /// - [`Error::Device`] for several matrices, and for columns that are not there.
    pub fn extend_columns_into<'a, 'b>(
        &self,
        values: impl Into<View<'a, Mont<F>>>,
        columns: Range<usize>,
        generator: F,
        out: impl Into<ViewMut<'b, Mont<F>>>,
    ) -> Result<()> {
        let (values, mut out) = (values.into(), out.into());
        self.expect_out(self.expect(values, generator)?, values, &out)?;
        values.expect_len("a matrix", self.small.size().saturating_mul(self.columns))?;
        if self.log_blowup > MAX_LOG_COSETS {
            let (expected, actual) = (1 << MAX_LOG_COSETS, 1 << self.log_blowup);
            return Err(Error::TooLarge { expected, actual });
        }
        let last = columns.start.max(columns.end);
        if last > self.columns {
            return Err(DeviceError::length("the columns of a matrix", self.columns, last).into());
        }
        if columns.is_empty() {
            return Ok(());
        }
        let (values, out) = (values.view(columns.start..)?, out.view_mut(columns.start..)?);
        self.block(columns.len(), generator, out.secrecy())?.extend(values, out)
    }

    /// The columns of the blocks in which a matrix of `len` elements should arrive.
    fn columns_of_blocks(&self, len: usize) -> Option<usize> {
        let one = self.small.size().saturating_mul(self.columns);
        let is_one = len == one && self.log_blowup <= MAX_LOG_COSETS;
        if !is_one || !self.small.device().info().features.queues {
            return None;
        }
        let counts = BLOCKS.into_iter().filter(|count| self.columns.is_multiple_of(*count));
        counts.map(|count| self.columns / count).find(|columns| columns * Mont::<F>::BYTES >= MIN_ROW_BYTES)
    }

    /// Makes ready to extend blocks of so many columns.
    fn block(&self, columns: usize, generator: F, secrecy: Secrecy) -> Result<Block<'_, F>> {
        let device = self.small.device();
        let coefficients = device.alloc_with(self.small.size() * columns, secrecy)?;
        let inverse = self.small.transform().columns(columns).beside(self.columns);
        let inverse = inverse.ready(coefficients.as_view(), Direction::Inverse, Some(0))?;
        let forward = |i: u32| {
            let coset = self.small.coset(self.coset(generator, i)?).columns(columns).beside(self.columns);
            let run = coset.output(Order::BitReversed).ready(
                coefficients.as_view(),
                Direction::Forward,
                Some(self.log_blowup),
            )?;
            Ok(run.map(|run| run.in_rows(RowLengths { source: columns, data: self.columns })))
        };
        let forward = (0..1 << self.log_blowup).map(forward).collect::<Result<Option<Vec<_>>>>()?.unwrap_or_default();
        let inverse = inverse.map(|run| run.in_rows(RowLengths { source: self.columns, data: columns }));
        let scratch = match &inverse {
            Some(inverse) => inverse.scratch(coefficients.len(), secrecy)?,
            None => None,
        };
        Ok(Block { plan: self, inverse, forward, coefficients, scratch })
    }
}

/// What it takes to extend blocks of columns one after the other.
struct Block<'a, F: DeviceField> {
    plan: &'a LowDegreeExtension<F>,
    inverse: Option<Run<'a, F>>,
    /// To each coset.
    forward: Vec<Run<'a, F>>,
    coefficients: Buffer<Mont<F>>,
    scratch: Option<Buffer<Mont<F>>>,
}

impl<F: DeviceField + FftField> Block<'_, F> {
    /// Extends the columns with which the rows of both views start.
    fn extend(&mut self, values: View<'_, Mont<F>>, mut out: ViewMut<'_, Mont<F>>) -> Result<()> {
        let Self { plan, inverse, forward, coefficients, scratch } = self;
        let len = coefficients.len();
        let unit = plan.small.size() * plan.columns;
        let Some(inverse) = inverse else {
            // Of constants.
            let values = values.view(..len)?;
            return (0..1usize << plan.log_blowup)
                .try_for_each(|i| Ok(plan.small.queue().copy(values, out.view_mut(i * unit..i * unit + len)?)?));
        };
        let (data, scratch) = (coefficients.as_view_mut(), scratch.as_mut().map(Buffer::as_view_mut));
        inverse.launch_all(len, PassBuffers { source: Some(values), data, scratch })?;
        forward.iter().enumerate().try_for_each(|(i, run)| {
            let (source, data) = (Some(coefficients.as_view()), out.view_mut(i * unit..)?);
            run.launch_all(len, PassBuffers { source, data, scratch: None })
        })
    }
}
