package ring

// #include "shims.h"
import "C"

// Status is what kind of failure an [Error] is. Each is an error itself, to be compared with:
//
//	if errors.Is(err, ring.ErrPeerLost) { ... }
type Status int32

const (
	// ErrInvalidArgument: slices of a wrong length or type, an overlap that isn't in place, or a rank that isn't in the
	// group. The group stays well.
	ErrInvalidArgument Status = C.RING_STATUS_INVALID_ARGUMENT
	// ErrInvalidState: the group is closed, or the call came from a callback.
	ErrInvalidState Status = C.RING_STATUS_INVALID_STATE
	// ErrUnsupported: this build doesn't have what was asked for, or the operation isn't defined for the type. The group
	// stays well.
	ErrUnsupported Status = C.RING_STATUS_UNSUPPORTED
	// ErrInvalidConfig: the configuration is incomplete or wrong; the text names the setting.
	ErrInvalidConfig Status = C.RING_STATUS_INVALID_CONFIG
	// ErrConnectFailed: the ring could not be formed; the text names each address and its error. Of a message or a
	// split: two ranks can't reach each other, and the group stays well.
	ErrConnectFailed Status = C.RING_STATUS_CONNECT_FAILED
	// ErrAuthFailed: a peer did not prove that it knows the shared secret.
	ErrAuthFailed Status = C.RING_STATUS_AUTH_FAILED
	// ErrMismatch: ranks made calls that differ; the text shows both.
	ErrMismatch Status = C.RING_STATUS_MISMATCH
	// ErrPeerLost: a peer has died, has closed its group, or can't be reached any more.
	ErrPeerLost Status = C.RING_STATUS_PEER_LOST
	// ErrTimeout: a call made no progress for as long as the group's timeout allows.
	ErrTimeout Status = C.RING_STATUS_TIMEOUT
	// ErrAborted: the group was aborted while the call ran: by a rank's Abort, by a context that ended, or by Close.
	ErrAborted Status = C.RING_STATUS_ABORTED
	// ErrSystem: a host refused something that isn't about a peer, such as descriptors or threads.
	ErrSystem Status = C.RING_STATUS_SYSTEM
	// ErrOutOfMemory: memory could not be allocated.
	ErrOutOfMemory Status = C.RING_STATUS_OUT_OF_MEMORY
	// ErrInternal: the library has a fault of its own.
	ErrInternal Status = C.RING_STATUS_INTERNAL
)

// Error is one sentence about the status.
func (status Status) Error() string { return C.GoString(C.ring_status_string(C.ring_status_t(status))) }

// Name is the name of C's constant, such as "RING_STATUS_TIMEOUT".
func (status Status) Name() string { return C.GoString(C.ring_status_name(C.ring_status_t(status))) }
