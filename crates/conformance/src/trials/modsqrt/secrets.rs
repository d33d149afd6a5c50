//! Roots of secrets modulo primes that are known at run time.

use evariste::modsqrt::{BoxedUint, Jacobi, JacobiConfig, ModSqrt, ModSqrtConfig};

use crate::secrecy::Operation;

pub(super) const OPERATIONS: &[Operation] = &[
    Operation::slow("modular_roots", 4, |p| {
        let primes = [59u64.wrapping_neg(), 189u64.wrapping_neg()].map(BoxedUint::from);
        let plan = ModSqrt::with_primes(&p.device, &primes, ModSqrtConfig::default())?;
        let (indices, values) = (p.keys(100)?, p.keys(200)?);
        let (mut out, mut mask) = (p.output_keys(200)?, p.output_keys(100)?);
        p.watch(|| plan.sqrt_indexed(&indices, &values, &mut out, &mut mask))
    }),
    Operation::new("modular_symbols", 3, |p| {
        let plan = Jacobi::with_moduli(&p.device, &[15u64, 21].map(BoxedUint::from), JacobiConfig::default())?;
        let (indices, values, mut out) = (p.keys(100)?, p.keys(200)?, p.output_keys(100)?);
        p.watch(|| plan.jacobi_indexed(&indices, &values, &mut out))
    }),
];
