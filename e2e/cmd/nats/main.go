package main

import (
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/proofrack/proofrack/shared/bus/natsbus"
)

func main() {
	dir := flag.String("dir", "", "folder of the store")
	listen := flag.String("listen", "", "address and port")
	hosts := flag.Bool("hosts", false, "listen on addresses that are no loopback ones too")
	flag.Parse()
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, os.Interrupt)
	start := startLoopback
	if *hosts {
		start = startForHosts
	}
	end, err := start(*dir, *listen)
	if err != nil {
		fmt.Fprintln(os.Stderr, err) //nolint:errcheck // nobody else to tell
		os.Exit(1)
	}
	<-stop
	end()
}

func startLoopback(dir, listen string) (end func(), err error) {
	s, err := natsbus.StartEmbedded(natsbus.EmbeddedConfig{Dir: dir, Listen: listen, Sync: true})
	if err != nil {
		return nil, err
	}
	return s.Stop, nil
}

// startForHosts starts the same server on any address.
func startForHosts(dir, listen string) (end func(), err error) {
	host, text, err := net.SplitHostPort(listen)
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	s, err := server.NewServer(&server.Options{
		ServerName: "hosts", Host: host, Port: port, NoLog: true, NoSigs: true,
		JetStream: true, StoreDir: dir, SyncAlways: true,
	})
	if err != nil {
		return nil, fmt.Errorf("start: %w", err)
	}
	s.Start()
	if !s.ReadyForConnections(10 * time.Second) {
		return nil, errors.New("start: the server does not get ready")
	}
	return func() { s.Shutdown(); s.WaitForShutdown() }, nil
}
