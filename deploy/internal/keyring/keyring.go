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
	accountsDir  = "nats/accounts"
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

// makeAccounts makes the operator and two accounts: the rack's, which coordinators and all streams are in, and the
// servers' own.
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
			c.Exports = exports()
			c.Limits.JetStreamLimits = jwt.JetStreamLimits{
				DiskStorage: jwt.NoLimit, MemoryStorage: jwt.NoLimit, Streams: jwt.NoLimit, Consumer: jwt.NoLimit,
				MaxAckPending: jwt.NoLimit, MemoryMaxStreamBytes: jwt.NoLimit, DiskMaxStreamBytes: jwt.NoLimit,
			}
		}
		token, err := encode(c, operator)
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

// encode signs an account's claims. The library itself would sign any.
func encode(c *jwt.AccountClaims, operator nkeys.KeyPair) (string, error) {
	found := jwt.CreateValidationResults()
	c.Validate(found)
	if found.IsBlocking(true) {
		return "", errors.Join(found.Errors()...)
	}
	return c.Encode(operator)
}

func (r *Ring) account(file string) (*jwt.AccountClaims, error) {
	token, err := r.token(file)
	if err != nil {
		return nil, err
	}
	return jwt.DecodeAccountClaims(token)
}

// writeAuth writes what the servers include: all accounts.
func (r *Ring) writeAuth() error {
	operator, err := r.token(operatorJWT)
	if err != nil {
		return err
	}
	users, err := filepath.Glob(r.path(accountsDir + "/*.jwt"))
	if err != nil {
		return err
	}
	names := []string{systemJWT, accountJWT}
	for _, file := range users { // sorted
		names = append(names, accountsDir+"/"+filepath.Base(file))
	}
	text := "# Made by keys.sh: whom this rack's servers believe. It holds no secret.\noperator: " + operator + "\n"
	preload := ""
	for _, name := range names {
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
		preload += "  # " + c.Name + "\n  " + c.Subject + ": " + token + "\n"
	}
	return r.change(authConf, []byte(text+"resolver: MEMORY\nresolver_preload: {\n"+preload+"}\n"))
}

// CredsFile is the file of a user, below the ring's folder.
func CredsFile(kind Kind, name string) string { return "creds/" + string(kind) + "-" + name + ".creds" }

// accountFile is the token of a user's account, below the ring's folder.
func accountFile(kind Kind, name string) string {
	return accountsDir + "/" + string(kind) + "-" + name + ".jwt"
}

// Add makes a credential and gives its file. Devices are a node's. Servers must then reload auth.conf, but for a
// coordinator's.
func (r *Ring) Add(kind Kind, name string, devices ...string) (string, error) {
	file, err := r.addUser(kind, name, devices)
	if err != nil {
		return "", fmt.Errorf("add %s %s: %w", kind, name, err)
	}
	return file, nil
}

func (r *Ring) addUser(kind Kind, name string, devices []string) (string, error) {
	granted, err := rightsOf(kind, name, devices)
	if err != nil {
		return "", err
	}
	file := CredsFile(kind, name)
	if _, err := os.Stat(r.path(file)); !errors.Is(err, fs.ErrNotExist) {
		return "", fault.New(fault.Conflict, "%s is there", file)
	}
	var account nkeys.KeyPair
	permissions := coordinatorPermissions(name)
	if kind == KindCoordinator {
		account, err = r.seed(accountSeed)
	} else {
		permissions = granted.permissions(kind, name)
		account, err = r.addAccount(kind, name, granted)
	}
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
	return r.path(file), r.add(file, text, secretMode)
}

// Limits of a user's account, so that none of them takes all of the servers' connections.
const (
	connectionsMax   = 128
	subscriptionsMax = 16384
)

// addAccount makes an account for one user, that imports its rights from the rack's. Its key is forgotten: nobody else
// can be put into it. One that was left by an Add that broke off is replaced.
func (r *Ring) addAccount(kind Kind, name string, granted rights) (nkeys.KeyPair, error) {
	rack, err := r.account(accountJWT)
	if err != nil {
		return nil, err
	}
	account, err := nkeys.CreateAccount()
	if err != nil {
		return nil, err
	}
	id, err := account.PublicKey()
	if err != nil {
		return nil, err
	}
	claims := jwt.NewAccountClaims(id)
	claims.Name = string(kind) + "-" + name
	claims.Imports = granted.imports(rack.Subject)
	claims.Limits.Conn, claims.Limits.Subs = connectionsMax, subscriptionsMax
	claims.Limits.LeafNodeConn, claims.Limits.Exports = 0, 0
	operator, err := r.seed(operatorSeed)
	if err != nil {
		return nil, err
	}
	token, err := encode(claims, operator)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(r.path(accountsDir), folderMode); err != nil {
		return nil, err
	}
	return account, errors.Join(r.change(accountFile(kind, name), []byte(token+"\n")), r.writeAuth())
}

func rightsOf(kind Kind, name string, devices []string) (rights, error) {
	node, err := job.ParseNode(name) // the same form for all
	if err != nil {
		return rights{}, fault.As(fault.Invalid, err)
	}
	if (kind == KindNode) != (len(devices) > 0) {
		return rights{}, fault.New(fault.Invalid, "a node, and nobody else, has devices: cpu, gpu-1a2b3c4d, …")
	}
	var of []job.Device
	for _, d := range devices {
		device, err := job.ParseDevice(d)
		if err != nil {
			return rights{}, fault.As(fault.Invalid, err)
		}
		of = append(of, device)
	}
	switch kind {
	case KindNode:
		return nodeRights(node, of), nil
	case KindTenant:
		return tenantRights(job.Tenant(name)), nil
	case KindOperator:
		return operatorRights(), nil
	case KindCoordinator:
		return rights{}, nil
	}
	return rights{}, fault.New(fault.Invalid, "kind %q is none", kind)
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
	of := accountJWT
	if kind != KindCoordinator {
		of = accountFile(kind, name)
	}
	account, err := r.account(of)
	if err != nil {
		return err
	}
	account.Revoke(user.Subject)
	operator, err := r.seed(operatorSeed)
	if err != nil {
		return err
	}
	changed, err := encode(account, operator)
	if err != nil {
		return err
	}
	if err := r.change(of, []byte(changed+"\n")); err != nil {
		return err
	}
	if kind != KindCoordinator { // it stays, so that servers end its connections, and makes room for a new one
		if err := os.Rename(r.path(of), r.path(accountsDir+"/revoked-"+account.Subject+".jwt")); err != nil {
			return err
		}
	}
	return errors.Join(r.writeAuth(), os.Remove(file))
}
