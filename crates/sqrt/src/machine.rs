//! What runs programs: the body on the CPU, and the text before a kernel's own in CUDA and WGSL.

use std::fmt::Write;

use evariste_backend::{Binding, Word};
use evariste_field::{DevicePrimeField, source};

use crate::{
    hash::{Hash, logarithm},
    program::Program,
};

/// Threads of a workgroup.
pub(crate) const THREADS: u32 = 128;

/// What every kernel over a machine binds first.
pub(crate) fn bindings<B: DevicePrimeField>() -> Vec<Binding> {
    vec![
        Binding::read("program", Word::U32),
        Binding::read("constants", source::word::<B>()),
        Binding::read("hashed", Word::U32),
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
    text + evariste_cuda::SQRT
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
    text + evariste_shaders::SQRT
}

fn sizes<B>(program: &Program<B>) -> [(&'static str, u32); 6] {
    [
        ("STEPS", program.steps.len() as u32),
        ("SLOTS", program.slots),
        ("DIGITS", program.digits),
        ("DIGIT_BITS", program.width),
        ("DIGIT_PAD", program.pad),
        ("TABLE", program.table),
    ]
}

/// A program as the body on the CPU reads it from the buffers of a launch.
pub(crate) struct Machine<'a, B> {
    program: &'a [u32],
    constants: Vec<B>,
    entries: &'a [u32],
    hash: &'a Hash,
    table: u32,
    width: u32,
    pad: u32,
    slots: u32,
    digits: u32,
}

/// What a machine keeps for one element.
pub(crate) struct State<B> {
    pub(crate) slots: Vec<B>,
    digits: Vec<u32>,
    limbs: Vec<u32>,
}

impl<'a, B: DevicePrimeField> Machine<'a, B> {
    pub(crate) fn new(of: &'a Program<B>, program: &'a [u32], constants: &[u32], entries: &'a [u32]) -> Self {
        let constants = constants.chunks_exact(B::LIMBS).map(B::load).collect();
        let (table, width, pad, slots, digits) = (of.table, of.width, of.pad, of.slots, of.digits);
        Self { program, constants, entries, hash: &of.hash, table, width, pad, slots, digits }
    }

    pub(crate) fn state(&self) -> State<B> {
        State {
            slots: vec![B::ZERO; self.slots as usize],
            digits: vec![0; self.digits as usize],
            limbs: vec![0; B::LIMBS],
        }
    }

    fn operand(&self, state: &State<B>, kind: u32, index: u32, flag: bool, counter: u32) -> B {
        if kind & 8 != 0 {
            let digit = state.digits[(index >> 16) as usize];
            return self.constants[(self.table + ((index & 0xffff) << self.width) + digit) as usize];
        }
        let at = index + if kind & 2 != 0 { flag.into() } else { 0 } + if kind & 4 != 0 { counter } else { 0 };
        if kind & 1 != 0 { self.constants[at as usize] } else { state.slots[at as usize] }
    }

    /// Runs the program on what is in slots, and gives its verdict. `want` is the parity of the root that is chosen.
    pub(crate) fn run(&self, state: &mut State<B>, want: u32) -> u32 {
        let (mut flag, mut decided) = (false, false);
        let (mut counter, mut verdict, mut at) = (0, 1, 0);
        let mut r = B::ZERO;
        while let Some([step, index]) = self.program.get(2 * at..2 * at + 2).and_then(|words| words.as_array::<2>()) {
            at += 1;
            let (code, kind, times, index) = (step & 15, step >> 4 & 15, step >> 8, *index);
            if code <= 1 {
                (0..times).for_each(|_| {
                    r.square_in_place();
                });
            }
            match code {
                0 => {}
                3 => state.slots[index as usize] = r,
                1..8 => {
                    let x = self.operand(state, kind, index, flag, counter);
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
                    r.store(&mut state.limbs);
                    state.digits[index as usize] = logarithm(self.hash, self.entries, &state.limbs);
                }
                9 => {
                    flag = state.digits[0] >> self.pad & 1 == 1;
                    state.digits[0] &= !(1 << self.pad);
                    for i in 0..state.digits.len() {
                        let above = state.digits.get(i + 1).map_or(0, |digit| digit & 1);
                        state.digits[i] = state.digits[i] >> 1 | above << (self.width - 1);
                    }
                }
                10 if !decided => {
                    r.store(&mut state.limbs);
                    flag = state.limbs[0] & 1 != want;
                    decided = !r.is_zero();
                }
                11 if flag => r = -r,
                12 => {
                    verdict = if r.is_zero() {
                        0
                    } else if r == B::ONE {
                        1
                    } else {
                        u32::MAX
                    }
                }
                13 if flag == (times == 1) => at = index as usize,
                14 => {
                    counter += 1;
                    flag = counter < index;
                }
                _ => {}
            }
        }
        verdict
    }
}
