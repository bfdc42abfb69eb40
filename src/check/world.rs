//! What this process knows of the product, the form and the release that serve it.
//!
//! Set by settings, or asked of the real library after its first copy; a few words that any thread may read.

use crate::settings::settings;
use aclshim_facts::call::Call;
use aclshim_facts::product::{PRODUCTS, Product, Version};
use aclshim_facts::world::{RunMode, Stream, World};
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

/// Which of [`PRODUCTS`], from 1 on; 0 is none.
#[unsafe(link_section = ".bss.startup")]
static PRODUCT: AtomicUsize = AtomicUsize::new(0);
/// The number of the [`RunMode`]; 0 is unknown.
#[unsafe(link_section = ".bss.startup")]
static FORM: AtomicU32 = AtomicU32::new(0);
/// The first number in the upper half, the second in the lower; 0 unknown.
#[unsafe(link_section = ".bss.startup")]
static CANN: AtomicU32 = AtomicU32::new(0);

/// Takes over what the settings say.
pub fn read() {
    let settings = settings();
    // Where nothing is set, nothing is touched: each page that is costs a program a microsecond or two at its start.
    if !settings.soc.as_bytes().is_empty() {
        set_product(settings.soc.as_bytes());
    }
    if !settings.cann.as_bytes().is_empty() {
        set_cann(settings.cann.as_bytes());
    }
    set_form(settings.form.run_mode());
}

/// Takes over what the real library reports of itself; a setting comes first.
pub fn set_reported(product: &[u8], cann: &[u8], form: Option<RunMode>) {
    let settings = settings();
    if settings.soc.as_bytes().is_empty() {
        set_product(product);
    }
    if settings.cann.as_bytes().is_empty() {
        set_cann(cann);
    }
    if settings.form.run_mode().is_none() {
        set_form(form);
    }
}

/// A SoC name; an unknown one leaves things as they are.
fn set_product(soc: &[u8]) {
    let product = core::str::from_utf8(soc).ok().and_then(Product::of);
    if let Some(at) = PRODUCTS.iter().position(|known| Some(known) == product) {
        PRODUCT.store(at + 1, Ordering::Relaxed);
    }
}

/// A release as text; nonsense leaves things as they are.
fn set_cann(text: &[u8]) {
    if let Some(version) = core::str::from_utf8(text).ok().and_then(Version::parse) {
        CANN.store(u32::from(version.major) << 16 | u32::from(version.minor), Ordering::Relaxed);
    }
}

/// A form; `None` leaves the one that is known.
fn set_form(form: Option<RunMode>) {
    if let Some(form) = form {
        FORM.store(form as u32, Ordering::Relaxed);
    }
}

/// Product, form and release as numbers, to see whether more has become known since.
pub fn snapshot() -> [usize; 3] {
    let [form, cann] = [&FORM, &CANN].map(|of| of.load(Ordering::Relaxed) as usize);
    [PRODUCT.load(Ordering::Relaxed), form, cann]
}

/// The world of a call: product, form and release, and of its stream whether it is the default one.
pub fn of(call: &Call) -> World<'static> {
    let cann = CANN.load(Ordering::Relaxed);
    World {
        product: PRODUCT.load(Ordering::Relaxed).checked_sub(1).and_then(|at| PRODUCTS.get(at)),
        run_mode: RunMode::from_number(FORM.load(Ordering::Relaxed)),
        cann: (cann != 0).then_some(Version { major: (cann >> 16) as u16, minor: cann as u16 }),
        stream: if call.stream.is_some_and(|stream| stream.is_null()) { Stream::Default } else { Stream::Unknown },
        ..World::UNKNOWN
    }
}
