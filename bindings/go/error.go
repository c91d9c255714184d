package ring

// #include "shims.h"
import "C"

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"syscall"
)

// ErrClosed is what calls on a group after its Close, and those that Close ended, are besides their status.
var ErrClosed = errors.New("the group is closed")

// Error is how a call failed. Every error of this package is one:
//
//	var failed *ring.Error
//	if errors.As(err, &failed) && failed.Status == ring.ErrPeerLost {
//		log.Printf("rank %d is gone: %s", failed.Rank, failed.Text)
//	}
type Error struct {
	Status Status
	// Rank is the rank at fault, or that aborted; -1 if it isn't known or takes two. It is known of failures that end the
	// group, like the next three.
	Rank int
	// DetectedBy is the rank that saw it first, -1 if it isn't known.
	DetectedBy int
	// OSError is the operating system's error, 0 if there was none. errors.Is finds it, too.
	OSError syscall.Errno
	// Sequence is the number of the collective, or of the message from one rank to another, both from 1; 0 between calls.
	Sequence uint64
	// Text is one line that names the call and its number, the rank and its address, and the first cause.
	Text string

	cause error
}

func (e *Error) Error() string { return "ring: " + e.Text }

// Is tells whether the target is the error's status.
func (e *Error) Is(target error) bool {
	status, ok := target.(Status)
	return ok && status == e.Status
}

// Unwrap gives what brought the error about: the error of a context, ErrClosed, or the operating system's.
func (e *Error) Unwrap() error {
	if e.cause == nil && e.OSError != 0 {
		return e.OSError
	}
	return e.cause
}

// closedError is what follows on Close.
func closedError() *Error {
	return &Error{Status: ErrInvalidState, Rank: -1, DetectedBy: -1, Text: ErrClosed.Error(), cause: ErrClosed}
}

// refusedHere is an error of settings that can't be brought to the library.
func refusedHere(status Status, format string, arguments ...any) *Error {
	return &Error{Status: status, Rank: -1, DetectedBy: -1, Text: fmt.Sprintf(format, arguments...)}
}

// Reports are large beside a call's other memory, and needed by calls that fail alone.
var reports = sync.Pool{New: func() any { return new(C.ring_go_report_t) }}

// reported makes a call that tells how it failed.
func reported(call func(report *C.ring_go_report_t) C.ring_status_t) *Error {
	report := reports.Get().(*C.ring_go_report_t)
	defer reports.Put(report)
	status := call(report)
	if status == C.RING_STATUS_OK {
		return nil
	}
	failure := &report.failure
	return &Error{
		Status:     Status(status),
		Rank:       int(failure.rank),
		DetectedBy: int(failure.detected_by),
		OSError:    syscall.Errno(failure.os_error),
		Sequence:   uint64(failure.sequence),
		Text:       C.GoString(&report.text[0]),
	}
}

// refusal is why a call can't be made as it was written, empty if it can. The call goes to the library all the same, with
// an argument that the library refuses: so it takes its number on this rank as it does in C.
type refusal string

func (r *refusal) because(format string, arguments ...any) {
	if *r == "" {
		*r = refusal(fmt.Sprintf(format, arguments...))
	}
}

// What the library says of the arguments that stand for a refusal.
var substitutes = []string{"dtype is -1", "element_bytes is 0", "out is NULL"}

// explain says the reason in place of the argument that stood for it.
func (r refusal) explain(err *Error) {
	if r == "" || err == nil || err.Status != ErrInvalidArgument {
		return
	}
	for _, substitute := range substitutes {
		if before, _, found := strings.Cut(err.Text, substitute); found {
			err.Text = before + string(r)
			return
		}
	}
	err.Text += ": " + string(r)
}
