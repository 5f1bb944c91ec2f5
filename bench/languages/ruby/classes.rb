# Methods, blocks, iterators and generators, and blocks that C code calls.
require_relative "truth"

class Shape
  attr_reader :width

  def initialize(width)
    @width = width
  end

  def area
    width * width
  end

  def self.sum(shapes)
    shapes.sum { |shape| shape.double }
  end

  def double
    area * 2
  end
end

class Square < Shape
  def area
    super + 1
  end
end

SHAPES = Array.new(2000) { |i| (i.odd? ? Square : Shape).new(i) }

def methods_part
  Shape.sum(SHAPES)
end

def blocks_part
  (0...120).flat_map { |x| (0...60).select { |y| (x + y) % 3 != 0 }.map { |y| x * y } }.size
end

def numbers(n)
  return to_enum(:numbers, n) unless block_given?
  n.times { |i| yield i * 3 }
end

def generator_part
  numbers(4000).each_slice(2).sum { |a, b| a + b }
end

def sort_part
  (0...4000).sort_by { |v| v * 7919 % 4001 }
end

repeat(:methods_part, :blocks_part, :generator_part, :sort_part).write
