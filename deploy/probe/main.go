package main

import (
	"fmt"
	"net/http"
	"os"
	"time"
)

// probeWithin is shorter than the time that compose gives a check.
const probeWithin = 3 * time.Second

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: probe URL")
		os.Exit(2)
	}
	client := http.Client{Timeout: probeWithin}
	answer, err := client.Get(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	defer answer.Body.Close() //nolint:errcheck // the process ends
	if answer.StatusCode != http.StatusOK {
		fmt.Fprintln(os.Stderr, answer.Status)
		os.Exit(1) //nolint:gocritic // the process ends
	}
}
