"""Differences between groups of trajectories, metric by metric and code by code.

A comparison contrasts the very totals that `metrics` estimates. Codes that people labelled are compared by
corrected rates, for a judge may err more in one group than in the other; where no person labelled, the row
says that it is the judge's word alone. Groups are compared within a system, and p-values are corrected within
a family: one system and one question (the metrics, or one codebook).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import combinations, product
from typing import Any

import duckdb
import numpy as np
from numpy.typing import NDArray

from ...annotation.statistics import Comparison, comparisons
from ...annotation.statistics.corrected import FORMS, corrected
from ...annotation.statistics.estimate import Bounds, Totals, effective_number, totals
from ...annotation.statistics.intervals import Ints
from ...schemas import GOLD, Codebook
from ...schemas.metric import without_suffix
from ..errors import UsageError
from ..store import AMONG, Selection, Store, dictionaries, execute, insert, texts
from ..store.queries.groupings import keys_of
from ..store.queries.selection import name_of
from . import process
from .choice import check_rater, crowds, only_settled, reward_query
from .counts import CODEBOOKS, Process, places
from .designs import Designs
from .failures import uneven_weights
from .matrices import rated_codes
from .matrix import Rated, chosen_books, unit_groups
from .quantities import Quantity, quantities
from .rates import audit
from .totals import CLUSTER, HEADS, RATES, bounds_of, cluster_of, groups

CORRECTIONS = ("holm", "benjamini_hochberg")
Clusters = NDArray[np.uint64]
Group = tuple[str | None, str | None]
"""A system (None where systems are compared) and the name of a group in it, None for none."""
MEASURED = "measured"
ESTIMATED = "estimated from the units rated"
JUDGE_ONLY = "judge only: its errors are not corrected"
OWN_LABELS = "the rater's own labels"
WEIGHTED = "weighted by 1/π"
CORRECTED = "corrected by people's labels"
PEOPLE = "people's labels"
SEPARATOR = chr(31)
PERSON = "person"
"""The cluster of all sessions of the same people."""
MANY_NAMES = 2
"""Names of people in a system up to which these are no persons' own."""
_IS_PERSON = "p.kind = 'human' AND NOT coalesce(p.simulated, false)"
METRICS = "metrics"
"""The question of all that is measured; those of codes are their codebooks."""


@dataclass(frozen=True, eq=False)
class Question:
    """A metric or code of one system whose groups are to be compared, and what its rows rest on.

    `samples` are totals by group; of a code that people labelled, `labelled` are a judge's ratings beside
    theirs, and the cluster (units,) of each unit, and `quantity` is what of it is compared. `untested` groups
    say why there is no test of them.
    """

    name: str
    system: str | None
    family: str
    rater: str | None
    basis: str
    samples: dict[str, Totals]
    labelled: dict[str, tuple[Rated, Clusters]] | None = None
    quantity: Quantity | None = None
    untested: Mapping[str, str] = field(default_factory=dict)
    definition: str | None = None
    """What its name leaves open, such as the λ of a reward."""


def compare(
    store: Store,
    by: str,
    *,
    metrics: Sequence[str] = (),
    rater: str | None = None,
    correction: str = "holm",
    estimator: str = FORMS[0],
    penalty: float = 0.08,
    pair: tuple[str, str] | None = None,
    cluster: str | None = None,
    only: Selection | None = None,
) -> list[dict[str, Any]]:
    """Every pair of groups of a system on every metric and code, p-values corrected within families.

    With a `pair` that one alone, the first minus the second, and p-values corrected for its tests. Instances
    of a task that both groups ran are paired, the rest is compared beside them. `penalty` is the λ of the
    reward T - λC. Sessions with the same `cluster`, a field, tag or PERSON, count as one observation in place
    of the runs of an instance. UsageError for an unknown group, metric, rater, correction or estimator.
    """
    if correction not in CORRECTIONS:
        raise UsageError(f"--correction must be one of {', '.join(CORRECTIONS)}, got {correction!r}")
    if estimator not in FORMS:
        raise UsageError(f"--estimator must be one of {', '.join(FORMS)}, got {estimator!r}")
    with store.reading() as connection:
        (key,) = keys_of(connection, [by])
        if rater is not None:
            raters = connection.execute("SELECT DISTINCT rater FROM counted_ratings").fetchall()
            check_rater(rater, (name for (name,) in raters))
        _select(connection, key[1], pair, only)
        # Instances are numbered within tasks: only the default tells those of one number apart.
        key_of_cluster = None if cluster in (None, "instance") else _cluster_key(connection, cluster)
        own = cluster_of(connection, [by], key_of_cluster)
        many = connection.execute("SELECT count(DISTINCT system) > 1 FROM selected").fetchall()[0][0]
        rows = [
            *_metric_questions(connection, by, key[1], rater, penalty, own),
            *_code_questions(store, connection, by, key[1], rater, own),
        ]
    names = sorted({question.name for question in rows})
    if unknown := [name for name in metrics if name not in names]:
        raise UsageError(f"no metric or code {unknown[0]!r}, expected one of {', '.join(names)}")
    selection = [question for question in rows if not metrics or question.name in metrics]
    return [
        {**row, "statement": f"{row['system']}: {row['statement']}"} if many and row["system"] else row
        for row in _test(selection, by, pair, correction, estimator, cluster or "instance")
    ]


def ungrouped(store: Store, by: str, *, only: Selection | None = None) -> tuple[int, int]:
    """How many trajectories are in no group, and how many there are; of PERSON, those without a name."""
    where, values = (only or Selection()).where()
    with store.reading() as connection:
        expression = _cluster_key(connection, by)
        query = f"SELECT count(*) - count({expression}), count(*) FROM trajectories t WHERE {where}"
        without, total = execute(connection, query, values).fetchall()[0]
    return without, total


def crowd_questions(store: Store) -> dict[str, int]:
    """Metric -> size of the crowd that rated for it: by one of these people it is compared only if asked
    for."""
    with store.reading() as connection:
        crowd_sizes = crowds(connection)
    metrics = {codebook: metric for metric, codebook in CODEBOOKS.items()}
    return {metrics[name]: size for name, size in sorted(crowd_sizes.items()) if name in metrics}


def repeated_people(
    store: Store, by: Sequence[str] = (), *, cluster: str | None = None, only: Selection | None = None
) -> tuple[int, str | None]:
    """How many people of several took part in several clusters of a group, and one of them: sessions that are
    no runs of one instance, or by PERSON those of unlike teams. These count as independent.

    Names that are in every session of a system say who speaks (user, expert), not who it is; so do those of a
    system that has no more than MANY_NAMES, or in which one name alone returns.
    """
    where, values = (only or Selection()).where()
    with store.reading() as connection:
        groups = "".join(f", {expression}" for _, expression in keys_of(connection, by))
        key = CLUSTER if cluster is None else f"hash({_cluster_key(connection, cluster)})"
        query = f"""
            WITH sessions AS (
                SELECT t.id, t.system, {key} AS cluster, count(*) OVER (PARTITION BY t.system) AS every,
                    hash('g'{groups}) AS place
                FROM trajectories t WHERE {where}
            ), places AS (
                SELECT s.system, p.name, s.place, count(DISTINCT s.cluster) AS clusters, count(*) AS own,
                    any_value(every) AS every
                FROM sessions s JOIN participants p ON p.trajectory_id = s.id
                WHERE {_IS_PERSON} GROUP BY ALL
            ), people AS (
                SELECT system, name, max(clusters) AS clusters, sum(own) = any_value(every) AS always
                FROM places GROUP BY ALL
            )
            SELECT coalesce(sum(number), 0)::BIGINT, min(name) FROM (
                SELECT count(*) FILTER (clusters > 1 AND NOT always) AS number,
                    min(name) FILTER (clusters > 1 AND NOT always) AS name
                FROM people GROUP BY system HAVING count(*) > {MANY_NAMES} AND number > 1
            )
        """
        number, name = execute(connection, query, values).fetchall()[0]
    return number, name


def _cluster_key(connection: duckdb.DuckDBPyConnection, cluster: str) -> str:
    """The SQL expression over `selected t` of what is the same in a cluster: a field, a tag (one that is
    called PERSON, too), or the people."""
    try:
        return keys_of(connection, [cluster])[0][1]
    except UsageError:
        if cluster != PERSON:
            raise
    return (
        f"(SELECT string_agg(p.name, chr(31) ORDER BY p.name) FROM participants p "
        f"WHERE p.trajectory_id = t.id AND {_IS_PERSON})"
    )


def _select(
    connection: duckdb.DuckDBPyConnection,
    expression: str,
    pair: tuple[str, str] | None,
    only: Selection | None,
) -> None:
    """Make `selected`, the trajectories that are compared; UsageError for a group that has none."""
    where, values = (only or Selection()).where()
    both = "" if pair is None else f" AND ({expression})::VARCHAR {AMONG}"
    query = f"CREATE TEMP TABLE selected AS SELECT t.* FROM trajectories t WHERE {where}{both}"
    execute(connection, query, [*values, *([texts(pair)] if pair else [])])
    if pair is not None:
        names = {
            str(row[0])
            for row in connection.execute(f"SELECT DISTINCT {expression} FROM selected t").fetchall()
        }
        if absent := [name for name in pair if name not in names]:
            raise UsageError(f"no trajectory is in group {absent[0]!r}")


def _test(
    questions: Sequence[Question],
    by: str,
    pair: tuple[str, str] | None,
    correction: str,
    estimator: str,
    cluster: str,
) -> list[dict[str, Any]]:
    heads: list[dict[str, Any]] = []
    samples: list[tuple[Totals, Totals]] = []
    precomputed: list[Comparison | None] = []
    nothing = totals(np.array([]))
    for question in sorted(questions, key=lambda q: (q.system or "", q.family, q.name, q.rater or "")):
        by_group = question.labelled or question.samples
        names = sorted(by_group) if pair is None else [name for name in pair if name in by_group]
        for first, second in combinations(names, 2):
            heads.append(_head(question, by, first, second) | {"cluster": cluster})
            if question.labelled is None:
                both = question.samples[first], question.samples[second]
                doubts = [
                    f"of {one} {why}" for one, why in question.untested.items() if one in (first, second)
                ]
                samples.append(both)
                precomputed.append(
                    comparisons.untested_comparison(*both, " and ".join(doubts)) if doubts else None
                )
            else:
                samples.append((nothing, nothing))
                precomputed.append(_corrected_comparison(question, first, second, estimator))
    families = [(head["system"], head["question"]) for head in heads]
    rows = comparisons.contrast_all(samples, families, correction, precomputed)  # type: ignore[arg-type]
    families_of: dict[str, set[str]] = {}
    for question in questions:
        families_of.setdefault(without_suffix(question.name), set()).add(question.family)
    shared = {name for name, own in families_of.items() if len(own) > 1}
    return [_row(head, row, correction, shared) for head, row in zip(heads, rows, strict=True)]


def _head(question: Question, by: str, first: str, second: str) -> dict[str, Any]:
    return {
        "metric": question.name,
        "by": by,
        "groups": [first, second],
        "rater": question.rater,
        "system": question.system,
        "question": question.family,
        "basis": question.basis,
        "definition": question.definition,
    }


def _corrected_comparison(question: Question, first: str, second: str, estimator: str) -> Comparison:
    assert question.labelled is not None and question.quantity is not None
    quantity = question.quantity
    sides = []
    for name in (first, second):
        code, clusters = question.labelled[name]
        result = audit(code, question.rater, quantity)
        if result is None:
            reason = f"nobody rated {name}"
            return Comparison("corrected rates", None, None, None, None, None, None, 0, reason)
        sides.append((result[0], clusters[result[1]]))
    (one, here), (other, there) = sides
    return _in_units(corrected(one, other, (here, there), form=estimator), quantity)


def _in_units(row: Comparison, quantity: Quantity) -> Comparison:
    """A comparison of places from 0 to 1 in the values of the quantity."""
    effect, low, high = (
        None if value is None else value * quantity.reach for value in (row.effect, row.low, row.high)
    )
    first, second = quantity.value(row.first), quantity.value(row.second)
    return replace(row, first=first, second=second, effect=effect, low=low, high=high)


def improvements(
    store: Store, metric: str, baseline: str, *, only: Selection | None = None
) -> dict[tuple[str, str, str, str], Comparison]:
    """(Condition, setting, task, agent model) -> its trajectories against those of the `baseline` condition.

    Same task, same model; cogym only; where the model ran the baseline too (Co-Gym, table 2).
    """
    where, values = (only or Selection()).where()
    query = f"""
        SELECT t.task, t.agent_model, t.condition, t.setting, m.value, {CLUSTER} AS cluster
        FROM measures m JOIN trajectories t ON t.id = m.trajectory_id
        WHERE m.metric = ? AND m.value IS NOT NULL AND t.system = 'cogym'
            AND t.setting IS DISTINCT FROM 'real' AND t.condition IS NOT NULL AND {where}
        ORDER BY t.id
    """
    with store.reading() as connection:
        result = dictionaries(connection, query, [metric, *values])
    arms: dict[tuple[str, str], dict[tuple[str, str], list[tuple[int, float]]]] = {}
    for row in result:
        arm = arms.setdefault((name_of(row["task"]), name_of(row["agent_model"])), {})
        # The agent alone has no user, so that its logs say no setting: it is compared with any.
        group = (
            (baseline, "") if row["condition"] == baseline else (row["condition"], name_of(row["setting"]))
        )
        arm.setdefault(group, []).append((row["cluster"], row["value"]))
    return {
        (condition, setting, task, model): comparisons.contrast(
            _cluster_totals(rows, metric), _cluster_totals(arm[baseline, ""], metric)
        )
        for (task, model), arm in arms.items()
        if (baseline, "") in arm
        for (condition, setting), rows in arm.items()
        if condition != baseline
    }


def _cluster_totals(rows: Sequence[tuple[int, float]], metric: str) -> Totals:
    names, values = np.array([name for name, _ in rows], dtype=np.uint64), np.array([v for _, v in rows])
    return totals(values, clusters=names, bounds=bounds_of(metric))


def _row(head: dict[str, Any], row: Comparison, correction: str, shared: Collection[str]) -> dict[str, Any]:
    """A row of the result; the statement of a code that is `shared` by several codebooks says whose it is."""
    what = head["metric"] + (f" of {head['question']}" if without_suffix(head["metric"]) in shared else "")
    what += "".join(f" ({head[key]})" for key in ("definition", "rater") if head[key])
    if head["basis"] != MEASURED:
        what += f" [{head['basis']}]"
    noun = "labelled units" if head["basis"] in (CORRECTED, PEOPLE) else ""
    statement = row.statement(what, *head["groups"], noun=noun, cluster=head["cluster"])
    words = {"subject": what, "statement": statement}
    return {**head, **asdict(row.named(*head["groups"])), "correction": correction, **words}


def _metric_questions(
    connection: duckdb.DuckDBPyConnection,
    by: str,
    expression: str,
    rater: str | None,
    penalty: float,
    cluster: str | None,
) -> Iterator[Question]:
    """Every metric, process metrics estimated where ratings lack."""
    connection.execute(f"""
        CREATE TEMP VIEW compared AS
        SELECT * FROM measures WHERE coalesce(definition, 'released') = 'released'
        UNION ALL {reward_query(penalty)}
    """)
    keys = _keys(by, expression)
    lacking, partial_metrics = process.incomplete_metrics(connection), set[tuple[str, str]]()
    query = "SELECT DISTINCT rater FROM counted_ratings WHERE rater_kind = 'human'"
    people = {None, *(name for (name,) in connection.execute(query).fetchall())}
    crowd_sizes = crowds(connection) if rater is None else {}
    disputes = only_settled(connection) if rater is None and GOLD in people else set()
    by_question: dict[tuple[str, str | None, str | None], dict[str, Totals]] = {}
    definitions: dict[str, str | None] = {}
    for group in groups(connection, keys, table="compared", participant="p.kind", cluster=cluster):
        head = dict(zip(HEADS, group.head, strict=True))
        metric, who = head["metric"] or "", head["rater"]
        if (who is not None and rater not in (None, who)) or group.keys[-1] is None:
            continue
        book = CODEBOOKS.get(metric)
        if book in (disputes if who == GOLD else crowd_sizes if who in people else ()):
            continue
        if (metric, who or "") in lacking:
            partial_metrics.add((metric, who or ""))
        elif group.totals.n:
            scoring = f"/{head['scoring']}" if head["scoring"] else ""
            name = (
                RATES.get(metric, metric)
                + scoring
                + (f" of {head['participant']}" if head["participant"] else "")
            )
            by_question.setdefault((name, who, _system(by, group.keys)), {})[str(group.keys[-1])] = (
                group.totals
            )
            definitions[name] = head["definition"] if head["definition"] != "released" else None
    for (name, who, system), samples in by_question.items():
        basis = MEASURED if who in people else JUDGE_ONLY
        yield Question(name, system, METRICS, who, basis, samples, definition=definitions[name])
    designs = Designs(connection)
    for metric, who in sorted(partial_metrics):
        for question in _process_questions(designs, metric, who, by, keys, cluster):
            yield question if who in people else replace(question, basis=f"{ESTIMATED}; {JUDGE_ONLY}")


def _process_questions(
    designs: Designs,
    metric: str,
    rater: str,
    by: str,
    keys: Sequence[str],
    cluster: str | None,
) -> Iterator[Question]:
    """A process metric of a rater who did not answer every unit."""
    by_system: dict[str | None, dict[str, Process]] = {}
    groups = places(designs.connection, keys, cluster=cluster)
    for values, row in process.estimates(designs, metric, rater, groups):
        if row.sample is not None and values[-1] is not None:
            by_system.setdefault(_system(by, values), {})[str(values[-1])] = row
    for system, rows in by_system.items():
        samples = {name: row.sample for name, row in rows.items() if row.sample}
        untested = {name: row.untested for name, row in rows.items() if row.untested}
        yield Question(metric, system, METRICS, rater, ESTIMATED, samples, untested=untested)


def _keys(by: str, expression: str) -> list[str]:
    return [expression] if by == "system" else ["t.system", expression]


def _system(by: str, values: Sequence[str | None]) -> str | None:
    return None if by == "system" else values[0]


def _code_questions(
    store: Store,
    connection: duckdb.DuckDBPyConnection,
    by: str,
    expression: str,
    rater: str | None,
    cluster: str | None,
) -> Iterator[Question]:
    """Every code that people labelled, of a judge corrected by their labels, and others by each rater's own;
    those of a crowd's people only where one is asked for."""
    query = "SELECT DISTINCT codebook, code, rater, rater_kind FROM counted_ratings WHERE NOT opening"
    rows = connection.execute(query).fetchall()
    labelled = {(book, code) for book, code, name, kind in rows if kind == "human" or name == GOLD}
    names = sorted({book for book, _ in labelled})
    books = chosen_books(store, names) if names else []
    people = {
        (book.name, code.code + quantity.suffix)
        for book in books
        for code in book.codes
        for quantity in quantities(book)
        if (book.name, code.code) in labelled
    }
    kinds = {name: kind for _, _, name, kind in rows}
    disputes = only_settled(connection) if rater is None and GOLD in kinds else set()
    crowd_sizes = crowds(connection) if rater is None else {}
    own = {
        (book, name)
        for book, _, name, kind in rows
        if rater in (None, name)
        and book not in (disputes if name == GOLD else crowd_sizes if kind == "human" else ())
    }
    weighted = _weigh(connection, own, by, expression)
    for question in list(_rater_questions(store, connection, by, expression, weighted, cluster)):
        if (question.family, question.rater) not in own:
            continue
        by_people = (question.family, question.name) in people
        corrects = by_people and kinds[question.rater or ""] != "human"
        alone = by_people and rater != question.rater
        if not corrects and not alone:
            basis = OWN_LABELS if kinds[question.rater or ""] == "human" else JUDGE_ONLY
            if (question.family, question.rater) in weighted:
                basis += f"; {WEIGHTED}"
            yield replace(question, basis=basis)
    group_of = _groups_of(connection, by, expression, cluster) if books else {}
    for book in books:
        grouping: Grouping | None = None
        for code in rated_codes(connection, book):
            grouping = grouping or Grouping.of(code, group_of)  # a codebook's codes have the same units
            if (book.name, code.code) in labelled:
                yield from _label_questions(code, grouping, rater)


def _weigh(
    connection: duckdb.DuckDBPyConnection, raters: Collection[tuple[str, str]], by: str, expression: str
) -> set[tuple[str, str]]:
    """Make `weights`, of the units of raters (codebook, rater) that samples took unevenly; returns these
    raters. An answer without weight stands for none: no sample took its unit.

    They are 1 on average in each group, so that they are 1 in groups that were drawn evenly.
    """
    fields = "codebook VARCHAR, rater VARCHAR, trajectory_id VARCHAR, event INTEGER, weight DOUBLE"
    connection.execute(f"CREATE TEMP TABLE design_weights ({fields})")
    designs, weighted = Designs(connection), set[tuple[str, str]]()
    for codebook, rater in sorted(raters):  # a codebook's units are numbered once
        weights = uneven_weights(designs, rater, codebook)
        if weights is None:
            continue
        units = connection.execute("SELECT trajectory_id, event FROM rated_units ORDER BY place").fetchall()
        rows = [
            {"codebook": codebook, "rater": rater, "trajectory_id": key, "event": event, "weight": weight}
            for (key, event), weight in zip(units, weights.tolist(), strict=True)
            if weight
        ]
        insert(connection, "design_weights", rows)
        weighted.add((codebook, rater))
    connection.execute(f"""
        CREATE TEMP TABLE weights AS
        SELECT codebook, rater, trajectory_id, event,
            CASE WHEN min(weight) OVER g = max(weight) OVER g THEN 1.0 ELSE weight / avg(weight) OVER g END
                AS weight
        FROM design_weights LEFT JOIN selected t ON t.id = trajectory_id
        WINDOW g AS (PARTITION BY codebook, rater, {", ".join(_keys(by, expression))})
    """)
    return weighted


def _groups_of(
    connection: duckdb.DuckDBPyConnection, by: str, expression: str, cluster: str | None
) -> dict[str, tuple[Group, int]]:
    """Id of each selected trajectory -> its group and its cluster."""
    of_session = cluster or "hash('t', t.id)"
    query = f"SELECT t.id, t.system, {expression}, {of_session} FROM selected t"
    return {
        key: ((None if by == "system" else system, None if value is None else str(value)), number)
        for key, system, value, number in connection.execute(query).fetchall()
    }


@dataclass(frozen=True, eq=False)
class Grouping:
    """The groups of a codebook's units: the place (units,) of each one's in `groups`, and its cluster
    (units,). Units of trajectories that are not compared are in the group (None, None).
    """

    groups: list[Group]
    places: Ints
    clusters: Clusters

    @classmethod
    def of(cls, code: Rated, group_of: Mapping[str, tuple[Group, int]]) -> Grouping:
        """The grouping of a code's units; `group_of` are groups and clusters by the trajectory's id."""
        nowhere: tuple[Group, int] = ((None, None), 0)
        of_trajectory = [group_of.get(key, nowhere) for key in code.ids]
        clusters = np.array([number for _, number in of_trajectory], dtype=np.uint64)
        return cls(*unit_groups(code, (group for group, _ in of_trajectory)), clusters[code.trajectory])


def _rater_questions(
    store: Store,
    connection: duckdb.DuckDBPyConnection,
    by: str,
    expression: str,
    weighted: Collection[tuple[str, str]],
    cluster: str | None,
) -> Iterator[Question]:
    """For each rater the share of units with each code, or label, and on a scale the mean: of what it rated,
    or where that has `weights`, of all that it stands for."""
    connection.execute(
        "CREATE TEMP TABLE answers (codebook VARCHAR, labels VARCHAR[], answer VARCHAR, named VARCHAR)"
    )
    bounds = {book.name: _answers(connection, book) for book in chosen_books(store, ())}
    connection.execute("""
        CREATE TEMP VIEW coded AS
        SELECT c.codebook || chr(31) || code || a.named AS metric, c.trajectory_id,
            CASE WHEN a.answer IS NULL THEN label::DOUBLE ELSE (label = a.answer)::DOUBLE END AS value,
            coalesce(w.weight, 1.0) AS weight, NULL::VARCHAR AS reason, NULL::VARCHAR AS participant, c.rater,
            NULL::VARCHAR AS scoring, NULL::VARCHAR AS definition
        FROM counted_ratings c JOIN answers a ON a.codebook = c.codebook
        LEFT JOIN weights w ON (w.codebook, w.rater, w.trajectory_id) = (c.codebook, c.rater, c.trajectory_id)
            AND w.event IS NOT DISTINCT FROM c.event
        WHERE NOT c.opening AND list_contains(a.labels, label)
            AND (w.weight IS NOT NULL OR (c.codebook, c.rater) NOT IN (SELECT (codebook, rater) FROM weights))
    """)
    by_question: dict[tuple[str, str | None, str | None], dict[str, Totals]] = {}
    keys, limits = _keys(by, expression), lambda metric: bounds[metric.partition(SEPARATOR)[0]]
    for group in groups(connection, keys, table="coded", cluster=cluster, bounds=limits):
        if group.keys[-1] is not None and group.totals.n:
            name, rater, sample = group.head[0] or "", group.head[2], group.totals
            if (name.partition(SEPARATOR)[0], rater) in weighted and not sample.yes_no:
                sample = replace(sample, size=effective_number(sample.denominator))
            place = name, rater, _system(by, group.keys)
            by_question.setdefault(place, {})[str(group.keys[-1])] = sample
    for (name, rater, system), samples in by_question.items():
        book, _, code = name.partition(SEPARATOR)
        yield Question(code, system, book, rater, JUDGE_ONLY, samples)


def _answers(connection: duckdb.DuckDBPyConnection, book: Codebook) -> Bounds:
    """Insert into `answers` the `quantities` that are compared of a codebook; returns the bounds of values.

    Of a scale (answer: null) it is the labels' numbers.
    """
    of_code = quantities(book)
    for quantity in of_code:
        values = [book.name, list(book.labels), quantity.label, quantity.suffix]
        execute(connection, "INSERT INTO answers VALUES (?, ?, ?, ?)", values).fetchall()
    return of_code[0].bounds


def _label_questions(code: Rated, grouping: Grouping, rater: str | None) -> Iterator[Question]:
    """A code that people labelled: for each of its quantities a question a judge, or of people alone where
    none rated."""
    # Of a judge that saw a sample alone only people's labels count, which are compared once.
    raters: list[str | None] = [
        name for name in code.judges if name not in code.followers and rater in (None, name)
    ]
    if not raters and rater in (None, *code.followers):
        raters = [None]
    by_system: dict[str | None, dict[str, tuple[Rated, Clusters]]] = {}
    for place, (system, name) in enumerate(grouping.groups):
        by_name = by_system.setdefault(system, {})
        if name is not None:  # trajectories without a group are not compared
            units = grouping.places == place
            by_name[name] = code.where(units), grouping.clusters[units]
    for quantity, (system, by_name), judge in product(quantities(code.book), by_system.items(), raters):
        auditable = {name: own for name, own in by_name.items() if audit(own[0], judge, quantity) is not None}
        basis = PEOPLE if judge is None else CORRECTED
        name = code.code + quantity.suffix
        yield Question(name, system, code.book.name, judge, basis, {}, auditable, quantity)
