package natsbus

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/nats-io/jwt/v2"

	"github.com/proofrack/proofrack/shared/fault"
)

// credsBytesMax bounds credentials files.
const credsBytesMax = 256 << 10

// Identity is who a credentials file is for. It says so itself: servers check it, we only use it to be clear.
type Identity struct {
	// Kind is coordinator, node, tenant or operator, and Name which; both are "" if the rack's keys.sh did not make it.
	Kind, Name string
	// InboxPrefix is where answers may arrive; "" if the credential does not say.
	InboxPrefix string
}

// ReadIdentity reads a credentials file. An error is fault.Invalid and one line.
func ReadIdentity(file string) (Identity, error) {
	identity, err := readIdentity(file)
	if err != nil {
		return Identity{}, fault.WithHint(fault.As(fault.Invalid, fmt.Errorf("credentials file %s: %w", file, err)),
			"use a .creds file as keys.sh makes them")
	}
	return identity, nil
}

func readIdentity(file string) (Identity, error) {
	f, err := os.Open(file)
	if err != nil {
		var path *os.PathError
		if errors.As(err, &path) {
			err = path.Err // the file is named already
		}
		return Identity{}, err
	}
	defer f.Close() //nolint:errcheck // only read
	text, err := io.ReadAll(io.LimitReader(f, credsBytesMax+1))
	if err != nil {
		return Identity{}, err
	}
	if len(text) > credsBytesMax {
		return Identity{}, fmt.Errorf("it has more than %d bytes", credsBytesMax)
	}
	return parseIdentity(text)
}

func parseIdentity(text []byte) (Identity, error) {
	token, err := jwt.ParseDecoratedJWT(text)
	if err != nil {
		return Identity{}, errors.New("it holds no token of a user")
	}
	claims, err := jwt.DecodeUserClaims(token)
	if err != nil {
		return Identity{}, errors.New("its token is none of a user, or damaged")
	}
	if _, err := jwt.ParseDecoratedUserNKey(text); err != nil {
		return Identity{}, errors.New("it holds no key of a user")
	}
	var out Identity
	for _, kind := range []string{"coordinator", "node", "tenant", "operator"} {
		if name, ok := strings.CutPrefix(claims.Name, kind+"-"); ok {
			out.Kind, out.Name = kind, name
		}
	}
	for _, subject := range claims.Sub.Allow {
		if prefix, ok := strings.CutSuffix(subject, ".>"); ok && strings.HasPrefix(prefix, "_INBOX.") &&
			!strings.ContainsAny(prefix, "*>") {
			out.InboxPrefix = prefix
		}
	}
	return out, nil
}
