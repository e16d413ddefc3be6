// Package client lets a program use the rack: submit an input, wait for its proof, fetch it, cancel it.
//
//	c := client.New(b, job.MainTenant) // b: natsbus.Connect
//	s, err := c.Submit(ctx, client.Request{Key: "sector 4243", Miner: "f01000", SectorNumber: &number, Input: file})
//	r, err := c.Wait(ctx, s.Job, nil)
//	proof, err := c.Result(ctx, r)
//
// What it does beyond the plain NATS requests of docs/rack.md: large inputs go by reference, requests that got no
// answer are made again under the same key until the context ends, and waiting survives restarts of everything. Submit
// gives up sooner, if it is told to (Request.SetupWait), when nobody is there who could answer. Errors are classified
// by package fault and say what the matter was, not that a time is over; refusals are the coordinator's own words.
package client
