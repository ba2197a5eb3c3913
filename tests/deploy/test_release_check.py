"""What keeps a commit from being released."""

import subprocess
import tomllib

import pytest

from deploy.release_check import ROOT, problems

GOOD = ("0.2.0", "# Changes\n\n## 0.2.0 (2027-01-31)\n", [{"version": "0.1.0", "level": 1}], 2, "")


def test_a_commit_can_be_released_if_all_places_agree() -> None:
    assert list(problems(*GOOD)) == []
    assert list(problems("0.1.0", "## 0.1.0 (2027-01-31)", [], 1, "")) == []


@pytest.mark.parametrize(
    ("place", "value", "problem"),
    [
        (0, "0.2.0.dev0", "version is 0.2.0.dev0"),
        (0, "0.1.0", "0.1.0 was released before"),
        (1, "## 0.2.0 (not released)\n", "the first section is 0.2.0 (not released); expected '0.2.0 (YYYY-MM-DD)'"),
        (1, "", "the first section is missing"),
        (3, 3, "the last release has level 1, and this tree 3"),
        (3, 0, "the last release has level 1, and this tree 0"),
        (4, " M README.md", "the tree is not clean:\n M README.md"),
    ],
)
def test_each_problem_is_named(place: int, value: object, problem: str) -> None:
    given = list(GOOD)
    given[place] = value
    assert any(problem in one for one in problems(*given))  # type: ignore[arg-type]


def test_every_release_is_a_commit_of_this_repository() -> None:
    for one in tomllib.loads((ROOT / "releases.toml").read_text()).get("release", []):
        subprocess.run(["git", "cat-file", "-e", f"{one['commit']}^{{commit}}"], cwd=ROOT, check=True)
        assert set(one) == {"version", "commit", "level"}
        assert (ROOT / "CHANGELOG.md").read_text().count(f"## {one['version']} (") == 1
