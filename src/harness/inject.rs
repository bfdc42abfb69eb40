//! Injections of a scope.

use super::aclshim_error::{self, *};
use super::aclshim_scope;
use super::desk;
use super::text::Given;

/// Sets injections for the calls that a scope sees; how many.
pub fn set(scope: aclshim_scope, _given: &Given<'_>) -> Result<i64, aclshim_error> {
    desk::with(|state| state.scope(scope).map(|_| ()))??;
    Err(ACLSHIM_REFUSED)
}

/// How often one of them has struck.
pub fn struck(scope: aclshim_scope) -> Result<i64, aclshim_error> {
    desk::with(|state| state.scope(scope).map(|_| ()))??;
    Ok(0)
}
