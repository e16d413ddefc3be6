// Package e2e has no code of its own: its tests run the whole rack as the processes that it is made of, with real NATS
// and real Redis, and take parts of it away (design sections 4 and 6).
//
// Each test has servers, ports and folders of its own. The programs are built once, with the toy circuit (build tag
// toy). All timers are the real ones divided by one factor, timeScale. Faults happen at hook points (package hook),
// and the test proves that the point was reached. What must hold in the end is checkQuiet's: every result verifies
// against its own inputs, no finished partition was computed again, the ledger holds assets only, no segment, message
// or input is left.
//
// It owns no truth and tests no part alone; each part's own tests do that.
package e2e
