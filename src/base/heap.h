// Memory of our own.
#pragma once

namespace shadowprof {

// Makes the calling thread's heap consist of large pages, where the kernel has them, and grow in
// one step. A profiler that comes to know a large program allocates in small pieces all the time.
// With the usual heap of a thread each page of that is a system call and a page fault: a third of
// all the time in which code is translated (bench/cold). Each such thread has a heap of its own, so
// that none waits for one of low priority that holds a lock.
void use_large_pages_for_heap();

// What the calling thread allocates next, up to 4 MB, causes no page fault. Where a host lends
// its memory page by page, a large one takes 9 ms, and a program may be waiting.
void have_room_in_heap();

}  // namespace shadowprof
