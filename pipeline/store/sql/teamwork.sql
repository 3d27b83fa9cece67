-- What can be said of a team in any system, as rows of `computed`: one query over the trajectories that come in
-- (incoming_events, incoming_participants, incoming_units: pipeline/ingest/measure.py), each of which is read once.
-- A step is an action or a finish of a team member. Events known only from live traffic are left out.
WITH logged AS MATERIALIZED (
    FROM incoming_events WHERE NOT live_only
), teammates AS MATERIALIZED (
    FROM incoming_participants WHERE kind <> 'environment'
), team_events AS MATERIALIZED (
    SELECT e.trajectory_id, e.seq, e.time, e.actor, p.kind AS party, e.kind, e.status, e.action, e.arguments,
        coalesce(u.opening, false) AS opening, e.status IS NULL AND e.states IS NOT NULL AS untold
    FROM logged e
    JOIN teammates p ON p.trajectory_id = e.trajectory_id AND p.name = e.actor
    LEFT JOIN (FROM incoming_units WHERE kind = 'utterance' AND opening) u
        ON u.trajectory_id = e.trajectory_id AND u.event = e.seq
), counted AS (
    -- The opening query is no record of a log: neither an event of its speaker nor a message of the dialogue.
    SELECT p.trajectory_id, p.name AS participant,
        count(e.seq) FILTER (NOT e.opening) AS events,
        count(e.seq) FILTER (e.kind = 'message' AND e.status IS DISTINCT FROM 'failed' AND NOT e.opening)
            AS messages,
        count(e.seq) FILTER (e.kind IN ('action', 'finish')) AS actions
    FROM teammates p
    LEFT JOIN team_events e ON e.trajectory_id = p.trajectory_id AND e.actor = p.name
    GROUP BY p.trajectory_id, p.name
), counts AS MATERIALIZED (
    SELECT metric, trajectory_id, value::DOUBLE AS value, participant
    FROM (UNPIVOT counted ON events, messages, actions INTO NAME metric VALUE value)
), steps AS MATERIALIZED (
    FROM team_events WHERE kind IN ('action', 'finish')
), again AS (
    -- Of steps that are alike, all but the first are repeated; an ending is none.
    SELECT trajectory_id, sum(repeats) AS repeats
    FROM (
        SELECT trajectory_id, count(*) FILTER (kind = 'action') - (arg_min(kind, seq) = 'action')::INT AS repeats
        FROM steps GROUP BY trajectory_id, actor, action, arguments
    ) GROUP BY trajectory_id
), totals AS (
    SELECT trajectory_id, count(*) AS steps, count(*) FILTER (party = 'human') AS by_humans,
        count(*) FILTER (status = 'failed') AS failed, count(status) AS statuses,
        count(*) FILTER (untold AND kind = 'action') AS untold,
        count(*) FILTER (status IS NOT NULL OR kind = 'finish') AS done,
        count(*) FILTER (kind = 'action') AS actions
    FROM steps GROUP BY trajectory_id
), failures AS (
    SELECT p.trajectory_id, p.name AS participant, count(e.seq) FILTER (e.status = 'failed') AS failed,
        count(e.seq) FILTER (e.untold AND e.kind = 'action') AS untold,
        count(e.seq) FILTER (e.kind = 'action') AS steps,
        count(e.status) FILTER (e.kind IN ('action', 'finish')) AS statuses
    FROM teammates p
    LEFT JOIN team_events e ON e.trajectory_id = p.trajectory_id AND e.actor = p.name
    GROUP BY p.trajectory_id, p.name
), parties AS (
    SELECT p.trajectory_id, count(*) AS size, count(*) FILTER (p.kind = 'human') AS humans
    FROM teammates p GROUP BY p.trajectory_id
), shares AS (
    SELECT p.trajectory_id, list(coalesce(s.n, 0)) AS done
    FROM teammates p
    LEFT JOIN (SELECT trajectory_id, actor, count(*) AS n FROM steps GROUP BY ALL) s
        ON s.trajectory_id = p.trajectory_id AND s.actor = p.name
    GROUP BY p.trajectory_id
), spoken AS (
    SELECT trajectory_id, participant, value, sum(value) OVER (PARTITION BY trajectory_id) AS total
    FROM counts WHERE metric = 'messages'
), firsts AS (
    -- A later message's time is none of the first one's.
    SELECT trajectory_id, min(seq) AS seq
    FROM team_events WHERE party = 'human' AND kind = 'message' AND NOT opening GROUP BY trajectory_id
), begun AS (
    -- A cast to TIMESTAMP passes over an offset; Z, or none, is taken for UTC.
    SELECT e.trajectory_id, min(moment) AS began, any_value(moment) FILTER (e.seq = f.seq) AS spoke,
        any_value(f.seq) AS answer
    FROM (
        SELECT trajectory_id, seq, CASE WHEN regexp_matches(time, ':\d\d[.\d]*[+-]\d\d(:?\d\d)?$')
            THEN epoch_ms(try_cast(time AS TIMESTAMPTZ)) ELSE epoch_ms(try_cast(time AS TIMESTAMP)) END AS moment
        FROM logged
    ) e
    LEFT JOIN firsts f ON f.trajectory_id = e.trajectory_id
    GROUP BY e.trajectory_id
)
SELECT metric, trajectory_id, value, 1.0 AS weight, NULL AS reason, participant, NULL AS scoring FROM counts
UNION ALL
SELECT 'human_intervention_rate', p.trajectory_id,
    CASE WHEN humans > 0 AND steps > 0 THEN by_humans / steps END,
    coalesce(steps, 0)::DOUBLE,
    CASE WHEN humans = 0 THEN 'no human in the team' WHEN coalesce(steps, 0) = 0 THEN 'no steps' END, NULL, NULL
FROM parties p LEFT JOIN totals USING (trajectory_id)
UNION ALL
-- So many at least, where the log does not say it of every step: no number of errors.
SELECT 'errors', trajectory_id, CASE WHEN untold = 0 AND (statuses > 0 OR steps = 0) THEN failed END, 1,
    CASE WHEN untold > 0 THEN 'the log does not say whether ' || untold || ' of ' || steps || ' steps failed'
         WHEN statuses = 0 AND steps > 0 THEN 'the log does not say whether steps failed' END, participant, NULL
FROM failures
UNION ALL
-- Marks of failure alone would make every step that is told a failure, so one untold result leaves it open.
-- A call without an answer is no try, and a finish of which nothing more is said has not failed.
SELECT 'error_rate', p.trajectory_id, CASE WHEN untold = 0 AND statuses > 0 THEN failed / done END, coalesce(done, 0),
    CASE WHEN coalesce(steps, 0) = 0 THEN 'no steps'
         WHEN untold > 0 THEN 'the log does not say whether ' || untold || ' of ' || steps || ' steps failed'
         WHEN statuses = 0 THEN 'the log does not say whether steps failed' END, NULL, NULL
FROM parties p LEFT JOIN totals USING (trajectory_id)
UNION ALL
SELECT 'repeated_action_rate', p.trajectory_id, repeats / nullif(actions, 0), coalesce(actions, 0),
    CASE WHEN coalesce(actions, 0) = 0 THEN 'no actions' END, NULL, NULL
FROM parties p LEFT JOIN totals USING (trajectory_id) LEFT JOIN again USING (trajectory_id)
UNION ALL
-- CoBlock's balance with an even split as the best one: ab / (a^2 + b^2), at most 0.5.
SELECT 'workload_balance', s.trajectory_id,
    CASE WHEN size = 2 THEN done[1] * done[2] / nullif(done[1] ** 2 + done[2] ** 2, 0) END, 1,
    CASE WHEN size <> 2 THEN 'defined for a team of two, this one has ' || size
         WHEN done[1] + done[2] = 0 THEN 'no steps' END, NULL, 'actions'
FROM shares s JOIN parties USING (trajectory_id)
UNION ALL
SELECT 'message_share', trajectory_id, value / nullif(total, 0), 1,
    CASE WHEN total = 0 THEN 'no messages' END, participant, NULL
FROM spoken
UNION ALL
SELECT 'time_to_first_human_message', p.trajectory_id, (spoke - began) / 1000, 1,
    CASE WHEN humans = 0 THEN 'no human in the team' WHEN began IS NULL THEN 'the log has no times'
         WHEN answer IS NULL THEN 'no human message'
         WHEN spoke IS NULL THEN 'the first human message has no time' END, NULL, NULL
FROM parties p LEFT JOIN begun USING (trajectory_id)
