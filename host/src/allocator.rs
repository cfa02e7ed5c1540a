//! The allocator of the program. A request makes hundreds of small allocations on several threads, which jemalloc
//! serves faster than the system's allocator (docs/decisions/0051).

use std::ptr::null_mut;

use tikv_jemalloc_sys::mallctl;
use tikv_jemallocator::Jemalloc;

#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

/// Gives freed memory back to the system after ten seconds, also while nothing is allocated. Threads of the allocator
/// do that, so programs that run for a moment, or have to be single-threaded, do without.
#[expect(unsafe_code, reason = "no maintained wrapper sets this option")]
pub fn give_memory_back() {
    let mut enabled = true;
    // SAFETY: the name ends with a zero byte, and the option is one `bool`, which outlives the call.
    let refused = unsafe {
        mallctl(
            c"background_thread".as_ptr(),
            null_mut(),
            null_mut(),
            (&raw mut enabled).cast(),
            size_of::<bool>(),
        )
    };

    // A refusal costs memory and nothing else, so the server starts anyway.
    if refused != 0 {
        tracing::debug!("freed memory is given back when memory is allocated: error {refused}");
    }
}
