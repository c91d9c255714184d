package ring_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"libring/ring"
)

func TestOpen(t *testing.T) {
	unreached := localHosts(t, 2)
	short := 300 * time.Millisecond
	for _, wrong := range []struct {
		config ring.Config
		status ring.Status
		text   string
	}{
		{ring.Config{}, ring.ErrInvalidConfig, "host"},
		{ring.Config{Hosts: "[", Rank: 0}, ring.ErrInvalidConfig, ""},
		{ring.Config{Hosts: unreached, Rank: 2}, ring.ErrInvalidConfig, "2"},
		{ring.Config{Hosts: unreached, Rank: -1}, ring.ErrInvalidConfig, "Rank is -1"},
		{ring.Config{Hosts: unreached, Size: 1 << 40}, ring.ErrInvalidConfig, "Size is"},
		{ring.Config{Hosts: unreached, Connections: -1}, ring.ErrInvalidConfig, "Connections is -1"},
		{ring.Config{Hosts: unreached, Connections: 65}, ring.ErrInvalidConfig, "65"},
		{ring.Config{Hosts: unreached, Hostfile: "too"}, ring.ErrInvalidConfig, ""},
		{ring.Config{Hostfile: "/no/such\x00file"}, ring.ErrInvalidConfig, "NUL"},
		{ring.Config{Hostfile: "/no/such/file"}, ring.ErrInvalidConfig, "/no/such/file"},
		{ring.Config{Hosts: unreached, Secret: []byte{}}, ring.ErrInvalidConfig, "secret"},
		{ring.Config{Hosts: unreached, Secret: []byte("short")}, ring.ErrInvalidConfig, "secret"},
		{ring.Config{Hosts: unreached, Transport: ring.TransportSHM}, ring.ErrUnsupported, ""},
		{ring.Config{Hosts: unreached, Wire: 99}, ring.ErrInvalidConfig, ""},
		{ring.Config{Hosts: unreached, ConnectTimeout: short}, ring.ErrConnectFailed, "rank 1"},
		{ring.Config{Rendezvous: "127.0.0.1:1", Rank: 1, Size: 2, ConnectTimeout: short}, ring.ErrConnectFailed, "127.0.0.1:1"},
	} {
		group, err := ring.Open(wrong.config)
		var details *ring.Error
		if group != nil || !errors.As(err, &details) {
			t.Errorf("%+v: %v", wrong.config, err)
			continue
		}
		if details.Status != wrong.status || !strings.Contains(details.Text, wrong.text) || details.Rank != -1 {
			t.Errorf("%+v: %s of rank %d: %v, not %s with %q", wrong.config, details.Status.Name(), details.Rank, err,
				wrong.status.Name(), wrong.text)
		}
	}
}

func TestOpenContext(t *testing.T) {
	config := ring.Config{Hosts: localHosts(t, 2), ConnectTimeout: 2 * time.Second}
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	started := time.Now()
	_, err := ring.OpenContext(ctx, config)
	if !errors.Is(err, ring.ErrConnectFailed) || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "rank 1") {
		t.Errorf("at the deadline: %v", err)
	}
	if took := time.Since(started); took > config.ConnectTimeout {
		t.Errorf("the deadline came after %v", took)
	}
	_, err = ring.OpenContext(ctx, config)
	if !errors.Is(err, ring.ErrAborted) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("after the deadline: %v", err)
	}

	ctx, cancel = context.WithCancel(context.Background())
	time.AfterFunc(50*time.Millisecond, cancel)
	started = time.Now()
	_, err = ring.OpenContext(ctx, config)
	if !errors.Is(err, ring.ErrAborted) || !errors.Is(err, context.Canceled) {
		t.Errorf("after a cancellation: %v", err)
	}
	if took := time.Since(started); took > config.ConnectTimeout {
		t.Errorf("the cancellation came after %v", took)
	}

	alone, err := ring.OpenContext(context.Background(), ring.Config{Hosts: `["127.0.0.1:0"]`})
	if err != nil {
		t.Fatal(err)
	}
	defer alone.Close()
	if alone.Size() != 1 || alone.Failure() != nil {
		t.Errorf("a ring of one has %d ranks and %v", alone.Size(), alone.Failure())
	}
}

func TestWays(t *testing.T) { runRings(t, "ways", 2, 3) }

func TestSecret(t *testing.T) { runRing(t, 2, "secret") }

func TestSplit(t *testing.T) { runRings(t, "split", 1, 2, 5) }

func TestLogAndStats(t *testing.T) { runRing(t, 2, "log and stats") }

func TestLogUsesGroups(t *testing.T) { runRings(t, "log uses groups", 1, 2, 3) }

func TestNames(t *testing.T) {
	names := map[ring.Status]string{
		ring.ErrInvalidArgument: "INVALID_ARGUMENT", ring.ErrInvalidState: "INVALID_STATE", ring.ErrUnsupported: "UNSUPPORTED",
		ring.ErrInvalidConfig: "INVALID_CONFIG", ring.ErrConnectFailed: "CONNECT_FAILED", ring.ErrAuthFailed: "AUTH_FAILED",
		ring.ErrMismatch: "MISMATCH", ring.ErrPeerLost: "PEER_LOST", ring.ErrTimeout: "TIMEOUT", ring.ErrAborted: "ABORTED",
		ring.ErrSystem: "SYSTEM", ring.ErrOutOfMemory: "OUT_OF_MEMORY", ring.ErrInternal: "INTERNAL",
	}
	for status, name := range names {
		if status.Name() != "RING_STATUS_"+name || status.Error() == "" {
			t.Errorf("status %d is %s, %q", status, status.Name(), status.Error())
		}
	}
	// All but success and what requests alone give have one.
	for status := ring.Status(1); status.Name() != "RING_STATUS_UNKNOWN"; status++ {
		if _, known := names[status]; !known && status.Name() != "RING_STATUS_PENDING" {
			t.Errorf("%s has no name in Go", status.Name())
		}
	}
	for op, name := range map[ring.Op]string{
		ring.Sum: "sum", ring.Max: "max", ring.Min: "min", ring.Prod: "prod", ring.Mean: "mean",
		ring.BAnd: "band", ring.BOr: "bor", ring.BXor: "bxor",
	} {
		if op.String() != name {
			t.Errorf("%d is %v, not %s", op, op, name)
		}
	}
	if ring.Version() == "" {
		t.Error("no version")
	}
}

func init() {
	// From a hostfile, from the environment, and by a rendezvous.
	scenarios["ways"] = func(r rank) {
		folder, err := os.MkdirTemp("", "")
		must(err)
		defer os.RemoveAll(folder)
		file := filepath.Join(folder, "hosts.json")
		must(os.WriteFile(file, []byte(r.hosts), 0o600))
		meet := func(group *ring.Group, err error) {
			must(err)
			value := []int{r.number}
			must(group.AllReduce(value, ring.Sum))
			check(value[0] == r.size*(r.size-1)/2, "%v", value)
			must(group.Close())
		}
		meet(ring.Open(ring.Config{
			Rank: r.number, Size: r.size, Hostfile: file, JobID: "a job", Connections: 2, ConnectTimeout: long,
			Timeout: ring.Forever, WideAccumulation: true, Transport: ring.TransportTCP,
		}))

		for name, value := range map[string]string{"RING_RANK": strconv.Itoa(r.number), "RING_HOSTFILE": file, "RING_CONNECT_TIMEOUT_MS": "20000"} {
			must(os.Setenv(name, value))
		}
		meet(ring.OpenFromEnv())
		must(os.Setenv("RING_CONNECTIONS", "many"))
		_, err = ring.OpenFromEnv()
		check(strings.Contains(expect(err, ring.ErrInvalidConfig).Text, "RING_CONNECTIONS"), "%v", err)

		address := strings.Split(r.hosts, `"`)[1]
		ctx, cancel := context.WithTimeout(context.Background(), long)
		meet(ring.OpenContext(ctx, ring.Config{Rank: r.number, Size: r.size, Rendezvous: address}))
		cancel()
	}

	scenarios["secret"] = func(r rank) {
		config := r.config()
		config.Secret = []byte("a secret of this ring alone")
		group, err := ring.Open(config)
		must(err)
		must(group.Barrier())
		must(group.Close())
		check(string(config.Secret) == "a secret of this ring alone", "the caller's secret was overwritten")

		config.ConnectTimeout = time.Second
		config.Secret = append(config.Secret, byte(r.number))
		_, err = ring.Open(config)
		expect(err, ring.ErrAuthFailed)
	}

	scenarios["split"] = func(r rank) {
		g := r.open()
		half, err := g.Split(r.number%2, -r.number)
		must(err)
		ranks := (r.size + 1 - r.number%2) / 2
		check(half.Size() == ranks && half.Rank() == ranks-1-r.number/2, "rank %d of %d", half.Rank(), half.Size())
		value := []int64{int64(r.number)}
		must(half.AllReduce(value, ring.Max))
		check(value[0]%2 == int64(r.number%2), "%v", value)

		color := 0
		if r.number == 0 {
			color = -1
		}
		rest, err := g.WithContext(context.Background()).Split(color, 0)
		must(err)
		check((rest == nil) == (r.number == 0), "%v", rest)
		if rest != nil {
			// Groups fail apart.
			must(rest.Abort())
			expect(rest.Barrier(), ring.ErrAborted)
			must(rest.Close())
		}
		must(g.Barrier())
		must(half.Barrier())
		must(g.Close())
		must(half.Close())
	}

	scenarios["log and stats"] = func(r rank) {
		var mu sync.Mutex
		var lines []string
		must(ring.SetLog(ring.LogDebug, func(level ring.LogLevel, line string) {
			mu.Lock()
			defer mu.Unlock()
			lines = append(lines, level.String()+" "+line)
		}))
		g := r.open()
		must(g.SetTimeout(long))
		must(g.AllReduce(make([]float64, 1000), ring.Sum))
		stats, err := g.Stats()
		must(err)
		check(stats.Operations == 1 && stats.BytesSent >= 8000 && stats.BytesReceived >= 8000 && stats.Busy > 0 && stats.StrangersRefused == 0,
			"%+v", stats)
		// An abort ends calls on ranks that are a moment behind, too.
		if r.number == 0 {
			must(g.Recv([]byte{0}, 1))
			must(g.Abort())
		} else {
			_ = g.Send([]byte{0}, 0)
		}
		logged := func() string {
			mu.Lock()
			defer mu.Unlock()
			return strings.Join(lines, "\n")
		}
		for !strings.Contains(logged(), "error ") {
			time.Sleep(time.Millisecond)
		}
		must(ring.SetLog(0, nil))
		before := logged()
		lines = nil
		check(strings.Contains(before, "abort"), "the log: %q", before)
		must(g.Close())
		again := ring.SetLog(99, func(ring.LogLevel, string) {})
		expect(again, ring.ErrInvalidArgument)
		config := r.config()
		config.Hosts = "["
		_, err = ring.Open(config)
		expect(err, ring.ErrInvalidConfig)
		check(len(lines) == 0, "a log that is off: %q", lines)
	}

	// Whatever a log's function asks of the group is refused, and waited for by nobody, also while others close it.
	scenarios["log uses groups"] = func(r rank) {
		g := r.open()
		closing, used := make(chan struct{}, 1), make(chan struct{})
		var once sync.Once
		must(ring.SetLog(ring.LogError, func(ring.LogLevel, string) {
			once.Do(func() {
				closing <- struct{}{}
				if r.number == 1 {
					// This is the watcher's thread, for which the other Close waits.
					time.Sleep(50 * time.Millisecond)
				}
				_, err := g.Stats()
				for _, err := range []error{err, g.Barrier(), g.Abort(), g.Failure(), g.Close()} {
					expect(err, ring.ErrInvalidState)
				}
				close(used)
			})
		}))
		if r.number == 0 {
			must(g.Abort())
		}
		<-closing
		must(g.Close())
		<-used
		must(ring.SetLog(0, nil))
	}
}
