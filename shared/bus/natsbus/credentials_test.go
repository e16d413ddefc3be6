package natsbus_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"

	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/bus/natsbus"
	"github.com/proofrack/proofrack/shared/fault"
)

// guarded starts a server with authentication.
func guarded(t *testing.T, options *server.Options) string {
	t.Helper()
	options.Host, options.Port, options.NoLog, options.NoSigs = "127.0.0.1", server.RANDOM_PORT, true, true
	options.JetStream, options.StoreDir = true, t.TempDir()
	s := must[*server.Server](t)(server.NewServer(options))
	s.Start()
	if !s.ReadyForConnections(patience) {
		t.Fatal("server is not ready")
	}
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	return s.ClientURL()
}

// seed makes a user's key and its seed file.
func seed(t *testing.T) (public, file string) {
	t.Helper()
	key := must[nkeys.KeyPair](t)(nkeys.CreateUser())
	file = filepath.Join(t.TempDir(), "user.nk")
	noError(t, os.WriteFile(file, must[[]byte](t)(key.Seed()), 0o600))
	return must[string](t)(key.PublicKey()), file
}

func wantRefusal(t *testing.T, err error, kind fault.Kind, words ...string) {
	t.Helper()
	report := fault.ReportOf("", err)
	if report == nil || report.Kind != kind {
		t.Errorf("fault %v, want %s", err, kind)
		return
	}
	text := report.Message + " | " + report.Hint
	for _, w := range words {
		if !strings.Contains(text, w) {
			t.Errorf("%q is missing in: %s", w, text)
		}
	}
	if strings.Contains(report.Message, "\n") {
		t.Errorf("more than one line: %s", report.Message)
	}
}

func TestWrongCredentialsGiveOneClearLine(t *testing.T) {
	t.Parallel()
	public, file := seed(t)
	_, stranger := seed(t)
	url := guarded(t, &server.Options{Nkeys: []*server.NkeyUser{{Nkey: public}}})
	connect := func(change func(*natsbus.Config)) error {
		cfg := quick()
		cfg.URLs = []string{url}
		change(&cfg)
		b, err := natsbus.Connect(t.Context(), cfg)
		if err == nil {
			b.Close()
		}
		return err
	}
	noError(t, connect(func(c *natsbus.Config) { c.NKeySeedFile = file }))
	wantRefusal(t, connect(func(*natsbus.Config) {}), fault.Invalid, url, "nkey_seed_file")
	wantRefusal(t, connect(func(c *natsbus.Config) { c.NKeySeedFile = stranger }), fault.Invalid, url, stranger)
	wantRefusal(t, connect(func(c *natsbus.Config) { c.NKeySeedFile = file + ".none" }), fault.Invalid,
		"nkey_seed_file", "no such file")
	wantRefusal(t, connect(func(c *natsbus.Config) { c.CredsFile = file + ".none" }), fault.Invalid, "creds_file")
	garbage := filepath.Join(t.TempDir(), "garbage")
	noError(t, os.WriteFile(garbage, []byte("not a seed"), 0o600))
	wantRefusal(t, connect(func(c *natsbus.Config) { c.NKeySeedFile = garbage }), fault.Invalid, "nkey_seed_file", garbage)
	wantRefusal(t, connect(func(c *natsbus.Config) { c.CredsFile = garbage }), fault.Invalid, garbage)
	wantRefusal(t, connect(func(c *natsbus.Config) { c.CAFile = garbage }), fault.Invalid, garbage)
}

// TestDeniedSubjectsAreTold: permissions are pinned to a node; speaking for another one fails and says why.
func TestDeniedSubjectsAreTold(t *testing.T) {
	t.Parallel()
	public, file := seed(t)
	url := guarded(t, &server.Options{Nkeys: []*server.NkeyUser{{Nkey: public, Permissions: &server.Permissions{
		Publish:   &server.SubjectPermission{Allow: []string{"c2.result.a", "$JS.API.>"}},
		Subscribe: &server.SubjectPermission{Allow: []string{"_INBOX_a.>"}},
	}}}})
	cfg := quick()
	cfg.URLs, cfg.NKeySeedFile, cfg.InboxPrefix, cfg.CallTimeout = []string{url}, file, "_INBOX_a", 500*time.Millisecond
	trouble := make(chan error, 8)
	b := must[*natsbus.Bus](t)(natsbus.Dial(t.Context(), cfg, natsbus.Options{
		Events: bus.Events{Trouble: func(err error) { trouble <- err }},
	}))
	defer b.Close()
	noError(t, b.Setup(t.Context(), bus.Topology{Streams: []bus.Stream{
		{Name: "R", Subjects: []string{"c2.result.*"}, Retention: bus.WorkQueue, BytesMax: 1 << 20},
	}}))
	must[bool](t)(b.Publish(t.Context(), bus.Message{Subject: "c2.result.a", ID: "1"}))
	_, err := b.Publish(t.Context(), bus.Message{Subject: "c2.result.b", ID: "1"})
	wantRefusal(t, err, fault.Invalid, "c2.result.b", "permission denied")
	wantRefusal(t, await(t, "trouble", trouble), fault.Invalid, "c2.result.b")
	_, err = b.Request(t.Context(), bus.Message{Subject: "c2.submit.other"})
	wantRefusal(t, err, fault.Invalid, "c2.submit.other", "permission denied")
}

// authority makes a CA and a server certificate for localhost, as files.
func authority(t *testing.T) (caFile string, cert tls.Certificate) {
	t.Helper()
	key := must[*ecdsa.PrivateKey](t)(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der := must[[]byte](t)(x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key))
	caFile = filepath.Join(t.TempDir(), "ca.pem")
	noError(t, os.WriteFile(caFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	return caFile, tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func TestTLSIsCheckedBothWays(t *testing.T) {
	t.Parallel()
	ca, cert := authority(t)
	otherCA, _ := authority(t)
	url := guarded(t, &server.Options{TLS: true, TLSConfig: &tls.Config{
		Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12,
	}})
	connect := func(change func(*natsbus.Config)) error {
		cfg := quick()
		cfg.URLs = []string{strings.Replace(url, "nats://", "tls://", 1)}
		change(&cfg)
		b, err := natsbus.Connect(t.Context(), cfg)
		if err == nil {
			b.Close()
		}
		return err
	}
	noError(t, connect(func(c *natsbus.Config) { c.CAFile = ca }))
	wantRefusal(t, connect(func(*natsbus.Config) {}), fault.Invalid, "ca_file")
	wantRefusal(t, connect(func(c *natsbus.Config) { c.CAFile = otherCA }), fault.Invalid, "ca_file")

	plain := guarded(t, &server.Options{})
	wantRefusal(t, connect(func(c *natsbus.Config) {
		c.CAFile, c.URLs = ca, []string{strings.Replace(plain, "nats://", "tls://", 1)}
	}), fault.Invalid, "TLS")

	strict := guarded(t, &server.Options{TLS: true, TLSVerify: true, TLSConfig: &tls.Config{
		Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12, ClientAuth: tls.RequireAndVerifyClientCert,
	}})
	wantRefusal(t, connect(func(c *natsbus.Config) { c.CAFile, c.URLs = ca, []string{strict} }), fault.Invalid,
		"cert_file")
}

func TestConfigTellsAllProblemsAtOnce(t *testing.T) {
	t.Parallel()
	cfg := natsbus.DefaultConfig()
	noError(t, cfg.Validate())
	cfg.CredsFile, cfg.NKeySeedFile, cfg.CertFile = "a", "b", "c"
	cfg.ReconnectMax, cfg.PullWait, cfg.PendingMax, cfg.PendingBytesMax, cfg.ChunkBytes = 1, 0, 0, 0, 1
	err := cfg.Validate()
	for _, want := range []string{
		"creds_file", "cert_file", "reconnect_max", "pull_wait", "pending_max", "pending_bytes_max", "chunk_bytes",
	} {
		if err == nil || !strings.Contains(err.Error(), want+": ") {
			t.Errorf("%s is missing in: %v", want, err)
		}
	}
	if _, err := natsbus.Connect(t.Context(), cfg); fault.KindOf(err) != fault.Invalid {
		t.Error(err)
	}
}
