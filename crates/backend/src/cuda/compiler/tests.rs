//! NVRTC, where it is, and what is said where it is not.

use std::path::PathBuf;

use super::{
    library::{NAMES, candidates},
    *,
};
use crate::{
    bindings::{Binding, BindingType},
    info::Kind,
    params,
    spec::Language,
};

const BODY: &str = r#"
    extern "C" __global__ void double_all(const Params params, uint64_t* x) {
        __shared__ uint64_t tile[64];
        size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
        tile[threadIdx.x % 64] = i < params.n ? x[i] : 0;
        __syncthreads();
        if (i < params.n) x[i] = 2 * tile[threadIdx.x % 64] + params.k;
    }"#;

params! {
    struct Scale {
        n: u32,
        k: u32,
    }
}

fn spec(body: &'static str) -> KernelSpec {
    KernelSpec::new::<Scale, _>(
        "double_all",
        "u64",
        vec![Binding::write("x", BindingType::Vec2)],
        |_, _| {},
        move |language| {
            assert_eq!(language, Language::Cuda);
            body.to_owned()
        },
    )
}

/// Runs a check where NVRTC is there; where it is not, asserts on the error.
fn with_nvrtc(check: impl FnOnce()) {
    match version() {
        Ok(version) => {
            assert!(version >= (11, 2), "{version:?}");
            check();
        }
        Err(error) => {
            assert_tells_how_to_get_it(&error);
            assert_eq!(compile(&spec(BODY), "sm_90").unwrap_err(), error);
        }
    }
}

fn assert_tells_how_to_get_it(error: &Error) {
    let Error::Unavailable { backend: Kind::Cuda, reason } = error else { panic!("{error:?}") };
    assert!(reason.contains("nvidia-cuda-nvrtc") && reason.contains("CUDA toolkit"), "{reason}");
}

#[test]
fn a_kernel_compiles_for_every_generation() {
    with_nvrtc(|| {
        let known = architectures().unwrap();
        assert!(known.is_sorted());
        for architecture in [75, 90, 120].into_iter().filter(|n| known.contains(n)) {
            // The second time must tell as much.
            for _ in 0..2 {
                let compiled = compile(&spec(BODY), &format!("sm_{architecture}")).unwrap();
                assert!(compiled.code.starts_with(b"\x7fELF"), "sm_{architecture}");
                let usage = compiled.usage.unwrap();
                assert!((4..64).contains(&usage.registers), "{usage}");
                assert_eq!((usage.local_bytes, usage.spill_bytes, usage.shared_bytes), (0, 0, 512));
            }
        }
        assert!(known.contains(&75) || known.contains(&90), "{known:?}");
    });
}

#[test]
fn threads_compile_side_by_side() {
    with_nvrtc(|| {
        let code: Vec<Vec<u8>> = std::thread::scope(|scope| {
            let threads: Vec<_> =
                (0..4).map(|_| scope.spawn(|| compile(&spec(BODY), "compute_80").unwrap().code)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(code.iter().all(|one| *one == code[0] && one.ends_with(&[0])));
    });
}

#[test]
fn a_broken_source_gives_the_log_with_its_own_lines() {
    with_nvrtc(|| {
        let broken = "// Nothing\n\nextern \"C\" __global__ void double_all() { nonsense; }";
        let Err(Error::Compile { kernel, device, log }) = compile(&spec(broken), "sm_90") else {
            panic!("it compiled")
        };
        assert_eq!((kernel.as_str(), device.as_str()), ("double_all (u64)", "sm_90"));
        assert!(log.contains("double_all.cu(3)") && log.contains("nonsense"), "{log}");
        let Err(Error::Compile { .. }) = compile(&spec(BODY), "sm_1") else { panic!("sm_1 was accepted") };
    });
}

#[test]
fn an_entry_other_than_declared_is_refused() {
    let cases = [
        ("extern \"C\" __global__ void other(const uint64_t p, uint64_t* x) {}", "has no entry"),
        ("extern \"C\" __global__ void double_all(const uint32_t p, uint64_t* x) {}", "[4, 8] bytes"),
        ("extern \"C\" __global__ void double_all(const uint64_t p) {}", "[8] bytes"),
        ("extern \"C\" __global__ void double_all(const uint64_t p, int* x, int* y) {}", "[8, 8, 8] bytes"),
    ];
    with_nvrtc(|| {
        for (source, expected) in cases {
            let Err(Error::Compile { log, .. }) = compile(&spec(source), "sm_90") else { panic!("{source}") };
            assert!(log.contains(expected), "{log}");
        }
    });
}

#[test]
fn an_empty_struct_of_parameters_is_one_byte() {
    let source = "extern \"C\" __global__ void empty(const Params params) {}";
    let spec = KernelSpec::new::<(), _>("empty", "", vec![], |_, _| {}, move |_| source.to_owned());
    with_nvrtc(|| assert!(compile(&spec, "sm_90").is_ok()));
}

#[test]
fn what_is_spilled_is_told() {
    let source = r#"
        extern "C" __global__ void __launch_bounds__(1024, 2) double_all(const Params params, uint64_t* x) {
            uint64_t t[96];
            #pragma unroll
            for (int i = 0; i < 96; i++) t[i] = x[i * params.n + threadIdx.x];
            __syncthreads();
            #pragma unroll
            for (int i = 0; i < 96; i++) x[i * params.k + threadIdx.x] = t[i] * t[95 - i];
        }"#;
    with_nvrtc(|| {
        let usage = compile(&spec(source), "sm_90").unwrap().usage.unwrap();
        assert!(usage.registers <= 32 && usage.spill_bytes > 0 && usage.local_bytes > 0, "{usage}");
    });
}

#[test]
fn a_missing_library_is_unavailable() {
    let error = Nvrtc::find([PathBuf::from("/nonexistent/libnvrtc.so.13")]).map(drop).unwrap_err();
    assert_tells_how_to_get_it(&error);
}

/// In a process of its own, where files that are no libraries stand in the loader's way.
#[cfg(target_os = "linux")]
#[test]
fn a_hidden_library_is_unavailable() {
    const HIDDEN: &str = "EVARISTE_TEST_NVRTC_HIDDEN";
    if std::env::var_os(HIDDEN).is_some() {
        let toolkit = candidates().iter().any(|path| path.is_absolute() && path.exists());
        match version() {
            Err(error) => assert_tells_how_to_get_it(&error),
            Ok(_) => assert!(toolkit, "found although it is hidden, and no toolkit is installed"),
        }
        return;
    }
    let folder = std::env::temp_dir().join(format!("evariste-nvrtc-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    for name in NAMES {
        std::fs::write(folder.join(name), "not a library").unwrap();
    }
    let status = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "cuda::compiler::tests::a_hidden_library_is_unavailable"])
        .env(HIDDEN, "1")
        .env("LD_LIBRARY_PATH", &folder)
        .status();
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(status.unwrap().success());
}

#[test]
fn a_kernel_waits_where_its_source_says_so_and_its_code_can() {
    let waiting = format!("{PRELUDE}\nvoid f() {{\n    {WAITS}\n}}");
    assert_eq!([75, 89, 90, 120].map(|n| waits(&waiting, n)), [false, false, true, true]);
    let commented = waiting.replace(WAITS, &format!("// No {WAITS}"));
    assert!(!waits(PRELUDE, 90) && !waits(&commented, 90), "neither the declaration nor a comment is a call");
}

#[test]
fn code_waits_from_the_architecture_on_that_launches_ask_for() {
    with_nvrtc(|| {
        const WAITING: &str = "extern \"C\" __global__ void double_all(const Params params, uint64_t* x) {\n    \
                               wait_for_previous();\n    x[0] = 1;\n}";
        for architecture in [80, WAITS_FROM].into_iter().filter(|n| architectures().unwrap().contains(n)) {
            for (body, says) in [(BODY, false), (WAITING, true)] {
                let code = compile(&spec(body), &format!("compute_{architecture}")).unwrap().code;
                let waiting = String::from_utf8_lossy(&code).contains("griddepcontrol.wait");
                assert_eq!(waiting, waits(&source(&spec(body)), architecture), "{architecture}: {body}");
                assert_eq!(waiting, says && architecture >= WAITS_FROM);
            }
        }
    });
}

#[test]
fn a_newer_gpu_gets_ptx_of_the_newest_known_architecture() {
    let known = [75, 80, 90];
    assert_eq!(nearest(&known, "sm_90").as_deref(), Some("sm_90"));
    assert_eq!(nearest(&known, "sm_86").as_deref(), Some("compute_80"));
    assert_eq!(nearest(&known, "sm_120").as_deref(), Some("compute_90"));
    assert_eq!(nearest(&known, "sm_70"), None);
}

#[test]
fn parameters_of_every_form_are_read() {
    let ptx = "\n.visible .entry f(\n\t.param .align 4 .b8 f_param_0[12],\n\t.param .u64 .ptr .align 1 f_param_1,\
               \n\t.param .u32 f_param_2\n)\n.maxntid 256\n{";
    assert_eq!(parameters(ptx, "f"), Some(vec![12, 8, 4]));
    assert_eq!(parameters(".entry f(\n\n)\n{", "f"), Some(vec![]));
    assert_eq!(parameters(ptx, "g"), None);
}
