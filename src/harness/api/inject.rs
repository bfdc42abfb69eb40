//! Injections of a scope; [`crate::inject`] applies them.

use super::text::CallerText;
use crate::guest::log;
use crate::harness::aclshim_error::{self, *};
use crate::harness::aclshim_scope;
use crate::harness::state::{self, access};
use crate::inject::{self, Refused};

/// Sets injections for the calls that a scope sees; how many.
pub fn set(scope: aclshim_scope, given: &CallerText<'_>) -> Result<i64, aclshim_error> {
    let set = access::with(|state| {
        let reach = match state.scope(scope)?.reach {
            state::Reach::Thread => inject::Reach::ThisThread,
            state::Reach::Process => inject::Reach::WholeProcess,
        };
        Ok(inject::add(scope as u64, reach, given.bytes()))
    })??;
    let refused = match set {
        Ok(count) => return Ok(count as i64),
        Err(refused) => refused,
    };
    Err(match refused {
        Refused::Nonsense(nonsense) => {
            log::print_line(format_args!("an injection makes no sense: {}", nonsense.in_text(given.bytes())));
            ACLSHIM_NONSENSE
        }
        Refused::Room | Refused::Memory => ACLSHIM_MEMORY,
        Refused::Production => {
            log::print_line(format_args!("an injection is refused, because ACLSHIM_PRESET=production"));
            ACLSHIM_REFUSED
        }
    })
}

/// Number of calls that the injections of a scope have changed.
pub fn injected(scope: aclshim_scope) -> Result<i64, aclshim_error> {
    access::with(|state| state.scope(scope).map(|_| ()))??;
    Ok(i64::try_from(inject::injected(scope as u64)).unwrap_or(i64::MAX))
}
