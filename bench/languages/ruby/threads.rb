# Two threads that take turns.
require_relative "truth"

def one
  s = 0
  3000.times { |i| s += i }
  s
end

def two
  Array.new(1500) { |i| i.to_s }
end

def three
  d = {}
  1500.times { |i| d[i] = i }
  d
end

truths = [Truth.new, Truth.new]
parts = [%i[one two], %i[three one one]]
truths.zip(parts).map { |truth, of| Thread.new { until_end { of.each { |part| truth.call(part) } } } }.each(&:join)
truths[0].add(truths[1])
truths[0].write
