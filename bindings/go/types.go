package ring

// #include "shims.h"
import "C"

// Op is a reduction. Integers wrap; floating-point Max and Min are IEEE 754-2019's (a NaN on any rank gives NaN);
// complex64 compares by its real, then its imaginary part.
type Op int32

const (
	Sum  Op = C.RING_OP_SUM  // of bool: or
	Max  Op = C.RING_OP_MAX  // of bool: or
	Min  Op = C.RING_OP_MIN  // of bool: and
	Prod Op = C.RING_OP_PROD // of bool: and
	Mean Op = C.RING_OP_MEAN // floating-point and complex types only
	BAnd Op = C.RING_OP_BAND // bool and integers only, like the next two
	BOr  Op = C.RING_OP_BOR
	BXor Op = C.RING_OP_BXOR
)

// String is the reduction's name, such as "sum".
func (op Op) String() string { return C.GoString(C.ring_op_name(C.ring_op_t(op))) }

// Wire is what goes over the connections.
type Wire int32

const (
	// WireNative is this library's own protocol.
	WireNative Wire = C.RING_WIRE_NATIVE
	// WireMLX is what stock MLX processes speak, which carries a part of the calls; see ring.h.
	WireMLX Wire = C.RING_WIRE_MLX
)

// Transport is how ranks reach each other.
type Transport int32

const (
	TransportAuto Transport = C.RING_TRANSPORT_AUTO // the best that both sides have
	TransportTCP  Transport = C.RING_TRANSPORT_TCP
	TransportSHM  Transport = C.RING_TRANSPORT_SHM // not in every build
)

// LogLevel is how much a log line matters.
type LogLevel int32

const (
	LogError LogLevel = C.RING_LOG_LEVEL_ERROR // a group has failed
	LogWarn  LogLevel = C.RING_LOG_LEVEL_WARN  // something is wrong, and the group lives on
	LogInfo  LogLevel = C.RING_LOG_LEVEL_INFO  // what a person who watches would like to know
	LogDebug LogLevel = C.RING_LOG_LEVEL_DEBUG // everything
)

// String is the level's name, such as "warn".
func (level LogLevel) String() string {
	switch level {
	case LogError:
		return "error"
	case LogWarn:
		return "warn"
	case LogInfo:
		return "info"
	case LogDebug:
		return "debug"
	}
	return "unknown"
}

// Version is that of the library that is loaded, such as "0.1.0".
func Version() string { return C.GoString(C.ring_version_string()) }
