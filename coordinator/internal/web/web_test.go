package web

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/bus/membus"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const token = "00112233445566778899aabbccddeeff"

// stage is a page in front of a rack that answers what the test says.
type stage struct {
	*httptest.Server
	answers  map[string]func(bus.Message) (wire.Body, error) // by subject
	requests atomic.Int64
}

func show(t *testing.T, edit func(*Config)) *stage {
	t.Helper()
	server := membus.New(membus.Config{})
	there, here := server.Connect(bus.Events{}), server.Connect(bus.Events{})
	t.Cleanup(there.Close)
	t.Cleanup(here.Close)
	s := &stage{answers: map[string]func(bus.Message) (wire.Body, error){}}
	stop, err := there.Serve(bus.Service{Name: "c2", Version: "1.0.0", Endpoints: []bus.Endpoint{{
		Name: "all", Subject: "c2.>",
		Handle: func(_ context.Context, m bus.Message) (bus.Message, error) {
			s.requests.Add(1)
			answer := s.answers[m.Subject]
			if answer == nil {
				return bus.Message{}, fault.New(fault.NotFound, "nothing answers %s", m.Subject)
			}
			body, err := answer(m)
			if err != nil {
				return bus.Message{}, err
			}
			data, err := wire.Encode(body)
			return bus.Message{Data: data}, err
		},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	config := DefaultConfig()
	config.Listen, config.TokenFile = "127.0.0.1:0", filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(config.TokenFile, []byte(token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if edit != nil {
		edit(&config)
	}
	web, err := New(config, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	web.Connect(here)
	s.Server = httptest.NewServer(web.Handler())
	t.Cleanup(s.Close)
	return s
}

func (s *stage) answer(subject string, body wire.Body) {
	s.answers[subject] = func(bus.Message) (wire.Body, error) { return body, nil }
}

// get asks and gives status and body.
func (s *stage) get(t *testing.T, method, path, bearer string) (*http.Response, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if bearer != "" {
		request.Header.Set("Authorization", "Bearer "+bearer)
	}
	answer, err := s.Client().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer, string(body)
}

const id job.ID = "01890a5d-ac96-774b-bcce-000000000001"

func record(state job.State) *job.Record {
	return &job.Record{
		ID: id, Tenant: "main", State: state, Circuit: "toy", SubmittedAt: time.Now().UTC(),
		TraceParent: "00-0123456789abcdef0123456789abcdef-0123456789abcdef-01",
		Partitions:  []job.Partition{{Stage: job.Waiting, Proof: []byte("secret until it is whole")}},
	}
}

func TestOverviewShowsWhatTheRackAnswersAndSaysWhenTheLeaderDoesNot(t *testing.T) {
	t.Parallel()
	s := show(t, func(c *Config) { c.Poll = 100 * time.Millisecond })
	jobs := []wire.JobSummary{{ID: id, Tenant: "main", State: job.Active, Partitions: 10, Verified: 3}}
	s.answer("c2.admin.jobs", &wire.JobsReply{Jobs: jobs})
	s.answer("c2.admin.nodes", &wire.NodesReply{Ready: true, Leader: "l", Nodes: []wire.NodeView{{Node: "n1"}}})
	s.answer("c2.admin.flight", &wire.FlightReply{})
	answer, body := s.get(t, http.MethodGet, "/api/rack", "")
	var d rackDocument
	if err := json.Unmarshal([]byte(body), &d); err != nil || answer.StatusCode != http.StatusOK {
		t.Fatal(answer.Status, err, body)
	}
	if d.Away != nil || len(d.Rack.Nodes) != 1 || len(d.Jobs) != 1 || d.Counts[job.Active] != 1 {
		t.Errorf("%s", body)
	}
	s.answers["c2.admin.nodes"] = func(bus.Message) (wire.Body, error) {
		return nil, fault.New(fault.Internal, "no leader today")
	}
	time.Sleep(200 * time.Millisecond) // longer than a page is used again
	_, body = s.get(t, http.MethodGet, "/api/rack", "")
	d = rackDocument{}
	if err := json.Unmarshal([]byte(body), &d); err != nil || d.Away == nil || len(d.Jobs) != 1 {
		t.Errorf("%v %s", err, body)
	}
}

func TestTheRackIsAskedOnceForManyViewers(t *testing.T) {
	t.Parallel()
	s := show(t, func(c *Config) { c.Poll = time.Minute })
	s.answer("c2.admin.jobs", &wire.JobsReply{Jobs: []wire.JobSummary{}})
	s.answer("c2.admin.nodes", &wire.NodesReply{})
	s.answer("c2.admin.flight", &wire.FlightReply{})
	for range 20 {
		s.get(t, http.MethodGet, "/api/rack", "")
	}
	if n := s.requests.Load(); n != 3 {
		t.Errorf("20 viewers made %d requests in place of 3", n)
	}
}

func TestJobPageHasItsTraceAndNoPartOfAProof(t *testing.T) {
	t.Parallel()
	s := show(t, func(c *Config) { c.TraceURL = "https://traces.example/trace/{trace}" })
	s.answer("c2.status.main", &wire.StatusReply{Record: record(job.Active)})
	s.answer("c2.why.main", &wire.WhyReply{Reasons: []wire.Reason{{Partitions: []int{0}, Text: "no node"}}})
	s.answer("c2.admin.ledger", &wire.LedgerReply{Nodes: []wire.LedgerNode{}})
	answer, body := s.get(t, http.MethodGet, "/api/jobs/main/"+string(id), "")
	var d jobDocument
	if err := json.Unmarshal([]byte(body), &d); err != nil || answer.StatusCode != http.StatusOK {
		t.Fatal(answer.Status, err, body)
	}
	if d.TraceURL != "https://traces.example/trace/0123456789abcdef0123456789abcdef" || len(d.Why) != 1 ||
		d.Record.Partitions[0].Proof != nil {
		t.Errorf("%s", body)
	}
}

func TestChangesNeedTheToken(t *testing.T) {
	t.Parallel()
	for path, subject := range map[string]string{
		"/api/jobs/main/" + string(id) + "/cancel": "c2.cancel.main",
		"/api/letters/" + string(id) + "/replay":   "c2.admin.dlq",
	} {
		s := show(t, nil)
		s.answer("c2.cancel.main", &wire.StatusReply{})
		s.answer("c2.admin.dlq", &wire.DLQReply{})
		for _, bearer := range []string{"", "wrong", token + "0"} {
			answer, body := s.get(t, http.MethodPost, path, bearer)
			if answer.StatusCode != http.StatusUnauthorized || strings.Contains(body, token) {
				t.Errorf("%s with %q: %s", path, bearer, answer.Status)
			}
		}
		if n := s.requests.Load(); n != 0 {
			t.Errorf("%s: %d requests of %s without the token", path, n, subject)
		}
		if answer, body := s.get(t, http.MethodPost, path, token); answer.StatusCode != http.StatusOK {
			t.Errorf("%s with the token: %s %s", path, answer.Status, body)
		}
		if answer, _ := s.get(t, http.MethodGet, path, token); answer.StatusCode == http.StatusOK {
			t.Errorf("%s changes something by GET", path)
		}
	}
	without := show(t, func(c *Config) { c.TokenFile = "" })
	if answer, _ := without.get(t, http.MethodPost, "/api/letters/"+string(id)+"/replay", ""); answer.StatusCode !=
		http.StatusUnauthorized {
		t.Errorf("without a token: %s", answer.Status)
	}
}

func TestHostileNamesAndHostsAreRefused(t *testing.T) {
	t.Parallel()
	s := show(t, nil)
	for _, path := range []string{
		"/api/jobs/main/..%2f..%2fetc", "/api/jobs/a.b/" + string(id), "/api/jobs?before=x", "/api/audit?after=%00",
		"/api/jobs/main/" + strings.Repeat("a", 5000),
	} {
		if answer, body := s.get(t, http.MethodGet, path, ""); answer.StatusCode != http.StatusBadRequest {
			t.Errorf("%.60s: %s %.200s", path, answer.Status, body)
		}
	}
	if n := s.requests.Load(); n != 0 {
		t.Errorf("%d requests reached the rack", n)
	}
	for host, want := range map[string]int{
		"evil.example": http.StatusMisdirectedRequest, "127.0.0.1:1": http.StatusOK, "localhost": http.StatusOK,
		"[::1]:80": http.StatusOK,
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+"/", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Host = host
		answer, err := s.Client().Do(request)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != want {
			t.Errorf("host %s: %s", host, answer.Status)
		}
		if policy := answer.Header.Get("Content-Security-Policy"); want == http.StatusOK &&
			(!strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "unsafe")) {
			t.Errorf("policy %q", policy)
		}
	}
}

// The page puts nothing into the document as markup, and brings all it needs.
func TestPageHasNoMarkupFromDataAndNoForeignParts(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"app.js", "index.html", "style.css"} {
		data, err := assets.ReadFile("assets/" + name)
		if err != nil {
			t.Fatal(err)
		}
		for _, bad := range []string{
			"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "//cdn", "@import",
		} {
			if strings.Contains(string(data), bad) {
				t.Errorf("%s has %s", name, bad)
			}
		}
		text := strings.ReplaceAll(string(data), "http://www.w3.org/", "")
		if strings.Contains(text, "http://") || strings.Contains(text, "https://") {
			t.Errorf("%s names another host", name)
		}
	}
}

func TestStreamsTellChangesOnceAndAreBounded(t *testing.T) {
	t.Parallel()
	s := show(t, func(c *Config) { c.Poll, c.StreamsMax = 100*time.Millisecond, 1 })
	var verified atomic.Int64
	s.answers["c2.admin.jobs"] = func(bus.Message) (wire.Body, error) {
		return &wire.JobsReply{Jobs: []wire.JobSummary{{ID: id, Verified: int(verified.Load())}}}, nil
	}
	s.answer("c2.admin.nodes", &wire.NodesReply{})
	s.answer("c2.admin.flight", &wire.FlightReply{})
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+"/events/rack", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := s.Client().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	event := func() rackDocument {
		for lines.Scan() {
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				var d rackDocument
				if err := json.Unmarshal([]byte(data), &d); err != nil {
					t.Fatal(err)
				}
				return d
			}
		}
		t.Fatal("the stream ended", lines.Err())
		return rackDocument{}
	}
	for want := range 4 { // each state comes once: no event repeats the one before
		if d := event(); d.Jobs[0].Verified != want {
			t.Fatalf("event %d tells %d", want, d.Jobs[0].Verified)
		}
		if want == 0 {
			if second, _ := s.get(t, http.MethodGet, "/events/rack", ""); second.StatusCode != http.StatusTooManyRequests {
				t.Errorf("a stream over the limit: %s", second.Status)
			}
		}
		verified.Add(1)
	}
}

func TestConfigAndTokenAreChecked(t *testing.T) {
	t.Parallel()
	short := filepath.Join(t.TempDir(), "short")
	if err := os.WriteFile(short, []byte("abc"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, edit := range map[string]func(*Config){
		"listen": func(c *Config) { c.Listen = "example.com:80" }, "poll": func(c *Config) { c.Poll = 0 },
		"streams": func(c *Config) { c.StreamsMax = 0 }, "trace": func(c *Config) { c.TraceURL = "javascript:{trace}" },
		"no place for the id": func(c *Config) { c.TraceURL = "http://jaeger:1/x" },
		"short token":         func(c *Config) { c.TokenFile = short },
		"no such file":        func(c *Config) { c.TokenFile = short + ".not" },
	} {
		config := DefaultConfig()
		edit(&config)
		if _, err := New(config, zerolog.Nop()); fault.KindOf(err) != fault.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	s, err := New(DefaultConfig(), zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/api/rack", "/api/audit", fmt.Sprintf("/api/jobs/main/%s/proof", id)} {
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
		if w.Code != http.StatusServiceUnavailable {
			t.Errorf("%s before there is a bus: %d %s", path, w.Code, w.Body)
		}
	}
}
