package verb

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/proofrack/proofrack/coordinator"
	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/ledger/redisledger"
	"github.com/proofrack/proofrack/shared/wire"
)

// nats looks at the servers' limits and clock.
func (r *doctorResult) nats(ctx context.Context, a *app, flags *doctorFlags) {
	const name = "nats"
	server := cmp.Or(flags.rack.server, os.Getenv("PROOFRACK_SERVER"))
	if server == "" {
		r.add(verdictInfo, name, "", "not looked at: --server names none")
		return
	}
	c, err := a.connect(ctx, &flags.rack, asAnybody)
	if err != nil {
		r.broken(verdictFix, name, err, "start the server, or name another one with --server")
		return
	}
	defer c.close()
	r.add(verdictOK, name, "", "%s answers", secretless(server))
	ctx, cancel := c.within(ctx)
	defer cancel()
	r.payload(ctx, c.bus)
	there := r.clock(ctx, c.bus, flags.clockMax)
	r.jetStream(ctx, c.bus, there)
}

// payload looks whether the server takes the largest body. Nobody listens where it goes.
func (r *doctorResult) payload(ctx context.Context, b bus.Bus) {
	_, err := b.Request(ctx, bus.Message{Subject: "c2.doctor", Data: make([]byte, wire.BodyBytesMax)})
	if err == nil || fault.KindOf(err) != fault.Invalid || strings.Contains(err.Error(), "permission") {
		return
	}
	r.broken(verdictFix, "nats", err, "set max_payload to 1MB, the server's default")
}

// apiError is how JetStream refuses.
type apiError struct {
	Code        int    `json:"code"`
	Description string `json:"description"`
}

func (e *apiError) Error() string { return e.Description }

// jetStreamAsk asks the API of JetStream.
func jetStreamAsk(ctx context.Context, b bus.Bus, subject string, answer any) error {
	m, err := b.Request(ctx, bus.Message{Subject: "$JS.API." + subject})
	if err != nil {
		return err
	}
	var refusal struct {
		Error *apiError `json:"error"`
	}
	if err := json.Unmarshal(m.Data, &refusal); err != nil {
		return fmt.Errorf("read answer of jetstream: %w", err)
	}
	if refusal.Error != nil {
		return refusal.Error
	}
	if err := json.Unmarshal(m.Data, answer); err != nil {
		return fmt.Errorf("read answer of jetstream: %w", err)
	}
	return nil
}

// jetStream looks whether the account has room for what a rack sets up, unless a rack is set up already.
func (r *doctorResult) jetStream(ctx context.Context, b bus.Bus, there bool) {
	const name = "jetstream"
	var account struct {
		Storage int64 `json:"storage"`
		Limits  struct {
			MaxStorage int64 `json:"max_storage"`
			MaxStreams int   `json:"max_streams"`
		} `json:"limits"`
	}
	switch err := jetStreamAsk(ctx, b, "INFO", &account); {
	case fault.KindOf(err) == fault.Invalid:
		r.add(verdictInfo, name, "", "this credential may not ask for its limits")
		return
	case err != nil:
		r.broken(verdictFix, name, err, "switch JetStream on: jetstream {} in the server's configuration")
		return
	}
	streams := coordinator.DefaultStreams()
	topology := streams.Topology()
	need, count := bytesize.Bytes(0), len(topology.Streams)+len(topology.Buckets)+len(topology.Objects)
	for _, s := range topology.Streams {
		need += s.BytesMax
	}
	for _, s := range topology.Buckets {
		need += s.BytesMax
	}
	for _, s := range topology.Objects {
		need += s.BytesMax
	}
	limits := account.Limits
	switch {
	case !there && limits.MaxStorage >= 0 && limits.MaxStorage-account.Storage < int64(need):
		r.add(verdictFix, name, "raise max_file_store, or lower the sizes of the coordinator's section streams",
			"%s may be stored, a rack with default sizes sets aside %s", byteText(limits.MaxStorage), need)
	case !there && limits.MaxStreams >= 0 && limits.MaxStreams < count:
		r.add(verdictFix, name, fmt.Sprintf("raise the account's max_streams to %d", count),
			"%d streams may be made, a rack needs %d", limits.MaxStreams, count)
	default:
		r.add(verdictOK, name, "", "%s in use; a rack with default sizes sets aside %s", byteText(account.Storage), need)
	}
}

// clock compares clocks by what the server says with a stream's state. It tells whether a rack is set up.
func (r *doctorResult) clock(ctx context.Context, b bus.Bus, most time.Duration) bool {
	const name = "clock"
	var info struct {
		At     time.Time `json:"ts"`
		Config struct {
			Replicas int `json:"num_replicas"`
		} `json:"config"`
	}
	before := time.Now()
	err := jetStreamAsk(ctx, b, "STREAM.INFO."+wire.StreamEvents, &info)
	took := time.Since(before)
	switch {
	case err != nil:
		r.add(verdictInfo, name, "", "not compared: %v (coordinators set the streams up)", err)
		return false
	case info.At.IsZero():
		r.add(verdictInfo, name, "", "not compared: the server is too old to tell its time")
		return true
	}
	offset := before.Add(took / 2).Sub(info.At)
	v, fix := verdictOK, ""
	if offset.Abs() > most+took/2 {
		v, fix = verdictFix, "run a time service (chrony, systemd-timesyncd) on both hosts"
	}
	r.add(v, name, fix, "%s from the NATS server's, give or take %s", offset.Round(time.Millisecond/10),
		(took / 2).Round(time.Millisecond/10))
	if info.Config.Replicas < 2 {
		r.add(verdictInfo, "jetstream", "", "streams are on one server: its disk is the only copy of accepted jobs")
	}
	return true
}

// ledgerStore looks at the settings of Redis.
func (r *doctorResult) ledgerStore(ctx context.Context, flags *doctorFlags) {
	const name = "redis"
	if flags.redis == "" {
		r.add(verdictInfo, name, "", "not looked at: --redis names no server")
		return
	}
	if shown := secretless(flags.redis); shown != flags.redis {
		r.add(verdictFix, name, "name host:port alone, the user with --redis-user, the password with --redis-password-file",
			"address %s holds more than a host and a port", shown)
		return
	}
	config := redisledger.DefaultConfig()
	config.Address, config.Username = flags.redis, flags.redisUser
	if flags.redisPW != "" {
		text, err := os.ReadFile(flags.redisPW)
		if err != nil {
			r.broken(verdictFix, name, fmt.Errorf("read password: %w", err), "name the file with the user's password")
			return
		}
		config.Password = strings.TrimRight(string(text), "\r\n")
	}
	store, err := redisledger.Open(config)
	if err != nil {
		r.broken(verdictFix, name, err, "")
		return
	}
	defer store.Close()
	report, err := store.Check(ctx)
	if err != nil {
		r.broken(verdictFix, name, err, "start the server, or name another one with --redis")
		return
	}
	r.add(verdictOK, name, "", "%s: version %s", flags.redis, cmp.Or(report.Version, "of the embedded store"))
	for _, w := range report.Warnings {
		text, fix, found := strings.Cut(w, "; ")
		if !found {
			text, fix, _ = strings.Cut(w, ": ")
		}
		r.add(verdictAdvice, name, fix, "%s", text)
	}
}
