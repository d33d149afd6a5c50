//! The sides that examples compare: with Plonky3's own types, with transforms and trees on a device, and with the
//! commitment scheme that stays there.

use anyhow::Result;
use evariste_backend::Device;
use evariste_hash::Poseidon2Parameters;
use evariste_plonky3::{DeviceDft, DeviceFriPcs, DeviceMmcs};
use p3_baby_bear::{BabyBear, Poseidon2BabyBear, default_babybear_poseidon2_16};
use p3_challenger::DuplexChallenger;
use p3_commit::ExtensionMmcs;
use p3_dft::Radix2DitParallel;
use p3_field::{Field, extension::BinomialExtensionField};
use p3_fri::{FriParameters, TwoAdicFriPcs};
use p3_merkle_tree::MerkleTreeMmcs;
use p3_symmetric::{PaddingFreeSponge, TruncatedPermutation};
use p3_uni_stark::StarkConfig;

type Permutation = Poseidon2BabyBear<16>;
type Hash = PaddingFreeSponge<Permutation, 16, 8, 8>;
type Compression = TruncatedPermutation<Permutation, 2, 8, 16>;
type Packing = <BabyBear as Field>::Packing;
type HostMmcs = MerkleTreeMmcs<Packing, Packing, Hash, Compression, 2, 8>;
type OurMmcs = DeviceMmcs<BabyBear, Permutation, 16, 8, 8>;

type Challenge = BinomialExtensionField<BabyBear, 4>;
type Challenger = DuplexChallenger<BabyBear, Permutation, 16, 8>;
type HostPcs<Dft, ValMmcs> = TwoAdicFriPcs<BabyBear, Dft, ValMmcs, ExtensionMmcs<BabyBear, Challenge, ValMmcs>>;
type Config<Pcs> = StarkConfig<Pcs, Challenge, Challenger>;

/// Plonky3's own types.
pub(crate) type HostConfig = Config<HostPcs<Radix2DitParallel<BabyBear>, HostMmcs>>;

/// Without proofs of work: Plonky3 takes any solution that one of its threads finds first, and proofs would differ.
fn fri<M>(mmcs: M) -> FriParameters<M> {
    FriParameters { query_proof_of_work_bits: 0, ..FriParameters::new_benchmark(mmcs) }
}

fn config<Pcs: Clone>(pcs: Pcs) -> Config<Pcs> {
    Config::new(pcs, Challenger::new(default_babybear_poseidon2_16()))
}

fn our_mmcs(device: &Device) -> Result<OurMmcs> {
    Ok(OurMmcs::new(device, default_babybear_poseidon2_16(), Poseidon2Parameters::plonky3(16)?, 0)?)
}

/// Plonky3's own types.
pub(crate) fn host() -> HostConfig {
    let permutation = default_babybear_poseidon2_16();
    let mmcs = HostMmcs::new(Hash::new(permutation.clone()), Compression::new(permutation), 0);
    let parameters = fri(ExtensionMmcs::new(mmcs.clone()));
    config(HostPcs::new(Radix2DitParallel::default(), mmcs, parameters))
}

/// Transforms and trees on a device.
pub(crate) fn adapters(device: &Device) -> Result<Config<HostPcs<DeviceDft<BabyBear>, OurMmcs>>> {
    let mmcs = our_mmcs(device)?;
    let parameters = fri(ExtensionMmcs::new(mmcs.clone()));
    Ok(config(HostPcs::new(DeviceDft::new(device), mmcs, parameters)))
}

/// The commitment scheme that stays on a device.
pub(crate) fn resident(device: &Device) -> Result<Config<DeviceFriPcs<BabyBear, OurMmcs>>> {
    let mmcs = our_mmcs(device)?;
    Ok(config(DeviceFriPcs::new(mmcs.clone(), fri(mmcs))?))
}
