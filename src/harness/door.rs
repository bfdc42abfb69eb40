//! What stands behind the members of the table.

use super::aclshim_error::*;
use super::{aclshim_call, aclshim_finding, aclshim_item, aclshim_scope};
use crate::boot::{Standing, standing};
use core::ffi::{c_char, c_int, c_void};

pub extern "C" fn active() -> c_int {
    crate::edge::kept(|| c_int::from(standing() == Standing::Active)).unwrap_or(0)
}

pub unsafe extern "C" fn scope_begin(_name: *const c_char, _reach: c_int) -> aclshim_scope {
    ACLSHIM_OFF as i64
}
pub extern "C" fn scope_end(_scope: aclshim_scope) -> i64 {
    ACLSHIM_OFF as i64
}
pub unsafe extern "C" fn count(_scope: aclshim_scope, _selector: *const c_char) -> i64 {
    ACLSHIM_OFF as i64
}
pub unsafe extern "C" fn bytes(_scope: aclshim_scope, _selector: *const c_char) -> i64 {
    ACLSHIM_OFF as i64
}
pub unsafe extern "C" fn calls(
    _scope: aclshim_scope,
    _selector: *const c_char,
    _calls: *mut aclshim_call,
    _size: usize,
    _room: usize,
) -> i64 {
    ACLSHIM_OFF as i64
}
pub unsafe extern "C" fn items(
    _scope: aclshim_scope,
    _order: u64,
    _items: *mut aclshim_item,
    _size: usize,
    _room: usize,
) -> i64 {
    ACLSHIM_OFF as i64
}
pub unsafe extern "C" fn findings(
    _scope: aclshim_scope,
    _rule: *const c_char,
    _findings: *mut aclshim_finding,
    _size: usize,
    _room: usize,
) -> i64 {
    ACLSHIM_OFF as i64
}
pub unsafe extern "C" fn expect_calls(
    _scope: aclshim_scope,
    _selector: *const c_char,
    _at_least: u64,
    _at_most: u64,
) -> i64 {
    ACLSHIM_OFF as i64
}
pub unsafe extern "C" fn expect_bytes(
    _scope: aclshim_scope,
    _selector: *const c_char,
    _at_least: u64,
    _at_most: u64,
) -> i64 {
    ACLSHIM_OFF as i64
}
pub unsafe extern "C" fn expect_order(_scope: aclshim_scope, _stream: *const c_void, _selectors: *const c_char) -> i64 {
    ACLSHIM_OFF as i64
}
pub unsafe extern "C" fn expect_finding(_scope: aclshim_scope, _rule: *const c_char, _count: u64) -> i64 {
    ACLSHIM_OFF as i64
}
pub extern "C" fn expect_clean(_scope: aclshim_scope, _severity: c_int) -> i64 {
    ACLSHIM_OFF as i64
}
pub unsafe extern "C" fn expect_golden(_scope: aclshim_scope, _path: *const c_char) -> i64 {
    ACLSHIM_OFF as i64
}
pub unsafe extern "C" fn inject(_scope: aclshim_scope, _injections: *const c_char) -> i64 {
    ACLSHIM_OFF as i64
}
pub extern "C" fn injected(_scope: aclshim_scope) -> i64 {
    ACLSHIM_OFF as i64
}
pub unsafe extern "C" fn mark(_text: *const c_char) -> i64 {
    ACLSHIM_OFF as i64
}
pub unsafe extern "C" fn name_stream(_stream: *const c_void, _name: *const c_char) -> i64 {
    ACLSHIM_OFF as i64
}
pub unsafe extern "C" fn name_buffer(_begin: *const c_void, _size: usize, _name: *const c_char) -> i64 {
    ACLSHIM_OFF as i64
}
pub extern "C" fn failures() -> i64 {
    ACLSHIM_OFF as i64
}
pub extern "C" fn fail_exit(_status: c_int) -> i64 {
    ACLSHIM_OFF as i64
}
