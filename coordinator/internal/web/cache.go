package web

import (
	"context"
	"sync"
	"time"
)

// cache keeps documents for a while, so that the rack is asked once however many look.
type cache struct {
	age time.Duration

	mu    sync.Mutex
	pages map[string]*page
}

// page is one document, or why there is none.
type page struct {
	mu   sync.Mutex
	at   time.Time
	data []byte
	err  error
}

// pagesMax bounds what is kept.
const pagesMax = 256

// get gives a document of at most the cache's age; ask makes it. Those who want the same one wait for one of them.
func (c *cache) get(ctx context.Context, name string, ask func(context.Context) ([]byte, error)) ([]byte, error) {
	p := c.page(name)
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Since(p.at) < c.age {
		return p.data, p.err
	}
	data, err := ask(ctx)
	if ctx.Err() != nil {
		return data, err // the asker's own end says nothing to others
	}
	p.at, p.data, p.err = time.Now(), data, err
	return data, err
}

func (c *cache) page(name string) *page {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := c.pages[name]; p != nil {
		return p
	}
	if len(c.pages) >= pagesMax {
		clear(c.pages) // whoever holds one keeps it
	}
	p := &page{}
	c.pages[name] = p
	return p
}
