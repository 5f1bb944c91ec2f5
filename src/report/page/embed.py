"""Puts the page's parts together and writes them as C++: what comes before the profile's data, and
what comes after. Arguments: the header and the source to write, page.html, then style sheets and
scripts in their order."""

import pathlib
import sys

header, source, template, *parts = map(pathlib.Path, sys.argv[1:])


def contents(suffix):
    return "\n".join(p.read_text(encoding="utf-8") for p in parts if p.suffix == suffix)


def definition(name, text):
    data = text.encode()
    rows = (data[i:i + 24] for i in range(0, len(data), 24))
    numbers = ",\n".join(",".join(str(byte if byte < 128 else byte - 256) for byte in row) for row in rows)
    return (f"namespace {{\nconstexpr char {name}_bytes[] = {{\n{numbers}}};\n}}\n"
            f"const std::string_view {name}{{{name}_bytes, sizeof {name}_bytes}};\n")


page = template.read_text(encoding="utf-8")
page = page.replace("{{style}}", contents(".css")).replace("{{script}}", contents(".js"))
before, after = page.split("{{data}}")
header.write_text("""#pragma once
#include <string_view>
namespace shadowprof::report {
extern const std::string_view page_before_data, page_after_data;
}
""", encoding="utf-8")
source.write_text(f"""#include "{header.name}"
namespace shadowprof::report {{
{definition("page_before_data", before)}
{definition("page_after_data", after)}
}}  // namespace shadowprof::report
""", encoding="utf-8")
