//! An allocator that looks at freed memory. Memory that goes back to the system, or to the next allocation, must hold
//! nothing of a secret.
//!
//! It is the system's, and looks only while a watch for some words lasts. The watching thread has them dropped
//! afterwards.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    backtrace::Backtrace,
    cell::Cell,
    hint, mem, ptr,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering},
    },
    thread,
};

/// Bytes of a word that is looked for. A random match of this length is too rare to occur.
pub(crate) const WORD: usize = 8;

/// The allocator, for `#[global_allocator]`.
#[derive(Debug)]
pub struct Heap;

/// Words, with a filter of their lowest 16 bits.
struct Words {
    sorted: Vec<u64>,
    filter: Vec<u64>,
}

/// The words of the watch, if there is one. A thread that reads them counts as a reader meanwhile.
static WORDS: AtomicPtr<Words> = AtomicPtr::new(ptr::null_mut());
static READERS: AtomicUsize = AtomicUsize::new(0);

/// Whether memory is zeroed at allocation. Words found in it were written there, and not left by its former owner.
static CLEAN: AtomicBool = AtomicBool::new(false);

/// Where what was looked for was freed.
static FOUND: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Findings that are kept at most.
const MOST: usize = 2;

thread_local! {
    /// Whether this thread tells of something that it has found, for which it allocates and frees.
    static TELLS: Cell<bool> = const { Cell::new(false) };
}

impl Words {
    fn new(words: &[[u8; WORD]]) -> Self {
        let mut sorted: Vec<u64> = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
        sorted.sort_unstable();
        let mut filter = vec![0; 1 << 10];
        sorted.iter().for_each(|word| filter[(word & 0xffff) as usize / 64] |= 1 << (word % 64));
        Self { sorted, filter }
    }

    fn has(&self, word: u64) -> bool {
        self.filter[(word & 0xffff) as usize / 64] >> (word % 64) & 1 == 1 && self.sorted.binary_search(&word).is_ok()
    }

    /// Whether a block has one of the words, at any byte of it if that is short, and at any multiple of 4 otherwise.
    ///
    /// # Safety
    /// The block can be read.
    unsafe fn are_in(&self, block: *const u8, bytes: usize) -> bool {
        let step = if bytes < 1 << 12 { 1 } else { 4 };
        let word = |at: usize| {
            // SAFETY: inside the block. What was never written may be anything.
            unsafe { block.add(at).cast::<u64>().read_unaligned() }
        };
        (0..(bytes + 1).saturating_sub(WORD)).step_by(step).any(|at| self.has(hint::black_box(word(at))))
    }
}

// SAFETY: blocks are the system's, and are read only before they go back.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let clean = CLEAN.load(Ordering::Relaxed);
        // SAFETY: as the caller vouches.
        unsafe { if clean { System.alloc_zeroed(layout) } else { System.alloc(layout) } }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller vouches.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if !WORDS.load(Ordering::Relaxed).is_null() {
            READERS.fetch_add(1, Ordering::SeqCst);
            // SAFETY: it stays as long as there are readers.
            if let Some(words) = unsafe { WORDS.load(Ordering::SeqCst).as_ref() } {
                // SAFETY: the block has `layout.size()` bytes until it is freed.
                if unsafe { words.are_in(block, layout.size()) } {
                    tell(layout.size());
                }
            }
            READERS.fetch_sub(1, Ordering::SeqCst);
        }
        // SAFETY: as the caller vouches.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        if !CLEAN.load(Ordering::Relaxed) {
            // SAFETY: as the caller vouches.
            return unsafe { System.realloc(block, layout, bytes) };
        }
        // SAFETY: as the caller vouches, the size is not 0 and does not overflow.
        let new = unsafe { System.alloc_zeroed(Layout::from_size_align_unchecked(bytes, layout.align())) };
        if !new.is_null() {
            // SAFETY: both blocks have the copied bytes, and the old block is freed once.
            unsafe {
                new.copy_from_nonoverlapping(block, layout.size().min(bytes));
                self.dealloc(block, layout);
            }
        }
        new
    }
}

fn tell(bytes: usize) {
    if TELLS.replace(true) {
        return;
    }
    let mut found = FOUND.lock().unwrap_or_else(PoisonError::into_inner);
    if found.len() < MOST {
        found.push(format!("{bytes} bytes, at\n{}", Backtrace::force_capture()));
    }
    drop(found);
    TELLS.set(false);
}

/// Has all memory zeroed as it is allocated, from now on: to be called before secrets are made that are looked for
/// later.
pub(crate) fn keep_clean() {
    CLEAN.store(true, Ordering::SeqCst);
}

/// Bytes of the stack that are zeroed before a watch: more than calls go down, and less than a thread has.
const STACK: usize = 256 << 10;

/// Zeroes what earlier calls left of a stack. A value that is moved to the heap takes bytes with it that nobody wrote,
/// such as those of a kernel that is not compiled yet.
#[inline(never)]
fn clear_stack() {
    let mut stack = [0_u8; STACK];
    hint::black_box(&mut stack);
}

/// Does work, and gives what was freed meanwhile with any of these words in it, as text. What the work gives is not
/// freed.
pub(crate) fn watch<T>(words: &[[u8; WORD]], work: impl FnOnce() -> T) -> (T, Vec<String>) {
    let words = Box::into_raw(Box::new(Words::new(words)));
    WORDS.store(words, Ordering::SeqCst);
    clear_stack();
    let result = work();
    WORDS.store(ptr::null_mut(), Ordering::SeqCst);
    while READERS.load(Ordering::SeqCst) > 0 {
        thread::yield_now();
    }
    // SAFETY: made above, and nobody reads it any more.
    drop(unsafe { Box::from_raw(words) });
    (result, mem::take(&mut FOUND.lock().unwrap_or_else(PoisonError::into_inner)))
}

/// Whether the program's allocator is [`Heap`]: else nothing is ever found.
pub(crate) fn is_watched() -> bool {
    keep_clean();
    let word = 0x9e37_79b9_7f4a_7c15_u64.to_le_bytes();
    let (_, found) = watch(&[word], || drop(hint::black_box(word.to_vec())));
    !found.is_empty()
}
