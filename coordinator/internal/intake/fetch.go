package intake

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/wire"
)

// fetcher reads inputs from places that the operator allows.
type fetcher struct {
	prefixes []string
	hosts    []string
	private  []netip.Prefix
	client   *http.Client
}

func newFetcher(c Config) *fetcher {
	f := &fetcher{prefixes: c.PathPrefixes, hosts: c.URLHosts}
	for _, network := range c.URLAddresses {
		f.private = append(f.private, netip.MustParsePrefix(network))
	}
	dialer := &net.Dialer{Timeout: 10 * time.Second, Control: f.checkAddress}
	f.client = &http.Client{
		Transport: &http.Transport{
			DialContext: dialer.DialContext, TLSHandshakeTimeout: 10 * time.Second, DisableKeepAlives: true,
			ResponseHeaderTimeout: 30 * time.Second, MaxResponseHeaderBytes: 64 << 10, DisableCompression: true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return f
}

// path opens a regular file below one of the prefixes. The path is opened first and its real place is asked of the
// kernel afterwards, so that nobody can swap a part of it in between.
func (f *fetcher) path(path string) (io.ReadCloser, error) {
	if len(f.prefixes) == 0 {
		return nil, fault.WithHint(fault.New(fault.Invalid, "inputs by path are not allowed here"),
			"upload the input, or ask the operator for path_prefixes")
	}
	refused := fault.WithHint(fault.New(fault.Invalid, "path is outside of the folders that inputs may be read from"),
		"ask the operator for path_prefixes")
	if !filepath.IsAbs(path) || filepath.Clean(path) != path || !f.below(path) {
		return nil, refused
	}
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
	if err != nil {
		// Why it can't be opened would tell what is there; only a name below a prefix gets this far, and its last part.
		if errors.Is(err, os.ErrNotExist) {
			return nil, fault.New(fault.NotFound, "input file is not there")
		}
		return nil, fault.New(fault.Invalid, "input file can't be opened")
	}
	real, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", file.Fd()))
	if err != nil || !f.below(real) {
		return nil, errors.Join(refused, file.Close())
	}
	info, err := file.Stat()
	switch {
	case err != nil:
		return nil, errors.Join(fault.As(fault.Transient, err), file.Close())
	case !info.Mode().IsRegular():
		return nil, errors.Join(fault.New(fault.Invalid, "input is no regular file"), file.Close())
	case info.Size() > wire.ReferenceBytesMax:
		return nil, errors.Join(fault.New(fault.Invalid, "input file of %d bytes is over the limit of %d", info.Size(),
			int64(wire.ReferenceBytesMax)), file.Close())
	}
	return file, nil
}

func (f *fetcher) below(path string) bool {
	return slices.ContainsFunc(f.prefixes, func(prefix string) bool { return strings.HasPrefix(path, prefix+"/") })
}

// url fetches from an allowed host.
func (f *fetcher) url(ctx context.Context, text string) (io.ReadCloser, error) {
	if len(f.hosts) == 0 {
		return nil, fault.WithHint(fault.New(fault.Invalid, "inputs by URL are not allowed here"),
			"upload the input, or ask the operator for url_hosts")
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.Opaque != "" {
		return nil, fault.New(fault.Invalid, "input URL is not a plain http or https URL")
	}
	if !slices.Contains(f.hosts, u.Host) {
		return nil, fault.WithHint(fault.New(fault.Invalid, "host of the input URL is not allowed here"),
			"ask the operator for url_hosts")
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, fault.As(fault.Invalid, err)
	}
	response, err := f.client.Do(request)
	if err != nil {
		var refused fault.Classified
		if errors.As(err, &refused) {
			return nil, fmt.Errorf("fetch input: %w", refused)
		}
		return nil, fault.As(fault.Transient, fmt.Errorf("fetch input: %w", err))
	}
	switch {
	case response.StatusCode >= 300 && response.StatusCode < 400:
		err = fault.New(
			fault.Invalid,
			"fetch input: the host redirects (status %d), which is not followed",
			response.StatusCode,
		)
	case response.StatusCode != http.StatusOK:
		err = fault.New(fault.NotFound, "fetch input: status %d", response.StatusCode)
	case response.ContentLength > wire.ReferenceBytesMax:
		err = fault.New(fault.Invalid, "input of %d bytes is over the limit of %d", response.ContentLength,
			int64(wire.ReferenceBytesMax))
	}
	if err != nil {
		return nil, errors.Join(err, response.Body.Close())
	}
	return response.Body, nil
}

// checkAddress looks at the address that a name has resolved to, right before connecting to it.
func (f *fetcher) checkAddress(_, address string, _ syscall.RawConn) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return fault.New(fault.Invalid, "address %q of the input's host can't be read", address)
	}
	addr := ap.Addr().Unmap()
	if slices.ContainsFunc(f.private, func(p netip.Prefix) bool { return p.Contains(addr) }) {
		return nil
	}
	if !addr.IsGlobalUnicast() || addr.IsPrivate() || sharedSpace(addr) {
		return fault.WithHint(fault.New(fault.Invalid, "the input's host has a private address"),
			"ask the operator for url_addresses")
	}
	return nil
}

// sharedSpace are networks that are global unicast by form and yet nobody's on the Internet (RFC 6598, 6890, 6052).
func sharedSpace(addr netip.Addr) bool {
	for _, text := range []string{
		"0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "198.18.0.0/15", "240.0.0.0/4",
		"64:ff9b::/96", "64:ff9b:1::/48", "2002::/16",
	} {
		if netip.MustParsePrefix(text).Contains(addr) {
			return true
		}
	}
	return false
}
