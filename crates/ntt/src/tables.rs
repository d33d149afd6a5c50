//! The tables of a plan: roots, twiddles between passes, powers of coset generators.

use std::{any::type_name, sync::Arc};

use ark_ff::FftField;
use evariste_backend::{
    Buffer, Queue, ViewMut,
    author::{Arg, Kernel, Ready},
};
use evariste_field::{DeviceField, Mont, Vector, shoup_constants, source};

use crate::{
    config::Twiddles,
    error::{Error, Result},
    layout::{Direction, Layout},
    pass::twiddle,
    reference::root_of_unity,
};

/// PassTwiddles between the passes of one direction.
pub(crate) struct PassTwiddles<F: DeviceField> {
    pub(crate) table: Buffer<Mont<F>>,
    /// When they are there, and the plan's roots too.
    pub(crate) ready: Ready,
}

/// Powers of a coset's generator, as `scale` tables of the kernel.
#[derive(Clone)]
pub(crate) struct Coset<F: DeviceField> {
    pub(crate) generator: F,
    pub(crate) direction: Direction,
    pub(crate) powers: Arc<Buffer<Mont<F>>>,
    pub(crate) ready: Ready,
}

pub(crate) fn inverse_of_n<F: DeviceField>(log_n: u32) -> Result<F> {
    let inverse = F::from(2u8).pow([u64::from(log_n)]).inverse();
    inverse.ok_or(Error::TwoAdicity { expected: 0, actual: log_n })
}

pub(crate) fn unity<F: FftField>(log_n: u32) -> Result<F> {
    root_of_unity(log_n).ok_or_else(|| match log_n > F::TWO_ADICITY {
        true => Error::TwoAdicity { expected: F::TWO_ADICITY, actual: log_n },
        false => Error::NoRoot { field: type_name::<F>() },
    })
}

pub(crate) fn inverted<F: FftField>(x: F) -> F {
    x.inverse().unwrap_or(F::ONE)
}

/// The roots within passes as known constants, forward then inverse, and n⁻¹. Behind them stand further constants of
/// some kernels. They are the roots as factors of [`source::wgsl_lazy`]. If other roots are powers of two, they are
/// both directions' roots all around the circle.
pub(crate) fn roots<F: DeviceField + FftField>(layout: &Layout) -> Result<Vec<u32>> {
    let root = unity::<F>(layout.log_roots())?;
    let roots = |count| {
        let powers = move |base: F| std::iter::successors(Some(F::ONE), move |x| Some(*x * base)).take(count);
        powers(root).chain(powers(inverted(root)))
    };
    let inverse_of_n = inverse_of_n::<F>(layout.log_n)?;
    let mut limbs = shoup_constants(roots(layout.roots()).chain([inverse_of_n]));
    let mut append = |roots: &mut dyn Iterator<Item = F>| {
        for root in roots {
            let at = limbs.len();
            limbs.resize(at + F::LIMBS, 0);
            root.store(&mut limbs[at..]);
        }
    };
    if layout.partially_reduced {
        append(&mut roots(layout.roots()).map(|root| root * factor_of_parts::<F>(layout)));
    } else if layout.root_shift.is_some() {
        append(&mut roots(2 * layout.roots()));
    }
    Ok(limbs)
}

/// The factor of constants in partially reduced products, or 1 without these.
fn factor_of_parts<F: DeviceField>(layout: &Layout) -> F {
    source::wgsl_lazy_factor().filter(|_| layout.partially_reduced).unwrap_or(F::ONE)
}

/// Elements of the table that [`roots`] makes.
pub(crate) fn roots_len(layout: &Layout) -> usize {
    let more = if layout.partially_reduced { 2 } else { 4 * usize::from(layout.root_shift.is_some()) };
    3 * (2 * layout.roots() + 1) + more * layout.roots()
}

/// The twiddles between the passes of one direction. Those of the inverse's first pass include n⁻¹.
pub(crate) fn pass_twiddles<F: DeviceField + FftField>(
    queue: &Queue,
    layout: &Layout,
    vector: &Vector<F>,
    direction: Direction,
) -> Result<PassTwiddles<F>> {
    let inverse = direction == Direction::Inverse;
    let (starts, len) = layout.twiddles();
    let device = queue.device();
    let mut table = device.alloc(len)?;
    let fill =
        |params: &twiddle::Params, quotients, powers: &Buffer<Mont<F>>, table: &mut Buffer<Mont<F>>| -> Result<()> {
            let kernel = Kernel::new(device, twiddle::spec::<F>(quotients))?;
            let groups = u64::from(params.len).div_ceil(u64::from(kernel.spec().threads));
            let args = &mut [Arg::read(powers), Arg::write(table)];
            // SAFETY: exponents are below n, so inside both tables; the places of this pass lie inside `table`.
            Ok(unsafe { kernel.launch(queue, groups, params, args) }?)
        };
    let between = &starts[..starts.len().saturating_sub(1)];
    for (i, &(start, left)) in between.iter().enumerate() {
        let root = unity::<F>(layout.log_n)?;
        let root = if inverse { inverted(root) } else { root };
        let factor = if inverse && i == 0 { inverse_of_n(layout.log_n)? } else { F::ONE };
        let split = layout.log_split();
        let of_parts = factor_of_parts::<F>(layout);
        let two_level = |powers: ViewMut<'_, Mont<F>>, of_low: F, of_high: F| -> Result<()> {
            let (low, high) = powers.split_at(1 << split)?;
            vector.powers(root, of_low, low)?;
            Ok(vector.powers(root.pow([1 << split]), factor * of_high, high)?)
        };
        match layout.twiddles {
            // Of the kernel that multiplies them.
            _ if i < layout.halvings => two_level(table.view_mut(start..start + layout.powers())?, F::ONE, F::ONE)?,
            Twiddles::Stored | Twiddles::StoredWithQuotients => {
                let quotients = layout.twiddles == Twiddles::StoredWithQuotients;
                let mut powers = device.alloc(layout.powers())?;
                two_level(powers.as_view_mut(), F::ONE, of_parts)?;
                let rows = layout.log_rows[i];
                let len = 1 + (((1u32 << rows) - 1) << left);
                if !quotients {
                    let end = start + len as usize;
                    queue.write(table.view_mut(end..=end)?, &[inverted(factor)])?;
                }
                let (at, shift) = (start as u32, layout.log_n - left - rows);
                let params = twiddle::Params { len, at, log_columns: left, shift, split };
                fill(&params, quotients, &powers, &mut table)?;
            }
            Twiddles::HalfStored => {
                let mut powers = device.alloc(layout.powers())?;
                two_level(powers.as_view_mut(), F::ONE, of_parts)?;
                // One row, of all j below half of the order of what is left to transform.
                let log_columns = left + layout.log_rows[i] - 1;
                let (at, shift) = (start as u32, layout.log_n - log_columns - 1);
                let params = twiddle::Params { len: 1 + (1 << log_columns), at, log_columns, shift, split };
                fill(&params, false, &powers, &mut table)?;
            }
            Twiddles::TwoLevel => {
                two_level(table.view_mut(start..start + layout.powers())?, of_parts, of_parts)?;
            }
            Twiddles::TwoPowers => {
                let done = layout.log_n - left - layout.log_rows[i];
                queue.write(table.view_mut(start..start + 2)?, &[factor, root.pow([1 << done])])?;
            }
            Twiddles::BinaryPowers | Twiddles::OnTheFly => {
                let count = if layout.twiddles == Twiddles::OnTheFly { 1 } else { layout.log_n as usize + 1 };
                let powers = std::iter::successors(Some(root), |power| Some(power.square())).take(count);
                let powers: Vec<F> = powers.collect();
                queue.write(table.view_mut(start..start + 1 + count)?, &[&[factor], &powers[..]].concat())?;
            }
        }
    }
    Ok(PassTwiddles { table, ready: Ready::behind(queue)? })
}
