-- The last word, by the order in which they were appended, of each rater on each unit, code and codebook
-- version, each time it was asked; what was taken back is gone.
CREATE OR REPLACE VIEW current_ratings AS
SELECT * EXCLUDE (place)
FROM (
    SELECT *, row_number() OVER (
        PARTITION BY trajectory_id, event, codebook, codebook_version, code, rater, repeat
        ORDER BY ledger DESC, line DESC
    ) AS place
    FROM ratings
)
WHERE place = 1 AND NOT retracted;

-- Judges of whom several versions rated by a codebook.
CREATE OR REPLACE VIEW several_versions AS
SELECT codebook, codebook_version, rater
FROM (SELECT DISTINCT codebook, codebook_version, rater, rater_version FROM ratings WHERE rater_kind <> 'human')
GROUP BY ALL HAVING count(*) > 1;

-- What a version of a judge said last, where another has spoken since.
CREATE OR REPLACE VIEW earlier_ratings AS
SELECT * EXCLUDE (place, own_place, taken_back)
FROM (
    SELECT *,
        row_number() OVER (
            PARTITION BY trajectory_id, event, codebook, codebook_version, code, rater, repeat
            ORDER BY ledger DESC, line DESC
        ) AS place,
        row_number() OVER (
            PARTITION BY trajectory_id, event, codebook, codebook_version, code, rater, repeat, rater_version
            ORDER BY ledger DESC, line DESC
        ) AS own_place,
        max((ledger, line)) FILTER (retracted) OVER (
            PARTITION BY trajectory_id, event, codebook, codebook_version, code, rater, repeat
        ) AS taken_back
    FROM ratings SEMI JOIN several_versions USING (codebook, codebook_version, rater)
)
WHERE place > 1 AND own_place = 1 AND NOT retracted AND rater_kind <> 'human'
    AND (taken_back IS NULL OR (ledger, line) > taken_back);

-- All that holds: what raters said last, and what earlier versions of judges said.
CREATE OR REPLACE VIEW held_ratings AS
SELECT *, true AS is_last FROM current_ratings UNION ALL BY NAME SELECT *, false AS is_last FROM earlier_ratings;

-- The trajectories that a codebook is not for.
CREATE OR REPLACE VIEW out_of_scope AS
SELECT DISTINCT s.codebook, t.id AS trajectory_id
FROM codebook_scopes s, trajectories t
WHERE s.value IS DISTINCT FROM CASE s.field
    WHEN 'system' THEN t.system WHEN 'setting' THEN t.setting WHEN 'condition' THEN t.condition
    WHEN 'task' THEN t.task WHEN 'instance' THEN t.instance
    WHEN 'agent' THEN t.agent WHEN 'agent_model' THEN t.agent_model
    ELSE json_extract_string(t.tags, '$."' || replace(s.field, '"', '\"') || '"') END;

-- What each codebook is asked of, opening queries among them.
CREATE OR REPLACE VIEW codebook_units AS
SELECT b.codebook, u.*
FROM (SELECT DISTINCT name AS codebook, unit FROM codebooks) b JOIN units u ON u.kind = b.unit
ANTI JOIN out_of_scope o ON o.codebook = b.codebook AND o.trajectory_id = u.trajectory_id;

-- Ratings on the codebook as it is now, of units as they are now, repeats of a question among them: the last
-- word of each version of a rater, of which one is the rater's (`is_last`).
CREATE OR REPLACE VIEW answered_ratings AS
SELECT r.*, u.actor, u.opening, b.positive, b.unit AS unit_kind, b.category
FROM held_ratings r
JOIN codebooks b ON b.name = r.codebook AND b.version = r.codebook_version AND b.code = r.code
JOIN units u
    ON u.trajectory_id = r.trajectory_id AND u.kind = b.unit
    AND u.event IS NOT DISTINCT FROM r.event AND u.hash = r.unit_hash
ANTI JOIN out_of_scope o ON o.codebook = r.codebook AND o.trajectory_id = r.trajectory_id;

-- What counts: of each question the first answer. Computed here, kept in the table `counted`
-- (pipeline/store/tables/derived.py), read as `counted_ratings`. There `rater` is one version of the rater `asked`, and
-- a version that has the last word nowhere any more is left out.
CREATE OR REPLACE VIEW counting AS
SELECT *, rater AS asked FROM answered_ratings WHERE repeat = 0;

CREATE TABLE IF NOT EXISTS counted AS FROM counting WITH NO DATA;
CREATE OR REPLACE VIEW counted_ratings AS FROM counted;

-- Versions are never mixed under one name: under a codebook the version of a judge that has the last word most
-- often (then the one that rated last, by the time of its ratings, which outlives an export) bears its name, all
-- that another said stands under NAME (VERSION).
CREATE OR REPLACE VIEW version_names AS
SELECT codebook, asked, rater_version,
    CASE WHEN row_number() OVER (PARTITION BY codebook, asked ORDER BY n DESC, moment DESC, last DESC) = 1 THEN asked
         ELSE asked || ' (' || coalesce(rater_version, 'no version') || ')' END AS shown
FROM (
    SELECT codebook, asked, rater_version, count(*) FILTER (is_last) AS n, max(created) AS moment,
        max((ledger, line)) AS last
    FROM counted WHERE rater_kind <> 'human' GROUP BY ALL
);

-- What does not count, and why.
CREATE OR REPLACE VIEW uncounted_ratings AS
SELECT r.*,
    CASE
        WHEN NOT EXISTS (SELECT 1 FROM trajectories t WHERE t.id = r.trajectory_id)
            THEN 'its trajectory is not in the store'
        WHEN NOT EXISTS (SELECT 1 FROM codebooks b WHERE b.name = r.codebook)
            THEN 'its codebook is not known'
        WHEN NOT EXISTS (SELECT 1 FROM codebooks b WHERE b.name = r.codebook AND b.version = r.codebook_version)
            THEN 'its codebook has changed since'
        WHEN EXISTS (
            SELECT 1 FROM out_of_scope o
            WHERE o.codebook = r.codebook AND o.trajectory_id = r.trajectory_id
        ) THEN 'its codebook is not for this trajectory (applies_to)'
        ELSE 'its unit has changed since, or is none of this codebook'
    END AS reason
FROM current_ratings r
WHERE r.repeat = 0 AND NOT EXISTS (
    SELECT 1 FROM counted_ratings c
    WHERE c.ledger = r.ledger AND c.line = r.line
);
