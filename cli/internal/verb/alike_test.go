package verb

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/spf13/cobra"

	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/bus/natsbus"
)

// asking are the command lines of all verbs that ask a rack, found by their flag --timeout. Doctor judges a rack and
// drill breaks one: they ask in ways of their own.
func asking(t *testing.T) map[string][]string {
	t.Helper()
	input := filepath.Join(t.TempDir(), "c1.json")
	if err := os.WriteFile(input, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	lines := map[string][]string{}
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		for _, sub := range c.Commands() {
			walk(sub)
		}
		if c.Flags().Lookup("timeout") == nil || c.Name() == "doctor" || c.Name() == "drill" {
			return
		}
		name := strings.TrimPrefix(c.CommandPath(), "proofrack ")
		line := strings.Fields(name)
		for _, word := range strings.Fields(c.Use) {
			switch word {
			case "C1":
				line = append(line, input)
			case "MINER", "NUMBER":
				line = append(line, "1000")
			case "JOB":
				line = append(line, "01890a5d-ac96-774b-bcce-b302099a8057")
			case "NODE":
				line = append(line, "n1")
			case "DEVICE":
				line = append(line, "gpu0")
			case "ATTEMPT":
				line = append(line, "01890a5d-ac96-774b-bcce-b302099a8057.3.7")
			case "CIRCUIT":
				line = append(line, "porep-2KiB")
			case "STAGE":
				line = append(line, "proving")
			case "POOL":
				line = append(line, "ram")
			case "BYTES":
				line = append(line, "1GiB")
			case "|", "--out":
				lines[name] = line
				return
			}
			if strings.HasPrefix(word, "--") {
				line = append(line, word)
			}
		}
		if name == "top" { // it looks on and on, but for this
			line = append(line, "--once")
		}
		lines[name] = line
	}
	walk((&app{}).root())
	if len(lines) < 16 {
		t.Fatalf("only %d verbs ask a rack: %v", len(lines), lines)
	}
	lines["result --wait"] = append(slices.Clone(lines["result"]), "--wait")
	lines["drain --all --wait"] = []string{"drain", "--all", "--wait"}
	lines["jobs --all-tenants"] = []string{"jobs", "--all-tenants"}
	lines["submit by reference"] = slices.Clone(lines["submit"])
	large := input + ".large"
	if err := os.WriteFile(large, bytes.Repeat([]byte("{"), 600_000), 0o600); err != nil {
		t.Fatal(err)
	}
	lines["submit by reference"][1] = large
	return lines
}

// answered is how a verb ended.
type answered struct {
	code          int
	took          time.Duration
	message, hint string
	text          string
}

// askRack runs a verb with --json, which must give nothing but one error of the same exit code.
func askRack(t *testing.T, line []string, flags ...string) answered {
	t.Helper()
	var out, errs bytes.Buffer
	begun := time.Now()
	args := append(append(slices.Clone(line), flags...), "--json")
	code := Run(t.Context(), args, Streams{In: strings.NewReader(""), Out: &out, Err: &errs})
	took := time.Since(begun)
	var printed struct {
		Error struct {
			Kind, Message, Hint string
			Code                int `json:"exit_code"`
		} `json:"error"`
	}
	text := errs.String()
	if err := json.Unmarshal(errs.Bytes(), &printed); err != nil || strings.Count(text, "\n") != 1 {
		t.Errorf("%v: not one error in JSON: %v\n%s", args, err, text)
	}
	if out.Len() > 0 || printed.Error.Code != code || printed.Error.Kind == "" || printed.Error.Message == "" {
		t.Errorf("%v: exit code %d, output %q, error %s", args, code, &out, text)
	}
	return answered{code, took, printed.Error.Message, printed.Error.Hint, text}
}

// authorizing is a server that wants a credential.
func authorizing(t *testing.T) string {
	t.Helper()
	s, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, Username: "somebody", Password: "else", NoSigs: true, NoLog: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	if !s.ReadyForConnections(10 * time.Second) {
		t.Fatal("the server does not start")
	}
	return s.ClientURL()
}

// mute accepts connections and says nothing.
func mute(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return "nats://" + l.Addr().String()
}

// closed is an address that nobody listens on.
func closed(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
	return "nats://" + l.Addr().String()
}

// servers is NATS without a rack.
func servers(t *testing.T) string {
	t.Helper()
	e, err := natsbus.StartEmbedded(natsbus.EmbeddedConfig{Dir: t.TempDir(), Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Stop)
	return e.URL()
}

// connected is NATS and a connection to it.
func connected(t *testing.T) (url string, b bus.Bus) {
	t.Helper()
	url = servers(t)
	config := natsbus.DefaultConfig()
	config.URLs = []string{url}
	conn, err := natsbus.Connect(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	return url, conn
}

// deaf is NATS with somebody who takes every request of a rack and answers none.
func deaf(t *testing.T) string {
	t.Helper()
	url, b := connected(t)
	stop, err := b.Subscribe("c2.>", func(bus.Message) {})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return url
}

// Every verb that asks a rack says what is missing in the same way, with the same exit code, and within --timeout.
func TestVerbsFailAlikeWithoutARack(t *testing.T) {
	t.Parallel()
	const timeout = time.Second
	lines := asking(t)
	for name, c := range map[string]struct {
		server  string
		code    int
		mention string
		hint    string
	}{
		"no server":        {closed(t), 11, "connect to nats at nats://127.0.0.1:", `"proofrack up" starts one`},
		"a server mute":    {mute(t), 11, "connect to nats at nats://127.0.0.1:", `"proofrack up" starts one`},
		"no coordinator":   {servers(t), 11, "", "running?"},
		"no answer":        {deaf(t), 11, "", "--timeout waits longer"},
		"wrong credential": {authorizing(t), 3, "Authorization Violation", "--creds"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var all sync.WaitGroup // they wait most of the time
			for verb, line := range lines {
				if name == "no answer" && verb == "submit by reference" {
					continue // nobody made its bucket: no coordinator, as far as it can see
				}
				all.Go(func() {
					got := askRack(t, line, "--server", c.server, "--timeout", timeout.String())
					if got.code != c.code || !strings.Contains(got.message, c.mention) || !strings.Contains(got.hint, c.hint) {
						t.Errorf("%s: exit code %d: %s", verb, got.code, got.text)
					}
					if strings.Contains(got.text, "context") || strings.Contains(got.text, `\n`) {
						t.Errorf("%s does not read well: %s", verb, got.text)
					}
					if got.took > 4*timeout+4*time.Second || c.code == 11 && got.took < timeout/2 {
						t.Errorf("%s took %s with --timeout %s", verb, got.took, timeout)
					}
				})
			}
			all.Wait()
		})
	}
}

// What is wrong on the command line is said before a rack is looked for.
func TestVerbsRefuseWrongUsageWithoutARack(t *testing.T) {
	t.Parallel()
	server := closed(t)
	for verb, line := range asking(t) {
		for name, flags := range map[string][]string{
			"no time":        {"--server", server, "--timeout", "0s"},
			"negative time":  {"--server", server, "--timeout", "-1s"},
			"unknown flag":   {"--server", server, "--no-such-flag"},
			"no address":     {"--server", "nats://user:secret@host:x"},
			"no tenant":      {"--server", server, "--tenant", "no/tenant"},
			"one word extra": {"--server", server, "extra", "extra"},
		} {
			got := askRack(t, line, flags...)
			if got.code != 2 || strings.Contains(got.text, "secret") {
				t.Errorf("%s, %s: exit code %d: %s", verb, name, got.code, got.text)
			}
		}
		if slices.Contains(line, "01890a5d-ac96-774b-bcce-b302099a8057") {
			wrong := slices.Clone(line)
			wrong[slices.Index(wrong, "01890a5d-ac96-774b-bcce-b302099a8057")] = "job-7"
			if got := askRack(t, wrong, "--server", server); got.code != 2 {
				t.Errorf("%s of no job: exit code %d: %s", verb, got.code, got.text)
			}
		}
		got := askRack(t, line, "--server", server, "--creds", filepath.Join(t.TempDir(), "absent.creds"))
		if got.code != 3 || !strings.Contains(got.message, "no such file") {
			t.Errorf("%s without its credential: exit code %d: %s", verb, got.code, got.text)
		}
	}
	for _, line := range [][]string{
		{"submit", "c1.json"}, {"submit", "absent.json", "--miner", "1000"}, {"submit", "c1.json", "--miner", "x"},
		{"submit", "c1.json", "--miner", "1", "--detach", "--wait", "5s"},
		{"submit", "c1.json", "--miner", "1", "--deadline", "-5s"},
		{"submit", "c1.json", "--miner", "1", "--priority", "101"}, {"submit", "c1.json", "--miner", "1", "--output", "x"},
		{"drain"}, {"drain", "--all", "n1"}, {"drain", "a.b"}, {"jobs", "--limit", "-1"}, {"jobs", "--before", "x"},
		{"watch", "01890a5d-ac96-774b-bcce-b302099a8057", "--wait", "0s"},
	} {
		if got := askRack(t, line, "--server", server); got.code != 2 {
			t.Errorf("%v: exit code %d: %s", line, got.code, got.text)
		}
	}
}

// An interrupt ends every verb at once, with its own exit code.
func TestVerbsEndWhenInterrupted(t *testing.T) {
	t.Parallel()
	server := servers(t)
	for verb, line := range asking(t) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(100*time.Millisecond, cancel)
		var errs bytes.Buffer
		begun := time.Now()
		code := Run(ctx, append(line, "--server", server, "--timeout", "1m"), Streams{
			In: strings.NewReader(""), Out: &bytes.Buffer{}, Err: &errs,
		})
		said := strings.Contains(errs.String(), "interrupted")
		if took := time.Since(begun); code != 130 || took > 40*time.Second || !said {
			t.Errorf("%s: exit code %d after %s: %s", verb, code, took, &errs)
		}
		cancel()
	}
}
