//! The machine that runs programs: the body on the CPU, and the text before a kernel's own in CUDA and WGSL.

use std::fmt::Write;

use evariste_backend::author::{Binding, BindingType, Wiped};
use evariste_field::{
    DevicePrimeField,
    ifma::{self, STEP},
    native::Native,
    source,
};

use crate::{
    hash::{Hash, logarithm},
    program::{Columns, Program},
};

/// Threads of a workgroup.
pub(crate) const THREADS: u32 = 128;

/// What every kernel over a machine binds first.
pub(crate) fn bindings<B: DevicePrimeField>() -> [Binding; 3] {
    [
        Binding::read("program", BindingType::U32),
        Binding::read("constants", source::binding_type::<B>()),
        Binding::read("hashed", BindingType::U32),
    ]
}

/// The machine for a program in CUDA, after the arithmetic of the field.
pub(crate) fn cuda<B: DevicePrimeField>(program: &Program<B>) -> String {
    let Hash { multipliers: [low, high], shift, .. } = &program.hash;
    let mut text = String::new();
    for (name, value) in sizes(program) {
        let _ = writeln!(text, "#define {name} {value}u");
    }
    let _ = writeln!(text, "#define HASH(low, high) (((low) * {low}u + (high) * {high}u) >> {shift})");
    text + evariste_cuda::sqrt::MACHINE
}

/// The machine for a program in WGSL, after the arithmetic of the field and the accessors of [`bindings`].
pub(crate) fn wgsl<B: DevicePrimeField>(program: &Program<B>) -> String {
    let Hash { multipliers: [low, high], shift, .. } = &program.hash;
    let mut text = source::wgsl_accessors::<B>(&bindings::<B>()[1]);
    for (name, value) in sizes(program) {
        let _ = writeln!(text, "const {name} = {value}u;");
    }
    let last = B::LIMBS - 1;
    let _ = writeln!(text, "fn m_hash(r: F) -> u32 {{ return (r.l0 * {low}u + r.l{last} * {high}u) >> {shift}u; }}");
    text + evariste_shaders::sqrt::MACHINE
}

/// What a kernel's text has of a program, for its variant.
pub(crate) fn label<B>(program: &Program<B>) -> String {
    let Hash { multipliers: [low, high], shift, .. } = &program.hash;
    let sizes: Vec<String> = sizes(program).iter().map(|(_, value)| value.to_string()).collect();
    format!("{}; {low:#x}, {high:#x}, {shift}", sizes.join(", "))
}

fn sizes<B>(program: &Program<B>) -> Vec<(&'static str, u32)> {
    let mut sizes = vec![
        ("STEPS", program.steps.len() as u32),
        ("SLOTS", program.slots),
        ("DIGITS", program.digits),
        ("DIGIT_BITS", program.width),
        ("DIGIT_PAD", program.pad),
        ("TABLE", program.table),
    ];
    if let Some(columns) = &program.columns {
        sizes.extend([
            ("COLUMNS", columns.count),
            ("COLUMNS_EACH", columns.each()),
            ("EXPONENT_BITS", columns.exponent.len() as u32),
            ("INVERSES", columns.inverses),
        ]);
    }
    sizes
}

/// A program as the body on the CPU reads it from the buffers of a launch.
pub(crate) struct Machine<'a, B> {
    of: &'a Program<B>,
    program: &'a [u32],
    /// The digits of the exponent of columns.
    exponent: &'a [u32],
    limbs: &'a [u32],
    constants: Vec<Native<B>>,
    entries: &'a [u32],
    lanes: Option<ifma::Montgomery52>,
    one: Vec<u32>,
}

/// Some elements that a machine works on, and what it keeps for them.
pub(crate) struct Group<B: Copy> {
    /// What the first slots hold in device form, before and after: slot by slot, an element of each of `STEP`.
    pub(crate) data: Wiped<u32>,
    /// The parity of the root that is chosen, for each element.
    pub(crate) want: [u32; STEP],
    pub(crate) verdicts: [u32; STEP],
    slots: Wiped<Native<B>>,
    digits: Wiped<u32>,
}

impl<B: DevicePrimeField> Group<B> {
    /// The words of slot `slot` for element `i`.
    pub(crate) fn words(&mut self, slot: usize, i: usize) -> &mut [u32] {
        &mut self.data[(slot * STEP + i) * B::LIMBS..][..B::LIMBS]
    }
}

impl<'a, B: DevicePrimeField> Machine<'a, B> {
    pub(crate) fn new(of: &'a Program<B>, program: &'a [u32], limbs: &'a [u32], entries: &'a [u32]) -> Self {
        let lanes = if of.searches() { None } else { ifma::Montgomery52::of::<B>() };
        let constants =
            if lanes.is_some() { Vec::new() } else { limbs.chunks_exact(B::LIMBS).map(Native::load).collect() };
        let mut one = vec![0; B::LIMBS];
        B::ONE.store(&mut one);
        let (program, exponent) = program.split_at(2 * of.steps.len());
        Self { of, program, exponent, limbs, constants, entries, lanes, one }
    }

    /// Room for a group of elements, with `slots` slots for inputs and outputs.
    pub(crate) fn group(&self, slots: usize) -> Group<B> {
        Group {
            data: vec![0; slots * STEP * B::LIMBS].into(),
            want: [0; STEP],
            verdicts: [0; STEP],
            slots: vec![Native::<B>::ZERO; self.of.slots as usize].into(),
            digits: vec![0; self.of.digits as usize].into(),
        }
    }

    /// Runs the program on the first `count` elements of a group.
    pub(crate) fn run(&self, group: &mut Group<B>, count: usize) {
        #[cfg(target_arch = "x86_64")]
        if let Some(lanes) = &self.lanes {
            let run = crate::lanes::Run {
                program: self.program,
                constants: self.limbs,
                entries: self.entries,
                hash: &self.of.hash,
                table: self.of.table,
                width: self.of.width,
                pad: self.of.pad,
                slots: self.of.slots as usize,
                digits: self.of.digits as usize,
                want: group.want,
                one: &self.one,
                data: &mut group.data,
                verdicts: &mut group.verdicts,
            };
            return lanes.run::<B, _>(run, crate::lanes::Run::run_usual);
        }
        let slots = group.data.len() / (STEP * B::LIMBS);
        for i in 0..count {
            for slot in 0..slots {
                group.slots[slot] = Native::load(group.words(slot, i));
            }
            if let Some(columns) = &self.of.columns {
                group.slots[1] = self.columns(columns, group.slots[0]);
            }
            group.verdicts[i] = self.run_one(group, i);
            for slot in 0..slots {
                let x = group.slots[slot];
                x.store(group.words(slot, i));
            }
        }
    }

    /// What the lanes of a warp do, one lane after the other: a root of `a`, if it has one.
    fn columns(&self, of: &Columns, a: Native<B>) -> Native<B> {
        let (mut square, mut power) = (a, Native::ONE);
        for k in 0..of.exponent.len() {
            if self.exponent[k / 32] >> (k % 32) & 1 == 1 {
                power *= square;
            }
            square = square.square();
        }
        let root = a * power;
        let mut columns = Wiped::from(vec![root; of.count as usize]);
        let mut x = root * power;
        for column in &mut columns[1..] {
            *column = x;
            x = x.square();
        }
        for i in 1..of.count as usize {
            let looked_at = of.count as usize - i;
            if columns[looked_at] != Native::ONE {
                // No later digit looks at the columns from this one on.
                let inverses = &self.constants[of.inverses as usize + i - 1..];
                columns[..looked_at].iter_mut().zip(inverses).for_each(|(column, inverse)| *column *= *inverse);
            }
        }
        columns[0]
    }

    fn operand(&self, group: &Group<B>, kind: u32, index: u32, flag: bool, counter: u32) -> Native<B> {
        if kind & 8 != 0 {
            let digit = group.digits[(index >> 16) as usize];
            return self.constants[(self.of.table + ((index & 0xffff) << self.of.width) + digit) as usize];
        }
        let at = index + if kind & 2 != 0 { flag.into() } else { 0 } + if kind & 4 != 0 { counter } else { 0 };
        if kind & 1 != 0 { self.constants[at as usize] } else { group.slots[at as usize] }
    }

    /// Runs the program on what is in slots, for element `i`, and gives its verdict.
    fn run_one(&self, group: &mut Group<B>, i: usize) -> u32 {
        let (mut want, width, pad) = (group.want[i], self.of.width, self.of.pad);
        let mut limbs = Wiped::from(vec![0; B::LIMBS]);
        let (mut flag, mut decided) = (false, false);
        let (mut counter, mut verdict, mut at) = (0, 1, 0);
        let mut r = Native::<B>::ZERO;
        while let Some([step, index]) = self.program.get(2 * at..2 * at + 2).and_then(|words| words.first_chunk::<2>())
        {
            at += 1;
            let (code, kind, times, index) = (step & 15, step >> 4 & 15, step >> 8, *index);
            if code <= 1 {
                (0..times).for_each(|_| {
                    r = r.square();
                });
            }
            match code {
                0 => {}
                3 => group.slots[index as usize] = r,
                1..8 => {
                    let x = self.operand(group, kind, index, flag, counter);
                    match code {
                        1 => r *= x,
                        2 => r = x,
                        4 => r += x,
                        5 => r -= x,
                        6 => flag = r == x,
                        _ => verdict &= u32::from(r == x),
                    }
                }
                8 => {
                    r.store(&mut limbs);
                    group.digits[index as usize] = logarithm(&self.of.hash, self.entries, &limbs);
                }
                9 => {
                    flag = group.digits[0] >> pad & 1 == 1;
                    group.digits[0] &= !(1 << pad);
                    for i in 0..group.digits.len() {
                        let above = group.digits.get(i + 1).map_or(0, |digit| digit & 1);
                        group.digits[i] = group.digits[i] >> 1 | above << (width - 1);
                    }
                }
                10 if !decided => {
                    r.store(&mut limbs);
                    flag = limbs[0] & 1 != want;
                    decided = !r.is_zero();
                }
                11 if flag => r = -r,
                12 => {
                    verdict = match () {
                        () if r.is_zero() => 0,
                        () if r == Native::ONE => 1,
                        () => u32::MAX,
                    }
                }
                13 if flag == (times == 1) => at = index as usize,
                14 => {
                    counter += 1;
                    flag = counter < index;
                }
                15 => (want, decided) = (flag.into(), false),
                _ => {}
            }
        }
        verdict
    }
}
