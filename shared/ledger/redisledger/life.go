package redisledger

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/proofrack/proofrack/shared/fault"
)

// Report is what a check of the store found.
type Report struct {
	// Run names the store's life, Version is "" for the embedded store.
	Run, Version string
	// Warnings are settings that are legal and risky, each with what to do.
	Warnings []string
}

// Check asks the store for its settings. fault.Invalid: they can't be worked with, the hint says what to set;
// fault.Transient: it is away or not ready.
func (l *Ledger) Check(ctx context.Context) (Report, error) {
	ctx, cancel := context.WithTimeout(ctx, l.cfg.Timeout)
	defer cancel()
	conn := l.rdb.Conn()
	defer conn.Close()
	return l.inspect(ctx, conn)
}

// inspect reads and judges the settings over one connection.
func (l *Ledger) inspect(ctx context.Context, conn *redis.Conn) (Report, error) {
	text, err := conn.Info(ctx).Result()
	if err != nil {
		return Report{}, l.classify("inspect", err)
	}
	info := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, found := strings.Cut(strings.TrimSpace(line), ":"); found {
			info[name] = value
		}
	}
	if info["run_id"] == "" {
		return l.inspectEmbedded(ctx, conn)
	}
	if !runName.MatchString(info["run_id"]) {
		return Report{}, fault.New(fault.Corrupt, "inspect redis at %s: run_id %.80q", l.cfg.Address, info["run_id"])
	}
	report := Report{Run: info["run_id"], Version: info["redis_version"]}
	switch policy := info["maxmemory_policy"]; {
	case info["loading"] == "1":
		return Report{}, fault.New(fault.Transient, "redis at %s is loading its data", l.cfg.Address)
	case info["role"] != "" && info["role"] != "master":
		return Report{}, fault.WithHint(
			fault.New(fault.Invalid, "redis at %s is a %s: the ledger must be written", l.cfg.Address, info["role"]),
			"give the address of the primary")
	case policy != "noeviction" && !l.cfg.AllowEviction:
		return Report{}, fault.WithHint(
			fault.New(fault.Invalid, "redis at %s has maxmemory-policy %s: it may throw reservations away",
				l.cfg.Address, policy),
			"set maxmemory-policy noeviction")
	case policy != "noeviction":
		report.Warnings = append(report.Warnings,
			"maxmemory-policy is "+policy+": reservations may be thrown away; set noeviction")
	}
	if info["aof_enabled"] == "0" {
		report.Warnings = append(report.Warnings,
			"appendonly is no: every restart closes all books until the nodes declare; set appendonly yes")
	}
	if info["maxmemory"] == "0" {
		report.Warnings = append(report.Warnings, "maxmemory is not set: set it, e.g. to 256mb")
	}
	return report, nil
}

var runName = regexp.MustCompile(`^[a-zA-Z0-9-]{1,64}$`)

// inspectEmbedded names the life of a store without run_id by a key that goes when it forgets.
func (l *Ledger) inspectEmbedded(ctx context.Context, conn *redis.Conn) (Report, error) {
	key := l.cfg.Prefix + ":run"
	if err := conn.SetNX(ctx, key, uuid.NewString(), 0).Err(); err != nil {
		return Report{}, l.classify("inspect", err)
	}
	run, err := conn.Get(ctx, key).Result()
	if err != nil {
		return Report{}, l.classify("inspect", err)
	}
	if !runName.MatchString(run) {
		return Report{}, fault.New(fault.Corrupt, "inspect store at %s: %s is %.80q", l.cfg.Address, key, run)
	}
	return Report{Run: run, Warnings: []string{"the embedded store forgets everything when it stops"}}, nil
}

// enter finds out in which life the store is and loads the scripts for it, unless somebody did since the caller saw
// the given one.
func (l *Ledger) enter(ctx context.Context, old *life) (*life, error) {
	select {
	case l.entering <- struct{}{}:
		defer func() { <-l.entering }()
	case <-ctx.Done():
		return nil, l.classify("enter", ctx.Err())
	}
	if now := l.life.Load(); now != old {
		return now, nil
	}
	conn := l.rdb.Conn() // one connection: all of this happens in one life
	defer conn.Close()
	report, err := l.inspect(ctx, conn)
	if err != nil {
		return nil, err
	}
	next := newLife(report.Run, l.clock)
	_, err = conn.Pipelined(ctx, func(p redis.Pipeliner) error {
		for _, op := range operations() {
			p.ScriptLoad(ctx, next.scripts[op].text)
		}
		return nil
	})
	if err != nil {
		return nil, l.classify("load scripts", err)
	}
	again, err := l.inspect(ctx, conn)
	if err != nil {
		return nil, err
	}
	if again.Run != report.Run {
		return nil, fault.New(fault.Transient, "redis at %s restarted while scripts were loaded", l.cfg.Address)
	}
	l.life.Store(next)
	return next, nil
}

// classify gives an error of the client its kind.
func (l *Ledger) classify(what string, err error) error {
	if err == nil {
		return nil
	}
	wrapped := fmt.Errorf("%s: redis at %s: %w", what, l.cfg.Address, err)
	var answer redis.Error
	switch {
	case errors.Is(err, context.Canceled):
		return fault.As(fault.Cancelled, wrapped)
	case !errors.As(err, &answer) || errors.Is(err, redis.Nil):
		return fault.WithHint(fault.As(fault.Transient, wrapped), "is redis up and reachable?")
	}
	word, _, _ := strings.Cut(answer.Error(), " ")
	switch word {
	case "LOADING", "BUSY", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "READONLY", "NOREPLICAS", "UNBLOCKED":
		return fault.As(fault.Transient, wrapped)
	case "MISCONF":
		return fault.WithHint(fault.As(fault.Transient, wrapped), "redis can't write its files: is its disk full?")
	case "OOM":
		return fault.WithHint(fault.As(fault.Exhausted, wrapped), "raise redis' maxmemory")
	case "NOAUTH", "WRONGPASS", "NOPERM":
		return fault.WithHint(fault.As(fault.Invalid, wrapped), "check the ledger's user, password and ACL")
	case "WRONGTYPE":
		return fault.As(fault.Corrupt, wrapped)
	}
	if strings.Contains(answer.Error(), "max number of clients reached") {
		return fault.As(fault.Transient, wrapped)
	}
	return fault.As(fault.Internal, wrapped)
}
