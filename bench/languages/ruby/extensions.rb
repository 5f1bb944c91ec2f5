# Ruby that has C do the work.
require_relative "truth"
require "json"
require "zlib"

DATA_OF_ALL = (0...400).to_h { |i| ["k#{i}", [i, i.to_s, { "a" => i / 3.0 }]] }
TEXT = "the quick brown fox 123 jumps over 4567 lazy dogs\n" * 400
BYTES = TEXT * 2

def encode_part
  JSON.generate(DATA_OF_ALL)
end

ENCODED = encode_part

def decode_part
  JSON.parse(ENCODED)
end

def search_part
  TEXT.scan(/\b(\w+)\s+(\d+)\b/).size
end

def replace_part
  TEXT.gsub("fox", "dog").upcase.split("\n").map(&:reverse).join
end

def squeeze_part
  Zlib::Deflate.deflate(BYTES, 6)
end

repeat(:encode_part, :decode_part, :search_part, :replace_part, :squeeze_part).write
