-- The audit tables. Derived from logs and ledgers; no keys, so that DuckLake can hold them as well:
-- writers delete and insert by id in one transaction instead.
CREATE TABLE IF NOT EXISTS meta (key VARCHAR, value VARCHAR);
-- Trajectories whose derived rows are to be refreshed, at the latest at that time (Unix seconds).
CREATE TABLE IF NOT EXISTS postponed (trajectory_id VARCHAR, until DOUBLE);
CREATE TABLE IF NOT EXISTS trajectories (
    id VARCHAR, native_id VARCHAR, source VARCHAR, system VARCHAR, setting VARCHAR, condition VARCHAR,
    task VARCHAR, instance VARCHAR, agent VARCHAR, agent_model VARCHAR, tags VARCHAR, hidden VARCHAR,
    started VARCHAR, ended VARCHAR, n_events INTEGER, digest VARCHAR
);
CREATE TABLE IF NOT EXISTS participants (
    trajectory_id VARCHAR, name VARCHAR, kind VARCHAR, model VARCHAR, simulated BOOLEAN,
    prompt_tokens BIGINT, completion_tokens BIGINT
);
CREATE TABLE IF NOT EXISTS events (
    trajectory_id VARCHAR, seq INTEGER, sub INTEGER, live_only BOOLEAN, time VARCHAR, actor VARCHAR,
    kind VARCHAR, text VARCHAR, action VARCHAR, arguments VARCHAR, raw VARCHAR, status VARCHAR,
    error VARCHAR, states VARCHAR, notices VARCHAR
);
CREATE TABLE IF NOT EXISTS states (hash VARCHAR, content VARCHAR);
CREATE TABLE IF NOT EXISTS outcomes (
    trajectory_id VARCHAR, name VARCHAR, value DOUBLE, text VARCHAR, baseline VARCHAR, reason VARCHAR,
    data VARCHAR, imported BOOLEAN
);
-- What can be rated, by kind of unit; event is NULL for a whole trajectory.
CREATE TABLE IF NOT EXISTS units (
    trajectory_id VARCHAR, kind VARCHAR, event INTEGER, hash VARCHAR, actor VARCHAR, opening BOOLEAN
);
CREATE TABLE IF NOT EXISTS ratings (
    ledger VARCHAR, line INTEGER, trajectory_id VARCHAR, event INTEGER, unit_hash VARCHAR, codebook VARCHAR,
    codebook_version VARCHAR, code VARCHAR, rater VARCHAR, rater_kind VARCHAR, rater_version VARCHAR,
    repeat INTEGER, label VARCHAR, error VARCHAR, retracted BOOLEAN, cites INTEGER[], quote VARCHAR, error_source VARCHAR,
    rationale VARCHAR, probability DOUBLE, model VARCHAR, prompt_hash VARCHAR, parameters VARCHAR, seed BIGINT,
    prompt_tokens BIGINT, cached_tokens BIGINT, completion_tokens BIGINT, cost_usd DOUBLE, seconds DOUBLE,
    created VARCHAR, external VARCHAR
);
-- Trajectories of which a model was asked all there is, as they were then; see pipeline/judge/open_work.py.
CREATE TABLE IF NOT EXISTS settled (asking VARCHAR, trajectory_id VARCHAR, digest VARCHAR, noted VARCHAR);
CREATE TABLE IF NOT EXISTS ledgers (path VARCHAR, bytes BIGINT, lines INTEGER);
CREATE TABLE IF NOT EXISTS codebooks (
    name VARCHAR, version VARCHAR, title VARCHAR, unit VARCHAR, level VARCHAR, positive VARCHAR,
    labels VARCHAR[], code VARCHAR, code_name VARCHAR, category VARCHAR, category_name VARCHAR
);
-- Which trajectories a codebook is for: those that have every value; without a row, all.
CREATE TABLE IF NOT EXISTS codebook_scopes (codebook VARCHAR, field VARCHAR, value VARCHAR);
CREATE TABLE IF NOT EXISTS samples (
    sample VARCHAR, trajectory_id VARCHAR, event INTEGER, codebook VARCHAR, code VARCHAR, unit_hash VARCHAR,
    probability DOUBLE, stratum VARCHAR, overlap INTEGER, design VARCHAR, seed BIGINT, created VARCHAR
);
-- With what probability a sample could have taken each unit, drawn or not.
CREATE TABLE IF NOT EXISTS frames (
    sample VARCHAR, codebook VARCHAR, trajectory_id VARCHAR, event INTEGER, probability DOUBLE
);
CREATE TABLE IF NOT EXISTS sources (
    path VARCHAR, system VARCHAR, content_hash VARCHAR, bytes BIGINT, options VARCHAR, trajectory_ids VARCHAR[],
    ingested VARCHAR
);
CREATE TABLE IF NOT EXISTS quarantine (source VARCHAR, line INTEGER, reason VARCHAR, read_from VARCHAR);
-- What a system's logs are measured against, such as Collab-Overcooked's reference trajectories.
CREATE TABLE IF NOT EXISTS refs (system VARCHAR, name VARCHAR, content VARCHAR, source VARCHAR);
-- Measures that need more than SQL, computed when a trajectory is stored.
CREATE TABLE IF NOT EXISTS computed (
    metric VARCHAR, trajectory_id VARCHAR, value DOUBLE, weight DOUBLE, reason VARCHAR, participant VARCHAR,
    rater VARCHAR, scoring VARCHAR, definition VARCHAR
);
-- Scrapes of the model server behind a run; counters as the server counts them. See pipeline/ingest/serving.py.
CREATE TABLE IF NOT EXISTS serving (
    time VARCHAR, local VARCHAR, url VARCHAR, error VARCHAR, running DOUBLE, queue DOUBLE, preemptions DOUBLE,
    kv_cache_use DOUBLE, prefix_queries DOUBLE, prefix_hits DOUBLE, ttft_sum DOUBLE, ttft_count DOUBLE,
    prompt_tokens DOUBLE, generation_tokens DOUBLE
);
