use std::{fmt, marker::PhantomData, sync::Arc};

use evariste_backend::{Buffer, Device, View};
use evariste_field::Mont;
use evariste_ntt::{LowDegreeExtension, Ntt, Order, Result};
use p3_dft::{Layout, Radix2DitParallel, TwoAdicSubgroupDft};
use p3_matrix::{
    Matrix,
    bitrev::{BitReversalPerm, BitReversedMatrixView},
    dense::{RowMajorMatrix, RowMajorMatrixViewMut},
};

use crate::value::{DeviceValue, Values, to_device};

/// Elements below which transforms stay on the CPU by default.
pub(crate) const MIN_ELEMENTS: usize = 1 << 14;

/// Plonky3's transforms over a device of Evariste.
///
/// The default is the device that `EVARISTE_DEVICE` names, else the best one that is there
/// ([`Device::best`]). Matrices of fewer than 2^14 elements stay with Plonky3's [`Radix2DitParallel`]
/// ([`DeviceDft::min_elements`]). So does what the device refuses or fails to do: the traits have no errors, so that
/// the log has a warning then, and results are the same.
///
/// Plans stay with the device ([`Device::cached_plan`]). Its memory for them is public: it is not zeroed.
pub struct DeviceDft<P> {
    device: Device,
    min_elements: usize,
    host: Radix2DitParallel<P>,
    value: PhantomData<fn() -> P>,
}

impl<P: DeviceValue> DeviceDft<P> {
    /// Makes transforms for a device.
    pub fn new(device: &Device) -> Self {
        Self {
            device: device.clone(),
            min_elements: MIN_ELEMENTS,
            host: Radix2DitParallel::default(),
            value: PhantomData,
        }
    }

    /// Sets the elements of a matrix from which on the device transforms it.
    #[must_use]
    pub fn min_elements(mut self, count: usize) -> Self {
        self.min_elements = count;
        self
    }

    /// Returns the device.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The device's result, unless it is to stay on the CPU or the device fails.
    fn on_device(
        &self,
        mat: &RowMajorMatrix<P>,
        transform: impl FnOnce() -> Result<RowMajorMatrix<P>>,
    ) -> Option<RowMajorMatrix<P>> {
        let elements = mat.values.len();
        if elements < self.min_elements.max(1) {
            return None;
        }
        let failed = |error: &evariste_ntt::Error| {
            log::warn!("{} did not transform {elements} elements, the CPU does: {error}", self.device.info().id);
        };
        transform().inspect_err(failed).ok()
    }

    /// Transforms columns, natural order to natural or bit-reversed order.
    fn transformed(&self, mat: &RowMajorMatrix<P>, order: Order, shift: P, inverse: bool) -> Result<RowMajorMatrix<P>> {
        let log_n = log_height(mat)?;
        let ntt: Arc<Ntt<P::Device>> = self.device.cached_plan(&log_n.to_string(), || Ntt::new(&self.device, log_n))?;
        let mut data = self.device.upload::<Values<P>>(&mat.values)?;
        let transform = ntt.coset(to_device(shift)).columns(mat.width());
        match inverse {
            false => transform.output(order).forward(data.as_view_mut().flattened())?,
            true => transform.output(order).inverse(data.as_view_mut().flattened())?,
        }
        self.read(&data, mat.width())
    }

    /// Extends columns to a coset, in bit-reversed order.
    fn extended(&self, mat: &RowMajorMatrix<P>, added_bits: usize, shift: P) -> Result<RowMajorMatrix<P>> {
        self.read(&self.extended_there(mat, added_bits, shift)?, mat.width())
    }

    /// The same, left on the device.
    pub(crate) fn extended_there(
        &self,
        mat: &RowMajorMatrix<P>,
        added_bits: usize,
        shift: P,
    ) -> Result<Buffer<Values<P>>> {
        let log_n = log_height(mat)?;
        // Before anything is uploaded.
        let plan = self.extension(log_n, added_bits)?;
        let values = self.device.upload::<Values<P>>(&mat.values)?;
        self.extended_by(&plan, values.as_view().flattened(), [mat.width(), added_bits], shift)
    }

    /// Extends columns that are on the device to a coset there, in bit-reversed order.
    pub(crate) fn extended_from(
        &self,
        values: View<'_, Mont<P::Device>>,
        width: usize,
        added_bits: usize,
        shift: P,
    ) -> Result<Buffer<Values<P>>> {
        let plan = self.extension((values.len() / width).ilog2(), added_bits)?;
        self.extended_by(&plan, values, [width, added_bits], shift)
    }

    fn extension(&self, log_n: u32, added_bits: usize) -> Result<Arc<LowDegreeExtension<P::Device>>> {
        let added = u32::try_from(added_bits).unwrap_or(u32::MAX);
        let key = format!("{log_n}+{added}");
        self.device.cached_plan(&key, || LowDegreeExtension::new(&self.device, log_n, added))
    }

    fn extended_by(
        &self,
        plan: &LowDegreeExtension<P::Device>,
        values: View<'_, Mont<P::Device>>,
        [width, added_bits]: [usize; 2],
        shift: P,
    ) -> Result<Buffer<Values<P>>> {
        // The plan has checked that this is no overflow.
        let mut out = self.device.alloc::<Values<P>>(values.len().saturating_mul(1 << added_bits))?;
        let to = out.as_view_mut().flattened();
        plan.clone().columns(width).extend_into(values, to_device(shift), Order::BitReversed, to)?;
        Ok(out)
    }

    fn read(&self, buffer: &Buffer<Values<P>>, width: usize) -> Result<RowMajorMatrix<P>> {
        Ok(RowMajorMatrix::new(buffer.to_vec()?, width))
    }
}

fn log_height<P: DeviceValue>(mat: &RowMajorMatrix<P>) -> Result<u32> {
    match mat.height() {
        height if height.is_power_of_two() => Ok(height.ilog2()),
        actual => Err(evariste_ntt::Error::NotPowerOfTwo { actual }),
    }
}

/// The matrix of which these are the rows in bit-reversed order.
fn reversed<P: DeviceValue>(mat: RowMajorMatrix<P>) -> BitReversedMatrixView<RowMajorMatrix<P>> {
    BitReversalPerm::new_view(mat)
}

impl<P: DeviceValue> TwoAdicSubgroupDft<P> for DeviceDft<P> {
    type Evaluations = BitReversedMatrixView<RowMajorMatrix<P>>;

    fn dft_batch(&self, mat: RowMajorMatrix<P>) -> Self::Evaluations {
        self.coset_dft_batch(mat, P::ONE)
    }

    fn coset_dft_batch(&self, mat: RowMajorMatrix<P>, shift: P) -> Self::Evaluations {
        match self.on_device(&mat, || self.transformed(&mat, Order::BitReversed, shift, false)) {
            Some(done) => reversed(done),
            None => self.host.coset_dft_batch(mat, shift),
        }
    }

    fn idft_batch(&self, mat: RowMajorMatrix<P>) -> RowMajorMatrix<P> {
        self.coset_idft_batch(mat, P::ONE)
    }

    fn coset_idft_batch(&self, mat: RowMajorMatrix<P>, shift: P) -> RowMajorMatrix<P> {
        match self.on_device(&mat, || self.transformed(&mat, Order::Natural, shift, true)) {
            Some(done) => done,
            None => self.host.coset_idft_batch(mat, shift),
        }
    }

    fn coset_lde_batch(&self, mat: RowMajorMatrix<P>, added_bits: usize, shift: P) -> Self::Evaluations {
        match self.on_device(&mat, || self.extended(&mat, added_bits, shift)) {
            Some(done) => reversed(done),
            None => self.host.coset_lde_batch(mat, added_bits, shift),
        }
    }

    fn coset_lde_batch_with_transform<T>(
        &self,
        mat: RowMajorMatrix<P>,
        added_bits: usize,
        shift: P,
        transform: T,
    ) -> Self::Evaluations
    where
        T: FnOnce(&mut RowMajorMatrixViewMut<'_, P>, Layout),
    {
        // The coefficients are changed on the host.
        self.host.coset_lde_batch_with_transform(mat, added_bits, shift, transform)
    }
}

impl<P: DeviceValue> Default for DeviceDft<P> {
    /// Takes the device that `EVARISTE_DEVICE` names, else the best one, and the CPU if there is none of that name.
    fn default() -> Self {
        let device = Device::best().unwrap_or_else(|error| {
            log::warn!("transforms stay on the CPU: {error}");
            Device::cpu()
        });
        Self::new(&device)
    }
}

impl<P: DeviceValue> Clone for DeviceDft<P> {
    fn clone(&self) -> Self {
        let Self { device, min_elements, host, .. } = self;
        Self { device: device.clone(), min_elements: *min_elements, host: host.clone(), value: PhantomData }
    }
}

impl<P: DeviceValue> fmt::Debug for DeviceDft<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeviceDft")
            .field("device", &self.device)
            .field("min_elements", &self.min_elements)
            .finish_non_exhaustive()
    }
}
