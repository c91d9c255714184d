package ring

// #include "shims.h"
import "C"

import "sync"

// handle is a group of the library and who uses it. Its memory may be freed only once no thread can be on its way into a
// call on it, which the library alone can't know: so calls are counted here. Calls that neither wait nor write to the log hold
// the lock instead: a log's function that uses the group must find the lock free, to be refused.
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

// ask makes a call that never waits, and writes nothing to the log.
func (h *handle) ask(call func(group *C.ring_group_t, report *C.ring_go_report_t) C.ring_status_t) *Error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closing {
		return closedError()
	}
	return reported(func(report *C.ring_go_report_t) C.ring_status_t { return call(h.group, report) })
}

func (h *handle) abort() *Error {
	group, err := h.enter()
	if err != nil {
		return err
	}
	defer h.leave()
	return abort(group)
}

func abort(group *C.ring_group_t) *Error {
	return reported(func(report *C.ring_go_report_t) C.ring_status_t { return C.ring_go_abort(group, report) })
}

func (h *handle) isClosing() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.closing
}

// close ends the group. Where no call is running the peers get a goodbye; calls that run can be ended by an abort alone,
// since destroying the group would race with those that aren't in the library yet.
func (h *handle) close() *Error {
	// In a callback, for which whoever is closing may be waiting.
	err := reported(func(report *C.ring_go_report_t) C.ring_status_t { return C.ring_go_refuse_callback(report) })
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closing {
		for h.group != nil {
			h.idle.Wait()
		}
		return nil
	}
	h.closing = true
	group := h.group
	if h.calls > 0 {
		h.mu.Unlock()
		err = abort(group)
		h.mu.Lock()
	}
	for h.calls > 0 {
		h.idle.Wait()
	}
	// It may take a second; others are told meanwhile that the group is closed.
	h.mu.Unlock()
	C.ring_group_destroy(group)
	h.mu.Lock()
	h.group = nil
	h.idle.Broadcast()
	return err
}
