#!/usr/bin/env python3
"""The ABI of libring as a list of lines, one a promise: what ring.h declares, how a C compiler lays it out, and what the library exports.

    abi.py check  HEADER LIBRARY LIST    compares; an addition that isn't in the list fails as well, with a word on how to accept it
    abi.py update HEADER LIBRARY LIST    accepts additions; what was promised may go or change under another RING_ABI_VERSION only
    abi.py since OLD_LIST LIST           compares two lists, of a release and of now; additions are fine
    abi.py shim HEADER                   prints a C file that has all functions, empty, and every type
    abi.py longer OLD_HEADER HEADER      prints what abidiff is to overlook: structs that have become longer at their end

The list is that of 64-bit targets; elsewhere nothing is compared.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

# Those of a release, not of the ABI.
NOT_ABI = re.compile(r"RING_VERSION.*|RING_NODISCARD|RING_H")
NOTE = """\
# What programs that are linked with libring rely on, on 64-bit targets. `make abi` compares it with ring.h and the library,
# `make abi-update` adds to it. A line that was in a release never goes and never changes while RING_ABI_VERSION stays.
"""


def fail(text):
    sys.exit(f"abi: {text}")


def normal(declaration):
    """A declaration with one space where C needs one."""
    text = re.sub(r"\s+", " ", declaration).strip()
    text = re.sub(r"\s*([(),*])\s*", r"\1", text).replace(",", ", ")
    return re.sub(r"(?<=\w)\*", " *", text)


def without_name(parameter):
    """The type of a parameter: what it is called is no promise."""
    if parameter == "void":
        return parameter
    found = re.fullmatch(r"(.*?[ *])[a-z_]\w*", parameter)
    return found[1].strip() if found else fail(f"a parameter that this script can't read: {parameter}")


def signature(returns, parameters):
    types = ", ".join(without_name(each.strip()) for each in normal(parameters).split(","))
    return f"{normal(returns)} ({types})"


class Header:
    """What a header declares. cbindgen writes it, so that a few forms are all there are; another one is an error."""

    def __init__(self, path):
        self.path = Path(path).resolve()
        text = self.path.read_text()
        self.enums, self.structs, self.functions, self.callbacks, self.typedefs, self.opaque = {}, {}, {}, {}, {}, []
        self.macros = [name for name in re.findall(r"^#define (\w+)", text, re.M) if not NOT_ABI.fullmatch(name)]
        text = re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.S)
        # The typedefs that a compiler of C23 sees, or doesn't, name the same int32_t.
        text = re.sub(r"#ifndef __cplusplus\n#if __STDC_VERSION__.*?#endif *\n#endif", "", text, flags=re.S)
        text = re.sub(r"^#.*$|^\s*: int32_t$|extern \"C\" \{", "", text, flags=re.M)
        for statement in self.statements(text):
            self.read(statement)

    @staticmethod
    def statements(text):
        depth, start = 0, 0
        for at, letter in enumerate(text):
            depth += {"{": 1, "}": -1}.get(letter, 0)
            if letter == ";" and depth == 0:
                yield text[start:at].strip().removeprefix("RING_NODISCARD").strip()
                start = at + 1
        if text[start:].strip() not in ("", "}"):
            fail(f"what this script can't read: {text[start:].strip()}")

    def read(self, statement):
        forms = [
            (r"enum (\w+)\s*\{(.*)\}", self.read_enum),
            (r"typedef struct (\w+) \{(.*)\} \1", self.read_struct),
            (r"typedef ([^()]+?)\(\*(\w+)\)\((.*)\)", lambda found: self.callbacks.update({found[2]: signature(found[1], found[3])})),
            (r"typedef struct (\w+) \1", lambda found: self.opaque.append(found[1])),
            (r"typedef (.+?) (\w+)", lambda found: self.typedefs.update({found[2]: normal(found[1])})),
            (r"([^()]+?[ *])(\w+)\((.*)\)", lambda found: self.functions.update({found[2]: signature(found[1], found[3])})),
        ]
        for form, take in forms:
            found = re.fullmatch(form, statement, re.S)
            if found:
                return take(found)
        return fail(f"a declaration that this script can't read: {statement}")

    def read_enum(self, found):
        self.enums[found[1]] = [item.split("=")[0].strip() for item in found[2].split(",") if item.strip()]

    def read_struct(self, found):
        fields = []
        for field in found[2].split(";"):
            field = field.strip()
            pointer = re.fullmatch(r"([^()]+?)\(\*(\w+)\)\((.*)\)", field, re.S)
            plain = re.fullmatch(r"(.+?[ *])(\w+)", field, re.S)
            if pointer:
                fields.append((pointer[2], signature(pointer[1], pointer[3])))
            elif plain:
                fields.append((plain[2], normal(plain[1])))
            elif field:
                fail(f"a field that this script can't read: {field}")
        self.structs[found[1]] = fields

    def program(self):
        """A C program that prints what the compiler knows: sizes, offsets and numbers."""
        lines = []

        def put(form, *values):
            lines.append(f'  printf("{form}\\n", {", ".join(values)});')

        for name in self.macros:
            put(f"macro {name} = %lld", f"(long long){name}")
        for enum, names in self.enums.items():
            for name in names:
                put(f"enum {enum} {name} = %lld", f"(long long){name}")
        for alias, target in self.typedefs.items():
            if not target.startswith("struct "):
                put(f"type {alias} = {target}, %zu bytes", f"sizeof({alias})")
            else:
                lines.append(f'  puts("type {alias} = {target}");')
        for name in self.opaque:
            lines.append(f'  puts("type struct {name}, opaque");')
        for struct, fields in self.structs.items():
            put(f"struct {struct}: %zu bytes, aligned to %zu", f"sizeof(struct {struct})", f"_Alignof(struct {struct})")
            for field, kind in fields:
                put(f"field {struct}.{field} at %zu, %zu bytes: {kind}", f"offsetof(struct {struct}, {field})",
                    f"sizeof((({struct} *)0)->{field})")
        body = "\n".join(lines)
        return f'#include <stdio.h>\n#include "{self.path}"\nint main(void) {{\n{body}\n  return 0;\n}}\n'

    def lines(self):
        work = Path(tempfile.mkdtemp())
        try:
            (work / "abi.c").write_text(self.program())
            build = [*shlex.split(os.environ.get("CC", "cc")), "-std=c11", "-o", str(work / "abi"), str(work / "abi.c")]
            subprocess.run(build, check=True)
            printed = subprocess.run([work / "abi"], check=True, capture_output=True, text=True).stdout
        finally:
            shutil.rmtree(work)
        lines = printed.splitlines()
        lines += [f"callback {name}: {kind}" for name, kind in self.callbacks.items()]
        lines += [f"function {name}: {kind}" for name, kind in self.functions.items()]
        return lines

    def shim(self):
        """Empty functions, and variables by which the debug information knows the types that no function takes."""
        lines = ['#include "ring.h"']
        lines += [f"enum {name} {name}_shown;" for name in self.enums]
        for name, kind in self.functions.items():
            returns, types = re.fullmatch(r"(.*?) \((.*)\)", kind).groups()
            parameters = types if types == "void" else ", ".join(f"{each} p{i}" for i, each in enumerate(types.split(", ")))
            lines.append(f"{returns} {name}({parameters}) {{ {'' if returns == 'void' else 'return 0;'} }}")
        return "\n".join(lines)


def exports(library):
    options = ["-gU"] if sys.platform == "darwin" else ["-D", "--defined-only"]
    table = subprocess.run(["nm", *options, library], check=True, capture_output=True, text=True).stdout
    names = sorted(line.split()[-1].removeprefix("_" if sys.platform == "darwin" else "") for line in table.splitlines())
    return [f"export {name}" for name in names]


def key(line):
    """What a line is about: the same thing said otherwise is a change."""
    return re.match(r"(\w+ )(struct )?([\w.]+)( RING_\w+)?", line)[0]


def grows(old, new, lines):
    """Whether a struct has become longer by fields at its end alone: its caller says which size it knows."""
    form = r"struct (\w+): (\d+) bytes, aligned to (\d+)"
    before, after = re.fullmatch(form, old), re.fullmatch(form, new)
    if not before or not after or before[3] != after[3] or int(after[2]) < int(before[2]):
        return False
    return any(line.startswith(f"field {before[1]}.struct_size at 0,") for line in lines)


def compare(old, new):
    """The lines that broke a promise, and those that are new."""
    was, now = {key(line): line for line in old}, {key(line): line for line in new}
    if len(was) != len(old) or len(now) != len(new):
        fail("two lines are about one thing")
    broken, added = [], [line for name, line in now.items() if name not in was]
    for name, line in was.items():
        if name not in now:
            broken.append(f"gone:    {line}")
        elif now[name] != line and grows(line, now[name], new):
            added.append(now[name])
        elif now[name] != line:
            broken.append(f"changed: {line}\n     to: {now[name]}")
    # A field in a gap of what was there is a field that old programs leave unset.
    for line in added:
        field = re.match(r"field (\w+)\.(\w+) at (\d+),", line)
        size = field and re.search(r": (\d+) bytes", was.get(f"struct {field[1]}", ""))
        if size and int(field[3]) < int(size[1]):
            broken.append(f"within what was there: {line}")
    return broken, added


def abi_version(lines):
    return next((line for line in lines if line.startswith("macro RING_ABI_VERSION ")), None)


def read(path):
    return [line for line in Path(path).read_text().splitlines() if not line.startswith("#")] if Path(path).exists() else []


def since(old, new):
    broken, added = compare(read(old), read(new))
    if broken:
        print("What a release has promised has changed:", *broken, sep="\n  ")
        sys.exit(1)
    print(f"{len(added)} lines more than in the last release, and all of its own")


def longer(old, new):
    for struct, fields in old.items():
        now = new.get(struct, [])
        if len(now) > len(fields) and now[:len(fields)] == fields and fields[0][0] == "struct_size":
            # Alone of these: abidiff takes a field that has another size for one at the end.
            print(f"[suppress_type]\n  name = {struct}\n  has_data_member_inserted_at = end")


def main():
    if len(sys.argv) == 4 and sys.argv[1] == "since":
        return since(*sys.argv[2:])
    if len(sys.argv) == 4 and sys.argv[1] == "longer":
        return longer(Header(sys.argv[2]).structs, Header(sys.argv[3]).structs)
    if len(sys.argv) == 3 and sys.argv[1] == "shim":
        return print(Header(sys.argv[2]).shim())
    if len(sys.argv) != 5 or sys.argv[1] not in ("check", "update"):
        fail(__doc__)
    action, header, library, path = sys.argv[1:]
    if sys.maxsize < 2**32:
        print("skipped: the list is that of 64-bit targets")
        return
    new = Header(header).lines() + exports(library)
    old = read(path)
    broken, added = compare(old, new)
    allowed = old and abi_version(old) != abi_version(new)
    refused = broken and not (allowed and action == "update")
    if refused:
        print("What programs rely on has changed:", *broken, sep="\n  ")
        print("Programs that are installed would break. Put it back, and add beside it what is new. (A line that was in no\n"
              f"release may be deleted from {path} by hand; a break on purpose takes another RING_ABI_VERSION and SONAME.)")
    if added and action == "check":
        print("New in the ABI, and not in the list:", *added, sep="\n  ")
        print("If that is meant: `make abi-update`, and commit the list with a line in CHANGELOG.md.")
    if refused or (added and action == "check"):
        sys.exit(1)
    if action == "update":
        Path(path).write_text(NOTE + "\n".join(new) + "\n")
        print(f"{len(added)} new, {len(broken)} changed or gone, {len(new)} in all")
    else:
        print(f"{len(new)} lines, as committed")


if __name__ == "__main__":
    main()
