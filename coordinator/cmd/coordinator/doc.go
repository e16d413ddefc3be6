// Command coordinator is the rack's coordinator as a program of its own: it reads its settings (package config) and
// runs package coordinator until it is told to stop. Several may run at once; one of them leads.
package main
