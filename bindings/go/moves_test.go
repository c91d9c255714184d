package ring_test

import (
	"testing"

	"libring/ring"
)

func TestMoves(t *testing.T) { runRings(t, "moves", 1, 2, 3, 4, 5, 8) }

func TestMessages(t *testing.T) { runRings(t, "messages", 1, 2, 3, 5) }

// at is element i of a rank's array, of no other place.
func at(rank, i int) int32 { return int32(rank*100000 + i) }

func array(rank, from, count int) []int32 {
	values := make([]int32, count)
	for i := range values {
		values[i] = at(rank, from+i)
	}
	return values
}

// alike checks what arrived; nothing and an empty slice are the same.
func alike(form string, got, wanted []int32) {
	check(equal(got, wanted), "%s: %v, not %v", form, got, wanted)
}

func init() {
	scenarios["moves"] = func(r rank) {
		g := r.open()
		defer g.Close()
		for _, count := range []int{0, 1, 3, 64, 1001} {
			gathers(g, count)
			scatters(g, count)
		}
		differentLengths(g)
		must(g.Barrier())
	}

	scenarios["messages"] = func(r rank) {
		g := r.open()
		defer g.Close()
		right, left := (r.number+1)%r.size, (r.number+r.size-1)%r.size
		for _, count := range []int{0, 1, 7, 4097} {
			held, got := array(r.number, 0, count), make([]int32, count)
			must(g.SendRecv(held, right, got, left))
			alike("SendRecv", got, array(left, 0, count))
			must(ring.SendRecv(g, held, ring.None, nil, ring.None))
			if r.size == 1 {
				continue
			}
			// One end each, of a ring that isn't one.
			got = make([]int32, count)
			switch r.number {
			case 0:
				must(g.SendRecv(held, right, nil, ring.None))
				must(g.Send(held, right))
			case 1:
				must(g.SendRecv(nil, ring.None, got, left))
				alike("SendRecv without a send", got, array(0, 0, count))
				got = make([]int32, count)
				must(ring.Recv(g, got, left))
				alike("Recv", got, array(0, 0, count))
			}
			// Beyond the neighbours.
			last := r.size - 1
			if r.number == last/2 && last/2 != last {
				must(ring.Send(g, []ring.Float16{ring.ToFloat16(0.5)}, last))
			} else if r.number == last {
				half := make([]ring.Float16, 1)
				must(g.Recv(half, last/2))
				check(half[0].Float32() == 0.5, "%v", half)
			}
		}
	}
}

func gathers(g *ring.Group, count int) {
	rank, size := g.Rank(), g.Size()
	held := array(rank, 0, count)
	var everyones []int32
	for other := 0; other < size; other++ {
		everyones = append(everyones, array(other, 0, count)...)
	}

	got := make([]int32, size*count)
	must(g.AllGather(held, got))
	alike("AllGather", got, everyones)
	got = make([]int32, size*count)
	copy(got[rank*count:], held)
	must(ring.AllGather(g, got[rank*count:(rank+1)*count], got))
	alike("AllGather in place", got, everyones)

	for root := 0; root < size; root++ {
		var at []int32
		if rank == root {
			at = make([]int32, size*count)
		}
		must(ring.Gather(g, held, at, root))
		if rank == root {
			alike("ring.Gather", at, everyones)
			at = make([]int32, size*count)
			copy(at[rank*count:], held)
			must(g.Gather(at[rank*count:(rank+1)*count], at, root))
			alike("Gather in place", at, everyones)
		} else {
			must(g.Gather(held, nil, root))
		}

		buf := make([]int32, count)
		if rank == root {
			copy(buf, held)
		}
		must(g.Broadcast(buf, root))
		alike("Broadcast", buf, array(root, 0, count))
		must(ring.Broadcast(g, buf, root))
	}
}

func scatters(g *ring.Group, count int) {
	rank, size := g.Rank(), g.Size()
	whole := array(rank, 0, size*count)
	sums := make([]int32, count)
	for i := range sums {
		for other := 0; other < size; other++ {
			sums[i] += at(other, rank*count+i)
		}
	}

	got := make([]int32, count)
	must(g.ReduceScatter(whole, got, ring.Sum))
	alike("ReduceScatter", got, sums)
	send := append([]int32(nil), whole...)
	must(ring.ReduceScatter(g, send, send[rank*count:(rank+1)*count], ring.Sum))
	alike("ReduceScatter in place", send[rank*count:(rank+1)*count], sums)

	for root := 0; root < size; root++ {
		got := make([]int32, count)
		if rank == root {
			must(g.Scatter(whole, got, root))
		} else {
			must(g.Scatter(nil, got, root))
		}
		alike("Scatter", got, array(root, rank*count, count))
		if rank == root {
			part := whole[rank*count : (rank+1)*count]
			must(ring.Scatter(g, whole, part, root))
		} else {
			must(ring.Scatter(g, nil, got, root))
		}
	}

	var blocks []int32
	for other := 0; other < size; other++ {
		blocks = append(blocks, array(other, rank*count, count)...)
	}
	got = make([]int32, size*count)
	must(g.AllToAll(whole, got))
	alike("AllToAll", got, blocks)
	must(ring.AllToAll(g, whole, got))
}

// differentLengths has rank r with (3 r + 1) % 5 elements, so that some have none, and blocks of like lengths.
func differentLengths(g *ring.Group) {
	rank, size := g.Rank(), g.Size()
	length := func(rank int) int { return (3*rank + 1) % 5 }
	counts, displs := make([]int, size), make([]int, size)
	total := 0
	var packed []int32
	for other := range counts {
		counts[other] = length(other)
		packed = append(packed, array(other, 0, length(other))...)
		total += length(other)
	}
	// Backwards, with a gap of two before each.
	spread := make([]int32, total+2*size)
	end := len(spread)
	for other := range counts {
		end -= counts[other]
		displs[other] = end
		copy(spread[end:], array(other, 0, counts[other]))
		end -= 2
	}

	held := array(rank, 0, counts[rank])
	got := make([]int32, total)
	must(g.AllGatherV(held, got, counts, nil))
	alike("AllGatherV", got, packed)
	got = make([]int32, total+2*size)
	must(ring.AllGatherV(g, held, got, counts, displs))
	alike("AllGatherV with displacements", got, spread)

	whole := array(rank, 0, total)
	sums := make([]int32, counts[rank])
	from := 0
	for other := 0; other < rank; other++ {
		from += counts[other]
	}
	for i := range sums {
		for other := 0; other < size; other++ {
			sums[i] += at(other, from+i)
		}
	}
	got = make([]int32, counts[rank])
	must(g.ReduceScatterV(whole, got, counts, ring.Sum))
	alike("ReduceScatterV", got, sums)
	must(ring.ReduceScatterV(g, whole, got, counts, ring.Sum))

	// Rank a sends (a + 2 b) % 4 elements to rank b, from element b of its array on: blocks of send may overlap.
	sendCounts, sendDispls, recvCounts := make([]int, size), make([]int, size), make([]int, size)
	var wanted []int32
	for other := 0; other < size; other++ {
		sendCounts[other], sendDispls[other] = (rank+2*other)%4, other
		recvCounts[other] = (other + 2*rank) % 4
		wanted = append(wanted, array(other, rank, recvCounts[other])...)
	}
	got = make([]int32, len(wanted))
	must(g.AllToAllV(array(rank, 0, size+3), sendCounts, sendDispls, got, recvCounts, nil))
	alike("AllToAllV", got, wanted)
	must(ring.AllToAllV(g, array(rank, 0, size+3), sendCounts, sendDispls, got, recvCounts, nil))
}
