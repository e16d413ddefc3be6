package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/proofrack/proofrack/deploy/internal/keyring"
	"github.com/proofrack/proofrack/shared/fault"
)

const usage = `usage: keys.sh init DIR HOST...             keys of a new rack; HOST: names and addresses of its servers
       keys.sh coordinator DIR NAME         credential of one more coordinator
       keys.sh node DIR NAME DEVICE...      of one more node; DEVICE: cpu, gpu-1a2b3c4d (see "worker-gpu" in its log)
       keys.sh tenant DIR NAME              of one more tenant
       keys.sh operator DIR NAME            of one more operator
       keys.sh revoke DIR KIND NAME         takes one back; reload the NATS servers with the new nats/auth.conf
`

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(args []string, out, errs io.Writer) int {
	if len(args) < 3 {
		fmt.Fprint(errs, usage) //nolint:errcheck // nobody else to tell
		return 2
	}
	if err := do(args[0], args[1], args[2:], out); err != nil {
		fmt.Fprintf(errs, "keys: %v\n", err) //nolint:errcheck // nobody else to tell
		if fault.KindOf(err) == fault.Invalid {
			return 2
		}
		return 1
	}
	return 0
}

func do(verb, dir string, rest []string, out io.Writer) error {
	if verb == "init" {
		if _, err := keyring.Create(dir, rest); err != nil {
			return err
		}
		_, err := fmt.Fprintf(out, "keys of the rack are in %s\n", dir)
		return err
	}
	ring, err := keyring.Open(dir)
	if err != nil {
		return err
	}
	if verb == "revoke" {
		if len(rest) != 2 {
			return fault.New(fault.Invalid, "revoke wants a kind and a name")
		}
		return ring.Revoke(keyring.Kind(rest[0]), rest[1])
	}
	file, err := ring.Add(keyring.Kind(verb), rest[0], rest[1:]...)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "nats.creds_file  %s\nnats.ca_file     %s\n", file, filepath.Join(dir, "tls", "ca.crt"))
	if err == nil && keyring.Kind(verb) != keyring.KindCoordinator {
		_, err = fmt.Fprintln(out, "copy nats/auth.conf to the NATS servers and reload them")
	}
	return err
}
