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
	"github.com/proofrack/proofrack/shared/bytesize"
)

func main() {
	dir := flag.String("dir", "", "folder of the store")
	listen := flag.String("listen", "", "address and port")
	hosts := flag.Bool("hosts", false, "listen on addresses that are no loopback ones too")
	name := flag.String("name", "hosts", "name of the server, with -hosts")
	cluster := flag.String("cluster", "", "address and port for the other servers of a cluster, with -hosts")
	routes := flag.String("routes", "", "URLs of all servers of the cluster, separated by commas")
	flag.Parse()
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, os.Interrupt)
	var end func()
	var err error
	if *hosts {
		end, err = startForHosts(*dir, *listen, *name, *cluster, *routes)
	} else {
		end, err = startLoopback(*dir, *listen)
	}
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

// storeMax is what the shipped configuration gives. Limits of streams are set aside in full, so that three quarters of
// what is free, the server's default, might not do for them.
const storeMax = 32 * bytesize.GiB

// startForHosts starts the same server on any address, alone or as one of a cluster.
func startForHosts(dir, listen, name, cluster, routes string) (end func(), err error) {
	options := &server.Options{
		ServerName: name, NoLog: true, NoSigs: true, JetStream: true, StoreDir: dir, SyncAlways: true,
		JetStreamMaxStore: int64(storeMax),
		PingInterval:      2 * time.Second, MaxPingsOut: 2,
	}
	if options.Host, options.Port, err = split(listen); err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	if cluster != "" {
		options.Cluster.Name = "proofrack"
		if options.Cluster.Host, options.Cluster.Port, err = split(cluster); err != nil {
			return nil, fmt.Errorf("cluster: %w", err)
		}
		options.Routes = server.RoutesFromStr(routes)
	}
	s, err := server.NewServer(options)
	if err != nil {
		return nil, fmt.Errorf("start: %w", err)
	}
	s.Start()
	if !s.ReadyForConnections(10 * time.Second) {
		return nil, errors.New("start: the server does not get ready")
	}
	return func() { s.Shutdown(); s.WaitForShutdown() }, nil
}

func split(address string) (host string, port int, err error) {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return "", 0, err
	}
	port, err = strconv.Atoi(text)
	return host, port, err
}
