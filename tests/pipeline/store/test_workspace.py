"""A store that was opened to be looked at: every verb that writes refuses before it begins."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from coaudit.judges.clients import Parameters
from coaudit.pipeline import codebooks
from coaudit.pipeline.analyze.metrics import metrics
from coaudit.pipeline.annotate.draw import Wish, draw
from coaudit.pipeline.errors import StoreError
from coaudit.pipeline.ingest import forgetting
from coaudit.pipeline.ingest.rebuild import rebuild
from coaudit.pipeline.judge import embedded, jury, run
from coaudit.pipeline.judge.model import Model
from coaudit.pipeline.judge.scope import Scope
from coaudit.pipeline.judge.training import train
from coaudit.pipeline.store import Store, Workspace
from tests.judges.teams import team
from tests.pipeline.stores import give, holding, rate, take, verdict

SAID = (("human", "Make a plan."), ("agent", "Shall I use blue?"), ("human", "Yes, use blue."))
INITIATIVE = codebooks.load("initiative")


@asynccontextmanager
async def _paid() -> Any:
    """A model that must not be asked."""
    raise AssertionError("a model was reached")
    yield


@pytest.mark.parametrize(
    ("store", "place"),
    [
        ("tables/own.duckdb", "{}/tables/own.duckdb"),
        ("ducklake:sqlite:catalog.db", "ducklake:sqlite:{}/catalog.db"),
        ("ducklake:sqlite:/shared/catalog.db", "ducklake:sqlite:/shared/catalog.db"),
        ("ducklake:postgres:dbname=coaudit", "ducklake:postgres:dbname=coaudit"),
        ("/shared/own.duckdb", "/shared/own.duckdb"),
    ],
)
def test_a_store_lies_where_the_workspace_says_from_whatever_folder_it_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: str, place: str
) -> None:
    folder = tmp_path / "study"
    folder.mkdir()
    (folder / "coaudit.toml").write_text(f'store = "{store}"\n')
    monkeypatch.chdir(tmp_path)
    assert Workspace(Path("study")).store_url == place.format(folder)
    assert Workspace(folder).resolve_path("s3://bucket/tables") == "s3://bucket/tables"


def _quiet(*said: Any) -> Any:
    return True


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    store = holding(tmp_path_factory.mktemp("looked") / "w", [team(*SAID, key="t1")])
    rate(store, [verdict("t1", 1, "initiative", "yes")])
    (store.workspace.path / "given.jsonl").unlink()
    return store.workspace.path


def _judged(store: Store) -> object:
    model = Model("hosted_vllm/x", "judge", Parameters())
    return run.judge(store, Scope((INITIATIVE,)), model, _paid(), approve=_quiet, show=_quiet, say=_quiet)


def _ledger(name: str) -> Callable[[Store], object]:
    return lambda store: getattr(store.workspace, name).append(["{}"])


VERBS: dict[str, Callable[[Store], object]] = {
    "judge with a model": _judged,
    "judge with rules": lambda store: embedded.judge(
        store, "rules", ["initiative"], Scope((INITIATIVE,)), _quiet
    ),
    "judge as a jury": lambda store: jury.judge(store, Scope((INITIATIVE,)), ["ann", "bob"]),
    "ingest": lambda store: take(store, Path(__file__)),
    "rebuild": rebuild,
    "forget": lambda store: forgetting.forget(store, "t1"),
    "take back": lambda store: forgetting.undo(store, "t1"),
    "import outcomes": lambda store: give(store, [{"trajectory": "t1", "name": "satisfaction", "value": 3}]),
    "import ratings": lambda store: rate(store, [verdict("t1", 2, "initiative", "no")]),
    "draw": lambda store: draw(store, Wish(("initiative",), "s", 1)),
    "train": lambda store: train(store, INITIATIVE, "ann", None),
    "write": lambda store: store.writing().__enter__(),
    "rate": lambda store: store.workspace.new_ratings(),
    **{name: _ledger(name) for name in ("sources", "outcomes", "forgotten", "received")},
}


def _files(folder: Path) -> Iterator[tuple[str, bytes]]:
    for path in sorted(folder.rglob("*")):
        if path.name != "given.jsonl":
            yield str(path), path.read_bytes() if path.is_file() else b""


@pytest.mark.long
@pytest.mark.parametrize("verb", VERBS)
def test_nothing_is_written_or_asked_with_a_store_that_is_only_looked_at(folder: Path, verb: str) -> None:
    store = Store(Workspace(folder), read_only=True)
    before = list(_files(folder))
    with pytest.raises(StoreError, match="opened read-only, so nothing is written"):
        VERBS[verb](store)
    assert list(_files(folder)) == before
    assert metrics(store)


def test_a_path_that_a_database_cannot_have_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    folder = tmp_path / "why?"
    with pytest.raises(StoreError, match="must not contain \\?"):
        Workspace.at(folder)
    assert not folder.exists()
    folder.mkdir()
    (folder / "coaudit.toml").write_text('store = "ducklake:postgres:dbname=study"')
    assert Workspace.at(folder).path == folder


def test_of_two_processes_that_are_the_first_both_have_one_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[bytes] = []
    other = threading.Thread(target=lambda: seen.append(Workspace(tmp_path).secret()))

    def drawn(size: int) -> bytes:
        """The other one comes while the first is about to write."""
        if size == 32:
            other.start()
            other.join(0.2)
        return b"s" * size

    monkeypatch.setattr(secrets, "token_bytes", drawn)
    own = Workspace(tmp_path).secret()
    other.join()
    assert seen == [own] == [b"s" * 32]


def test_a_secret_that_a_kill_left_empty_is_made(tmp_path: Path) -> None:
    (tmp_path / "secret").touch()
    made = Workspace(tmp_path).secret()
    assert len(made) == 32 and Workspace(tmp_path).secret() == made
    assert (tmp_path / "secret").stat().st_mode & 0o777 == 0o600
