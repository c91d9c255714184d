package ring_test

import (
	"math"
	"reflect"
	"testing"

	"libring/ring"
)

func TestNumbers(t *testing.T) { runRings(t, "numbers", 1, 2, 3, 4, 5, 6, 7, 8) }

type (
	celsius  float64
	weights  []float32
	switches bool
)

var awkwardCounts = []int{0, 1, 7, 1001}

// small is the element of a rank, exact in every type, whose sum and product over eight ranks are, too.
func small(rank, i int, op ring.Op) float64 {
	if op == ring.Prod {
		return float64(1 + (i+rank)%2)
	}
	return float64((i*7+rank*3)%5 + 1)
}

// folded is the reduction of all ranks' elements.
func folded(size, i int, op ring.Op) float64 {
	result := small(0, i, op)
	for rank := 1; rank < size; rank++ {
		value := small(rank, i, op)
		switch op {
		case ring.Sum, ring.Mean:
			result += value
		case ring.Prod:
			result *= value
		case ring.Max:
			result = math.Max(result, value)
		case ring.Min:
			result = math.Min(result, value)
		case ring.BAnd:
			result = float64(int(result) & int(value))
		case ring.BOr:
			result = float64(int(result) | int(value))
		case ring.BXor:
			result = float64(int(result) ^ int(value))
		}
	}
	if op == ring.Mean {
		result /= float64(size)
	}
	return result
}

var (
	arithmetic  = []ring.Op{ring.Sum, ring.Max, ring.Min, ring.Prod}
	ofIntegers  = append([]ring.Op{ring.BAnd, ring.BOr, ring.BXor}, arithmetic...)
	ofFractions = append([]ring.Op{ring.Mean}, arithmetic...)
)

// reduces checks the reductions of one type, by methods and by functions, in place and not.
func reduces[T ring.Element](g *ring.Group, ops []ring.Op, from func(float64) T) {
	for _, op := range ops {
		for _, count := range awkwardCounts {
			held, wanted := make([]T, count), make([]T, count)
			for i := range held {
				held[i], wanted[i] = from(small(g.Rank(), i, op)), from(folded(g.Size(), i, op))
			}
			kept := append([]T(nil), held...)
			same := func(form string, got []T) {
				check(equal(got, wanted), "%s %v of %d %T: %v, not %v", form, op, count, held, got, wanted)
				check(equal(held, kept), "%s has changed what was sent", form)
			}

			got := append([]T(nil), held...)
			must(g.AllReduce(got, op))
			same("AllReduce", got)

			got = append([]T(nil), held...)
			must(ring.AllReduce(g, got, op))
			same("ring.AllReduce", got)

			got = make([]T, count)
			must(g.AllReduceInto(held, got, op))
			same("AllReduceInto", got)

			root := count % g.Size()
			got = make([]T, count)
			if g.Rank() == root {
				must(ring.Reduce(g, held, got, op, root))
				same("ring.Reduce", got)
			} else {
				must(g.Reduce(held, nil, op, root))
			}
		}
	}
}

func equal[T comparable](a, b []T) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

func init() {
	scenarios["numbers"] = func(r rank) {
		g := r.open()
		defer g.Close()
		reduces(g, ofIntegers, func(x float64) int8 { return int8(int(x)) })
		reduces(g, ofIntegers, func(x float64) int16 { return int16(x) })
		reduces(g, ofIntegers, func(x float64) int32 { return int32(x) })
		reduces(g, ofIntegers, func(x float64) int64 { return int64(x) })
		reduces(g, ofIntegers, func(x float64) int { return int(x) })
		reduces(g, ofIntegers, func(x float64) uint8 { return uint8(int(x)) })
		reduces(g, ofIntegers, func(x float64) uint16 { return uint16(x) })
		reduces(g, ofIntegers, func(x float64) uint32 { return uint32(x) })
		reduces(g, ofIntegers, func(x float64) uint64 { return uint64(x) })
		reduces(g, ofIntegers, func(x float64) uint { return uint(x) })
		reduces(g, ofFractions, func(x float64) ring.Float16 { return ring.ToFloat16(float32(x)) })
		reduces(g, ofFractions, func(x float64) ring.BFloat16 { return ring.ToBFloat16(float32(x)) })
		reduces(g, ofFractions, func(x float64) float32 { return float32(x) })
		reduces(g, ofFractions, func(x float64) float64 { return x })
		reduces(g, ofFractions, func(x float64) celsius { return celsius(x) })
		reduces(g, []ring.Op{ring.Sum, ring.Mean}, func(x float64) complex64 { return complex(float32(x), float32(-x)) })
		reducesBools[bool](g)
		reducesBools[switches](g)

		far := []int{r.number << 40}
		must(g.AllReduce(far, ring.Max))
		check(far[0] == (r.size-1)<<40, "%v", far)

		named := weights{float32(r.number), 1}
		must(g.AllReduce(named, ring.Sum))
		must(ring.AllReduce(g, named[:1], ring.Min))
		check(named[0] == float32(r.size*(r.size-1)/2) && named[1] == float32(r.size), "%v", named)
	}
}

func reducesBools[T ~bool](g *ring.Group) {
	set := func(rank, i int) bool { return (i+rank)%3 != 0 }
	for _, count := range awkwardCounts {
		any, all, held := make([]T, count), make([]T, count), make([]T, count)
		for i := range held {
			held[i], all[i] = T(set(g.Rank(), i)), true
			for rank := 0; rank < g.Size(); rank++ {
				any[i] = any[i] || T(set(rank, i))
				all[i] = all[i] && T(set(rank, i))
			}
		}
		for _, op := range []ring.Op{ring.Sum, ring.Max, ring.BOr, ring.Min, ring.Prod, ring.BAnd} {
			wanted := any
			if op == ring.Min || op == ring.Prod || op == ring.BAnd {
				wanted = all
			}
			got := append([]T(nil), held...)
			must(g.AllReduce(got, op))
			check(equal(got, wanted), "%v of %d bools: %v, not %v", op, count, got, wanted)
		}
	}
}

func TestFloat16(t *testing.T) {
	for bits := 0; bits < 1<<16; bits++ {
		half, brain := ring.Float16(bits), ring.BFloat16(bits)
		if got := ring.ToFloat16(half.Float32()); got != half && !isNaN(half.Float32()) {
			t.Fatalf("float16 %#x became %#x", bits, got)
		}
		if got := ring.ToBFloat16(brain.Float32()); got != brain && !isNaN(brain.Float32()) {
			t.Fatalf("bfloat16 %#x became %#x", bits, got)
		}
		if isNaN(half.Float32()) != isNaN(ring.ToFloat16(half.Float32()).Float32()) {
			t.Fatalf("float16 %#x: a NaN doesn't stay one", bits)
		}
	}
	// What lies between two neighbours goes to the nearer one, and from the middle to the even one.
	for bits := 0; bits < 0x7bff; bits++ {
		low, high := ring.Float16(bits).Float32(), ring.Float16(bits+1).Float32()
		middle, even := (low+high)/2, ring.Float16(bits+bits&1)
		below, above := math.Nextafter32(middle, low), math.Nextafter32(middle, high)
		if ring.ToFloat16(below) != ring.Float16(bits) || ring.ToFloat16(above) != ring.Float16(bits+1) || ring.ToFloat16(middle) != even ||
			ring.ToFloat16(-middle) != even|0x8000 {
			t.Fatalf("rounding above float16 %#x", bits)
		}
	}
	for bits := 0; bits < 0x7f7f; bits++ {
		middle, even := math.Float32frombits(uint32(bits)<<16|0x8000), ring.BFloat16(bits+bits&1)
		below, above := math.Float32frombits(uint32(bits)<<16|0x7fff), math.Float32frombits(uint32(bits)<<16|0x8001)
		if ring.ToBFloat16(below) != ring.BFloat16(bits) || ring.ToBFloat16(above) != ring.BFloat16(bits+1) || ring.ToBFloat16(middle) != even {
			t.Fatalf("rounding above bfloat16 %#x", bits)
		}
	}
	for value, wanted := range map[float32]ring.Float16{65519: 0x7bff, 65520: 0x7c00, 1e30: 0x7c00, -65520: 0xfc00, 1: 0x3c00, -2: 0xc000} {
		if got := ring.ToFloat16(value); got != wanted {
			t.Errorf("%v became %#x, not %#x", value, got, wanted)
		}
	}
	onlyLow := math.Float32frombits(0x7f800001)
	if !isNaN(ring.ToBFloat16(onlyLow).Float32()) || !isNaN(ring.ToFloat16(onlyLow).Float32()) {
		t.Error("a NaN whose payload is in the low bits became infinite")
	}
	if reflect.TypeOf(ring.Float16(0)).Kind() != reflect.Uint16 {
		t.Error("Float16 isn't two bytes")
	}
}

func isNaN(value float32) bool { return value != value }
