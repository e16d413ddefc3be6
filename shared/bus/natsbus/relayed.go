package natsbus

import (
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/proofrack/proofrack/shared/fault"
)

// A server sends its answers wherever an asker wants them. What bears its marks was stored by somebody, and sent on by
// the server in its own name: it is no message of a program of the rack, and is refused. Accounts keep such answers
// with who asked; this is for servers without accounts, and should somebody undo them.
const (
	storedMark = jetstream.StreamHeader // of messages read from a stream
	ackPrefix  = "$JS.ACK."             // reply subjects of messages that a consumer delivers
)

// inbox tells where answers may be wanted: on subjects of inboxes, and those that the server makes for askers of other
// accounts, which no client can use.
func inbox(reply string) bool {
	return strings.HasPrefix(reply, "_INBOX") || strings.HasPrefix(reply, "_R_.")
}

// relayed tells what is wrong with a plain message or request, "" for nothing.
func relayed(reply string, header map[string][]string) string {
	switch {
	case len(header[storedMark]) > 0:
		return "it was read from a stream by somebody else"
	case strings.HasPrefix(reply, ackPrefix):
		return "it was delivered by a consumer"
	}
	return ""
}

// refused counts a message that is not taken, and tells the first time.
func (b *Bus) refused(subject, why string) {
	if b.refusals.Add(1) == 1 {
		b.trouble(fault.New(fault.Invalid, "message on %s is refused: %s; further ones are counted only", subject, why))
	}
}

// Refused counts messages that were not taken for what they bear.
func (b *Bus) Refused() uint64 { return b.refusals.Load() }

// take gives a message to a handler of plain messages, if it is one.
func (b *Bus) take(m *nats.Msg) bool {
	why := relayed(m.Reply, m.Header)
	if why != "" {
		b.refused(m.Subject, why)
	}
	return why == ""
}
