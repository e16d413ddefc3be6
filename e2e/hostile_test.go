package e2e_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/proof/toy"
	"github.com/proofrack/proofrack/shared/wire"
)

// hostile is a rack with a job at work, and what a client tries to get at.
type hostile struct {
	*rack

	live    *submitted
	conn    *nats.Conn
	folder  string       // that inputs may be read from
	temp    string       // the coordinator's folder for temporary files
	outside string       // a host that inputs may be fetched from
	inside  string       // one that may be named and not reached
	hits    atomic.Int64 // requests that got inside
}

// checkTimeout is how long a submit may take. refusedWithin is far above it, and far below what is shipped.
const (
	checkTimeout  = 3 * time.Second
	refusedWithin = 30 * time.Second
)

func newHostile(t *testing.T) *hostile {
	t.Helper()
	h := &hostile{rack: newRack(t), folder: t.TempDir(), temp: t.TempDir()}
	h.calm()
	h.outside = serveHTTP(t, "127.0.0.2:0", h.outsider())
	h.inside = serveHTTP(t, "127.0.0.1:0", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		h.hits.Add(1)
		_, _ = w.Write(toy.Slice(1))
	}))
	_, port, err := net.SplitHostPort(h.inside)
	h.check(err)
	h.check(os.WriteFile(filepath.Join(h.folder, "good"), toy.Slice(1), 0o600))
	h.check(os.Symlink("/etc/passwd", filepath.Join(h.folder, "link")))
	h.check(syscall.Mkfifo(filepath.Join(h.folder, "pipe"), 0o600))
	h.check(os.WriteFile(filepath.Join(h.folder, "huge"), nil, 0o600))
	h.check(os.Truncate(filepath.Join(h.folder, "huge"), wire.ReferenceBytesMax+1))
	t.Setenv("TMPDIR", h.temp)
	h.startCoordinator("intake.path_prefixes="+h.folder, "intake.url_addresses=127.0.0.2/32",
		"intake.check_timeout="+checkTimeout.String(), "intake.submits_per_minute=60",
		"intake.url_hosts="+strings.Join([]string{
			h.outside, h.inside, "localhost:" + port, "169.254.169.254", "[::1]:" + port, "0.0.0.0:" + port,
		}, ","))
	n := h.addNode("n1")
	n.startSynth()
	n.startGPU(h.hooked("pause@gpu.mid-proof")...)
	h.ready()
	h.live = h.submit(1)
	h.reached("gpu.mid-proof#1")
	h.conn, err = nats.Connect(h.nats.url())
	h.check(err)
	t.Cleanup(h.conn.Close)
	return h
}

func serveHTTP(t *testing.T, address string, handler http.Handler) string {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close() })
	return l.Addr().String()
}

// outsider is a host that may be asked, and answers badly.
func (h *hostile) outsider() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/good", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(toy.Slice(1)) })
	mux.HandleFunc("/inside", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://"+h.inside+"/", http.StatusFound)
	})
	mux.HandleFunc("/silent", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	mux.HandleFunc("/huge", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(wire.ReferenceBytesMax+1))
		w.WriteHeader(http.StatusOK)
	})
	for name, pause := range map[string]time.Duration{"/endless": time.Millisecond, "/drip": 50 * time.Millisecond} {
		mux.HandleFunc(name, func(w http.ResponseWriter, r *http.Request) {
			text := toy.Slice(1)
			if name == "/drip" {
				text = text[:1]
			}
			for r.Context().Err() == nil {
				if _, err := w.Write(text); err != nil {
					return
				}
				_ = http.NewResponseController(w).Flush()
				time.Sleep(pause)
			}
		})
	}
	return mux
}

// ask sends bytes as they are to a client's door and gives the kind and the text of the refusal.
func (h *hostile) ask(verb string, data []byte) (fault.Kind, string) {
	h.t.Helper()
	m, err := h.conn.Request(wire.ClientSubject(verb, job.MainTenant), data, patience)
	h.check(err)
	var reply wire.SubmitReply
	if err := wire.Decode(m.Data, &reply); err != nil {
		h.t.Errorf("the answer to %.60q is no answer: %v", data, err)
		return "", ""
	}
	if reply.Fault == nil {
		return "", string(reply.Job)
	}
	return reply.Fault.Kind, reply.Fault.Message
}

// submission is a good toy submit but for what change does to it.
func submission(change func(map[string]any)) []byte {
	fields := map[string]any{
		"v": wire.Version, "kind": "toy", "key": "hostile", "miner": "f01000", "sector_number": 9, "output": "partitions",
	}
	change(fields)
	data, err := json.Marshal(fields)
	if err != nil {
		panic(err)
	}
	return data
}

func digestOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// attack is one request and the kind of refusal that it must get.
type attack struct {
	verb string
	data []byte
	want fault.Kind
}

func (h *hostile) attacks() map[string]attack {
	digest := digestOf(toy.Slice(1))
	nobody := []byte(`{"v":2,"job_id":"01890a5d-ac96-774b-bcce-b302099a8057"}`)
	by := func(field string, value any) []byte {
		return submission(func(f map[string]any) { f[field], f["sha256"] = value, digest })
	}
	path := func(name string) attack { return attack{wire.VerbSubmit, by("path", name), fault.Invalid} }
	url := func(text string) attack { return attack{wire.VerbSubmit, by("url", text), fault.Invalid} }
	late := func(text string) attack { return attack{wire.VerbSubmit, by("url", text), fault.Transient} }
	bad := func(text string) attack { return attack{wire.VerbSubmit, []byte(text), fault.Invalid} }
	_, port, _ := net.SplitHostPort(h.inside)
	all := map[string]attack{
		"nothing": bad(""), "null": bad("null"), "a list": bad("[]"), "half a body": bad(`{"v":2,"miner"`),
		"zeros": bad(strings.Repeat("\x00", 1000)), "brackets": bad(strings.Repeat("[", 500_000)),
		"not UTF-8": bad("{\"v\":2,\"miner\":\"\xff\xfe\"}"), "a version to come": bad(`{"v":99,"miner":"1"}`),
		"a number as miner":    {wire.VerbSubmit, by("miner", 1000), fault.Invalid},
		"another tenant":       {wire.VerbSubmit, by("tenant", "other"), fault.Invalid},
		"no such kind":         {wire.VerbSubmit, by("kind", "../toy"), fault.Invalid},
		"garbage as input":     {wire.VerbSubmit, by("inline", []byte("garbage")), fault.Invalid},
		"not base64":           {wire.VerbSubmit, by("inline", "§"), fault.Invalid},
		"inline over its door": {wire.VerbSubmit, by("inline", make([]byte, wire.InlineBytesMax+1)), fault.Invalid},
		"body over its door":   {wire.VerbSubmit, by("key", strings.Repeat("k", wire.BodyBytesMax)), fault.Invalid},
		"endless key":          {wire.VerbSubmit, by("key", strings.Repeat("k", 10_000)), fault.Invalid},
		"no such job":          {wire.VerbStatus, nobody, fault.NotFound},
		"a path as job":        {wire.VerbStatus, []byte(`{"v":2,"job_id":"../../etc/passwd"}`), fault.Invalid},
		"cancel of no job":     {wire.VerbCancel, nobody, fault.NotFound},
		"garbage to cancel":    {wire.VerbCancel, []byte(`x`), fault.Invalid},
		"garbage to why":       {wire.VerbWhy, []byte(`{"v":2,"job_id":7}`), fault.Invalid},
		"a page too long":      {wire.VerbJobs, []byte(`{"v":2,"limit":100000}`), fault.Invalid},

		"path up":             path("../../etc/passwd"),
		"path up from inside": path(h.folder + "/../../etc/passwd"),
		"path elsewhere":      path("/etc/passwd"),
		"path by a link":      path(h.folder + "/link"),
		"path to a pipe":      path(h.folder + "/pipe"),
		"path to the folder":  path(h.folder),
		"path with a zero":    path(h.folder + "/good\x00"),
		"path to a huge file": path(h.folder + "/huge"),
		"path to nothing":     {wire.VerbSubmit, by("path", h.folder+"/none"), fault.NotFound},
		"wrong hash of a path": {wire.VerbSubmit, submission(func(f map[string]any) {
			f["path"], f["sha256"] = h.folder+"/good", strings.Repeat("0", 64)
		}), fault.Corrupt},
		"wrong hash of a URL": {wire.VerbSubmit, submission(func(f map[string]any) {
			f["url"], f["sha256"] = "http://"+h.outside+"/good", strings.Repeat("0", 64)
		}), fault.Corrupt},
		"wrong hash of an object": {wire.VerbSubmit, submission(func(f map[string]any) {
			f["object"] = job.Object{Name: "mine", Bytes: 5, SHA256: strings.Repeat("0", 64)}
		}), fault.Corrupt},
		"object over its door": {wire.VerbSubmit, submission(func(f map[string]any) {
			f["object"] = job.Object{Name: "mine", Bytes: wire.ReferenceBytesMax + 1, SHA256: digest}
		}), fault.Invalid},
		"no such object": {wire.VerbSubmit, submission(func(f map[string]any) {
			f["object"] = job.Object{Name: "../mine", Bytes: 5, SHA256: digest}
		}), fault.NotFound},

		"URL of loopback":             url("http://" + h.inside + "/"),
		"URL of a name to loopback":   url("http://localhost:" + port + "/"),
		"URL of loopback 6":           url("http://[::1]:" + port + "/"),
		"URL of this host":            url("http://0.0.0.0:" + port + "/"),
		"URL of link-local":           url("http://169.254.169.254/latest/meta-data"),
		"URL of nobody's list":        url("http://127.0.0.3/"),
		"URL of a file":               url("file:///etc/passwd"),
		"URL with a user":             url("http://u:p@" + h.outside + "/good"),
		"URL that redirects inside":   url("http://" + h.outside + "/inside"),
		"URL that announces too much": url("http://" + h.outside + "/huge"),
		"URL that never answers":      late("http://" + h.outside + "/silent"),
		"URL that drips for ever":     late("http://" + h.outside + "/drip"),
		"URL that never ends":         late("http://" + h.outside + "/endless"),
	}
	all["the same key with other input"] = attack{wire.VerbSubmit, submission(func(f map[string]any) {
		f["key"], f["sector_number"], f["inline"] = "sector 1", 1, toy.Slice(2) // the live job's key
	}), fault.Conflict}
	return all
}

// A hostile client gets a typed refusal each time, and leaves nothing behind: no job, object, message, temporary file,
// booking, open file or goroutine.
func TestHostileClientLeavesNothingBehind(t *testing.T) {
	h := newHostile(t)
	objects, err := h.bus.Objects(t.Context(), wire.ObjectsIn(job.MainTenant))
	h.check(err)
	_, err = objects.Put(t.Context(), "mine", strings.NewReader("hello"), nil)
	h.check(err)
	before, files := h.inventory(), h.openFiles()
	for name, a := range h.attacks() {
		begun := time.Now()
		kind, text := h.ask(a.verb, a.data)
		if kind != a.want {
			t.Errorf("%s: %q (%s), want %q", name, kind, text, a.want)
		}
		if strings.Contains(text, "root:") {
			t.Errorf("%s: the refusal tells what is in a file: %s", name, text)
		}
		if took := time.Since(begun); took > refusedWithin {
			t.Errorf("%s: refused after %s", name, took)
		}
	}
	if n := h.hits.Load(); n > 0 {
		t.Errorf("%d requests got inside", n)
	}
	h.tooMuchForTheServer()
	h.wantSame(before, files)
	h.flood(before, files)
	h.slowReader()
	h.wantSame(before, files)
	h.check(objects.Delete(t.Context(), "mine"))
	h.letGo("gpu.mid-proof#1")
	h.waitDone()
	h.checkQuiet()
	h.wantNoGoroutine()
}

// tooMuchForTheServer sends a message over the server's limit, past the client library that would not: the server says
// so and hangs up.
func (h *hostile) tooMuchForTheServer() {
	h.t.Helper()
	c, err := net.Dial("tcp", h.nats.listen)
	h.check(err)
	defer c.Close()
	h.check(c.SetDeadline(time.Now().Add(patience)))
	_, err = fmt.Fprintf(c, "CONNECT {\"verbose\":false}\r\nPUB %s %d\r\n",
		wire.ClientSubject(wire.VerbSubmit, job.MainTenant), 2<<20)
	h.check(err)
	answer, err := io.ReadAll(c) // it ends where the server hangs up
	if !strings.Contains(string(answer), "Maximum Payload Violation") {
		h.t.Errorf("a message over the server's limit: %q, %v", answer, err)
	}
}

// inventory counts everything that a submit can leave.
func (h *hostile) inventory() string {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), patience)
	defer cancel()
	var out strings.Builder
	for _, stream := range []string{
		wire.StreamSynth, wire.StreamProve, wire.StreamResult, wire.StreamEvents, wire.StreamDLQ,
	} {
		fmt.Fprintln(&out, stream, h.messages(stream))
	}
	for _, bucket := range []string{
		wire.ObjectsSlices, wire.ObjectsIn(job.MainTenant), wire.ObjectsProofs(job.MainTenant),
	} {
		fmt.Fprintln(&out, bucket, h.objects(bucket, nil))
	}
	jobs, err := h.client.Jobs(ctx, wire.JobsRequest{})
	h.check(err)
	for _, j := range jobs.Jobs {
		fmt.Fprintln(&out, "job", j.ID, j.State)
	}
	kv, err := h.bus.KV(ctx, wire.BucketJobs)
	h.check(err)
	keys, err := kv.Keys(ctx, "")
	h.check(err)
	fmt.Fprintln(&out, "keys", len(keys))
	if b := h.book("n1"); b != nil {
		fmt.Fprintln(&out, "booked", len(b.Entries))
	}
	fmt.Fprintln(&out, "book", attemptsIn(h.nodes[0], "book"), "segments", namesIn(h.nodes[0], "seg"))
	left, err := os.ReadDir(h.temp)
	h.check(err)
	fmt.Fprintln(&out, "temporary files", left)
	return out.String()
}

// openFiles is how many files and connections the coordinator holds, but for those to Redis: there are more when it has
// more to do.
func (h *hostile) openFiles() (count int) {
	h.t.Helper()
	_, port, err := net.SplitHostPort(h.redis.listen)
	h.check(err)
	number, err := strconv.Atoi(port)
	h.check(err)
	redis := map[string]bool{}
	for line := range strings.Lines(readText(fmt.Sprintf("/proc/%d/net/tcp", h.coordinators[0].pid()))) {
		if f := strings.Fields(line); len(f) > 9 && strings.HasSuffix(f[2], fmt.Sprintf(":%04X", number)) {
			redis["socket:["+f[9]+"]"] = true
		}
	}
	folder := fmt.Sprintf("/proc/%d/fd", h.coordinators[0].pid())
	list, err := os.ReadDir(folder)
	h.check(err)
	for _, e := range list {
		if target, err := os.Readlink(filepath.Join(folder, e.Name())); err == nil && !redis[target] {
			count++
		}
	}
	return count
}

func (h *hostile) wantSame(before string, files int) {
	h.t.Helper()
	if after := h.inventory(); after != before {
		h.t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
	until(h.t, "the coordinator holds no more files than before", func() bool { return h.openFiles() <= files })
}

// flood submits a thousand times at once: each is answered, most by the tenant's limit, and the rack stays
// usable.
func (h *hostile) flood(before string, files int) {
	h.t.Helper()
	const requests = 1000
	data := submission(func(f map[string]any) { f["inline"] = []byte("garbage") })
	inbox, kinds, mu := h.conn.NewInbox(), map[fault.Kind]int{}, sync.Mutex{}
	sub, err := h.conn.Subscribe(inbox, func(m *nats.Msg) {
		var reply wire.Reply
		kind := fault.Kind("no answer")
		if err := wire.Decode(m.Data, &reply); err == nil && reply.Fault != nil {
			kind = reply.Fault.Kind
		} else if m.Header.Get("Nats-Service-Error-Code") != "" {
			kind = "service " + fault.Kind(m.Header.Get("Nats-Service-Error-Code"))
		}
		mu.Lock()
		defer mu.Unlock()
		kinds[kind]++
	})
	h.check(err)
	defer func() { _ = sub.Unsubscribe() }()
	begun := time.Now()
	for range requests {
		h.check(h.conn.PublishRequest(wire.ClientSubject(wire.VerbSubmit, job.MainTenant), inbox, data))
	}
	h.check(h.conn.Flush())
	sent := time.Since(begun)
	until(h.t, "each request of the flood is answered", func() bool {
		mu.Lock()
		defer mu.Unlock()
		total := 0
		for _, n := range kinds {
			total += n
		}
		return total == requests
	})
	mu.Lock()
	defer mu.Unlock()
	h.t.Logf("%d submits sent in %s, answered in %s: %v", requests, sent, time.Since(begun), kinds)
	checked := kinds[fault.Invalid] + kinds[fault.Transient] // some may not be checked in time
	if kinds[fault.Exhausted] < requests/2 || kinds[fault.Exhausted]+checked != requests {
		h.t.Errorf("answers %v", kinds)
	}
	h.wantSame(before, files)
}

// slowReader asks for much and reads nothing; the others do not notice.
func (h *hostile) slowReader() {
	h.t.Helper()
	c, err := net.Dial("tcp", h.nats.listen)
	h.check(err)
	defer c.Close()
	h.check(c.(*net.TCPConn).SetReadBuffer(4096))
	var text bytes.Buffer
	text.WriteString("CONNECT {\"verbose\":false,\"headers\":true,\"no_responders\":true}\r\nSUB deaf 1\r\n")
	ask := fmt.Sprintf(`{"v":2,"job_id":%q}`, h.live.id)
	for range 20_000 {
		fmt.Fprintf(&text, "PUB c2.status.main deaf %d\r\n%s\r\n", len(ask), ask)
	}
	h.check(c.SetWriteDeadline(time.Now().Add(patience)))
	if _, err := io.Copy(c, &text); err != nil {
		h.t.Logf("the server cuts the slow reader off: %v", err)
	}
	begun := time.Now()
	h.record(h.live)
	if took := time.Since(begun); took > refusedWithin {
		h.t.Errorf("another client waited %s", took)
	}
}

// wantNoGoroutine ends the coordinator with a list of its goroutines: none is at work for a client.
func (h *hostile) wantNoGoroutine() {
	h.t.Helper()
	c := h.coordinators[0]
	c.signal(syscall.SIGQUIT)
	select {
	case <-c.done:
	case <-time.After(patience):
		h.t.Fatal("the coordinator does not end")
	}
	text := c.log.String()
	_, dump, ok := strings.Cut(text, "SIGQUIT: quit")
	if !ok || !strings.Contains(dump, "goroutine ") {
		h.t.Fatal("no list of goroutines")
	}
	h.t.Logf("%d goroutines at the end", strings.Count(dump, "\ngoroutine "))
	if strings.Contains(dump, "/internal/intake.") {
		h.t.Error("a goroutine of the intake is left")
	}
}
