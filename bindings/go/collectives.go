package ring

// #include "shims.h"
import "C"

// The group's handle in C, and the place for a failure.
type (
	cGroup  = *C.ring_group_t
	cReport = *C.ring_go_report_t
)

// AllReduce reduces the ranks' arrays element by element, and gives every rank the result, in place.
// buf is a slice of any [Element], of one length on all ranks.
func (g *Group) AllReduce(buf any, op Op) error {
	var r refusal
	b := r.one(buf)
	return g.call(&r, func(group cGroup, report cReport) C.ring_status_t {
		return C.ring_go_all_reduce(group, b.start, b.start, b.elements(), r.dtype(b), C.ring_op_t(op), report)
	})
}

// AllReduceInto is AllReduce with the result in another array, of the same length; send stays as it is.
func (g *Group) AllReduceInto(send, recv any, op Op) error {
	var r refusal
	from, to := r.pair(send, recv)
	r.equal(from.count, to.count)
	return g.call(&r, func(group cGroup, report cReport) C.ring_status_t {
		return C.ring_go_all_reduce(group, from.start, to.start, to.elements(), r.dtype(to), C.ring_op_t(op), report)
	})
}

// ReduceScatter reduces the ranks' arrays, and gives each rank its part: rank r gets the r-th of Size equal parts of the
// result. send is as long as Size recvs. In place recv is this rank's part of send, of which only that is written.
func (g *Group) ReduceScatter(send, recv any, op Op) error {
	var r refusal
	from, to := r.pair(send, recv)
	r.times("send", from.count, "recv", to.count, g.Size())
	return g.call(&r, func(group cGroup, report cReport) C.ring_status_t {
		return C.ring_go_reduce_scatter(group, from.start, to.start, to.elements(), r.dtype(to), C.ring_op_t(op), report)
	})
}

// AllGather gives every rank all ranks' arrays, rank r's as the r-th of Size equal parts of recv. In place send is this
// rank's part of recv.
func (g *Group) AllGather(send, recv any) error {
	var r refusal
	from, to := r.pair(send, recv)
	r.times("recv", to.count, "send", from.count, g.Size())
	return g.call(&r, func(group cGroup, report cReport) C.ring_status_t {
		return C.ring_go_all_gather(group, from.start, to.start, from.elements(), r.dtype(from), report)
	})
}

// Broadcast gives every rank the root's array: buf is read there, and written on all others.
func (g *Group) Broadcast(buf any, root int) error {
	var r refusal
	b := r.one(buf)
	return g.call(&r, func(group cGroup, report cReport) C.ring_status_t {
		return C.ring_go_broadcast(group, b.start, b.elements(), r.dtype(b), rankIn32(root), report)
	})
}

// Reduce reduces the ranks' arrays, and gives the root the result. Elsewhere recv is ignored, and may be nil. In place
// recv is send.
func (g *Group) Reduce(send, recv any, op Op, root int) error {
	var r refusal
	from, to := r.rooted(g, root, send, &recv)
	if root == g.Rank() {
		r.equal(from.count, to.count)
	}
	return g.call(&r, func(group cGroup, report cReport) C.ring_status_t {
		return C.ring_go_reduce(group, from.start, to.start, from.elements(), r.dtype(from), C.ring_op_t(op), rankIn32(root), report)
	})
}

// Gather gives the root all ranks' arrays, rank r's as the r-th of Size equal parts of recv. Elsewhere recv is ignored,
// and may be nil. In place, on the root, send is its part of recv.
func (g *Group) Gather(send, recv any, root int) error {
	var r refusal
	from, to := r.rooted(g, root, send, &recv)
	if root == g.Rank() {
		r.times("recv", to.count, "send", from.count, g.Size())
	}
	return g.call(&r, func(group cGroup, report cReport) C.ring_status_t {
		return C.ring_go_gather(group, from.start, to.start, from.elements(), r.dtype(from), rankIn32(root), report)
	})
}

// Scatter gives each rank its part of the root's array: rank r gets the r-th of Size equal parts of send. Elsewhere send
// is ignored, and may be nil. In place, on the root, recv is its part of send.
func (g *Group) Scatter(send, recv any, root int) error {
	var r refusal
	to, from := r.rooted(g, root, recv, &send)
	if root == g.Rank() {
		r.times("send", from.count, "recv", to.count, g.Size())
	}
	return g.call(&r, func(group cGroup, report cReport) C.ring_status_t {
		return C.ring_go_scatter(group, from.start, to.start, to.elements(), r.dtype(to), rankIn32(root), report)
	})
}

// AllToAll sends a block to every rank, and receives one from each: the d-th of Size equal parts of send goes to rank d, and
// that of rank s arrives as the s-th part of recv. There is no form in place.
func (g *Group) AllToAll(send, recv any) error {
	var r refusal
	from, to := r.pair(send, recv)
	r.equal(from.count, to.count)
	block := from.count / g.Size()
	if from.count%g.Size() != 0 {
		r.because("send has %d elements, which aren't as many for each of %d ranks", from.count, g.Size())
	}
	return g.call(&r, func(group cGroup, report cReport) C.ring_status_t {
		return C.ring_go_all_to_all(group, from.start, to.start, C.size_t(block), r.dtype(from), report)
	})
}

// Barrier waits until every rank of the group has called it.
func (g *Group) Barrier() error {
	var r refusal
	return g.call(&r, func(group cGroup, report cReport) C.ring_status_t { return C.ring_go_barrier(group, report) })
}

// rooted takes the buffer that matters on every rank and the one that matters on the root, which is left out elsewhere.
func (r *refusal) rooted(g *Group, root int, everywhere any, atRoot *any) (buffer, buffer) {
	if root != g.Rank() {
		return r.one(everywhere), buffer{}
	}
	return r.pair(everywhere, *atRoot)
}

// AllGatherV is AllGather with parts of different lengths: counts has one for each rank, alike on all ranks; send has
// counts[Rank] elements. Rank r's arrive at element displs[r] of recv; nil packs them in the order of ranks. Parts don't
// overlap, and what lies between them stays as it is.
func (g *Group) AllGatherV(send, recv any, counts, displs []int) error {
	var r refusal
	from, to := r.pair(send, recv)
	cCounts, cDispls := r.list("counts", counts, g.Size()), r.optional("displs", displs, g.Size())
	r.within("recv", to.count, counts, displs)
	return g.call(&r, func(group cGroup, report cReport) C.ring_status_t {
		return C.ring_go_all_gather_v(group, from.start, from.elements(), to.start, cCounts, cDispls, r.dtype(from), report)
	})
}

// ReduceScatterV is ReduceScatter with parts of different lengths: counts has one for each rank, alike on all ranks; the
// parts are packed in send, and recv has counts[Rank] elements.
func (g *Group) ReduceScatterV(send, recv any, counts []int, op Op) error {
	var r refusal
	from, to := r.pair(send, recv)
	cCounts := r.list("counts", counts, g.Size())
	r.scattered(g, from.count, to.count, counts)
	return g.call(&r, func(group cGroup, report cReport) C.ring_status_t {
		return C.ring_go_reduce_scatter_v(group, from.start, to.start, cCounts, r.dtype(from), C.ring_op_t(op), report)
	})
}

// scattered refuses lengths that counts contradict.
func (r *refusal) scattered(g *Group, whole, part int, counts []int) {
	r.within("send", whole, counts, nil)
	if *r == "" && part != counts[g.Rank()] {
		r.because("recv has %d elements, and counts[%d] is %d", part, g.Rank(), counts[g.Rank()])
	}
}

// AllToAllV is AllToAll with blocks of different lengths: sendCounts[d] elements from element sendDispls[d] of send on go to
// rank d, and recvCounts[s] of rank s arrive at element recvDispls[s] of recv. sendCounts[d] is what rank d has as its
// recvCounts of this rank. Displacements that are nil pack the blocks in the order of ranks.
func (g *Group) AllToAllV(send any, sendCounts, sendDispls []int, recv any, recvCounts, recvDispls []int) error {
	var r refusal
	from, to := r.pair(send, recv)
	size := g.Size()
	cSendCounts, cSendDispls := r.list("sendCounts", sendCounts, size), r.optional("sendDispls", sendDispls, size)
	cRecvCounts, cRecvDispls := r.list("recvCounts", recvCounts, size), r.optional("recvDispls", recvDispls, size)
	r.within("send", from.count, sendCounts, sendDispls)
	r.within("recv", to.count, recvCounts, recvDispls)
	return g.call(&r, func(group cGroup, report cReport) C.ring_status_t {
		return C.ring_go_all_to_all_v(group, from.start, cSendCounts, cSendDispls, to.start, cRecvCounts, cRecvDispls,
			r.dtype(from), report)
	})
}
