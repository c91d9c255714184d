package ring

// #include "shims.h"
import "C"

import (
	"context"
	"math"
	"time"
)

// Group is this process's place in a ring of processes, from [Open] to [Group.Close]. Any goroutine may call any method;
// collectives of one group are served first come, first served.
//
// A group isn't closed by the garbage collector: other ranks see when it ends.
type Group struct {
	handle *handle
	ctx    context.Context // nil: none
}

// WithContext gives the same group, whose calls abort it when the context ends: they return an error that is both
// ErrAborted and the context's (context.Canceled or context.DeadlineExceeded), every other rank's calls one that is
// ErrAborted and names this rank. What a rank has begun the others wait for: so a call can't be called off alone,
// and an aborted group is to be closed.
//
// The context matters while a call runs. One that has ended before a call aborts the group in the call; one that ends as
// a call returns may abort the group although the call has succeeded; one that ends between calls does nothing.
// Closing either group closes both.
func (g *Group) WithContext(ctx context.Context) *Group {
	if ctx == nil {
		panic("ring: nil context")
	}
	return &Group{handle: g.handle, ctx: ctx}
}

// Rank is this process's rank, from 0.
func (g *Group) Rank() int { return g.handle.rank }

// Size is the number of ranks.
func (g *Group) Size() int { return g.handle.size }

// Close leaves the ring. It delivers first what successful calls have sent, for which it waits a second at most; a peer
// that still needs this rank gets ErrPeerLost.
//
// Where calls are running in other goroutines it aborts the group: they return an error that is both ErrAborted and
// ErrClosed, and other ranks get ErrAborted. Later calls are refused with an error that is ErrInvalidState and ErrClosed,
// but Close itself, which does nothing more. In a callback of this group it is refused with ErrInvalidState, and
// closes nothing.
func (g *Group) Close() error { return plain(g.handle.close()) }

// Abort fails the group on every rank: running and later calls return ErrAborted, with this rank named. It never waits.
// A group that has failed already keeps its failure. The group is still to be closed.
func (g *Group) Abort() error { return plain(g.handle.abort()) }

// SetTimeout sets how long a call that starts later may be without progress; see Config.Timeout.
func (g *Group) SetTimeout(timeout time.Duration) error {
	return plain(g.handle.ask(func(group *C.ring_group_t, report *C.ring_go_report_t) C.ring_status_t {
		return C.ring_go_set_timeout(group, milliseconds(timeout), report)
	}))
}

// Failure is how the group has failed, also between calls: an [*Error], nil while it is healthy. It never waits.
func (g *Group) Failure() error {
	return plain(g.handle.ask(func(group *C.ring_group_t, report *C.ring_go_report_t) C.ring_status_t {
		return C.ring_go_failure(group, report)
	}))
}

// Stats is what a group has counted since it was made. All numbers only grow.
type Stats struct {
	// Operations are the collectives and messages that this rank has finished with success.
	Operations uint64
	// BytesSent and BytesReceived are those on data connections: payload, and a header a call and neighbour.
	BytesSent, BytesReceived uint64
	// Busy is the time in calls; those that run at the same time count each for itself.
	Busy time.Duration
	// WaitLeft and WaitRight are what of it was slept through in wait for the neighbours (rank - 1 and rank + 1).
	WaitLeft, WaitRight time.Duration
	// StrangersRefused are connections to this rank's port that were no peer's.
	StrangersRefused uint64
}

// Stats gives the group's counters, also of one that has failed. It never waits.
func (g *Group) Stats() (Stats, error) {
	var stats C.ring_stats_t
	err := g.handle.ask(func(group *C.ring_group_t, report *C.ring_go_report_t) C.ring_status_t {
		return C.ring_go_stats(group, &stats, report)
	})
	if err != nil {
		return Stats{}, err
	}
	return Stats{
		Operations:       uint64(stats.operations),
		BytesSent:        uint64(stats.bytes_sent),
		BytesReceived:    uint64(stats.bytes_received),
		Busy:             time.Duration(stats.busy_ns),
		WaitLeft:         time.Duration(stats.wait_left_ns),
		WaitRight:        time.Duration(stats.wait_right_ns),
		StrangersRefused: uint64(stats.strangers_refused),
	}, nil
}

// Split is a collective: the ranks that give the same color form a group of their own, in the order of their keys and,
// where these are equal, of their ranks here. With a negative color the group is nil. Both groups are used, fail and are
// closed apart. The new group has no context.
func (g *Group) Split(color, key int) (*Group, error) {
	var refused refusal
	if color != int(int32(color)) || key != int(int32(key)) {
		// A color cut to 32 bits could be another rank's.
		refused.because("color is %d and key %d, of which one is beyond 32 bits", color, key)
	}
	var made *C.ring_group_t
	err := g.call(&refused, func(group *C.ring_group_t, report *C.ring_go_report_t) C.ring_status_t {
		if refused != "" {
			return C.ring_go_split(group, 0, 0, nil, report)
		}
		return C.ring_go_split(group, C.int32_t(color), C.int32_t(key), &made, report)
	})
	if err != nil || made == nil {
		return nil, err
	}
	return &Group{handle: newHandle(made)}, nil
}

// call makes a call that may wait. It is one crossing into C.
func (g *Group) call(refused *refusal, call func(group *C.ring_group_t, report *C.ring_go_report_t) C.ring_status_t) error {
	group, err := g.handle.enter()
	if err != nil {
		return err
	}
	defer g.handle.leave()
	stop := g.watch()
	err = reported(func(report *C.ring_go_report_t) C.ring_status_t { return call(group, report) })
	ended := stop()
	if err == nil {
		return nil
	}
	refused.explain(err)
	if err.Status == ErrAborted {
		if ended != nil {
			err.cause = ended
		} else if g.handle.isClosing() {
			err.cause = ErrClosed
		}
	}
	return err
}

// watch aborts the group when the context ends, until stop, which gives the context's error if it has.
func (g *Group) watch() (stop func() error) {
	ctx := g.ctx
	if ctx == nil || ctx.Done() == nil {
		return func() error { return nil }
	}
	if ctx.Err() != nil {
		_ = g.handle.abort()
		return ctx.Err
	}
	over, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		select {
		case <-ctx.Done():
			// The group may be closing, which aborts it as well.
			_ = g.handle.abort()
			ended <- ctx.Err()
		case <-over:
			ended <- nil
		}
	}()
	return func() error {
		close(over)
		return <-ended
	}
}

// plain is an error that is nil as an interface when it is nil.
func plain(err *Error) error {
	if err == nil {
		return nil
	}
	return err
}

// Forever, as a timeout, is none.
const Forever time.Duration = math.MaxInt64

// milliseconds is a timeout as the library takes it. It rounds up; what is over already is the shortest there is, since 0
// has a meaning of its own.
func milliseconds(timeout time.Duration) C.uint32_t {
	if timeout == 0 {
		return 0
	}
	if timeout < 0 {
		return 1
	}
	ms := (timeout-1)/time.Millisecond + 1
	if ms >= C.RING_TIMEOUT_INFINITE {
		return C.RING_TIMEOUT_INFINITE
	}
	return C.uint32_t(ms)
}

// rankIn32 is a rank as the library takes it; one that doesn't fit is no rank there either.
func rankIn32(rank int) C.int32_t {
	if rank != int(int32(rank)) {
		return math.MaxInt32
	}
	return C.int32_t(rank)
}
