package agent

import (
	"context"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/ledger"
)

// heldAsset is an asset that this worker uses; the shared lock on its file says so.
type heldAsset struct {
	file  *os.File
	asset ledger.Asset
	count int
}

// HoldAsset books an asset, once per node and pool however many workers hold it, and counts this worker among its
// holders. The asset stays booked until the last holder has let go or died. Errors: *Veto; Conflict when it is booked
// with another size.
func (b *Book) HoldAsset(ctx context.Context, a ledger.Asset) (release func() error, err error) {
	if err := a.Check(); err != nil {
		return nil, fmt.Errorf("book asset: %w", err)
	}
	name := assetFile(a)
	capacity, err := b.capacity()
	if err == nil {
		err = b.locked(ctx, func() error { return b.holdAsset(name, a, capacity) })
	}
	if err != nil {
		return nil, fmt.Errorf("book asset %s: %w", a.Name, err)
	}
	released := false
	return func() error {
		return b.locked(context.WithoutCancel(ctx), func() error {
			if released {
				return nil
			}
			released = true
			return b.releaseAsset(name)
		})
	}, nil
}

func (b *Book) holdAsset(name string, a ledger.Asset, capacity ledger.Amounts) error {
	if held := b.assets[name]; held != nil {
		if held.asset != a {
			return fault.New(fault.Conflict, "it is booked with %s", held.asset.Bytes)
		}
		held.count++
		return nil
	}
	c, err := b.scan()
	if err != nil {
		return err
	}
	booked, known := c.assets[name]
	if known && booked != a && b.assetHeld(name) {
		return fault.New(fault.Conflict, "it is booked with %s by another worker", booked.Bytes)
	}
	if !known || booked != a {
		delete(c.assets, name)
		if err := c.room(ledger.Amounts{a.Pool: a.Bytes}, capacity); err != nil {
			return err
		}
		c.assets[name] = a
		if err := b.giveWay(c, capacity); err != nil {
			return err
		}
		if err := b.write(name, a); err != nil {
			return err
		}
	}
	file, err := os.OpenFile(b.path(name), os.O_RDONLY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_SH|unix.LOCK_NB); err != nil {
		return errors.Join(err, file.Close())
	}
	b.assets[name] = &heldAsset{file: file, asset: a, count: 1}
	return nil
}

func (b *Book) releaseAsset(name string) error {
	held := b.assets[name]
	if held.count--; held.count > 0 {
		return nil
	}
	delete(b.assets, name)
	if err := release(held.file); err != nil {
		return err
	}
	if b.assetHeld(name) {
		return nil
	}
	return b.remove(name)
}

// assetHeld tells whether any worker holds an asset. It must run under the lock of the book.
func (b *Book) assetHeld(name string) bool {
	file, err := os.OpenFile(b.path(name), os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return exists(b.path(name))
	}
	defer release(file) //nolint:errcheck // it was only looked at
	return unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil
}

// release lets go of a file that no other process has a copy of. The lock is dropped explicitly: between fork and exec,
// a child process has a copy of every open file.
func release(file *os.File) error {
	err := unix.Flock(int(file.Fd()), unix.LOCK_UN)
	return errors.Join(err, file.Close())
}
