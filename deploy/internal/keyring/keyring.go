package keyring

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"

	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
)

// Ring is a rack's folder of keys.
type Ring struct{ dir string }

// Files of a ring.
const (
	operatorSeed = "nats/operator.nk"
	accountSeed  = "nats/account.nk"
	systemSeed   = "nats/system.nk"
	operatorJWT  = "nats/operator.jwt"
	accountJWT   = "nats/account.jwt"
	systemJWT    = "nats/system.jwt"
	authConf     = "nats/auth.conf"
)

// Modes of files: what is secret is its owner's alone.
const (
	secretMode = 0o600
	publicMode = 0o644
	folderMode = 0o700
)

// Open gives the ring in a folder that Create made.
func Open(dir string) (*Ring, error) {
	r := &Ring{dir}
	if _, err := os.Stat(r.path(operatorSeed)); err != nil {
		return nil, fault.WithHint(fault.As(fault.NotFound, fmt.Errorf("open keys of a rack: %w", err)),
			`"keys.sh init" makes them`)
	}
	return r, nil
}

// Create makes a rack's keys in a folder that has none. Hosts are the names and addresses of the NATS and Redis
// servers.
func Create(dir string, hosts []string) (*Ring, error) {
	r := &Ring{dir}
	if len(hosts) == 0 {
		return nil, fault.New(fault.Invalid, "make keys of a rack: no host is named")
	}
	if _, err := os.Stat(r.path(operatorSeed)); !errors.Is(err, fs.ErrNotExist) {
		return nil, fault.New(fault.Conflict, "make keys of a rack: %s has some already", dir)
	}
	for _, step := range []func() error{
		func() error { return r.makeAuthorities(hosts) }, r.makeRedis, r.makeAccounts, r.writeAuth,
	} {
		if err := step(); err != nil {
			return nil, fmt.Errorf("make keys of a rack: %w", err)
		}
	}
	return r, nil
}

func (r *Ring) path(name string) string { return filepath.Join(r.dir, filepath.FromSlash(name)) }

// add writes a new file and refuses to touch one that is there.
func (r *Ring) add(name string, text []byte, mode fs.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(r.path(name)), folderMode); err != nil {
		return err
	}
	f, err := os.OpenFile(r.path(name), os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if errors.Is(err, fs.ErrExist) {
		return fault.As(fault.Conflict, err)
	}
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Sync(), f.Close())
}

// change replaces a file, which exists or not.
func (r *Ring) change(name string, text []byte) error {
	tmp := r.path(name) + ".new"
	if err := os.WriteFile(tmp, text, publicMode); err != nil { //nolint:gosec // for the servers to read
		return err
	}
	return os.Rename(tmp, r.path(name))
}

// makeAccounts makes the operator and two accounts: the rack's, and the servers' own.
func (r *Ring) makeAccounts() error {
	operator, err := nkeys.CreateOperator()
	if err != nil {
		return err
	}
	operatorID, err := operator.PublicKey()
	if err != nil {
		return err
	}
	claims := jwt.NewOperatorClaims(operatorID)
	claims.Name = "proofrack"
	for _, a := range []struct{ name, seed, token string }{
		{"SYS", systemSeed, systemJWT}, {"RACK", accountSeed, accountJWT},
	} {
		account, err := nkeys.CreateAccount()
		if err != nil {
			return err
		}
		id, err := account.PublicKey()
		if err != nil {
			return err
		}
		c := jwt.NewAccountClaims(id)
		c.Name = a.name
		if a.name == "SYS" {
			claims.SystemAccount = id
		} else {
			c.Limits.JetStreamLimits = jwt.JetStreamLimits{
				DiskStorage: jwt.NoLimit, MemoryStorage: jwt.NoLimit, Streams: jwt.NoLimit, Consumer: jwt.NoLimit,
				MaxAckPending: jwt.NoLimit, MemoryMaxStreamBytes: jwt.NoLimit, DiskMaxStreamBytes: jwt.NoLimit,
			}
		}
		token, err := c.Encode(operator)
		if err != nil {
			return err
		}
		if err := errors.Join(r.addSeed(a.seed, account), r.add(a.token, []byte(token+"\n"), publicMode)); err != nil {
			return err
		}
	}
	token, err := claims.Encode(operator)
	if err != nil {
		return err
	}
	return errors.Join(r.add(operatorJWT, []byte(token+"\n"), publicMode), r.addSeed(operatorSeed, operator))
}

func (r *Ring) addSeed(name string, key nkeys.KeyPair) error {
	seed, err := key.Seed()
	if err != nil {
		return err
	}
	return r.add(name, append(seed, '\n'), secretMode)
}

func (r *Ring) seed(name string) (nkeys.KeyPair, error) {
	text, err := os.ReadFile(r.path(name))
	if err != nil {
		return nil, err
	}
	return nkeys.FromSeed([]byte(strings.TrimSpace(string(text))))
}

func (r *Ring) token(name string) (string, error) {
	text, err := os.ReadFile(r.path(name))
	return strings.TrimSpace(string(text)), err
}

func (r *Ring) account() (*jwt.AccountClaims, error) {
	token, err := r.token(accountJWT)
	if err != nil {
		return nil, err
	}
	return jwt.DecodeAccountClaims(token)
}

// writeAuth writes what the servers include.
func (r *Ring) writeAuth() error {
	operator, err := r.token(operatorJWT)
	if err != nil {
		return err
	}
	text := "# Made by keys.sh: whom this rack's servers believe. It holds no secret.\noperator: " + operator + "\n"
	preload := ""
	for _, name := range []string{systemJWT, accountJWT} {
		token, err := r.token(name)
		if err != nil {
			return err
		}
		c, err := jwt.DecodeAccountClaims(token)
		if err != nil {
			return err
		}
		if name == systemJWT {
			text += "system_account: " + c.Subject + "\n"
		}
		preload += "  " + c.Subject + ": " + token + "\n"
	}
	return r.change(authConf, []byte(text+"resolver: MEMORY\nresolver_preload: {\n"+preload+"}\n"))
}

// CredsFile is the file of a user, below the ring's folder.
func CredsFile(kind Kind, name string) string { return "creds/" + string(kind) + "-" + name + ".creds" }

// Add makes a credential and gives its file. Devices are a node's.
func (r *Ring) Add(kind Kind, name string, devices ...string) (string, error) {
	file, err := r.addUser(kind, name, devices)
	if err != nil {
		return "", fmt.Errorf("add %s %s: %w", kind, name, err)
	}
	return file, nil
}

func (r *Ring) addUser(kind Kind, name string, devices []string) (string, error) {
	permissions, err := permissionsOf(kind, name, devices)
	if err != nil {
		return "", err
	}
	account, err := r.seed(accountSeed)
	if err != nil {
		return "", err
	}
	user, err := nkeys.CreateUser()
	if err != nil {
		return "", err
	}
	id, err := user.PublicKey()
	if err != nil {
		return "", err
	}
	claims := jwt.NewUserClaims(id)
	claims.Name = string(kind) + "-" + name
	claims.Permissions = permissions
	token, err := claims.Encode(account)
	if err != nil {
		return "", err
	}
	seed, err := user.Seed()
	if err != nil {
		return "", err
	}
	text, err := jwt.FormatUserConfig(token, seed)
	if err != nil {
		return "", err
	}
	file := CredsFile(kind, name)
	return r.path(file), r.add(file, text, secretMode)
}

func permissionsOf(kind Kind, name string, devices []string) (jwt.Permissions, error) {
	node, err := job.ParseNode(name) // the same form for all
	if err != nil {
		return jwt.Permissions{}, fault.As(fault.Invalid, err)
	}
	if (kind == KindNode) != (len(devices) > 0) {
		return jwt.Permissions{}, fault.New(fault.Invalid, "a node, and nobody else, has devices: cpu, gpu-1a2b3c4d, …")
	}
	var of []job.Device
	for _, d := range devices {
		device, err := job.ParseDevice(d)
		if err != nil {
			return jwt.Permissions{}, fault.As(fault.Invalid, err)
		}
		of = append(of, device)
	}
	switch kind {
	case KindNode:
		return nodePermissions(node, of), nil
	case KindTenant:
		return tenantPermissions(job.Tenant(name)), nil
	case KindOperator:
		return operatorPermissions(name), nil
	case KindCoordinator:
		return coordinatorPermissions(name), nil
	}
	return jwt.Permissions{}, fault.New(fault.Invalid, "kind %q is none", kind)
}

// Revoke takes a credential back: auth.conf names it from now on, and the servers must reload it. The file is removed,
// so that the name can be given again.
func (r *Ring) Revoke(kind Kind, name string) error {
	if err := r.revoke(kind, name); err != nil {
		return fmt.Errorf("revoke %s %s: %w", kind, name, err)
	}
	return nil
}

func (r *Ring) revoke(kind Kind, name string) error {
	if _, err := job.ParseNode(name); err != nil {
		return fault.As(fault.Invalid, err)
	}
	file := r.path(CredsFile(kind, name))
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return fault.As(fault.NotFound, err)
	}
	if err != nil {
		return err
	}
	token, err := jwt.ParseDecoratedJWT(text)
	if err != nil {
		return err
	}
	user, err := jwt.DecodeUserClaims(token)
	if err != nil {
		return err
	}
	account, err := r.account()
	if err != nil {
		return err
	}
	account.Revoke(user.Subject)
	operator, err := r.seed(operatorSeed)
	if err != nil {
		return err
	}
	changed, err := account.Encode(operator)
	if err != nil {
		return err
	}
	if err := r.change(accountJWT, []byte(changed+"\n")); err != nil {
		return err
	}
	return errors.Join(r.writeAuth(), os.Remove(file))
}
