package ring

// #include "shims.h"
import "C"

import "sync/atomic"

var logger atomic.Pointer[func(level LogLevel, line string)]

// SetLog sends log lines of the level and below (more serious) to the function from now on, for the whole process; nil turns
// the log off, as it is at first. Lines come one at a time, on any thread. The function must not use groups: these
// refuse with ErrInvalidState. When SetLog returns the former function isn't running and won't be called again.
//
//	ring.SetLog(ring.LogWarn, func(level ring.LogLevel, line string) { log.Printf("ring: %v: %s", level, line) })
func SetLog(most LogLevel, write func(level LogLevel, line string)) error {
	var next *func(LogLevel, string)
	if write != nil {
		next = &write
	}
	// The library waits for a line that is being written, and lines that begin later go to the new function.
	former := logger.Swap(next)
	err := reported(func(report *C.ring_go_report_t) C.ring_status_t {
		return C.ring_go_set_log(C.bool(write != nil), C.ring_log_level_t(most), report)
	})
	if err != nil {
		logger.CompareAndSwap(next, former)
		return err
	}
	return nil
}

//export ringGoLog
func ringGoLog(level C.ring_log_level_t, message *C.char) {
	write := logger.Load()
	if write == nil {
		return
	}
	// A panic must not go through the library's frames, where somebody above might recover it: it ends the process from a
	// goroutine of its own.
	defer func() {
		if value := recover(); value != nil {
			go panic(value)
			select {}
		}
	}()
	(*write)(LogLevel(level), C.GoString(message))
}
