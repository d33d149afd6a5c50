//! The forward transform in natural order: on every device, data resident, and by arkworks.

use ark_bls12_381::Fr;
use ark_poly::{EvaluationDomain, Radix2EvaluationDomain};
use ark_std::UniformRand;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use evariste_backend::Device;
use evariste_field::Mont;
use evariste_ntt::Ntt;

/// log₂ of the sizes.
const SIZES: [u32; 3] = [12, 16, 20];

fn forward(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("ntt/bls12-381-fr/forward/natural");
    group.sample_size(10);
    let mut rng = ark_std::test_rng();
    for log_n in SIZES {
        let n = 1 << log_n;
        group.throughput(Throughput::Elements(n));
        let input: Vec<Fr> = (0..n).map(|_| Fr::rand(&mut rng)).collect();
        for device in Device::all().iter().filter(|device| !device.info().features.software) {
            let ntt = Ntt::<Fr>::new(device, log_n).expect("the size is one of the field's");
            let mut data = device.upload::<Mont<Fr>>(&input).expect("the device has room");
            group.bench_function(BenchmarkId::new(device.info().id.to_string(), log_n), |bencher| {
                bencher.iter(|| {
                    ntt.forward(&mut data).expect("the device works");
                    device.sync().expect("the device works");
                });
            });
        }
        let domain = Radix2EvaluationDomain::<Fr>::new(n as usize).expect("the size is one of the field's");
        let mut data = input;
        group.bench_function(BenchmarkId::new("arkworks", log_n), |bencher| {
            bencher.iter(|| domain.fft_in_place(&mut data));
        });
    }
    group.finish();
}

criterion_group!(ntt, forward);
criterion_main!(ntt);
