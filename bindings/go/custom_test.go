package ring_test

import (
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"

	"libring/ring"
)

func TestCustom(t *testing.T) { runRings(t, "custom", 1, 2, 3, 5, 8) }

func TestCustomPanics(t *testing.T) { runRings(t, "custom panics", 2, 3) }

// What can't go on ends the process, and says why.
func TestCustomEndsItsGoroutine(t *testing.T) {
	const variable = "RING_TEST_GOEXIT"
	if hosts := os.Getenv(variable); hosts != "" {
		var ranks sync.WaitGroup
		for number := 0; number < 2; number++ {
			ranks.Add(1)
			go func(number int) {
				defer ranks.Done()
				group, err := ring.Open(ring.Config{Rank: number, Hosts: hosts})
				must(err)
				_ = ring.AllReduceFunc(group, []int64{1, 2}, func(acc, in []int64) { runtime.Goexit() })
			}(number)
		}
		ranks.Wait()
		return
	}
	command := exec.Command(os.Args[0], "-test.run=^TestCustomEndsItsGoroutine$", "-test.timeout=20s")
	command.Env = append(os.Environ(), variable+"="+localHosts(t, 2))
	output, err := command.CombinedOutput()
	if err == nil || !strings.Contains(string(output), "panic: ring: a reduction has ended its goroutine") {
		t.Errorf("%v\n%s", err, output)
	}
}

// A buffer in a struct that has pointers, too: cgo must not look at these.
type holder struct {
	next   *holder
	values [3]float32
}

func TestBuffersBesidePointers(t *testing.T) {
	group, err := ring.Open(ring.Config{Hosts: `["127.0.0.1:0"]`})
	if err != nil {
		t.Fatal(err)
	}
	defer group.Close()
	held := &holder{next: &holder{}, values: [3]float32{1, 2, 3}}
	if err := group.AllReduce(held.values[:], ring.Sum); err != nil || held.values[2] != 3 {
		t.Error(held.values, err)
	}
	if err := ring.AllReduceFunc(group, held.values[:], func(acc, in []float32) {}); err != nil {
		t.Error(err)
	}
}

// best is the largest value, and where it is.
type best struct {
	value float64
	rank  int32
	index int32
}

func largest(acc, in []best) {
	for i := range acc {
		if in[i].value > acc[i].value {
			acc[i] = in[i]
		}
	}
}

func init() {
	scenarios["custom"] = func(r rank) {
		g := r.open()
		defer g.Close()
		for _, count := range awkwardCounts {
			// Rank (i % size) has the largest value i.
			held, wanted := make([]best, count), make([]best, count)
			for i := range held {
				value := func(rank int) float64 { return float64(i) - float64((rank+i)%r.size) }
				holder := (r.size - i%r.size) % r.size
				held[i] = best{value(r.number), int32(r.number), int32(i)}
				wanted[i] = best{value(holder), int32(holder), int32(i)}
			}
			got := make([]best, count)
			must(ring.AllReduceFuncInto(g, held, got, largest))
			check(equal(got, wanted), "AllReduceFuncInto of %d: %v, not %v", count, got, wanted)
			must(ring.AllReduceFunc(g, held, largest))
			check(equal(held, wanted), "AllReduceFunc of %d: %v, not %v", count, held, wanted)
		}

		// Rank r gets r pairs of sums, and of what is added up no element is another's.
		counts, total := make([]int, r.size), 0
		for other := range counts {
			counts[other] = other
			total += other
		}
		send, got := make([][2]int16, total), make([][2]int16, r.number)
		for i := range send {
			send[i] = [2]int16{int16(r.number), int16(i)}
		}
		must(ring.ReduceScatterVFunc(g, send, got, counts, func(acc, in [][2]int16) {
			for i := range acc {
				acc[i][0] += in[i][0]
				acc[i][1] += in[i][1]
			}
			expect(g.Barrier(), ring.ErrInvalidState)
			expect(g.Close(), ring.ErrInvalidState)
		}))
		first := r.number * (r.number - 1) / 2
		for i, pair := range got {
			check(pair == [2]int16{int16(r.size * (r.size - 1) / 2), int16(r.size * (first + i))}, "element %d is %v", i, pair)
		}
		must(g.Barrier())
	}

	scenarios["custom panics"] = func(r rank) {
		g := r.open()
		defer g.Close()
		values := make([]float64, 1000)
		reduce := func() (panicked any, err error) {
			defer func() { panicked = recover() }()
			return nil, ring.AllReduceFunc(g, values, func(acc, in []float64) {
				if r.number == 0 {
					panic("on purpose")
				}
			})
		}
		panicked, err := reduce()
		if r.number == 0 {
			check(panicked == "on purpose", "the panic is %v", panicked)
		} else if err != nil {
			check(expect(err, ring.ErrAborted).Rank == 0, "%v", err)
		}
		check(expect(g.Barrier(), ring.ErrAborted).Rank == 0, "the group has not failed")
	}
}
