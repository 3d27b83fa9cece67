-- One row a trajectory and metric; see pipeline/analyze/metrics.py. NULL values carry their reason, and so
-- does a value that stands for one by a definition.

CREATE OR REPLACE VIEW outcome_values AS
-- A value that was imported stands before one from the log.
SELECT trajectory_id, name, baseline,
    arg_min(struct_pack(value := value, text := text, reason := reason), CASE WHEN imported THEN 0 ELSE 1 END) AS found,
    bool_or(imported) AS imported
FROM outcomes
GROUP BY trajectory_id, name, baseline;

-- The related work rubric's score / 5, where a run has no task_performance of its own (Co-Gym, appendix C):
-- gold's, else the only rater's. Several raters are never mixed; but where gold settled what people dispute,
-- the score that all of them gave to another run is as settled.
CREATE OR REPLACE VIEW rubric_performance AS
WITH scored AS (
    SELECT trajectory_id, rater, try_cast(label AS DOUBLE) / 5 AS score,
        CASE WHEN rater_kind = 'human' THEN score END AS by_people,
        bool_or(rater = 'gold') OVER () AS settles
    FROM counted_ratings WHERE codebook = 'related_work_quality' AND label IS NOT NULL
)
SELECT trajectory_id,
    CASE WHEN bool_or(rater = 'gold') THEN max(score) FILTER (rater = 'gold')
         WHEN count(DISTINCT rater) = 1 THEN max(score)
         WHEN any_value(settles) AND count(DISTINCT by_people) = 1 THEN max(by_people) END AS value,
    CASE WHEN NOT bool_or(rater = 'gold') AND count(DISTINCT rater) > 1
         THEN count(DISTINCT rater) || ' raters scored its quality and none is gold'
         ELSE 'its quality was rated unclear' END AS reason
FROM scored GROUP BY trajectory_id;

CREATE OR REPLACE VIEW outcome_measures AS
WITH logged AS (
    SELECT t.id AS trajectory_id,
        any_value(o.found) FILTER (o.name = 'delivered') AS delivered,
        any_value(o.found) FILTER (o.name = 'task_performance') AS performance,
        any_value(o.found) FILTER (o.name = 'outcome_rating') AS outcome_rating,
        any_value(o.found) FILTER (o.name = 'satisfaction') AS satisfaction,
        any_value(o.found) FILTER (o.name = 'communication_rating') AS communication_rating,
        any_value(o.found) FILTER (o.name = 'success') AS success,
        -- Compared with several others, it won against a share of them.
        CASE WHEN count(*) FILTER (o.name = 'preferred') > 0 THEN struct_pack(
            value := avg(o.found.value) FILTER (o.name = 'preferred'),
            text := NULL::VARCHAR,
            reason := any_value(o.found.reason) FILTER (o.name = 'preferred')
        ) END AS preferred,
        t.system
    FROM trajectories t LEFT JOIN outcome_values o ON o.trajectory_id = t.id
    GROUP BY t.id, t.system
),
wide AS (
    SELECT l.* REPLACE (
        CASE WHEN l.performance.value IS NULL AND r.trajectory_id IS NOT NULL
             THEN struct_pack(value := r.value, text := NULL::VARCHAR, reason := r.reason)
             ELSE l.performance END AS performance
    )
    FROM logged l LEFT JOIN rubric_performance r USING (trajectory_id)
)
SELECT 'delivered' AS metric, trajectory_id, delivered.value AS value,
    coalesce(delivered.reason, 'the log does not say') AS reason, NULL AS scoring
FROM wide WHERE system = 'cogym' OR delivered IS NOT NULL
UNION ALL
-- Quality is that of delivered results (Co-Gym, section 4.1).
SELECT 'task_performance', trajectory_id,
    CASE WHEN delivered.value = 1 THEN performance.value END,
    CASE WHEN delivered.value = 0 THEN 'nothing was delivered'
         WHEN delivered.value IS NULL THEN coalesce(delivered.reason, 'the log does not say whether it delivered')
         ELSE coalesce(performance.reason, 'the log has no performance rating') END, NULL
FROM wide WHERE system = 'cogym' OR performance IS NOT NULL
UNION ALL
SELECT 'collab_score', trajectory_id,
    CASE WHEN delivered.value = 0 THEN 0.0 ELSE delivered.value * performance.value END,
    CASE WHEN delivered.value IS NULL THEN coalesce(delivered.reason, 'the log does not say whether it delivered')
         ELSE coalesce(performance.reason, 'the log has no performance rating') END, 'automatic'
FROM wide WHERE system = 'cogym' OR performance IS NOT NULL
UNION ALL
-- Of a session that a person rated nothing delivered is 0 (Eq. 1), though they said nothing of the outcome.
SELECT 'collab_score', trajectory_id,
    CASE WHEN delivered.value = 0
              AND coalesce(outcome_rating.value, satisfaction.value, communication_rating.value) IS NOT NULL THEN 0.0
         ELSE delivered.value * outcome_rating.value / 5 END,
    CASE WHEN outcome_rating.value IS NULL THEN coalesce(outcome_rating.reason, 'no outcome_rating was given')
         ELSE coalesce(delivered.reason, 'the log does not say whether it delivered') END, 'human'
FROM wide WHERE system = 'cogym' OR outcome_rating IS NOT NULL
UNION ALL
SELECT 'outcome_rating', trajectory_id, outcome_rating.value,
    coalesce(outcome_rating.reason, 'no outcome_rating was given'), NULL
FROM wide WHERE system = 'cogym' OR outcome_rating IS NOT NULL
UNION ALL
SELECT 'satisfaction', trajectory_id, satisfaction.value,
    coalesce(satisfaction.reason, 'no satisfaction was given'), NULL
FROM wide WHERE system = 'cogym' OR satisfaction IS NOT NULL
UNION ALL
SELECT 'communication_rating', trajectory_id, communication_rating.value,
    coalesce(communication_rating.reason, 'no communication_rating was given'), NULL
FROM wide WHERE system = 'cogym' OR communication_rating IS NOT NULL
UNION ALL
SELECT 'success', trajectory_id, success.value, coalesce(success.reason, 'the log does not say'), NULL
FROM wide
WHERE success IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM computed c WHERE c.trajectory_id = wide.trajectory_id AND c.metric = 'success')
UNION ALL
SELECT 'won', trajectory_id, preferred.value, coalesce(preferred.reason, 'no preference was recorded'), NULL
FROM wide WHERE system = 'cogym' OR preferred IS NOT NULL
UNION ALL
-- Numbers under any other name, as they are. Those that a reader makes of a system's log stand in its own metrics.
SELECT 'outcome:' || o.name, o.trajectory_id, avg(o.found.value),
    coalesce(any_value(o.found.reason), 'the log has no number'), NULL
FROM outcome_values o JOIN trajectories t ON t.id = o.trajectory_id
WHERE o.found.text IS NULL AND (o.found.value IS NOT NULL OR o.found.reason IS NOT NULL)
    AND (o.imported OR (t.system, o.name) NOT IN (
        ('rehac', 'em'), ('rehac', 'f1'), ('rehac', 'task_reward'), ('rehac', 'finished'),
        ('overcooked', 'score'), ('overcooked', 'last_timestep'), ('overcooked', 'dialogues')
    ))
    AND o.name NOT IN (
        'delivered', 'task_performance', 'outcome_rating', 'satisfaction', 'communication_rating', 'success',
        'preferred'
    )
GROUP BY o.name, o.trajectory_id;

-- What each rater said of the units of each process codebook, by party: `answered` leaves out errors and
-- `unclear`; `spoken` says whether anybody said anything. Computed here, kept in the table `processed` (pipeline/store/tables/derived.py).
CREATE OR REPLACE VIEW processing AS
WITH books AS (
    SELECT DISTINCT name AS codebook, unit AS kind FROM codebooks
    WHERE name IN ('initiative', 'confirmation', 'halting')
        AND unit IN ('utterance', 'question_reply', 'human_message')
),
raters AS (SELECT DISTINCT codebook, rater FROM counted_ratings),
audited AS (SELECT trajectory_id, bool_or(kind = 'utterance') AS spoken FROM units GROUP BY trajectory_id),
seats AS (
    SELECT trajectory_id, name, kind, row_number() OVER (PARTITION BY trajectory_id ORDER BY name) - 1 AS seat
    FROM participants WHERE kind <> 'environment'
),
per_kind AS (
    SELECT trajectory_id, kind, actor, count(*) AS units FROM units WHERE NOT opening GROUP BY ALL
),
labels AS (
    SELECT trajectory_id, codebook, rater, actor, count(*) FILTER (label <> 'unclear') AS answered,
        count(*) FILTER (label = positive) AS positives
    FROM counted_ratings WHERE NOT opening GROUP BY ALL
)
SELECT b.codebook, r.rater, p.trajectory_id, a.spoken, p.name AS participant, p.kind AS party, p.seat,
    coalesce(k.units, 0) AS units, coalesce(s.answered, 0) AS answered, coalesce(s.positives, 0) AS positives
FROM books b
JOIN raters r ON r.codebook = b.codebook
CROSS JOIN seats p
JOIN audited a ON a.trajectory_id = p.trajectory_id
LEFT JOIN per_kind k ON k.trajectory_id = p.trajectory_id AND k.kind = b.kind AND k.actor = p.name
LEFT JOIN labels s
    ON s.trajectory_id = p.trajectory_id AND s.codebook = b.codebook AND s.rater = r.rater AND s.actor = p.name;

CREATE TABLE IF NOT EXISTS processed AS FROM processing WITH NO DATA;

-- Of one trajectory that was rated whole: what is missing is estimated over many (pipeline/analyze/process.py).
-- Co-Gym Eq. 2: H = -sum p_i log_N p_i over the team, N its size; 0 as soon as one party is silent. Where nobody
-- takes the initiative it has no value (`paper`); Co-Gym's evaluation counts 0 (`released`), and its table 2 with
-- it. Such a 0 keeps its reason. A log without messages (ReHAC's) has nothing to count.
CREATE OR REPLACE VIEW process_measures AS
WITH whole AS (
    SELECT codebook, rater, trajectory_id, spoken, sum(units) AS units, sum(answered) AS answered,
        sum(positives) AS positives, count(*) AS team, count(*) FILTER (party = 'human') AS humans,
        -- Somebody took no initiative whatever the unrated units are.
        bool_or(positives + units = answered) AS idle,
        sum(CASE WHEN positives > 0 THEN positives * ln(positives) ELSE 0 END) AS logs
    FROM processed GROUP BY ALL
)
SELECT 'initiative_entropy' AS metric, trajectory_id, rater,
    CASE WHEN team < 2 OR NOT spoken THEN NULL
         WHEN idle AND (positives > 0 OR definition = 'released') THEN 0.0
         WHEN answered = units AND positives > 0 THEN (ln(positives) - logs / positives) / ln(team)
    END AS value,
    CASE WHEN team < 2 THEN 'a team of one has no initiative to share'
         WHEN NOT spoken THEN 'no messages'
         WHEN answered = units AND positives = 0 THEN 'nobody took the initiative'
         WHEN value IS NULL THEN (units - answered) || ' of ' || units || ' utterances are not rated' END AS reason,
    definition
FROM whole, (VALUES ('released'), ('paper')) AS d (definition) WHERE codebook = 'initiative'
UNION ALL
SELECT CASE codebook WHEN 'confirmation' THEN 'effective_confirmations' ELSE 'halting_messages' END,
    trajectory_id, rater,
    CASE WHEN answered = units AND humans > 0 AND spoken THEN positives::DOUBLE END AS value,
    CASE WHEN humans = 0 THEN 'no human in the team'
         WHEN NOT spoken THEN 'no messages'
         WHEN value IS NULL THEN (units - answered) || ' of ' || units || ' units are not rated' END, NULL
FROM whole WHERE codebook IN ('confirmation', 'halting');

-- Computed here, kept in the table `measured` (pipeline/store/tables/derived.py), read as `measures`.
CREATE OR REPLACE VIEW measuring AS
SELECT metric, trajectory_id, value, 1.0 AS weight, CASE WHEN value IS NULL THEN reason END AS reason,
    NULL AS participant, NULL AS rater, scoring, NULL AS definition
FROM outcome_measures
UNION ALL
SELECT metric, trajectory_id, value, 1.0, reason, NULL, rater, NULL, definition
FROM process_measures
UNION ALL
SELECT metric, trajectory_id, value, weight, reason, participant, rater, scoring, definition FROM computed;

CREATE TABLE IF NOT EXISTS measured AS FROM measuring WITH NO DATA;
CREATE OR REPLACE VIEW measures AS FROM measured;
