use p3_air::{Air, symbolic::SymbolicAirBuilder};
use p3_challenger::{CanObserve, CanSample, FieldChallenger, GrindingChallenger};
use p3_commit::{OpeningRequest, Pcs, PolynomialSpace, UnivariateStarkPcs};
use p3_field::extension::BinomiallyExtendable;
use p3_matrix::{Matrix, dense::RowMajorMatrix};
use p3_uni_stark::{
    Commitments, OpenedValues, Proof, ProvingError, QuotientAir, StarkGenericConfig, StarkProverTranscript, StarkShape,
    quotient_values,
};
use tracing::{debug_span, info_span};

use crate::{
    air::DeviceAir,
    error::ProverError,
    mmcs::DeviceTrees,
    pcs::{DeviceFriPcs, DevicePcsData},
    value::{Challenge, DeviceValue},
};

/// The errors of proofs: Plonky3's type.
type Result<T> = std::result::Result<T, ProvingError<ProverError>>;

/// Proves a trace as `p3_uni_stark::prove` does, with the constraints on the device: nothing of the trace comes back from
/// there but what the proof has. The proof is the same, byte for byte where there is no proof of work, and Plonky3's own
/// verifier accepts it.
///
/// It takes the constraints of the AIR anew each time: [`prove_with`] does not. Constraints are evaluated on the host as
/// Plonky3 does where the trace stays there ([`DeviceFriPcs`] says which ones), and where quotients have more points than
/// its codeword: the blow-up of FRI must be the degree of the constraints less one, or more. Whether the trace satisfies
/// its constraints is not checked, as in Plonky3's release builds.
///
/// # Errors
/// [`ProvingError::Pcs`] with [`ProverError::Unsupported`] inside if the AIR has preprocessed or periodic columns,
/// constraints over the extension, or no constraints. Also if the device refuses or fails to do something. The error
/// names the phase.
///
/// # Panics
/// As Plonky3's prover: if the height of the trace is no power of two, if the AIR has public values for a boundary, or if
/// there are fewer or more public values than the AIR says.
pub fn prove<P, M, Config, A>(
    config: &Config,
    air: &A,
    trace: RowMajorMatrix<P>,
    public_values: &[P],
) -> Result<Proof<Config>>
where
    P: DeviceValue + BinomiallyExtendable<4>,
    M: DeviceTrees<P>,
    Config: StarkGenericConfig<Pcs = DeviceFriPcs<P, M>, Challenge = Challenge<P>>,
    Config::Challenger:
        FieldChallenger<P> + CanObserve<M::Commitment> + CanSample<Challenge<P>> + GrindingChallenger<Witness = P>,
    A: QuotientAir<Config> + Air<SymbolicAirBuilder<P>>,
{
    let constraints = DeviceAir::new(air).map_err(in_phase("constraints"))?;
    prove_with(config, air, &constraints, trace, public_values)
}

/// Proves a trace as [`prove`] does, with constraints that were taken before: those of `air`.
///
/// # Errors
/// Those of [`prove`]. Also if `constraints` were used on another device.
///
/// # Panics
/// As [`prove`].
pub fn prove_with<P, M, Config, A>(
    config: &Config,
    air: &A,
    constraints: &DeviceAir<P>,
    trace: RowMajorMatrix<P>,
    public_values: &[P],
) -> Result<Proof<Config>>
where
    P: DeviceValue + BinomiallyExtendable<4>,
    M: DeviceTrees<P>,
    Config: StarkGenericConfig<Pcs = DeviceFriPcs<P, M>, Challenge = Challenge<P>>,
    Config::Challenger:
        FieldChallenger<P> + CanObserve<M::Commitment> + CanSample<Challenge<P>> + GrindingChallenger<Witness = P>,
    A: QuotientAir<Config> + Air<SymbolicAirBuilder<P>>,
{
    assert!(air.public_boundary_io().is_empty(), "public values of a boundary are not bound: use constraints");
    let pcs = config.pcs();
    let rows = trace.height();
    assert!(rows.is_power_of_two(), "a trace has {rows} rows, expected a power of two");
    let log_rows = rows.ilog2() as usize;
    let chunks = 1usize << constraints.log_chunks();
    let domain = Pcs::<Challenge<P>, Config::Challenger>::natural_domain_for_degree(pcs, rows);
    let (trace_commit, trace_data) = info_span!("commit to trace data")
        .in_scope(|| Pcs::<Challenge<P>, Config::Challenger>::commit(pcs, [(domain, trace)]))
        .map_err(in_phase("trace commitment"))?;

    let mut challenger = config.initialise_challenger();
    let shape = StarkShape::new::<P, A>(air, 0, log_rows, log_rows, chunks, false, config.ood_proof_of_work_bits());
    let mut transcript = StarkProverTranscript::<Config::Challenger, P, Challenge<P>>::new(&mut challenger, shape);
    let alpha = transcript.constraint_phase::<M::Commitment>(trace_commit.clone(), None, public_values);

    let quotient_domain = domain.create_disjoint_domain(rows * chunks);
    let on_device = debug_span!("quotient_values")
        .in_scope(|| pcs.constraint_quotients(constraints, &trace_data, quotient_domain, public_values, alpha))
        .inspect_err(|_| transcript.abort())
        .map_err(in_phase("constraints"))?;
    let committed = match on_device {
        Some(chunks) => {
            info_span!("commit to quotient poly chunks").in_scope(|| pcs.commit_chunks(quotient_domain, chunks))
        }
        None => {
            let evaluations = pcs
                .evaluations::<Config::Challenger>(&trace_data, 0, quotient_domain)
                .inspect_err(|_| transcript.abort())
                .map_err(in_phase("constraints"))?;
            let layout = constraints.layout();
            let values = quotient_values::<Config, A, _>(
                pcs,
                air,
                public_values,
                layout,
                domain,
                quotient_domain,
                &evaluations,
                None,
                alpha,
            );
            let quotients = RowMajorMatrix::new_col(values).flatten_to_base();
            info_span!("commit to quotient poly chunks").in_scope(|| {
                UnivariateStarkPcs::<Challenge<P>, Config::Challenger>::commit_quotient(
                    pcs,
                    quotient_domain,
                    quotients,
                    chunks,
                )
            })
        }
    };
    let (quotient_commit, quotient_data) =
        committed.inspect_err(|_| transcript.abort()).map_err(in_phase("quotient commitment"))?;

    let commitments = Commitments { trace: trace_commit, quotient_chunks: quotient_commit, random: None };
    let (zeta, ood_pow_witness) = transcript.ood_phase::<M::Commitment>(commitments.quotient_chunks.clone(), None);
    let has_next = !air.main_next_row_columns().is_empty();
    let points = [zeta, zeta * domain.subgroup_generator()];
    let requests: Vec<OpeningRequest<'_, DevicePcsData<P, M>, Challenge<P>>> = vec![
        (&trace_data, vec![points[..1 + usize::from(has_next)].to_vec()]).into(),
        (&quotient_data, vec![vec![zeta]; chunks]).into(),
    ];
    let (opened, opening_proof) = info_span!("open")
        .in_scope(|| transcript.delegate(|challenger| Pcs::<Challenge<P>, _>::open(pcs, requests, challenger)))
        .inspect_err(|_| transcript.abort())
        .map_err(in_phase("opening"))?;
    transcript.finish();

    // One matrix and its points, and one point of each chunk, as they were asked for.
    let mut opened = opened.into_iter();
    let mut of_trace = opened.next().into_iter().flatten().flatten();
    let opened_values = OpenedValues {
        trace_local: of_trace.next().unwrap_or_default(),
        trace_next: of_trace.next(),
        preprocessed: None,
        quotient_chunks: opened.flatten().flatten().collect(),
        random: None,
    };
    let ood_pow_witness = ood_pow_witness.unwrap_or(P::ZERO);
    Ok(Proof { commitments, opened_values, opening_proof, degree_bits: log_rows, ood_pow_witness })
}

/// The phase of a proof in which something failed.
fn in_phase(phase: &'static str) -> impl Fn(ProverError) -> ProvingError<ProverError> {
    move |source| ProvingError::Pcs { phase, source }
}
