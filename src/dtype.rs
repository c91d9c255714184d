//! Element types and reductions: their numbers, names and which goes with which.

use std::ffi::CStr;

/// One row of a table: the variant, its number in ring.h, its name, and for a dtype its size.
macro_rules! numbered {
    ($(#[$doc:meta])* $name:ident { $($variant:ident = $number:literal, $text:literal;)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        #[allow(missing_docs)]
        pub enum $name { $($variant = $number,)* }

        impl $name {
            /// Every value, by number.
            pub const ALL: &[$name] = &[$($name::$variant,)*];

            /// The value with this number in ring.h.
            pub fn from_number(number: i32) -> Option<$name> {
                match number { $($number => Some($name::$variant),)* _ => None }
            }

            /// Its number in ring.h and on the wire.
            pub fn number(self) -> u8 {
                self as u8
            }

            /// Its name as texts and tools print it, NUL-terminated for C.
            pub fn c_name(self) -> &'static CStr {
                match self { $($name::$variant => $text,)* }
            }

            /// Its name as texts and tools print it.
            pub fn name(self) -> &'static str {
                self.c_name().to_str().unwrap_or("")
            }
        }
    };
}

numbered! {
    /// The type of an array's elements. The numbers are those of MLX's `Dtype`.
    Dtype {
        Bool = 0, c"bool";
        Uint8 = 1, c"uint8";
        Uint16 = 2, c"uint16";
        Uint32 = 3, c"uint32";
        Uint64 = 4, c"uint64";
        Int8 = 5, c"int8";
        Int16 = 6, c"int16";
        Int32 = 7, c"int32";
        Int64 = 8, c"int64";
        Float16 = 9, c"float16";
        Float32 = 10, c"float32";
        Float64 = 11, c"float64";
        Bfloat16 = 12, c"bfloat16";
        Complex64 = 13, c"complex64";
    }
}

numbered! {
    /// A reduction.
    Op {
        Sum = 0, c"sum";
        Max = 1, c"max";
        Min = 2, c"min";
        Prod = 3, c"prod";
        Mean = 4, c"mean";
        Band = 5, c"band";
        Bor = 6, c"bor";
        Bxor = 7, c"bxor";
    }
}

impl Dtype {
    /// Bytes of one element.
    pub const fn size(self) -> usize {
        match self {
            Dtype::Bool | Dtype::Uint8 | Dtype::Int8 => 1,
            Dtype::Uint16 | Dtype::Int16 | Dtype::Float16 | Dtype::Bfloat16 => 2,
            Dtype::Uint32 | Dtype::Int32 | Dtype::Float32 => 4,
            Dtype::Uint64 | Dtype::Int64 | Dtype::Float64 | Dtype::Complex64 => 8,
        }
    }

    /// True for the types whose arithmetic rounds.
    pub fn is_floating(self) -> bool {
        matches!(self, Dtype::Float16 | Dtype::Float32 | Dtype::Float64 | Dtype::Bfloat16 | Dtype::Complex64)
    }

    /// Whether the reduction is defined for this type: a mean needs division, the bit operations
    /// need bits that are a value.
    pub fn supports(self, op: Op) -> bool {
        match op {
            Op::Sum | Op::Max | Op::Min | Op::Prod => true,
            Op::Mean => self.is_floating(),
            Op::Band | Op::Bor | Op::Bxor => !self.is_floating(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_go_both_ways_and_names_are_unique() {
        for (number, &dtype) in Dtype::ALL.iter().enumerate() {
            assert_eq!(Dtype::from_number(number as i32), Some(dtype));
            assert_eq!(usize::from(dtype.number()), number);
        }
        for (number, &op) in Op::ALL.iter().enumerate() {
            assert_eq!(Op::from_number(number as i32), Some(op));
        }
        assert_eq!(Dtype::from_number(14), None);
        assert_eq!(Op::from_number(-1), None);
        let names: std::collections::HashSet<_> = Dtype::ALL.iter().map(|d| d.name()).collect();
        assert_eq!(names.len(), Dtype::ALL.len());
    }

    #[test]
    fn pairs_are_those_of_the_table() {
        let pairs = Dtype::ALL.iter().flat_map(|d| Op::ALL.iter().map(|o| d.supports(*o)));
        assert_eq!(pairs.filter(|s| *s).count(), 9 * 7 + 5 * 5);
    }
}
