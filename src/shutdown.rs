//! The end of the program.

use crate::guest::edge;
use crate::ring::process;
use crate::{drain, harness};

/// Our own end, which comes after what the program has for its end.
#[used]
#[unsafe(link_section = ".fini_array")]
static AT_END: extern "C" fn() = at_end;

#[unsafe(link_section = ".text.startup")]
extern "C" fn at_end() {
    edge::preserving_errno(|| {
        harness::at_exit();
        drain::finish();
        process::log_missed();
    });
}
