"""Answers that a judge has from another, or an older version of itself: the same model was asked the same.

They are the answers of one request under several names, which `external.answered_for` of a copy tells. Held
against people, each name has them. Among judges they are one. `external` also tells how a request was
answered: without which parameters.
"""

MAY_BE_COPY = "coalesce(contains(external, '\"answered_for\"'), false)"
"""SQL condition on ratings, cheap: whether one may be a copy."""
IS_COPY = f"({MAY_BE_COPY} AND prompt_hash IS NOT NULL AND json_exists(external, '$.answered_for'))"
"""SQL condition on ratings: to be a copy. What has no prompt may have been asked anything."""
PARAMETERS_LEFT_OUT = "CASE WHEN contains(external, '\"left_out\"') THEN external->>'$.left_out[*]' END"
"""SQL of ratings: a list of the parameters that a judge's endpoint did not take. Ratings made elsewhere may
have anything under this name."""
QUESTION = "trajectory_id, event, code, prompt_hash, parameters"
"""Columns of ratings by a codebook that tell what was asked."""
