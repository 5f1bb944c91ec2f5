"""Python that has C do the work."""

import json
import re
import zlib

from truth import repeat

DATA = {f"k{i}": [i, str(i), {"a": i / 3}] for i in range(400)}
TEXT = "the quick brown fox 123 jumps over 4567 lazy dogs\n" * 400
BYTES = TEXT.encode() * 2


def encode_part():
    return json.dumps(DATA)


ENCODED = encode_part()


def decode_part():
    return json.loads(ENCODED)


def search_part():
    return len(re.findall(r"\b(\w+)\s+(\d+)\b", TEXT))


def squeeze_part():
    return zlib.compress(BYTES, 6)


repeat(encode_part, decode_part, search_part, squeeze_part).write()
