// Sums an array over all ranks. The ring comes from the environment: RING_RANK, RING_HOSTFILE.
package main

import (
	"fmt"
	"log"

	"libring/ring"
)

func main() {
	group, err := ring.OpenFromEnv()
	if err != nil {
		log.Fatal(err)
	}
	defer group.Close()

	rank := float32(group.Rank())
	gradient := []float32{rank + 0.5, rank + 1.5, rank + 2.5, rank + 3.5}
	if err := group.AllReduce(gradient, ring.Sum); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("rank %d of %d: %v\n", group.Rank(), group.Size(), gradient)
}
