//! How values lie in linear memory, by the component model's canonical ABI.
//!
//! `Store` is for what the program gives the host, `Load` for what the host gives the program. The generated bindings
//! implement both for the contract's types; here are the types that need no name. Enums are bytes, text is UTF-8.

use std::alloc::{alloc, dealloc, handle_alloc_error, realloc, Layout};

/// Size and alignment in linear memory, in bytes.
pub trait Abi {
    const SIZE: usize;
    const ALIGN: usize;
}

/// What can be given to the host.
pub trait Store: Abi {
    /// Writes the value to `at`. What it refers to stays where it is, or is put into the arena.
    ///
    /// # Safety
    /// `SIZE` bytes at `at` can be written, and `at` is aligned.
    unsafe fn store(&self, at: *mut u8, arena: &mut Arena);

    /// The address of a list of such values.
    fn list(items: &[Self], arena: &mut Arena) -> *const u8
    where
        Self: Sized,
    {
        let begin = arena.take(items.len() * Self::SIZE);
        for (index, item) in items.iter().enumerate() {
            // SAFETY: the arena has given room for all of them.
            unsafe { item.store(begin.add(index * Self::SIZE), arena) };
        }
        begin
    }
}

/// What the host can give.
pub trait Load: Abi + Sized {
    /// Reads a value, and takes over all that belongs to it.
    ///
    /// # Safety
    /// The host has written such a value to `at`, and nobody has read it yet.
    unsafe fn load(at: *const u8) -> Self;

    /// Reads a list of such values, and frees the block that it lies in.
    ///
    /// # Safety
    /// As for `load`, of `length` values at `begin`.
    unsafe fn load_list(begin: *mut u8, length: usize) -> Vec<Self> {
        let items = (0..length).map(|index| Self::load(begin.add(index * Self::SIZE))).collect();
        free(begin, length * Self::SIZE, Self::ALIGN);
        items
    }
}

/// Blocks of memory that live as long as a call.
#[derive(Default)]
pub struct Arena {
    blocks: Vec<Vec<u64>>,
}

impl Arena {
    /// A block of so many bytes, aligned to 8.
    pub fn take(&mut self, size: usize) -> *mut u8 {
        let mut block = vec![0u64; size.div_ceil(8)];
        let begin = block.as_mut_ptr().cast();
        self.blocks.push(block);
        begin
    }
}

/// Where the host writes a result.
pub struct Area<const WORDS: usize>(pub [u64; WORDS]);

impl<const WORDS: usize> Area<WORDS> {
    pub fn at(&mut self) -> *mut u8 {
        self.0.as_mut_ptr().cast()
    }
}

macro_rules! plain {
    ($($kind:ty),*) => {$(
        impl Abi for $kind {
            const SIZE: usize = std::mem::size_of::<$kind>();
            const ALIGN: usize = std::mem::align_of::<$kind>();
        }
        impl Store for $kind {
            unsafe fn store(&self, at: *mut u8, _arena: &mut Arena) {
                at.cast::<$kind>().write(*self);
            }
            fn list(items: &[Self], _arena: &mut Arena) -> *const u8 {
                items.as_ptr().cast()
            }
        }
        impl Load for $kind {
            unsafe fn load(at: *const u8) -> Self {
                at.cast::<$kind>().read()
            }
            unsafe fn load_list(begin: *mut u8, length: usize) -> Vec<Self> {
                if length == 0 {
                    return Vec::new();
                }
                Vec::from_raw_parts(begin.cast(), length, length)
            }
        }
    )*};
}
plain!(u8, u32, u64, f32);

impl Abi for bool {
    const SIZE: usize = 1;
    const ALIGN: usize = 1;
}
impl Store for bool {
    unsafe fn store(&self, at: *mut u8, _arena: &mut Arena) {
        at.write(u8::from(*self));
    }
}
impl Load for bool {
    unsafe fn load(at: *const u8) -> Self {
        at.read() != 0
    }
}

impl Abi for () {
    const SIZE: usize = 0;
    const ALIGN: usize = 1;
}
impl Store for () {
    unsafe fn store(&self, _at: *mut u8, _arena: &mut Arena) {}
}
impl Load for () {
    unsafe fn load(_at: *const u8) -> Self {}
}

impl Abi for str {
    const SIZE: usize = 2 * POINTER;
    const ALIGN: usize = POINTER;
}
impl Store for str {
    unsafe fn store(&self, at: *mut u8, _arena: &mut Arena) {
        store_slice(at, self.as_ptr(), self.len());
    }
}
impl Abi for String {
    const SIZE: usize = 2 * POINTER;
    const ALIGN: usize = POINTER;
}
impl Store for String {
    unsafe fn store(&self, at: *mut u8, arena: &mut Arena) {
        self.as_str().store(at, arena);
    }
}
impl Load for String {
    unsafe fn load(at: *const u8) -> Self {
        String::from_utf8_unchecked(Vec::load(at))
    }
}

impl<T> Abi for [T] {
    const SIZE: usize = 2 * POINTER;
    const ALIGN: usize = POINTER;
}
impl<T: Store> Store for [T] {
    unsafe fn store(&self, at: *mut u8, arena: &mut Arena) {
        store_slice(at, T::list(self, arena), self.len());
    }
}
impl<T> Abi for Vec<T> {
    const SIZE: usize = 2 * POINTER;
    const ALIGN: usize = POINTER;
}
impl<T: Store> Store for Vec<T> {
    unsafe fn store(&self, at: *mut u8, arena: &mut Arena) {
        self.as_slice().store(at, arena);
    }
}
impl<T: Load> Load for Vec<T> {
    unsafe fn load(at: *const u8) -> Self {
        let [begin, length] = at.cast::<[usize; 2]>().read();
        T::load_list(begin as *mut u8, length)
    }
}

impl<T: Abi> Abi for Option<T> {
    const SIZE: usize = round_up(T::ALIGN + T::SIZE, T::ALIGN);
    const ALIGN: usize = T::ALIGN;
}
impl<T: Store> Store for Option<T> {
    unsafe fn store(&self, at: *mut u8, arena: &mut Arena) {
        at.write(u8::from(self.is_some()));
        if let Some(value) = self {
            value.store(at.add(T::ALIGN), arena);
        }
    }
}
impl<T: Load> Load for Option<T> {
    unsafe fn load(at: *const u8) -> Self {
        (at.read() != 0).then(|| T::load(at.add(T::ALIGN)))
    }
}

impl<T: Abi, E: Abi> Abi for Result<T, E> {
    const SIZE: usize = round_up(Self::ALIGN + max(T::SIZE, E::SIZE), Self::ALIGN);
    const ALIGN: usize = max(T::ALIGN, E::ALIGN);
}
impl<T: Store, E: Store> Store for Result<T, E> {
    unsafe fn store(&self, at: *mut u8, arena: &mut Arena) {
        at.write(u8::from(self.is_err()));
        match self {
            Ok(value) => value.store(at.add(Self::ALIGN), arena),
            Err(error) => error.store(at.add(Self::ALIGN), arena),
        }
    }
}
impl<T: Load, E: Load> Load for Result<T, E> {
    unsafe fn load(at: *const u8) -> Self {
        match at.read() {
            0 => Ok(T::load(at.add(Self::ALIGN))),
            _ => Err(E::load(at.add(Self::ALIGN))),
        }
    }
}

impl<A: Abi, B: Abi> Abi for (A, B) {
    const SIZE: usize = round_up(round_up(A::SIZE, B::ALIGN) + B::SIZE, Self::ALIGN);
    const ALIGN: usize = max(A::ALIGN, B::ALIGN);
}
impl<A: Store, B: Store> Store for (A, B) {
    unsafe fn store(&self, at: *mut u8, arena: &mut Arena) {
        self.0.store(at, arena);
        self.1.store(at.add(round_up(A::SIZE, B::ALIGN)), arena);
    }
}
impl<A: Load, B: Load> Load for (A, B) {
    unsafe fn load(at: *const u8) -> Self {
        (A::load(at), B::load(at.add(round_up(A::SIZE, B::ALIGN))))
    }
}

const POINTER: usize = std::mem::size_of::<usize>();

const fn max(one: usize, other: usize) -> usize {
    if one > other {
        one
    } else {
        other
    }
}

const fn round_up(size: usize, align: usize) -> usize {
    size.div_ceil(align) * align
}

unsafe fn store_slice(at: *mut u8, begin: *const u8, length: usize) {
    at.cast::<[usize; 2]>().write([begin as usize, length]);
}

unsafe fn free(begin: *mut u8, size: usize, align: usize) {
    if size > 0 {
        dealloc(begin, Layout::from_size_align_unchecked(size, align));
    }
}

/// Memory for what the host passes to the program; a part of the canonical ABI.
///
/// # Safety
/// The host calls it, with what it has got from it.
#[cfg(target_family = "wasm")]
#[no_mangle]
unsafe extern "C" fn cabi_realloc(old: *mut u8, old_size: usize, align: usize, size: usize) -> *mut u8 {
    if size == 0 {
        return align as *mut u8;
    }
    let layout = Layout::from_size_align_unchecked(size, align);
    let block = if old_size == 0 {
        alloc(layout)
    } else {
        realloc(old, Layout::from_size_align_unchecked(old_size, align), size)
    };
    if block.is_null() {
        handle_alloc_error(layout);
    }
    block
}
