-- The model server over time, and what people and agents did under which load.

CREATE OR REPLACE VIEW serving_rates AS
-- Counters as differences to the scrape before; NULL where the server was restarted in between.
WITH steps AS (
    SELECT *,
        epoch(CAST(time AS TIMESTAMP)) - epoch(CAST(lag(time) OVER w AS TIMESTAMP)) AS seconds,
        preemptions - lag(preemptions) OVER w AS new_preemptions,
        prefix_queries - lag(prefix_queries) OVER w AS new_queries,
        prefix_hits - lag(prefix_hits) OVER w AS new_hits,
        ttft_sum - lag(ttft_sum) OVER w AS new_ttft,
        ttft_count - lag(ttft_count) OVER w AS new_first_tokens,
        prompt_tokens - lag(prompt_tokens) OVER w AS new_prompt_tokens,
        generation_tokens - lag(generation_tokens) OVER w AS new_generation_tokens
    FROM serving
    WHERE error IS NULL
    WINDOW w AS (PARTITION BY url ORDER BY time)
)
SELECT time, local, url, running, queue, kv_cache_use,
    CASE WHEN new_preemptions >= 0 THEN new_preemptions END AS preemptions,
    CASE WHEN new_queries > 0 AND new_hits >= 0 THEN new_hits / new_queries END AS prefix_hit_rate,
    CASE WHEN new_first_tokens > 0 AND new_ttft >= 0 THEN new_ttft / new_first_tokens END AS ttft,
    CASE WHEN new_prompt_tokens >= 0 AND seconds > 0 THEN new_prompt_tokens / seconds END AS prompt_tokens_per_second,
    CASE WHEN new_generation_tokens >= 0 AND seconds > 0 THEN new_generation_tokens / seconds END
        AS generation_tokens_per_second
FROM steps;

CREATE OR REPLACE VIEW serving_total AS
-- All servers together, by the second.
SELECT date_trunc('second', CAST(time AS TIMESTAMP)) AS utc, date_trunc('second', CAST(any_value(local) AS TIMESTAMP)) AS local,
    sum(running) AS running, sum(queue) AS queue, max(kv_cache_use) AS kv_cache_use,
    sum(preemptions) AS preemptions, avg(ttft) AS ttft, avg(prefix_hit_rate) AS prefix_hit_rate,
    sum(generation_tokens_per_second) AS generation_tokens_per_second
FROM serving_rates GROUP BY 1;

CREATE OR REPLACE VIEW serving_load AS
-- Each event with the load in force: the last scrape of at most a minute before it. A time without a
-- zone is the logging host's, which is taken to be ours.
WITH served AS (
    -- Sessions within a day of any scrape, whatever their zone: the others need not be looked at.
    SELECT t.id
    FROM trajectories t,
        (SELECT min(CAST(time AS TIMESTAMP)) AS first, max(CAST(time AS TIMESTAMP)) AS last FROM serving) s
    WHERE coalesce(TRY_CAST(left(t.started, 19) AS TIMESTAMP) <= s.last + INTERVAL 1 DAY, true)
        AND coalesce(TRY_CAST(left(t.ended, 19) AS TIMESTAMP) >= s.first - INTERVAL 1 DAY, true)
),
timed AS (
    SELECT *, regexp_matches(time, '(Z|[+-]\d\d:?\d\d)$') AS zoned,
        CASE WHEN regexp_matches(time, '(Z|[+-]\d\d:?\d\d)$')
            THEN epoch(TRY_CAST(time AS TIMESTAMPTZ)) ELSE epoch(TRY_CAST(time AS TIMESTAMP)) END AS moment
    FROM events
    WHERE trajectory_id IN (SELECT id FROM served)
),
loads AS (
    SELECT *, true AS zoned, epoch(utc) AS moment FROM serving_total
    UNION ALL
    SELECT *, false, epoch(local) FROM serving_total
)
SELECT e.trajectory_id, e.seq, e.sub, e.live_only, e.time, e.actor, e.kind, e.text, e.action, e.status, e.moment,
    s.running, s.queue, s.kv_cache_use, s.preemptions, s.ttft, s.prefix_hit_rate, s.generation_tokens_per_second,
    CASE WHEN s.queue > 0 THEN 'queue' WHEN s.running > 0 THEN 'busy' ELSE 'idle' END AS load
FROM timed e
ASOF JOIN loads s ON e.zoned = s.zoned AND e.moment >= s.moment
WHERE e.moment - s.moment <= 60;

CREATE OR REPLACE VIEW serving_answers AS
-- Each human message under a known load: how long until an agent did something, and what the human did
-- until then.
SELECT q.trajectory_id, q.seq, q.load, q.queue, q.ttft,
    min(a.moment) - q.moment AS answer_seconds,
    (SELECT h.kind FROM serving_load h JOIN participants p ON p.trajectory_id = h.trajectory_id AND p.name = h.actor
     WHERE h.trajectory_id = q.trajectory_id AND p.kind = 'human' AND (h.seq, h.sub) > (q.seq, q.sub)
        AND h.seq < coalesce(min(a.seq), 2147483647)
     ORDER BY h.seq, h.sub LIMIT 1) AS meanwhile
FROM serving_load q
JOIN participants p ON p.trajectory_id = q.trajectory_id AND p.name = q.actor AND p.kind = 'human'
LEFT JOIN (
    SELECT l.* FROM serving_load l
    JOIN participants x ON x.trajectory_id = l.trajectory_id AND x.name = l.actor AND x.kind = 'agent'
    WHERE NOT l.live_only
) a ON a.trajectory_id = q.trajectory_id AND a.seq > q.seq
WHERE q.kind = 'message' AND NOT q.live_only
GROUP BY q.trajectory_id, q.seq, q.sub, q.load, q.queue, q.ttft, q.moment;

CREATE OR REPLACE VIEW serving_measures AS
-- Answers once for all of their measures.
WITH answers AS (FROM serving_answers)
SELECT 'answer_seconds' AS metric, load, avg(answer_seconds) AS value, count(answer_seconds) AS n,
    count(*) - count(answer_seconds) AS missing
FROM answers GROUP BY load
UNION ALL
SELECT 'slow_answer_rate', load, avg((answer_seconds > 30)::INTEGER), count(answer_seconds),
    count(*) - count(answer_seconds)
FROM answers GROUP BY load
UNION ALL
SELECT 'spoke_again_rate', load, avg((meanwhile IS NOT DISTINCT FROM 'message')::INTEGER), count(*), 0
FROM answers GROUP BY load
UNION ALL
SELECT 'finished_unanswered_rate', load, avg((meanwhile IS NOT DISTINCT FROM 'finish')::INTEGER), count(*), 0
FROM answers GROUP BY load
UNION ALL
SELECT 'action_failure_rate', load, avg((status = 'failed')::INTEGER), count(status), count(*) - count(status)
FROM serving_load WHERE kind = 'action' GROUP BY load
UNION ALL
SELECT 'ttft', CASE WHEN queue > 0 THEN 'queue' WHEN running > 0 THEN 'busy' ELSE 'idle' END, avg(ttft), count(ttft),
    count(*) - count(ttft)
FROM serving_total GROUP BY 2
UNION ALL
SELECT 'preemptions', CASE WHEN queue > 0 THEN 'queue' WHEN running > 0 THEN 'busy' ELSE 'idle' END, sum(preemptions),
    count(preemptions), count(*) - count(preemptions)
FROM serving_total GROUP BY 2;
