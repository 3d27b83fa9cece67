-- The last word, by the order in which they were appended, of each rater on each unit, code and codebook version, each time it was asked; what was
-- taken back is gone.
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

-- Ratings on the codebook as it is now, of units as they are now, repeats of a question among them.
CREATE OR REPLACE VIEW answered_ratings AS
SELECT r.*, u.actor, u.opening, b.positive, b.unit AS unit_kind, b.category
FROM current_ratings r
JOIN codebooks b ON b.name = r.codebook AND b.version = r.codebook_version AND b.code = r.code
JOIN units u
    ON u.trajectory_id = r.trajectory_id AND u.kind = b.unit
    AND u.event IS NOT DISTINCT FROM r.event AND u.hash = r.unit_hash;

-- What counts: of each question the first answer. Computed here, kept in the table `counted`
-- (pipeline/derived.py), read as `counted_ratings`.
CREATE OR REPLACE VIEW counting AS
SELECT * FROM answered_ratings WHERE repeat = 0;

CREATE TABLE IF NOT EXISTS counted AS FROM counting WITH NO DATA;
CREATE OR REPLACE VIEW counted_ratings AS FROM counted;

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
        ELSE 'its unit has changed since, or is none of this codebook'
    END AS reason
FROM current_ratings r
WHERE r.repeat = 0 AND NOT EXISTS (
    SELECT 1 FROM counted_ratings c
    WHERE c.ledger = r.ledger AND c.line = r.line
);
