package keyring

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// Files of the ledger's users.
const (
	RedisACL         = "redis/users.acl"
	LedgerPassword   = "redis/ledger.password"
	OperatorPassword = "redis/operator.password" //nolint:gosec // a file name
)

// ledgerKeys are the ledger's: its prefix is the default of the coordinators' ledger.prefix.
const ledgerKeys = "c2:ledger:*"

// ledgerCommands are those of package redisledger: its scripts run with the rights of who calls them.
const ledgerCommands = "+hello +auth +ping +info +script|load +evalsha +time +del +hdel +hget +hgetall +hkeys " +
	"+hlen +hmget +hset +zadd +zcard +zrange +zrangebyscore +zrem +zscore +smembers +sadd +srem"

// operatorCommands look and change nothing.
const operatorCommands = "+@read -@dangerous +hello +auth +ping +info +dbsize +client|list +slowlog|get " +
	"+memory|usage +memory|doctor +latency|latest +config|get"

// makeRedis makes the users of the ledger's store. The file has digests; the passwords lie beside it.
func (r *Ring) makeRedis() error {
	acl := "user default off resetpass resetkeys resetchannels -@all\n"
	for _, u := range []struct{ name, file, keys, commands string }{
		{"ledger", LedgerPassword, "~" + ledgerKeys, ledgerCommands},
		{"operator", OperatorPassword, "%R~" + ledgerKeys, operatorCommands},
	} {
		password := rand.Text()
		digest := sha256.Sum256([]byte(password))
		acl += fmt.Sprintf("user %s on #%s %s resetchannels -@all %s\n",
			u.name, hex.EncodeToString(digest[:]), u.keys, u.commands)
		if err := r.add(u.file, []byte(password+"\n"), secretMode); err != nil {
			return err
		}
	}
	return r.add(RedisACL, []byte(acl), secretMode)
}
