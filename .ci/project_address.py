"""List every place that names the project's address, or put the real one there.

    python .ci/project_address.py                    # lists; exit code 1 while there are any
    python .ci/project_address.py --set OWNER/NAME   # replaces the placeholder everywhere

The project has no public repository yet: github.com/geomix/geomix is a placeholder.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PLACEHOLDER = "geomix/geomix"
HOSTS = ("github.com/{}", "raw.githubusercontent.com/{}")
PAGES = "{}.github.io/{}"


def addresses(repository: str) -> list[str]:
    """The addresses of a repository and of its pages."""
    return [*(host.format(repository) for host in HOSTS), PAGES.format(*repository.split("/"))]


def places(repository: str) -> list[tuple[Path, int, str]]:
    """File, line and text of every line of the repository with one of the addresses."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    found = []
    for name in filter(None, listed.stdout.split("\0")):
        path = ROOT / name
        if path == Path(__file__).resolve() or path.suffix in (".png", ".geomix"):
            continue
        for number, line in enumerate(path.read_text(errors="ignore").splitlines(), 1):
            if any(one in line for one in addresses(repository)):
                found.append((path, number, line.strip()))
    return found


def rename(repository: str) -> None:
    for path in {path for path, _, _ in places(PLACEHOLDER)}:
        text = path.read_text()
        for old, new in zip(addresses(PLACEHOLDER), addresses(repository), strict=True):
            text = text.replace(old, new)
        path.write_text(text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--set", metavar="OWNER/NAME", dest="repository")
    args = parser.parse_args()
    if args.repository:
        rename(args.repository)
    left = places(PLACEHOLDER)
    for path, number, line in left:
        print(f"{path.relative_to(ROOT)}:{number}: {line}")
    print(f"{len(left)} lines name the placeholder {addresses(PLACEHOLDER)[0]}.")
    sys.exit(bool(left))


if __name__ == "__main__":
    main()
