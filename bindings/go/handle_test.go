package ring

import (
	"errors"
	"math"
	"testing"
	"time"
)

// A call that has been let in, and that the library doesn't know of yet, keeps the group's memory.
func TestCloseWaitsForCallsOnTheirWay(t *testing.T) {
	group, err := Open(Config{Hosts: `["127.0.0.1:0"]`})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := group.handle.enter(); err != nil {
		t.Fatal(err)
	}
	closed := make(chan error)
	go func() { closed <- group.Close() }()
	for !group.handle.isClosing() {
		time.Sleep(time.Millisecond)
	}
	if err := group.Barrier(); !errors.Is(err, ErrClosed) {
		t.Errorf("a later call: %v", err)
	}
	select {
	case <-closed:
		t.Fatal("the group was freed around a call")
	case <-time.After(50 * time.Millisecond):
	}
	group.handle.leave()
	if err := <-closed; err != nil {
		t.Error(err)
	}
}

func TestMilliseconds(t *testing.T) {
	for timeout, wanted := range map[time.Duration]uint32{
		0: 0, -time.Second: 1, 1: 1, time.Millisecond: 1, time.Millisecond + 1: 2, time.Minute: 60000,
		1000 * time.Hour: 3600000000, 50 * 24 * time.Hour: math.MaxUint32, Forever: math.MaxUint32,
	} {
		if got := uint32(milliseconds(timeout)); got != wanted {
			t.Errorf("%v is %d ms, not %d", timeout, got, wanted)
		}
	}
}
