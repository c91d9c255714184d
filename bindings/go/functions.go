package ring

// Each of these is the group's method of its name, with the slices' type checked by the compiler: a method can't have a
// type parameter.

// AllReduce is [Group.AllReduce], checked by the compiler.
func AllReduce[T Element](g *Group, buf []T, op Op) error { return g.AllReduce(buf, op) }

// AllReduceInto is [Group.AllReduceInto], checked by the compiler.
func AllReduceInto[T Element](g *Group, send, recv []T, op Op) error {
	return g.AllReduceInto(send, recv, op)
}

// ReduceScatter is [Group.ReduceScatter], checked by the compiler.
func ReduceScatter[T Element](g *Group, send, recv []T, op Op) error {
	return g.ReduceScatter(send, recv, op)
}

// AllGather is [Group.AllGather], checked by the compiler.
func AllGather[T Element](g *Group, send, recv []T) error { return g.AllGather(send, recv) }

// Broadcast is [Group.Broadcast], checked by the compiler.
func Broadcast[T Element](g *Group, buf []T, root int) error { return g.Broadcast(buf, root) }

// Reduce is [Group.Reduce], checked by the compiler.
func Reduce[T Element](g *Group, send, recv []T, op Op, root int) error {
	return g.Reduce(send, recv, op, root)
}

// Gather is [Group.Gather], checked by the compiler.
func Gather[T Element](g *Group, send, recv []T, root int) error { return g.Gather(send, recv, root) }

// Scatter is [Group.Scatter], checked by the compiler.
func Scatter[T Element](g *Group, send, recv []T, root int) error {
	return g.Scatter(send, recv, root)
}

// AllToAll is [Group.AllToAll], checked by the compiler.
func AllToAll[T Element](g *Group, send, recv []T) error { return g.AllToAll(send, recv) }

// AllGatherV is [Group.AllGatherV], checked by the compiler.
func AllGatherV[T Element](g *Group, send, recv []T, counts, displs []int) error {
	return g.AllGatherV(send, recv, counts, displs)
}

// ReduceScatterV is [Group.ReduceScatterV], checked by the compiler.
func ReduceScatterV[T Element](g *Group, send, recv []T, counts []int, op Op) error {
	return g.ReduceScatterV(send, recv, counts, op)
}

// AllToAllV is [Group.AllToAllV], checked by the compiler.
func AllToAllV[T Element](g *Group, send []T, sendCounts, sendDispls []int, recv []T, recvCounts, recvDispls []int) error {
	return g.AllToAllV(send, sendCounts, sendDispls, recv, recvCounts, recvDispls)
}

// Send is [Group.Send], checked by the compiler.
func Send[T Element](g *Group, buf []T, dst int) error { return g.Send(buf, dst) }

// Recv is [Group.Recv], checked by the compiler.
func Recv[T Element](g *Group, buf []T, src int) error { return g.Recv(buf, src) }

// SendRecv is [Group.SendRecv], checked by the compiler.
func SendRecv[T Element](g *Group, send []T, dst int, recv []T, src int) error {
	return g.SendRecv(send, dst, recv, src)
}
