package intake_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/proofrack/proofrack/coordinator/internal/intake"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/wire"
)

func TestPathsStayBelowTheirPrefixes(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	allowed, secret := filepath.Join(root, "in"), filepath.Join(root, "secret")
	for _, dir := range []string{allowed, secret, filepath.Join(root, "in-not")} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write := func(path string) {
		if err := os.WriteFile(path, interactive(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(allowed, "c1.json"))
	write(filepath.Join(secret, "c1.json"))
	write(filepath.Join(root, "in-not", "c1.json"))
	link := func(to, name string) {
		if err := os.Symlink(to, filepath.Join(allowed, name)); err != nil {
			t.Fatal(err)
		}
	}
	link(filepath.Join(secret, "c1.json"), "link")
	link(secret, "folder")
	link("c1.json", "inside")
	if err := syscall.Mkfifo(filepath.Join(allowed, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]fault.Kind{
		allowed + "/c1.json":              "",
		allowed + "/inside":               "",
		secret + "/c1.json":               fault.Invalid,
		allowed + "/../secret/c1.json":    fault.Invalid,
		allowed + "-not/c1.json":          fault.Invalid,
		allowed + "/link":                 fault.Invalid,
		allowed + "/folder/c1.json":       fault.Invalid,
		allowed + "/pipe":                 fault.Invalid,
		allowed:                           fault.Invalid,
		allowed + "/nothing":              fault.NotFound,
		"../../etc/passwd":                fault.Invalid,
		"/etc/passwd":                     fault.Invalid,
		"/proc/self/environ":              fault.Invalid,
		allowed + "/c1.json/../../secret": fault.Invalid,
	} {
		t.Run(strings.TrimPrefix(path, root), func(t *testing.T) {
			in, s := newIntake(t, func(c *intake.Config) { c.PathPrefixes = []string{allowed} })
			reply := in.Submit(t.Context(), "t1", request(func(r *wire.Submit) {
				r.Inline, r.Path, r.SHA256 = nil, path, digestOf(interactive())
			}))
			if got := fault.KindOf(reply.Err()); got != want {
				t.Errorf("%q (%v), want %q", got, reply.Fault, want)
			}
			if want != "" {
				s.wantNothing(t)
				if reply.Fault != nil && strings.Contains(reply.Fault.Message, "permission") {
					t.Errorf("tells what is there: %s", reply.Fault.Message)
				}
			}
		})
	}
}

func TestURLsAreFetchedFromAllowedHostsOnly(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	mux.HandleFunc("/c1", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(interactive()) })
	mux.HandleFunc(
		"/redirect",
		func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/c1", http.StatusFound) },
	)
	mux.HandleFunc("/endless", func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			if _, err := io.WriteString(w, strings.Repeat(" ", 1<<16)); err != nil {
				return
			}
			w.(http.Flusher).Flush()
			time.Sleep(time.Millisecond)
		}
	})
	mux.HandleFunc("/huge", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(int64(wire.ReferenceBytesMax)+1))
		w.WriteHeader(http.StatusOK)
	})
	mux.HandleFunc("/silent", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	host := strings.TrimPrefix(server.URL, "http://")
	for url, want := range map[string]fault.Kind{
		server.URL + "/c1":       "",
		server.URL + "/redirect": fault.Invalid,
		server.URL + "/none":     fault.NotFound,
		server.URL + "/endless":  fault.Transient,
		server.URL + "/silent":   fault.Transient,
		server.URL + "/huge":     fault.Invalid,
		"http://127.0.0.1:1/c1":  fault.Invalid, // another host
		"ftp://" + host + "/c1":  fault.Invalid,
		"http://u:p@" + host:     fault.Invalid,
		"file:///etc/passwd":     fault.Invalid,
		"::":                     fault.Invalid,
	} {
		t.Run(strings.ReplaceAll(url, "/", "_"), func(t *testing.T) {
			t.Parallel()
			in, s := newIntake(t, func(c *intake.Config) {
				c.URLHosts, c.URLAddresses, c.CheckTimeout = []string{host}, []string{"127.0.0.0/8"}, 2*time.Second
			})
			reply := in.Submit(t.Context(), "t1", request(func(r *wire.Submit) {
				r.Inline, r.URL, r.SHA256 = nil, url, digestOf(interactive())
			}))
			if got := fault.KindOf(reply.Err()); got != want {
				t.Errorf("%q (%v), want %q", got, reply.Fault, want)
			}
			if want != "" {
				s.wantNothing(t)
			}
		})
	}
	t.Run("private address", func(t *testing.T) {
		t.Parallel()
		in, s := newIntake(t, func(c *intake.Config) { c.URLHosts = []string{host} })
		reply := in.Submit(t.Context(), "t1", request(func(r *wire.Submit) {
			r.Inline, r.URL, r.SHA256 = nil, server.URL+"/c1", digestOf(interactive())
		}))
		if reply.Fault == nil || reply.Fault.Kind != fault.Invalid ||
			!strings.Contains(reply.Fault.Message, "private address") {
			t.Errorf("%+v", reply.Fault)
		}
		s.wantNothing(t)
	})
}
