#!/usr/bin/env python3
"""What abi.py and since_tag.sh find: `test_abi.py LIBRARY`. The header is the repository's, spoilt in one place."""

import contextlib
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import abi

ROOT = Path(__file__).resolve().parent.parent
HEADER = (ROOT / "include/ring.h").read_text()
LIST = ROOT / "abi/libring.abi"
LIBRARY = None

LAST_SLOT = "} ring_api_v1;"
LAST_STAT = "} ring_stats;"
LAST_STATUS = "  RING_STATUS_PENDING = 14,\n"
LAST_FUNCTION = "const ring_api_v1_t *ring_get_api_v1(void);\n"


class Scratch(unittest.TestCase):
    def setUp(self):
        self.work = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.work)

    def spoilt(self, *changes):
        text = HEADER
        for old, new in changes:
            self.assertEqual(text.count(old), 1, old)
            text = text.replace(old, new)
        (self.work / "ring.h").write_text(text)
        return self.work / "ring.h"

    def run_abi(self, action, header, library=None, path=LIST):
        said = io.StringIO()
        arguments = ["abi.py", action, str(header), str(library or LIBRARY), str(path)]
        try:
            with mock.patch.object(sys, "argv", arguments), contextlib.redirect_stdout(said):
                abi.main()
        except SystemExit as end:
            return end.code, said.getvalue()
        return 0, said.getvalue()


class Lists(Scratch):
    def test_this_version_is_as_committed(self):
        self.assertEqual(self.run_abi("check", ROOT / "include/ring.h")[0], 0)

    def test_a_compiler_may_have_options(self):
        with mock.patch.dict(os.environ, {"CC": os.environ.get("CC", "cc") + " -O1"}):
            self.test_this_version_is_as_committed()

    def test_every_entry_of_the_changelog_has_its_abi(self):
        entries = re.split(r"^## ", (ROOT / "CHANGELOG.md").read_text(), flags=re.M)[1:]
        for entry in entries:
            self.assertRegex(entry, r"(?m)^- ABI: version \d+, SONAME `libring\.so\.\d+`", entry.splitlines()[0])
        version = re.search(r'^version = "(.*)"', (ROOT / "Cargo.toml").read_text(), re.M)[1]
        number = re.search(r"^#define RING_ABI_VERSION (\d+)", HEADER, re.M)[1]
        self.assertEqual(entries[0].splitlines()[0], version, "the top entry")
        self.assertIn(f"ABI: version {number}, SONAME `libring.so.{version.split('.')[0]}`", entries[0])

    def test_what_programs_rely_on_is_held(self):
        for what, old, new in [
            ("a number", "  RING_STATUS_PENDING = 14,", "  RING_STATUS_PENDING = 15,"),
            ("a field's type", "  uint32_t connect_timeout_ms;", "  uint64_t connect_timeout_ms;"),
            ("a field's name", "  int32_t detected_by;", "  int32_t seen_by;"),
            ("a field in the middle", "  uint64_t bytes_sent;", "  uint64_t calls;\n  uint64_t bytes_sent;"),
            ("a field that goes", "  uint64_t strangers_refused;", ""),
            ("a slot's place", "  void (*group_destroy)(ring_group_t *group);", "  void (*group_leave)(ring_group_t *group);\n"
             "  void (*group_destroy)(ring_group_t *group);"),
            ("a parameter", "ring_status_t ring_barrier(ring_group_t *group)", "ring_status_t ring_barrier(ring_group_t *group, int32_t how)"),
            ("what is returned", "uint32_t ring_abi_version(void);", "uint64_t ring_abi_version(void);"),
            ("a function that goes", "uint32_t ring_abi_version(void);", ""),
            ("a callback", "(*ring_log_fn)(ring_log_level_t level, const char *message, void *user_data)",
             "(*ring_log_fn)(ring_log_level_t level, const char *message)"),
            ("a type", "typedef int32_t ring_op_t;", "typedef int64_t ring_op_t;"),
            ("a macro", "#define RING_FLAG_WIDE_ACCUMULATION 1", "#define RING_FLAG_WIDE_ACCUMULATION 2"),
        ]:
            header = self.spoilt((old, new))
            for action in ("check", "update"):
                path = self.work / "list"
                shutil.copy(LIST, path)
                status, said = self.run_abi(action, header, path=path)
                self.assertEqual(status, 1, f"{what}, {action}: {said}")
                self.assertIn("Programs that are installed would break", said, what)
                self.assertEqual(path.read_text(), LIST.read_text(), what)

    def test_additions_are_accepted_by_hand(self):
        for what, old, new in [
            ("a slot", LAST_SLOT, f"  void (*group_leave)(ring_group_t *group);\n{LAST_SLOT}"),
            ("a counter", LAST_STAT, f"  uint64_t calls;\n{LAST_STAT}"),
            ("a status", LAST_STATUS, f"{LAST_STATUS}  RING_STATUS_TIRED = 15,\n"),
            ("a function", LAST_FUNCTION, f"{LAST_FUNCTION}void ring_group_leave(ring_group_t *group);\n"),
            ("a flag", "#define RING_FLAG_WIDE_ACCUMULATION 1", "#define RING_FLAG_WIDE_ACCUMULATION 1\n#define RING_FLAG_FAST 2"),
        ]:
            header, path = self.spoilt((old, new)), self.work / "list"
            shutil.copy(LIST, path)
            status, said = self.run_abi("check", header, path=path)
            self.assertEqual(status, 1, what)
            self.assertIn("make abi-update", said, what)
            self.assertNotIn("would break", said, what)
            self.assertEqual(self.run_abi("update", header, path=path)[0], 0, what)
            self.assertEqual(self.run_abi("check", header, path=path)[0], 0, what)

    def test_another_abi_may_break(self):
        header, path = self.spoilt(("#define RING_ABI_VERSION 1", "#define RING_ABI_VERSION 2"),
                                   ("  int32_t detected_by;", "  int32_t seen_by;")), self.work / "list"
        shutil.copy(LIST, path)
        self.assertEqual(self.run_abi("check", header, path=path)[0], 1)
        self.assertEqual(self.run_abi("update", header, path=path)[0], 0)
        self.assertEqual(self.run_abi("check", header, path=path)[0], 0)

    def test_exports_are_the_librarys(self):
        (self.work / "one.c").write_text("void ring_barrier(void) {}\nvoid ring_extra(void) {}\n")
        library = self.work / "libone.so"
        subprocess.run([*shlex.split(os.environ.get("CC", "cc")), "-shared", "-fPIC", "-o", library, self.work / "one.c"], check=True)
        status, said = self.run_abi("check", ROOT / "include/ring.h", library)
        self.assertEqual(status, 1)
        self.assertIn("gone:    export ring_all_reduce\n", said)
        self.assertIn("  export ring_extra\n", said)

    def test_forms_that_are_new_to_it_are_no_silence(self):
        for old, new in [
            (LAST_STAT, f"  uint64_t calls[2];\n{LAST_STAT}"),
            (LAST_FUNCTION, f"{LAST_FUNCTION}union both {{ int a; float b; }};\n"),
        ]:
            status, _ = self.run_abi("check", self.spoilt((old, new)))
            self.assertIn("can't read", str(status))


@unittest.skipUnless(shutil.which("abidiff"), "abidiff is missing")
class SinceATag(Scratch):
    def setUp(self):
        super().setUp()
        shutil.copytree(ROOT / "abi", self.work / "abi", ignore=shutil.ignore_patterns("__pycache__"))
        (self.work / "include").mkdir()
        self.header = self.work / "include/ring.h"
        self.git("init", "-q")

    def git(self, *arguments):
        who = ["-c", "user.name=nobody", "-c", "user.email=nobody@localhost"]
        subprocess.run(["git", *who, *arguments], cwd=self.work, check=True, capture_output=True)

    def release(self, header):
        self.header.write_text(header)
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "a release")
        self.git("tag", "v0.1.0")

    def compared(self, *changes):
        text = HEADER
        for old, new in changes:
            self.assertEqual(text.count(old), 1, old)
            text = text.replace(old, new)
        self.header.write_text(text)
        run = subprocess.run(["sh", "abi/since_tag.sh"], cwd=self.work, capture_output=True, text=True)
        return run.returncode, run.stdout + run.stderr

    def test_there_may_be_no_tag(self):
        status, said = self.compared()
        self.assertEqual(status, 0, said)
        self.assertIn("there is no tag", said)

    def test_additions_pass_and_breaks_fail(self):
        self.release(HEADER)
        for right, old, new in [
            (0, LAST_SLOT, f"  void (*group_leave)(ring_group_t *group);\n{LAST_SLOT}"),
            (0, LAST_STAT, f"  uint64_t calls;\n{LAST_STAT}"),
            (0, LAST_STATUS, f"{LAST_STATUS}  RING_STATUS_TIRED = 15,\n"),
            (0, LAST_FUNCTION, f"{LAST_FUNCTION}void ring_group_leave(ring_group_t *group);\n"),
            (0, "#define RING_ABI_VERSION 1", "#define RING_ABI_VERSION 2"),
            (1, "  int32_t detected_by;", "  int64_t detected_by;"),
            (1, "  uint64_t bytes_sent;", "  uint64_t calls;\n  uint64_t bytes_sent;"),
            (1, "  void (*group_destroy)(ring_group_t *group);", "  void (*group_leave)(ring_group_t *group);\n"
             "  void (*group_destroy)(ring_group_t *group);"),
            (1, LAST_STATUS, "  RING_STATUS_PENDING = 15,\n"),
            (1, "ring_status_t ring_barrier(ring_group_t *group)", "ring_status_t ring_barrier(ring_group_t *group, int32_t how)"),
            (1, "uint32_t ring_abi_version(void);", ""),
        ]:
            status, said = self.compared((old, new))
            self.assertEqual(status, right, f"{new}: {said}")

    def test_a_line_that_was_released_stays_in_the_list(self):
        self.release(HEADER)
        path = self.work / "abi/libring.abi"
        path.write_text(path.read_text().replace("export ring_barrier\n", ""))
        status, said = self.compared()
        self.assertEqual(status, 1)
        self.assertIn("gone:    export ring_barrier", said)


if __name__ == "__main__":
    LIBRARY = sys.argv.pop(1)
    unittest.main()
