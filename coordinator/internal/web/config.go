package web

import (
	"crypto/subtle"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/service"
)

// Config says where the page is shown and who may change things.
type Config struct {
	Listen     string        `doc:"Address:port of the web page; \"\" is off. Whoever reaches it may read everything."`
	TokenFile  string        `doc:"File with the token that lets a viewer cancel and replay; \"\" lets nobody."`
	TraceURL   string        `doc:"Link to a trace, with {trace} for its id; \"\" for no links."`
	Poll       time.Duration `doc:"How old what is shown may be."`
	StreamsMax int           `doc:"Most open pages."`
}

// DefaultConfig shows nothing.
func DefaultConfig() Config { return Config{Poll: time.Second, StreamsMax: 64} }

// tokenBytesMin is 128 bits in hex.
const (
	tokenBytesMin = 32
	tokenBytesMax = 512
)

// Validate reports what is wrong.
func (c *Config) Validate() error {
	listen := service.HTTPConfig{Listen: c.Listen}
	if err := listen.Validate(); err != nil {
		return err
	}
	switch {
	case c.Poll < 100*time.Millisecond || c.Poll > time.Minute:
		return fault.New(fault.Invalid, "poll of %s is outside 100ms to 1m", c.Poll)
	case c.StreamsMax < 1 || c.StreamsMax > 10_000:
		return fault.New(fault.Invalid, "%d streams are outside 1 to 10000", c.StreamsMax)
	}
	if c.TraceURL == "" {
		return nil
	}
	u, err := url.Parse(strings.ReplaceAll(c.TraceURL, "{trace}", "0"))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" ||
		!strings.Contains(c.TraceURL, "{trace}") {
		return fault.New(fault.Invalid, "trace_url %.200q is no http address with {trace} in it", c.TraceURL)
	}
	return nil
}

// token reads the token, "" when there is none.
func (c *Config) token() (string, error) {
	if c.TokenFile == "" {
		return "", nil
	}
	data, err := os.ReadFile(c.TokenFile)
	if err != nil {
		return "", fault.As(fault.Invalid, fmt.Errorf("read the web page's token: %w", err))
	}
	token := strings.TrimSpace(string(data))
	if len(token) < tokenBytesMin || len(token) > tokenBytesMax {
		return "", fault.WithHint(
			fault.New(fault.Invalid, "the web page's token in %s has %d bytes: %d to %d are wanted", c.TokenFile, len(token),
				tokenBytesMin, tokenBytesMax),
			"make one with: openssl rand -hex 32")
	}
	return token, nil
}

// same compares secrets.
func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// loopback tells whether an address can be reached from this host only.
func loopback(listen string) bool {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
