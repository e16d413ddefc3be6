package deploy_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/proofrack/proofrack/deploy/internal/keyring"
	"github.com/proofrack/proofrack/shared/proof/toy"
	"github.com/proofrack/proofrack/shared/service"
)

// TestB109GatewayHasTimeToStop holds the gateway's unit against the drain time that its example shows, and against what
// its socket needs.
func TestB109GatewayHasTimeToStop(t *testing.T) {
	t.Parallel()
	u := units(t, "gateway")
	text, err := os.ReadFile("examples/gateway.toml")
	check(t, err)
	said := regexp.MustCompile(`(?m)^#drain_within = "(.+)"$`).FindSubmatch(text)
	if said == nil {
		t.Fatal("the example has no drain_within")
	}
	drain, err := time.ParseDuration(string(said[1]))
	check(t, err)
	c := service.DefaultConfig()
	stop, err := time.ParseDuration(u["TimeoutStopSec"] + "s")
	check(t, err)
	if longest := drain + c.HandBackWithin + c.KillWithin; stop <= longest {
		t.Errorf("TimeoutStopSec is %s, the program takes up to %s", stop, longest)
	}
	if u["KillSignal"] != "SIGTERM" || u["KillMode"] != "mixed" ||
		!strings.HasPrefix(u["ExecStart"], "/usr/bin/proofrack gateway ") {
		t.Errorf("the signal does not reach the program alone: %v", u)
	}
	listen := regexp.MustCompile(`(?m)^#listen = "unix:///run/(.+)/gateway.sock"$`).FindSubmatch(text)
	if listen == nil || u["RuntimeDirectory"] != string(listen[1]) || u["RuntimeDirectoryMode"] != "0750" {
		t.Errorf("the folder of the socket is %q, %s", u["RuntimeDirectory"], u["RuntimeDirectoryMode"])
	}
	if u["User"] != "proofrack" || u["NoNewPrivileges"] != "yes" {
		t.Errorf("it runs as %q", u["User"])
	}
}

// The gateway's container shows its socket to the host, and speaks for one tenant.
func TestGatewayOfComposeReachesTheHost(t *testing.T) {
	t.Parallel()
	s := composed(t).Services["gateway"]
	listen := strings.TrimPrefix(*s.Environment["PROOFRACK_GATEWAY_LISTEN"], "unix://")
	shown := false
	for _, v := range s.Volumes {
		shown = shown || v.Type == "bind" && strings.HasPrefix(listen, v.Target+"/") && !v.ReadOnly
	}
	if !shown || len(s.Ports) > 0 {
		t.Errorf("socket %s is not on the host: %+v", listen, s.Volumes)
	}
	if len(s.Command) == 0 || s.Command[0] != "gateway" || s.Build.Args["PACKAGE"] == nil ||
		*s.Build.Args["PACKAGE"] != "./cli" {
		t.Errorf("it runs %v of %v", s.Command, s.Build.Args)
	}
}

// bytesOnly passes messages as they are.
type bytesOnly struct{}

func (bytesOnly) Marshal(v any) ([]byte, error)      { return *v.(*[]byte), nil }
func (bytesOnly) Unmarshal(data []byte, v any) error { *v.(*[]byte) = bytes.Clone(data); return nil }
func (bytesOnly) Name() string                       { return "proto" }

// gateway runs a gateway with a tenant's and an operator's credential, has it prove, and asks it for what is the
// operator's.
func (s *servers) gateway(program string) *logged {
	s.t.Helper()
	folder, err := os.MkdirTemp("", "gw") // a socket's name must be short
	check(s.t, err)
	s.t.Cleanup(func() { os.RemoveAll(folder) })
	target := "unix://" + filepath.Join(folder, "s")
	tenant, operator := s.as(keyring.KindTenant, "main"), s.as(keyring.KindOperator, "ann")
	cmd, log := exec.Command(program, "gateway", "--listen", target, "--server", tenant.URLs[0],
		"--creds", tenant.CredsFile, "--ca", tenant.CAFile, "--set", "gateway.operator_creds_file="+operator.CredsFile,
		"--set", "http.listen=", "--set", "test.kind=toy"), &logged{}
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = log, log, time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	check(s.t, cmd.Start())
	s.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if s.t.Failed() {
			s.t.Logf("gateway:\n%s", log)
		}
	})
	conn, err := grpc.NewClient(target, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.WaitForReady(true), grpc.ForceCodec(bytesOnly{})))
	check(s.t, err)
	defer conn.Close()
	call := func(method string, request []byte) []byte {
		s.t.Helper()
		ctx, cancel := context.WithTimeout(s.t.Context(), patience)
		defer cancel()
		var answer []byte
		check(s.t, conn.Invoke(ctx, "/cuzk.v1.ProvingEngine/"+method, &request, &answer))
		return answer
	}
	// Field 1: a request with request_id 1, proof_kind 2, vanilla_proof 10, sector_number 20, miner_id 21.
	input := toy.Slice(77)
	submit := append([]byte("\x0a\x03gw1\x10\x01\x52"), byte(len(input)&0x7f|0x80), byte(len(input)>>7))
	submit = append(append(submit, input...), "\xa0\x01\x07\xa8\x01\xe8\x07"...)
	proved := call("Prove", append([]byte{0x0a, byte(len(submit)&0x7f | 0x80), byte(len(submit) >> 7)}, submit...))
	if !bytes.Contains(proved, []byte("\x10\x01\x1a\xc0\x01")) { // completed, with 192 bytes of proof
		s.t.Errorf("the gateway proved %q", proved)
	}
	state := call("GetStatus", nil)
	for _, want := range []string{"n1/", "n2/", "POREP_SEAL_COMMIT"} {
		if !bytes.Contains(state, []byte(want)) {
			s.t.Errorf("the gateway's state lacks %s: %q", want, state)
		}
	}
	call("PreloadSRS", []byte("\x0a\x03toy"))
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) { // in use for another moment
		request, answer := []byte("\x0a\x03toy"), []byte(nil)
		err := conn.Invoke(s.t.Context(), "/cuzk.v1.ProvingEngine/EvictSRS", &request, &answer)
		if err == nil {
			break
		}
		if time.Now().After(deadline) {
			s.t.Fatal(err)
		}
	}
	return log
}
