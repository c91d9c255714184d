package ring

// #include "shims.h"
import "C"

import (
	"reflect"
	"strings"
	"unsafe"
)

// Element is what arrays are made of: a Go type, or one that is derived from it, for each type of the library. [Float16] and
// [BFloat16] are the two that Go lacks. int and uint are those of their size, on most machines int64 and uint64.
//
// A type that is derived from Float16 or BFloat16 is, like all others of its kind, a uint16.
type Element interface {
	~bool | ~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 |
		~float32 | ~float64 | ~complex64
}

// noType stands for a type that the library doesn't have, which it refuses.
const noType = -1

// Lists of counts are passed as they are: a negative one is beyond what the library takes.
var _ [unsafe.Sizeof(int(0)) - unsafe.Sizeof(C.size_t(0))]struct{}
var _ [unsafe.Sizeof(C.size_t(0)) - unsafe.Sizeof(int(0))]struct{}

var (
	float16Type  = reflect.TypeOf(Float16(0))
	bfloat16Type = reflect.TypeOf(BFloat16(0))
)

var typesByKind = [...]C.ring_dtype_t{
	reflect.Bool:      C.RING_DTYPE_BOOL,
	reflect.Int8:      C.RING_DTYPE_INT8,
	reflect.Int16:     C.RING_DTYPE_INT16,
	reflect.Int32:     C.RING_DTYPE_INT32,
	reflect.Int64:     C.RING_DTYPE_INT64,
	reflect.Uint8:     C.RING_DTYPE_UINT8,
	reflect.Uint16:    C.RING_DTYPE_UINT16,
	reflect.Uint32:    C.RING_DTYPE_UINT32,
	reflect.Uint64:    C.RING_DTYPE_UINT64,
	reflect.Float32:   C.RING_DTYPE_FLOAT32,
	reflect.Float64:   C.RING_DTYPE_FLOAT64,
	reflect.Complex64: C.RING_DTYPE_COMPLEX64,
}

// typeOf is the library's type of a Go type's values, or noType.
func typeOf(element reflect.Type) C.ring_dtype_t {
	switch kind := element.Kind(); {
	case element == float16Type:
		return C.RING_DTYPE_FLOAT16
	case element == bfloat16Type:
		return C.RING_DTYPE_BFLOAT16
	case kind == reflect.Int && element.Size() == 8:
		return C.RING_DTYPE_INT64
	case kind == reflect.Int:
		return C.RING_DTYPE_INT32
	case kind == reflect.Uint && element.Size() == 8:
		return C.RING_DTYPE_UINT64
	case kind == reflect.Uint:
		return C.RING_DTYPE_UINT32
	case kind == reflect.Bool, int(kind) < len(typesByKind) && typesByKind[kind] != 0:
		return typesByKind[kind]
	}
	return noType
}

// buffer is a slice as the library takes it. The zero value, from a plain nil, has no type.
type buffer struct {
	start *C.char // NULL without elements
	count int
	dtype C.ring_dtype_t
	of    reflect.Type
}

func (b buffer) elements() C.size_t { return C.size_t(b.count) }

// buffer takes a slice of any of the types.
func (r *refusal) buffer(name string, slice any) buffer {
	if slice == nil {
		return buffer{}
	}
	value := reflect.ValueOf(slice)
	b := buffer{dtype: noType, of: value.Type()}
	if value.Kind() != reflect.Slice {
		r.because("%s is %s %v, and no slice", name, article(b.of), b.of)
		return b
	}
	b.dtype = typeOf(b.of.Elem())
	if b.dtype == noType {
		r.because("%s is a %v: libring has no such element type", name, b.of)
		return b
	}
	b.count = value.Len()
	if b.count > 0 {
		b.start = (*C.char)(value.UnsafePointer())
	}
	return b
}

// article is the one before a type's name in English.
func article(of reflect.Type) string {
	if strings.ContainsRune("aeio", rune(of.String()[0])) {
		return "an"
	}
	return "a"
}

// pair takes the two buffers of a call. One that doesn't matter on this rank may be nil.
func (r *refusal) pair(send, recv any) (from, to buffer) {
	from, to = r.buffer("send", send), r.buffer("recv", recv)
	switch {
	case from.of == nil:
		from.dtype = to.dtype
	case to.of == nil:
		to.dtype = from.dtype
	case from.dtype != to.dtype:
		r.because("send is a %v, and recv a %v", from.of, to.of)
	}
	if from.of == nil && to.of == nil {
		r.because("send and recv are nil, of no type")
	}
	return from, to
}

// one takes the only buffer of a call.
func (r *refusal) one(slice any) buffer {
	if slice == nil {
		r.because("buf is nil, of no type")
	}
	return r.buffer("buf", slice)
}

// dtype is what to pass for the type of a buffer.
func (r *refusal) dtype(b buffer) C.ring_dtype_t {
	if *r != "" {
		return noType
	}
	return b.dtype
}

// equal refuses buffers of different lengths.
func (r *refusal) equal(send, recv int) {
	if send != recv {
		r.because("send has %d elements, and recv %d", send, recv)
	}
}

// times refuses a whole that isn't so many parts for every rank.
func (r *refusal) times(wholeName string, whole int, partName string, part, size int) {
	if whole%size != 0 || whole/size != part {
		r.because("%s has %d elements and needs %d (%s's %d for each of %d ranks)", wholeName, whole,
			uint64(part)*uint64(size), partName, part, size)
	}
}

// list takes the counts or displacements of each rank.
func (r *refusal) list(name string, values []int, size int) *C.size_t {
	if len(values) != size {
		r.because("%s has %d entries for %d ranks", name, len(values), size)
		return nil
	}
	for rank, value := range values {
		if value < 0 {
			r.because("%s[%d] is %d", name, rank, value)
		}
	}
	return (*C.size_t)(unsafe.Pointer(&values[0]))
}

// optional is a list of displacements, which may be nil.
func (r *refusal) optional(name string, values []int, size int) *C.size_t {
	if values == nil {
		return nil
	}
	return r.list(name, values, size)
}

// within refuses parts that go beyond a buffer. Without displacements they are packed.
func (r *refusal) within(name string, length int, counts, displs []int) {
	if *r != "" {
		return
	}
	packed := 0
	for rank, count := range counts {
		start := packed
		if displs != nil {
			start = displs[rank]
		}
		// In this order nothing overflows.
		if count > 0 && (start > length || count > length-start) {
			r.because("%s has %d elements, and rank %d's %d begin at %d", name, length, rank, count, start)
			return
		}
		packed += count
	}
}
