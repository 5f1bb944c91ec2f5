# What each part of a program took, measured where methods of milliseconds are called.

class Truth
  attr_reader :spent

  def initialize
    @spent = Hash.new(0.0)
  end

  def call(part)
    before = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID)
    send(part)
    @spent[part] += Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) - before
  end

  def add(other)
    other.spent.each { |name, seconds| @spent[name] += seconds }
  end

  def write
    File.write(ARGV[0], "{#{@spent.map { |name, seconds| "\"#{name}\": #{seconds}" }.join(", ")}}")
  end
end

# Yields for as many seconds as the command line says.
def until_end
  stop = Process.clock_gettime(Process::CLOCK_MONOTONIC) + ARGV[1].to_f
  yield while Process.clock_gettime(Process::CLOCK_MONOTONIC) < stop
end

def repeat(*parts)
  truth = Truth.new
  until_end { parts.each { |part| truth.call(part) } }
  truth
end
