//! The declaration of the kernel and its text.

use std::fmt::Write as _;

use evariste_backend::author::{Binding, BindingList, KernelSpec, Language};
use evariste_field::{
    DeviceField, ifma,
    source::{self, iterations},
    words::Words,
};

use super::{Args, Bindings, KernelVariant, Params, flags, methods};
use crate::config::Twiddles;

impl KernelVariant {
    /// Lines of a workgroup's tile.
    pub(crate) fn lines_per_group(self) -> u64 {
        1 << self.log_width
    }

    pub(super) fn bindings<F: DeviceField>(self) -> Bindings {
        let word = source::binding_type::<F>();
        let data = match self.in_place {
            true => (Binding::write("x", word), None),
            false => (Binding::read("x", word), Some(Binding::write("y", word))),
        };
        (data, ["roots", "twiddles", "scale"].map(|name| Binding::read(name, word)))
    }

    pub(crate) fn spec<F: DeviceField>(self) -> KernelSpec {
        if self.halving {
            return self.halving_spec::<F>();
        }
        let bindings = self.bindings::<F>();
        let seen = bindings.list();
        let source = move |language| match language {
            Language::Cuda => self.cuda::<F>(),
            Language::Wgsl { int64 } => self.wgsl::<F>(int64, &seen),
        };
        let Self {
            log_rows,
            log_width,
            log_radix,
            threads,
            twiddles,
            interleaved,
            in_place,
            flags,
            log_root,
            root_shift,
            direct_stores,
            halving: _,
        } = self;
        let variant = format!(
            "2^{log_rows} × 2^{log_width} by 2^{log_radix} on {threads}, {twiddles:?}{}{}{}{}{}{} over {}",
            if interleaved { ", interleaved" } else { "" },
            if in_place { ", in place" } else { "" },
            flags.map(|flags| format!(", flags {flags:#x}")).unwrap_or_default(),
            log_root.map(|log_root| format!(", roots 2^{log_root}")).unwrap_or_default(),
            root_shift.map(|shift| format!(", shifts by {shift}")).unwrap_or_default(),
            if direct_stores { ", direct_stores" } else { "" },
            source::label::<F>(),
        );
        let (words, lanes) = (Words::of::<F>(), ifma::Montgomery52::of::<F>());
        let body = move |params: &Params, args: Args<'_, '_>| self.run::<F>(words, lanes.as_ref(), params, args);
        let iterations = self.iterations::<F>();
        KernelSpec::new("ntt_pass", variant, bindings, body, source)
            .constants(flags::ALL)
            .constants(methods::ALL)
            .threads(threads)
            .shared_bytes(source::tile_bytes::<F>(1 << (log_rows + log_width)))
            .iterations(move |_: &Params| iterations)
    }

    /// Loop iterations of a thread at most.
    fn iterations<F: DeviceField>(self) -> u64 {
        /// Of the exponent of a twiddle.
        const BITS: u64 = 32;

        let mul = iterations::mul::<F>();
        let each = (1 << (self.log_rows + self.log_width)) / u64::from(self.threads);
        let groups = (each >> self.log_radix).max(1);
        let steps = u64::from(self.log_rows.div_ceil(self.log_radix.max(1)));
        // Each element is scaled by two factors and multiplied by a root at each level.
        let step = (1 << self.log_radix) * (2 + u64::from(self.log_radix).max(4)) * mul;
        let finished = match self.twiddles {
            Twiddles::Stored | Twiddles::StoredWithQuotients | Twiddles::HalfStored | Twiddles::TwoLevel => 2 * mul,
            Twiddles::TwoPowers => 2 * (mul + iterations::repeat(BITS, 2 * mul)),
            Twiddles::BinaryPowers | Twiddles::OnTheFly => mul + iterations::repeat(BITS, 2 * mul),
        };
        iterations::repeat(steps, iterations::repeat(groups, step)) + iterations::repeat(each, finished)
    }

    fn cuda<F: DeviceField>(self) -> String {
        let Self { log_rows, log_width, log_radix, threads, .. } = self;
        let mut text = source::cuda::<F>();
        let _ = write!(
            text,
            "#define LOG_ROWS {log_rows}\n#define LOG_COLUMNS {log_width}\n#define LOG_RADIX {log_radix}\n\
             #define THREADS {threads}u\n#define MIN_BLOCKS {}\n#define TWIDDLES {}\n{}{}",
            (65_536 / self.registers::<F>() / threads).clamp(1, 16),
            self.twiddles as u32,
            if self.interleaved { "#define INTERLEAVED\n" } else { "" },
            if self.in_place { "#define IN_PLACE\n" } else { "" },
        );
        if let Some(flags) = self.flags {
            let _ = writeln!(text, "#define FLAGS {flags}u");
        }
        if let Some(log_root) = self.log_root {
            let _ = writeln!(text, "#define LOG_ROOT {log_root}u");
        }
        if let Some(shift) = self.root_shift {
            let _ = writeln!(text, "#define ROOT_SHIFT {shift}u");
        }
        if self.twiddles == Twiddles::TwoPowers {
            text += evariste_cuda::ntt::POWER;
        }
        text + evariste_cuda::ntt::LINES + evariste_cuda::ntt::PASS
    }

    /// Registers that a thread may use, of a multiprocessor's 65,536.
    fn registers<F: DeviceField>(self) -> u32 {
        let elements = (1 << (self.log_rows + self.log_width)) / self.threads;
        match (F::LIMBS, self.log_radix) {
            (1, _) if elements > 16 => 120,
            (1, _) => 40,
            (2, _) => 80,
            // Where blocks are few, there are enough for all.
            (..=8, 1) => 128,
            (..=8, _) => 80,
            _ => 168,
        }
    }

    fn wgsl<F: DeviceField>(self, int64: bool, bindings: &[Binding]) -> String {
        let Self { log_rows, log_width, log_radix, twiddles, interleaved, .. } = self;
        let mut text = source::wgsl::<F>(int64);
        text.extend(bindings.iter().map(source::wgsl_accessors::<F>));
        text += &source::wgsl_tile::<F>(1 << (log_rows + log_width));
        if self.in_place {
            text += "fn y_store(i: u32, v: F) { x_store(i, v); }\n";
        }
        let _ = write!(
            text,
            "const LOG_ROWS = {log_rows}u;\nconst LOG_COLUMNS = {log_width}u;\nconst LOG_RADIX = {}u;\n\
             const TWIDDLES = {}u;\nconst INTERLEAVED = {interleaved};\nconst DIRECT = {};\nconst BANKS = {}u;\n\
             fn flags() -> u32 {{ return {}; }}\nfn log_root() -> u32 {{ return {}; }}\n",
            log_radix.min(2),
            twiddles as u32,
            self.direct_stores,
            (128 / source::binding_type::<F>().bytes()).ilog2(),
            self.flags.map_or("params.flags".to_owned(), |flags| format!("{flags}u")),
            self.log_root.map_or("params.log_roots - LOG_ROWS".to_owned(), |log_root| format!("{log_root}u")),
        );
        text += evariste_shaders::ntt::POWER;
        text += evariste_shaders::ntt::LINES;
        match source::wgsl_lazy::<F>().filter(|_| int64) {
            Some(lazy) => text + &lazy + evariste_shaders::ntt::LAZY + evariste_shaders::ntt::PASS,
            None => text + evariste_shaders::ntt::PLAIN + evariste_shaders::ntt::PASS,
        }
    }
}
