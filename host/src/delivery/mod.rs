//! What goes out to addresses that other people chose.
//!
//! | File | Does |
//! |---|---|
//! | `guard` | which addresses may be connected to |
//! | `sender` | one attempt of a webhook delivery |
//! | `signature` | what it is signed with |
//! | `schedule`, `breaker` | when it is attempted again, as pure functions |
//! | `dispatcher` | which delivery is next, of all that are due |
//! | `lane` | what one node has in hand for one endpoint |
//! | `recorder` | what attempts came to, written down |
//! | `node` | who holds an endpoint |

pub mod breaker;
mod dispatcher;
pub mod guard;
mod lane;
mod recorder;
pub mod schedule;
pub mod sender;
pub mod signature;

pub use dispatcher::run;
