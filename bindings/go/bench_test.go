package ring_test

import (
	"context"
	"testing"

	"libring/ring"
)

// BenchmarkCall is what a call costs besides the library's work, of which a ring of one has little.
func BenchmarkCall(b *testing.B) {
	group, err := ring.Open(ring.Config{Hosts: `["127.0.0.1:0"]`})
	if err != nil {
		b.Fatal(err)
	}
	defer group.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	buf := make([]float32, 1)
	for _, way := range []struct {
		name string
		call func() error
	}{
		{"method", func() error { return group.AllReduce(buf, ring.Sum) }},
		{"function", func() error { return ring.AllReduce(group, buf, ring.Sum) }},
		{"context", func() error { return group.WithContext(ctx).AllReduce(buf, ring.Sum) }},
		{"refused", func() error { _ = group.AllReduce(nil, ring.Sum); return nil }},
	} {
		b.Run(way.name, func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; i < b.N; i++ {
				if err := way.call(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
