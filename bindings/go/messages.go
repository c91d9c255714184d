package ring

// #include "shims.h"
import "C"

// None is no rank, for one end of [Group.SendRecv].
const None = -1

// Send sends the slice to another rank. It may return before the peer has called Recv, and waits while the connection takes
// no more. Messages from one rank to another arrive in the order of the calls; they are independent of collectives.
func (g *Group) Send(buf any, dst int) error {
	var r refusal
	b := r.one(buf)
	return g.call(&r, func(group cGroup, report cReport) C.ring_status_t {
		return C.ring_go_send(group, b.start, b.elements(), r.dtype(b), rankIn32(dst), report)
	})
}

// Recv receives the next message of another rank, which has the slice's length and type.
func (g *Group) Recv(buf any, src int) error {
	var r refusal
	b := r.one(buf)
	return g.call(&r, func(group cGroup, report cReport) C.ring_status_t {
		return C.ring_go_recv(group, b.start, b.elements(), r.dtype(b), rankIn32(src), report)
	})
}

// SendRecv sends to rank dst and receives from rank src at the same time, as two ranks that send to each other must. A dst
// or src of [None] leaves that half out, and its slice may be nil; with both equal to this rank it copies.
func (g *Group) SendRecv(send any, dst int, recv any, src int) error {
	var r refusal
	from, to := r.pair(send, recv)
	return g.call(&r, func(group cGroup, report cReport) C.ring_status_t {
		return C.ring_go_send_recv(group, from.start, from.elements(), rankIn32(dst), to.start, to.elements(), rankIn32(src),
			r.dtype(from), report)
	})
}
