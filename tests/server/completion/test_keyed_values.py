"""Values that name a renamed key follow it; others, and comments, stay."""

import pytest

from mercury_lsp.completion.next_edits.keyed_values import naming_values, renamed_keys
from tests.server.completion.test_by_example import ExampleDesk

COMPOSE = """\
services:
  web:
    # talks to db
    image: db-client
    links: [db, "db:alias", redis]
    environment:
      URL: postgres://app@db/app
      HOST: "db"
      NAME: the db of the app
      DEFAULT: db is here
    volumes:
      - data:/var/lib/data
    depends_on:
      - db
  db:
    image: postgres:16
volumes:
  data: {}
"""


def followed(desk: ExampleDesk) -> list[str]:
    """The lines of the places that follow, nearest first, each with its place marked."""
    hunks, snapshot = desk.history.hunks(), desk.parsed()
    sites = [site for each in renamed_keys(hunks, snapshot) for site in naming_values(each, hunks, snapshot)]
    found = []
    for site in sites:
        first, last = snapshot.source.line_bounds(site.start)
        found.append(f"{snapshot.slice(first, site.start)}|{site.new}|{snapshot.slice(site.end, last)}".strip())
    return found


def test_the_values_that_name_a_renamed_key_follow_it():
    assert followed(ExampleDesk(a__yaml=COMPOSE).replace("  db:\n", "  store:\n")) == [
        "- |store|",
        'HOST: "|store|"',
        "URL: postgres://app@|store|/app",
        'links: [db, "|store|:alias", redis]',
        'links: [|store|, "db:alias", redis]',
    ]
    assert followed(ExampleDesk(a__yaml=COMPOSE).replace("  data: {}", "  pgdata: {}")) == ["- |pgdata|:/var/lib/data"]


@pytest.mark.parametrize(
    ("name", "text", "old", "new", "places"),
    [
        ("a__toml", '[db]\nport = 1\n[app]\nuses = ["db"]\n', "[db]", "[store]", ['uses = ["|store|"]']),
        ("a__json", '{\n  "db": {},\n  "uses": "db"\n}\n', '"db":', '"store":', ['"uses": "|store|"']),
        ("a__yaml", "jobs:\n  build:\n  test:\n    needs: build\n", "  build:", "  make:", ["needs: |make|"]),
        ("a__yaml", "a:\n  name: x\nb:\n  name: y\nsort: name\n", "name: x", "title: x", []),
        ("a__yaml", "a: 1\non: x\nb: on\n", "on:", "when:", []),
        ("a__yaml", "a: 1\nb: a\n", "a: 1", "a: 2", []),
        ("a__py", "a = 1\nb = 'a'\n", "a = 1", "c = 1", []),
    ],
)
def test_in_every_data_language_if_the_key_was_the_only_one(
    name: str, text: str, old: str, new: str, places: list[str]
):
    assert followed(ExampleDesk(**{name: text}).replace(old, new)) == places
