//! Trees against Plonky3's.

use p3_commit::Mmcs;
use p3_field::Field;
use p3_matrix::dense::RowMajorMatrix;
use p3_merkle_tree::{MerkleCap, MerkleTreeMmcs};
use p3_symmetric::CompressionFunctionFromHasher;

use super::*;
use crate::{
    dimensions::Dimensions,
    layers::{Arity, cap_place},
    merkle::{
        Merkle, layers_of,
        verifier::{Opening, cap_len, verify},
    },
};

type P = p3_baby_bear::BabyBear;
type Packing = <P as Field>::Packing;
type Permutation16 = p3_baby_bear::Poseidon2BabyBear<16>;
type Permutation24 = p3_baby_bear::Poseidon2BabyBear<24>;
type Permutation32 = p3_baby_bear::Poseidon2BabyBear<32>;

/// Plonky3's trees by hashes of rows and of `N` digests of `D` elements.
type Theirs<H, C, const N: usize, const D: usize> = MerkleTreeMmcs<Packing, Packing, H, C, N, D>;

type Pairs = Theirs<PaddingFreeSponge<Permutation16, 16, 8, 8>, TruncatedPermutation<Permutation16, 2, 8, 16>, 2, 8>;

/// Four digests in a state.
type Fours = Theirs<PaddingFreeSponge<Permutation32, 32, 24, 8>, TruncatedPermutation<Permutation32, 4, 8, 32>, 4, 8>;

type Sponge24 = PaddingFreeSponge<Permutation24, 24, 16, 8>;

/// Four digests that a sponge hashes.
type SpongeFours = Theirs<Sponge24, CompressionFunctionFromHasher<Sponge24, 4, 8>, 4, 8>;

fn pairs(cap_height: usize) -> Pairs {
    let permutation = p3_baby_bear::default_babybear_poseidon2_16();
    let (hash, compression) = (PaddingFreeSponge::new(permutation.clone()), TruncatedPermutation::new(permutation));
    MerkleTreeMmcs::new(hash, compression, cap_height)
}

fn fours(cap_height: usize) -> Fours {
    let permutation = p3_baby_bear::default_babybear_poseidon2_32();
    let (hash, compression) = (PaddingFreeSponge::new(permutation.clone()), TruncatedPermutation::new(permutation));
    MerkleTreeMmcs::new(hash, compression, cap_height)
}

fn sponge_fours(cap_height: usize) -> SpongeFours {
    let hash = PaddingFreeSponge::new(p3_baby_bear::default_babybear_poseidon2_24());
    MerkleTreeMmcs::new(hash.clone(), CompressionFunctionFromHasher::new(hash), cap_height)
}

fn parameters() -> Poseidon2Parameters<BabyBear> {
    Poseidon2Parameters::plonky3(16).unwrap()
}

/// Heights and columns of matrices.
const SHAPES: [&[(usize, usize)]; 7] = [
    // Layers of one launch each, and of several.
    &[(1 << 15, 1)],
    &[(1, 1)],
    &[(2, 9)],
    &[(256, 17)],
    &[(64, 8), (64, 3), (64, 16)],
    &[(4, 5), (128, 2), (1, 7), (4, 8), (32, 1), (128, 20)],
    &[(16, 1), (8, 3), (4, 1), (2, 1), (1, 1)],
];

/// Shapes for trees of four children: lengths that are powers of four and twice these, and matrices between layers.
const SHAPES_OF_FOUR: [&[(usize, usize)]; 6] = [
    &[(2, 3), (1, 2)],
    &[(128, 9)],
    &[(64, 3), (64, 8)],
    &[(4, 5), (2, 1)],
    &[(4, 5), (128, 2), (1, 7), (32, 8), (64, 1), (128, 20)],
    &[(32, 1), (16, 3), (2, 1)],
];

fn dimensions(shape: &[(usize, usize)]) -> Vec<Dimensions> {
    shape.iter().map(|(height, columns)| Dimensions { height: *height, columns: *columns }).collect()
}

fn check<H, C, const N: usize, const D: usize>(
    parameters: &Poseidon2Parameters<BabyBear>,
    plonky3: impl Fn(usize) -> Theirs<H, C, N, D>,
    shapes: &[&[(usize, usize)]],
) where
    Theirs<H, C, N, D>: Mmcs<P, Commitment = MerkleCap<P, [P; D]>, Proof = Vec<[P; D]>>,
{
    for device in devices() {
        let name = device.info().name.clone();
        let merkle = Merkle::new(Poseidon2::new(&device, parameters.clone()).unwrap());
        for shape in shapes {
            let values: Vec<Vec<BabyBear>> = shape.iter().map(|(height, columns)| random(height * columns)).collect();
            let buffers: Vec<_> = values.iter().map(|m| device.upload::<Mont<BabyBear>>(m).unwrap()).collect();
            let matrices: Vec<_> = buffers.iter().zip(*shape).map(|(b, (_, columns))| Rows::new(b, *columns)).collect();
            let tree = merkle.commit(&matrices).unwrap();
            let dimensions = dimensions(shape);
            let required = Merkle::<BabyBear>::required_bytes(parameters, &dimensions);
            assert!(tree.nodes().bytes() <= required, "{shape:?}");
            assert_eq!(tree.dimensions(), dimensions);
            let height = shape.iter().map(|(height, _)| *height).max().unwrap();
            for log_cap in [0, 1, 3] {
                let mmcs = plonky3(log_cap);
                let theirs = values.iter().zip(*shape);
                let theirs = theirs.map(|(m, (_, columns))| RowMajorMatrix::new(super::theirs::<_, P>(m), *columns));
                let (expected, data) = mmcs.commit(theirs.collect());
                let cap = merkle.cap(&tree, log_cap as u32).unwrap();
                assert_eq!(cap, ours::<BabyBear, P>(expected.roots().as_flattened()), "{name}, {shape:?}");
                assert_eq!(cap.len(), cap_len(parameters, &dimensions, log_cap as u32));
                let indices: Vec<usize> = [0, height - 1, height / 2, height / 3].to_vec();
                let openings = merkle.open(&tree, &matrices, &indices, log_cap as u32).unwrap();
                for (index, opening) in indices.iter().zip(&openings) {
                    let (rows, path) = mmcs.open_batch(*index, &data).unpack();
                    let rows = rows.iter().map(|row| ours(row)).collect();
                    let expected = Opening { rows, path: ours::<BabyBear, P>(path.as_flattened()) };
                    assert_eq!(*opening, expected, "{name}, {shape:?}, row {index}");
                    expect_bound(parameters, (&cap, log_cap as u32), &dimensions, *index, opening);
                }
            }
            assert_eq!(merkle.root(&tree).unwrap(), merkle.cap(&tree, 0).unwrap());
        }
    }
}

#[test]
fn roots_caps_and_openings_are_plonky3s() {
    check(&parameters(), pairs, &SHAPES);
}

#[test]
fn trees_of_four_children_are_plonky3s() {
    let of_width = |width| Poseidon2Parameters::plonky3(width).unwrap().with_arity(Arity::Four);
    check(&of_width(32), fours, &SHAPES_OF_FOUR);
    check(&of_width(24), sponge_fours, &SHAPES_OF_FOUR[2..5]);
}

/// An opening is verified, and no row of it can be another. A cap above a matrix binds none, and is refused.
fn expect_bound(
    parameters: &Poseidon2Parameters<BabyBear>,
    (cap, log_cap): (&[BabyBear], u32),
    dimensions: &[Dimensions],
    index: usize,
    opening: &Opening<BabyBear>,
) {
    let check = |opening: &Opening<BabyBear>| verify(parameters, cap, dimensions, index, opening);
    let lowest = dimensions.iter().map(|matrix| matrix.height).min().unwrap();
    let layers = layers_of(parameters, dimensions);
    if layers[cap_place(&layers, log_cap as usize)].nodes > lowest {
        let refused = check(opening);
        assert!(matches!(refused, Err(Error::Opening { .. })), "{refused:?}");
        return;
    }
    check(opening).unwrap();
    for row in 0..opening.rows.len() {
        let mut forged = opening.clone();
        forged.rows[row][0] += BabyBear::from(1);
        assert_eq!(check(&forged), Err(Error::OtherRoot), "row {row} of {dimensions:?}");
    }
}

#[test]
fn misuse_and_forgeries_are_refused() {
    let device = Device::cpu();
    let merkle = Merkle::new(Poseidon2::new(&device, parameters()).unwrap());
    let values = random::<BabyBear>(96);
    let buffer = device.upload::<Mont<BabyBear>>(&values).unwrap();
    let rows = |columns| Rows::new(&buffer, columns);
    assert_eq!(merkle.commit(&[]).unwrap_err(), Error::NoMatrices);
    assert_eq!(merkle.commit(&[rows(0)]).unwrap_err(), Error::Columns { matrix: 0, columns: 0, elements: 96 });
    assert_eq!(merkle.commit(&[rows(3), rows(5)]).unwrap_err(), Error::Columns { matrix: 1, columns: 5, elements: 96 });
    assert_eq!(merkle.commit(&[rows(8)]).unwrap_err(), Error::Height { matrix: 0, actual: 12 });
    let nothing = Rows::new(buffer.view(..0).unwrap(), 3);
    assert_eq!(merkle.commit(&[nothing]).unwrap_err(), Error::Height { matrix: 0, actual: 0 });

    let matrices = [rows(3), rows(12)];
    let tree = merkle.commit(&matrices).unwrap();
    assert_eq!(merkle.open(&tree, &matrices, &[3, 32], 0).unwrap_err(), Error::OutOfRange { height: 32, index: 32 });
    let other = merkle.open(&tree, &[rows(12), rows(3)], &[3], 0).unwrap_err();
    assert!(matches!(other, Error::OtherMatrices { .. }), "{other}");
    assert!(merkle.open(&tree, &matrices, &[], 0).unwrap().is_empty());

    let dimensions = tree.dimensions().to_vec();
    let cap = merkle.cap(&tree, 1).unwrap();
    let opening = merkle.open(&tree, &matrices, &[21], 1).unwrap().remove(0);
    let check = |cap: &[BabyBear], dimensions: &[Dimensions], index, opening: &Opening<BabyBear>| {
        verify(&parameters(), cap, dimensions, index, opening)
    };
    check(&cap, &dimensions, 21, &opening).unwrap();
    let change = |change: &dyn Fn(&mut Opening<BabyBear>)| {
        let mut opening = opening.clone();
        change(&mut opening);
        check(&cap, &dimensions, 21, &opening).unwrap_err()
    };
    assert_eq!(change(&|opening| opening.rows[0][2] += BabyBear::from(1)), Error::OtherRoot);
    assert_eq!(change(&|opening| opening.rows[1][0] += BabyBear::from(1)), Error::OtherRoot);
    assert_eq!(change(&|opening| opening.path[9] += BabyBear::from(1)), Error::OtherRoot);
    for error in [
        change(&|opening| opening.path.truncate(24)),
        change(&|opening| opening.rows.truncate(1)),
        change(&|opening| opening.rows.swap(0, 1)),
        check(&cap[..8], &dimensions, 21, &opening).unwrap_err(),
        check(&cap[..15], &dimensions, 21, &opening).unwrap_err(),
        check(&[], &dimensions, 21, &opening).unwrap_err(),
    ] {
        assert!(matches!(error, Error::Opening { .. }), "{error}");
    }
    assert_eq!(check(&cap, &dimensions, 20, &opening), Err(Error::OtherRoot));
    assert_eq!(check(&cap, &dimensions, 5, &opening), Err(Error::OtherRoot));
    assert_eq!(check(&cap, &dimensions, 32, &opening), Err(Error::OutOfRange { height: 32, index: 32 }));
    assert_eq!(check(&cap, &[], 0, &opening), Err(Error::NoMatrices));
    let mut odd = dimensions;
    odd[1].height = 3;
    assert_eq!(check(&cap, &odd, 21, &opening), Err(Error::Height { matrix: 1, actual: 3 }));
}

/// The leaves of this tree are as many digests as the layer above, with its zeros. The lower matrix comes in above the leaves.
#[test]
fn a_cap_of_leaves_does_not_pass_for_one_that_binds_all_rows() {
    let parameters = Poseidon2Parameters::<BabyBear>::plonky3(32).unwrap().with_arity(Arity::Four);
    let device = Device::cpu();
    let merkle = Merkle::new(Poseidon2::new(&device, parameters.clone()).unwrap());
    let buffers = [20, 2].map(|len| device.upload::<Mont<BabyBear>>(&random(len)).unwrap());
    let matrices = [Rows::new(&buffers[0], 5), Rows::new(&buffers[1], 1)];
    let tree = merkle.commit(&matrices).unwrap();
    let [cap, leaves] = [1, 2].map(|log_cap| merkle.cap(&tree, log_cap).unwrap());
    assert_eq!((cap.len(), leaves.len()), (4 * 8, 4 * 8));
    for index in 0..4 {
        let [of_cap, of_leaves] =
            [1, 2].map(|log_cap| merkle.open(&tree, &matrices, &[index], log_cap).unwrap().remove(0));
        assert!(of_leaves.path.is_empty());
        let check =
            |cap: &[BabyBear], opening: &Opening<BabyBear>| verify(&parameters, cap, tree.dimensions(), index, opening);
        check(&cap, &of_cap).unwrap();
        let mut forged = of_leaves.clone();
        forged.rows[1][0] += BabyBear::from(1);
        for opening in [&of_leaves, &forged] {
            let refused = check(&leaves, opening);
            assert!(matches!(refused, Err(Error::Opening { .. })), "{refused:?}");
        }
        assert_eq!(check(&leaves, &of_cap), Err(Error::OtherRoot));
    }
}

#[test]
fn required_bytes_suffice() {
    let device = Device::cpu();
    let merkle = Merkle::new(Poseidon2::new(&device, parameters()).unwrap());
    for shape in SHAPES {
        let values: Vec<_> = shape.iter().map(|(height, columns)| random::<BabyBear>(height * columns)).collect();
        let buffers: Vec<_> = values.iter().map(|m| device.upload::<Mont<BabyBear>>(m).unwrap()).collect();
        let matrices: Vec<_> = buffers.iter().zip(shape).map(|(b, (_, columns))| Rows::new(b, *columns)).collect();
        let tree = merkle.commit(&matrices).unwrap();
        let required = Merkle::<BabyBear>::required_bytes(&parameters(), &dimensions(shape));
        assert!(tree.nodes().bytes() <= required, "{shape:?}");
    }
}
