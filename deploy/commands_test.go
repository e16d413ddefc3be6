package deploy_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/proofrack/proofrack/deploy/internal/keyring"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/wire"
)

// command runs proofrack as somebody and gives its exit code and what it printed.
func (s *servers) command(program, creds, ca string, args ...string) (int, string) {
	s.t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Env = append(os.Environ(), "PROOFRACK_SERVER=tls://"+s.nats.Addr().String(), "PROOFRACK_CREDS="+creds,
		"PROOFRACK_CA="+ca, "PROOFRACK_TENANT=")
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		s.t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

// commands has a tenant and an operator work with proofrack, which is told nothing but the credential.
func (s *servers) commands(program string, id job.ID) {
	s.t.Helper()
	of := func(kind keyring.Kind, name string) string {
		return filepath.Join(s.dir, keyring.CredsFile(kind, name))
	}
	tenant, operator := of(keyring.KindTenant, "main"), of(keyring.KindOperator, "ann")
	ca := filepath.Join(s.dir, "tls", "ca.crt")
	proof := filepath.Join(s.t.TempDir(), "proof")
	foreign, err := keyring.Create(s.t.TempDir(), []string{"localhost"})
	check(s.t, err)
	stranger, err := foreign.Add(keyring.KindTenant, "main")
	check(s.t, err)
	for _, c := range []struct {
		creds, ca string
		args      []string
		code      int
		want      string
	}{
		{tenant, ca, []string{"jobs"}, 0, string(id)},
		{tenant, ca, []string{"job", string(id)}, 0, "done"},
		{tenant, ca, []string{"result", string(id), "--out", proof}, 0, ""},
		{tenant, ca, []string{"watch", string(id)}, 0, ""},
		{operator, ca, []string{"nodes"}, 0, "n2"},
		{operator, ca, []string{"jobs", "--all-tenants"}, 0, string(id)},
		{operator, ca, []string{"ledger"}, 0, "n1"},
		{operator, ca, []string{"audit"}, 0, string(id)},
		{operator, ca, []string{"dlq", "list"}, 0, ""},
		{operator, ca, []string{"intake", "pause", "--reason", "a test"}, 0, ""},
		{operator, ca, []string{"intake", "resume"}, 0, ""},
		{operator, ca, []string{"drain", "n1", "--wait"}, 0, ""},
		{operator, ca, []string{"drain", "n1", "--undo"}, 0, ""},
		{tenant, ca, []string{"nodes"}, 3, "needs an operator's credential"},
		{tenant, ca, []string{"jobs", "--all-tenants"}, 3, "needs an operator's credential"},
		{operator, ca, []string{"jobs"}, 3, "needs a tenant's credential"},
		{of(keyring.KindNode, "n1"), ca, []string{"cancel", string(id)}, 3, "needs a tenant's credential"},
		{tenant, ca, []string{"jobs", "--tenant", "other"}, 3, "is of tenant main"},
		{of(keyring.KindTenant, "other"), ca, []string{"job", string(id)}, 3, "no job"},
		{"", ca, []string{"jobs"}, 3, "--creds"},
		{stranger, ca, []string{"jobs"}, 3, "does not know the credential"},
		{ca, ca, []string{"jobs"}, 3, "none of a user"},
		{"/nowhere", ca, []string{"jobs"}, 3, "/nowhere"},
		{tenant, "", []string{"jobs"}, 3, "--ca"},
		{tenant, tenant, []string{"jobs"}, 3, "--ca"},
		{tenant, "/nowhere", []string{"jobs"}, 3, "ca_file"},
	} {
		code, out := s.command(program, c.creds, c.ca, c.args...)
		if code != c.code || !strings.Contains(out, c.want) || code != 0 && strings.Count(out, "\n") > 2 {
			s.t.Errorf("%s %v: exit code %d, want %d with %q:\n%s", filepath.Base(c.creds), c.args, code, c.code, c.want, out)
		}
	}
	if text, err := os.ReadFile(proof); err != nil || len(text) != 4*wire.ProofBytes {
		s.t.Errorf("proof of %d bytes, %v", len(text), err)
	}
}
