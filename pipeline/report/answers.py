"""The three questions of an audit, each answered in sentences and a small table.

How did the team work, where did it fail, and how far can the judge that says so be trusted? The sentences are
computed; the tables have the numbers behind them. All else is in the full report.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import replace

from ...schemas import Agreement, Metric, Rate
from ...schemas.text import count_of
from .. import codebooks
from ..analyze import agreement, metrics, rates
from ..analyze import failures as findings
from ..store import Selection, Store, execute
from ..store.queries.selection import name_of
from .methods import facts
from .tables import Answer, Cell, Number, Table, count, of_metric
from .trust import earlier_versions, no_rate

ARM = ("system", "condition")
FEWEST = 5
"""An arm with fewer trajectories is not compared, and a mode rated on fewer comes after the others."""
ARMS, MODES, CODES = 10, 5, 5
"""At most so many are shown here; the full report has all."""
HEADLINES: dict[str, tuple[str, ...]] = {
    "Reached the goal": ("success_rate", "exact_match", "delivery_rate"),
    "Steps by people": ("human_intervention_rate",),
    "Failed steps": ("error_rate",),
}
"""Column -> the metrics that it may show: the first of which an arm of the system has a value."""
GOALS = HEADLINES["Reached the goal"]
UNSAID = "the log does not say"
DELIVERED = "Where no success is logged, a run that delivered reached the goal."
SHARES = frozenset(name for names in HEADLINES.values() for name in names)
Arm = dict[str, Metric]
BARE = "A share without an interval rests on too few independent runs: those of one instance count as one."
WITHOUT_OTHERS = "Labels of trajectories that the filters leave out do not count here."
UNFIT = "No trajectory fits the filters."
ALL_MODES = "coaudit judge --codebook failures --model MODEL"
"""Asks a judge that can find every mode."""
SUBSTANTIAL = 0.6
"""Cohen's kappa from which Landis and Koch (1977) call agreement substantial."""


def answers(store: Store, only: Selection | None = None) -> tuple[Answer, Answer, Answer]:
    """How the team worked, where it failed, and how far the judge can be trusted."""
    with store.hold_state():
        return of_rows(store, agreement.of_workspace(store, only=only), rates.rates(store, only=only), only)


def of_rows(
    store: Store, rows: Sequence[Agreement], corrected: Sequence[Rate], only: Selection | None = None
) -> tuple[Answer, Answer, Answer]:
    """The same, where agreement and rates are already known; what to run next is of the same sessions."""
    verdict = trust(rows, corrected)
    if only and verdict.table is None:
        verdict = replace(verdict, sentences=(*verdict.sentences, WITHOUT_OTHERS))
    options = only.options() if only else ""
    one, two, three = (
        replace(answer, further=f"{answer.further}{options}" if answer.further else "")
        for answer in (teamwork(store, only), failure(store, only), verdict)
    )
    return one, two, three


def teamwork(store: Store, only: Selection | None = None) -> Answer:
    """How the team worked, arm by arm."""
    question = "How did the team work?"
    rows = metrics.metrics(store, by=ARM, names=sorted(SHARES), only=only)
    arms: dict[tuple[str, str], Arm] = {}
    for row in rows:
        if row.metric in SHARES and row.participant is None and row.group:
            key = (name_of(row.group["system"]), name_of(row.group["condition"]))
            arms.setdefault(key, {}).setdefault(row.metric, row)
    if not arms:
        return Answer(question, *_empty_teamwork(store, only))
    sizes = {arm: max(row.n + row.missing for row in own.values()) for arm, own in arms.items()}
    goals = {system: _goal([own for (name, _), own in arms.items() if name == system]) for system, _ in arms}
    extremes = _extremes(arms, goals)
    largest = sorted(arms, key=lambda arm: -sizes[arm])[:ARMS]
    top = sorted({*largest, *(arm for _, own in extremes for arm in own)})
    table = Table(
        name="teamwork",
        title=question,
        caption=f"Shares with their 95 % intervals.{f' {DELIVERED}' if _by_delivery(arms, goals) else ''}",
        columns=("System", "Condition", "Runs", *HEADLINES),
        rows=tuple((*arm, count(sizes[arm]), *_headlines(arms[arm], goals[arm[0]])) for arm in top),
        heads=2,
    )
    rest = len(arms) - len(top)
    besides = " and those named above" * (len(top) > ARMS)
    many = f"Of {len(arms)} arms, the {ARMS} with most runs{besides} stand here."
    more: tuple[str, ...] = (many,) if rest else ()
    if any(isinstance(cell, Number) and _is_bare(cell) for row in table.rows for cell in row):
        more += (BARE,)
    if not any(own.get(name) for own in arms.values() for name in GOALS):
        more += ("No log says whether the goal was reached; coaudit outcomes import FILE adds it.",)
    sentences = (sentence for sentence, _ in extremes)
    return Answer(question, (*sentences, *more), table, "coaudit metrics --by system,condition")


def _by_delivery(arms: dict[tuple[str, str], Arm], goals: dict[str, str]) -> bool:
    """Whether any arm's share of runs that reached the goal is one of runs that delivered."""
    rows = (own.get(GOALS[-1]) for (system, _), own in arms.items() if goals[system] == GOALS[-1])
    return any(row is not None and row.value is not None for row in rows)


def _is_bare(cell: Number) -> bool:
    """Whether a share has no interval; counts never have one."""
    return cell.percent and cell.value is not None and not cell.interval


def _empty_teamwork(store: Store, only: Selection | None) -> tuple[tuple[str], None, str]:
    """Why nothing can be said of teams (sentences, no table), and the command that may help."""
    number = dict(facts(store, only))["Trajectories"]
    if number != "0":
        runs = count_of(number, "trajectory", "trajectories")
        sentence = f"Of {runs} no log says who took a step, whether it failed or what came of it."
        return (sentence,), None, "coaudit trajectory list"
    if only:
        return (UNFIT,), None, ""
    return ("No trajectory is here yet.",), None, "coaudit ingest PATH"


def _goal(arms: Sequence[Arm]) -> str:
    """The metric that counts as reaching the goal in all arms of a system."""
    with_value = {name for own in arms for name, row in own.items() if row.value is not None}
    # Where no arm has a value, show a metric that says why.
    names = {name for own in arms for name in own}
    return next((name for some in (with_value, names) for name in GOALS if name in some), GOALS[-1])


def _headlines(own: Arm, goal: str) -> Iterable[Cell]:
    for names in HEADLINES.values():
        row = own.get(goal if names is GOALS else names[0])
        yield Number(None, reason=UNSAID) if row is None else replace(of_metric(row), percent=True)


def _extremes(
    arms: dict[tuple[str, str], Arm], goals: dict[str, str]
) -> list[tuple[str, tuple[tuple[str, str], tuple[str, str]]]]:
    """Who reached the goal most and least often, of a system's arms that are large enough for an interval: a
    sentence a system, with the arms that it names.
    """
    sentences = []
    for system, goal in sorted(goals.items()):
        verb = "delivered" if goal == GOALS[-1] else "reached the goal"
        cells = [
            (next(iter(_headlines(own, goal))), condition)
            for (name, condition), own in arms.items()
            if name == system
        ]
        numbers = [(cell, name) for cell, name in cells if isinstance(cell, Number) and cell.interval]
        if len(numbers) > 1:
            (low, worst), *_, (high, best) = sorted(numbers, key=lambda one: (one[0].value or 0, one[1]))
            if low.value != high.value:
                first, last = best + _ties_text(high, numbers), worst + _ties_text(low, numbers)
                sentence = (
                    f"{first} {verb} most often, {_number_text(high)}; {last} least, {_number_text(low)}."
                )
                apart = (low.high or 0) < (high.low or 0)
                sentence = f"{system}: {sentence}{'' if apart else ' Their intervals overlap.'}"
                sentences.append((sentence, ((system, best), (system, worst))))
    return sentences


def _ties_text(cell: Number, numbers: Sequence[tuple[Number, str]]) -> str:
    """How many other arms have the same value, as words; empty without any."""
    others = sum(other.value == cell.value for other, _ in numbers) - 1
    return f" and {count_of(others, 'other', 'others')}" if others else ""


def _other_codebooks(store: Store, only: Selection | None) -> list[str]:
    """The codebooks with ratings, those of the first question apart."""
    where, values = (only or Selection()).where()
    query = f"""
        SELECT DISTINCT codebook FROM counted_ratings
        WHERE label IS NOT NULL AND trajectory_id IN (SELECT t.id FROM trajectories t WHERE {where})
        ORDER BY ALL
    """
    with store.reading() as connection:
        names = [str(name) for (name,) in execute(connection, query, values).fetchall()]
    return [name for name in names if name not in codebooks.PROCESS]


def failure(store: Store, only: Selection | None = None) -> Answer:
    """Where the team failed: the modes that were found in most trajectories."""
    question = "Where did it fail?"
    who = findings.raters(store, only=only)
    if not who:
        if only and findings.raters(store):
            return Answer(question, ("No failure is rated in what the filters leave.",), None, "")
        sentences: tuple[str, ...] = ("No failure is rated yet.",)
        if others := _other_codebooks(store, only):
            name = findings.FAILURES
            sentences = (
                f"This is answered by the codebook {name}, with which nothing is rated yet.",
                f"There are ratings with {', '.join(others)}: `coaudit rates` has the rates of their codes.",
            )
        return Answer(question, sentences, None, "coaudit judge --codebook failures --rater detectors")
    rater, kind = who[0]["rater"], who[0]["kind"]
    shares = [s for s in findings.shares(store, only=only) if s.rater == rater]
    book = codebooks.load(findings.FAILURES, store.workspace.codebooks)
    names = {code.code: code.name for code in book.codes}
    own = [s for s in shares if s.code in names]
    if not any(s.n for s in own):
        return _unanswered(question, rater, kind, who[0]["answers"], sum(s.missing for s in own))
    present = sorted((s for s in own if s.present), key=lambda s: (s.n < FEWEST, -(s.rate or 0), s.code))
    corrected = {} if kind == "human" else _corrected_rates(store, rater, only)
    table = Table(
        name="worst_modes",
        title=question,
        caption=f"Share of trajectories in which {rater} found the mode, with its 95 % interval.",
        columns=("Code", "Mode", "Found in", *(["Corrected by people"] if corrected else [])),
        rows=tuple(
            (
                s.code,
                names[s.code],
                Number(s.rate, *s.interval, s.n, percent=True),
                *([corrected.get(s.code, "")] if corrected else []),
            )
            for s in present[:MODES]
        ),
        heads=2,
    )
    sentences = _search_sentences(rater, own, len(names), len(present))
    if not present:
        return Answer(question, sentences, None, ALL_MODES if kind == "rule" else "coaudit report --full")
    first = Number(present[0].rate, *present[0].interval, present[0].n, percent=True)
    few = [s for s in present if s.n < FEWEST <= present[0].n]
    which = f"Of modes rated in {FEWEST} trajectories or more, the" if few else "The"
    worst = f"{which} most common is {present[0].code} {names[present[0].code]}: {_number_text(first)}."
    worst += _few_sentence(few)
    worst += _gap_sentence(findings.shares(store, by=ARM, only=only), rater, names)
    if not corrected and kind != "human":
        worst += " People have labelled none of it, so these are the judge's own rates, not corrected ones."
    further = "coaudit compare --by condition" if corrected else "coaudit sample --codebook failures"
    return Answer(question, (*sentences, worst), table, further)


def _unanswered(question: str, rater: str, kind: str, unclear: int, open_: int) -> Answer:
    """The answer where a rater has no usable one: how many failed, and how many are unclear, which only
    another judge can change."""
    failed = max(0, open_ - unclear)
    parts = [f"{failed:,} failed"] if failed else []
    parts += [f"{unclear:,} {'is' if unclear == 1 else 'are'} unclear"] if unclear else []
    again = f"coaudit judge --codebook failures --rater {shlex.quote(rater)} --model MODEL --retry-errors"
    sentence = f"{rater} gave no usable answer: {' and '.join(parts)}."
    return Answer(question, (sentence,), None, again if failed and kind == "llm" else ALL_MODES)


def _search_sentences(rater: str, shares: Sequence[findings.Share], modes: int, hits: int) -> tuple[str, ...]:
    """For how many modes a rater looked, in how many trajectories, how many it found and left open."""
    with_answers, open_ = [s for s in shares if s.n], sum(s.missing for s in shares)
    modes_text = (
        f"{modes} modes" if len(with_answers) == modes else f"{len(with_answers)} of the {modes} modes"
    )
    sizes = {s.n for s in with_answers}
    most = max(sizes)
    runs = f"{'up to ' if len(sizes) > 1 else ''}{most:,} {'trajectory' if most == 1 else 'trajectories'}"
    sentence = f"{rater} looked for {modes_text} in {runs} and found {hits or 'none'} of them."
    lacking = f"{open_:,} of its answers failed or are unclear, and count as neither."
    return (sentence, *([lacking] if open_ else []))


def _few_sentence(few: Sequence[findings.Share]) -> str:
    """In how many trajectories modes were found that were rated in few: a table may have no room for them."""
    listing = ", ".join(f"{s.code} in {s.present} of {s.n}" for s in few[:MODES])
    return f" Rated in fewer and found: {listing}{' …' * (len(few) > MODES)}." if few else ""


def _gap_sentence(shares: Sequence[findings.Share], rater: str, names: dict[str, str]) -> str:
    """Which mode differs most between two arms of a system that are large enough for an interval."""
    arms: dict[tuple[str, str], list[findings.Share]] = {}
    for share in shares:
        if share.rater == rater and share.code in names and share.n >= FEWEST:
            arms.setdefault((share.group[0], share.code), []).append(share)
    pairs = [
        (max(own, key=lambda s: s.rate or 0), min(own, key=lambda s: s.rate or 0)) for own in arms.values()
    ]
    gaps = [((high.rate or 0) - (low.rate or 0), high, low) for high, low in pairs]
    gap, most, least = max(gaps, key=lambda one: (one[0], one[1].code), default=(0, None, None))
    if most is None or least is None or not gap:
        return ""
    comparison = " against ".join(
        f"{_number_text(Number(share.rate, *share.interval, percent=True))} in {share.group[1]}"
        for share in (most, least)
    )
    apart = least.interval[1] is not None and least.interval[1] < (most.interval[0] or 0)
    where = f" ({most.group[0]})"
    verdict = "" if apart else " Their intervals overlap."
    mode = f"{most.code} {names[most.code]}"
    return f" The largest difference between conditions is on {mode}: {comparison}{where}.{verdict}"


def _corrected_rates(store: Store, judge: str, only: Selection | None) -> dict[str, Number]:
    rows = rates.rates(store, [findings.FAILURES], judge=judge, only=only)
    return {row.code: _rate(row) for row in rows if row.n_human}


def _rate(row: Rate) -> Number:
    return Number(
        row.rate, row.low, row.high, row.n_human, reason=row.reason, percent=not row.is_mean, mean=row.is_mean
    )


def trust(rows: Sequence[Agreement], every: Sequence[Rate]) -> Answer:
    """How far each judge agrees with people, and its rates before and after their labels correct them."""
    question = "How far can the judge be trusted?"
    codes = {(row.codebook, row.code) for row in rows}  # categories have rates but no agreement
    labelled = [r for r in every if r.n_human and r.judge and (r.codebook, r.code) in codes]
    several = [row for row in labelled if row.label is not None]  # of one code, which has no single rate
    labelled = [row for row in labelled if row.label is None]
    places = {(r.codebook, r.code) for r in every if r.label is None}
    others = {place: row for place, row in agreement.judge_kappas(rows).items() if place[:2] not in places}
    titles = codebooks.titles(
        [*((r.codebook, r.code) for r in (*labelled, *several)), *(place[:2] for place in others)]
    )
    corrected = {(titles[r.codebook, r.code], r.judge or ""): r for r in labelled}
    kappas = {key: row for key, rate in corrected.items() if (row := _kappa(rows, rate))}
    kappas |= {(titles[place[:2]], place[2]): row for place, row in others.items()}
    labels = {key: row.n_units for key, row in kappas.items()} | {k: r.n_human for k, r in corrected.items()}
    if not labels:
        return _without_labels(question, rows, every)
    earlier = earlier_versions({judge for _, judge in labels})
    ranked = sorted(labels, key=lambda key: (key[1] in earlier, -labels[key], key))
    table = Table(
        name="trust",
        title=question,
        caption="Cohen's kappa of the judge and people (the mean over people, or settled labels where gold "
        "has more units; on a scale with quadratic weights), and the rate of the code (on a scale the mean), "
        "corrected by their labels.",
        columns=("Code", "Judge", "Kappa", "Judge's rate", "Corrected rate", "Labels"),
        rows=tuple(
            (
                *key,
                _coefficient(kappas.get(key)),
                *_rates(corrected.get(key)),
                count(labels[key]),
            )
            for key in ranked[:CODES]
        ),
        heads=2,
    )
    off = {
        (titles[r.codebook, r.code] + r.suffix, r.judge or "") for r in (*labelled, *several) if _is_off(r)
    }
    sentences = _judgement(kappas, sorted(off), list(labels))
    if len(ranked) > CODES:
        sentences += (f"The table has {CODES} of these {len(ranked)}, those with the most labels first.",)
    return Answer(question, sentences, table, f"coaudit validate {shlex.quote(ranked[0][1])}")


def _rates(row: Rate | None) -> tuple[Number, Number]:
    """A judge's rate before and after people's labels correct it."""
    if row is None:
        several = Number(None, reason="with several labels there is no single rate")
        return several, several
    own = Number(row.judge_rate, percent=not row.is_mean, reason=no_rate(row))
    return own, replace(_rate(row), n=None)


def _kappa(rows: Sequence[Agreement], rate: Rate) -> Agreement | None:
    own = [row for row in rows if (row.codebook, row.code) == (rate.codebook, rate.code)]
    return agreement.with_people(own, rate.judge or "")


def _coefficient(row: Agreement | None) -> Number:
    if row is None:
        return Number(None, reason="not on the same units")
    return Number(row.value, row.low, row.high, reason=row.reason)


def _judgement(
    kappas: dict[tuple[str, str], Agreement],
    off: Sequence[tuple[str, str]],
    labelled: Sequence[tuple[str, str]],
) -> tuple[str, ...]:
    """What people's labels show of each judge, and of which codes its own rate is `off` (code and judge);
    only what the intervals confirm is claimed."""
    judges = list(dict.fromkeys(judge for _, judge in labelled))
    sentences = [_agreement_sentence(judge, kappas, labelled, alone=len(judges) == 1) for judge in judges]
    if off:
        items = [title if len(judges) == 1 else f"{title} of {judge}" for title, judge in off]
        listing = ", ".join(items[:3]) + (" …" if len(off) > 3 else "")
        whose = "its own" if len(judges) == 1 else "judges' own"
        verb, them = ("lie", "them") if len(off) > 1 else ("lies", "it")
        sentences.append(
            f"{len(off)} of {whose} rates {verb} outside the corrected interval ({listing}): "
            f"do not print {them}."
        )
    return tuple(sentences)


def _is_off(row: Rate) -> bool:
    """Whether a judge's own rate lies outside the interval of the corrected one."""
    if row.judge_rate is None or row.low is None or row.high is None:
        return False
    return not row.low <= row.judge_rate <= row.high


def _agreement_sentence(
    judge: str,
    kappas: dict[tuple[str, str], Agreement],
    labelled: Sequence[tuple[str, str]],
    *,
    alone: bool,
) -> str:
    """On how many codes one judge agrees with people, on how many it does not, and how many are open."""
    own = [kappas.get(key) for key in labelled if key[1] == judge]
    sure = sum(row is not None and row.low is not None and row.low >= SUBSTANTIAL for row in own)
    poor = sum(row is not None and row.high is not None and row.high < SUBSTANTIAL for row in own)
    return (
        f"Of {len(own)} code{'s' * (len(own) != 1)} with labels by people, {'the judge' if alone else judge} "
        f"agrees substantially (kappa of {SUBSTANTIAL} or more, by its interval) on {sure}, does not on "
        f"{poor}, and {len(own) - sure - poor} {'is' if len(own) - sure - poor == 1 else 'are'} open."
    )


def _without_labels(question: str, rows: Sequence[Agreement], every: Sequence[Rate]) -> Answer:
    """The answer where no judge can be compared with people: what is missing, and how far raters agree."""
    books = [row.codebook for row in every if row.n_human]
    books += [str(row.codebook) for row in rows if _is_alpha(row, agreement.PEOPLE)]
    if books:
        sentence = "No judge rated what people labelled, so it is not known how often a judge is right."
        sentences = _alpha_sentence(rows, agreement.PEOPLE, "Agreement among people is {}.")
        return Answer(
            question, (sentence, *sentences), None, f"coaudit judge --codebook {books[0]} --model MODEL"
        )
    sentence = "Nobody has labelled a unit, so it is not known how often the judge is right."
    alike = "Agreement among judges is {}, which proves little: they may make the same errors."
    sentences = _alpha_sentence(rows, agreement.JUDGES, alike)
    return Answer(question, (sentence, *sentences), None, "coaudit sample --codebook CODEBOOK")


def _alpha_sentence(rows: Sequence[Agreement], population: str, sentence: str) -> tuple[str, ...]:
    """A sentence with the least and the greatest alpha of a population; none where it has none."""
    alphas = [row for row in rows if _is_alpha(row, population) and row.value is not None]
    if not alphas:
        return ()
    ranked = sorted(alphas, key=lambda row: (row.value or 0, row.code))
    names = codebooks.titles((row.codebook, row.code) for row in alphas)
    ends = (ranked[0], ranked[-1])
    least, most = (f"α = {row.value:.2f} ({names[row.codebook, row.code]})" for row in ends)
    return (sentence.format(least if len(ranked) == 1 else f"between {least} and {most}"),)


def _is_alpha(row: Agreement, population: str) -> bool:
    """Whether a row is the alpha of a population, or of a part of it."""
    return row.coefficient == "krippendorff_alpha" and (row.population or "").startswith(population)


def _number_text(number: Number) -> str:
    """A value with its interval, or with why there is none."""
    return f"{number.text} {number.bounds}".strip()
