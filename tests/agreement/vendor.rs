//! The library that the calls are made to, found as a program would find it.

use aclshim_facts::Function;
use aclshim_facts::abi::{Word, aclrtMemcpyBatchAttr, aclrtMemcpyKind, aclrtStream};
use libloading::Library;
use std::ffi::{CString, c_char, c_void};

/// Everything that is called, each by its address.
pub struct Vendor {
    copies: Vec<Option<usize>>,
    pub manage: Management,
}

macro_rules! management {
    ($(fn $name:ident($($type:ty),*) -> $result:ty;)*) => {
        /// What is needed to make memory, contexts, streams and captures.
        #[allow(non_snake_case)]
        pub struct Management {
            $(pub $name: unsafe extern "C" fn($($type),*) -> $result),*
        }

        impl Management {
            fn load(library: &Library) -> Self {
                Self {
                    // SAFETY: the declarations of the vendor's header, as the macro's caller wrote them.
                    $($name: unsafe { *library.get(stringify!($name)).expect(stringify!($name)) }),*
                }
            }
        }
    };
}

management! {
    fn aclrtSetDevice(i32) -> i32;
    fn aclrtCreateContext(*mut usize, i32) -> i32;
    fn aclrtGetCurrentContext(*mut usize) -> i32;
    fn aclrtSetCurrentContext(usize) -> i32;
    fn aclrtCtxGetCurrentDefaultStream(*mut usize) -> i32;
    fn aclrtCreateStream(*mut usize) -> i32;
    fn aclrtDestroyStream(usize) -> i32;
    fn aclrtSynchronizeStream(usize) -> i32;
    fn aclrtMallocWithCfg(*mut usize, usize, i32, *const c_void) -> i32;
    fn aclrtFree(usize) -> i32;
    fn aclrtMallocHost(*mut usize, usize) -> i32;
    fn aclrtMemAllocManaged(*mut usize, u64, u32) -> i32;
    fn aclrtHostRegister(usize, u64, i32, *mut usize) -> i32;
    fn aclmdlRICaptureBegin(usize, i32) -> i32;
    fn aclmdlRICaptureEnd(usize, *mut usize) -> i32;
    fn aclmdlRIDestroy(usize) -> i32;
    fn aclmdlRICaptureThreadExchangeMode(*mut i32) -> i32;
    fn ascendclSimRegisterSymbol(usize, usize) -> i32;
    fn ascendclSimCalls(*const c_char) -> u64;
}

impl Vendor {
    /// Opens the library; it stays for the life of the process.
    pub fn load() -> &'static Self {
        // SAFETY: the simulated library's constructors do nothing that could hurt.
        let library = unsafe { Library::new("libascendcl.so") }.expect("the simulated library");
        let find = |function: &Function| {
            // SAFETY: only the address is taken here.
            let found = unsafe { library.get::<*mut c_void>(function.row().name) };
            found.ok().map(|symbol| *symbol as usize)
        };
        let copies = Function::ALL.iter().map(find).collect();
        let manage = Management::load(&library);
        std::mem::forget(library);
        Box::leak(Box::new(Self { copies, manage }))
    }

    /// The functions that this library has.
    pub fn functions(&self) -> Vec<Function> {
        Function::ALL.iter().copied().filter(|function| self.copies[*function as usize].is_some()).collect()
    }

    /// How often the function has been entered behind whatever stands in front of it.
    pub fn reached(&self, function: Function) -> u64 {
        let name = CString::new(function.row().name).expect("a name");
        // SAFETY: a C string.
        unsafe { (self.manage.ascendclSimCalls)(name.as_ptr()) }
    }
}

macro_rules! calls {
    ($(#[doc = $doc:literal] fn $name:ident($($arg:ident: $type:ty),* $(,)?) => $role:expr $(, $support:ident)?;)*) => {
        impl Vendor {
            /// Calls the function with these words as its arguments.
            ///
            /// # Safety
            /// The vendor must be able to return from this call: see `resolve::tame`.
            #[allow(non_snake_case)]
            pub unsafe fn call(&self, function: Function, words: &[u64]) -> i32 {
                let address = self.copies[function as usize].expect("a function that this library has");
                let mut words = words.iter().copied();
                match function {
                    $(Function::$name => {
                        // SAFETY: the address of the function of that name, and the row's signature.
                        let function = unsafe {
                            std::mem::transmute::<usize, unsafe extern "C-unwind" fn($($type),*) -> i32>(address)
                        };
                        $(let $arg: $type = Word::from_word(words.next().unwrap_or_default());)*
                        // SAFETY: the caller's promise.
                        unsafe { function($($arg),*) }
                    })*
                }
            }
        }
    };
}
aclshim_facts::api!(calls);
