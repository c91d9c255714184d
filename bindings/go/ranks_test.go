package ring_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"

	"libring/ring"
)

// Ranks are processes: this test program, started again with what a rank is to do in its environment.
const (
	scenarioVariable = "RING_GO_TEST_SCENARIO"
	rankVariable     = "RING_GO_TEST_RANK"
	sizeVariable     = "RING_GO_TEST_SIZE"
	hostsVariable    = "RING_GO_TEST_HOSTS"
)

// A ring that takes longer hangs.
const ringSeconds = 60

// rank is what a scenario is given.
type rank struct {
	number, size int
	hosts        string
}

var scenarios = map[string]func(r rank){}

func TestMain(m *testing.M) {
	if name := os.Getenv(scenarioVariable); name != "" {
		number, _ := strconv.Atoi(os.Getenv(rankVariable))
		size, _ := strconv.Atoi(os.Getenv(sizeVariable))
		scenarios[name](rank{number: number, size: size, hosts: os.Getenv(hostsVariable)})
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// runRing runs a scenario as a ring of processes, of which all but the victims end well; these kill themselves.
func runRing(t *testing.T, size int, scenario string, victims ...int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), ringSeconds*time.Second)
	defer cancel()
	hosts := localHosts(t, size)
	commands, outputs := make([]*exec.Cmd, size), make([]bytes.Buffer, size)
	for number := range commands {
		command := exec.CommandContext(ctx, os.Args[0])
		command.Env = append(os.Environ(), scenarioVariable+"="+scenario, hostsVariable+"="+hosts,
			rankVariable+"="+strconv.Itoa(number), sizeVariable+"="+strconv.Itoa(size))
		command.Stdout, command.Stderr = &outputs[number], &outputs[number]
		if err := command.Start(); err != nil {
			t.Fatal(err)
		}
		commands[number] = command
	}
	for number, command := range commands {
		err := command.Wait()
		var ended *exec.ExitError
		killed := errors.As(err, &ended) && ended.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL
		if contains(victims, number) && killed && ctx.Err() == nil {
			continue
		}
		if err != nil {
			t.Errorf("%s, rank %d of %d: %v\n%s", scenario, number, size, err, outputs[number].Bytes())
		}
	}
}

// runRings runs a scenario as rings of several sizes.
func runRings(t *testing.T, scenario string, sizes ...int) {
	for _, size := range sizes {
		t.Run(fmt.Sprint("n", size), func(t *testing.T) { runRing(t, size, scenario) })
	}
}

func contains(list []int, wanted int) bool {
	for _, value := range list {
		if value == wanted {
			return true
		}
	}
	return false
}

// config is how this rank joins its ring.
func (r rank) config() ring.Config {
	return ring.Config{Rank: r.number, Hosts: r.hosts, ConnectTimeout: 20 * time.Second, Timeout: 20 * time.Second}
}

func (r rank) open() *ring.Group {
	group, err := ring.Open(r.config())
	must(err)
	check(group.Rank() == r.number && group.Size() == r.size, "this is rank %d of %d", group.Rank(), group.Size())
	return group
}

// check ends this process unless the condition holds.
func check(condition bool, format string, arguments ...any) {
	if condition {
		return
	}
	for depth := 1; depth < 4; depth++ {
		if _, file, line, ok := runtime.Caller(depth); ok {
			fmt.Fprintf(os.Stderr, "%s:%d: ", file, line)
		}
	}
	fmt.Fprintf(os.Stderr, format+"\n", arguments...)
	os.Exit(1)
}

func must(err error) { check(err == nil, "%v", err) }

// expect checks what an error is, and gives its details.
func expect(err error, wanted ...error) *ring.Error {
	var details *ring.Error
	check(errors.As(err, &details), "%v is no *ring.Error", err)
	for _, target := range wanted {
		check(errors.Is(err, target), "%q isn't %q", err, target)
	}
	return details
}
