package ring_test

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
)

// Below the ports that Linux (32768) and macOS (49152) give to outgoing connections: one of those could take a port
// between the look and the use.
const firstPort, ports = 10000, 20000

var triedPorts = os.Getpid() * 61

// keep takes a free port by a socket that is bound to it and doesn't listen. A rank's listener, which has SO_REUSEADDR, may
// bind it all the same; whoever lacks that, and the system, may not.
func keep(port int) (int, bool) {
	syscall.ForkLock.RLock()
	socket, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(socket)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return -1, false
	}
	// Set before bind, SO_REUSEADDR would find a port free that another keeps.
	if syscall.Bind(socket, &syscall.SockaddrInet4{Port: port}) == nil &&
		syscall.SetsockoptInt(socket, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1) == nil {
		return socket, true
	}
	syscall.Close(socket)
	return -1, false
}

// localHosts is a hostfile's text for a ring on this host, on ports that stay taken for its ranks until the test ends.
func localHosts(t *testing.T, size int) string {
	t.Helper()
	var hosts []string
	for tries := 0; len(hosts) < size && tries < ports; tries++ {
		triedPorts++
		port := firstPort + triedPorts%ports
		if socket, ok := keep(port); ok {
			t.Cleanup(func() { syscall.Close(socket) })
			hosts = append(hosts, fmt.Sprintf(`"127.0.0.1:%d"`, port))
		}
	}
	if len(hosts) < size {
		t.Fatal("no free ports on 127.0.0.1")
	}
	return "[" + strings.Join(hosts, ",") + "]"
}
