package main

import (
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/proofrack/proofrack/shared/bus/natsbus"
)

func main() {
	dir := flag.String("dir", "", "folder of the store")
	listen := flag.String("listen", "", "loopback address and port")
	flag.Parse()
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, os.Interrupt)
	server, err := natsbus.StartEmbedded(natsbus.EmbeddedConfig{Dir: *dir, Listen: *listen, Sync: true})
	if err != nil {
		fmt.Fprintln(os.Stderr, err) //nolint:errcheck // nobody else to tell
		os.Exit(1)
	}
	<-stop
	server.Stop()
}
