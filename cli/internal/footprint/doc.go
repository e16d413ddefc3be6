// Package footprint measures how much memory this process has resident, by kind, and the most it had while somebody
// watched. It reads /proc/self/status, so it works on Linux; elsewhere every figure is 0.
package footprint
