// Goroutines that compute, fault and recover, for ever; each line says that all results were right.
package main

import (
	"fmt"
	"os"
	"runtime"
	"sync/atomic"
	"time"
)

var none *[4]int
var zero int
var rounds int64

func faults(what func()) (wrong bool) {
	defer func() {
		_, is := recover().(runtime.Error)
		wrong = !is
	}()
	what()
	return true
}

func work() uint64 {
	sum := uint64(12345)
	for i := uint64(0); i < 200000; i++ {
		if sum%3 == 0 {
			sum = sum*7 + 1
		} else {
			sum ^= sum>>3 | i<<40
		}
	}
	return sum
}

func check(expected uint64) {
	for {
		garbage := make([][]byte, 0)
		for i := 0; i < 50; i++ {
			garbage = append(garbage, make([]byte, 1000))
		}
		sum := 0
		bad := faults(func() { sum += none[2] }) || faults(func() { sum = 7 / zero })
		if bad || work() != expected || len(garbage) != 50 {
			fmt.Println("wrong")
			os.Exit(1)
		}
		atomic.AddInt64(&rounds, 1)
	}
}

func main() {
	expected := work()
	for i := 0; i < 4; i++ {
		go check(expected)
	}
	for {
		before := atomic.LoadInt64(&rounds)
		for atomic.LoadInt64(&rounds) == before {
			time.Sleep(10 * time.Millisecond)
		}
		fmt.Println("right")
	}
}
