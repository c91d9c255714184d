//! Enumerations and what their values are called. The numbers are ABI.

use std::ffi::c_char;

use crate::{Dtype, Op, Status};

/// What a call returns. Numbers are never reused.
#[repr(i32)]
pub enum ring_status {
    /// The call succeeded.
    Ok = 0,
    /// A NULL pointer, an unknown enumeration value, a size beyond PTRDIFF_MAX, an overlap that isn't
    /// in place, or a rank that isn't in the group. Not sticky.
    InvalidArgument = 1,
    /// The group belongs to the parent of this forked process, or the call came from a callback. Not
    /// sticky.
    InvalidState = 2,
    /// This build doesn't have what was asked for, or the operation isn't defined for the type. Not
    /// sticky.
    Unsupported = 3,
    /// The configuration is incomplete or wrong; the text names the setting, or the file, the entry
    /// and the reason.
    InvalidConfig = 4,
    /// The ring could not be formed: an address taken, a peer that never came or that claims another
    /// ring; the text names each address and its error. Of a message or a split: two ranks can't reach each
    /// other. Not sticky then.
    ConnectFailed = 5,
    /// A peer did not prove that it knows the shared secret.
    AuthFailed = 6,
    /// Ranks made calls that differ; the text shows both.
    Mismatch = 7,
    /// A peer has died, has destroyed its group, or can't be reached any more.
    PeerLost = 8,
    /// A call made no progress for as long as the group's timeout allows.
    Timeout = 9,
    /// The group was aborted or destroyed while the call ran.
    Aborted = 10,
    /// This host refused something that isn't about a peer, such as descriptors or threads.
    System = 11,
    /// Memory could not be allocated. Not sticky where nothing had moved.
    OutOfMemory = 12,
    /// The library has a fault of its own.
    Internal = 13,
    /// The time to wait for a request was over before the operation. Not sticky.
    Pending = 14,
}

/// A status: one of enum ring_status.
pub type ring_status_t = i32;

/// The type of an array's elements. The numbers are those of MLX's Dtype.
#[repr(i32)]
pub enum ring_dtype {
    /// One byte; any non-zero byte is true, results are 0 or 1.
    Bool = 0,
    /// uint8_t
    Uint8 = 1,
    /// uint16_t
    Uint16 = 2,
    /// uint32_t
    Uint32 = 3,
    /// uint64_t
    Uint64 = 4,
    /// int8_t
    Int8 = 5,
    /// int16_t
    Int16 = 6,
    /// int32_t
    Int32 = 7,
    /// int64_t
    Int64 = 8,
    /// IEEE 754 binary16, two bytes.
    Float16 = 9,
    /// float
    Float32 = 10,
    /// double
    Float64 = 11,
    /// The upper half of a binary32, two bytes.
    Bfloat16 = 12,
    /// Two floats: real part, imaginary part.
    Complex64 = 13,
}

/// An element type: one of enum ring_dtype.
pub type ring_dtype_t = i32;

/// A reduction. Integers wrap; floating-point max and min are IEEE 754-2019 maximum and minimum (a
/// NaN on any rank gives NaN, -0 < +0), but for RING_WIRE_MLX; complex64 compares by real, then imaginary part.
#[repr(i32)]
pub enum ring_op {
    /// Sum; of bool: or.
    Sum = 0,
    /// Largest; of bool: or.
    Max = 1,
    /// Smallest; of bool: and.
    Min = 2,
    /// Product; of bool: and.
    Prod = 3,
    /// The sum, then one division by the group's size. Floating-point and complex types only.
    Mean = 4,
    /// Bitwise and. bool and integers only, like the next two.
    Band = 5,
    /// Bitwise or.
    Bor = 6,
    /// Bitwise exclusive or.
    Bxor = 7,
}

/// A reduction: one of enum ring_op.
pub type ring_op_t = i32;

/// What goes over the connections.
#[repr(i32)]
pub enum ring_wire {
    /// This library's own protocol: handshake, call headers, failure records.
    Native = 0,
    /// What stock MLX processes speak (its ring backend, checked against MLX 0.32.4), byte for byte: elements and
    /// nothing else. It carries ring_all_reduce with RING_OP_SUM, RING_OP_MAX, RING_OP_MIN and RING_OP_MEAN,
    /// ring_all_gather, ring_barrier, and ring_send, ring_recv and ring_send_recv between neighbours, blocking
    /// or not; every other call is RING_STATUS_UNSUPPORTED, as is a ring_all_reduce of fewer elements than ranks
    /// where one a rank takes more than 1024 bytes. Calls and messages run one after the other, in the order
    /// in which they were made. Bits are MLX's: max and min keep or lose a NaN and a zero's sign by its place, and
    /// what sums round to depends on the number of addresses, too. A failure is known to this rank alone, and names
    /// the neighbour that it was seen at. Calls that differ between ranks, strangers at the port and another job's
    /// ranks can't be found out.
    Mlx = 1,
}

/// A wire format: one of enum ring_wire.
pub type ring_wire_t = i32;

/// How ranks reach each other.
#[repr(i32)]
pub enum ring_transport {
    /// The best that both sides have; TCP in this build.
    Auto = 0,
    /// TCP.
    Tcp = 1,
    /// Shared memory between ranks of one host. Not in this build.
    Shm = 2,
}

/// A transport: one of enum ring_transport.
pub type ring_transport_t = i32;

/// How much a log line matters.
#[repr(i32)]
pub enum ring_log_level {
    /// A group has failed.
    Error = 1,
    /// Something is wrong, and the group lives on.
    Warn = 2,
    /// What a person who watches would like to know.
    Info = 3,
    /// Everything.
    Debug = 4,
}

/// A log level: one of enum ring_log_level.
pub type ring_log_level_t = i32;

/// Bytes of one element of the type dtype; 0 for an unknown value. Never blocks.
#[unsafe(no_mangle)]
pub extern "C" fn ring_dtype_size(dtype: ring_dtype_t) -> usize {
    Dtype::from_number(dtype).map_or(0, Dtype::size)
}

/// The name of the type dtype, such as "float32"; "unknown" for an unknown value. The text is static. Never blocks.
#[unsafe(no_mangle)]
pub extern "C" fn ring_dtype_name(dtype: ring_dtype_t) -> *const c_char {
    Dtype::from_number(dtype).map_or(c"unknown", Dtype::c_name).as_ptr()
}

/// The name of the reduction op, such as "sum"; "unknown" for an unknown value. The text is static. Never blocks.
#[unsafe(no_mangle)]
pub extern "C" fn ring_op_name(op: ring_op_t) -> *const c_char {
    Op::from_number(op).map_or(c"unknown", Op::c_name).as_ptr()
}

/// The name of the constant for status, such as "RING_STATUS_TIMEOUT"; "RING_STATUS_UNKNOWN" for an unknown
/// value. The text is static. Never blocks.
#[unsafe(no_mangle)]
pub extern "C" fn ring_status_name(status: ring_status_t) -> *const c_char {
    Status::from_number(status).map_or(c"RING_STATUS_UNKNOWN", Status::c_name).as_ptr()
}

/// One sentence about status for a person; never NULL, also for an unknown value. The text is static. What happened
/// in a particular call is told by ring_last_error. Never blocks.
#[unsafe(no_mangle)]
pub extern "C" fn ring_status_string(status: ring_status_t) -> *const c_char {
    Status::from_number(status).map_or(c"This library knows no such status.", Status::sentence).as_ptr()
}
