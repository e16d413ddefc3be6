package web

import (
	"context"
	"embed"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"regexp"
	"strings"
	"sync/atomic"

	"github.com/rs/zerolog"

	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/client"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/wire"
)

//go:embed assets
var assets embed.FS

// Server shows the page. Its methods are safe for concurrent use.
type Server struct {
	config  Config
	token   string
	log     zerolog.Logger
	cache   cache
	streams chan struct{}
	rack    atomic.Pointer[bus.Bus]
}

// New makes a server, which has nothing to show before Connect.
func New(config Config, log zerolog.Logger) (*Server, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	token, err := config.token()
	if err != nil {
		return nil, err
	}
	return &Server{
		config: config, token: token, log: log, cache: cache{age: config.Poll, pages: map[string]*page{}},
		streams: make(chan struct{}, config.StreamsMax),
	}, nil
}

// Connect gives the bus on which the rack is asked, with an operator's rights.
func (s *Server) Connect(b bus.Bus) { s.rack.Store(&b) }

// bus is that; there is none before Connect.
func (s *Server) bus() (bus.Bus, error) {
	if b := s.rack.Load(); b != nil {
		return *b, nil
	}
	return nil, fault.New(fault.Transient, "this coordinator is not connected to NATS yet")
}

// tenant gives a tenant's client.
func (s *Server) tenant(t job.Tenant) (*client.Client, error) {
	b, err := s.bus()
	if err != nil {
		return nil, err
	}
	return client.New(b, t), nil
}

// Handler gives the page and what it asks for.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	page, err := fs.Sub(assets, "assets")
	if err != nil {
		panic(err) // embedded
	}
	mux.Handle("GET /", http.FileServerFS(page))
	mux.HandleFunc("GET /api/session", s.session)
	s.document(mux, "rack", "rack", func(ctx context.Context, _ *http.Request) ([]byte, error) { return s.overview(ctx) })
	s.document(mux, "jobs/{tenant}/{id}", "job", func(ctx context.Context, r *http.Request) ([]byte, error) {
		tenant, id, err := jobOf(r)
		if err != nil {
			return nil, err
		}
		return s.job(ctx, tenant, id)
	})
	s.lists(mux)
	mux.HandleFunc("GET /api/jobs/{tenant}/{id}/proof", s.proof)
	mux.HandleFunc("POST /api/jobs/{tenant}/{id}/cancel", s.cancel)
	mux.HandleFunc("POST /api/letters/{id}/replay", s.replay)
	return s.guard(mux)
}

// document serves one as it is now under /api/ and as a stream under /events/.
func (s *Server) document(
	mux *http.ServeMux, path, kind string, ask func(context.Context, *http.Request) ([]byte, error),
) {
	get := func(r *http.Request) func(context.Context) ([]byte, error) {
		name := kind + " " + r.PathValue("tenant") + " " + r.PathValue("id")
		return func(ctx context.Context) ([]byte, error) {
			return s.cache.get(ctx, name, func(ctx context.Context) ([]byte, error) { return ask(ctx, r) })
		}
	}
	mux.HandleFunc("GET /api/"+path, func(w http.ResponseWriter, r *http.Request) { s.answer(w, r, get(r)) })
	mux.HandleFunc("GET /events/"+path, func(w http.ResponseWriter, r *http.Request) { s.stream(w, r, get(r)) })
}

// lists serves what is looked at by pages.
func (s *Server) lists(mux *http.ServeMux) {
	list := func(path, verb string, request func(*http.Request) (wire.Body, error), fresh func() reply) {
		mux.HandleFunc("GET /api/"+path, func(w http.ResponseWriter, r *http.Request) {
			s.answer(w, r, func(ctx context.Context) ([]byte, error) {
				body, err := request(r)
				if err != nil {
					return nil, err
				}
				return s.list(ctx, verb, body, fresh())
			})
		})
	}
	list("jobs", wire.AdminJobs, func(r *http.Request) (wire.Body, error) {
		before, err := idOf(r.FormValue("before"))
		return &wire.JobsRequest{Before: before, State: job.State(r.FormValue("state")), Limit: jobsShown}, err
	}, func() reply { return &wire.JobsReply{} })
	list("letters", wire.AdminDLQ, func(r *http.Request) (wire.Body, error) {
		after, err := idOf(r.FormValue("after"))
		return &wire.DLQRequest{After: after}, err
	}, func() reply { return &wire.DLQReply{} })
	list("audit", wire.AdminAudit, func(r *http.Request) (wire.Body, error) {
		after, err := idOf(r.FormValue("after"))
		return &wire.AuditRequest{After: after}, err
	}, func() reply { return &wire.AuditReply{} })
	list("assets", wire.AdminAssets, func(*http.Request) (wire.Body, error) { return &wire.AssetsRequest{}, nil },
		func() reply { return &wire.AssetsReply{} })
}

// idOf reads the name of a job, "" for none.
func idOf(text string) (job.ID, error) {
	if text == "" {
		return "", nil
	}
	id, err := job.ParseID(text)
	return id, fault.As(fault.Invalid, err)
}

// jobOf reads which job a path names.
func jobOf(r *http.Request) (job.Tenant, job.ID, error) {
	tenant, err := job.ParseTenant(r.PathValue("tenant"))
	if err != nil {
		return "", "", fault.As(fault.Invalid, err)
	}
	id, err := job.ParseID(r.PathValue("id"))
	return tenant, id, fault.As(fault.Invalid, err)
}

// guard sets what holds for every answer. A page that is shown on loopback only answers by no other name: else a
// foreign page whose name leads to loopback could read it.
func (s *Server) guard(next http.Handler) http.Handler {
	local := loopback(s.config.Listen)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if local && !loopback(withPort(r.Host)) {
			http.Error(w, "this page is shown on loopback only", http.StatusMisdirectedRequest)
			return
		}
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "+
			"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}

func withPort(host string) string {
	if _, _, err := net.SplitHostPort(host); err == nil {
		return host
	}
	return net.JoinHostPort(strings.Trim(host, "[]"), "80")
}

// answer gives a document.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, get func(context.Context) ([]byte, error)) {
	ctx, cancel := context.WithTimeout(r.Context(), askWithin)
	defer cancel()
	data, err := get(ctx)
	if err != nil {
		s.fail(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(data) // the viewer went away
}

// fail says what went wrong.
func (s *Server) fail(w http.ResponseWriter, err error) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(statusOf(err))
	_, _ = w.Write(encodeFault(err))
}

func encodeFault(err error) []byte {
	data, err := json.Marshal(fault.ReportOf("web", err))
	if err != nil {
		panic(err) // texts only
	}
	return data
}

func statusOf(err error) int {
	switch fault.KindOf(err) {
	case fault.NotFound:
		return http.StatusNotFound
	case fault.Invalid:
		return http.StatusBadRequest
	case fault.Conflict:
		return http.StatusConflict
	case fault.Exhausted:
		return http.StatusTooManyRequests
	case fault.Transient, fault.Cancelled:
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}

// session tells a viewer what it may do.
func (s *Server) session(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"possible":%t,"write":%t}`, s.token != "", s.may(r))
}

// may tells whether a request brings the token.
func (s *Server) may(r *http.Request) bool {
	given, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return s.token != "" && ok && same(given, s.token)
}

var traceID = regexp.MustCompile(`^[0-9a-f]{2}-([0-9a-f]{32})-`)

// traceURL is the link to a job's trace, "" when there is none.
func (s *Server) traceURL(r *job.Record) string {
	id := traceID.FindStringSubmatch(r.TraceParent)
	if s.config.TraceURL == "" || id == nil {
		return ""
	}
	return strings.ReplaceAll(s.config.TraceURL, "{trace}", id[1])
}

// proof gives a job's proof as a file.
func (s *Server) proof(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), askWithin)
	defer cancel()
	tenant, id, err := jobOf(r)
	if err != nil {
		s.fail(w, err)
		return
	}
	c, err := s.tenant(tenant)
	if err != nil {
		s.fail(w, err)
		return
	}
	status, err := c.Status(ctx, id)
	if err != nil {
		s.fail(w, err)
		return
	}
	proof, err := c.Result(ctx, status.Record)
	if err != nil {
		s.fail(w, err)
		return
	}
	kind, name := "application/octet-stream", string(id)+".proof"
	switch format := r.FormValue("format"); format {
	case "":
	case "hex":
		kind, name, proof = "text/plain", name+".hex", hex.AppendEncode(nil, proof)
	case "base64":
		kind, name, proof = "text/plain", name+".b64", base64.StdEncoding.AppendEncode(nil, proof)
	default:
		s.fail(w, fault.New(fault.Invalid, "format %.20q is neither hex nor base64", format))
		return
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Content-Disposition", `attachment; filename="`+name+`"`)
	_, _ = w.Write(proof)
}

// change does what needs the token.
func (s *Server) change(w http.ResponseWriter, r *http.Request, what string, do func(context.Context) error) {
	if !s.may(r) {
		w.Header().Set("WWW-Authenticate", "Bearer")
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = w.Write(encodeFault(fault.New(fault.Invalid, "%s needs the token of this page", what)))
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), askWithin)
	defer cancel()
	err := do(ctx)
	s.log.Info().Str("change", what).Str("from", r.RemoteAddr).AnErr("fault", err).Msg("asked for on the web page")
	if err != nil {
		s.fail(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprint(w, "{}")
}

func (s *Server) cancel(w http.ResponseWriter, r *http.Request) {
	tenant, id, err := jobOf(r)
	if err != nil {
		s.fail(w, err)
		return
	}
	s.change(w, r, "cancel job "+string(id), func(ctx context.Context) error {
		c, err := s.tenant(tenant)
		if err != nil {
			return err
		}
		return c.Cancel(ctx, id, "cancelled on the web page")
	})
}

func (s *Server) replay(w http.ResponseWriter, r *http.Request) {
	id, err := job.ParseID(r.PathValue("id"))
	if err != nil {
		s.fail(w, fault.As(fault.Invalid, err))
		return
	}
	s.change(w, r, "replay job "+string(id), func(ctx context.Context) error {
		return s.ask(ctx, wire.AdminDLQ, &wire.DLQRequest{Job: id, Replay: true}, &wire.DLQReply{})
	})
}
