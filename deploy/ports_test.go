package deploy_test

import (
	"net"
	"testing"
	"time"
)

func freePort(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	check(t, err)
	return port
}

// waitPort waits until somebody listens.
func waitPort(t testing.TB, address string) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; {
		c, err := net.Dial("tcp", address)
		if err == nil {
			c.Close()
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("nobody listens on %s", address)
		}
		time.Sleep(10 * time.Millisecond)
	}
}
