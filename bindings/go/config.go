package ring

// #include <stdlib.h>
// #include "shims.h"
import "C"

import (
	"context"
	"errors"
	"math"
	"strings"
	"time"
	"unsafe"
)

// Config is what a group is made of. Exactly one of Hostfile, Hosts and Rendezvous is set. A zero means the default.
type Config struct {
	// Rank is this process's, from 0. It has no default: a Config that leaves it out is rank 0's.
	Rank int
	// Size is the number of ranks; it may be left out where a hostfile tells it.
	Size int

	// Hostfile is the path of a JSON array with one entry a rank, each an array of "host:port" strings or one such
	// string.
	Hostfile string
	// Hosts is the text of a hostfile.
	Hosts string
	// Rendezvous is the "host:port" where rank 0 listens, alike on all ranks.
	Rendezvous string

	// JobID keeps rings apart: ranks with another one are refused. At most 255 bytes.
	JobID string
	// Secret, 16 to 4096 bytes and alike on all ranks, is what each rank proves to know, and never sends; nil: peers aren't
	// authenticated. Open copies it into C's memory and overwrites the copy before it returns, when the library
	// has its own.
	Secret []byte

	// ConnectTimeout is for the whole of Open; 0 is 60 s, Forever none. Timeouts are rounded up to milliseconds.
	ConnectTimeout time.Duration
	// Timeout is after what time without progress a call fails; 0 is 300 s, Forever none. Ranks may differ.
	Timeout time.Duration

	// Connections per neighbour and address, alike on all ranks; 0 is 1, at most 64.
	Connections int
	Wire        Wire
	Transport   Transport
	// WideAccumulation keeps sums and means of Float16 and BFloat16 in float32 and rounds them once. Alike on all ranks.
	WideAccumulation bool

	// TraceDir is the directory for traces, of which each rank writes one file; empty: none is written.
	TraceDir string
	// StallWarning is after what time without progress a call puts a line in the log that names who it waits for; 0:
	// none does. See SetLog.
	StallWarning time.Duration
}

// Open joins the ring that the configuration describes. It waits until all ranks have joined or ConnectTimeout is over.
func Open(config Config) (*Group, error) { return OpenContext(context.Background(), config) }

// OpenContext is [Open] until the context ends at the latest; the group has no context afterwards.
//
// The context's deadline shortens ConnectTimeout, and the error of a ring that wasn't formed by then says which ranks
// were missing; it is context.DeadlineExceeded, too. The library can't be called off before: after a cancellation
// OpenContext returns at once, with an error that is ErrAborted and context.Canceled, and what it has begun ends in the
// background, at ConnectTimeout or when the ring stands, which is left then.
func OpenContext(ctx context.Context, config Config) (*Group, error) {
	if err := checkABI(); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, calledOff(ctx.Err())
	}
	deadline, hasDeadline := ctx.Deadline()
	if hasDeadline {
		left := time.Until(deadline)
		if left <= 0 {
			return nil, calledOff(context.DeadlineExceeded)
		}
		if config.ConnectTimeout == 0 {
			config.ConnectTimeout = defaultConnectTimeout
		}
		if left < config.ConnectTimeout {
			config.ConnectTimeout = left
		}
	}
	settings, refused := config.inC()
	if refused != nil {
		return nil, refused
	}
	if ctx.Done() == nil {
		return opened(settings.create())
	}

	type outcome struct {
		group *C.ring_group_t
		err   *Error
	}
	done := make(chan outcome, 1)
	go func() {
		group, err := settings.create()
		done <- outcome{group, err}
	}()
	canceled := ctx.Done()
	for {
		select {
		case made := <-done:
			if made.err != nil {
				made.err.cause = ctx.Err()
				// The context's own timer may be a moment late.
				if made.err.cause == nil && hasDeadline && !time.Now().Before(deadline) {
					made.err.cause = context.DeadlineExceeded
				}
			}
			return opened(made.group, made.err)
		case <-canceled:
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				// The library's own deadline is the same, and its error says more.
				canceled = nil
				continue
			}
			go func() {
				if made := <-done; made.err == nil {
					C.ring_group_destroy(made.group)
				}
			}()
			return nil, calledOff(ctx.Err())
		}
	}
}

// What the library takes where no time is set.
const defaultConnectTimeout = 60 * time.Second

// OpenFromEnv is Open with the configuration from the environment, as launchers set it: RING_RANK, RING_HOSTFILE or
// RING_RENDEZVOUS, and others; see ring.h or the README.
func OpenFromEnv() (*Group, error) {
	if err := checkABI(); err != nil {
		return nil, err
	}
	var group *C.ring_group_t
	err := reported(func(report *C.ring_go_report_t) C.ring_status_t {
		return C.ring_go_create_from_env(&group, report)
	})
	return opened(group, err)
}

func opened(group *C.ring_group_t, err *Error) (*Group, error) {
	if err != nil {
		return nil, err
	}
	return &Group{handle: newHandle(group)}, nil
}

func calledOff(cause error) *Error {
	return &Error{Status: ErrAborted, Rank: -1, DetectedBy: -1, Text: "Open was called off: " + cause.Error(), cause: cause}
}

// checkABI keeps structs of another layout from the library.
func checkABI() error {
	if abi := C.ring_abi_version(); abi != C.RING_ABI_VERSION {
		return refusedHere(ErrUnsupported, "libring %s has ABI %d, and this program was built for %d", Version(), uint32(abi),
			C.RING_ABI_VERSION)
	}
	return nil
}

// settings are a configuration in C's memory, which the library may read while goroutines move and the collector runs.
type settings struct {
	config C.ring_config_t
	texts  []unsafe.Pointer
}

func (config *Config) inC() (*settings, *Error) {
	s := new(settings)
	c := &s.config
	C.ring_config_init(c, C.sizeof_ring_config_t)
	numbers := []struct {
		name  string
		value int
		field *C.int32_t
	}{{"Rank", config.Rank, &c.rank}, {"Size", config.Size, &c.size}}
	for _, number := range numbers {
		if number.value < 0 || number.value > math.MaxInt32 {
			return nil, refusedHere(ErrInvalidConfig, "%s is %d", number.name, number.value)
		}
		*number.field = C.int32_t(number.value)
	}
	if config.Connections < 0 || config.Connections > math.MaxInt32 {
		return nil, refusedHere(ErrInvalidConfig, "Connections is %d", config.Connections)
	}
	c.connections = C.uint32_t(config.Connections)
	c.connect_timeout_ms = milliseconds(config.ConnectTimeout)
	c.timeout_ms = milliseconds(config.Timeout)
	c.stall_warning_ms = milliseconds(config.StallWarning)
	c.wire = C.ring_wire_t(config.Wire)
	c.transport = C.ring_transport_t(config.Transport)
	if config.WideAccumulation {
		c.flags = C.RING_FLAG_WIDE_ACCUMULATION
	}

	texts := []struct {
		name, value string
		field       **C.char
	}{
		{"Hostfile", config.Hostfile, &c.hostfile}, {"Hosts", config.Hosts, &c.hosts},
		{"Rendezvous", config.Rendezvous, &c.rendezvous}, {"JobID", config.JobID, &c.job_id},
		{"TraceDir", config.TraceDir, &c.trace_dir},
	}
	for _, text := range texts {
		// C would take what comes before the NUL for the whole.
		if strings.ContainsRune(text.value, 0) {
			return nil, refusedHere(ErrInvalidConfig, "%s contains a NUL", text.name)
		}
	}
	for _, text := range texts {
		if text.value != "" {
			*text.field = C.CString(text.value)
			s.texts = append(s.texts, unsafe.Pointer(*text.field))
		}
	}
	// An empty secret is one, which the library refuses: it must not mean none.
	if config.Secret != nil {
		c.secret = C.CBytes(config.Secret)
		c.secret_len = C.size_t(len(config.Secret))
	}
	return s, nil
}

// create makes the group, and frees the settings.
func (s *settings) create() (*C.ring_group_t, *Error) {
	defer s.free()
	var group *C.ring_group_t
	err := reported(func(report *C.ring_go_report_t) C.ring_status_t {
		return C.ring_go_create(&s.config, &group, report)
	})
	return group, err
}

func (s *settings) free() {
	if s.config.secret != nil {
		secret := unsafe.Slice((*byte)(s.config.secret), int(s.config.secret_len))
		for i := range secret {
			secret[i] = 0
		}
		C.free(s.config.secret)
	}
	for _, text := range s.texts {
		C.free(text)
	}
}
