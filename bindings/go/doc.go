// Package ring lets processes form a ring over TCP and reduce and exchange arrays, by libring.
//
//	group, err := ring.OpenFromEnv() // RING_RANK, RING_HOSTFILE and others
//	if err != nil {
//		return err
//	}
//	defer group.Close()
//	err = group.AllReduce(gradient, ring.Mean) // []float32, or a slice of any other Element
//
// # Calls
//
// Every rank makes the same collective calls in the same order with matching arguments; what differs is [ErrMismatch],
// never a wrong number. Arguments stand in the order of ring.h: what is sent, what is received, how.
//
// Collectives and messages are there twice. Methods take slices as any, and find out the type in the call:
// group.AllReduce(buf, ring.Sum). Functions of the same names take the group first, and the compiler checks that buf is a slice
// of an [Element]: ring.AllReduce(group, buf, ring.Sum). Both do the same. Named types will do: type Weights []float32,
// or slices of type Celsius float64.
//
// A call that this rank alone makes in a wrong way, such as with slices of lengths that don't match, is
// [ErrInvalidArgument] and moves nothing, but it takes its number in the order of collectives, as it does in C: the group
// goes on if all ranks' calls were refused, and otherwise the next collective is ErrMismatch.
//
// # Errors
//
// Every error is an [*Error], with the rank at fault where it is known and a text that says what happened. A failure that isn't
// of the caller's own arguments ends the group: every later call returns it at once, and Close is all that remains.
//
// # Goroutines
//
// Any goroutine may call any method. Calls block, each on a thread of its own, which costs nothing while it waits. There are
// no requests as in C, which would leave Go's memory to C beyond a call; a goroutine does the same:
//
//	done := make(chan error, 1)
//	go func() { done <- group.AllReduce(gradient, ring.Mean) }()
//	computeTheNextLayer()
//	err := <-done
//
// Ranks must make collectives in one order, and goroutines have none: start the next collective of a group when the last one
// is done, or give each goroutine a group of its own ([Group.Split]). Messages may run beside collectives.
//
// [Group.WithContext] has calls end with a context, and [Group.Close] ends those of other goroutines.
package ring

// #cgo pkg-config: libring
import "C"
