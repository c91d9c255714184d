package ring_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"
	"time"

	"libring/ring"
)

func Example() {
	group, err := ring.OpenFromEnv()
	if err != nil {
		log.Fatal(err)
	}
	defer group.Close()

	gradient := []float32{1, 2, 3}
	if err := group.AllReduce(gradient, ring.Mean); err != nil {
		log.Fatal(err)
	}
}

func ExampleOpen() {
	group, err := ring.Open(ring.Config{
		Rank:       1,
		Size:       4,
		Rendezvous: "node-0:29500", // where rank 0 listens
		Secret:     []byte(os.Getenv("JOB_SECRET")),
		Timeout:    time.Minute,
	})
	if err != nil {
		log.Fatal(err)
	}
	defer group.Close()
}

func ExampleError() {
	var group *ring.Group

	err := ring.AllReduce(group, []float64{1}, ring.Sum)
	var failed *ring.Error
	switch {
	case errors.Is(err, ring.ErrInvalidArgument):
		// The group goes on.
	case errors.As(err, &failed) && failed.Status == ring.ErrPeerLost:
		fmt.Printf("rank %d is gone: %s\n", failed.Rank, failed.Text)
		group.Close()
	}
}

func ExampleGroup_WithContext() {
	var group *ring.Group

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := group.WithContext(ctx).AllReduce([]int64{1}, ring.Max)
	if errors.Is(err, context.Canceled) {
		// The group is aborted on every rank.
		group.Close()
	}
}

func ExampleAllReduceFunc() {
	var group *ring.Group

	// The largest value, and the rank that has it.
	type best struct {
		value float64
		rank  int64
	}
	loss := []best{{value: 0.25, rank: int64(group.Rank())}}
	err := ring.AllReduceFunc(group, loss, func(acc, in []best) {
		for i := range acc {
			if in[i].value > acc[i].value {
				acc[i] = in[i]
			}
		}
	})
	if err != nil {
		log.Fatal(err)
	}
}

func ExampleGroup_Split() {
	var group *ring.Group

	half, err := group.Split(group.Rank()%2, group.Rank())
	if err != nil {
		log.Fatal(err)
	}
	defer half.Close()
}

func ExampleSetLog() {
	err := ring.SetLog(ring.LogWarn, func(level ring.LogLevel, line string) {
		log.Printf("ring: %v: %s", level, line)
	})
	if err != nil {
		log.Fatal(err)
	}
}
