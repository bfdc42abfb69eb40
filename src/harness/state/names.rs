//! Names that the program has given to streams and buffers, and the modules that calls come from.
//!
//! A name holds from the moment on at which it was given: memory may be freed, and another have its place.

use aclshim_collect::findings::modules::{Modules, Site};
use aclshim_facts::selector;
use aclshim_golden::{Name, NamedObject};
use aclshim_trace::system::clock::monotonic_ns;
use core::cell::RefCell;

/// All names, in the order in which they were given.
#[derive(Default)]
pub struct Names {
    /// An empty one takes an earlier one away.
    given: Vec<Name>,
    /// What the system says of this process's memory, where that was asked.
    modules: RefCell<Option<Modules>>,
}

impl Names {
    /// Forgets all names of this. Only where no call is left that could be asked for by a former name, and before it is given
    /// another one, if only an empty one.
    pub fn forget(&mut self, named: NamedObject) {
        self.given.retain(|name| name.named != named);
    }

    /// Names something; an empty name takes the name back.
    pub fn give(&mut self, named: NamedObject, name: &str) {
        self.given.push(Name { at: monotonic_ns(), named, name: name.to_owned() });
    }

    /// All of them.
    pub fn given(&self) -> &[Name] {
        &self.given
    }

    /// Forgets the modules: others may have come.
    pub fn forget_modules(&mut self) {
        self.modules.take();
    }

    /// The names that held at a moment.
    pub fn at(&self, at: u64) -> NamesAt<'_> {
        NamesAt { names: self, at }
    }

    /// Where an address lies. From `/proc`: the loader's lock is not ours to wait for.
    pub fn site(&self, address: u64) -> Option<Site> {
        self.modules.borrow_mut().get_or_insert_with(|| Modules::of("self")).site(address)
    }
}

/// The names that held at a moment.
pub struct NamesAt<'a> {
    names: &'a Names,
    at: u64,
}

impl<'a> NamesAt<'a> {
    fn last(&self, is_it: impl Fn(&NamedObject) -> bool) -> Option<&'a Name> {
        let held = self.names.given.iter().rev().find(|name| name.at <= self.at && is_it(&name.named));
        held.filter(|name| !name.name.is_empty())
    }

    /// The name of a stream.
    pub fn of_stream(&self, stream: u64) -> Option<&'a str> {
        let found = self.last(|named| *named == NamedObject::Stream(stream));
        found.map(|name| name.name.as_str())
    }

    /// The name of the memory that an address lies in, and how far behind its begin.
    pub fn of_address(&self, address: u64) -> Option<(&'a str, u64)> {
        let offset = |named: &NamedObject| match *named {
            NamedObject::Buffer { begin, size } => address.checked_sub(begin).filter(|offset| *offset < size),
            NamedObject::Stream(_) => None,
        };
        let found = self.last(|named| offset(named).is_some())?;
        Some((&found.name, offset(&found.named)?))
    }
}

impl selector::Names for NamesAt<'_> {
    fn stream(&self, stream: u64, is: &mut dyn FnMut(&[u8]) -> bool) -> bool {
        self.of_stream(stream).is_some_and(|name| is(name.as_bytes()))
    }

    fn buffer(&self, address: u64, is: &mut dyn FnMut(&[u8]) -> bool) -> bool {
        self.of_address(address).is_some_and(|(name, _)| is(name.as_bytes()))
    }

    fn module(&self, address: u64, is: &mut dyn FnMut(&[u8], u64) -> bool) -> bool {
        self.names.site(address).is_some_and(|site| is(site.module.as_bytes(), site.offset))
    }
}
