use std::marker::PhantomData;

use evariste_backend::author::{Binding, BindingType, Language};
use evariste_primitives::Monoid;

use crate::{element::Mont, field::DeviceField, source};

/// Addition of field elements, for [`SegmentedSum`](evariste_primitives::SegmentedSum).
///
/// ```
/// # fn main() -> Result<(), evariste_backend::Error> {
/// use ark_bls12_381::Fr;
/// use evariste_backend::Device;
/// use evariste_field::{FieldSum, Mont};
/// use evariste_primitives::SegmentedSum;
///
/// let device = Device::best()?;
/// let keys = device.upload::<u32>(&[0, 0, 2, 2])?;
/// let values = device.upload::<Mont<Fr>>(&[1, 2, 3, 4].map(Fr::from))?;
/// let mut sums = device.alloc(3)?;
/// SegmentedSum::<FieldSum<Fr>>::new(&device)?.reduce(&keys, &values, &mut sums)?;
/// assert_eq!(sums.to_vec()?, [3, 0, 7].map(Fr::from));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct FieldSum<F>(PhantomData<fn() -> F>);

// SAFETY: the text is that of the field, whose elements have LIMBS words; it computes on its arguments.
unsafe impl<F: DeviceField> Monoid for FieldSum<F> {
    type Element = Mont<F>;
    type Value = F;

    fn name() -> String {
        format!("sum over {}", source::label::<F>())
    }

    fn binding_type() -> BindingType {
        source::binding_type::<F>()
    }

    fn source(language: Language, bindings: &[Binding]) -> String {
        match language {
            Language::Cuda => source::cuda::<F>() + "#define M F\n#define m_zero f_zero\n#define m_add f_add\n",
            Language::Wgsl { int64 } => {
                let accessors: String = bindings.iter().map(source::wgsl_accessors::<F>).collect();
                source::wgsl::<F>(int64)
                    + &accessors
                    + "alias M = F;\nfn m_zero() -> M { return f_zero(); }\n\
                       fn m_add(a: M, b: M) -> M { return f_add(a, b); }\n"
            }
        }
    }

    fn iterations() -> u64 {
        0
    }

    fn zero() -> F {
        F::ZERO
    }

    fn add(a: F, b: F) -> F {
        a + b
    }

    fn load(words: &[u32]) -> F {
        F::load(words)
    }

    fn store(value: &F, words: &mut [u32]) {
        value.store(words);
    }
}
