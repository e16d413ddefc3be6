package deploy_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/proofrack/proofrack/deploy/internal/keyring"
	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/bus/natsbus"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/wire"
)

// NATS checks where a message is sent, not where its sender wants the answer. So whoever may ask anything that is
// answered could have the server send the answer, even bytes of the asker's choice, to any subject of its account.

// victims are subjects on which an answer would do harm.
var victims = []string{
	"c2.cancel.other", "c2.submit.other", "c2.admin.drain", "c2.result.n2", "c2.synth.n2", "c2.prove.n2.cpu", "c2.ctl.n2",
	"c2.node.n2.beat", "c2.node.n2.report", "c2.event.other.x.done", "c2.dlq.failed", "$KV.c2-jobs.job.1",
	"$KV.c2-lead.leader", "$KV.c2-nodes.node.n2", "$O.c2-in-other.M.eA==", "$O.c2-proofs-other.M.eA==",
	"$O.c2-slices.M.eA==",
	"$JS.API.STREAM.PURGE.KV_c2-jobs", "$JS.API.STREAM.DELETE.C2_RESULT", "$JS.API.CONSUMER.DELETE.C2_SYNTH.synth-n2",
	"$JS.API.CONSUMER.CREATE.KV_c2-jobs", "$JS.ACK.C2_SYNTH.synth-n2.1.1.1.1.0", "_INBOX.tenant.other.x",
	"_INBOX.node.n2.x", "_INBOX.operator.ann.x", "_INBOX.coordinator.c1.x", "_R_.x",
}

// question is something that is answered.
type question struct {
	name, subject, body string
}

const crafted = `{"v":2,"job_id":"01890a5d-ac96-774b-bcce-b302099a8057","reason":"not yours"}`

func (s *servers) questions(kind keyring.Kind) []question {
	if kind == keyring.KindNode {
		return []question{
			{"slice", "$JS.API.DIRECT.GET.OBJ_c2-slices", `{"last_by_subj":"$O.c2-slices.M.eA==","no_hdr":true}`},
			{"slice by the stream", "$JS.API.STREAM.MSG.GET.OBJ_c2-slices", `{"last_by_subj":"$O.c2-slices.M.eA=="}`},
			{"record", "$JS.API.DIRECT.GET.KV_c2-jobs.$KV.c2-jobs.job.1", ""},
			{"next task", "$JS.API.CONSUMER.MSG.NEXT.C2_SYNTH.synth-n1", `{"batch":1,"no_wait":true}`},
			{"state of a queue", "$JS.API.CONSUMER.INFO.C2_SYNTH.synth-n1", ""},
			{"stored result", "c2.result.n1", crafted},
			{"dead letter", "c2.dlq.message", crafted},
		}
	}
	get := "$JS.API.DIRECT.GET.OBJ_c2-in-main"
	return []question{
		{"stored bytes", get, `{"last_by_subj":"$O.c2-in-main.M.eA==","no_hdr":true}`},
		{"nothing", get, `{"last_by_subj":"$O.c2-in-main.C.empty","no_hdr":true}`},
		{"stored bytes with headers", get + ".$O.c2-in-main.C.headers", ""},
		{"many stored bytes", get, `{"next_by_subj":"$O.c2-in-main.>","batch":9}`},
		{"by the stream", "$JS.API.STREAM.MSG.GET.OBJ_c2-in-main", `{"last_by_subj":"$O.c2-in-main.M.eA=="}`},
		{"state", "$JS.API.STREAM.INFO.OBJ_c2-in-main", `{"subjects_filter":">"}`},
		{"piece", "$O.c2-in-main.C.more", crafted},
		{"service", "c2.status.main", `{"v":2}`},
	}
}

// harm is what others see of a server: what is in streams, and what their subscriptions heard.
type harm struct {
	boss *nats.Conn
	js   jetstream.JetStream
	own  func(subject string) bool // the attacker's own subjects

	mu    sync.Mutex
	heard []string
}

func (s *servers) watch(own func(string) bool) *harm {
	s.t.Helper()
	h := &harm{own: own}
	h.boss, _ = s.raw(keyring.KindCoordinator, "c1")
	var err error
	h.js, err = jetstream.New(h.boss)
	check(s.t, err)
	for _, u := range []struct {
		kind    keyring.Kind
		name    string
		subject []string
	}{
		{keyring.KindCoordinator, "c2", []string{"c2.>"}},
		{keyring.KindTenant, "other", []string{"c2.event.other.>", "_INBOX.tenant.other.>"}},
		{keyring.KindNode, "n2", []string{"c2.ctl.n2", "_INBOX.node.n2.>"}},
		{keyring.KindOperator, "ann", []string{wire.AllBeats, wire.AllReports, "_INBOX.operator.ann.>"}},
	} {
		conn, _ := s.raw(u.kind, u.name)
		for _, subject := range u.subject {
			_, err := conn.Subscribe(subject, func(m *nats.Msg) {
				h.mu.Lock()
				defer h.mu.Unlock()
				if !own(m.Subject) {
					h.heard = append(h.heard, fmt.Sprintf("%s %s: %.80s", u.kind, m.Subject, m.Data))
				}
			})
			check(s.t, err)
		}
		check(s.t, conn.Flush())
	}
	_, err = h.boss.Subscribe("_INBOX.coordinator.c1.x", func(m *nats.Msg) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.heard = append(h.heard, "coordinator "+m.Subject)
	})
	check(s.t, err)
	check(s.t, h.boss.Flush())
	return h
}

// state tells what is in all streams but for what is the attacker's own.
func (h *harm) state(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	names := h.js.StreamNames(t.Context())
	for name := range names.Name() {
		stream, err := h.js.Stream(t.Context(), name)
		check(t, err)
		info, err := stream.Info(t.Context(), jetstream.WithSubjectFilter(">"))
		check(t, err)
		for subject, n := range info.State.Subjects {
			if !h.own(subject) {
				out[name+" "+subject] = fmt.Sprint(n)
			}
		}
		out[name] = fmt.Sprintf("%d consumers", info.State.Consumers)
		if !slices.Contains([]string{"C2_SYNTH", "C2_RESULT", "C2_DLQ", "OBJ_c2-in-main"}, name) {
			out[name] += fmt.Sprintf(", %d written", info.State.LastSeq)
		}
	}
	check(t, names.Err())
	return out
}

func (h *harm) listened() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.heard)
}

// prepare puts things where the questions ask.
func (s *servers) prepare() *natsbus.Bus {
	s.t.Helper()
	c := s.setup()
	kv, err := c.KV(s.t.Context(), wire.BucketJobs)
	check(s.t, err)
	_, err = kv.Create(s.t.Context(), "job.1", []byte(crafted))
	check(s.t, err)
	slices, err := c.Objects(s.t.Context(), wire.ObjectsSlices)
	check(s.t, err)
	_, err = slices.Put(s.t.Context(), "x", strings.NewReader(crafted), nil)
	check(s.t, err)
	for _, n := range []string{"n1", "n2"} {
		_, err := c.Queue(s.t.Context(), bus.Consumer{
			Stream: wire.StreamSynth, Name: "synth-" + n, Subject: "c2.synth." + n, AckWait: time.Hour,
		})
		check(s.t, err)
		for range 3 {
			_, err = c.Publish(s.t.Context(), bus.Message{Subject: "c2.synth." + n, Data: []byte(crafted)})
			check(s.t, err)
		}
	}
	main, _ := s.raw(keyring.KindTenant, "main")
	for subject, m := range map[string]*nats.Msg{
		"$O.c2-in-main.M.eA==": {Data: []byte(crafted)}, "$O.c2-in-main.C.empty": {},
		"$O.c2-in-main.C.headers": {Data: []byte(crafted), Header: nats.Header{
			"Nats-Trace-Dest": {"c2.cancel.main"}, "Nats-Stream": {"forged"}, "Nats-Request-Info": {`{"acc":"x"}`},
		}},
	} {
		m.Subject = subject
		_, err := main.RequestMsg(m, 2*time.Second)
		check(s.t, err)
	}
	return c
}

// relay asks each question with each victim as the subject for the answer, then waits until the server is through.
func (s *servers) relay(conn *nats.Conn, questions []question) {
	s.t.Helper()
	for _, q := range questions {
		for _, victim := range victims {
			if conn.IsClosed() || !conn.IsConnected() { // the server throws out who names subjects of its own
				time.Sleep(10 * time.Millisecond)
			}
			check(s.t, conn.PublishRequest(q.subject, victim, []byte(q.body)))
		}
		if _, err := conn.Request(q.subject, []byte(q.body), 5*time.Second); err != nil {
			s.t.Errorf("%s is not answered to who asks honestly: %v", q.name, err)
		}
	}
	check(s.t, conn.Flush())
}

// TestAnswersReachNobodyElse: every answer that a tenant or a node can get, sent to every subject that matters.
func TestAnswersReachNobodyElse(t *testing.T) {
	t.Parallel()
	for _, a := range []struct {
		kind keyring.Kind
		name string
		own  []string
	}{
		{keyring.KindTenant, "main", []string{"c2.status.main", "c2.cancel.main", "$O.c2-in-main."}},
		{keyring.KindNode, "n1", []string{"c2.result.n1", "c2.dlq.message", "c2.synth.n1"}},
	} {
		t.Run(string(a.kind), func(t *testing.T) {
			t.Parallel()
			s := newServers(t)
			c := s.prepare()
			stop, err := c.Serve(echoing("c2.status.*"))
			check(t, err)
			defer stop()
			h := s.watch(func(subject string) bool {
				return slices.ContainsFunc(a.own, func(own string) bool { return strings.HasPrefix(subject, own) })
			})
			before := h.state(t)
			conn, _ := s.raw(a.kind, a.name)
			s.relay(conn, s.questions(a.kind))
			time.Sleep(200 * time.Millisecond) // for what should not come
			if diff := cmp.Diff(before, h.state(t)); diff != "" {
				t.Errorf("streams have changed:\n%s", diff)
			}
			if heard := h.listened(); len(heard) != 0 {
				t.Errorf("others heard %q", heard)
			}
		})
	}
}

// TestRelaysWouldBeSeen has somebody in the rack's own account do the same, where nothing keeps answers together: the
// test above must notice.
func TestRelaysWouldBeSeen(t *testing.T) {
	t.Parallel()
	s := newServers(t)
	c := s.prepare()
	stop, err := c.Serve(echoing("c2.status.*"))
	check(t, err)
	defer stop()
	h := s.watch(func(subject string) bool { return strings.HasPrefix(subject, "$O.c2-in-main.") })
	before := h.state(t)
	conn, _ := s.raw(keyring.KindCoordinator, "c1")
	s.relay(conn, s.questions(keyring.KindTenant)[:1])
	var heard string
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		heard = strings.Join(h.listened(), "\n")
		if strings.Contains(heard, "c2.cancel.other") && strings.Contains(heard, "c2.ctl.n2") {
			break
		}
	}
	after := h.state(t)
	if !strings.Contains(heard, "c2.cancel.other") || after["KV_c2-jobs"] == before["KV_c2-jobs"] ||
		after["C2_RESULT c2.result.n2"] == before["C2_RESULT c2.result.n2"] {
		t.Errorf("heard %s, streams %s", heard, cmp.Diff(before, after))
	}
}

func echo(_ context.Context, m bus.Message) (bus.Message, error) {
	return bus.Message{Data: m.Data}, nil
}

func echoing(subject string) bus.Service {
	return bus.Service{Name: "s", Version: "1.0.0", Endpoints: []bus.Endpoint{{
		Name: "e", Subject: subject, Handle: echo,
	}}}
}

// TestAnswersOfTheServerAreNoBodies: what JetStream answers has no version, so nothing of the rack takes it for a
// message, should it ever get anywhere.
func TestAnswersOfTheServerAreNoBodies(t *testing.T) {
	t.Parallel()
	s := newServers(t)
	s.prepare()
	looked := 0
	for kind, name := range map[keyring.Kind]string{keyring.KindTenant: "main", keyring.KindNode: "n1"} {
		conn, _ := s.raw(kind, name)
		for _, q := range s.questions(kind) {
			if strings.HasPrefix(q.subject, "$JS.API.DIRECT") || strings.Contains(q.subject, "MSG.NEXT") ||
				q.name == "service" {
				continue // stored bytes, or our own answer
			}
			answer, err := conn.Request(q.subject, []byte(q.body), 5*time.Second)
			check(t, err)
			looked++
			if !json.Valid(answer.Data) {
				t.Errorf("%s: %q", q.name, answer.Data)
			}
			for _, body := range []wire.Body{
				&wire.Submit{}, &wire.JobRequest{}, &wire.Result{}, &wire.Beat{}, &wire.Control{},
			} {
				if err := wire.Decode(answer.Data, body); fault.KindOf(err) != fault.Invalid {
					t.Errorf("%s is a %T: %v", q.name, body, err)
				}
			}
		}
	}
	if looked < 7 {
		t.Errorf("%d answers", looked)
	}
}

// TestTracesOfMessagesAreRefused: a message may ask for a report of its way; where to is checked as if it were sent
// there.
func TestTracesOfMessagesAreRefused(t *testing.T) {
	t.Parallel()
	s := newServers(t)
	s.setup()
	conn, refused := s.raw(keyring.KindTenant, "main")
	for _, victim := range victims {
		check(t, conn.PublishMsg(&nats.Msg{
			Subject: "c2.status.main", Header: nats.Header{"Nats-Trace-Dest": {victim}}, Data: []byte("{}"),
		}))
		select {
		case text := <-refused:
			if !strings.Contains(text, victim) {
				t.Errorf("%s: %s", victim, text)
			}
		case <-time.After(patience):
			t.Errorf("a report to %s is not refused", victim)
		}
	}
}

// TestStreamsSendNothingOn: no stream has a feature by which a stored message gets to another subject, later or at
// once, and a tenant's message that asks for one is refused.
func TestStreamsSendNothingOn(t *testing.T) {
	t.Parallel()
	s := newServers(t)
	s.setup()
	boss, _ := s.raw(keyring.KindCoordinator, "c1")
	js, err := jetstream.New(boss)
	check(t, err)
	streams := 0
	infos := js.ListStreams(t.Context())
	for info := range infos.Info() {
		c := info.Config
		streams++
		if c.AllowMsgSchedules || c.AllowMsgCounter || c.AllowAtomicPublish || c.RePublish != nil || c.Mirror != nil ||
			len(c.Sources) != 0 || c.SubjectTransform != nil || c.AllowMsgTTL && !strings.HasPrefix(c.Name, "KV_") {
			t.Errorf("%s: %+v", c.Name, c)
		}
	}
	check(t, infos.Err())
	if streams < 10 {
		t.Errorf("%d streams", streams)
	}
	main, _ := s.raw(keyring.KindTenant, "main")
	for name, header := range map[string]nats.Header{
		"schedule": {"Nats-Schedule": {"@at " + time.Now().Add(time.Second).UTC().Format(time.RFC3339)},
			"Nats-Schedule-Target": {"$O.c2-in-other.M.eA=="}},
		"life":    {"Nats-TTL": {"1s"}},
		"counter": {"Nats-Incr": {"+1"}},
		"batch":   {"Nats-Batch-Id": {"b"}, "Nats-Batch-Sequence": {"1"}, "Nats-Batch-Commit": {"1"}},
	} {
		answer, err := main.RequestMsg(&nats.Msg{
			Subject: "$O.c2-in-main.C.x", Header: header, Data: []byte("1"),
		}, 2*time.Second)
		check(t, err)
		var ack struct{ Error *struct{ Description string } }
		check(t, json.Unmarshal(answer.Data, &ack))
		if ack.Error == nil {
			t.Errorf("%s: %s", name, answer.Data)
		}
	}
	stream, err := js.Stream(t.Context(), "OBJ_c2-in-main")
	check(t, err)
	if n := stream.CachedInfo().State.Msgs; n != 0 {
		t.Errorf("%d messages are stored", n)
	}
}
