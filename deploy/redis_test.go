package deploy_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/proofrack/proofrack/deploy/internal/keyring"
	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
	"github.com/proofrack/proofrack/shared/ledger/redisledger"
)

func (s *servers) password(file string) string {
	s.t.Helper()
	text, err := os.ReadFile(filepath.Join(s.dir, file))
	check(s.t, err)
	return strings.TrimSpace(string(text))
}

func (s *servers) redisTLS() *tls.Config {
	s.t.Helper()
	pem, err := os.ReadFile(filepath.Join(s.dir, "tls/ca.crt"))
	check(s.t, err)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	return &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
}

// TestB77RedisIsAsTheLedgerWantsIt takes the ledger through all its operations as the shipped user on the shipped
// configuration: it has no warning left, and no command is missing.
func TestB77RedisIsAsTheLedgerWantsIt(t *testing.T) {
	t.Parallel()
	s := newServers(t)
	config := redisledger.DefaultConfig()
	config.Address, config.Username, config.TLS = s.redis(), "ledger", s.redisTLS()
	config.Password = s.password(keyring.LedgerPassword)
	config.Timeout = 5 * time.Second
	l, err := redisledger.Open(config)
	check(t, err)
	defer l.Close()
	report, err := l.Check(t.Context())
	check(t, err)
	if len(report.Warnings) > 0 {
		t.Errorf("warnings: %v", report.Warnings)
	}
	useLedger(t, l)

	for name, change := range map[string]func(*redisledger.Config){
		"no user":        func(c *redisledger.Config) { c.Username, c.Password = "", "" },
		"wrong password": func(c *redisledger.Config) { c.Password = "guess" },
		"other keys":     func(c *redisledger.Config) { c.Prefix = "other" },
	} {
		wrong := config
		change(&wrong)
		l, err := redisledger.Open(wrong)
		check(t, err)
		_, err = l.Begin(t.Context(), 1, "e")
		if fault.KindOf(err) != fault.Invalid {
			t.Errorf("%s: %v (%s)", name, err, fault.KindOf(err))
		}
		l.Close()
	}
}

// useLedger runs every operation.
func useLedger(t *testing.T, l ledger.Ledger) {
	t.Helper()
	ctx := t.Context()
	call, err := l.Begin(ctx, 1, "epoch-1")
	check(t, err)
	const node = job.Node("n1")
	id, err := job.NewID()
	check(t, err)
	attempt := func(fence uint64) job.Attempt { return job.Attempt{Job: id, Partition: 0, Fence: fence} }
	_, err = l.Declare(ctx, call, &ledger.Declaration{
		Node: node, Boot: "b", Instance: "i", Seq: 1, Capacity: ledger.Amounts{ledger.PoolRAM: bytesize.GiB},
	})
	check(t, err)
	reservation := ledger.Reservation{
		Attempt: attempt(1), Node: node, Amounts: ledger.Amounts{ledger.PoolRAM: 100 * bytesize.MiB},
		Assets: []ledger.Asset{{Name: "srs-toy", Pool: ledger.PoolRAM, Class: ledger.ClassSRS, Bytes: bytesize.MiB}},
	}
	check(t, l.Reserve(ctx, call, &reservation))
	_, err = l.Renew(ctx, call, node, []job.Attempt{attempt(1)})
	check(t, err)
	check(t, l.Shrink(ctx, call, node, attempt(1), ledger.Amounts{ledger.PoolRAM: bytesize.MiB}))
	_, err = l.Expire(ctx, call, node)
	check(t, err)
	next := reservation
	next.Attempt = attempt(2)
	check(t, l.Transfer(ctx, call, attempt(1), &next))
	_, err = l.Release(ctx, call, node, attempt(2))
	check(t, err)
	_, err = l.Evict(ctx, call, node, "srs-toy")
	check(t, err)
	_, err = l.Node(ctx, node)
	check(t, err)
	_, err = l.Nodes(ctx)
	check(t, err)
	check(t, l.Forget(ctx, call, node))
}

// TestOperatorsLookAndChangeNothing has the operators' user of Redis try both.
func TestOperatorsLookAndChangeNothing(t *testing.T) {
	t.Parallel()
	s := newServers(t)
	address := s.redis()
	open := func(user, file string) *redis.Client {
		c := redis.NewClient(&redis.Options{
			Addr: address, Username: user, Password: s.password(file), TLSConfig: s.redisTLS(), Protocol: 2, MaxRetries: -1,
			DisableIdentity: true,
		})
		t.Cleanup(func() { c.Close() })
		return c
	}
	boss, ann := open("ledger", keyring.LedgerPassword), open("operator", keyring.OperatorPassword)
	ctx := context.Background()
	check(t, boss.HSet(ctx, "c2:ledger:{n1}:book", "f", "v").Err())
	if got, err := ann.HGetAll(ctx, "c2:ledger:{n1}:book").Result(); err != nil || got["f"] != "v" {
		t.Errorf("an operator reads %v, %v", got, err)
	}
	check(t, ann.Info(ctx).Err())
	check(t, ann.SlowLogGet(ctx, 1).Err())
	for user, c := range map[string]*redis.Client{"operator": ann, "ledger": boss} {
		for _, command := range [][]any{
			{"flushall"}, {"config", "set", "maxmemory", "1"}, {"shutdown"}, {"keys", "*"},
			{"acl", "list"}, {"set", "other", "1"}, {"get", "other"}, {"eval", "return 1", "0"}, {"function", "flush"},
			{"publish", "a", "b"}, {"monitor"}, {"replicaof", "no", "one"}, {"client", "kill", "id", "1"},
		} {
			if err := c.Do(ctx, command...).Err(); err == nil || !strings.Contains(err.Error(), "NOPERM") {
				t.Errorf("%s may %v: %v", user, command, err)
			}
		}
	}
	for _, command := range [][]any{
		{"hset", "c2:ledger:{n1}:book", "f", "w"}, {"del", "c2:ledger:{n1}:book"}, {"script", "load", "return 1"},
		{"evalsha", strings.Repeat("0", 40), "0"}, {"zadd", "c2:ledger:{n1}:leases", "1", "x"},
	} {
		if err := ann.Do(ctx, command...).Err(); err == nil || !strings.Contains(err.Error(), "NOPERM") {
			t.Errorf("an operator may %v: %v", command, err)
		}
	}
}
