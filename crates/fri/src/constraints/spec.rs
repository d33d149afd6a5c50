//! The declaration of the kernel.

use evariste_backend::author::{Binding, BindingType, CpuArg, KernelSpec, loop_iterations};
use evariste_field::source::{self, binding_type, iterations};

use super::cpu::CpuRows;
use crate::{
    field::FriField,
    kernels::{Base, CODE, ConstraintParams, THREADS, declare},
};

/// Slots of a thread in workgroup memory: 16 KiB of a workgroup, which every device has.
pub(crate) const fn constraint_slots<F: FriField>() -> u32 {
    let slots = (16 << 10) / (source::tile_bytes::<Base<F>>(1) * THREADS);
    if slots == 0 { 1 } else { slots }
}

/// `fri_constraints`.
pub(crate) fn spec<F: FriField>() -> KernelSpec {
    let (word, base) = (binding_type::<F>(), binding_type::<Base<F>>());
    let bindings = [
        Binding::read(CODE, BindingType::Vec4),
        Binding::read("inputs", base),
        Binding::read("weights", word),
        Binding::read("selectors", base),
        Binding::read("matrix", base),
        Binding::write("spilled", base),
        Binding::write("out", word),
    ];
    let body = |params: &ConstraintParams, [code, inputs, weights, selectors, matrix, _, out]: &mut [CpuArg<'_>; 7]| {
        let rows = CpuRows {
            params,
            code: code.read(),
            inputs: inputs.read(),
            weights: weights.read(),
            selectors: selectors.read(),
            matrix: matrix.read(),
            slots: (constraint_slots::<F>() + params.spilled) as usize,
        };
        rows.run::<F>(out.write());
    };
    let slots = constraint_slots::<F>();
    let spec = KernelSpec::new("fri_constraints", source::label::<F>(), bindings, body, |_| String::new());
    let more = format!("var<workgroup> slots: array<Point, {}>;\n", slots * THREADS);
    let sources = [evariste_cuda::fri::CONSTRAINTS, evariste_shaders::fri::CONSTRAINTS];
    let mul = iterations::mul::<Base<F>>();
    // Two selectors as operands, their product, and the weight's.
    let turn = loop_iterations(2, 0) + mul * (3 + F::extension_degree());
    declare::<F>(spec, bindings.to_vec(), String::new(), more, sources)
        .constants(&[("SLOTS", slots)])
        .shared_bytes(source::tile_bytes::<Base<F>>(slots * THREADS))
        .iterations(move |params: &ConstraintParams| loop_iterations(params.instructions.into(), turn) + mul * 8)
}
