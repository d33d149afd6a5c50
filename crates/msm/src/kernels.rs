//! The kernels of plans.

use evariste_backend::{
    Device,
    author::{KernelSpec, Lazy},
};
use evariste_curve::Points;
use evariste_primitives::RadixSort;

use crate::{
    accumulate::{Accumulate, Parts},
    adding::Adding,
    batch_affine::BatchAffine,
    config::{Accumulation, Aggregation, MsmConfig, Precompute},
    error::Result,
    msm_curve::MsmCurve,
    precompute,
    recode::Recode,
    reduce::{self, Reduce},
    whole_buckets::WholeBuckets,
};

/// The kernels that the plans of a curve share on a device.
#[derive(Debug)]
pub(crate) struct Kernels<C: MsmCurve> {
    pub(crate) recode: Recode<C::ScalarField>,
    pub(crate) sort: RadixSort,
    pub(crate) accumulate: Accumulate<C>,
    pub(crate) reduce: Reduce<C>,
    /// Compiled when a plan may use them.
    batch_affine: Lazy<BatchAffine<C>>,
    parts: [Lazy<Parts<C>>; Adding::ALL.len()],
    /// Of slices, and of buckets.
    whole: [[Lazy<WholeBuckets<C>>; Adding::ALL.len()]; 2],
}

impl<C: MsmCurve> Kernels<C> {
    /// Compiles the kernels of every plan, and `more`, side by side.
    pub(crate) fn new(device: &Device, more: Vec<KernelSpec>) -> Result<Self> {
        let mut kernels = more;
        kernels.push(Recode::<C::ScalarField>::spec());
        kernels.extend(RadixSort::kernels_on(device.info()));
        kernels.extend(Accumulate::<C>::specs());
        kernels.extend(Reduce::<C>::specs());
        let _prepared = device.prepare(&kernels)?;
        Ok(Self {
            recode: Recode::new(device)?,
            sort: RadixSort::new(device)?,
            accumulate: Accumulate::new(device)?,
            reduce: Reduce::new(device)?,
            batch_affine: Lazy::default(),
            parts: Default::default(),
            whole: Default::default(),
        })
    }

    pub(crate) fn batch_affine(&self, device: &Device) -> Result<&BatchAffine<C>> {
        Ok(self.batch_affine.get_or_make(|| {
            let _prepared = device.prepare(&BatchAffine::<C>::specs())?;
            BatchAffine::new(device)
        })?)
    }

    /// The first kernel of a balanced accumulation with another way of adding than that of every plan.
    pub(crate) fn parts(&self, device: &Device, adding: Adding) -> Result<Option<&Parts<C>>> {
        match adding {
            Adding::Single => Ok(None),
            _ => Ok(Some(self.parts[adding.index()].get_or_make(|| Parts::new(device, adding))?)),
        }
    }

    pub(crate) fn whole(&self, device: &Device, per_bucket: bool, adding: Adding) -> Result<&WholeBuckets<C>> {
        let kernel = &self.whole[usize::from(per_bucket)][adding.index()];
        Ok(kernel.get_or_make(|| WholeBuckets::new(device, per_bucket, adding))?)
    }

    /// Compiles the kernels of an accumulation beside those of every plan.
    pub(crate) fn prepare(&self, device: &Device, accumulation: Accumulation, adding: Adding) -> Result<()> {
        match accumulation {
            Accumulation::Balanced => self.parts(device, adding).map(drop),
            Accumulation::WholeBuckets => self.whole(device, false, adding).map(drop),
            Accumulation::PerBucket => self.whole(device, true, adding).map(drop),
        }
    }
}

/// The kernels that a configuration asks for beside those of every plan.
pub(crate) fn extra_kernels<C: MsmCurve>(config: &MsmConfig) -> Vec<KernelSpec> {
    let mut kernels = Vec::new();
    if config.precompute != Precompute::None {
        kernels.extend([precompute::spec::<C>(), Points::<C>::normalise_xyzz_kernel()]);
    }
    if config.tuning.aggregation == Aggregation::RunningSums {
        kernels.push(reduce::running_spec::<C>());
    }
    kernels
}
