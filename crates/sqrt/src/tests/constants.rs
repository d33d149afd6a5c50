use super::*;

/// By squares, since arkworks' roots do not end.
#[test]
fn a_generator_that_is_a_square_has_all_roots() {
    let device = Device::cpu();
    let elements: Vec<Square17> = (0..17).map(Square17::from).collect();
    let squares: Vec<Square17> = elements.iter().map(|x| x.square()).collect();
    for method in Method::ALL.iter().copied().map(Some).chain([None]) {
        let plan = match Sqrt::<Square17>::with_config(&device, SqrtConfig::default().method(method)) {
            Err(Error::Method { .. }) => continue,
            plan => plan.unwrap(),
        };
        for (x, root) in elements.iter().zip(plan.sqrt_host(&elements).unwrap()) {
            assert_eq!(root.map(|root| root.square()), squares.contains(x).then_some(*x), "{method:?}");
        }
    }
}

/// x² = 4, which is no field.
struct Split;

impl Fp2Config for Split {
    type Fp = F13;

    const NONRESIDUE: F13 = MontFp!("4");
    const FROBENIUS_COEFF_FP2_C1: &'static [F13] = &[F13::ONE, MontFp!("-1")];
}

/// Curves like G1 of BLS12-381 but for what is said.
macro_rules! curves {
    ($($name:ident $b:literal $y:literal [$($cofactor:literal),*])*) => {$(
        #[derive(Debug)]
        struct $name;

        impl CurveConfig for $name {
            type BaseField = ark_bls12_381::Fq;
            type ScalarField = ark_bls12_381::Fr;

            const COFACTOR: &'static [u64] = &[$($cofactor),*];
            const COFACTOR_INV: ark_bls12_381::Fr = ark_bls12_381::Fr::ONE;
        }

        impl SWCurveConfig for $name {
            type ZeroFlag = bool;

            const COEFF_A: ark_bls12_381::Fq = MontFp!("0");
            const COEFF_B: ark_bls12_381::Fq = MontFp!($b);
            const GENERATOR: Affine<Self> = Affine::new_unchecked(
                MontFp!("3685416753713387016781088315183077757961620795782546409894578378688607592378376318836054947676345821548104185464507"),
                MontFp!($y),
            );
        }

        impl WBConfig for $name {
            type IsogenousCurve = <ark_bls12_381::g1::Config as WBConfig>::IsogenousCurve;

            const ISOGENY_MAP: IsogenyMap<'static, Self::IsogenousCurve, Self> = {
                let map = <ark_bls12_381::g1::Config as WBConfig>::ISOGENY_MAP;
                IsogenyMap {
                    x_map_numerator: map.x_map_numerator,
                    x_map_denominator: map.x_map_denominator,
                    y_map_numerator: map.y_map_numerator,
                    y_map_denominator: map.y_map_denominator,
                }
            };
        }
    )*};
}

curves! {
    Same "4" "1339506544944476473020471379941921221584933875938349620426543736416511423956333506472724655353366534992391756441569" [0x8c00aaab0000aaab, 0x396c8c005555e156]
    NoCofactor "4" "1339506544944476473020471379941921221584933875938349620426543736416511423956333506472724655353366534992391756441569" [1]
    OffTheCurve "4" "1339506544944476473020471379941921221584933875938349620426543736416511423956333506472724655353366534992391756441568" [0x8c00aaab0000aaab, 0x396c8c005555e156]
    Twisted "5" "1339506544944476473020471379941921221584933875938349620426543736416511423956333506472724655353366534992391756441569" [0x8c00aaab0000aaab, 0x396c8c005555e156]
}

#[test]
fn constants_that_do_not_hold_are_errors() {
    let device = Device::cpu();
    let composite = Error::Modulus { field: std::any::type_name::<Composite>() };
    assert_eq!(Sqrt::<Composite>::new(&device).unwrap_err(), composite);
    assert_eq!(Sqrt::<Fp2<Split>>::new(&device).unwrap_err(), Error::Square);

    fn refused<C: WBConfig + DeviceCurve<BaseField = ark_bls12_381::Fq>>(
        device: &Device,
    ) -> [Option<CurveConstant>; 3] {
        let of = |error: Error| match error {
            Error::Curve(CurveError { curve, constant }) if curve == std::any::type_name::<C>() => constant,
            other => panic!("{other}"),
        };
        let decompress = |check| {
            Decompress::<C>::with_config(device, Encoding::Zcash, DecompressConfig::default().check(check)).err()
        };
        assert_eq!(decompress(Check::Curve), None, "the subgroup is not relied on");
        [decompress(Check::Subgroup), MapToCurve::<C>::new(device).err(), HashToCurve::<C>::new(device, b"tag").err()]
            .map(|error| error.map(of))
    }
    assert_eq!(refused::<Same>(&device), [None; 3]);
    let cofactor = Some(CurveConstant::Cofactor);
    assert_eq!(refused::<NoCofactor>(&device), [cofactor, None, cofactor]);
    let generator = Some(CurveConstant::Generator);
    assert_eq!(refused::<OffTheCurve>(&device), [generator, None, generator]);
    assert_eq!(refused::<Twisted>(&device), [generator, Some(CurveConstant::Isogeny), generator]);
}
