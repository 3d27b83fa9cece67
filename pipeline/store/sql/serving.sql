-- The model server over time, and what people and agents did under which load.

CREATE OR REPLACE VIEW serving_rates AS
-- Counters as differences to the scrape before; NULL where the server was restarted in between, which any counter
-- that fell shows of all, or where that is more than two minutes ago: what happened meanwhile happened under other
-- loads, too.
WITH steps AS (
    SELECT time, local, url, running, queue, kv_cache_use,
        epoch(CAST(time AS TIMESTAMP)) - epoch(CAST(lag(time) OVER w AS TIMESTAMP)) AS seconds,
        preemptions - lag(preemptions) OVER w AS new_preemptions,
        prefix_queries - lag(prefix_queries) OVER w AS new_queries,
        prefix_hits - lag(prefix_hits) OVER w AS new_hits,
        ttft_sum - lag(ttft_sum) OVER w AS new_ttft,
        ttft_count - lag(ttft_count) OVER w AS new_first_tokens,
        prompt_tokens - lag(prompt_tokens) OVER w AS new_prompt_tokens,
        generation_tokens - lag(generation_tokens) OVER w AS new_tokens,
        seconds <= 120 AND least(new_preemptions, new_queries, new_hits, new_ttft, new_first_tokens,
            new_prompt_tokens, new_tokens) >= 0 AS is_known
    FROM serving
    WHERE error IS NULL
    WINDOW w AS (PARTITION BY url ORDER BY time)
)
SELECT time, local, url, running, queue, kv_cache_use,
    CASE WHEN is_known THEN new_preemptions END AS new_preemptions,
    CASE WHEN is_known AND new_queries > 0 THEN new_queries END AS new_queries,
    CASE WHEN is_known AND new_queries > 0 THEN new_hits END AS new_hits,
    CASE WHEN is_known AND new_first_tokens > 0 THEN new_ttft END AS new_ttft,
    CASE WHEN is_known AND new_first_tokens > 0 THEN new_first_tokens END AS new_first_tokens,
    CASE WHEN is_known AND seconds > 0 THEN new_tokens / seconds END AS generation_tokens_per_second
FROM steps;

CREATE OR REPLACE VIEW serving_total AS
-- All servers together, at each second in which one was read. What a server is doing is what its last scrape
-- of at most a minute before says, since servers are not read in the same second; nothing where that scrape
-- failed. What it did since the scrape before counts in the second of its own scrape alone. The load is NULL
-- where no server says how many requests it has in work, and where one that did a minute ago no longer answers,
-- as an overloaded one does, unless another's requests wait.
WITH scrapes AS MATERIALIZED (
    SELECT *, date_trunc('second', CAST(time AS TIMESTAMP)) AS utc,
        max(CAST(time AS TIMESTAMP)) FILTER (answered) OVER (PARTITION BY url ORDER BY time) AS last_answer
    FROM (
        SELECT *, true AS answered FROM serving_rates
        UNION ALL BY NAME
        SELECT time, local, url, false AS answered FROM serving WHERE error IS NOT NULL
    )
),
seconds AS (
    SELECT utc, date_trunc('second', CAST(any_value(local) AS TIMESTAMP)) AS local, sum(new_preemptions) AS preemptions,
        sum(new_ttft) AS ttft_sum, sum(new_first_tokens) AS ttft_count,
        sum(new_hits) / sum(new_queries) AS prefix_hit_rate
    FROM scrapes GROUP BY utc
),
servers AS (
    SELECT m.utc, r.running, r.queue, r.kv_cache_use, r.generation_tokens_per_second,
        NOT r.answered AND m.utc - r.last_answer <= INTERVAL 1 MINUTE AS is_unknown
    FROM (SELECT utc, url FROM seconds, (SELECT DISTINCT url FROM scrapes)) m
    ASOF JOIN (
        FROM scrapes QUALIFY row_number() OVER (PARTITION BY url, utc ORDER BY answered DESC, time DESC) = 1
    ) r ON r.url = m.url AND m.utc >= r.utc
    WHERE m.utc - r.utc <= INTERVAL 1 MINUTE
),
states AS (
    SELECT utc, sum(running) AS running, sum(queue) AS queue, max(kv_cache_use) AS kv_cache_use,
        sum(generation_tokens_per_second) AS generation_tokens_per_second, bool_or(is_unknown) AS is_unknown
    FROM servers GROUP BY utc
)
SELECT utc, local, running, queue, kv_cache_use, preemptions, ttft_sum / ttft_count AS ttft, prefix_hit_rate,
    generation_tokens_per_second, ttft_sum, ttft_count,
    CASE WHEN queue > 0 THEN 'queue' WHEN is_unknown THEN NULL WHEN running > 0 THEN 'busy' WHEN running = 0 THEN 'idle' END AS load
FROM seconds JOIN states USING (utc);

CREATE OR REPLACE VIEW serving_events AS
-- Events of sessions within a day of any scrape, whatever their zone: the others need not be looked at. A time
-- without a zone is the logging host's, which is taken to be ours.
WITH served AS (
    SELECT t.id
    FROM trajectories t,
        (SELECT min(CAST(time AS TIMESTAMP)) AS first, max(CAST(time AS TIMESTAMP)) AS last FROM serving) s
    WHERE coalesce(TRY_CAST(left(t.started, 19) AS TIMESTAMP) <= s.last + INTERVAL 1 DAY, true)
        AND coalesce(TRY_CAST(left(t.ended, 19) AS TIMESTAMP) >= s.first - INTERVAL 1 DAY, true)
)
SELECT *, regexp_matches(time, '(Z|[+-]\d\d:?\d\d)$') AS zoned,
    CASE WHEN regexp_matches(time, '(Z|[+-]\d\d:?\d\d)$')
        THEN epoch(TRY_CAST(time AS TIMESTAMPTZ)) ELSE epoch(TRY_CAST(time AS TIMESTAMP)) END AS moment
FROM events
WHERE trajectory_id IN (SELECT id FROM served);

CREATE OR REPLACE VIEW serving_load AS
-- Each event with the load in force: the last scrape of at most a minute before it.
WITH loads AS (
    SELECT *, true AS zoned, epoch(utc) AS moment FROM serving_total
    UNION ALL
    SELECT *, false, epoch(local) FROM serving_total
)
SELECT e.trajectory_id, e.seq, e.sub, e.live_only, e.time, e.actor, e.kind, e.text, e.action, e.status, e.moment,
    s.running, s.queue, s.kv_cache_use, s.preemptions, s.ttft, s.prefix_hit_rate, s.generation_tokens_per_second, s.load
FROM serving_events e
ASOF JOIN loads s ON e.zoned = s.zoned AND e.moment >= s.moment
WHERE e.moment - s.moment <= 60 AND s.load IS NOT NULL;

CREATE OR REPLACE VIEW serving_answers AS
-- Each human message under a known load: how long until an agent did something, and what the human did
-- until then, whatever the load was by that time.
SELECT q.trajectory_id, q.seq, q.load, q.queue, q.ttft,
    min(a.moment) - q.moment AS answer_seconds,
    (SELECT h.kind FROM serving_events h JOIN participants p ON p.trajectory_id = h.trajectory_id AND p.name = h.actor
     WHERE h.trajectory_id = q.trajectory_id AND p.kind = 'human' AND (h.seq, h.sub) > (q.seq, q.sub)
        AND h.seq < coalesce(min(a.seq), 2147483647)
     ORDER BY h.seq, h.sub LIMIT 1) AS meanwhile
FROM serving_load q
JOIN participants p ON p.trajectory_id = q.trajectory_id AND p.name = q.actor AND p.kind = 'human'
LEFT JOIN (
    SELECT l.* FROM serving_events l
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
-- Of requests, and not of scrapes: one that saw a single request counts no more than that.
SELECT 'ttft', load, sum(ttft_sum) / sum(ttft_count), coalesce(sum(ttft_count), 0)::BIGINT, 0
FROM serving_total WHERE load IS NOT NULL GROUP BY load
UNION ALL
SELECT 'preemptions', load, sum(preemptions), count(preemptions), count(*) - count(preemptions)
FROM serving_total WHERE load IS NOT NULL GROUP BY load;
