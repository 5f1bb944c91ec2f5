// Goroutines, channels, maps, a garbage collector that signals its threads, panics.
package main

import (
	"fmt"
	"os"
	"sort"
	"strings"
	"sync"
)

type node struct {
	left, right *node
	value       int
}

func grow(depth int) *node {
	if depth == 0 {
		return &node{value: 1}
	}
	return &node{grow(depth - 1), grow(depth - 1), depth}
}

func (n *node) sum() int {
	if n == nil {
		return 0
	}
	return n.value + n.left.sum() + n.right.sum()
}

func divide(a, b int) (result int) {
	defer func() {
		if recover() != nil {
			result = -1
		}
	}()
	return a / b
}

func main() {
	var wait sync.WaitGroup
	sums := make(chan int, 64)
	for worker := 0; worker < 16; worker++ {
		wait.Add(1)
		go func(worker int) {
			defer wait.Done()
			total := 0
			for round := 0; round < 10; round++ {
				total += grow(10+worker%3).sum() + divide(round, worker%2)
			}
			sums <- total
		}(worker)
	}
	wait.Wait()
	close(sums)
	total := 0
	for sum := range sums {
		total += sum
	}
	counts := map[string]int{}
	for i := 0; i < 200000; i++ {
		counts[strings.Repeat("k", i%17)+fmt.Sprint(i%101)]++
	}
	var keys []string
	for key := range counts {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	fmt.Println(total, len(keys), keys[0], counts[keys[len(keys)/2]])
	os.Exit(5)
}
