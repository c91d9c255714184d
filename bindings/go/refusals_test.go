package ring_test

import (
	"fmt"
	"strings"
	"testing"

	"libring/ring"
)

func TestRefusals(t *testing.T) { runRings(t, "refusals", 1, 2, 3) }

func TestRefusedOnOneRank(t *testing.T) { runRing(t, 3, "refused on one rank") }

func TestMismatch(t *testing.T) { runRing(t, 3, "mismatch") }

func init() {
	scenarios["refusals"] = func(r rank) {
		g := r.open()
		defer g.Close()
		// Of each of what the texts say.
		refused := func(err error, texts ...string) {
			details := expect(err, ring.ErrInvalidArgument)
			for _, text := range texts {
				check(strings.Contains(details.Text, text), "%q doesn't say %q", details.Text, text)
			}
			check(!strings.Contains(details.Text, "dtype") && !strings.Contains(details.Text, "element_bytes"), "%s", details.Text)
		}
		four, five, counts := make([]float32, 4), make([]float32, 5), make([]int, r.size)
		everyones := make([]float32, 4*r.size)

		refused(g.AllReduce(make([]complex128, 2), ring.Sum), "all_reduce", "buf is a []complex128")
		refused(g.AllReduce([]string{"a"}, ring.Sum), "buf is a []string: libring has no such element type")
		refused(g.AllReduce([4]float32{}, ring.Sum), "[4]float32", "no slice")
		refused(g.AllReduce(nil, ring.Sum), "buf is nil")
		refused(g.AllReduce(7, ring.Sum), "buf is an int, and no slice")
		refused(g.AllReduce(uint8(7), ring.Sum), "buf is a uint8, and no slice")
		refused(g.AllReduceInto(four, five, ring.Sum), "send has 4 elements, and recv 5")
		refused(g.AllReduceInto(four, make([]int32, 4), ring.Sum), "send is a []float32, and recv a []int32")
		refused(g.ReduceScatter(append(everyones, 0), four, ring.Sum), "reduce_scatter",
			fmt.Sprintf("send has %d elements and needs %d (recv's 4 for each of %d ranks)", 4*r.size+1, 4*r.size, r.size))
		refused(g.AllGather(five, everyones),
			fmt.Sprintf("recv has %d elements and needs %d (send's 5 for each of %d ranks)", 4*r.size, 5*r.size, r.size))
		refused(g.Broadcast(make([]uintptr, 1), 0), "[]uintptr")
		refused(g.Broadcast(four, r.size), "root is")
		refused(g.Broadcast(four, 1<<40), "root is")
		refused(g.Broadcast(four, -1), "root is -1")
		refused(g.Scatter(nil, nil, (r.number+1)%r.size), "nil")
		if r.size == 1 {
			refused(g.Reduce(four, five, ring.Sum, 0), "send has 4 elements, and recv 5")
			refused(g.Gather(four, five, 0), "recv has 5 elements and needs 4 (send's 4")
			refused(g.Scatter(five, four, 0), "send has 5 elements and needs 4 (recv's 4")
		} else {
			refused(g.AllToAll(make([]int8, r.size+1), make([]int8, r.size+1)), "as many for each")
		}
		refused(g.AllToAll(four, five), "send has 4 elements, and recv 5")
		refused(g.AllGatherV(four, everyones, append(counts, 1), nil), "counts has")
		refused(g.AllGatherV(four, everyones, nil, nil), "counts has 0 entries")
		refused(g.AllGatherV(four[:0], everyones, counts, []int{}), "displs has 0 entries")
		counts[0] = -1
		refused(g.AllGatherV(four, everyones, counts, nil), "counts[0] is -1")
		counts[0] = 1 << 62
		refused(g.AllGatherV(four, everyones, counts, nil), "begin at 0")
		counts[r.number] = 4
		counts[0] = 4
		refused(g.AllGatherV(four, everyones[:3], counts, nil), "recv has 3 elements")
		refused(g.ReduceScatterV(four, five, counts, ring.Sum))
		refused(g.AllToAllV(four, counts, nil, four, nil, nil), "recvCounts has 0 entries")
		refused(g.Send(four, r.size), "send", "dst is")
		refused(g.Recv([]uintptr{1}, 0), "[]uintptr")
		refused(g.SendRecv(four, ring.None, []int8{1}, ring.None), "recv a []int8")
		if r.size > 1 {
			refused(g.SendRecv(four, r.number, make([]float32, 4), ring.None))
		}
		refused(g.AllReduceInto(five[:4], five[1:], ring.Sum))
		_, err := g.Split(1<<32, 0)
		refused(err, "beyond 32 bits")
		type node struct{ next *node }
		refused(ring.AllReduceFunc(g, []node{{}}, func(acc, in []node) {}), "node", "pointers")
		refused(ring.AllReduceFuncInto(g, four, five, func(acc, in []float32) {}), "send has 4")
		expect(ring.AllReduceFunc(g, make([]struct{}, 3), func(acc, in []struct{}) {}), ring.ErrInvalidArgument)
		expect(ring.AllReduce(g, four, ring.BAnd), ring.ErrUnsupported)
		expect(g.AllReduce(four, ring.Op(99)), ring.ErrInvalidArgument)

		// All ranks' calls were refused, so that the group is well and their numbers are the same.
		check(g.Failure() == nil, "%v", g.Failure())
		must(g.AllReduce(four, ring.Sum))
	}

	// A call refused on one rank takes its number there, as in C: the next collective differs.
	scenarios["refused on one rank"] = func(r rank) {
		g := r.open()
		defer g.Close()
		var err error
		if r.number == 1 {
			expect(g.AllReduceInto(make([]int, 1), make([]int, 2), ring.Sum), ring.ErrInvalidArgument)
			err = g.AllReduce(make([]int, 2), ring.Sum)
		} else {
			err = g.AllReduce(make([]int, 2), ring.Sum)
		}
		expect(err, ring.ErrMismatch)
	}

	scenarios["mismatch"] = func(r rank) {
		g := r.open()
		defer g.Close()
		details := expect(g.AllReduce(make([]float32, 2+r.number/2), ring.Sum), ring.ErrMismatch)
		check(strings.Contains(details.Text, "float32") && details.Sequence == 1, "%+v", details)
	}
}
