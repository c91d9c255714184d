package ring

// #include "shims.h"
import "C"

import "sync"

// handle is a group of the library and who uses it. Its memory may be freed only once no thread can be on its way into a
// call on it, which the library alone can't know: so calls are counted here. Calls that never wait hold the lock instead.
type handle struct {
	rank, size int

	mu      sync.Mutex
	idle    sync.Cond // calls or group has changed while closing
	group   *C.ring_group_t
	calls   int
	closing bool
}

func newHandle(group *C.ring_group_t) *handle {
	h := &handle{
		rank:  int(C.ring_group_rank(group)),
		size:  int(C.ring_group_size(group)),
		group: group,
	}
	h.idle.L = &h.mu
	return h
}

// enter lets a call in that may wait, until leave.
func (h *handle) enter() (*C.ring_group_t, *Error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closing {
		return nil, closedError()
	}
	h.calls++
	return h.group, nil
}

func (h *handle) leave() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls--
	if h.closing {
		h.idle.Broadcast()
	}
}

// ask makes a call that never waits.
func (h *handle) ask(call func(group *C.ring_group_t, report *C.ring_go_report_t) C.ring_status_t) *Error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closing {
		return closedError()
	}
	return reported(func(report *C.ring_go_report_t) C.ring_status_t { return call(h.group, report) })
}

func (h *handle) abort() *Error {
	return h.ask(func(group *C.ring_group_t, report *C.ring_go_report_t) C.ring_status_t {
		return C.ring_go_abort(group, report)
	})
}

func (h *handle) isClosing() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.closing
}

// close ends the group. Where no call is running the peers get a goodbye; calls that run can be ended by an abort alone,
// since destroying the group would race with those that aren't in the library yet.
func (h *handle) close() *Error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closing {
		for h.closing && h.group != nil {
			h.idle.Wait()
		}
		return nil
	}
	h.closing = true
	if h.calls > 0 {
		// Refused from a callback, whose call would be waited for in vain.
		if err := reported(func(report *C.ring_go_report_t) C.ring_status_t { return C.ring_go_abort(h.group, report) }); err != nil {
			h.reopen()
			return err
		}
		for h.calls > 0 {
			h.idle.Wait()
		}
	}
	// It may take a second; others are told meanwhile that the group is closed.
	group := h.group
	h.mu.Unlock()
	err := reported(func(report *C.ring_go_report_t) C.ring_status_t { return C.ring_go_destroy(group, report) })
	h.mu.Lock()
	if err != nil {
		h.reopen()
		return err
	}
	h.group = nil
	h.idle.Broadcast()
	return nil
}

func (h *handle) reopen() {
	h.closing = false
	h.idle.Broadcast()
}
