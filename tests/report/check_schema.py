"""Validates profile files against docs/profile.schema.json.

check_schema.py SCHEMA WRITER: the profile that WRITER makes is valid, and stops being so when a
required key is taken out or a type is changed: a schema that accepts anything proves nothing.
"""
import copy
import json
import subprocess
import sys
import tempfile

try:
    import jsonschema
except ImportError:
    print("python3-jsonschema is not installed")
    sys.exit(77)


def places(node, path=()):
    """Every (container path, key) below an object or array."""
    items = node.items() if isinstance(node, dict) else enumerate(node)
    for key, value in items:
        yield path, key
        if isinstance(value, (dict, list)):
            yield from places(value, path + (key,))


def follow(node, path):
    for key in path:
        node = node[key]
    return node


def main():
    schema_file, writer = sys.argv[1:]
    with open(schema_file) as f:
        schema = json.load(f)
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    with tempfile.NamedTemporaryFile(suffix=".json") as f:
        subprocess.run([writer, f.name], check=True)
        profile = json.load(open(f.name))
    validator.validate(profile)

    for path, key in places(profile):
        broken = copy.deepcopy(profile)
        follow(broken, path)[key] = {"unexpected": []}
        if validator.is_valid(broken):
            sys.exit(f"accepted an object at {path} {key}")
    for key in schema["required"]:
        broken = {k: v for k, v in profile.items() if k != key}
        if validator.is_valid(broken):
            sys.exit(f"accepted a profile without {key}")


main()
