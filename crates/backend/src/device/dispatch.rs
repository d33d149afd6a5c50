//! Launches, as a backend gets them.

use std::ffi::c_void;

use crate::{
    bindings::{Access, Binding, BindingType},
    device::Device,
    error::{Error, Result},
    handles::{Executable, Memory},
    secrecy::Secrecy,
    span::{Flag, Span, SpanMut},
    spec::KernelSpec,
};

/// A launch, checked against the kernel's declaration.
#[derive(Debug)]
pub struct Dispatch<'a, 'm> {
    /// The kernel.
    pub executable: &'a Executable,
    /// Its declaration.
    pub spec: &'a KernelSpec,
    /// The parameters, of the declared size.
    pub params: &'a [u8],
    /// The buffers, in the declared order and with the declared access.
    pub args: &'a mut [Arg<'m>],
    /// Workgroups, at least 1.
    pub groups: u64,
}

/// A queue and memory of a device in terms of its driver, for one call of another library
/// ([`Queue::lend`](crate::Queue::lend)).
#[derive(Debug)]
pub struct Lent<'a> {
    /// The stream of the queue: a `CUstream` of CUDA.
    pub stream: *mut c_void,
    /// The address on the device of the first byte of each argument, in their order.
    pub addresses: &'a [u64],
}

/// A buffer or a view, bound to a launch.
#[derive(Debug)]
pub struct Arg<'a> {
    device: &'a Device,
    span: ArgSpan<'a>,
    is_secret: Flag,
}

#[derive(Debug)]
pub(crate) enum ArgSpan<'a> {
    Read(Span<'a>),
    Write(SpanMut<'a>),
}

impl<'a> Arg<'a> {
    /// Bytes on a device, which memory of this secrecy holds.
    pub(crate) fn new(device: &'a Device, span: ArgSpan<'a>, secrecy: Secrecy) -> Self {
        Self { device, span, is_secret: (secrecy == Secrecy::Secret).into() }
    }

    /// The device that holds the bytes.
    pub(crate) fn device(&self) -> &'a Device {
        self.device
    }
    /// Returns how the launch may use the elements.
    pub fn access(&self) -> Access {
        match self.span {
            ArgSpan::Read(_) => Access::Read,
            ArgSpan::Write(_) => Access::Write,
        }
    }

    /// Returns whether the buffer is zeroed when it is dropped.
    pub fn secrecy(&self) -> Secrecy {
        match self.is_secret {
            Flag::No => Secrecy::Public,
            Flag::Yes => Secrecy::Secret,
        }
    }

    /// Returns the bytes to bind, with their allocation.
    pub fn span(&self) -> Span<'_> {
        match &self.span {
            ArgSpan::Read(span) => *span,
            ArgSpan::Write(span) => span.as_span(),
        }
    }

    /// Returns the whole allocation. The kernel gets [`Arg::span`] of it.
    pub fn memory(&self) -> &Memory {
        match &self.span {
            ArgSpan::Read(span) => span.memory(),
            ArgSpan::Write(span) => span.memory(),
        }
    }

    /// The bytes, with the access they are given for.
    pub(crate) fn span_mut(&mut self) -> ArgSpan<'_> {
        match &mut self.span {
            ArgSpan::Read(span) => ArgSpan::Read(*span),
            ArgSpan::Write(span) => ArgSpan::Write(span.reborrow()),
        }
    }

    /// Refuses a part of a buffer that is not whole words of its binding, since kernels read and write whole words.
    pub(crate) fn expect_words(&self, binding: &Binding) -> Result<()> {
        let span = self.span();
        if span.is_whole() || binding.binding_type == BindingType::Bytes {
            return Ok(());
        }
        let (word, end) = (binding.binding_type.bytes(), span.at() + span.bytes());
        if span.at().is_multiple_of(word) && (end.is_multiple_of(word) || end == span.memory().bytes()) {
            return Ok(());
        }
        Err(Error::Unaligned { what: "a kernel argument", expected: word, offset: span.at(), count: span.bytes() })
    }
}
