// Command worker-gpu is the GPU worker (package workergpu). Started with the argument "engine" it drives one device for
// the worker that started it.
package main
