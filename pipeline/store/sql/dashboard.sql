-- What the dashboard and the report show beyond metrics.

-- One row a whole trajectory, code and rater: 1 present, 0 absent, NULL unclear or error, or where labels say
-- neither (a scale, more than two).
CREATE OR REPLACE VIEW findings AS
SELECT c.trajectory_id, c.codebook, c.code, c.category, c.rater, c.rater_kind, c.label, c.error,
    CASE WHEN c.label = c.positive THEN 1
        WHEN c.positive IS NOT NULL AND list_contains(b.labels, c.label) THEN 0 END AS present,
    c.error_source, c.cites, c.rationale, c.quote, c.probability, c.created
FROM counted_ratings c JOIN codebooks b ON b.name = c.codebook AND b.code = c.code
WHERE c.unit_kind = 'trajectory';

-- A category is present where any of its codes is, and absent where none is, of trajectories with an answer to
-- all of them: were one finding enough, what was found would be counted and what was not found be left out.
CREATE OR REPLACE VIEW category_findings AS
SELECT f.trajectory_id, f.codebook, f.category AS code, f.rater, any_value(f.rater_kind) AS rater_kind,
    CASE WHEN count(f.present) = any_value(s.codes) THEN max(f.present) END AS present
FROM findings f
JOIN (SELECT name, category, count(*) AS codes FROM codebooks GROUP BY ALL) s
    ON s.name = f.codebook AND s.category = f.category
GROUP BY f.trajectory_id, f.codebook, f.category, f.rater;

-- Who rated what with what: the provenance behind a report's numbers.
CREATE OR REPLACE VIEW rater_provenance AS
SELECT codebook, codebook_version, rater, any_value(rater_kind) AS rater_kind,
    list_sort(list_distinct(list(rater_version))) AS versions, list_sort(list_distinct(list(model))) AS models,
    list_sort(list_distinct(list(prompt_hash))) AS prompts, list_sort(list_distinct(list(seed))) AS seeds,
    count(label) FILTER (WHERE repeat = 0) AS answers, count(error) FILTER (WHERE repeat = 0) AS errors,
    count(DISTINCT trajectory_id) AS trajectories,
    sum(prompt_tokens) AS prompt_tokens, sum(cached_tokens) AS cached_tokens,
    sum(completion_tokens) AS completion_tokens, sum(cost_usd) AS cost_usd, sum(seconds) AS seconds
FROM held_ratings
GROUP BY codebook, codebook_version, rater;
