package ring

// #include "shims.h"
import "C"

import (
	"reflect"
	"runtime/cgo"
	"unsafe"
)

// AllReduceFunc is [AllReduce] of elements of any type that holds no Go pointers, such as a struct of numbers, by a
// function: acc[i] = acc[i] op in[i], where acc holds this rank's values and in those received, of one length. op is
// associative and commutative. It runs on the goroutine that made the call, never concurrently within a call; what it is
// given is its own until it returns. In a group of one it isn't called.
//
// It must not use the group or another (these refuse with ErrInvalidState). A panic in it aborts the group, and goes on in
// the caller when the call has returned. If it ends the goroutine (runtime.Goexit, as testing's FailNow does), which the
// library's frames don't survive, that ends the process.
func AllReduceFunc[T any](g *Group, buf []T, op func(acc, in []T)) error {
	return AllReduceFuncInto(g, buf, buf, op)
}

// AllReduceFuncInto is AllReduceFunc with the result in another slice, of the same length.
func AllReduceFuncInto[T any](g *Group, send, recv []T, op func(acc, in []T)) error {
	var r refusal
	element := r.element(reflect.TypeOf(recv).Elem())
	r.equal(len(send), len(recv))
	return reduceBy(g, &r, op, func(group cGroup, reduction C.uintptr_t, report cReport) C.ring_status_t {
		return C.ring_go_all_reduce_custom(group, first(send), first(recv), C.size_t(len(recv)), r.bytes(element), reduction, report)
	})
}

// ReduceScatterVFunc is [ReduceScatterV] by a function; see AllReduceFunc.
func ReduceScatterVFunc[T any](g *Group, send, recv []T, counts []int, op func(acc, in []T)) error {
	var r refusal
	element := r.element(reflect.TypeOf(recv).Elem())
	cCounts := r.list("counts", counts, g.Size())
	r.scattered(g, len(send), len(recv), counts)
	return reduceBy(g, &r, op, func(group cGroup, reduction C.uintptr_t, report cReport) C.ring_status_t {
		return C.ring_go_reduce_scatter_v_custom(group, first(send), first(recv), cCounts, r.bytes(element), reduction, report)
	})
}

// reduction is a call's function while the call runs.
type reduction struct {
	handle   *handle
	reduce   func(acc, in unsafe.Pointer, count int)
	panicked bool
	value    any
}

func reduceBy[T any](g *Group, r *refusal, op func(acc, in []T),
	call func(group cGroup, reduction C.uintptr_t, report cReport) C.ring_status_t) error {
	running := &reduction{handle: g.handle, reduce: func(acc, in unsafe.Pointer, count int) {
		op(unsafe.Slice((*T)(acc), count), unsafe.Slice((*T)(in), count))
	}}
	// A Go pointer can't be C's user_data.
	number := cgo.NewHandle(running)
	defer number.Delete()
	err := g.call(r, func(group cGroup, report cReport) C.ring_status_t {
		return call(group, C.uintptr_t(number), report)
	})
	if running.panicked {
		panic(running.value)
	}
	return err
}

//export ringGoReduce
func ringGoReduce(acc, input unsafe.Pointer, count C.size_t, number C.uintptr_t) {
	cgo.Handle(number).Value().(*reduction).run(acc, input, int(count))
}

// run calls the function, and keeps its panic from the library's frames.
func (running *reduction) run(acc, input unsafe.Pointer, count int) {
	if running.panicked {
		return
	}
	returned := false
	defer func() {
		if !returned {
			// The goroutine is ending, and the call would never return.
			go panic("ring: a reduction has ended its goroutine")
			select {}
		}
	}()
	running.try(acc, input, count)
	returned = true
}

func (running *reduction) try(acc, input unsafe.Pointer, count int) {
	running.panicked = true
	defer func() {
		if !running.panicked {
			return
		}
		running.value = recover()
		// This thread is in a callback, from which the library aborts nothing.
		aborted := make(chan struct{})
		go func() {
			defer close(aborted)
			_ = running.handle.abort()
		}()
		<-aborted
	}()
	running.reduce(acc, input, count)
	running.panicked = false
}

// element is the type's size, which the library refuses if it is 0.
func (r *refusal) element(element reflect.Type) uintptr {
	if holdsPointers(element) {
		r.because("elements are %v, which holds pointers of this process", element)
	}
	return element.Size()
}

func (r *refusal) bytes(element uintptr) C.size_t {
	if *r != "" {
		return 0
	}
	return C.size_t(element)
}

// holdsPointers tells whether values of the type lead elsewhere in this process's memory.
func holdsPointers(t reflect.Type) bool {
	switch kind := t.Kind(); kind {
	case reflect.Array:
		return t.Len() > 0 && holdsPointers(t.Elem())
	case reflect.Struct:
		for i := 0; i < t.NumField(); i++ {
			if holdsPointers(t.Field(i).Type) {
				return true
			}
		}
		return false
	default:
		return kind > reflect.Complex128
	}
}

func first[T any](slice []T) *C.char {
	if len(slice) == 0 {
		return nil
	}
	return (*C.char)(unsafe.Pointer(&slice[0]))
}
