//! The kernels of provers.

use std::collections::{HashMap, HashSet};

use evariste_backend::author::{KernelSpec, Language};
use evariste_field::{
    Expression,
    small::{BabyBear, BabyBear4, KoalaBear, KoalaBear4},
};

use super::{Fr, gate};
use crate::Sumcheck;

/// That kernel has the expression once for each point. Zero-checks of degree d evaluate later rounds at d points.
#[test]
fn rounds_at_many_points_are_not_compiled_into_one_kernel() {
    let tails = |degree: u32| {
        let kernels = Sumcheck::<Fr>::kernels(&Expression::column(0).pow(degree));
        kernels.iter().filter(|kernel| kernel.name == "sumcheck_tail").count()
    };
    assert!(tails(8) > 0);
    assert_eq!([14, 32, 128].map(tails), [0; 3]);
}

/// A list of kernels in which two have one name leaves one of them out.
#[test]
fn names_and_variants_tell_kernels_apart() {
    fn texts(specs: &[KernelSpec]) -> HashMap<(&'static str, String), Vec<[String; 3]>> {
        let mut texts: HashMap<_, Vec<[String; 3]>> = HashMap::new();
        for spec in specs {
            let wgsl = |int64| spec.source(Language::Wgsl { int64 });
            let text = [spec.cuda_source(), wgsl(true), wgsl(false)];
            let known = texts.entry((spec.name, spec.variant.clone())).or_default();
            if !known.contains(&text) {
                known.push(text);
            }
        }
        texts
    }
    let few = [gate(), Expression::column(0), Expression::column(0).pow(7) * Expression::column(1) + 2];
    let many: Expression = (0..40u32).map(Expression::column).sum();
    let mut specs = Vec::new();
    for expression in few.iter().chain([&many]) {
        specs.extend(Sumcheck::<Fr>::all_kernels(expression));
        specs.extend(Sumcheck::<ark_bls12_381::Fq>::all_kernels(expression));
        specs.extend(Sumcheck::<BabyBear4, BabyBear>::all_kernels(expression));
        specs.extend(Sumcheck::<BabyBear4>::all_kernels(expression));
        specs.extend(Sumcheck::<KoalaBear4, KoalaBear>::all_kernels(expression));
    }
    for ((name, variant), texts) in texts(&specs) {
        assert_eq!(texts.len(), 1, "{name} ({variant})");
    }
    // What compiles ahead misses nothing.
    let (all, listed) = (Sumcheck::<Fr>::all_kernels(&gate()), Sumcheck::<Fr>::kernels(&gate()));
    let distinct: HashSet<String> = all.iter().map(KernelSpec::cuda_source).collect();
    assert_eq!(listed.iter().map(KernelSpec::cuda_source).collect::<HashSet<_>>(), distinct);
}
