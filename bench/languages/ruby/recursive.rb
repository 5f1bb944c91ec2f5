# Recursion, and a loop.
require_relative "truth"

def fib(n)
  n < 2 ? n : fib(n - 1) + fib(n - 2)
end

def build(depth)
  depth == 0 ? nil : [build(depth - 1), depth, build(depth - 1)]
end

def total(tree)
  return 0 if tree.nil?
  total(tree[0]) + tree[1] + total(tree[2])
end

def fib_part
  fib(20)
end

def tree_part
  total(build(12))
end

def loop_part
  s = 0
  i = 0
  while i < 60_000
    s += i * i % 7
    i += 1
  end
  s
end

repeat(:fib_part, :tree_part, :loop_part).write
