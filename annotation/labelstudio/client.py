"""A Label Studio server: the one module that imports its SDK.

Every call is one round trip and can be repeated; nothing here knows the store. Whatever goes wrong comes out
as LabelStudioError with words for a person and without the token.
"""

from __future__ import annotations

import json
import re
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import httpx

from ...schemas.text import as_utf8, count_of
from ...schemas.url import is_local
from .deadline import within
from .tasks import DISPUTED, KEY, SEQS

T = TypeVar("T")
PAGE = 1000
BATCH_TASKS = 500
BATCH_BYTES = 8_000_000
ONCE: dict[str, Any] = {"max_retries": 0}
"""For what must not be repeated blindly: the server may have done it before the connection broke."""
LIGHT = (
    "data,predictions,drafts,annotations_results,predictions_results,annotators,annotations_ids,"
    "comment_authors,file_upload,storage_filename,predictions_model_versions,state"
)
"""What a listing leaves out: the transcripts, and what takes the server a query for each task.

`updated_by` must stay: left out of the tasks it is left out of their annotations too, and nobody would see
that somebody changed a colleague's answer.
"""
MAX_BYTES = 512 * 1024 * 1024
"""Bytes of an answer once it is unpacked; a page of tasks has some megabytes."""
ENCODINGS = ("gzip", "deflate")
"""One block of these unpacks to 64 MiB at the most; of others, or of one within another, to gigabytes."""
MAX_SECONDS = 600.0
"""Seconds in which an answer, or a whole list of projects or people, must have come."""
MAX_LISTED = 100_000
"""Projects, or people, of a server; a list that goes on is not followed."""
PATIENCE = 20.0
"""Seconds that a push waits for a server that went away."""
TITLE = 50
"""Label Studio allows so many characters in a project's title."""
_HALF = re.compile(rb"\\u[dD][89a-fA-F]|\xed[\xa0-\xbf]")
"""What half a character begins with in JSON, which whole ones beyond U+FFFF do too."""


class LabelStudioError(Exception):
    """The server can't be reached, refuses the token, or answers something else than asked for."""


class Unreachable(LabelStudioError):
    """No answer: the server is down, or went away in the middle."""


@dataclass(frozen=True)
class Project:
    """A project as far as we need it."""

    id: int
    title: str
    description: str
    config: str
    created_at: str = ""
    """Tells it from a project of the same number on a server that was set up anew at the same address."""


@dataclass(frozen=True)
class ListedTask:
    """A task without its transcript: its key, where its lines come from, and its annotations."""

    id: int
    key: str | None
    seqs: tuple[int, ...]
    updated_at: str
    overlap: int
    annotations: list[dict[str, Any]]
    created_at: str = ""
    """Set for tasks of a file, which does not say whose it is: tasks of two servers have the same ids."""
    disputed: tuple[str, ...] | None = None
    """The codes that it is to settle; None where it asks about all."""


class Server:
    """A connection with a token; either kind of token will do."""

    def __init__(self, url: str, token: str) -> None:
        self.url = url.rstrip("/")
        self._token = token
        self._http = httpx.Client(timeout=120, follow_redirects=False, trust_env=not is_local(self.url))
        self._http.headers["accept-encoding"] = ", ".join(ENCODINGS)
        self._http.event_hooks = {"response": [self._bound]}
        self._client = self._call(lambda: _sdk(self.url, token, self._http))

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def check(self) -> str:
        """Who the token belongs to; LabelStudioError where it does not let us in."""
        return self._call(lambda: str(self._client.users.whoami().email))

    def invitation(self) -> str:
        """Where annotators sign up: whoever has this address gets an account."""
        return self.url + self._call(lambda: str(self._get("api/invite", {})["invite_url"]))

    def users(self) -> dict[int, str]:
        """E-mail addresses of everybody in the organisation, by id; of those who left it says `Deleted`."""
        emails = self._call(
            lambda: {int(user.id): as_utf8(str(user.email)) for user in self._some(self._client.users.list())}
        )
        return {number: email for number, email in emails.items() if "@" in email}

    def projects(self, mark: str) -> list[Project]:
        """The projects whose description contains `mark`, oldest first."""
        projects = self._call(
            lambda: [*map(_project, self._some(self._client.projects.list(page_size=PAGE)))]
        )
        return sorted((one for one in projects if mark in one.description), key=lambda project: project.id)

    def project(self, key: int) -> Project:
        """One project with its configuration."""
        return self._call(lambda: _project(self._client.projects.get(id=key)))

    def create(self, title: str, description: str, config: str, instruction: str, overlap: int) -> Project:
        """A new project; `overlap` annotations finish a task unless the task says otherwise."""
        project = self._call(
            lambda: self._client.projects.create(
                title=title[:TITLE],
                description=description,
                label_config=config,
                expert_instruction=instruction,
                show_instruction=True,
                maximum_annotations=overlap,
                enable_empty_annotation=False,
                show_collab_predictions=True,
                request_options=ONCE,
            )
        )
        return Project(int(project.id), title[:TITLE], description, config)

    def configure(self, key: int, config: str, description: str) -> None:
        """Put our configuration (and its mark in the description) back into a project."""
        self._call(lambda: self._client.projects.update(id=key, label_config=config, description=description))

    def upload(self, key: int, tasks: Sequence[dict[str, Any]]) -> None:
        """Import tasks once; where the connection breaks nobody knows whether they arrived: list and see."""
        self._call(lambda: self._client.projects.import_tasks(id=key, request=tasks, request_options=ONCE))

    def tasks(self, key: int, *, since: str | None = None) -> Iterator[ListedTask]:
        """The tasks of a project with their annotations; only those touched after `since` where given."""
        yield from self._listed(key, json.dumps(_since(since)) if since else None, LIGHT, fields="all")

    def heads(self, key: int) -> Iterator[ListedTask]:
        """The tasks of a project without their annotations: keys and ids."""
        yield from self._listed(key, None, f"{LIGHT},updated_by,annotations")

    def _listed(self, key: int, query: str | None, omit: str, **fields: str) -> Iterator[ListedTask]:
        bare = []
        for one in self._list(key, query, omit, "meta", **fields):
            if one.key:
                yield one
            else:
                bare.append(one.id)
        if bare:  # imported by hand without our meta: the key may be in the data
            yield from self._list(key, json.dumps(_among(bare)), "predictions,drafts", "data", **fields)

    def _list(
        self, key: int, query: str | None, omit: str, place: str, **fields: str
    ) -> Iterator[ListedTask]:
        parameters: dict[str, Any] = {"project": key, "page_size": PAGE, "omit": omit, **fields}
        if query:
            parameters["query"] = query
        offset, total, ids = 0, 1, set[int]()
        while offset < total:
            parameters["page"] = offset // PAGE + 1
            count, tasks = self._call(lambda: _page(self._get("api/tasks/", parameters), place))
            offset, total = offset + PAGE, count
            ids |= (new := {task.id for task in tasks} - ids)
            if not new and offset < total:
                raise LabelStudioError(f"{self.url}: it promises {total:,} tasks and lists {len(ids):,}")
            yield from tasks

    def _some(self, items: Iterable[T]) -> Iterator[T]:
        """All items; LabelStudioError where there are too many of them."""
        for number, item in enumerate(items):
            if number == MAX_LISTED:
                raise LabelStudioError(f"{self.url}: a list of more than {MAX_LISTED:,} goes on and on")
            yield item

    def _bound(self, response: httpx.Response) -> None:
        """Have an answer unpacked here, and its reading end where it is too long."""
        assert isinstance(response.stream, httpx.SyncByteStream)
        encoding = response.headers.pop("content-encoding", "identity").strip().lower()
        if encoding not in ("identity", *ENCODINGS):
            raise LabelStudioError(f"{self.url}: an answer in an encoding that was not asked for")
        headers = {"content-encoding": encoding}
        response.stream = _Bounded(httpx.Response(200, headers=headers, stream=response.stream), self.url)

    def _get(self, path: str, params: dict[str, Any]) -> Any:
        """JSON as it comes, by the SDK's own client: its models of 2,000 tasks cost more than the server."""
        from label_studio_sdk.core.api_error import ApiError

        answer = self._client._client_wrapper.httpx_client.request(path, method="GET", params=params)
        body = _json(answer.content) if "json" in answer.headers.get("content-type", "") else answer.text
        if not answer.is_success:
            raise ApiError(status_code=answer.status_code, body=body)
        return body

    def _call(self, do: Callable[[], T]) -> T:
        from label_studio_sdk.core.api_error import ApiError

        try:
            return within(MAX_SECONDS, do)
        except TimeoutError:
            self.close()  # what was sent is not to arrive later, when it was sent again
            message = f"{self.url}: an answer that takes more than {MAX_SECONDS:.0f} s"
            raise LabelStudioError(message) from None
        except ApiError as error:
            message = _refusal(self.url, error.status_code, error.body, self._token)
            raise LabelStudioError(message) from None
        except httpx.HTTPError as error:
            raise Unreachable(f"{self.url}: no answer from Label Studio ({type(error).__name__})") from None
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, RecursionError) as error:
            # What the SDK or we looked for is not there, or something else.
            message = f"{self.url}: that is no answer of Label Studio's ({type(error).__name__})"
            raise LabelStudioError(f"{message}; check LABEL_STUDIO_URL") from None


class _Bounded(httpx.SyncByteStream):
    """The unpacked body of an answer; LabelStudioError beyond MAX_BYTES."""

    def __init__(self, body: httpx.Response, url: str) -> None:
        self._body, self._url = body, url

    def __iter__(self) -> Iterator[bytes]:
        size = 0
        for block in self._body.iter_bytes():
            size += len(block)
            if size > MAX_BYTES:
                raise LabelStudioError(f"{self._url}: an answer of more than {MAX_BYTES >> 20} MiB")
            yield block

    def close(self) -> None:
        self._body.close()


def upload_missing(
    server: Server,
    project: int,
    tasks: Sequence[dict[str, Any]],
    progress: Callable[[int, int], None] = lambda count, total: None,
) -> int:
    """Import the tasks whose key the project lacks and return how many; safe to repeat at any time.

    Where the connection breaks, the project is listed again before anything is sent again, for PATIENCE
    seconds; then Unreachable says how far it got.
    """
    by_key = {str(task["data"][KEY]): task for task in tasks}
    present = {head.key for head in server.heads(project)}
    missing = [task for key, task in by_key.items() if key not in present]
    total, waited = len(missing), 0.0
    while missing:
        batch = _batch(missing)
        try:
            server.upload(project, batch)
            missing, waited = missing[len(batch) :], 0.0
        except Unreachable:
            if waited >= PATIENCE:
                raise Unreachable(
                    f"{server.url}: Label Studio went away after {total - len(missing)} of "
                    f"{count_of(total, 'task', 'tasks')}; "
                    "push again when it is back, only what is missing will be sent"
                ) from None
            time.sleep(1)
            waited += 1
            missing = _still_missing(server, project, missing)
        progress(total - len(missing), total)
    return total


def check_config(config: str, predictions: Sequence[list[dict[str, Any]]] = ()) -> None:
    """LabelStudioError where Label Studio would not take the configuration, or a prediction."""
    interface_class = _interface()
    try:
        interface = interface_class(config)
        interface.validate()
    except Exception as error:
        raise LabelStudioError(f"not a configuration that Label Studio takes: {error}") from error
    for result in predictions:
        problems = interface.validate_prediction({"result": result, "model_version": "x"}, return_errors=True)
        if problems:
            raise LabelStudioError(f"a prediction does not fit the configuration: {problems[0]}")


def _still_missing(server: Server, project: int, missing: list[dict[str, Any]]) -> list[dict[str, Any]]:
    try:
        present = {head.key for head in server.heads(project)}
    except Unreachable:
        return missing
    return [task for task in missing if task["data"][KEY] not in present]


def _batch(tasks: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """As many tasks from the front as go into one request."""
    batch: list[dict[str, Any]] = []
    size = 0
    for task in tasks[:BATCH_TASKS]:
        size += len(json.dumps(task))
        if batch and size > BATCH_BYTES:
            break
        batch.append(task)
    return batch


def _json(content: bytes) -> Any:
    """The value of JSON, with ? for halves of characters, which no ledger can hold: an annotator's note may
    have one."""
    value = json.loads(content)
    if _HALF.search(content):
        value = json.loads(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))
    return value


def _parse_task(task: dict[str, Any], place: str) -> ListedTask:
    """A listed task; what is ours of it stands in its `meta`, or in its `data` (`place`)."""
    ours = task.get(place) or {}
    seqs, disputed = ours.get("seqs"), ours.get(DISPUTED)
    return ListedTask(
        id=int(task["id"]),
        key=None if (key := ours.get(KEY)) is None else str(key),
        seqs=tuple(_seq(seq) for seq in seqs) if isinstance(seqs, list) else (),
        updated_at=str(task["updated_at"]),
        overlap=int(task.get("overlap") or 1),
        annotations=[_parse_annotation(one) for one in task.get("annotations") or []],
        disputed=tuple(map(str, disputed)) if isinstance(disputed, list) else None,
    )


def _seq(value: Any) -> int:
    """The seq of a line; ValueError where no event has it."""
    if (seq := int(value)) not in SEQS:
        raise ValueError("no event has this number")
    return seq


def _parse_annotation(annotation: Any) -> dict[str, Any]:
    """A listed annotation; TypeError for what is none. Its time, which the annotator's browser tells, is left
    out where it is no number."""
    if not isinstance(annotation, dict) or not isinstance(annotation.get("id"), int):
        raise TypeError("an annotation has a number")
    seconds = annotation.get("lead_time")
    is_time = isinstance(seconds, int | float) and abs(seconds) <= sys.float_info.max
    return {**annotation, "lead_time": seconds if is_time else None}


def _project(project: Any) -> Project:
    created = project.created_at.isoformat() if project.created_at else ""
    return Project(
        int(project.id), project.title or "", project.description or "", project.label_config or "", created
    )


def _since(moment: str) -> dict[str, Any]:
    return _filter("filter:tasks:updated_at", "greater", "Datetime", moment)


def _among(ids: list[int]) -> dict[str, Any]:
    return _filter("filter:tasks:id", "in_list", "Number", ids)


def _filter(column: str, operator: str, kind: str, value: Any) -> dict[str, Any]:
    item = {"filter": column, "operator": operator, "type": kind, "value": value}
    return {"filters": {"conjunction": "and", "items": [item]}}


def _page(body: Any, place: str) -> tuple[int, list[ListedTask]]:
    """How many tasks a project has, and those of a page."""
    return int(body["total"]), [_parse_task(task, place) for task in body["tasks"]]


def _refusal(url: str, status: int | None, body: Any, token: str) -> str:
    if status in (401, 403):
        return f"{url}: Label Studio refuses the token (HTTP {status}); check LABEL_STUDIO_API_KEY"
    if status is not None and 300 <= status < 400:
        return f"{url}: redirects elsewhere, which is not followed; set LABEL_STUDIO_URL to the final address"
    detail = body.get("detail") or body.get("validation_errors") if isinstance(body, dict) else body
    message = str(detail).replace(token, "***")[:300]
    return f"{url}: Label Studio answered HTTP {status}: {message}"


def _sdk(url: str, token: str, http: httpx.Client) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the SDK's imports warn about their own dependencies
        from label_studio_sdk import LabelStudio

    return LabelStudio(base_url=url, api_key=token, httpx_client=http)


def _interface() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from label_studio_sdk.label_interface import LabelInterface

    return LabelInterface
