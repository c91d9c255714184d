package ring_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"libring/ring"
)

func TestLostPeer(t *testing.T) {
	runRing(t, 2, "lost peer", 1)
	runRing(t, 4, "lost peer", 1)
}

func TestContext(t *testing.T) { runRings(t, "context", 2, 3) }

func TestClose(t *testing.T) { runRings(t, "close", 1, 2, 3) }

func TestCloseRaces(t *testing.T) { runRings(t, "close races", 2, 3) }

func TestTexts(t *testing.T) { runRing(t, 2, "texts") }

// long is a time that no test waits for.
const long = 20 * time.Second

func init() {
	scenarios["lost peer"] = func(r rank) {
		g := r.open()
		if r.number == 1 {
			syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
		err := g.AllReduce(make([]float32, 1000), ring.Sum)
		details := expect(err, ring.ErrPeerLost)
		check(details.Status == ring.ErrPeerLost && details.Rank == 1 && details.DetectedBy >= 0 && details.Sequence == 1,
			"%+v", details)
		check(strings.Contains(details.Text, "rank 1") && strings.HasPrefix(err.Error(), "ring: "), "%v", err)
		check(!errors.Is(err, ring.ErrTimeout) && !errors.Is(err, ring.ErrClosed), "%v", err)
		if details.OSError != 0 {
			check(errors.Is(err, details.OSError), "%v isn't %v", err, details.OSError)
		}
		// It stays, and is known between calls.
		again := expect(g.Barrier(), ring.ErrPeerLost)
		check(again.Rank == 1, "%+v", again)
		known := expect(g.Failure(), ring.ErrPeerLost)
		check(known.Rank == 1 && strings.Contains(known.Text, "rank 1"), "%+v", known)
		must(g.Close())
	}

	scenarios["context"] = func(r rank) {
		g := r.open()
		defer g.Close()
		// A context that doesn't end changes nothing, and one that ends between calls neither.
		ctx, cancel := context.WithCancel(context.Background())
		value := []int32{1}
		must(ring.AllReduce(g.WithContext(ctx), value, ring.Sum))
		cancel()
		must(g.AllReduce(value, ring.Sum))
		check(value[0] == int32(r.size*r.size), "%v", value)

		ended := func(g *ring.Group, ctx context.Context, cause error) {
			if r.number == 0 {
				started := time.Now()
				err := g.WithContext(ctx).AllReduce(value, ring.Sum)
				details := expect(err, ring.ErrAborted, cause)
				check(details.Rank == 0 && time.Since(started) < long, "%+v", details)
				check(!errors.Is(err, ring.ErrClosed), "%v", err)
			}
			if r.number == 1 {
				// Without a context; the last rank of three makes no call before the abort.
				details := expect(g.Barrier(), ring.ErrAborted)
				check(details.Rank == 0 && !errors.Is(details, context.Canceled), "%+v", details)
			}
			for g.Failure() == nil {
				time.Sleep(time.Millisecond)
			}
			expect(g.Barrier(), ring.ErrAborted)
			must(g.Close())
		}
		split := func() *ring.Group {
			child, err := g.Split(0, r.number)
			must(err)
			return child
		}

		// Rank 1 is in another call, and the last one in none: rank 0's call can only end by its context.
		child := split()
		if r.size == 2 && r.number == 1 {
			for child.Failure() == nil {
				time.Sleep(time.Millisecond)
			}
		}
		ctx, cancel = context.WithCancel(context.Background())
		time.AfterFunc(50*time.Millisecond, cancel)
		if r.size == 3 && r.number == 1 {
			expect(child.AllReduce(make([]int32, 1), ring.Sum), ring.ErrAborted)
		}
		ended(child, ctx, context.Canceled)

		child = split()
		ctx, cancel = context.WithTimeout(context.Background(), 50*time.Millisecond)
		defer cancel()
		if r.number == 1 {
			for child.Failure() == nil {
				time.Sleep(time.Millisecond)
			}
		}
		ended(child, ctx, context.DeadlineExceeded)

		child = split()
		ctx, cancel = context.WithCancel(context.Background())
		cancel()
		ended(child, ctx, context.Canceled)
		must(g.Barrier())
	}

	scenarios["close"] = func(r rank) {
		g := r.open()
		child, err := g.Split(0, 0)
		must(err)
		if r.size > 1 {
			// A call that can't end: nobody sends, and rank 0 alone reduces.
			errs := make(chan error, 2)
			go func() { errs <- g.Recv(make([]byte, 1), (r.number+1)%r.size) }()
			if r.number == 0 {
				go func() { errs <- g.AllReduce(make([]byte, 1), ring.Sum) }()
			} else {
				errs <- g.SendRecv(nil, ring.None, []byte{}, ring.None)
			}
			must(child.Barrier())
			// Rank 0 closes while its calls run, and the others' are aborted by that.
			if r.number == 0 {
				time.Sleep(20 * time.Millisecond)
				must(g.Close())
				for i := 0; i < 2; i++ {
					expect(<-errs, ring.ErrAborted, ring.ErrClosed)
				}
			} else {
				must(<-errs)
				err := <-errs
				check(expect(err, ring.ErrAborted).Rank == 0 && !errors.Is(err, ring.ErrClosed), "%v", err)
			}
		}
		must(g.Close())
		must(g.Close())
		for _, err := range []error{g.Barrier(), g.AllReduce([]int{1}, ring.Sum), g.Abort(), g.SetTimeout(time.Second), g.Failure()} {
			expect(err, ring.ErrInvalidState, ring.ErrClosed)
		}
		_, err = g.Stats()
		expect(err, ring.ErrClosed)
		_, err = g.WithContext(context.Background()).Split(0, 0)
		expect(err, ring.ErrClosed)
		check(g.Rank() == r.number && g.Size() == r.size, "a closed group has forgotten its rank")

		// An idle group says goodbye: who needs this rank hears that it has left, not of an abort.
		must(child.Barrier())
		if r.number == r.size-1 {
			must(child.Close())
		} else {
			details := expect(child.AllReduce([]int{1}, ring.Sum), ring.ErrPeerLost)
			check(details.Rank == r.size-1, "%+v", details)
		}
		must(child.Close())
	}

	scenarios["close races"] = func(r rank) {
		g := r.open()
		for round := 0; round < 20; round++ {
			child, err := g.Split(0, 0)
			must(err)
			var running sync.WaitGroup
			failed := func(err error) bool {
				if err == nil {
					return false
				}
				details := expect(err)
				known := details.Status == ring.ErrAborted || details.Status == ring.ErrPeerLost || errors.Is(err, ring.ErrClosed)
				check(known, "%v", err)
				return true
			}
			until := func(call func() error) {
				running.Add(1)
				go func() {
					defer running.Done()
					for !failed(call()) {
					}
				}()
			}
			ctx, cancel := context.WithTimeout(context.Background(), time.Duration(round+1)*time.Millisecond)
			for i := 0; i < 4; i++ {
				until(func() error { return child.AllReduce([]int32{1, 2, 3}, ring.Sum) })
			}
			until(func() error { return child.WithContext(ctx).AllReduce([]int32{1, 2, 3}, ring.Sum) })
			until(func() error { return child.Recv([]int32{1}, (r.number+1)%r.size) })
			until(func() error { _, err := child.Stats(); return err })
			until(func() error {
				if err := child.Failure(); errors.Is(err, ring.ErrClosed) {
					return err
				}
				return nil
			})
			time.Sleep(time.Duration(round) * time.Millisecond / 4)
			for i := 0; i < 2; i++ {
				running.Add(1)
				go func() {
					defer running.Done()
					must(child.Close())
				}()
			}
			running.Wait()
			cancel()
		}
		must(g.Barrier())
		must(g.Close())
	}

	// The library keeps a text for each thread, and goroutines change threads: each must have the one of its own call.
	scenarios["texts"] = func(r rank) {
		g := r.open()
		var running sync.WaitGroup
		for i := 0; i < 32; i++ {
			running.Add(1)
			go func(dst int) {
				defer running.Done()
				for call := 0; call < 500; call++ {
					details := expect(g.Send([]byte{1}, dst), ring.ErrInvalidArgument)
					check(strings.Contains(details.Text, fmt.Sprintf("dst is %d,", dst)), "sent to %d: %s", dst, details.Text)
					check(details.Rank == -1 && details.Sequence == 0, "%+v", details)
				}
			}(1000 + i)
		}
		running.Wait()
		must(g.Barrier())
		must(g.Close())
	}
}
