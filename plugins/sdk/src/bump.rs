//! A bump allocator over the instance's own linear memory.
//!
//! Freeing is a no-op except for the last allocation, which can grow or be freed in place: that
//! covers pushing to a `Vec`.

#![expect(unsafe_code, reason = "an allocator is made of raw memory")]

use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;

const PAGE: usize = 65_536;

unsafe extern "C" {
    /// Set by the linker: the first byte after the stack and the static data.
    static __heap_base: u8;
}

struct BumpAllocator {
    /// The first free byte; 0 before the first allocation.
    next: Cell<usize>,
}

// SAFETY: wasm32-unknown-unknown without the threads proposal has one thread.
unsafe impl Sync for BumpAllocator {}

#[global_allocator]
static ALLOCATOR: BumpAllocator = BumpAllocator { next: Cell::new(0) };

impl BumpAllocator {
    fn next(&self) -> usize {
        match self.next.get() {
            // A static cannot have the linker's address as its value, so 0 stands for it.
            0 => &raw const __heap_base as usize,
            next => next,
        }
    }

    /// Moves the end to `end`, growing the memory if necessary.
    fn move_to(&self, end: usize) -> bool {
        // The memory only grows: the host resets it after the call, so giving pages back gains nothing.
        let have = core::arch::wasm32::memory_size(0) * PAGE;
        if end > have {
            let pages = (end - have).div_ceil(PAGE);
            if core::arch::wasm32::memory_grow(0, pages) == usize::MAX {
                return false;
            }
        }

        self.next.set(end);
        true
    }
}

// SAFETY: every block lies between `__heap_base` and the end of the memory,
// aligned as asked, and no two live blocks overlap because `next` only moves
// back over the last one.
unsafe impl GlobalAlloc for BumpAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let start = self.next().next_multiple_of(layout.align());
        match start.checked_add(layout.size()) {
            Some(end) if self.move_to(end) => start as *mut u8,
            _ => std::ptr::null_mut(),
        }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if block as usize + layout.size() == self.next.get() {
            self.next.set(block as usize);
        }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        let start = block as usize;
        if start + layout.size() == self.next.get() {
            return match start.checked_add(new_size) {
                Some(end) if self.move_to(end) => block,
                _ => std::ptr::null_mut(),
            };
        }
        // A block in the middle shrinks in place, as its end cannot be used.
        if new_size <= layout.size() {
            return block;
        }

        // SAFETY: the caller's layout was valid, and so is it with a larger size.
        unsafe {
            let new = self.alloc(Layout::from_size_align_unchecked(new_size, layout.align()));
            if !new.is_null() {
                std::ptr::copy_nonoverlapping(block, new, layout.size());
            }
            new
        }
    }
}
