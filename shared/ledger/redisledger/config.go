package redisledger

import (
	"crypto/tls"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/ledger"
)

// Config says where the store is and how it is used.
type Config struct {
	// Address is host:port, or the path of a Unix socket, beginning with "/".
	Address string
	// Username and Password are of an ACL user; both "" for a store without.
	Username, Password string
	// TLS is nil for a plain connection.
	TLS *tls.Config
	// Prefix begins all keys: letters, digits, ":", "-". Default "c2:ledger".
	Prefix string
	// Ledger holds the lease.
	Ledger ledger.Config
	// Timeout bounds each call, with connecting. Default 1 s, 10 ms … 1 min.
	Timeout time.Duration
	// Connections bounds the connections. Default 16, 1 … 1024.
	Connections int
	// AllowEviction accepts a store that may throw keys away: books are then closed whenever it did.
	AllowEviction bool
}

// DefaultConfig has the defaults; Address is left to set.
func DefaultConfig() Config {
	return Config{Prefix: "c2:ledger", Ledger: ledger.DefaultConfig(), Timeout: time.Second, Connections: 16}
}

var prefixName = regexp.MustCompile(`^[a-zA-Z0-9:-]{1,64}$`)

// Validate reports all problems at once.
func (c *Config) Validate() error {
	problems := []error{c.Ledger.Validate()}
	switch {
	case c.Address == "":
		problems = append(problems, errors.New("address is empty"))
	case !strings.HasPrefix(c.Address, "/") && strings.ContainsAny(c.Address, "@/"):
		// It is not repeated: it may hold a password.
		problems = append(problems, errors.New("address is neither host:port nor the path of a Unix socket; user name, "+
			"password and TLS have settings of their own"))
	}
	if !prefixName.MatchString(c.Prefix) {
		problems = append(problems, fmt.Errorf("prefix %.80q is not 1 to 64 letters, digits, ':' and '-'", c.Prefix))
	}
	if c.Timeout < 10*time.Millisecond || c.Timeout > time.Minute {
		problems = append(problems, fmt.Errorf("timeout %s is outside 10ms to 1m", c.Timeout))
	}
	if c.Connections < 1 || c.Connections > 1024 {
		problems = append(problems, fmt.Errorf("connections %d is outside 1 to 1024", c.Connections))
	}
	return fault.As(fault.Invalid, errors.Join(problems...))
}

// options are the client's: no retries of its own, and nothing in the background.
func (c *Config) options() *redis.Options {
	network := "tcp"
	if strings.HasPrefix(c.Address, "/") {
		network = "unix"
	}
	return &redis.Options{
		Network: network, Addr: c.Address, Username: c.Username, Password: c.Password, TLSConfig: c.TLS,
		Protocol: 2, MaxRetries: -1, DialerRetries: 1, ContextTimeoutEnabled: true,
		DialTimeout: c.Timeout, ReadTimeout: c.Timeout, WriteTimeout: c.Timeout, PoolTimeout: c.Timeout,
		PoolSize: c.Connections, ConnMaxIdleTime: 5 * time.Minute, DisableIdentity: true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
}
