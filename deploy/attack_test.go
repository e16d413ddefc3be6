package deploy_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/proofrack/proofrack/coordinator"
	"github.com/proofrack/proofrack/deploy/internal/keyring"
	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/bus/natsbus"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/wire"
)

// raw connects without our adapter, as an attacker would, and notes what the server refuses.
func (s *servers) raw(kind keyring.Kind, name string) (*nats.Conn, chan string) {
	s.t.Helper()
	refused := make(chan string, 100)
	c := s.as(kind, name)
	conn, err := nats.Connect(c.URLs[0], nats.UserCredentials(c.CredsFile), nats.RootCAs(c.CAFile),
		nats.CustomInboxPrefix(keyring.InboxPrefix(kind, name)),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { refused <- err.Error() }))
	check(s.t, err)
	s.t.Cleanup(conn.Close)
	return conn, refused
}

// setup makes the streams as a coordinator does, and something to steal.
func (s *servers) setup() *natsbus.Bus {
	s.t.Helper()
	c := s.dial(keyring.KindCoordinator, "c1")
	streams := coordinator.DefaultStreams()
	streams.Tenants = []string{"main", "other"}
	check(s.t, c.Setup(s.t.Context(), streams.Topology()))
	return c
}

// TestSubjectsOfOthersAreRefused tries every way that a credential has to reach what is not its own. The server answers
// each with a permission violation that names the subject.
func TestSubjectsOfOthersAreRefused(t *testing.T) {
	t.Parallel()
	s := newServers(t)
	s.setup()
	node, tenant, operator := keyring.KindNode, keyring.KindTenant, keyring.KindOperator
	for _, a := range []struct {
		kind              keyring.Kind
		name              string
		publish, listenTo []string
	}{
		{tenant, "main", []string{
			"c2.submit.other", "c2.status.other", "c2.cancel.other", "c2.jobs.other", "c2.why.other",
			"c2.admin.nodes", "c2.admin.drain", "c2.result.n1", "c2.node.n1.beat", "c2.synth.n1", "c2.prove.n1.cpu",
			"c2.ctl.n1", "c2.event.main.x.done", "c2.dlq.message", "$KV.c2-jobs.job.1", "$KV.c2-lead.leader",
			"$JS.API.STREAM.INFO.KV_c2-jobs", "$JS.API.DIRECT.GET.KV_c2-jobs", "$JS.API.STREAM.MSG.GET.KV_c2-jobs",
			"$JS.API.STREAM.INFO.OBJ_c2-in-other", "$JS.API.DIRECT.GET.OBJ_c2-in-other", "$O.c2-in-other.M.eA==",
			"$JS.API.STREAM.MSG.GET.OBJ_c2-proofs-other", "$JS.API.CONSUMER.CREATE.OBJ_c2-proofs-other.x",
			"$O.c2-proofs-main.M.eA==", "$O.c2-slices.C.x", "$JS.API.STREAM.PURGE.OBJ_c2-proofs-main",
			"$JS.API.STREAM.DELETE.OBJ_c2-in-main", "$JS.API.STREAM.UPDATE.OBJ_c2-in-main",
			"$JS.API.STREAM.CREATE.MINE", "$JS.API.STREAM.NAMES", "$JS.API.STREAM.LIST", "$JS.API.INFO",
			"$JS.API.CONSUMER.CREATE.OBJ_c2-in-main.x", "$JS.API.CONSUMER.CREATE.OBJ_c2-in-main",
			"$JS.API.CONSUMER.CREATE.OBJ_c2-proofs-main.x.$O.c2-proofs-main.C.y",
			"$JS.API.CONSUMER.DURABLE.CREATE.OBJ_c2-in-main.x",
			"$JS.API.CONSUMER.DURABLE.CREATE.OBJ_c2-proofs-main.x", "$SYS.REQ.SERVER.PING", "$SRV.PING", "anything",
		}, []string{
			"c2.event.other.>", "c2.event.>", "c2.>", ">", "_INBOX.>", "_INBOX.tenant.other.>", "c2.submit.main",
			"c2.ctl.n1", "$KV.>", "$O.>", "$JS.API.>", "$SYS.>",
		}},
		{node, "n1", []string{
			"c2.submit.main", "c2.cancel.main", "c2.status.main", "c2.admin.nodes", "c2.result.n2", "c2.node.n2.beat",
			"c2.node.n2.report", "c2.prove.n2.cpu", "c2.prove.n1.gpu-1a2b3c4d", "c2.synth.n1", "c2.synth.n2", "c2.ctl.n1",
			"c2.event.main.x.done", "c2.dlq.failed", "$KV.c2-jobs.job.1", "$KV.c2-nodes.node.n1", "$O.c2-slices.M.eA==",
			"$JS.API.CONSUMER.CREATE.C2_SYNTH.synth-n2.c2.synth.n2", "$JS.API.CONSUMER.CREATE.C2_SYNTH.synth-n2.c2.synth.n1",
			"$JS.API.CONSUMER.CREATE.C2_SYNTH.synth-n1.c2.synth.n2", "$JS.API.CONSUMER.CREATE.C2_SYNTH",
			"$JS.API.CONSUMER.CREATE.C2_SYNTH.synth-n1",
			"$JS.API.CONSUMER.CREATE.C2_SYNTH.synth-n1.c2.synth.n1",
			"$JS.API.CONSUMER.CREATE.C2_PROVE.prove-n1_cpu.c2.prove.n1.cpu", "$JS.API.CONSUMER.CREATE.OBJ_c2-slices.x",
			"$JS.API.CONSUMER.DURABLE.CREATE.C2_SYNTH.synth-n1",
			"$JS.API.CONSUMER.MSG.NEXT.C2_SYNTH.synth-n2", "$JS.API.CONSUMER.MSG.NEXT.C2_PROVE.prove-n2_cpu",
			"$JS.API.CONSUMER.MSG.NEXT.C2_RESULT.coordinator", "$JS.API.CONSUMER.DELETE.C2_SYNTH.synth-n1",
			"$JS.ACK.C2_SYNTH.synth-n2.1.1.1.1.0", "$JS.API.STREAM.MSG.GET.C2_SYNTH", "$JS.API.DIRECT.GET.C2_SYNTH",
			"$JS.API.STREAM.PURGE.C2_SYNTH", "$JS.API.STREAM.PURGE.OBJ_c2-slices", "$JS.API.STREAM.INFO.KV_c2-lead",
			"$JS.API.DIRECT.GET.KV_c2-jobs.$KV.c2-jobs.key.main.x", "$JS.API.STREAM.INFO.OBJ_c2-in-main",
			"$JS.API.DIRECT.GET.OBJ_c2-proofs-main",
		}, []string{
			"c2.ctl.n2", "c2.ctl.*", "c2.synth.n1", "c2.prove.n1.cpu", "c2.result.*", "c2.event.>", "c2.node.*.beat",
			"_INBOX.>", "_INBOX.node.n2.>", "c2.submit.main", "$KV.>", ">",
		}},
		{operator, "ann", []string{
			"c2.submit.main", "c2.cancel.main", "c2.result.n1", "c2.ctl.n1", "$KV.c2-jobs.job.1", "$JS.API.STREAM.LIST",
		}, []string{"c2.admin.>", "_INBOX.>", "_INBOX.tenant.main.>", "c2.submit.*", ">"}},
	} {
		t.Run(string(a.kind)+" "+a.name, func(t *testing.T) {
			t.Parallel()
			conn, refused := s.raw(a.kind, a.name)
			expect := func(what, subject string) {
				t.Helper()
				check(t, conn.Flush())
				select {
				case text := <-refused:
					if want := fmt.Sprintf(`Permissions Violation for %s to "%s"`, what, subject); !strings.Contains(
						strings.ToLower(text), strings.ToLower(want)) {
						t.Errorf("%s to %s: %s", what, subject, text)
					}
				case <-time.After(patience):
					t.Errorf("%s to %s is not refused", what, subject)
				}
			}
			for _, subject := range a.publish {
				check(t, conn.Publish(subject, []byte("{}")))
				expect("Publish", subject)
			}
			for _, subject := range a.listenTo {
				_, err := conn.SubscribeSync(subject)
				check(t, err)
				expect("Subscription", subject)
			}
		})
	}
}

// TestObjectsOfAnotherTenantAreOutOfReach goes by way of our own client code: what it says must be clear, and quick.
func TestObjectsOfAnotherTenantAreOutOfReach(t *testing.T) {
	t.Parallel()
	s := newServers(t)
	c := s.setup()
	other := s.dial(keyring.KindTenant, "other")
	secret, err := other.Objects(t.Context(), wire.ObjectsIn("other"))
	check(t, err)
	_, err = secret.Put(t.Context(), "input", strings.NewReader("secret"), nil)
	check(t, err)
	main := s.dial(keyring.KindTenant, "main")
	if _, err := main.Objects(t.Context(), wire.ObjectsIn("other")); err == nil {
		t.Error("another tenant's inputs open")
	}
	for _, subject := range []string{
		wire.ClientSubject(wire.VerbStatus, "other"), wire.ClientSubject(wire.VerbCancel, "other"),
		wire.AdminSubject("nodes"),
	} {
		_, err := main.Request(t.Context(), bus.Message{Subject: subject, Data: []byte("{}")})
		if fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), "permission") {
			t.Errorf("%s: %v", subject, err)
		}
	}
	// Its own it can put, read again, replace and delete; a proof it can read and not change.
	own, err := main.Objects(t.Context(), wire.ObjectsIn("main"))
	check(t, err)
	for _, text := range []string{"first", "second"} {
		_, err = own.Put(t.Context(), "input", strings.NewReader(text), nil)
		check(t, err)
		if got := readAll(t, own, "input"); got != text {
			t.Errorf("read %q", got)
		}
	}
	check(t, own.Delete(t.Context(), "input"))
	proofs, err := c.Objects(t.Context(), wire.ObjectsProofs("main"))
	check(t, err)
	_, err = proofs.Put(t.Context(), "p", strings.NewReader("proof"), nil)
	check(t, err)
	mine, err := main.Objects(t.Context(), wire.ObjectsProofs("main"))
	check(t, err)
	if got := readAll(t, mine, "p"); got != "proof" {
		t.Errorf("proof: %q", got)
	}
	if _, err := mine.Put(t.Context(), "p", strings.NewReader("forged"), nil); err == nil {
		t.Error("a client writes proofs")
	}
	if err := mine.Delete(t.Context(), "p"); err == nil {
		t.Error("a client deletes proofs")
	}
}

func readAll(t *testing.T, o bus.Objects, name string) string {
	t.Helper()
	r, _, err := o.Get(t.Context(), name, 1<<20)
	check(t, err)
	defer r.Close()
	text, err := io.ReadAll(r)
	check(t, err)
	return string(text)
}

// TestWrongCredentialGivesOneClearLine covers all ways to have none that the server takes.
func TestWrongCredentialGivesOneClearLine(t *testing.T) {
	t.Parallel()
	s := newServers(t)
	foreign, err := keyring.Create(t.TempDir(), []string{"localhost"})
	check(t, err)
	stranger, err := foreign.Add(keyring.KindTenant, "main")
	check(t, err)
	_, err = s.ring.Add(keyring.KindTenant, "gone")
	check(t, err)
	s.reload()
	// A connection that is there when its credential is taken back is ended, too.
	ended := make(chan struct{}, 1)
	config := s.as(keyring.KindTenant, "gone")
	conn, err := nats.Connect(config.URLs[0], nats.UserCredentials(config.CredsFile), nats.RootCAs(config.CAFile),
		nats.DisconnectErrHandler(func(*nats.Conn, error) {
			select {
			case ended <- struct{}{}:
			default:
			}
		}))
	check(t, err)
	defer conn.Close()
	gone := copyFile(t, config.CredsFile)
	check(t, s.ring.Revoke(keyring.KindTenant, "gone"))
	s.reload()
	select {
	case <-ended:
	case <-time.After(patience):
		t.Error("a connection outlives its credential")
	}
	for name, c := range map[string]struct {
		change func(*natsbus.Config)
		want   string
	}{
		"none":    {func(c *natsbus.Config) { c.CredsFile = "" }, "nats.creds_file"},
		"foreign": {func(c *natsbus.Config) { c.CredsFile = stranger }, "does not know the credential"},
		"revoked": {func(c *natsbus.Config) { c.CredsFile = gone }, "does not know the credential"},
		"no file": {func(c *natsbus.Config) { c.CredsFile = "/nowhere" }, "/nowhere"},
		"no CA":   {func(c *natsbus.Config) { c.CAFile = "" }, "nats.ca_file"},
		"plain": {func(c *natsbus.Config) {
			c.URLs[0], c.CAFile = "nats://"+s.nats.Addr().String(), ""
		}, "nats.ca_file"},
		"all well": {func(*natsbus.Config) {}, ""},
	} {
		config := s.as(keyring.KindTenant, "main")
		c.change(&config)
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		b, err := natsbus.Connect(ctx, config)
		cancel()
		if c.want == "" {
			check(t, err)
			b.Close()
			continue
		}
		line := fmt.Sprint(err)
		var hinted interface{ Hint() string }
		if errors.As(err, &hinted) {
			line += " " + hinted.Hint()
		}
		if err == nil || fault.KindOf(err) != fault.Invalid || !strings.Contains(line, c.want) ||
			strings.Contains(line, "\n") {
			t.Errorf("%s: %s (%s)", name, line, fault.KindOf(err))
		}
	}
}
