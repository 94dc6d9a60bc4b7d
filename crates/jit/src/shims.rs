//! The functions that machine code calls ([`crate::calls`], [`crate::preserving`]), with their signatures.

use crate::{calls, preserving};
use cranelift_codegen::ir::types::I64;
use cranelift_codegen::ir::{AbiParam, Signature};
use cranelift_codegen::isa::CallConv;

macro_rules! shims {
    ($($name:ident = $module:ident::$function:ident($params:literal) -> $results:literal,)*) => {
        /// A function that machine code can call.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(usize)]
        pub(crate) enum Shim {
            $(
                #[doc = concat!("[`", stringify!($module), "::", stringify!($function), "`].")]
                $name,
            )*
        }

        impl Shim {
            /// All of them, in order of their numbers.
            pub const ALL: &[Shim] = &[$(Shim::$name),*];

            /// Returns the symbol of the shim's function.
            pub fn symbol(self) -> &'static str {
                match self {
                    $(Shim::$name => stringify!($function),)*
                }
            }

            /// Returns the address of the shim's function.
            pub fn address(self) -> *const u8 {
                match self {
                    $(Shim::$name => $module::$function as *const u8,)*
                }
            }

            /// Returns the number of the function's parameters and the number of its results, each of which is a word.
            fn words(self) -> (usize, usize) {
                match self {
                    $(Shim::$name => ($params, $results),)*
                }
            }
        }
    };
}

shims! {
    Lookup = calls::lookup(4) -> 2,
    LookupWord = calls::lookup_word(3) -> 2,
    LookupPacked = calls::lookup_packed(4) -> 2,
    Find = preserving::find(5) -> 0,
    FindWord = preserving::find_word(4) -> 0,
    RegisterCell = calls::register_cell(3) -> 1,
    RegisterReadWord = calls::register_read_word(3) -> 1,
    RegisterWrite = calls::register_write(5) -> 0,
    RegisterWriteWord = calls::register_write_word(4) -> 0,
    Count = calls::count(3) -> 0,
    MeterExecute = calls::meter_execute(3) -> 1,
    DirectMeterRead = calls::direct_meter_read(2) -> 1,
    Random = calls::random(3) -> 1,
    Digest = calls::digest(4) -> 0,
    ValueSetContains = calls::value_set_contains(4) -> 1,
    Hash = calls::hash_bytes(7) -> 0,
    Binary = calls::binary(6) -> 0,
    ReadBits = calls::read_bits(5) -> 0,
    AppendBits = calls::append_bits(4) -> 0,
    Reserve = calls::reserve(3) -> 1,
    Replicas = calls::replicas(2) -> 2,
    ReplicaRoom = calls::replica_room(5) -> 1,
    ReplicaOfEmitted = calls::replica_of_emitted(4) -> 0,
}

impl Shim {
    /// Returns true if the function reads the packet or its length from the frame.
    pub fn reads_packet(self) -> bool {
        matches!(
            self,
            Shim::Lookup
                | Shim::LookupWord
                | Shim::LookupPacked
                | Shim::Find
                | Shim::FindWord
                | Shim::Count
                | Shim::MeterExecute
                | Shim::Hash
        )
    }

    /// Returns the function's signature for code whose own calling convention is `call_conv`.
    pub fn signature(self, call_conv: CallConv) -> Signature {
        let (params, results) = self.words();
        let call_conv = match self {
            Shim::Find | Shim::FindWord => preserving::call_conv(call_conv),
            _ => call_conv,
        };
        let mut signature = Signature::new(call_conv);
        signature.params = vec![AbiParam::new(I64); params];
        signature.returns = vec![AbiParam::new(I64); results];
        signature
    }
}
