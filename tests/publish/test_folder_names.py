"""A script is loaded from a folder of any name, and the name runs nothing."""

from __future__ import annotations

import random
import string
from pathlib import Path

import pytest

from autotune.publish.formats import find
from autotune.publish.formats.scripts import Script, environment_after

FORMATS = ("sh", "csh", "slurm", "lmod", "tcl")
NAMES = (
    *("d';touch PWNED;echo '", 'd";touch PWNED;echo "', "d`touch PWNED`", "d$(touch PWNED)"),
    *("a b", " a", "a!b", "!!", "$HOME", "${x}", "$argv[1]", "*", "[a]", "{a,b}", "~", "a\nb"),
    *("-n", "a;b", "a&b", "a|b", "a>b", "#a", "a\\b", "é", "=", "%1", "^a^b^", "\t", "'", '"'),
)
ALPHABET = string.ascii_lowercase + "'\"\\`$!~*?[]{}()<>|&;#^% \n\t-=,:@"


def random_names(count: int) -> list[str]:
    source = random.Random(11)
    return ["".join(source.choices(ALPHABET, k=source.randrange(1, 12))) for _ in range(count)]


@pytest.mark.parametrize("name", FORMATS)
def test_no_name_of_a_folder_is_executed(name: str, tmp_path: Path) -> None:
    fmt = find(name)
    assert isinstance(fmt, Script)
    interpreter = fmt.interpreter()
    if interpreter is None:
        pytest.skip(f"none of {', '.join(fmt.interpreters)} is installed")
    for number, odd in enumerate([*NAMES, *random_names(40)]):
        folder = tmp_path / f"{number}" / odd
        folder.mkdir(parents=True)
        path = folder / f"file{fmt.suffix}"
        path.write_text(fmt.prologue + fmt.line("A_VALUE", "1"), encoding="utf-8")
        base = {"PATH": "/usr/bin:/bin", "HOME": str(folder)}
        found = environment_after(fmt.command(interpreter, path), base, path)
        assert found == {"A_VALUE": "1"}, odd
        assert sorted(tmp_path.rglob("PWNED")) == []
        assert list(folder.iterdir()) == [path]
